//! The same decisions come out of a tape, bit for bit; a tape that lies is caught.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_model::machine::MachineState;
use bigfleet_oracle::Size;
use bigfleet_record::replay::{ReplayReport, What, replay};
use bigfleet_record::tape::{Limits, Reader, Writer};
use bigfleet_record::{Decided, Recorded};
use bigfleet_shard::{ClusterSeen, CycleRecord, Input};

use crate::recording::Recording;

const LIMITS: Limits =
    Limits { max_bytes: 1 << 30, max_age_nanos: i64::MAX, segment_bytes: 20_000, full_every: 9 };

/// A fleet to which things happen for so many cycles, with restarts in between, on a tape.
pub(crate) fn recorded(seed: u64, size: Size, cycles: u64, folder: &std::path::Path) -> Vec<CycleRecord> {
    let mut recording = Recording::begin(seed, size);
    let mut tape = Writer::open(folder, LIMITS).unwrap().0;
    let mut written = Vec::new();
    for step in 0..cycles {
        if step % 25 == 24 {
            drop(tape);
            tape = Writer::open(folder, LIMITS).unwrap().0;
            recording.epoch += 1;
        }
        for edit in recording.edits(seed * 1_000 + step, 1 + (step % 5) as usize) {
            recording.edit(&edit);
        }
        if step % 4 == 3 {
            recording.toggle_park(step);
        }
        let record = recording.cycle(tape.wants_full());
        tape.append(&record).unwrap();
        written.push(record);
    }
    written
}

#[test]
fn decisions_replay_bit_for_bit() {
    let mut total = ReplayReport::default();
    let mut kinds = [0; 5];
    let mut parks = 0;
    for (size, seeds, cycles) in
        [(Size::Tiny, 0..60, 40), (Size::Small, 1_000..1_020, 40), (Size::Medium, 2_000..2_004, 30)]
    {
        for seed in seeds {
            let folder = crate::folder();
            let written = recorded(seed, size, cycles, folder.path());
            let report = replay(Reader::open(folder.path()).unwrap().records());
            if let Some(difference) = &report.first_difference {
                panic!("{size:?} seed {seed}: {difference}: {difference:?}");
            }
            assert_eq!((report.cycles, report.unanchored, report.lost.len()), (cycles, 0, 0));
            total.cycles += report.cycles;
            total.actions += report.actions;
            for record in &written {
                parks += record.inputs.iter().filter(|input| matches!(input, Input::Park { .. })).count();
                for ordered in &record.actions {
                    kinds[ordered.action.kind as usize] += 1;
                }
            }
        }
    }
    assert!(total.actions > 5_000, "{total:?}");
    assert!(kinds.iter().all(|count| *count > 100), "every kind of action was compared: {kinds:?}");
    assert!(parks > 50, "gangs were parked: {parks}");
}

#[test]
fn the_fleet_of_a_moment_comes_back_with_its_decisions_and_reasons() {
    let folder = crate::folder();
    let written = recorded(77, Size::Small, 60, folder.path());
    let reader = Reader::open(folder.path()).unwrap();
    let mut explained = 0;
    for record in &written {
        let entry = reader.at_cycle(record.cycle).unwrap();
        let state = reader.state_at(&entry).unwrap();
        let (now, then) = (Decided::all_of(&state.decision), Recorded::from(record).decided);
        assert_eq!(now.len(), then.len());
        assert!(now.iter().zip(&then).all(|(now, then)| now.same_decision(then)));
        assert_eq!(state.machines.len(), state.fleet.machine_count());
        assert_eq!(state.needs.values().map(|rows| rows.len()).sum::<usize>(), state.fleet.need_count());
        for (action, then) in state.decision.actions.iter().zip(&then) {
            assert_eq!(state.fleet.explain_action(action, &state.record.options), then.why, "{action:?}");
            explained += 1;
        }
    }
    assert!(explained > 200, "{explained} explanations");
}

/// The records of a tape, changed by `change` in one place.
fn changed(change: impl Fn(usize, &mut Recorded)) -> ReplayReport {
    let folder = crate::folder();
    recorded(5, Size::Small, 30, folder.path());
    let records: Vec<_> = Reader::open(folder.path()).unwrap().records().map(Result::unwrap).collect();
    replay(records.into_iter().enumerate().map(|(index, mut record)| {
        change(index, &mut record);
        Ok(record)
    }))
}

type Lie = fn(&mut Decided);

