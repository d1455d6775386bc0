//! All behaviours, in order, and the table of them for the documentation.

use std::fmt::Write;
use std::sync::LazyLock;

use crate::behaviour::{Behaviour, Check, Group};
use crate::checks;

/// Every check of every group, in the order of [`Group::ALL`].
pub(crate) static CHECKS: LazyLock<Vec<Check>> = LazyLock::new(|| {
    let groups: [&[Check]; 15] = [
        checks::life::CHECKS,
        checks::moves::CHECKS,
        checks::fence::CHECKS,
        checks::idem::CHECKS,
        checks::meta::CHECKS,
        checks::list::CHECKS,
        checks::field::CHECKS,
        checks::cost::CHECKS,
        checks::input::CHECKS,
        checks::health::CHECKS,
        checks::fault::CHECKS,
        checks::scale::CHECKS,
        checks::soak::CHECKS,
        checks::model::CHECKS,
        checks::dur::CHECKS,
    ];
    groups.concat()
});

static BEHAVIOURS: LazyLock<Vec<Behaviour>> =
    LazyLock::new(|| CHECKS.iter().map(|check| check.behaviour).collect());

/// Every behaviour the suite knows, by group and id.
pub fn catalogue() -> &'static [Behaviour] {
    &BEHAVIOURS
}

/// The catalogue as Markdown, one table per group: what `docs/conformance.md` holds between its marks.
pub fn markdown() -> String {
    let mut out = String::new();
    for group in Group::ALL {
        let _ = writeln!(out, "\n### {group}: {}\n", group.about());
        out += "| id | level | behaviour | what is checked | if it is missing | contract |\n|---|---|---|---|---|---|\n";
        for b in catalogue().iter().filter(|behaviour| behaviour.group == group) {
            let contract = linked(b.contract);
            let row = [b.id, b.level.name(), b.title, b.checks, b.failure_means, &contract];
            let _ = writeln!(out, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
    }
    out
}

/// The headings of `docs/provider-contract.md` a citation means, most exact first: `2.1 step 5, details` is two.
fn headings(contract: &str) -> Vec<String> {
    let mut section = "";
    let mut found = Vec::new();
    for part in contract.split(", ") {
        let words: Vec<&str> = part.split(' ').collect();
        if part.starts_with(|letter: char| letter.is_ascii_digit()) {
            section = words[0];
        }
        let heading = match words.as_slice() {
            [number, "step", step] => format!("{number} step {step}"),
            ["9", "edge", edge] => format!("9 edge {edge}"),
            [.., word @ ("details" | "restart")] => format!("{section} {word}"),
            _ => section.to_owned(),
        };
        found.push(heading);
    }
    found
}

/// A citation with a link to each of its rules.
fn linked(contract: &str) -> String {
    let anchor = |heading: &str| heading.to_lowercase().replace('.', "").replace(' ', "-");
    let parts = contract.split(", ").zip(headings(contract));
    let link =
        |(part, heading): (&str, String)| format!("[{part}](provider-contract.md#{})", anchor(&heading));
    parts.map(link).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_numbered_by_group_and_many() {
        let ids: BTreeSet<&str> = catalogue().iter().map(|behaviour| behaviour.id).collect();
        assert_eq!(ids.len(), catalogue().len());
        assert!(ids.len() >= 100, "{}", ids.len());
        for group in Group::ALL {
            let ids: Vec<&str> = catalogue().iter().filter(|b| b.group == group).map(|b| b.id).collect();
            let numbered: Vec<String> =
                (1..=ids.len()).map(|number| format!("{group}-{number:03}")).collect();
            assert_eq!(ids, numbered);
        }
    }

    #[test]
    fn every_citation_is_a_rule_of_the_contract() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/provider-contract.md");
        let page = std::fs::read_to_string(path).expect("docs/provider-contract.md can be read");
        let written: BTreeSet<&str> = page
            .lines()
            .filter_map(|line| Some(line.strip_prefix('#')?.trim_start_matches('#').trim()))
            .collect();
        for behaviour in catalogue() {
            for heading in headings(behaviour.contract) {
                assert!(written.contains(heading.as_str()), "{}: no rule {heading:?}", behaviour.id);
            }
        }
        assert_eq!(headings("2.1 step 5, details"), ["2.1 step 5", "2.1 details"]);
        assert_eq!(headings("2 Machine.id, 2.3"), ["2", "2.3"]);
    }

    #[test]
    fn every_behaviour_says_what_it_is() {
        for behaviour in catalogue() {
            for text in [behaviour.title, behaviour.checks, behaviour.failure_means, behaviour.contract] {
                assert!(
                    !text.is_empty() && !text.ends_with('.') && !text.contains('\n'),
                    "{}: {text}",
                    behaviour.id
                );
            }
        }
    }
}
