//! Walks and questions of `ARCHITECTURE.md`: how many files one thing passes through, and where a stranger looks for another.

/// One walk: the files that somebody opens who follows one thing from outside to its effect.
#[derive(Debug, PartialEq, Eq)]
pub struct Walk {
    /// What is followed.
    pub name: String,
    /// How many files it may be.
    pub most: usize,
    /// The files.
    pub files: Vec<String>,
}

/// The walks of the section `## Walks`: a heading `### NAME: at most N files`, and below it paths in back quotes.
pub fn walks(architecture: &str) -> Vec<Walk> {
    let mut found: Vec<Walk> = Vec::new();
    for line in section(architecture, "Walks").lines() {
        if let Some((name, most)) = line.strip_prefix("### ").and_then(|title| title.split_once(": at most "))
        {
            let most = most.split(' ').next().and_then(|most| most.parse().ok()).unwrap_or(0);
            found.push(Walk { name: name.to_owned(), most, files: Vec::new() });
        } else if let Some(walk) = found.last_mut() {
            let quoted = line.split('`').skip(1).step_by(2).filter(|quoted| quoted.starts_with("crates/"));
            walk.files.extend(quoted.map(str::to_owned));
        }
    }
    found
}

/// What is wrong with the walks: longer than they say, a file twice, a file that is not there.
pub fn wrong_walks(walks: &[Walk], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for Walk { name, most, files } in walks {
        if files.len() > *most {
            found.push(format!("{name}: {} files, and it says at most {most}", files.len()));
        }
        for (position, file) in files.iter().enumerate() {
            if files[..position].contains(file) {
                found.push(format!("{name}: {file} is there twice"));
            }
            if !exists(file) {
                found.push(format!("{name}: {file} is not there"));
            }
        }
    }
    found
}

/// One question of a stranger: the question, the folder, and what is found there.
#[derive(Debug, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
    pub asked: String,
    /// Where the answer is.
    pub folder: String,
    /// A type or function that is defined there.
    pub item: String,
}

/// The rows of the table in the section `## Where to look`.
pub fn questions(architecture: &str) -> Vec<Question> {
    let rows = section(architecture, "Where to look").lines().filter(|line| line.contains("| `"));
    let read = |row: &str| {
        let mut cells = row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned());
        Some(Question { asked: cells.next()?, folder: cells.next()?, item: cells.next()? })
    };
    rows.filter_map(read).collect()
}

/// Whether a source defines something of this name.
pub fn defines(source: &str, item: &str) -> bool {
    let is_end = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    ["struct ", "enum ", "trait ", "fn ", "const "].iter().any(|kind| {
        let defined = format!("{kind}{item}");
        source.match_indices(&defined).any(|(at, _)| is_end(&source[at + defined.len()..]))
    })
}

fn section<'a>(architecture: &'a str, title: &str) -> &'a str {
    let after = architecture.split(&format!("\n## {title}\n")).nth(1).unwrap_or("");
    after.split("\n## ").next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# A\n\n## Walks\n\n### One thing: at most 1 files\n\n1. `crates/b.rs`, `crates/b.rs`: twice\n\n\
                        ## Where to look\n\n| q | f | i |\n|---|---|---|\n| where is x | `crates/x` | `x_of` |\n\n## Z\n";

    #[test]
    fn a_walk_that_is_too_long_or_wrong_is_found() {
        let walks = walks(PAGE);
        assert_eq!((walks.len(), &*walks[0].name, walks[0].files.len()), (1, "One thing", 2));
        let wrong = wrong_walks(&walks, |_| false);
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        assert!(wrong[0].contains("2 files, and it says at most 1"));
    }

    #[test]
    fn questions_name_what_is_defined() {
        let [question] = &questions(PAGE)[..] else { panic!() };
        assert_eq!(
            (&*question.asked, &*question.folder, &*question.item),
            ("where is x", "crates/x", "x_of")
        );
        assert!(defines("pub fn x_of(a: u8)", "x_of") && !defines("pub fn x_of_y()", "x_of"));
        assert!(defines("pub struct Outbox<T> {", "Outbox") && !defines("use x::Outbox;", "Outbox"));
    }
}
