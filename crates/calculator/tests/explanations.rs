//! Explanations must tell the story of the decision: what they claim is checked against the model's own
//! rules and, where they promise something, against the oracle.

use bigfleet_calculator::{engine_options, load};
use bigfleet_engine::{ActionKind, Exclusion, Fleet, Outcome, Parallelism, Rule, Tried};
use bigfleet_model::cost::{effective_cost, priority_gap, victim_score};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use bigfleet_oracle::{Size, random_scenario};
use bigfleet_scenario::answer::{NormalizedNeed, Reason, amounts};
use bigfleet_scenario::{Scenario, vectors};

fn scenarios() -> impl Iterator<Item = Scenario> {
    let known = vectors::all().expect("the vectors can be read").into_iter().map(|vector| vector.scenario);
    known.chain((0..400).map(|seed| random_scenario(seed, Size::Small)))
}

fn decided(scenario: &Scenario) -> Fleet {
    let mut fleet = load(scenario, Parallelism::default()).expect("a valid scenario");
    fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
    fleet
}

/// Needs that share an identity (a plain one and a folded one) are told apart by nothing a caller can name.
fn is_unique(outcome: &Outcome<'_>, all: &[Outcome<'_>]) -> bool {
    all.iter().filter(|other| other.demand.need.key() == outcome.demand.need.key()).count() == 1
}

fn check_exclusion(need: &Need, outcome: &Outcome<'_>, machine: &Machine, exclusion: &Exclusion) {
    let id = &*machine.id;
    let has = [&outcome.credited, &outcome.acquired, &outcome.in_flight, &outcome.victims];
    let has_it = has.iter().any(|list| list.contains(&id));
    let matches = need.profile.matches(machine.facts());
    let fits = need.fits_on(machine.provides());
    let short = !outcome.deficit.is_zero();
    let holds = match exclusion {
        Exclusion::None => has_it,
        Exclusion::Dead(state) => machine.state == *state,
        Exclusion::Requirement { .. } => !matches,
        Exclusion::TooSmall { resource, needed, provides } => {
            !fits && machine.provides().get(resource) == *provides && need.min_unit.get(resource) == *needed
        }
        Exclusion::Covered => !short || outcome.unresolved.is_none(),
        Exclusion::AddsNothing => {
            let rest = outcome.unresolved.as_ref().unwrap_or(&outcome.deficit);
            short && !machine.provides().contributes(rest)
        }
        Exclusion::Parked => need.parked,
        Exclusion::NoDomain => need.profile.same().is_some() && outcome.domain.is_none(),
        Exclusion::OtherDomain { chosen, lies_in } => {
            let key = need.profile.same().expect("only gangs have domains").key();
            chosen != lies_in && machine.facts().value(key) == Some(lies_in)
        }
        Exclusion::ClaimedBy { need: other, .. } | Exclusion::PreemptedFor { need: other } => {
            *other != need.key()
        }
        Exclusion::NotLowerPriority { assigned } => {
            *assigned == machine.assigned.priority && *assigned >= need.profile.priority()
        }
        Exclusion::InTransit(state) => {
            machine.state == *state && (state.is_transitional() || *state == MachineState::Configuring)
        }
        Exclusion::Spread => need.profile.strict_spread().is_some(),
        Exclusion::Incomplete => need.profile.same().is_some() && outcome.unresolved.is_some(),
    };
    assert!(holds, "{exclusion:?} for {id} and {:?}: {outcome:?}", need.key());
    assert!(!has_it || *exclusion == Exclusion::None, "{id} serves the need, yet {exclusion:?}");
}

#[test]
fn why_not_names_a_rule_that_really_excludes_the_pair() {
    let mut pairs = 0;
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let outcomes = fleet.outcomes();
        for outcome in outcomes.iter().filter(|outcome| is_unique(outcome, &outcomes)) {
            let need = &outcome.demand.need;
            for machine in &scenario.machines {
                let exclusion = fleet.why_not(&need.key(), &machine.id).expect("both are known");
                check_exclusion(need, outcome, machine, &exclusion);
                pairs += 1;
            }
        }
        assert_eq!(fleet.why_not(&Need::key(&outcome_free_need()), "nobody"), None);
    }
    assert!(pairs > 100_000, "{pairs} pairs were checked");
}

