//! What crosses the border unchanged, and what it refuses.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineProblem, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement, RequirementError};
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use bigfleet_model::spread::{SpreadError, TopologySpread, WhenUnsatisfiable};
use bigfleet_model::stamp::{Assignment, PRIORITY_KEY};
use bigfleet_proto::convert::demand::{Rollup, RollupError, RowError};
use bigfleet_proto::convert::machine::{MachineWireError, Received};
use bigfleet_proto::convert::resources;
use bigfleet_proto::v1alpha1;
use proptest::prelude::*;

fn name() -> impl Strategy<Value = String> {
    "[a-z]{1,3}(/[a-z]{1,3})?"
}

fn amounts() -> impl Strategy<Value = ResourceVec> {
    let names = prop_oneof![Just("cpu".to_string()), Just("memory".to_string()), name()];
    let size = prop_oneof![0..5_000_u64, 0..=MAX_AMOUNT];
    proptest::collection::btree_map(names, size, 0..5).prop_map(|map| {
        let entries = map.iter().map(|(name, amount)| (ResourceName::new(name).expect("not empty"), *amount));
        ResourceVec::new(entries).expect("unique names")
    })
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let operator = proptest::sample::select(Operator::ALL.to_vec());
    (name(), operator, proptest::collection::vec("[a-z\\PC&&[^,;:|]]{0,3}", 0..4))
        .prop_map(|(key, operator, values)| Requirement::new(key, operator, values))
}

fn spread() -> impl Strategy<Value = TopologySpread> {
    (name(), any::<i32>(), 0..3)
        .prop_map(|(key, skew, when)| TopologySpread::new(key, skew, WhenUnsatisfiable::from_wire(when)))
}

fn bucket() -> impl Strategy<Value = PenaltyBucket> {
    proptest::sample::select(PenaltyBucket::all().collect::<Vec<_>>())
}

fn need() -> impl Strategy<Value = Need> {
    let profile = (
        proptest::collection::vec(requirement(), 0..4),
        proptest::collection::vec(spread(), 0..3),
        any::<i32>(),
        bucket(),
        bucket(),
    );
    (profile, amounts(), amounts(), ".{0,4}").prop_map(|(profile, aggregate, min_unit, group)| {
        let (requirements, spread, priority, interruption, reclamation) = profile;
        Need {
            cluster: "c".into(),
            profile: Profile::new(requirements, spread, priority, interruption, reclamation).into(),
            group: group.into(),
            aggregate,
            min_unit,
            first_seen_unix_nanos: 0,
            parked: false,
        }
    })
}

fn assignment() -> impl Strategy<Value = Assignment> {
    let dollars = || prop_oneof![0.0..1e9_f64, Just(f64::INFINITY), Just(0.0), Just(0.1)];
    (any::<i32>(), dollars(), dollars(), ".{0,4}", ".{0,4}").prop_map(
        |(priority, i, r, fingerprint, group)| Assignment {
            cluster: "c".into(),
            priority,
            interruption_penalty_usd: i,
            reclamation_penalty_usd: r,
            fingerprint: fingerprint.into(),
            group: group.into(),
        },
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let kind = (
        proptest::sample::select(MachineState::ALL.to_vec()),
        proptest::sample::select(CapacityType::ALL.to_vec()),
        0.0..1e6_f64,
        0.0..=1.0_f64,
    );
    let labels = proptest::collection::btree_map(name(), ".{0,3}", 0..4);
    (kind, labels, amounts(), amounts(), assignment()).prop_map(
        |(kind, labels, resources, allocatable, assigned)| {
            use MachineState::{Creating, Failed, Speculative};
            let (state, capacity_type, price, probability) = kind;
            let mut machine = Machine::new("m", state);
            if !matches!(state, Speculative | Creating) {
                machine.host = Some(HostRef { provider: "p".into(), reference: "r".into() });
            }
            if state.is_bound() {
                machine.cluster = "c".into();
                machine.assigned = assigned;
            }
            if state == Failed {
                machine.last_error = "broken".into();
            }
            machine.capacity_type = capacity_type;
            machine.price_usd_per_hour = price;
            machine.interruption_probability = probability;
            machine.labels = Labels::new(labels).expect("unique keys");
            machine.resources = resources;
            machine.allocatable = allocatable;
            machine
        },
    )
}

proptest! {
    #[test]
    fn demand_comes_back_as_it_was_sent(needs in proptest::collection::vec(need(), 0..4), taken: i64) {
        let rollup = Rollup { cluster: "c".into(), taken_unix_nanos: taken, needs };
        let message = v1alpha1::ClusterCapacityNeeds::from(&rollup);
        prop_assert_eq!(Rollup::try_from(&message), Ok(rollup));
    }

    #[test]
    fn machines_come_back_as_they_were_sent(machine in machine()) {
        let message = v1alpha1::Machine::from(&machine);
        prop_assert_eq!(Received::try_from(&message), Ok(Received { machine, stamp_problems: vec![] }));
    }

    /// Nothing a sender can put into a message makes the border panic.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        use prost::Message;
        if let Ok(message) = v1alpha1::ClusterCapacityNeeds::decode(&*bytes) {
            let _ = Rollup::try_from(&message);
        }
        if let Ok(message) = v1alpha1::Machine::decode(&*bytes) {
            let _ = Received::try_from(&message);
        }
    }
}

