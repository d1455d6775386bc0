//! Any machine, any need, any fact: odd texts, odd numbers, infinities.

use std::sync::Arc;

use bigfleet_engine::ActionKind;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::{MAX_AMOUNT, ResourceName, ResourceVec};
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_model::stamp::Assignment;
use bigfleet_shard::{Fact, HeldRollup, Input, LettingGo, MachineMemo, Pause, PauseScope, ShortSince};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![Just(String::new()), "[a-c]{1,2}", "\\PC{0,12}", Just("a\u{0}b\u{1b}é".to_owned())]
}

/// A text that may stand in a profile.
fn word() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", "[a-z./-]{1,20}", Just("zone é\u{0}".to_owned())]
}

fn shared() -> impl Strategy<Value = Arc<str>> {
    text().prop_map(Arc::from)
}

fn boxed() -> impl Strategy<Value = Box<str>> {
    text().prop_map(Box::from)
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(-0.0),
        Just(f64::INFINITY),
        Just(f64::MIN_POSITIVE),
        Just(f64::MAX),
        0.0..1e9_f64
    ]
}

fn vector() -> impl Strategy<Value = ResourceVec> {
    let name = prop_oneof![
        select(vec!["cpu", "memory", "nvidia.com/gpu", "pods"]).prop_map(str::to_owned),
        "[a-z./]{1,12}"
    ];
    let amount = prop_oneof![Just(MAX_AMOUNT), 0..100_u64, 0..=MAX_AMOUNT];
    btree_map(name, amount, 0..7).prop_map(|amounts| {
        ResourceVec::new(
            amounts.into_iter().map(|(name, amount)| (ResourceName::new(&name).unwrap(), amount)),
        )
        .unwrap()
    })
}

fn profile() -> impl Strategy<Value = Profile> {
    let values = vec(prop_oneof![Just(String::new()), word()], 0..4);
    let requirement = (word(), select(Operator::ALL.to_vec()), values)
        .prop_map(|(key, operator, values)| Requirement::new(key, operator, values));
    let mode = select(vec![
        WhenUnsatisfiable::Unspecified,
        WhenUnsatisfiable::DoNotSchedule,
        WhenUnsatisfiable::ScheduleAnyway,
    ]);
    let spread =
        (word(), any::<i32>(), mode).prop_map(|(key, skew, mode)| TopologySpread::new(key, skew, mode));
    let bucket = || (0..28_i32).prop_map(|number| PenaltyBucket::from_wire(number).unwrap());
    (vec(requirement, 0..4), vec(spread, 0..3), any::<i32>(), bucket(), bucket())
        .prop_map(|(requirements, spread, priority, i, r)| Profile::new(requirements, spread, priority, i, r))
}

pub(crate) fn need() -> impl Strategy<Value = Need> {
    (shared(), profile(), shared(), vector(), vector(), any::<i64>(), any::<bool>()).prop_map(
        |(cluster, profile, group, aggregate, min_unit, first_seen_unix_nanos, parked)| Need {
            cluster,
            profile: profile.into(),
            group,
            aggregate,
            min_unit,
            first_seen_unix_nanos,
            parked,
        },
    )
}

fn key() -> impl Strategy<Value = NeedKey> {
    (shared(), shared(), shared()).prop_map(|(cluster, fingerprint, group)| NeedKey {
        cluster,
        fingerprint,
        group,
    })
}

fn assignment() -> impl Strategy<Value = Assignment> {
    (shared(), any::<i32>(), number(), number(), shared(), shared()).prop_map(
        |(cluster, priority, interruption_penalty_usd, reclamation_penalty_usd, fingerprint, group)| {
            Assignment {
                cluster,
                priority,
                interruption_penalty_usd,
                reclamation_penalty_usd,
                fingerprint,
                group,
            }
        },
    )
}