#[test]
fn a_tape_that_lies_is_caught() {
    assert!(changed(|_, _| {}).first_difference.is_none());
    let with_action = |record: &Recorded, kind| record.decided.iter().position(|d| d.kind == kind);
    let lies: [(&str, Lie); 4] = [
        ("another machine", |d| d.machine = "somebody".into()),
        ("another cluster", |d| d.cluster = Some("elsewhere".into())),
        ("another grace", |d| d.grace_secs = Some(d.grace_secs.unwrap_or(0) + 1)),
        ("another need", |d| d.need = None),
    ];
    for (what, lie) in lies {
        let report = changed(|_, record| {
            if let Some(at) = with_action(record, ActionKind::Bootstrap) {
                lie(&mut record.decided[at]);
            }
        });
        let difference = report.first_difference.unwrap_or_else(|| panic!("{what} went unnoticed"));
        assert!(
            matches!(difference.what, What::Action { recorded: Some(_), replayed: Some(_), .. }),
            "{what}"
        );
    }
    let report = changed(|_, record| record.decided_in_all -= u32::from(record.decided.pop().is_some()));
    assert!(matches!(
        report.first_difference.unwrap().what,
        What::Action { recorded: None, replayed: Some(_), .. }
    ));
    let report = changed(|_, record| drop(record.decided.pop()));
    assert!(report.first_difference.is_none(), "an action that is not listed is covered by the digest");
    let report = changed(|_, record| {
        record.decided.pop();
        record.digest ^= 1;
    });
    assert!(matches!(report.first_difference.unwrap().what, What::Unlisted { .. }));
    let report = changed(|index, record| {
        if index == 4 {
            record.decided_in_all += 1;
            record.decided.push(record.decided.first().cloned().unwrap_or(Decided {
                kind: ActionKind::Delete,
                machine: "m".into(),
                cluster: None,
                need: None,
                grace_secs: None,
                fate: bigfleet_shard::Fate::Begun,
                why: None,
                facts: None,
                runner_up: None,
                approved_by: None,
            }));
        }
    });
    let difference = report.first_difference.unwrap();
    assert!(difference.to_string().ends_with("and is nothing when replayed"), "{difference}");
    assert_eq!(report.cycles, 4, "it stops there");
    let report = changed(|_, record| {
        for input in &mut record.inputs {
            if let Input::Observe(machine) = input {
                let mut broken = (**machine).clone();
                (broken.state, broken.host) = (MachineState::Idle, None);
                *machine = broken.into();
            }
        }
    });
    assert!(matches!(report.first_difference.unwrap().what, What::Refused(_)));
}

#[test]
fn what_no_full_state_leads_to_is_counted_and_not_compared() {
    let folder = crate::folder();
    let written = recorded(6, Size::Small, 24, folder.path());
    let fulls: Vec<usize> = (0..24).filter(|index| written[*index].full.is_some()).collect();
    let records = Reader::open(folder.path()).unwrap().records().skip(1);
    let report = replay(records);
    assert_eq!(report.unanchored as usize, fulls[1] - 1);
    assert_eq!(report.cycles as usize, 24 - fulls[1]);
    assert!(report.first_difference.is_none());
}

#[test]
fn what_was_around_the_fleet_comes_back_with_it() {
    let folder = crate::folder();
    let mut recording = Recording::begin(78, Size::Tiny);
    let mut tape = Writer::open(folder.path(), LIMITS).unwrap().0;
    let mut seen = Vec::new();
    for _ in 0..40 {
        for edit in recording.edits(recording.cycle, 2) {
            recording.edit(&edit);
        }
        tape.append(&recording.cycle(tape.wants_full())).unwrap();
        seen.push((recording.cycle, recording.surroundings.clone()));
    }
    let reader = Reader::open(folder.path()).unwrap();
    for (cycle, surroundings) in &seen {
        let state = reader.state_at(&reader.at_cycle(*cycle).unwrap()).unwrap();
        let past = state.around.expect("it was recorded").surroundings;
        assert_eq!((past.providers, past.moves), (surroundings.providers.clone(), surroundings.moves));
        assert_eq!(past.pauses, surroundings.pauses);
        let names = |clusters: &BTreeMap<Arc<str>, ClusterSeen>| {
            clusters.keys().filter(|name| name.starts_with('!')).cloned().collect::<Vec<_>>()
        };
        assert_eq!(names(&past.clusters), names(&surroundings.clusters));
    }
    assert!(seen.last().unwrap().1.clusters.len() > 10);
}

#[test]
fn a_tape_of_before_there_were_surroundings_is_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tape-1");
    let reader = Reader::open(folder).unwrap();
    let report = replay(reader.records());
    assert!(report.first_difference.is_none() && report.lost.is_empty(), "{report:?}");
    assert_eq!((report.cycles, report.unanchored), (12, 0));
    assert!(reader.records().all(|record| record.unwrap().edition == 1), "there was no other edition then");
    let state = reader.state_at(&reader.at_cycle(7).unwrap()).unwrap();
    assert_eq!((state.record.cycle, state.record.around.is_none(), state.around), (7, true, None));
    assert!(!state.machines.is_empty());
}
