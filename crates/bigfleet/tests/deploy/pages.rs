//! Every command of every page is executed by a test, or the page says why not; then at least the program understands it.
//!
//! What is executed is in `console` blocks of the pages in [`PLAYED`]. Other commands are in `sh` blocks below a remark that readers do
//! not see, `<!-- not executed: REASON -->`. Commands in running text must be those of the program, with its flags.

use std::collections::BTreeSet;
use std::path::Path;

use crate::flags::{LISTED, understood};
use crate::walk_through::Walk;
use crate::walk_through::script::{steps, words};
use crate::{read, root};

/// Pages whose `console` blocks are executed as printed, the test that does it, and its file.
const PLAYED: [(&str, &str, &str); 12] = [
    ("README.md", "up/tour.rs", "the_readme_is_as_printed"),
    ("docs/tour.md", "up/tour.rs", "the_tour_is_as_printed"),
    ("docs/install.md", "deploy/installation.rs", "two_clusters_by_copy_and_paste"),
    ("docs/kubernetes.md", "kubernetes/document.rs", "the_walk_is_as_printed"),
    ("docs/metal.md", "kubernetes/metal.rs", "three_spare_machines_become_a_fleet"),
    ("docs/operations.md", "deploy/pages.rs", "a_shard_is_run_and_held_as_printed"),
    ("docs/coordinator.md", "deploy/pages.rs", "a_fleet_is_laid_out_as_printed"),
    ("docs/simulator.md", "deploy/pages.rs", "worlds_are_played_as_printed"),
    ("docs/conformance.md", "deploy/pages.rs", "a_provider_is_judged_as_printed"),
    ("docs/providers.md", "deploy/pages.rs", "a_provider_is_written_as_printed"),
    ("docs/lints.md", "deploy/pages.rs", "a_fleet_is_looked_over_as_printed"),
    ("docs/releases.md", "deploy/pages.rs", "a_build_says_what_it_is_as_printed"),
];

/// How commands begin that nobody may hide in an indented block.
const COMMANDS: [&str; 8] =
    ["bigfleet ", "cargo ", "scripts/", "deploy/", "kubectl ", "helm ", "curl ", "openssl "];

const NOT_EXECUTED: &str = "<!-- not executed: ";

/// Every page of the book but decision records, which are not rewritten, and pages of reference, which are made.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> =
        ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "deploy/README.md"].map(Into::into).into();
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_page = Path::new(&name).extension().is_some_and(|ending| ending == "md");
        if is_page && !name.starts_with("reference-") {
            pages.push(format!("docs/{name}"));
        }
    }
    pages.sort();
    pages
}

/// A fenced block.
struct Block {
    line: usize,
    /// What is said behind the fence.
    info: String,
    text: String,
    /// Why it is not executed, if the page says so.
    reason: Option<String>,
}

/// The blocks of a page, and its text without them.
fn blocks(page: &str) -> (Vec<Block>, String) {
    let mut blocks: Vec<Block> = Vec::new();
    let mut prose = String::new();
    let mut is_inside = false;
    let mut reason = None;
    for (at, line) in page.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            is_inside = !is_inside;
            if is_inside {
                let block =
                    Block { line: at + 1, info: info.into(), text: String::new(), reason: reason.take() };
                blocks.push(block);
            }
        } else if is_inside {
            let text = &mut blocks.last_mut().expect("a block is open").text;
            *text += line;
            text.push('\n');
        } else {
            if let Some(said) = line.strip_prefix(NOT_EXECUTED) {
                reason = said.strip_suffix(" -->").map(str::to_owned);
            } else if !line.is_empty() {
                reason = None;
            }
            prose += line;
            prose.push('\n');
        }
    }
    (blocks, prose)
}

