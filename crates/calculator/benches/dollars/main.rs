//! How good decisions are, in dollars: what is bought, beside what the demand must cost at least.
//!
//! `cargo bench -p bigfleet-calculator --bench dollars -- [--seeds N] [--orders] [--at-rest [SHAPE…]]`
//!
//! Random demands on a catalogue at cloud prices (`bigfleet_shapes::cloud_demand`). The engine decides; what it buys is compared with
//! the linear lower bound of `bigfleet-bound`. Once to cover the sums, once until every pod has a place: pods are placed
//! largest first where they fit best, and what finds no place is demanded on top. `--orders` does the same with models of other
//! rules, which are not the engine. `--at-rest` brings the benchmark fleets to rest and compares what they hold with the bound.

#[path = "../shared/bed.rs"]
#[allow(dead_code, reason = "each benchmark uses its part")]
mod bed;
#[path = "../shared/clock.rs"]
#[allow(dead_code, reason = "each benchmark uses its part")]
mod clock;
mod orders;
mod pods;
mod rest;

use bed::Bed;
use bigfleet_bound::{Offer, Problem};
use bigfleet_engine::Parallelism;
use bigfleet_model::cost::effective_cost;
use bigfleet_shapes::{CloudDemand, Shape, cloud_demand};
use clock::timed;
use orders::{Candidate, ORDERS, Order, Shelf};
use pods::{Amounts, Cluster, amounts, covers, plus, vector};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A need of so many pods is a large one.
const LARGE: usize = 100;

/// Somebody who buys machines for a need.
trait Buyer {
    /// Buys for a demand of which so much is missing; returns the effective cost and the size of every machine bought.
    fn buy(&mut self, demand: Amounts, missing: Amounts) -> Vec<(f64, Amounts)>;
}

/// The engine, through the calculator.
struct Engine<'a> {
    bed: Bed,
    demand: &'a CloudDemand,
}

impl<'a> Engine<'a> {
    fn new(demand: &'a CloudDemand) -> Self {
        Self { bed: Bed::new(&demand.scenario(), Parallelism::default()), demand }
    }
}

impl Buyer for Engine<'_> {
    fn buy(&mut self, demand: Amounts, _: Amounts) -> Vec<(f64, Amounts)> {
        let mut need = self.demand.need.clone();
        need.aggregate = vector(demand);
        self.bed.replace("shop", vec![need]);
        let decision = self.bed.cycle();
        self.bed.carry_out(&decision);
        let bucket = self.demand.need.profile.interruption();
        let bought = decision.actions.iter().map(|action| {
            let machine = &self.bed.machines[&action.machine];
            assert_eq!(&*machine.cluster, "shop", "nothing but purchases: {:?}", action.kind);
            let cost = effective_cost(machine.price_usd_per_hour, machine.interruption_probability, bucket);
            (cost, amounts(machine.provides()))
        });
        let bought: Vec<_> = bought.collect();
        let [served] = &self.bed.served()[..] else { panic!("one need") };
        assert!(!served.short, "there is enough of everything");
        bought
    }
}

/// A model of an order.
struct Model {
    shelf: Shelf,
    order: Order,
}

impl Model {
    fn new(demand: &CloudDemand, order: Order) -> Self {
        let bucket = demand.need.profile.interruption();
        let shelf = demand.admitted().map(|offer| Candidate {
            cost: effective_cost(offer.price_usd_per_hour, offer.interruption_probability, bucket),
            gives: amounts(&offer.provides),
            left: offer.stock,
        });
        Self { shelf: shelf.collect(), order }
    }
}

impl Buyer for Model {
    fn buy(&mut self, demand: Amounts, missing: Amounts) -> Vec<(f64, Amounts)> {
        let picks = (self.order)(&self.shelf, demand, missing);
        orders::take(&mut self.shelf, &picks);
        picks.iter().map(|at| (self.shelf[*at].cost, self.shelf[*at].gives)).collect()
    }
}

/// What one demand came to.
#[derive(Clone, Copy, Default)]
struct Bill {
    bound: f64,
    sums: f64,
    placed: f64,
    machines: usize,
    machines_placed: usize,
}

fn bill(demand: &CloudDemand, bound: f64, buyer: &mut dyn Buyer) -> Bill {
    let wanted = amounts(&demand.need.aggregate);
    let mut cluster = Cluster::new(&demand.pods);
    let mut bill = Bill { bound, ..Bill::default() };
    let (mut held, mut missing) = ([0; 2], wanted);
    loop {
        let bought = buyer.buy(plus(held, missing), missing);
        assert!(!bought.is_empty(), "something is missing and nothing was bought");
        bill.placed += bought.iter().map(|(cost, _)| cost).sum::<f64>();
        bill.machines_placed += bought.len();
        if held == [0; 2] {
            (bill.sums, bill.machines) = (bill.placed, bill.machines_placed);
            let all = bought.iter().fold([0; 2], |sum, (_, gives)| plus(sum, *gives));
            assert!(covers(all, wanted), "the sums are covered");
            assert!(bill.sums >= bound * (1.0 - 1e-6), "{} for what costs {bound} at least", bill.sums);
        }
        held = bought.iter().fold(held, |sum, (_, gives)| plus(sum, *gives));
        match cluster.join(bought.iter().map(|(_, gives)| *gives)) {
            Some(unplaced) => missing = unplaced,
            None => return bill,
        }
    }
}