#[test]
fn quantities_leave_in_canonical_form() {
    let amounts =
        ResourceVec::parse([("cpu", "1500m"), ("memory", "1Gi"), ("x/y", "3k"), ("pods", "0")]).unwrap();
    let expected = [("cpu", "1500m"), ("memory", "1073741824"), ("x/y", "3k")];
    let expected: BTreeMap<_, _> = expected.map(|(k, v)| (k.to_string(), v.to_string())).into();
    assert_eq!(resources::to_map(&amounts), expected);
    let whole = ResourceVec::parse([("cpu", "2000m")]).unwrap();
    assert_eq!(resources::to_map(&whole)["cpu"], "2");
}

fn row() -> v1alpha1::CapacityNeed {
    v1alpha1::CapacityNeed {
        aggregate_resources: [("cpu".to_string(), "1".to_string())].into(),
        ..v1alpha1::CapacityNeed::default()
    }
}

fn refusal(row_1: v1alpha1::CapacityNeed) -> RowError {
    let message = v1alpha1::ClusterCapacityNeeds {
        cluster_id: "shop".into(),
        timestamp_unix_nanos: 1,
        needs: vec![row(), row_1, row()],
    };
    match Rollup::try_from(&message) {
        Err(RollupError::Row { cluster, row: 1, problem }) if cluster == "shop" => problem,
        other => panic!("row 1 of shop should be refused, got {other:?}"),
    }
}

fn requirement_row(operator: i32, key: &str) -> v1alpha1::CapacityNeed {
    let requirement = v1alpha1::NodeSelectorRequirement { key: key.into(), operator, values: vec![] };
    v1alpha1::CapacityNeed { requirements: vec![requirement], ..row() }
}

#[test]
fn one_bad_row_refuses_the_roll_up_and_is_named() {
    assert_eq!(refusal(requirement_row(6, "k")), RowError::Requirement(RequirementError::UnknownOperator(6)));
    assert!(matches!(
        refusal(requirement_row(1, "")),
        RowError::Requirement(RequirementError::EmptyKey { .. })
    ));
    let spread_row = |key: &str| {
        let spread = v1alpha1::TopologySpread { topology_key: key.into(), ..Default::default() };
        v1alpha1::CapacityNeed { spread: vec![spread], ..row() }
    };
    assert_eq!(refusal(spread_row("")), RowError::Spread(SpreadError::EmptyKey));
    assert_eq!(refusal(spread_row("a;b")), RowError::Spread(SpreadError::Separator("a;b".into())));
    for bucket in [-1, 28, i32::MAX] {
        let interruption = v1alpha1::CapacityNeed { interruption_penalty_bucket: bucket, ..row() };
        assert!(matches!(
            refusal(interruption),
            RowError::Penalty { field: "interruption_penalty_bucket", .. }
        ));
        let reclamation = v1alpha1::CapacityNeed { reclamation_penalty_bucket: bucket, ..row() };
        assert!(matches!(
            refusal(reclamation),
            RowError::Penalty { field: "reclamation_penalty_bucket", .. }
        ));
    }
    for text in ["", "abc", "1x", "-1", "1e99999999999", "\u{0}"] {
        let map = BTreeMap::from([("cpu".to_string(), text.to_string())]);
        let aggregate = v1alpha1::CapacityNeed { aggregate_resources: map.clone(), ..row() };
        assert!(
            matches!(refusal(aggregate), RowError::Amount { field: "aggregate_resources", .. }),
            "{text:?}"
        );
        let min_unit = v1alpha1::CapacityNeed { min_unit: map, ..row() };
        assert!(matches!(refusal(min_unit), RowError::Amount { field: "min_unit", .. }), "{text:?}");
    }
}

