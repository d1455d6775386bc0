//! A tape is held to the rules it was decided under: its own to the last bit, others' to a list of differences.

use bigfleet_engine::{ActionKind, EDITION};
use bigfleet_oracle::Size;
use bigfleet_record::codec::{decode_record, encode_record};
use bigfleet_record::replay::{ReplayReport, What, replay};
use bigfleet_record::tape::{Limits, Reader, Writer};
use bigfleet_record::{Decided, Recorded};

use crate::recording::Recording;
use crate::replay::recorded;

/// An edition that is not this build's.
const OTHER: u32 = EDITION + 1;

/// The records of a tape, each changed by `change`.
fn changed(mut change: impl FnMut(usize, &mut Recorded)) -> ReplayReport {
    let folder = crate::folder();
    recorded(5, Size::Small, 30, folder.path());
    let records: Vec<_> = Reader::open(folder.path()).unwrap().records().map(Result::unwrap).collect();
    replay(records.into_iter().enumerate().map(|(index, mut record)| {
        change(index, &mut record);
        Ok(record)
    }))
}

fn bootstrap(record: &mut Recorded) -> Option<&mut Decided> {
    record.decided.iter_mut().find(|decided| decided.kind == ActionKind::Bootstrap)
}

#[test]
fn the_edition_goes_to_disk_and_comes_back() {
    let mut recording = Recording::begin(3, Size::Tiny);
    let mut written = recording.cycle(true);
    for edition in [1, 2, u32::MAX] {
        written.edition = edition;
        let read = decode_record(&encode_record(&written), written.options.clone()).unwrap();
        assert_eq!(read.edition, edition);
        assert_eq!(read.other_edition(), Some(edition).filter(|edition| *edition != EDITION));
    }
    written.edition = 0;
    let refused = decode_record(&encode_record(&written), written.options.clone()).unwrap_err();
    assert_eq!(refused.to_string(), "edition: 0 is none");
}

#[test]
fn under_other_rules_equal_decisions_are_no_difference() {
    let report = changed(|_, record| record.edition = OTHER);
    assert!(report.first_difference.is_none());
    assert_eq!((report.cycles, report.other_rules.cycles), (30, 30));
    assert_eq!((report.other_rules.differing_cycles, report.other_rules.differences_in_all), (0, 0));
    assert_eq!(report.other_rules.editions.into_iter().collect::<Vec<_>>(), [OTHER]);
}

#[test]
fn under_other_rules_differences_are_listed_and_nothing_fails() {
    let mut lies = 0;
    let report = changed(|_, record| {
        record.edition = OTHER;
        let Some(decided) = bootstrap(record) else { return };
        decided.cluster = Some("elsewhere".into());
        lies += 1;
    });
    assert!(lies > 3 && report.first_difference.is_none(), "{lies} lies");
    assert_eq!((report.cycles, report.other_rules.cycles), (30, 30));
    let other = report.other_rules;
    assert_eq!((other.differing_cycles, other.differences_in_all), (lies, lies));
    for difference in &other.differences {
        let What::Action { recorded: Some(then), replayed: Some(now), .. } = &difference.what else {
            panic!("{difference:?}");
        };
        // The same machine then and now, whatever is decided about it.
        assert_eq!((&then.machine, then.cluster.as_deref()), (&now.machine, Some("elsewhere")));
        let text = difference.to_string();
        assert!(text.starts_with(&format!("cycle {}: action ", difference.cycle)), "{text}");
        let rules = format!(", by edition {OTHER} of the rules then and edition {EDITION} now");
        assert!(text.contains("of \"elsewhere\" and is Bootstrap") && text.ends_with(&rules), "{text}");
    }
}

#[test]
fn what_is_only_then_or_only_now_is_told_machine_by_machine() {
    // Order does not count, and one action more or less does not shift all others.
    let report = changed(|_, record| {
        record.edition = OTHER;
        record.decided.reverse();
        record.decided_in_all -= u32::from(record.decided.pop().is_some());
        if let Some(decided) = record.decided.first().cloned() {
            record.decided.push(Decided { machine: "nobody".into(), ..decided });
            record.decided_in_all += 1;
        }
    });
    let sides = |what: &What| match what {
        What::Action { recorded, replayed, .. } => (recorded.is_some(), replayed.is_some()),
        other => panic!("{other:?}"),
    };
    let all: Vec<_> = report.other_rules.differences.iter().map(|one| sides(&one.what)).collect();
    let count = |wanted: (bool, bool)| all.iter().filter(|sides| **sides == wanted).count();
    assert!(count((true, false)) > 5 && count((false, true)) > 5, "{all:?}");
    assert_eq!(count((true, true)), 0, "nothing that is the same is listed");
}

#[test]
fn what_is_not_listed_is_told_to_differ_by_its_digest() {
    let report = changed(|_, record| {
        record.edition = OTHER;
        if record.decided.pop().is_some() {
            record.digest ^= 1;
        }
    });
    let other = report.other_rules;
    assert!(other.differing_cycles > 5);
    assert!(other.differences.iter().all(|one| matches!(one.what, What::Unlisted { .. })));
}

#[test]
fn a_tape_across_an_upgrade_is_held_to_both() {
    // The first half was decided under other rules, and differs; the second half is ours, and must not.
    let lie = |record: &mut Recorded| {
        if let Some(decided) = bootstrap(record) {
            decided.machine = "somebody".into();
        }
    };
    let report = changed(|index, record| {
        if index < 15 {
            record.edition = OTHER;
            lie(record);
        }
    });
    assert!(report.first_difference.is_none(), "{:?}", report.first_difference);
    assert_eq!((report.cycles, report.other_rules.cycles), (30, 15));
    assert!(report.other_rules.differing_cycles > 0);

    let report = changed(|index, record| {
        record.edition = if index < 15 { OTHER } else { EDITION };
        lie(record);
    });
    let failure = report.first_difference.expect("a difference under the same rules is a failure");
    assert_eq!((failure.edition, report.cycles >= 15), (EDITION, true));
}

#[test]
fn a_shard_of_another_edition_goes_on_with_the_tape() {
    let folder = crate::folder();
    let mut recording = Recording::begin(9, Size::Tiny);
    for edition in [OTHER, EDITION] {
        let mut tape = Writer::open(folder.path(), Limits::default()).unwrap().0;
        for _ in 0..5 {
            let mut record = recording.cycle(tape.wants_full());
            record.edition = edition;
            tape.append(&record).unwrap();
        }
    }
    let reader = Reader::open(folder.path()).unwrap();
    let editions: Vec<u32> = reader.records().map(|record| record.unwrap().edition).collect();
    assert_eq!(editions, [[OTHER; 5], [EDITION; 5]].concat());
    let (then, now) = (reader.first().unwrap(), reader.last().unwrap().unwrap());
    assert_eq!(reader.state_at(&then).unwrap().other_edition(), Some(OTHER));
    assert_eq!(reader.state_at(&now).unwrap().other_edition(), None);
}