/// The least a demand can cost.
fn lower_bound(demand: &CloudDemand) -> f64 {
    let mut problem = Problem::default();
    let admitted = demand.admitted().map(|offer| Offer {
        provides: offer.provides.clone(),
        price_usd_per_hour: offer.price_usd_per_hour,
        interruption_probability: offer.interruption_probability,
        stock: offer.stock,
    });
    let admitted = admitted.map(|offer| problem.offer(offer)).collect();
    let set = problem.set(admitted);
    problem.want(&demand.need.aggregate, demand.need.profile.interruption(), set);
    problem.exact().expect("a demand that can be served").usd_per_hour
}

/// The ratio of totals and the mean of ratios.
fn ratios<'a>(bills: impl Iterator<Item = &'a Bill>, paid: impl Fn(&Bill) -> f64) -> (f64, f64) {
    let (mut all, mut least, mut mean, mut count) = (0.0, 0.0, 0.0, 0.0);
    for bill in bills {
        all += paid(bill);
        least += bill.bound;
        mean += paid(bill) / bill.bound;
        count += 1.0;
    }
    (all / least, mean / count)
}

/// One line of the table: what every demand came to with a buyer of this kind.
fn row<'a, B: Buyer>(name: &str, demands: &'a [(CloudDemand, f64)], buyer: impl Fn(&'a CloudDemand) -> B) {
    let (nanos, bills) = timed(|| {
        let bills = demands.iter().map(|(demand, bound)| bill(demand, *bound, &mut buyer(demand)));
        bills.collect::<Vec<Bill>>()
    });
    let large = || {
        demands.iter().zip(&bills).filter(|((demand, _), _)| demand.pods.len() >= LARGE).map(|(_, bill)| bill)
    };
    let placed = ratios(bills.iter(), |bill| bill.placed);
    let sums = ratios(bills.iter(), |bill| bill.sums);
    let (large_placed, large_sums) = (ratios(large(), |bill| bill.placed), ratios(large(), |bill| bill.sums));
    let machines =
        |of: &dyn Fn(&Bill) -> usize| bills.iter().map(of).sum::<usize>() as f64 / bills.len() as f64;
    eprintln!(
        "| {name:<44} | {:.3} ({:.3}) | {:.3} ({:.3}) | {:.3} ({:.3}) | {:.3} ({:.3}) | {:5.1} | {:5.1} | {:7.0} |",
        placed.0,
        placed.1,
        sums.0,
        sums.1,
        large_placed.0,
        large_placed.1,
        large_sums.0,
        large_sums.1,
        machines(&|bill| bill.machines),
        machines(&|bill| bill.machines_placed),
        nanos as f64 / 1e3 / demands.len() as f64,
    );
}

fn catalogue(seeds: u64, models: bool) {
    let (nanos, demands) = timed(|| {
        let bounded = |demand| (lower_bound(&demand), demand);
        (0..seeds).map(cloud_demand).map(bounded).map(|(bound, demand)| (demand, bound)).collect::<Vec<_>>()
    });
    let large = demands.iter().filter(|(demand, _)| demand.pods.len() >= LARGE).count();
    assert!(large > 0 && demands.iter().all(|(_, bound)| *bound > 0.0), "demands that cost something");
    eprintln!(
        "{seeds} demands, {large} of them of {LARGE} pods or more; drawn and bounded in {:.1} s",
        nanos as f64 / 1e9
    );
    eprintln!("cost ÷ bound: ratio of totals (mean over seeds)");
    eprintln!(
        "| order | all pods placed | sums | large, placed | large, sums | machines | machines, placed | µs a demand |"
    );
    eprintln!("|---|---|---|---|---|---|---|---|");
    row("the engine", &demands, Engine::new);
    for (name, order) in ORDERS.iter().filter(|_| models) {
        row(name, &demands, |demand| Model::new(demand, *order));
    }
}

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut seeds, mut models, mut at_rest, mut shapes) = (400, false, false, Vec::<Shape>::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--seeds" => {
                seeds = arguments.next().and_then(|n| n.parse().ok()).expect("--seeds takes a number");
            }
            "--orders" => models = true,
            "--at-rest" => at_rest = true,
            shape => shapes.push(shape.parse().unwrap_or_else(|unknown| panic!("{unknown}"))),
        }
    }
    if !at_rest {
        catalogue(seeds, models);
        return;
    }
    if shapes.is_empty() {
        shapes = vec![Shape::Fleet5k, Shape::Fleet50k, Shape::Fleet500k];
    }
    shapes.into_iter().for_each(rest::measure);
}
