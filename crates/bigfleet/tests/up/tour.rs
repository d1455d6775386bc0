//! The tour and the README, executed exactly as printed.
//!
//! Commands are the lines of `console` blocks that begin with `$ `; what follows them is what they must print. `…` stands
//! for anything within a line, and alone for any number of lines. Runs of blanks count as one, because columns are as
//! wide as what is in them. Each command runs on a terminal of its own, 100 columns wide, as it does for a reader.

#[path = "../support/script.rs"]
mod script;
#[path = "../support/terminal.rs"]
mod terminal;

use std::path::PathBuf;

use crate::process::Up;
use script::{Step, matches, steps};

fn root() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "..", ".."].iter().collect()
}

fn document(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Plays a document. The first command must start the world; the others ask it. A command must end well unless the next
/// line asks how it ended.
fn play(path: &str) -> usize {
    let text = document(path);
    let mut world: Option<Up> = None;
    let mut code = 0;
    let mut played = 0;
    let mut steps = steps(&text).into_iter().peekable();
    while let Some(Step { line, command, expected }) = steps.next() {
        let printed = if command == ASK_CODE {
            code.to_string()
        } else {
            let Some(words) = bigfleet_words(&command) else { continue };
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            match (&words[..], &world) {
                (["up", flags @ ..], None) => {
                    let up = Up::start(flags);
                    let banner = up.banner.join("\n");
                    world = Some(up);
                    banner
                }
                (_, Some(up)) => {
                    let mut program = up.command(&words);
                    // Readers are in the folder they built it in.
                    program.current_dir(root());
                    let (status, printed) = terminal::run(program);
                    code = status.code().unwrap_or(-1);
                    let is_asked = steps.peek().is_some_and(|next| next.command == ASK_CODE);
                    assert!(
                        code == 0 || is_asked,
                        "{path}:{line}: `{command}` ended with {code}:\n{printed}"
                    );
                    printed
                }
                (_, None) => panic!("{path}:{line}: nothing runs yet"),
            }
        };
        if let Err(reason) = matches(&expected, &printed) {
            panic!(
                "{path}:{line}: `{command}` {reason}\n--- printed\n{printed}\n--- expected\n{}",
                expected.join("\n")
            );
        }
        played += 1;
    }
    let (status, last, _home) = world.expect("it was started").interrupt();
    assert!(status.success(), "{status}: {last}");
    played
}

/// How a shell is asked how the last command ended.
const ASK_CODE: &str = "echo $?";

/// The words behind the program's name, if it is ours.
fn bigfleet_words(command: &str) -> Option<Vec<String>> {
    // The script builds and then starts it; CI runs the script itself as well.
    let rest = if command == "scripts/up" { "up" } else { command.strip_prefix("bigfleet ")? };
    Some(script::words(rest))
}

#[test]
fn the_tour_is_as_printed() {
    assert!(play("docs/tour.md") >= 12, "a tour has more steps than that");
}

#[test]
fn the_readme_is_as_printed() {
    assert!(play("README.md") >= 3, "the README shows more than that");
}

#[test]
fn the_tour_is_found_from_the_readme() {
    assert!(document("README.md").contains("(docs/tour.md)"));
    assert!(root().join("docs/tour.md").exists());
}