#[test]
fn a_refusal_says_where_and_what_to_do() {
    let message = v1alpha1::ClusterCapacityNeeds {
        cluster_id: "shop".into(),
        timestamp_unix_nanos: 1,
        needs: vec![row(), requirement_row(9, "k")],
    };
    assert_eq!(
        Rollup::try_from(&message).unwrap_err().to_string(),
        "roll-up of cluster \"shop\", row 1: operator number 9 is unknown; this build knows 0 to 5, so the \
         sender may be newer; nothing of it was taken"
    );
}

#[test]
fn zero_operator_zero_bucket_and_unknown_spread_mode_pass() {
    let mut message = requirement_row(0, "k");
    message.spread =
        vec![v1alpha1::TopologySpread { topology_key: "z".into(), max_skew: 2, when_unsatisfiable: 77 }];
    let message = v1alpha1::ClusterCapacityNeeds {
        cluster_id: "c".into(),
        timestamp_unix_nanos: 5,
        needs: vec![message],
    };
    let rollup = Rollup::try_from(&message).unwrap();
    let profile: &Arc<Profile> = &rollup.needs[0].profile;
    assert_eq!(profile.requirements()[0].operator(), Operator::Unspecified);
    assert_eq!(profile.interruption(), PenaltyBucket::UNSPECIFIED);
    assert_eq!(profile.spread()[0].when, WhenUnsatisfiable::Unspecified);
    assert_eq!(rollup.taken_unix_nanos, 5);
    assert_eq!(rollup.needs[0].first_seen_unix_nanos, 0, "the shard stamps it, not the sender");
}

#[test]
fn a_roll_up_without_a_cluster_is_refused() {
    let message = v1alpha1::ClusterCapacityNeeds::default();
    assert_eq!(Rollup::try_from(&message), Err(RollupError::NoCluster));
}

fn idle() -> v1alpha1::Machine {
    let host = v1alpha1::HostRef { provider: "p".into(), r#ref: "r".into() };
    v1alpha1::Machine { id: "m".into(), state: 3, host: Some(host), ..v1alpha1::Machine::default() }
}

fn code(machine: &v1alpha1::Machine) -> &'static str {
    Received::try_from(machine).expect_err("a bad record").code()
}

#[test]
fn broken_machine_records_are_refused_by_reason() {
    assert!(Received::try_from(&idle()).is_ok());
    for state in [0, 9, -1] {
        let error = Received::try_from(&v1alpha1::Machine { state, ..idle() }).unwrap_err();
        assert_eq!(error, MachineWireError::State { id: "m".into(), number: state });
    }
    assert_eq!(code(&v1alpha1::Machine { capacity_type: 5, ..idle() }), "capacity_type");
    assert_eq!(code(&v1alpha1::Machine { labels: [(String::new(), "v".into())].into(), ..idle() }), "label");
    let bad = v1alpha1::Resources { resources: [("cpu".into(), "lots".into())].into() };
    assert_eq!(code(&v1alpha1::Machine { resources: Some(bad.clone()), ..idle() }), "amount");
    assert_eq!(code(&v1alpha1::Machine { allocatable: Some(bad), ..idle() }), "amount");
    assert_eq!(code(&v1alpha1::Machine { host: None, ..idle() }), MachineProblem::MissingHost.code());
    let empty_host = Some(v1alpha1::HostRef::default());
    assert_eq!(code(&v1alpha1::Machine { host: empty_host, ..idle() }), MachineProblem::MissingHost.code());
    assert_eq!(code(&v1alpha1::Machine { price_per_hour: f64::NAN, ..idle() }), "price");
    assert_eq!(code(&v1alpha1::Machine { interruption_probability: 1.5, ..idle() }), "probability");
    assert_eq!(code(&v1alpha1::Machine { state: 8, ..idle() }), MachineProblem::MissingError.code());
}