fn outcome_free_need() -> Need {
    let bucket = bigfleet_model::penalty::PenaltyBucket::ZERO;
    let profile = Profile::new(vec![], vec![], 77, bucket, bucket);
    Need::of_unit("no-such-cluster", profile.into(), bigfleet_model::resource::ResourceVec::ZERO)
}

#[test]
fn the_funnel_accounts_for_every_machine() {
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        for outcome in fleet.outcomes() {
            let funnel = fleet.funnel(&outcome.demand.need.key()).expect("the need is known");
            let removed: usize = funnel.removed.iter().map(|removed| removed.machines).sum();
            let held: usize = funnel.holders.iter().map(|holder| holder.machines).sum();
            let held = held + funnel.unlisted.machines;
            assert_eq!(funnel.considered, removed + held + funnel.its_own);
            assert_eq!(held, funnel.useful.values().sum::<usize>());
            assert_eq!(funnel.considered, scenario.machines.len());
        }
    }
}

#[test]
fn a_trial_foresees_what_a_whole_cycle_decides() {
    let (mut helped, mut useless, mut preempting) = (0, 0, 0);
    for scenario in scenarios() {
        let options = engine_options(&scenario.options);
        let now = scenario.now_unix_nanos;
        let mut fleet = decided(&scenario);
        let reported: Vec<NeedKey> = fleet.needs().map(|demand| demand.need.key()).collect();
        // What is observed after the last cycle must not matter: the first free machine breaks.
        let free = scenario.machines.iter().find(|machine| machine.state == MachineState::Idle);
        let asked = fleet.fork();
        if let Some(free) = free {
            let mut broken = free.clone();
            broken.state = MachineState::Failed;
            broken.last_error = "lost".into();
            fleet.observe(&broken).expect("a valid machine");
        }
        let trials = fleet.trials(&options, now);
        for key in &reported {
            let changes = fleet.changes_worth_trying(key, fleet.funnel(key).as_ref());
            for change in changes.expect("the need was decided on") {
                let tried = fleet.try_change(&trials, key, &change).expect("the need is there");
                let mut fork = asked.fork();
                let need = &asked.need(key).expect("the need is there").need;
                let changed = change.apply(need).expect("it has what is taken away");
                let rows = asked
                    .rows_of(&key.cluster)
                    .iter()
                    .map(|row| if row.need.key() == *key { changed.clone() } else { row.need.clone() });
                fork.replace(&key.cluster, rows.collect(), now).expect("a valid roll-up");
                fork.cycle(&options, now);
                let outcome = fork.outcome_of(&changed.key()).expect("the need was decided on");
                let served = matches!(outcome.reason, None | Some(bigfleet_engine::Reason::InFlight));
                let (acquires, preempts) = (outcome.acquired.len(), outcome.victims.len());
                assert_eq!(tried, Tried { satisfied: served, acquires, preempts }, "{key:?} {change:?}");
                *if served { &mut helped } else { &mut useless } += 1;
                preempting += usize::from(preempts > 0);
            }
        }
    }
    assert!(
        helped > 1_000 && useless > 1_000 && preempting > 100,
        "{helped} changes helped, {useless} did not, {preempting} preempted"
    );
}