/// The commands of a block for readers: one a line, without what goes on in the next, remarks and what follows a pipe.
fn commands(text: &str) -> Vec<String> {
    let whole = text.replace("\\\n", " ");
    let lines = whole.lines().map(|line| line.split("  #").next().unwrap_or(line).trim());
    lines.filter(|line| !line.is_empty()).map(|line| line.trim_end_matches(" &").to_owned()).collect()
}

/// What is wrong with a command that is not executed.
fn wrong(command: &str) -> Option<String> {
    let words = words(&command.replace('"', "'"));
    let first = words.first()?.as_str();
    let value = |flag: &str| words.iter().skip_while(|word| *word != flag).nth(1);
    if first == "bigfleet" {
        let end = words.iter().position(|word| ["|", ">"].contains(&word.as_str())).unwrap_or(words.len());
        understood(&words[1..end]);
    }
    if ["scripts/", "deploy/"].iter().any(|folder| first.starts_with(folder)) && !root().join(first).exists()
    {
        return Some(format!("there is no {first}"));
    }
    for (flag, folder) in [("--bench", "benches"), ("--example", "examples")] {
        let Some(name) = value(flag) else { continue };
        let package = value("-p").and_then(|package| package.strip_prefix("bigfleet-")).unwrap_or("bigfleet");
        let file = root().join(format!("crates/{package}/{folder}/{name}"));
        if !file.join("main.rs").exists() && !file.with_extension("rs").exists() {
            return Some(format!("{package} has no {flag} {name}"));
        }
    }
    None
}