pub(crate) fn machine() -> impl Strategy<Value = Machine> {
    let labels = btree_map("[a-d]{1,2}", text(), 0..5).prop_map(|pairs| Labels::new(pairs).unwrap());
    let host = (boxed(), boxed()).prop_map(|(provider, reference)| HostRef { provider, reference });
    let names = (boxed(), boxed(), boxed(), boxed(), boxed());
    let kind = (select(MachineState::ALL.to_vec()), select(CapacityType::ALL.to_vec()), labels);
    let sizes = (vector(), vector(), number(), number());
    let rest = (option::of(host), assignment(), option::of(key()), option::of(any::<i64>()));
    (names, kind, sizes, rest).prop_map(|(names, kind, sizes, rest)| Machine {
        id: names.0,
        state: kind.0,
        host: rest.0,
        cluster: names.1,
        instance_type: names.2,
        zone: names.3,
        capacity_type: kind.1,
        labels: kind.2,
        resources: sizes.0,
        allocatable: sizes.1,
        price_usd_per_hour: sizes.2,
        interruption_probability: sizes.3,
        assigned: rest.1,
        draining_for: rest.2,
        idle_since_unix_nanos: rest.3,
        last_error: names.4,
    })
}

pub(crate) fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        3 => machine().prop_map(|machine| Input::Observe(Arc::new(machine))),
        1 => boxed().prop_map(Input::Remove),
        2 => (shared(), vec(need(), 0..4), any::<i64>()).prop_map(|(cluster, needs, at_unix_nanos)| {
            Input::Replace { cluster, needs: needs.into(), at_unix_nanos }
        }),
        1 => (key(), any::<bool>()).prop_map(|(key, parked)| Input::Park { key, parked }),
    ]
}

fn kind() -> impl Strategy<Value = ActionKind> {
    select(vec![
        ActionKind::Bootstrap,
        ActionKind::Provision,
        ActionKind::Preempt,
        ActionKind::Reclaim,
        ActionKind::Delete,
    ])
}

fn memo() -> impl Strategy<Value = MachineMemo> {
    let letting_go = (kind(), any::<u64>(), any::<i64>(), any::<i32>()).prop_map(
        |(kind, instruction, until_unix_nanos, preemptor_priority)| LettingGo {
            kind,
            instruction,
            until_unix_nanos,
            preemptor_priority,
        },
    );
    let stamp = || option::of(any::<i64>());
    (stamp(), option::of(assignment()), option::of(key()), option::of(letting_go), any::<u32>(), stamp())
        .prop_map(|(idle_since, creating_for, draining_for, letting_go, failed_tries, since)| MachineMemo {
            idle_since,
            creating_for,
            draining_for,
            letting_go,
            failed_tries,
            since,
        })
}

fn pause() -> impl Strategy<Value = Pause> {
    let scope =
        (option::of(shared()), option::of(kind())).prop_map(|(cluster, kind)| PauseScope { cluster, kind });
    (scope, any::<bool>(), boxed(), boxed(), any::<i64>(), option::of(any::<i64>())).prop_map(
        |(scope, dry_run, reason, author, since_unix_nanos, until_unix_nanos)| Pause {
            scope,
            dry_run,
            reason,
            author,
            since_unix_nanos,
            until_unix_nanos,
        },
    )
}

/// Any fact, also one that forgets.
pub(crate) fn fact() -> impl Strategy<Value = Fact> {
    let held =
        (any::<i64>(), any::<i64>(), any::<u32>()).prop_map(|(first_unix_nanos, last_unix_nanos, seen)| {
            HeldRollup { first_unix_nanos, last_unix_nanos, seen }
        });
    let short = (any::<i64>(), any::<u64>()).prop_map(|(unix_nanos, cycle)| ShortSince { unix_nanos, cycle });
    let demand = vec(need(), 0..4).prop_map(Arc::<[Need]>::from);
    prop_oneof![
        any::<u64>().prop_map(Fact::Cycle),
        (shared(), option::of(demand)).prop_map(|(cluster, rows)| Fact::Demand(cluster, rows)),
        (shared(), option::of(held)).prop_map(|(cluster, held)| Fact::Held(cluster, held)),
        (shared(), option::of(vec((any::<i64>(), any::<u32>()), 0..4)))
            .prop_map(|(cluster, times)| Fact::Reclaims(cluster, times)),
        (boxed(), option::of(memo())).prop_map(|(id, memo)| Fact::Machine(id, memo)),
        (key(), option::of(short)).prop_map(|(key, since)| Fact::Shortfall(key, since)),
        (0..9_u64, option::of(pause())).prop_map(|(number, pause)| Fact::Pause(number, pause)),
    ]
}
