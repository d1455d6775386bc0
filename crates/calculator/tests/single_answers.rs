//! Questions about one need or one machine are answered as the whole report answers them, also when the fleet
//! was edited since the cycle.

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{Fleet, Outcome, Parallelism};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_oracle::{Edit, Size, apply, random_edits, random_scenario};
use bigfleet_scenario::{Scenario, vectors};

fn scenarios() -> impl Iterator<Item = Scenario> {
    let known = vectors::all().expect("the vectors can be read").into_iter().map(|vector| vector.scenario);
    let small = (0..600).map(|seed| random_scenario(seed, Size::Small));
    known.chain(small).chain((0..40).map(|seed| random_scenario(seed, Size::Medium)))
}

fn decided(scenario: &Scenario) -> Fleet {
    let mut fleet = load(scenario, Parallelism::default()).expect("a valid scenario");
    fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
    fleet
}

/// A plain need and a folded one may share an identity; who asks by name gets the plain one, else the first.
fn named<'a, 'b>(all: &'b [Outcome<'a>], outcome: &Outcome<'_>) -> &'b Outcome<'a> {
    let same = |other: &&Outcome<'_>| other.demand.need.key() == outcome.demand.need.key();
    let plain = all.iter().filter(same).find(|other| !other.demand.folded);
    plain.or_else(|| all.iter().find(same)).expect("the need itself is among them")
}

fn in_words(outcome: &Outcome<'_>) -> String {
    format!("{outcome:?}")
}

#[test]
fn one_outcome_is_what_the_whole_report_says() {
    let (mut short, mut folded) = (0, 0);
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let outcomes = fleet.outcomes();
        for outcome in &outcomes {
            let (key, named) = (outcome.demand.need.key(), named(&outcomes, outcome));
            let one = fleet.outcome_of(&key).expect("a need of the last cycle");
            assert_eq!(in_words(&one), in_words(named));
            assert_eq!(fleet.reason_of(&key), named.reason);
            short += usize::from(named.reason.is_some());
        }
        for need in &scenario.needs {
            let one = fleet.outcome_of(&need.key()).expect("every need is found, folded or not");
            folded += usize::from(one.demand.folded);
            let its_own = one.demand.need.key() == need.key();
            assert!(its_own || one.demand.folded && one.demand.need.min_unit == need.aggregate);
        }
        let keys: Vec<_> = outcomes.iter().map(|outcome| outcome.demand.need.key()).collect();
        let one_by_one: Vec<_> = keys.iter().map(|key| fleet.reason_of(key)).collect();
        assert_eq!(fleet.reasons_of(&keys), one_by_one);
    }
    assert!(short > 1_000 && folded > 300, "{short} short and {folded} folded needs were asked about");
}

#[test]
fn short_needs_are_those_the_whole_report_calls_short() {
    let mut seen = 0;
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let outcomes = fleet.outcomes();
        let short: Vec<_> = outcomes.iter().filter(|outcome| !outcome.deficit.is_zero()).collect();
        let listed = fleet.short_needs();
        assert_eq!(listed.len(), short.len());
        for (one, outcome) in listed.iter().zip(short) {
            assert!(std::ptr::eq(one.demand, outcome.demand) || one.demand.need == outcome.demand.need);
            assert_eq!((&one.missing, &one.unresolved), (&outcome.deficit, &outcome.unresolved));
            assert_eq!(one.acquired, outcome.acquired.len());
            assert_eq!(one.in_flight, outcome.in_flight.len());
            assert_eq!(one.victims, outcome.victims.len());
            assert_eq!(one.domain_covers, outcome.domain.map(|domain| domain.covers));
            seen += 1;
        }
    }
    assert!(seen > 1_000, "{seen} short needs were compared");
}

