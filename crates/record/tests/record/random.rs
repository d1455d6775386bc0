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
use bigfleet_shard::{
    Around, ClusterChange, Fact, Health, HeldListing, HeldRollup, Input, LettingGo, Link, Listed, Loss,
    LossMemo, LossSeen, MachineMemo, Mode, ModeOrder, Named, OperatorSeen, Pause, PauseScope, Proposal,
    ProviderSettings, Purchases, Quota, Settings, ShortSince,
};
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

fn held() -> impl Strategy<Value = HeldRollup> {
    (any::<i64>(), any::<i64>(), any::<u32>()).prop_map(|(first_unix_nanos, last_unix_nanos, seen)| {
        HeldRollup { first_unix_nanos, last_unix_nanos, seen }
    })
}

fn short() -> impl Strategy<Value = ShortSince> {
    (any::<i64>(), any::<u64>()).prop_map(|(unix_nanos, cycle)| ShortSince { unix_nanos, cycle })
}

fn settings() -> impl Strategy<Value = Settings> {
    let provider =
        (shared(), any::<i64>(), any::<i64>()).prop_map(|(name, list_every_nanos, stale_after_nanos)| {
            ProviderSettings { name, list_every_nanos, stale_after_nanos }
        });
    let numbers = (any::<i64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<bool>());
    let purchases = (number(), any::<i64>(), number());
    (numbers, number(), number(), number(), purchases, vec(provider, 0..4)).prop_map(
        |(numbers, reclaim_fraction, demand_drop, supply_drop, purchases, providers)| Settings {
            reclaim_fraction,
            reclaim_window_nanos: numbers.0,
            max_actions_per_cycle: numbers.1,
            dry_run: numbers.4,
            max_moves: numbers.2,
            demand_drop,
            supply_drop,
            confirmations: numbers.3,
            purchase_fraction: purchases.0,
            purchase_window_nanos: purchases.1,
            purchase_usd_per_hour: purchases.2,
            providers,
        },
    )
}

fn health() -> impl Strategy<Value = Health> {
    let held = (held(), any::<u32>())
        .prop_map(|(confirmation, missing)| HeldListing { confirmation, missing: missing as usize });
    (any::<u32>(), boxed(), option::of(held), any::<[bool; 3]>()).prop_map(|(failures, error, held, is)| {
        let [supports_delete, has_revisions, is_stale] = is;
        Health { failures, error, held, supports_delete, has_revisions, is_stale }
    })
}

fn purchases() -> impl Strategy<Value = Purchases> {
    let counts = any::<[u32; 4]>();
    let loss = (shared(), any::<u16>(), any::<i64>(), number(), counts).prop_map(
        |(cluster, provider, since_unix_nanos, usd_per_hour, [machines, seen, may_replace, replaced])| {
            LossSeen {
                cluster,
                provider,
                since_unix_nanos,
                machines,
                usd_per_hour,
                seen,
                may_replace,
                replaced,
            }
        },
    );
    (number(), vec(loss, 0..4)).prop_map(|(usd_per_hour, losses)| Purchases { usd_per_hour, losses })
}

fn cluster_change() -> impl Strategy<Value = ClusterChange> {
    let link = (any::<u64>(), any::<i64>(), boxed()).prop_map(|(number, since_unix_nanos, protocol)| Link {
        number,
        since_unix_nanos,
        protocol,
    });
    let operator =
        (any::<u32>(), any::<i64>(), boxed()).prop_map(|(failures, backoff_until_unix_nanos, error)| {
            OperatorSeen { failures, backoff_until_unix_nanos, error }
        });
    prop_oneof![
        option::of(link).prop_map(ClusterChange::Session),
        operator.prop_map(ClusterChange::Operator),
        option::of(held()).prop_map(ClusterChange::Held),
        vec((any::<i64>(), any::<u32>()), 0..4).prop_map(ClusterChange::Reclaims),
        prop_oneof![Just(0), any::<i64>()].prop_map(ClusterChange::Changed),
    ]
}

/// Any surroundings, also such as no shard is in.
pub(crate) fn around() -> impl Strategy<Value = Around> {
    let stamp = || option::of(any::<i64>());
    let listed = (stamp(), stamp(), any::<u32>())
        .prop_map(|(unix_nanos, full_unix_nanos, machines)| Listed { unix_nanos, full_unix_nanos, machines });
    let of_providers =
        (vec((any::<u16>(), listed), 0..3), vec((any::<u16>(), health()), 0..3), vec(any::<u16>(), 0..3));
    let of_clusters = (
        vec(shared(), 0..3),
        vec(shared(), 0..3),
        vec((any::<u32>(), cluster_change()), 0..5),
        vec((0..3000_u32, any::<i64>()), 0..5),
    );
    let rest = (vec((0..9_u64, option::of(pause())), 0..3), vec((key(), option::of(short())), 0..3));
    let moves = (any::<u32>(), option::of(purchases()));
    (option::of(settings()), of_providers, of_clusters, rest, moves).prop_map(
        |(settings, of_providers, of_clusters, rest, (moves, purchases))| Around {
            settings: settings.map(Box::new),
            listed: of_providers.0,
            health: of_providers.1,
            owners: of_providers.2,
            came: of_clusters.0,
            went: of_clusters.1,
            clusters: of_clusters.2,
            reported: of_clusters.3,
            pauses: rest.0,
            short: rest.1,
            moves,
            purchases,
        },
    )
}