#[test]
fn every_command_is_executed_or_says_why_not() {
    let mut found = Vec::new();
    let mut played = BTreeSet::new();
    for page in pages() {
        let text = read(&page);
        let (blocks, prose) = blocks(&text);
        for line in prose.lines() {
            let hidden = line
                .strip_prefix("    ")
                .filter(|rest| COMMANDS.iter().any(|command| rest.starts_with(command)));
            found.extend(hidden.map(|rest| format!("{page}: `{rest}` is in no block of commands")));
        }
        for block in &blocks {
            let at = format!("{page}:{}", block.line);
            match block.info.as_str() {
                "console" => {
                    played.insert(page.clone());
                    if steps(&format!("```console\n{}```\n", block.text)).is_empty() {
                        found.push(format!("{at} has no command"));
                    }
                }
                "sh" if block.reason.as_ref().is_none_or(|reason| reason.len() < 20) => {
                    found.push(format!("{at} is not executed and does not say why"));
                }
                "sh" => {
                    let all = commands(&block.text);
                    found.extend(
                        all.iter().filter_map(|one| wrong(one)).map(|reason| format!("{at}: {reason}")),
                    );
                }
                _ => {}
            }
        }
    }
    for page in &played {
        if !PLAYED.iter().any(|(known, ..)| known == page) {
            found.push(format!("{page} has commands that no test executes"));
        }
    }
    for (page, file, test) in PLAYED {
        let source = read(&format!("crates/bigfleet/tests/{file}"));
        if !played.contains(page)
            || !source.contains(&format!("\"{page}\""))
            || !source.contains(&format!("fn {test}("))
        {
            found.push(format!("{page} is not played by {test} of {file}"));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// The longest beginning that is a command of the program, or a group of them, and what follows it.
fn known<'a>(words: &'a [&'a str]) -> Option<(Option<&'static crate::flags::Listed>, &'a [&'a str])> {
    (1..=words.len()).rev().find_map(|count| {
        let name = words[..count].join(" ");
        let group = format!("{name} ");
        let one = LISTED.iter().find(|one| one.command == name);
        let is_group = LISTED.iter().any(|one| one.command.starts_with(&group));
        (one.is_some() || is_group).then(|| (one, &words[count..]))
    })
}

/// What is wrong with a command in running text, which may have words in the place of values.
fn misspoken(span: &str) -> Option<String> {
    let words: Vec<&str> = span.split_whitespace().skip(1).collect();
    if words.is_empty() || words[0] == "help" || words[0].starts_with("--") || words[0].contains('…') {
        return None;
    }
    let Some((command, rest)) = known(&words) else { return Some(format!("`{span}` is no command")) };
    let group = words[..words.len() - rest.len()].join(" ") + " ";
    let is_group = LISTED.iter().any(|one| one.command.starts_with(&group));
    if is_group && rest.first().is_some_and(|word| !word.starts_with("--")) {
        return Some(format!("`{span}` is no command"));
    }
    let command = command?;
    for flag in rest.iter().filter_map(|word| word.strip_prefix("--")) {
        let name = flag.split('=').next().unwrap_or(flag);
        if name != "help" && !command.flags.iter().any(|one| one.name == name) {
            return Some(format!("`{span}`: {} has no --{name}", command.command));
        }
    }
    None
}

#[test]
fn commands_in_running_text_are_those_of_the_program() {
    let mut found = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let (_, prose) = blocks(&read(&page));
        let prose = prose.replace('\n', " ");
        for span in prose.split('`').skip(1).step_by(2).filter(|span| span.starts_with("bigfleet ")) {
            seen += 1;
            found.extend(misspoken(span).map(|reason| format!("{page}: {reason}")));
        }
    }
    assert!(seen > 100, "the book names more commands than {seen}");
    assert!(found.is_empty(), "{}", found.join("\n"));
    for (wrong, reason) in [
        ("bigfleet observes", "is no command"),
        ("bigfleet provider cloud", "is no command"),
        ("bigfleet pause --everything", "has no --everything"),
    ] {
        assert!(misspoken(wrong).is_some_and(|said| said.contains(reason)), "{wrong}");
    }
}

#[test]
fn blocks_are_found_with_their_reasons() {
    let page = "a `b`\n\n<!-- not executed: it takes a day -->\n```sh\nx \\\n  --y  # why\n```\n\n<!-- not executed: no -->\ntext\n```sh\nz\n```\n";
    let (blocks, prose) = blocks(page);
    assert!(prose.contains("a `b`") && !prose.contains("--y"));
    assert_eq!((blocks[0].line, blocks[0].reason.as_deref()), (4, Some("it takes a day")));
    assert_eq!(commands(&blocks[0].text), ["x    --y"]);
    assert_eq!(blocks[1].reason, None, "a reason stands right above its block");
    assert!(wrong("scripts/nothing-of-this-name").is_some() && wrong("scripts/test").is_none());
    assert!(wrong("cargo bench -p bigfleet-calculator --bench nothing").is_some());
}

/// Plays a page in a folder of its own. `ports` are those it names.
fn play(page: &'static str, ports: &[&str], at_least: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut walk = Walk::new(page, ports);
    walk.in_the_checkout();
    walk.with_programs(&Path::new(env!("CARGO_BIN_EXE_bigfleet")).with_file_name("examples"));
    let commands = runtime.block_on(walk.play());
    assert!(commands >= at_least, "{page} has more commands than {commands}");
}

#[test]
fn a_shard_is_run_and_held_as_printed() {
    play("docs/operations.md", &[":9000", ":7780", ":8780"], 20);
}

#[test]
fn a_fleet_is_laid_out_as_printed() {
    play("docs/coordinator.md", &[":9000", ":7780", ":7790"], 10);
}

#[test]
fn worlds_are_played_as_printed() {
    play("docs/simulator.md", &[], 7);
}

#[test]
fn a_provider_is_judged_as_printed() {
    play("docs/conformance.md", &[":9000"], 3);
}

#[test]
fn a_provider_is_written_as_printed() {
    play("docs/providers.md", &[":9000"], 3);
}

#[test]
fn a_fleet_is_looked_over_as_printed() {
    play("docs/lints.md", &[], 3);
}

#[test]
fn a_build_says_what_it_is_as_printed() {
    play("docs/releases.md", &[], 1);
}
