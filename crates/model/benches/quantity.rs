//! How fast quantities are read: the first thing that happens to every amount that enters.

use std::hint::black_box;

use bigfleet_model::quantity::{Quantity, parse_milli_ceil, parse_units_ceil};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// What pods really ask for.
const TYPICAL: [&str; 8] = ["500m", "2", "16Gi", "1.5", "100Mi", "32Gi", "4", "250m"];

/// What only the general evaluation takes.
const LONG: [&str; 4] = [
    "0.000000000000000000867361737988403547205962240695953369140625Ei",
    "9223372036854775806.999999999",
    "000000000000000000000000000000000000000000001Gi",
    "0.9n",
];

/// Reads every text in turn and adds up the results, so that a reading that fails cannot count as fast.
fn sum<T: Copy>(texts: &[&'static str], read: impl Fn(&str) -> T, add: impl Fn(u64, T) -> u64) -> u64 {
    texts.iter().fold(0, |total, text| add(total, read(black_box(text))))
}

fn quantities(criterion: &mut Criterion) {
    let units = |quantity: Quantity| quantity.to_units_ceil().unwrap_or(0);
    let parse = |text: &str| Quantity::parse(text).expect("a quantity");
    assert_eq!(sum(&TYPICAL, parse, |total, quantity| total + units(quantity)), 51_644_465_162);

    let mut group = criterion.benchmark_group("quantity");
    group.throughput(Throughput::Elements(TYPICAL.len() as u64));
    group.bench_function("parse", |bencher| {
        bencher.iter(|| sum(&TYPICAL, parse, |total, quantity| total + u64::from(quantity.is_zero())));
    });
    group.bench_function("parse_milli_ceil", |bencher| {
        bencher.iter(|| sum(&TYPICAL, |text| parse_milli_ceil(text).expect("an amount"), u64::wrapping_add));
    });
    group.bench_function("parse_units_ceil", |bencher| {
        bencher.iter(|| sum(&TYPICAL, |text| parse_units_ceil(text).expect("an amount"), u64::wrapping_add));
    });
    group.bench_function("print", |bencher| {
        let quantities = TYPICAL.map(parse);
        let mut text = String::with_capacity(256);
        bencher.iter(|| {
            use std::fmt::Write;
            text.clear();
            for quantity in &quantities {
                write!(text, "{}", black_box(quantity)).expect("a string takes everything");
            }
            text.len()
        });
    });
    group.throughput(Throughput::Elements(LONG.len() as u64));
    group.bench_function("parse_long", |bencher| {
        bencher.iter(|| sum(&LONG, parse, |total, quantity| total + u64::from(quantity.is_zero())));
    });
    group.finish();
}

criterion_group!(benches, quantities);
criterion_main!(benches);
