//! What the source text of a pure crate must not mention.
//!
//! Clippy refuses clocks and random maps as well (`clippy.toml`), but an `#[expect]` can silence clippy. In the pure
//! crates there is no exception, so there is a second look that cannot be silenced.

use crate::tokens::{Token, spells, tokens, without_tests};

/// Paths that must not be spelled anywhere in a pure crate, its unit tests included.
const NEVER: &[(&str, &str)] = &[
    ("SystemTime::now", "reads the clock"),
    ("Instant::now", "reads the clock"),
    ("thread::sleep", "waits"),
    ("collections::HashMap", "iterates in random order"),
    ("collections::HashSet", "iterates in random order"),
    ("collections::hash_map", "iterates in random order"),
    ("collections::hash_set", "iterates in random order"),
    ("hash::RandomState", "is seeded at random"),
    ("thread_local!", "is state of the process"),
    ("static mut", "is state of the process"),
];

/// Names that must not be imported from `std`, nor reached through it, outside test modules.
const NOT_FROM_STD: &[(&str, &str)] = &[
    ("fs", "touches files"),
    ("stdin", "does I/O"),
    ("stdout", "does I/O"),
    ("stderr", "does I/O"),
    ("net", "touches the network"),
    ("process", "starts processes"),
    ("env", "reads the environment"),
    ("SystemTime", "is a clock"),
    ("Instant", "is a clock"),
    ("HashMap", "iterates in random order"),
    ("HashSet", "iterates in random order"),
    ("RandomState", "is seeded at random"),
];

/// Types that make a `static` item a variable.
const MUTABLE_INSIDE: &[&str] = &["Mutex", "RwLock", "OnceLock", "LazyLock", "OnceCell", "RefCell", "Cell"];

/// Everything impure in one source file. `path` is only used in the messages.
pub fn violations(path: &str, source: &str) -> Vec<String> {
    let all = tokens(source);
    let code = without_tests(&all);
    let mut found = Vec::new();
    for (pattern, why) in NEVER {
        let pattern = tokens(pattern);
        found.extend(places(&all, &pattern).map(|line| {
            let text: String = pattern.iter().map(|token| token.text).collect();
            format!("{path}:{line}: `{text}` {why}")
        }));
    }
    for (line, name) in imported_from_std(&code) {
        let reason = NOT_FROM_STD.iter().find(|(banned, _)| *banned == name);
        found.extend(reason.map(|(_, why)| format!("{path}:{line}: `std` .. `{name}` {why}")));
    }
    found.extend(global_state(&code).map(|line| format!("{path}:{line}: a `static` that can change")));
    found
}

fn places<'a>(all: &'a [Token<'a>], pattern: &'a [Token<'a>]) -> impl Iterator<Item = usize> + 'a {
    (0..all.len()).filter(|at| spells(all, *at, pattern)).map(|at| all[at].line)
}

/// Every name in a path or import that begins with `std::`, groups included.
fn imported_from_std<'a>(code: &[Token<'a>]) -> Vec<(usize, &'a str)> {
    let std = tokens("std::");
    let mut found = Vec::new();
    for start in (0..code.len()).filter(|at| spells(code, *at, &std)) {
        let mut depth = 0;
        let mut after_separator = true;
        for token in &code[start + std.len()..] {
            match token.text {
                "::" => after_separator = true,
                "{" if after_separator || depth > 0 => depth += 1,
                "}" if depth > 0 => depth -= 1,
                "," if depth > 0 => after_separator = true,
                text if (after_separator || depth > 0) && text.starts_with(|c: char| c.is_alphabetic()) => {
                    found.push((token.line, text));
                    after_separator = false;
                }
                _ if depth > 0 => {}
                _ => break,
            }
        }
    }
    found
}

/// Lines of `static` items whose type can be changed from inside.
fn global_state<'a>(code: &'a [Token<'a>]) -> impl Iterator<Item = usize> + 'a {
    let statics = code.iter().enumerate().filter(|(_, token)| token.text == "static");
    statics.filter_map(|(at, token)| {
        let mut declared = code[at..].iter().take_while(|t| t.text != "=" && t.text != ";");
        declared
            .any(|t| MUTABLE_INSIDE.contains(&t.text) || t.text.starts_with("Atomic"))
            .then_some(token.line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_impurity_is_found() {
        for source in [
            "fn f() { std::time::SystemTime::now(); }",
            "use std::time::{Duration, Instant};",
            "fn f() { Instant::now(); }",
            "use std::collections::{BTreeMap, HashMap};",
            "use std::{collections::{BTreeMap, HashSet}, fmt};",
            "type T = std::collections::HashMap<u8, u8>;",
            "type T = collections::HashMap<u8, u8>;",
            "use std::collections::hash_map::Entry;",
            "use std::{fmt, fs};",
            "fn f() { std::fs::read(\"x\"); }",
            "fn f() { write(std::io::stdout()); }",
            "use std::net::TcpStream;",
            "use std::hash::RandomState;",
            "thread_local! { static X: u8 = 0; }",
            "static mut X: u8 = 0;",
            "static X: std::sync::OnceLock<u8> = std::sync::OnceLock::new();",
            "pub static N: AtomicU64 = AtomicU64::new(0);",
            "#[cfg(test)] mod tests { fn f() { SystemTime::now(); } }",
        ] {
            assert!(!violations("x.rs", source).is_empty(), "{source}");
        }
    }

    #[test]
    fn pure_code_passes() {
        for source in [
            "// SystemTime::now and std::fs are forbidden here",
            "const TEXT: &str = \"std::fs\";",
            "use std::collections::{BTreeMap, BTreeSet}; use hashbrown::HashMap;",
            "use std::io::Write; fn f(buffer: &mut Vec<u8>) {}",
            "use std::time::Duration; fn f(now: Instant) {}",
            "static NAMES: [&str; 2] = [\"a\", \"b\"];",
            "fn f(x: &'static str, m: Mutex<u8>) {}",
            "#[cfg(test)] mod tests { use std::fs; }",
            "impl std::fmt::Display for A { fn fmt(&self, io: u8) { let fs = std::cmp::max(1, env); } }",
        ] {
            assert_eq!(violations("x.rs", source), [""; 0], "{source}");
        }
    }

    #[test]
    fn a_message_names_the_place() {
        assert_eq!(violations("a.rs", "\n\nuse std::fs;"), ["a.rs:3: `std` .. `fs` touches files"]);
    }
}
