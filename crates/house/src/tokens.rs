//! Cuts Rust source into words and signs, so that a rule never trips over a comment or a string.
//!
//! This is not a Rust lexer: numbers, operators and generics need no precision here. Comments, string and character
//! literals are dropped; `::` is one sign; a lifetime keeps its quote, so `'static` is not `static`.

/// A word or sign and the line it stands on, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The text as written.
    pub text: &'a str,
    /// The line.
    pub line: usize,
}

/// All words and signs of `source`, in order.
pub fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < source.len() {
        let rest = &source[at..];
        let (length, keep) = next(rest);
        let text = &rest[..length];
        if keep {
            found.push(Token { text, line });
        }
        line += text.matches('\n').count();
        at += length;
    }
    found
}

/// The length of what `rest` begins with, and whether it is a token.
fn next(rest: &str) -> (usize, bool) {
    let first = rest.chars().next().expect("not at the end");
    if rest.starts_with("//") {
        (rest.find('\n').unwrap_or(rest.len()), false)
    } else if rest.starts_with("/*") {
        (block_comment(rest), false)
    } else if let Some(length) = string_literal(rest) {
        (length, false)
    } else if first == '\'' {
        quote(rest)
    } else if is_word(first) {
        (rest.find(|c| !is_word(c)).unwrap_or(rest.len()), true)
    } else if rest.starts_with("::") {
        (2, true)
    } else {
        (first.len_utf8(), !first.is_whitespace())
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// Plain, byte, C and raw strings. `None` if `rest` does not begin with one.
fn string_literal(rest: &str) -> Option<usize> {
    let prefix = rest.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|length| *length <= 2)?;
    let body = &rest[prefix..];
    if rest[..prefix].contains('r') {
        let hashes = body.find(|c| c != '#')?;
        if !body[hashes..].starts_with('"') {
            return None;
        }
        let end = format!("\"{}", "#".repeat(hashes));
        let start = prefix + hashes + 1;
        return Some(rest[start..].find(&end).map_or(rest.len(), |length| start + length + end.len()));
    }
    if !body.starts_with('"') {
        return None;
    }
    let mut escaped = false;
    for (at, c) in body.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(prefix + at + 1),
            _ => {}
        }
    }
    Some(rest.len())
}

/// A character literal, which is dropped, or a lifetime, which is kept.
fn quote(rest: &str) -> (usize, bool) {
    let mut inside = rest[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => (escaped_character(rest), false),
        (Some(c), Some('\'')) => (2 + c.len_utf8(), false),
        _ => (1 + rest[1..].find(|c| !is_word(c)).unwrap_or(rest.len() - 1), true),
    }
}

/// The first quote from the fourth byte on closes it: `'\n'` and `'\''` alike.
fn escaped_character(rest: &str) -> usize {
    rest.get(3..).and_then(|tail| tail.find('\'')).map_or(rest.len(), |length| 3 + length + 1)
}

/// Whether the tokens from `at` on spell `pattern`, a text such as `SystemTime::now`.
pub fn spells(tokens: &[Token<'_>], at: usize, pattern: &[Token<'_>]) -> bool {
    tokens.len() >= at + pattern.len() && tokens[at..].iter().zip(pattern).all(|(a, b)| a.text == b.text)
}

/// The tokens without the bodies of `#[cfg(test)] mod name { .. }`.
pub fn without_tests<'a>(all: &[Token<'a>]) -> Vec<Token<'a>> {
    let gate = tokens("#[cfg(test)] mod");
    let mut kept = Vec::with_capacity(all.len());
    let mut at = 0;
    while at < all.len() {
        let opens = at + gate.len() + 1;
        if spells(all, at, &gate) && all.get(opens).is_some_and(|token| token.text == "{") {
            at = after_block(all, opens);
        } else {
            kept.push(all[at]);
            at += 1;
        }
    }
    kept
}

/// The position behind the brace that closes the one at `opens`.
fn after_block(all: &[Token<'_>], opens: usize) -> usize {
    let mut depth = 0;
    for (at, token) in all.iter().enumerate().skip(opens) {
        match token.text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    all.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<&str> {
        tokens(source).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn comments_and_literals_are_dropped() {
        let cases: [(&str, &[&str]); 12] = [
            ("a // b\nc", &["a", "c"]),
            ("a /* b /* c */ d */ e", &["a", "e"]),
            ("//! doc\n/// more\nx", &["x"]),
            (r#"f("a \" b", c)"#, &["f", "(", ",", "c", ")"]),
            (r##"r#"a " b"# c"##, &["c"]),
            (r#"b"a" br"b" c"c" d"#, &["d"]),
            ("'a' 'b", &["'b"]),
            (r"'\n' '\'' x", &["x"]),
            ("&'static str", &["&", "'static", "str"]),
            ("std::fs", &["std", "::", "fs"]),
            ("break rest", &["break", "rest"]),
            ("\"open", &[]),
        ];
        for (source, expected) in cases {
            assert_eq!(words(source), expected, "{source}");
        }
    }

    #[test]
    fn lines_are_counted_through_what_is_dropped() {
        let lines: Vec<usize> = tokens("a\n/*\n*/ b \"\n\" c").into_iter().map(|token| token.line).collect();
        assert_eq!(lines, [1, 3, 4]);
    }

    #[test]
    fn test_modules_are_cut_out_and_nothing_else() {
        let source =
            "a #[cfg(test)] mod tests { fn f() { g() } } b #[cfg(test)] use c; #[cfg(test)] mod d; e";
        let kept: Vec<&str> = without_tests(&tokens(source)).into_iter().map(|token| token.text).collect();
        assert_eq!(&kept[..2], ["a", "b"]);
        assert!(kept.contains(&"c") && kept.contains(&"d") && kept.ends_with(&["e"]));
    }
}