#[test]
fn what_would_help_helps_when_the_oracle_decides() {
    let mut remedies = 0;
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        let options = engine_options(&scenario.options);
        for (at, need) in scenario.needs.iter().enumerate() {
            let Some(found) = fleet.what_would_help(&need.key(), &options, scenario.now_unix_nanos) else {
                continue;
            };
            for remedy in found {
                let mut better = scenario.clone();
                better.needs[at] = remedy.change.apply(need).expect("it has what is taken away");
                let (cluster, fingerprint) = (&*need.cluster, better.needs[at].profile.fingerprint());
                // Needs that now share an identity are merged at ingest; that is another demand.
                let twins = better.needs.iter().filter(|n| n.key() == better.needs[at].key()).count();
                if twins > 1 {
                    continue;
                }
                let answer = bigfleet_oracle::decide(&better);
                let is_it = |row: &NormalizedNeed| {
                    let need = &better.needs[at];
                    (&*row.cluster, &*row.fingerprint) == (cluster, fingerprint)
                        && row.aggregate == amounts(&need.aggregate)
                        && row.min_unit == amounts(&need.min_unit)
                };
                let rows: Vec<u32> = (0..)
                    .zip(&answer.normalized_needs)
                    .filter(|(_, row)| is_it(row))
                    .map(|(row, _)| row)
                    .collect();
                // A folded need may look the same in every field.
                let [row] = rows[..] else { continue };
                let verdict = answer.reasons.iter().find(|verdict| verdict.need == row);
                let short = verdict.is_some_and(|verdict| verdict.reason != Reason::InFlight);
                assert!(!short, "{:?} does not help {:?}", remedy.change, need.key());
                remedies += 1;
            }
        }
    }
    assert!(remedies > 1_000, "{remedies} remedies were checked");
}

