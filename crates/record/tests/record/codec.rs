//! What is written is read; what is not ours is refused.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_engine::{Options, Ready};
use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_oracle::Size;
use bigfleet_record::codec::{
    CodecError, decode_fact, decode_options, decode_record, encode_fact, encode_options, encode_record,
};
use bigfleet_shard::{Around, CycleRecord, Fact, Input, Reasons};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::random::{around, fact, input};
use crate::recording::{Recording, assert_same};

fn record_of(inputs: Vec<Input>, is_full: bool, around: Option<Around>) -> CycleRecord {
    CycleRecord {
        cycle: u64::MAX,
        epoch: i64::MIN,
        edition: bigfleet_engine::EDITION,
        now_unix_nanos: -1,
        reasons: Reasons { demand: true, leftover: true, ..Reasons::default() },
        full: is_full.then(|| Arc::new(inputs.clone())),
        inputs: if is_full { Vec::new() } else { inputs },
        options: Options::default(),
        actions: Vec::new(),
        decided: u32::MAX,
        digest: u64::MAX,
        usd_per_hour: f64::INFINITY,
        short_needs: u32::MAX,
        around,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_fact_reads_back_as_it_was_written(fact in fact()) {
        let entry = encode_fact(&fact);
        if let Some(value) = &entry.value {
            prop_assert_eq!(decode_fact(&entry.key, value), Ok(fact));
        } else {
            let forgets = match fact {
                Fact::Cycle(_) | Fact::Term(_) | Fact::Quotas(_) => false,
                Fact::Domain(_, _, is_ours) => !is_ours,
                Fact::Named(_, value) => value.is_none(),
                Fact::Demand(_, value) => value.is_none(),
                Fact::Held(_, value) => value.is_none(),
                Fact::Reclaims(_, value) | Fact::Bought(_, value) => value.is_none(),
                Fact::Machine(_, value) => value.is_none(),
                Fact::Shortfall(_, value) => value.is_none(),
                Fact::Pause(_, value) => value.is_none(),
                Fact::Loss(_, value) => value.is_none(),
                Fact::Mode(_, value) => value.is_none(),
                Fact::Proposal(_, value) => value.is_none(),
            };
            prop_assert!(forgets);
        }
    }

    #[test]
    fn any_input_reads_back_as_it_was_written(inputs in vec(input(), 0..8), is_full in any::<bool>()) {
        let record = record_of(inputs, is_full, None);
        let read = decode_record(&encode_record(&record), Options::default()).unwrap();
        assert_same(&read, &record);
    }

    #[test]
    fn any_surroundings_read_back_as_they_were_written(
        inputs in vec(input(), 0..2),
        around in around(),
        now_unix_nanos in any::<i64>(),
        cycle in any::<u64>(),
    ) {
        let record = CycleRecord { now_unix_nanos, cycle, ..record_of(inputs, false, Some(around)) };
        let read = decode_record(&encode_record(&record), Options::default()).unwrap();
        assert_same(&read, &record);
    }

    #[test]
    fn any_options_read_back_as_they_were_written(
        holds in (any::<u64>(), 0..3_u64),
        weights in proptest::array::uniform4(-1e9..1e9_f64),
        ready in proptest::option::of(proptest::collection::btree_set("\\PC{0,6}", 0..5)),
        estimated_drain_nanos in any::<u64>(),
    ) {
        let [priority, drain_speed, interruption, reclamation] = weights;
        let ready = ready.map_or(Ready::All, |names| {
            Ready::Only(Arc::new(names.into_iter().map(Arc::from).collect::<BTreeSet<Arc<str>>>()))
        });
        let options = Options {
            release: ReleasePolicy::from_nanos(holds.0, holds.1),
            weights: VictimWeights { priority, drain_speed, interruption, reclamation },
            estimated_drain_nanos,
            ready,
        };
        prop_assert_eq!(decode_options(&encode_options(&options)), Ok(options));
    }

    #[test]
    fn garbage_is_refused_and_never_trips_anything(bytes in vec(any::<u8>(), 0..200), kind in 0..8_usize) {
        let mut bytes = bytes;
        let mut key = vec![b"cdhrmsp?"[kind]];
        key.extend(bytes.iter().take(9));
        let _ = decode_fact(&key, &bytes);
        let _ = decode_record(&bytes, Options::default());
        let _ = decode_options(&bytes);
        bytes.insert(0, 1);
        let _ = decode_fact(&key, &bytes);
        let _ = decode_record(&bytes, Options::default());
        let _ = decode_options(&bytes);
        bytes[0] = 2;
        let _ = decode_record(&bytes, Options::default());
    }

    #[test]
    fn a_changed_record_is_a_record_or_refused(
        inputs in vec(input(), 0..4),
        around in option::of(around()),
        at in any::<usize>(),
        to in any::<u8>(),
    ) {
        let mut bytes = encode_record(&record_of(inputs, false, around));
        let at = at % bytes.len();
        bytes[at] = to;
        let _ = decode_record(&bytes, Options::default());
        let _ = decode_record(&bytes[..at], Options::default());
    }
}

#[test]
fn decisions_with_their_reasons_read_back_as_they_were_written() {
    let (mut decided, mut explained) = (0, 0);
    for seed in 0..200 {
        let record = Recording::begin(seed, Size::Small).cycle(seed % 2 == 0);
        let read = decode_record(&encode_record(&record), record.options.clone()).unwrap();
        assert_same(&read, &record);
        decided += read.decided.len();
        explained +=
            read.decided.iter().filter(|d| d.why.as_ref().is_some_and(|w| w.runner_up.is_some())).count();
    }
    assert!(decided > 1_000 && explained > 300, "{decided} decisions, {explained} with a runner-up");
}

#[test]
fn a_record_cut_short_anywhere_is_refused() {
    let record = Recording::begin(3, Size::Tiny).cycle(false);
    let bytes = encode_record(&record);
    for end in 0..bytes.len() {
        assert!(decode_record(&bytes[..end], Options::default()).is_err(), "cut at {end} of {}", bytes.len());
    }
    let longer = [bytes, vec![0]].concat();
    let error = decode_record(&longer, Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "it is not in the form of a whole piece: 1 bytes are left over");
}

/// A record of the fourth version is one of the fifth without its last two rows.
#[test]
fn a_record_from_before_the_purchase_rails_books_is_read() {
    let around = Around { moves: 7, ..Around::default() };
    let record = record_of(Vec::new(), false, Some(around));
    let mut bytes = encode_record(&record);
    let rest = [bytes.pop(), bytes.pop()];
    assert_eq!((bytes[0], rest), (5, [Some(0); 2]), "there was nothing to say about purchases and approvals");
    bytes[0] = 4;
    assert_same(&decode_record(&bytes, Options::default()).unwrap(), &record);
    bytes[0] = 5;
    assert!(decode_record(&bytes, Options::default()).is_err(), "the fifth has two rows more");
}

#[test]
fn a_newer_version_is_told_from_garbage() {
    let newer = CodecError::Newer { found: 2, reads: 1 };
    assert_eq!(decode_options(&[2]), Err(newer.clone()));
    assert_eq!(decode_fact(b"c", &[2, 0]), Err(newer.clone()));
    let newer_record = CodecError::Newer { found: 6, reads: 5 };
    assert_eq!(decode_record(&[6, 0], Options::default()).unwrap_err(), newer_record);
    assert_eq!(newer.to_string(), "it has version 2, this build reads up to 1; use the newer build");
    assert!(matches!(decode_fact(b"c", &[0, 0]), Err(CodecError::Form { .. })));
    assert!(matches!(decode_fact(b"", &[1]), Err(CodecError::Form { .. })));
    assert!(matches!(decode_fact(b"x", &[1]), Err(CodecError::Form { .. })));
    assert!(
        matches!(decode_fact(b"cx", &[1, 0]), Err(CodecError::Form { .. })),
        "there is one count of cycles"
    );
}
