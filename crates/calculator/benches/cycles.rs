//! Cold cycles, for now.
use bigfleet_calculator::{engine_options, load};
use bigfleet_shapes::{Shape, generate, scarce};
use std::time::Instant;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let shape: Shape = args.first().map_or("500k", |s| s).parse().unwrap();
    let is_scarce = args.get(1).is_some_and(|a| a == "scarce");
    let t = Instant::now();
    let scenario = if is_scarce { scarce(shape, 1) } else { generate(shape, 1) };
    println!("generate {:?}", t.elapsed());
    for threads in [1] {
        let t = Instant::now();
        let mut fleet = load(&scenario, bigfleet_engine::Parallelism { threads, from_clusters: 64 }).unwrap();
        println!("load {:?}", t.elapsed());
        let options = engine_options(&scenario.options);
        let mut best = std::collections::BTreeMap::new();
        let mut total = u128::MAX;
        for _ in 0..std::env::var("N").map_or(7, |n| n.parse().unwrap()) {
            fleet.forget_cache();
            let start = Instant::now();
            let mut last = start;
            let d = fleet.cycle_probed(&options, scenario.now_unix_nanos, &mut |step| {
                let now = Instant::now();
                let e = best.entry(step).or_insert(u128::MAX);
                *e = (*e).min((now - last).as_micros());
                last = now;
            });
            let took = start.elapsed().as_micros();
            if took < total {
                total = took;
            }
            if total == took {
                println!("threads {threads} total {total} us actions {} work {:?}", d.actions.len(), d.work);
            }
        }
        println!(
            "{best:?} {:?} per machine {}",
            fleet.footprint(),
            (fleet.footprint().total() - fleet.footprint().needs) / fleet.machine_count()
        );
        let t = Instant::now();
        for _ in 0..1000 {
            fleet.cycle(&options, scenario.now_unix_nanos);
        }
        println!("quiet {:?}", t.elapsed() / 1000);
        let t = Instant::now();
        let f = fleet.fork();
        println!("fork {:?}", t.elapsed());
        drop(f);
    }
}