/// Any fact, also one that forgets.
pub(crate) fn fact() -> impl Strategy<Value = Fact> {
    let demand = vec(need(), 0..4).prop_map(Arc::<[Need]>::from);
    prop_oneof![
        any::<u64>().prop_map(Fact::Cycle),
        (shared(), option::of(demand)).prop_map(|(cluster, rows)| Fact::Demand(cluster, rows)),
        (shared(), option::of(held())).prop_map(|(cluster, held)| Fact::Held(cluster, held)),
        (shared(), option::of(vec((any::<i64>(), any::<u32>()), 0..4)))
            .prop_map(|(cluster, times)| Fact::Reclaims(cluster, times)),
        (boxed(), option::of(memo())).prop_map(|(id, memo)| Fact::Machine(id, memo)),
        (key(), option::of(short())).prop_map(|(key, since)| Fact::Shortfall(key, since)),
        (0..9_u64, option::of(pause())).prop_map(|(number, pause)| Fact::Pause(number, pause)),
        (boxed(), option::of(loss())).prop_map(|(id, loss)| Fact::Loss(id, loss)),
        (scope(), option::of(mode())).prop_map(|(scope, order)| Fact::Mode(scope, order)),
        (boxed(), option::of(proposal())).prop_map(|(id, proposal)| Fact::Proposal(id, proposal)),
        (shared(), option::of(vec((any::<i64>(), any::<u32>()), 0..4)))
            .prop_map(|(cluster, times)| Fact::Bought(cluster, times)),
        any::<i64>().prop_map(Fact::Term),
        (boxed(), boxed(), any::<bool>()).prop_map(|(key, value, is_ours)| Fact::Domain(key, value, is_ours)),
        (boxed(), option::of(named())).prop_map(|(id, named)| Fact::Named(id, named)),
        vec(quota(), 0..4).prop_map(|quotas| Fact::Quotas(quotas.into())),
    ]
}

fn scope() -> impl Strategy<Value = PauseScope> {
    (option::of(shared()), option::of(kind())).prop_map(|(cluster, kind)| PauseScope { cluster, kind })
}

fn mode() -> impl Strategy<Value = ModeOrder> {
    let modes = proptest::sample::select(Mode::ALL.to_vec());
    (modes, boxed(), boxed(), any::<i64>()).prop_map(|(mode, reason, author, since_unix_nanos)| ModeOrder {
        mode,
        reason,
        author,
        since_unix_nanos,
    })
}

fn proposal() -> impl Strategy<Value = Proposal> {
    let of = (any::<u32>(), kind(), option::of(shared()), option::of(key()), 0.0..9.0_f64);
    let when = (any::<u64>(), any::<i64>(), any::<i64>());
    (of, when, option::of((boxed(), any::<i64>())), any::<bool>()).prop_map(
        |((id, kind, cluster, need, usd_per_hour), when, approved, begun)| Proposal {
            id,
            kind,
            cluster,
            need,
            usd_per_hour,
            cycle: when.0,
            since_unix_nanos: when.1,
            until_unix_nanos: when.2,
            approved,
            begun,
        },
    )
}

fn named() -> impl Strategy<Value = Named> {
    option::of(option::of((boxed(), boxed()))).prop_map(|named| named.map_or(Named::Ours, Named::Theirs))
}

fn quota() -> impl Strategy<Value = Quota> {
    let kind = option::of((0..5_i32).prop_map(|number| CapacityType::from_wire(number).unwrap()));
    (boxed(), boxed(), boxed(), kind, any::<u32>()).prop_map(
        |(provider, instance_type, zone, capacity_type, machines)| Quota {
            provider,
            instance_type,
            zone,
            capacity_type,
            machines,
        },
    )
}

fn loss() -> impl Strategy<Value = LossMemo> {
    (shared(), shared(), option::of((shared(), shared())), vector(), 0.0..9.0_f64).prop_map(
        |(cluster, provider, need, amount, usd_per_hour)| {
            let key = |(fingerprint, group)| NeedKey { cluster: cluster.clone(), fingerprint, group };
            let loss = Loss { need: need.map(key), amount, usd_per_hour };
            LossMemo { cluster: cluster.clone(), provider, loss }
        },
    )
}