#[test]
fn a_damaged_stamp_is_reported_and_the_rest_is_read() {
    let mut message = v1alpha1::Machine { state: 5, cluster: "shop".into(), ..idle() };
    message.shard_metadata =
        Assignment { priority: 7, group: "g\u{0}h".into(), ..Assignment::default() }.encode();
    message.shard_metadata.insert(PRIORITY_KEY.into(), "seven".into());
    message.shard_metadata.insert("somebody/else".into(), "\u{0}".into());
    let received = Received::try_from(&message).unwrap();
    assert_eq!(received.machine.assigned.group.as_ref(), "g\u{0}h");
    assert_eq!(received.machine.assigned.cluster.as_ref(), "shop");
    assert_eq!(received.machine.assigned.priority, 0);
    let keys: Vec<_> = received.stamp_problems.iter().map(|problem| problem.key).collect();
    assert_eq!(keys, [PRIORITY_KEY]);
}

#[test]
fn more_than_is_taken_is_refused_with_the_field_and_the_bound() {
    let requirement = |key: &str, values: usize| v1alpha1::NodeSelectorRequirement {
        key: key.into(),
        operator: 1,
        values: (0..values).map(|n| n.to_string()).collect(),
    };
    let map = |names: usize| -> BTreeMap<String, String> {
        (0..names).map(|n| (format!("r{n}"), "1".to_string())).collect()
    };
    let spread = v1alpha1::TopologySpread { topology_key: "k".repeat(318), ..Default::default() };
    let with = |change: &dyn Fn(&mut v1alpha1::CapacityNeed)| {
        let mut row = row();
        change(&mut row);
        row
    };
    for (bad, message) in [
        (
            with(&|row| row.requirements = vec![requirement("k", 1); 1001]),
            "requirements has 1001 requirements; at most 1000 are taken",
        ),
        (
            with(&|row| row.requirements = vec![requirement("k", 1001)]),
            "requirements.values has 1001 values; at most 1000 are taken",
        ),
        (
            with(&|row| row.requirements = vec![requirement(&"k".repeat(318), 1)]),
            "requirements.key has 318 bytes; at most 317 are taken",
        ),
        (
            with(&|row| row.aggregate_resources = map(66_000)),
            "aggregate_resources has 66000 resource names; at most 256 are taken",
        ),
        (with(&|row| row.min_unit = map(257)), "min_unit has 257 resource names; at most 256 are taken"),
        (with(&|row| row.group = "g".repeat(513)), "group has 513 bytes; at most 512 are taken"),
        (
            with(&|row| row.spread = vec![spread.clone()]),
            "spread.topology_key has 318 bytes; at most 317 are taken",
        ),
        (
            with(&|row| row.requirements = (0..99).map(|n| requirement(&format!("k{n}"), 999)).collect()),
            "fingerprint of requirements and spread has",
        ),
    ] {
        let problem = refusal(bad).to_string();
        assert!(problem.starts_with(message), "{problem}");
    }
    let needs = vec![row(); 50_001];
    let message =
        v1alpha1::ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: 1, needs };
    assert_eq!(
        Rollup::try_from(&message).unwrap_err().to_string(),
        "roll-up of cluster \"shop\": needs has 50001 rows; at most 50000 are taken; nothing of it was taken"
    );
}

#[test]
fn a_machine_with_more_than_is_taken_is_refused_but_a_long_error_is_cut() {
    let mut record = v1alpha1::Machine { id: "m".into(), state: 8, ..Default::default() };
    record.last_error = "é".repeat(5000);
    let read = Received::try_from(&record).unwrap();
    assert_eq!(read.machine.last_error.len(), 4096, "it is dead all the same");
    record.labels = (0..257).map(|n| (n.to_string(), String::new())).collect();
    let refused = Received::try_from(&record).unwrap_err();
    assert_eq!(refused.to_string(), "machine \"m\": labels has 257 labels; at most 256 are taken");
    assert_eq!(refused.code(), "over_limit");
}