/// What is free for a need, counted machine by machine.
fn counted<'m>(
    need: &Need,
    machines: &'m [Machine],
    claimed: &[&str],
) -> (usize, usize, Option<(f64, &'m str)>) {
    let free: Vec<&Machine> = machines
        .iter()
        .filter(|machine| matches!(machine.state, MachineState::Idle | MachineState::Speculative))
        .filter(|machine| need.profile.matches(machine.facts()) && need.fits_on(machine.provides()))
        .filter(|machine| !claimed.contains(&&*machine.id))
        .collect();
    let idle = free.iter().filter(|machine| machine.state == MachineState::Idle).count();
    let cheapest = free
        .iter()
        .min_by(|a, b| a.price_usd_per_hour.total_cmp(&b.price_usd_per_hour).then_with(|| a.id.cmp(&b.id)));
    (idle, free.len() - idle, cheapest.map(|machine| (machine.price_usd_per_hour, &*machine.id)))
}

#[test]
fn what_is_available_is_what_a_look_at_every_machine_counts() {
    let (mut none, mut some) = (0, 0);
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let outcomes = fleet.outcomes();
        let claimed: Vec<&str> = outcomes.iter().flat_map(|outcome| &outcome.acquired).copied().collect();
        for outcome in &outcomes {
            let need = &named(&outcomes, outcome).demand.need;
            let available = fleet.available(&need.key()).expect("a need of the last cycle");
            let cheapest = available.cheapest.as_ref().map(|(price, id)| (*price, &**id));
            let found = (available.idle, available.speculative, cheapest);
            assert_eq!(found, counted(need, &scenario.machines, &claimed));
            *if cheapest.is_none() { &mut none } else { &mut some } += 1;
        }
    }
    assert!(none > 500 && some > 500, "{none} needs had nothing left and {some} had");
}

#[test]
fn claimants_are_those_of_the_whole_report() {
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let outcomes = fleet.outcomes();
        for machine in &scenario.machines {
            let has = |o: &&Outcome<'_>| o.credited.iter().chain(&o.acquired).any(|id| **id == *machine.id);
            let holder = outcomes.iter().find(has).map(|outcome| outcome.demand.need.key());
            assert_eq!(fleet.claimant_of(&machine.id), holder, "{}", machine.id);
        }
    }
}

#[test]
fn the_demand_table_lists_what_was_reported() {
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let mut listed: Vec<_> = fleet.needs().map(|demand| demand.need.key()).collect();
        let mut reported: Vec<_> = scenario.needs.iter().map(Need::key).collect();
        listed.sort();
        reported.sort();
        reported.dedup();
        assert_eq!(listed, reported);
        for key in &reported {
            assert_eq!(fleet.need(key).expect("it was reported").need.key(), *key);
        }
        let clusters: Vec<&str> = fleet.clusters().collect();
        assert!(clusters.windows(2).all(|pair| pair[0] < pair[1]));
        let rows: usize = clusters.iter().map(|cluster| fleet.rows_of(cluster).len()).sum();
        assert_eq!((rows, fleet.rows_of("nobody").len()), (fleet.need_count(), 0));
    }
}

#[test]
fn edits_after_a_cycle_change_no_answer_about_it() {
    for seed in 0..400 {
        let mut scenario = random_scenario(seed, Size::Small);
        let mut fleet = decided(&scenario);
        let options = engine_options(&scenario.options);
        let machines = scenario.machines.clone();
        let tell = |fleet: &Fleet| {
            let outcomes = fleet.outcomes();
            let mut told: Vec<String> = outcomes.iter().map(in_words).collect();
            for outcome in &outcomes {
                let key = outcome.demand.need.key();
                told.push(format!("{:?}", fleet.outcome_of(&key)));
                told.push(format!("{:?} {:?}", fleet.available(&key), fleet.funnel(&key)));
                told.extend(machines.iter().map(|machine| format!("{:?}", fleet.why_not(&key, &machine.id))));
            }
            for machine in &machines {
                told.push(format!("{:?}", fleet.explain_machine(&machine.id, &options)));
                told.push(format!("{:?}", fleet.claimant_of(&machine.id)));
            }
            told
        };
        let before = tell(&fleet);
        for edit in random_edits(seed ^ 0xED17, &scenario, 20) {
            match &edit {
                Edit::Observe(machine) => {
                    let mut strange = machine.clone();
                    strange.zone = format!("zone-never-seen-{seed}").into();
                    fleet.observe(&strange).expect("a random machine is valid");
                }
                Edit::Remove(id) => {
                    fleet.remove(id);
                }
                // A new roll-up changes which gang a folded need is found under; that is about the needs.
                Edit::Replace { .. } | Edit::Advance { .. } | Edit::SetOptions(_) => {}
            }
            apply(&mut scenario, &edit);
        }
        assert_eq!(before, tell(&fleet), "seed {seed}");
    }
}
