//! Documents as scripts: commands and what they must print.

/// One command of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Its line in the document.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
}

/// The commands of all `console` blocks, in order. One that ends in a backslash goes on in the next line.
pub(crate) fn steps(document: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut is_inside = false;
    let mut has_command = false;
    for (at, text) in document.lines().enumerate() {
        if let Some(info) = text.strip_prefix("```") {
            is_inside = !is_inside && info.trim() == "console";
            has_command = false;
        } else if is_inside {
            let last = steps.last_mut().filter(|_| has_command);
            if let Some(Step { command, .. }) = last.filter(|step| step.command.ends_with('\\')) {
                command.pop();
                *command += text.trim_start();
            } else if let Some(command) = text.strip_prefix("$ ") {
                // A remark behind the command is for readers.
                let command = command.split("  #").next().unwrap_or(command).trim().to_owned();
                steps.push(Step { line: at + 1, command, expected: Vec::new() });
                has_command = true;
            } else if has_command {
                let step = steps.last_mut().expect("there is a command");
                step.expected.push(text.to_owned());
            }
        }
    }
    steps
}

/// A command's words, as a shell splits them: at blanks, except within single quotes.
pub(crate) fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in command.chars() {
        match letter {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().expect("there is one").push(letter),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether what was printed is what was expected, or where the two part.
pub(crate) fn matches(expected: &[String], printed: &str) -> Result<(), String> {
    // Somebody who prints nothing says that the output does not matter.
    if expected.is_empty() {
        return Ok(());
    }
    let expected: Vec<String> = expected.iter().map(|line| calm(line)).collect();
    let printed: Vec<String> = printed.lines().map(calm).collect();
    let mut farthest = 0;
    if lines_match(&expected, &printed, 0, &mut farthest) {
        return Ok(());
    }
    Err(format!("does not print line {} as expected: {:?}", farthest + 1, expected.get(farthest)))
}

/// Runs of blanks as one, none at the ends.
fn calm(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines_match(expected: &[String], printed: &[String], done: usize, farthest: &mut usize) -> bool {
    *farthest = (*farthest).max(done);
    match (expected, printed) {
        ([], printed) => printed.iter().all(String::is_empty),
        ([first, rest @ ..], _) if first == "…" => {
            (0..=printed.len()).any(|skip| lines_match(rest, &printed[skip..], done + 1, farthest))
        }
        ([first, rest @ ..], [line, others @ ..]) => {
            line_matches(first, line) && lines_match(rest, others, done + 1, farthest)
        }
        (rest, []) => rest.iter().all(String::is_empty),
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let first = parts.next().expect("split gives at least one part");
    let Some(mut rest) = line.strip_prefix(first.trim_end()) else { return false };
    let mut parts = parts.map(str::trim).peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_what_they_print_are_found() {
        let text = "Look:\n\n```console\n$ bigfleet get needs  # all\nA  B\n…\n$ second\n```\n\n```sh\n$ not this\n```\n";
        let step = |line, command: &str, expected: &[&str]| Step {
            line,
            command: command.into(),
            expected: expected.iter().map(|text| (*text).to_owned()).collect(),
        };
        assert_eq!(steps(text), [step(4, "bigfleet get needs", &["A  B", "…"]), step(7, "second", &[])]);
        let long = "```console\n$ a --b \\\n    --c\nsaid\n```\n";
        assert_eq!(steps(long), [step(2, "a --b --c", &["said"])]);
        assert_eq!(words("pause --reason 'a b'  --for 5m"), ["pause", "--reason", "a b", "--for", "5m"]);
    }

    #[test]
    fn ellipses_stand_for_anything_and_nothing_else_does() {
        let check = |expected: &str, printed: &str| {
            let lines: Vec<String> = expected.lines().map(String::from).collect();
            matches(&lines, printed).is_ok()
        };
        assert!(
            check("a … c", "a b c")
                && check("a …", "a b c")
                && check("… c", "a   b c")
                && check("a b", "a    b\n")
        );
        assert!(
            check("a … c … e", "a b c d e")
                && check("x…z", "xyz")
                && check("…", "")
                && check("…\nb", "1\n2\nb")
        );
        assert!(
            !check("a … d", "a b c") && !check("a b", "a b c") && !check("a", "a\nb") && !check("a\nb", "a")
        );
        assert!(!check("…\nb", "1\n2\nc") && !check("x…z", "xy"));
    }
}
