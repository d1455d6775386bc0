//! What the benchmark fleets buy in their first cycle, and what they hold once they have come to rest, beside what it must cost at least.

use std::collections::BTreeSet;

use bigfleet_bound::{Bound, Problem};
use bigfleet_engine::Parallelism;
use bigfleet_model::cost::effective_cost;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::resource::ResourceVec;
use bigfleet_shapes::{Shape, generate};

use super::bed::{Bed, Served};
use super::clock::timed;

/// How often everything is carried out at most.
const ROUNDS: usize = 120;
/// How large a problem may be: a minute of work.
const PAIRS: usize = 300_000;
const SEED: u64 = 1;

/// Money spent on machines, and the least it could have been.
struct Compared {
    machines: usize,
    paid: f64,
    problem: (usize, usize, usize),
    bound: Bound,
    seconds: f64,
}

impl Compared {
    fn report(&self, shape: Shape, what: &str) {
        let Self { machines, paid, problem: (offers, wants, pairs), bound, seconds } = self;
        let least = bound.usd_per_hour;
        assert!(*machines > 100 && paid.is_finite(), "{machines} machines for {paid}");
        assert!(least > 0.0 && least <= paid * (1.0 + 1e-6), "{paid} for what costs {least} at least");
        eprintln!(
            "| {shape} | {what} | {machines} | {paid:.2} | {least:.2} | {:.3} | {offers} offers, {wants} wants, {pairs} pairs: {:?}, {seconds:.1} s |",
            paid / least,
            bound.method,
        );
    }
}

/// Measures a shape.
pub(crate) fn measure(shape: Shape) {
    let scenario = generate(shape, SEED);
    let mut bed = Bed::new(&scenario, Parallelism::default());
    bed.cycle();
    bought(&bed).report(shape, "bought in the first cycle");
    let (rounds, unrest) = bed.settle(ROUNDS);
    let (compared, short) = held(&bed, &scenario.needs);
    compared
        .report(shape, &format!("held after {rounds} rounds, {unrest} actions and {short} short needs left"));
}

/// What the last cycle ordered for needs it covered, beside the bound of what these were missing, from all machines that were free.
fn bought(bed: &Bed) -> Compared {
    let served = bed.served();
    let mut needs = Vec::new();
    let mut bills = Vec::new();
    for served in served.iter().filter(|served| !served.short && !served.acquired.is_empty()) {
        let had =
            served.credited.iter().fold(ResourceVec::ZERO, |sum, id| sum.add(bed.machines[id].provides()));
        let mut need = served.need.clone();
        need.aggregate = need.aggregate.saturating_sub(&had);
        needs.push(need);
        bills.push((served, &served.acquired));
    }
    let free = |machine: &&Machine| matches!(machine.state, MachineState::Idle | MachineState::Speculative);
    compare(bed, bills.into_iter(), bed.machines.values().filter(free), needs.iter())
}

/// Whose needs belong together, folded or not.
type Family = (Box<str>, Box<str>);

fn family(need: &Need) -> Family {
    (need.cluster.as_ref().into(), need.profile.without_same().fingerprint().into())
}

/// What needs hold that are covered, beside the bound of their rows as the clusters sent them, from all machines there are.
///
/// A need that is short is left out of both, with all that share its profile but for `Same`: what it holds says nothing about
/// what it would cost to cover it.
fn held(bed: &Bed, rows: &[Need]) -> (Compared, usize) {
    let served = bed.served();
    let short: BTreeSet<Family> =
        served.iter().filter(|served| served.short).map(|served| family(&served.need)).collect();
    let covered = served.iter().filter(|served| !short.contains(&family(&served.need)));
    let bills = covered.flat_map(|served| [(served, &served.credited), (served, &served.acquired)]);
    let rows = rows.iter().filter(|need| !short.contains(&family(need)));
    (compare(bed, bills, bed.machines.values(), rows), served.iter().filter(|served| served.short).count())
}

fn compare<'a>(
    bed: &Bed,
    bills: impl Iterator<Item = (&'a Served, &'a Vec<Box<str>>)>,
    machines: impl Iterator<Item = &'a Machine>,
    needs: impl Iterator<Item = &'a Need>,
) -> Compared {
    let (mut count, mut paid) = (0, 0.0);
    for (served, ids) in bills {
        count += ids.len();
        for machine in ids.iter().map(|id| &bed.machines[id]) {
            let bucket = served.need.profile.interruption();
            paid += effective_cost(machine.price_usd_per_hour, machine.interruption_probability, bucket);
        }
    }
    let (nanos, (problem, bound)) = timed(|| {
        let problem = Problem::of_fleet(machines, needs);
        let bound = problem.bound_within(PAIRS).expect("what is covered can be covered");
        ((problem.offer_count(), problem.want_count(), problem.variable_count()), bound)
    });
    Compared { machines: count, paid, problem, bound, seconds: nanos as f64 / 1e9 }
}