#[test]
fn the_runner_up_is_the_best_of_those_left() {
    let (mut free, mut victims) = (0, 0);
    for scenario in scenarios() {
        let mut fleet = load(&scenario, Parallelism::default()).expect("a valid scenario");
        let options = engine_options(&scenario.options);
        let decision = fleet.cycle(&options, scenario.now_unix_nanos);
        let outcomes = fleet.outcomes();
        let mut explainer = fleet.explainer(&options);
        for action in &decision.actions {
            let why = explainer.explain(action).expect("every action of the last cycle can be explained");
            let Some(demand) = &action.need else { continue };
            let own = outcomes.iter().position(|outcome| std::sync::Arc::ptr_eq(outcome.demand, demand));
            let own = own.expect("an action is for a need of this cycle");
            let need = &demand.need;
            let acted_on = scenario.machines.iter().find(|machine| machine.id == action.machine);
            let acted_on = acted_on.expect("an action is for a machine of the fleet");
            let fits = |machine: &&Machine| {
                // A gang takes in one domain.
                let same = need.profile.same().map(bigfleet_model::requirement::Requirement::key);
                need.fits_on(machine.provides())
                    && need.profile.matches(machine.facts())
                    && same.is_none_or(|key| machine.facts().value(key) == acted_on.facts().value(key))
            };
            let fitting = scenario.machines.iter().filter(fits);
            let expected = if action.kind == ActionKind::Preempt {
                victims += 1;
                let score = |machine: &Machine| {
                    let stamp = &machine.assigned;
                    let gap = priority_gap(need.profile.priority(), stamp.priority);
                    let drain_secs = options.estimated_drain_nanos as f64 / 1e9;
                    let (interruption, reclamation) =
                        (stamp.interruption_penalty_usd, stamp.reclamation_penalty_usd);
                    victim_score(&options.weights, gap, drain_secs, interruption, reclamation)
                };
                let lower = |priority: i32| priority < need.profile.priority();
                let holder = |machine: &Machine| {
                    outcomes.iter().find(|outcome| outcome.credited.contains(&&*machine.id))
                };
                let left = fitting.filter(|machine| {
                    machine.state == MachineState::Configured
                        && lower(machine.assigned.priority)
                        && holder(machine).is_none_or(|holder| lower(holder.demand.priority()))
                        && !outcomes.iter().any(|outcome| outcome.victims.contains(&&*machine.id))
                });
                let claimed = |machine: &Machine| {
                    holder(machine).is_some() || !options.ready.contains(&machine.cluster)
                };
                let best = left.min_by(|a, b| {
                    let order = claimed(a).cmp(&claimed(b)).then(score(b).total_cmp(&score(a)));
                    order.then_with(|| a.id.cmp(&b.id))
                });
                best.map(|machine| (machine.id.clone(), score(machine)))
            } else {
                free += 1;
                // Outcomes stand in demand order, which decides among equals.
                let before = |at: usize| {
                    let precedes = outcomes[at].demand.need.cmp_precedence(&outcomes[own].demand.need);
                    precedes.then(at.cmp(&own)).is_le()
                };
                let elastic = |machine: &Machine| machine.capacity_type.is_elastic();
                let idle = |machine: &Machine| machine.state == MachineState::Idle;
                let asking = |machine: &Machine| {
                    let (price, risk) = (machine.price_usd_per_hour, machine.interruption_probability);
                    let cost = effective_cost(price, risk, need.profile.interruption());
                    if idle(machine) && elastic(machine) { cost / 2.0 } else { cost }
                };
                // What was missing when the machine was picked, of all that was not given back.
                let provides = |id: &&str| {
                    let machine = scenario.machines.iter().find(|machine| *machine.id == **id);
                    machine.expect("a machine of the fleet").provides().clone()
                };
                let outcome = &outcomes[own];
                let credited = outcome.credited.iter().filter(|id| !outcome.taken_over.contains(id));
                let earlier = outcome.acquired.iter().take_while(|id| **id != &*action.machine);
                let missing = credited
                    .chain(earlier)
                    .map(provides)
                    .fold(need.aggregate.clone(), |missing, one| missing.saturating_sub(&one));
                let share = |machine: &Machine| {
                    need.aggregate.iter().fold(0.0, |sum, (name, amount)| {
                        let adds = machine.provides().get(name).min(missing.get(name));
                        if missing.get(name) == 0 { sum } else { sum + adds as f64 / amount as f64 }
                    })
                };
                let size = |machine: &Machine| {
                    need.aggregate.iter().fold(0.0, |sum, (name, amount)| {
                        sum + machine.provides().get(name) as f64 / amount as f64
                    })
                };
                let bargain = |a: &&Machine, b: &&Machine| {
                    let fixed = |machine: &Machine| idle(machine) && !elastic(machine);
                    let finite = |machine: &Machine| asking(machine).is_finite();
                    let per_share = |machine: &Machine| asking(machine) / share(machine);
                    finite(b)
                        .cmp(&finite(a))
                        .then(fixed(b).cmp(&fixed(a)))
                        .then(per_share(a).total_cmp(&per_share(b)))
                        .then(idle(b).cmp(&idle(a)))
                        .then(share(b).total_cmp(&share(a)))
                        .then(size(a).total_cmp(&size(b)))
                        .then_with(|| a.id.cmp(&b.id))
                };
                let left = fitting.filter(|machine| {
                    let taken = outcomes.iter().position(|outcome| outcome.acquired.contains(&&*machine.id));
                    matches!(machine.state, MachineState::Idle | MachineState::Speculative)
                        && taken.is_none_or(|at| !before(at))
                        && share(machine) > 0.0
                });
                assert_eq!((why.share, why.figure), (Some(share(acted_on)), asking(acted_on)));
                let best = left.min_by(bargain);
                let given_back = best.is_some_and(|best| {
                    need.profile.strict_spread().is_none() && bargain(&best, &acted_on).is_lt()
                });
                assert_eq!(why.runner_up.as_ref().is_some_and(|next| next.given_back), given_back);
                best.map(|machine| (machine.id.clone(), asking(machine)))
            };
            let found = why.runner_up.as_ref().map(|next| (next.machine.clone(), next.figure));
            assert_eq!(found, expected, "{action:?}");
            assert_eq!(fleet.explain_action(action, &options), Some(why), "asked alone it says the same");
        }
    }
    assert!(free > 1_000 && victims > 100, "{free} acquisitions and {victims} preemptions were compared");
}

