//! Requirements against a naive matcher, and what must hold for any profile made of them.
//!
//! Bytes are read as a small program that builds a machine's facts and a profile, so that a fuzzer's bytes, a
//! saved file and a random vector all end in the same check.

use std::collections::BTreeMap;

use bigfleet_model::label::{Facts, INSTANCE_TYPE, LabelError, Labels, ZONE};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement, RequirementError};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};

/// Two quoted pieces of at most 80 characters, each at most ten when escaped, and our own words.
const LONGEST_MESSAGE: usize = 2_000;

/// Reads numbers and texts off the front of some bytes; when they run out, everything is zero or empty.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> i32 {
        i32::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    /// Often one of a few texts, so that keys and values meet; else whatever comes, if it is UTF-8.
    fn text(&mut self) -> &'a str {
        const WORDS: [&str; 16] = [
            "",
            "a",
            "b",
            "ab",
            "z",
            "zone-a",
            "zone-b",
            ZONE,
            INSTANCE_TYPE,
            "example.org/pool",
            "a,b",
            "a;b",
            "a:1",
            "|spr=",
            "\0",
            "é",
        ];
        let byte = self.byte();
        if byte < 0x80 {
            return WORDS[byte as usize % WORDS.len()];
        }
        let (text, rest) = self.0.split_at((byte as usize - 0x80).min(self.0.len()));
        self.0 = rest;
        std::str::from_utf8(text).unwrap_or("")
    }

    fn list<T>(&mut self, most: u8, mut item: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.byte() % (most + 1)).map(|_| item(self)).collect()
    }
}

/// A requirement before we made one of it.
struct Raw<'a> {
    key: &'a str,
    operator: i32,
    values: Vec<&'a str>,
}

/// Panics unless the bytes, read as a machine and a profile, are matched or refused by the laws. Says whether
/// the profile would have been accepted.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let (instance_type, zone) = (reader.text(), reader.text());
    let pairs = reader.list(5, |r| (r.text(), r.text()));
    let raw = reader.list(4, |r| {
        let key = r.text();
        let operator = if r.byte() == 0xff { r.number() } else { i32::from(r.byte() % 6) };
        Raw { key, operator, values: r.list(4, Reader::text) }
    });
    let spread = reader.list(2, |r| (r.text(), r.number(), r.number()));
    let (priority, buckets) = (reader.number(), [reader.byte(), reader.byte()]);

    let labels = check_labels(&pairs);
    let facts = Facts { instance_type, zone, labels: &labels };
    let naive = naive_facts(instance_type, zone, &labels);

    let mut requirements = Vec::new();
    for raw in &raw {
        let Ok(operator) = Operator::from_wire(raw.operator) else {
            assert!(!(0..=5).contains(&raw.operator));
            continue;
        };
        let requirement = Requirement::new(raw.key, operator, raw.values.iter().copied());
        assert_eq!(requirement.matches(facts), naive_match(raw, &naive), "{requirement:?}");
        check_validation(&requirement, raw);
        requirements.push(requirement);
    }

    let spread = spread
        .into_iter()
        .map(|(key, skew, when)| TopologySpread::new(key, skew, WhenUnsatisfiable::from_wire(when)));
    let [interruption, reclamation] =
        buckets.map(|byte| PenaltyBucket::from_wire(i32::from(byte) % 28).unwrap());
    let profile = Profile::new(requirements.clone(), spread.collect(), priority, interruption, reclamation);
    check_profile(&profile, requirements, facts)
}

/// The labels, or none where they are refused, which must be for a reason.
fn check_labels(pairs: &[(&str, &str)]) -> Labels {
    let map: BTreeMap<&str, &str> = pairs.iter().copied().collect();
    match Labels::new(pairs.iter().copied()) {
        Ok(labels) => {
            assert!(labels.iter().eq(map.iter().map(|(key, value)| (*key, *value))));
            assert!(map.len() == pairs.len() && !map.contains_key(""));
            labels
        }
        Err(error) => {
            check_message(&error.to_string());
            match error {
                LabelError::EmptyKey { .. } => assert!(map.contains_key("")),
                LabelError::Duplicate(_) => assert!(map.len() < pairs.len()),
            }
            Labels::EMPTY
        }
    }
}

/// Every key a machine has a value for: its labels, overwritten by its fields.
fn naive_facts<'a>(instance_type: &'a str, zone: &'a str, labels: &'a Labels) -> BTreeMap<&'a str, &'a str> {
    let mut facts: BTreeMap<&str, &str> = labels.iter().collect();
    for (key, field) in [(INSTANCE_TYPE, instance_type), (ZONE, zone)] {
        if !field.is_empty() {
            facts.insert(key, field);
        }
    }
    facts
}

/// The operators as their definitions read, on the values as they were given.
fn naive_match(raw: &Raw<'_>, facts: &BTreeMap<&str, &str>) -> bool {
    let value = facts.get(raw.key);
    let is_one_of = |value: &&str| raw.values.contains(value);
    match raw.operator {
        1 => value.is_some_and(is_one_of),
        2 => value.is_none() || !value.is_some_and(is_one_of),
        3 => facts.contains_key(raw.key),
        4 => !facts.contains_key(raw.key),
        5 => value.is_some() && (raw.values.is_empty() || value.is_some_and(is_one_of)),
        _ => false,
    }
}

fn check_validation(requirement: &Requirement, raw: &Raw<'_>) {
    let blurs = |text: &str| text.bytes().any(|byte| b",;:|".contains(&byte));
    let error = match requirement.validate() {
        Ok(()) => {
            assert!(!raw.key.is_empty() && !blurs(raw.key) && !raw.values.iter().any(|value| blurs(value)));
            return;
        }
        Err(error) => error,
    };
    check_message(&error.to_string());
    match error {
        RequirementError::EmptyKey { .. } => assert!(raw.key.is_empty()),
        RequirementError::Separator { text, .. } => {
            assert!(blurs(&text) && (raw.key == text || raw.values.contains(&text.as_str())));
        }
        RequirementError::UnknownOperator(_) => panic!("{error}"),
    }
}

fn check_profile(profile: &Profile, mut requirements: Vec<Requirement>, facts: Facts<'_>) -> bool {
    assert_eq!(profile.matches(facts), requirements.iter().all(|requirement| requirement.matches(facts)));
    // Order does not count, number does.
    requirements.reverse();
    let [interruption, reclamation] = [profile.interruption(), profile.reclamation()];
    let mut spread = profile.spread().to_vec();
    spread.reverse();
    let again = Profile::new(requirements, spread, profile.priority(), interruption, reclamation);
    assert_eq!(again.fingerprint(), profile.fingerprint());
    assert_eq!(again.requirements(), profile.requirements());
    assert_eq!(again.spread(), profile.spread());

    let plain = profile.without_same();
    assert!(plain.same().is_none());
    assert_eq!(
        plain.matches(facts),
        profile.matches(facts),
        "a gang's machines are those of the folded gang"
    );
    match profile.validate() {
        Ok(()) => true,
        Err(error) => {
            check_message(&error.to_string());
            false
        }
    }
}

fn check_message(message: &str) {
    assert!(message.len() < LONGEST_MESSAGE, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}