#[test]
fn the_coverage_of_domains_is_the_sum_of_their_machines() {
    let mut gangs = 0;
    for scenario in scenarios() {
        let fleet = decided(&scenario);
        for need in &scenario.needs {
            let Some(same) = need.profile.same() else {
                assert_eq!(fleet.domain_coverage(&need.key()), None, "no gang, no domains");
                continue;
            };
            // Rows of one identity are merged at ingest.
            let need = &fleet.need(&need.key()).expect("the need is known").need;
            let outcome = fleet.outcome_of(&need.key()).expect("the need was decided on");
            let mut expected: Vec<(u32, u32, String, usize, usize)> = Vec::new();
            let counts = |machine: &&Machine| {
                !matches!(machine.state, MachineState::Deleting | MachineState::Failed)
                    && need.fits_on(machine.provides())
                    && need.profile.matches(machine.facts())
            };
            let counting: Vec<&Machine> = scenario.machines.iter().filter(counts).collect();
            let mut values: Vec<&str> =
                counting.iter().filter_map(|machine| machine.facts().value(same.key())).collect();
            values.sort_unstable();
            values.dedup();
            for value in values {
                let all = counting.iter().filter(|machine| machine.facts().value(same.key()) == Some(value));
                let reachable = all.clone().filter(|machine| {
                    let has = [&outcome.credited, &outcome.acquired];
                    matches!(machine.state, MachineState::Idle | MachineState::Speculative)
                        || has.iter().any(|list| list.contains(&&*machine.id))
                });
                let carried = |machines: &mut dyn Iterator<Item = &&Machine>| {
                    let sum = machines.fold(ResourceVec::ZERO, |sum, one| sum.add(one.provides()));
                    let wanted = need.aggregate.iter().filter(|(_, amount)| *amount > 0);
                    let parts =
                        wanted.map(|(name, amount)| u128::from(sum.get(name)) * 1000 / u128::from(amount));
                    parts.min().map_or(1000, |part| part.min(1000) as u32)
                };
                expected.push((
                    carried(&mut reachable.clone()),
                    carried(&mut all.clone()),
                    value.to_owned(),
                    all.count(),
                    reachable.count(),
                ));
            }
            expected.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.cmp(&b.2)));
            let found = fleet.domain_coverage(&need.key()).expect("a gang that was decided on");
            let found: Vec<_> = found
                .into_iter()
                .map(|d| {
                    (d.reachable_per_mille, d.per_mille, d.domain.into(), d.machines, d.reachable_machines)
                })
                .collect();
            assert_eq!(found, expected);
            gangs += 1;
        }
    }
    assert!(gangs > 500, "{gangs} gangs were looked at");
}

#[test]
fn an_action_beats_its_runner_up() {
    let mut compared = 0;
    for scenario in scenarios() {
        let mut fleet = load(&scenario, Parallelism::default()).expect("a valid scenario");
        let options = engine_options(&scenario.options);
        let decision = fleet.cycle(&options, scenario.now_unix_nanos);
        for action in &decision.actions {
            let why = fleet.explain_action(action, &options);
            let why = why.expect("every action of the last cycle can be explained");
            let story = fleet.explain_machine(&action.machine, &options).expect("the machine is known");
            assert_eq!(story.ordered, Some(action.kind));
            let machine = scenario.machines.iter().find(|machine| machine.id == action.machine);
            let elastic = machine.is_some_and(|machine| machine.capacity_type.is_elastic());
            let expected: &[Rule] = match action.kind {
                ActionKind::Bootstrap if elastic => &[Rule::Bargain],
                ActionKind::Bootstrap => &[Rule::PaidFor],
                ActionKind::Provision => &[Rule::Bargain],
                ActionKind::Preempt => &[Rule::BestVictim, Rule::UnclaimedVictim],
                ActionKind::Reclaim => &[Rule::Unclaimed],
                ActionKind::Delete => &[Rule::HoldOver],
            };
            assert!(expected.contains(&why.rule), "{action:?} {why:?}");
            let Some(runner_up) = &why.runner_up else { continue };
            assert_ne!(runner_up.machine, action.machine);
            compared += 1;
        }
    }
    assert!(compared > 1_000, "{compared} runner-ups were compared");
}
