//! How fast vectors are added, subtracted and compared: the arithmetic under every decision.
//!
//! The target is single-digit nanoseconds on four dimensions. `known` vectors are made of the interned names
//! nearly every machine has; `foreign` ones have two names of their own, kept as shared strings; `mixed` pairs
//! list different names, so that the fast path for equal lists cannot help.

use std::hint::black_box;

use bigfleet_model::resource::ResourceVec;
use criterion::{Criterion, criterion_group, criterion_main};

fn vector<const N: usize>(quantities: [(&str, &str); N]) -> ResourceVec {
    ResourceVec::parse(quantities).expect("a vector")
}

/// The smaller and the larger vector of each kind.
fn pairs() -> [(&'static str, ResourceVec, ResourceVec); 3] {
    let pod =
        vector([("cpu", "500m"), ("memory", "2Gi"), ("ephemeral-storage", "10Gi"), ("nvidia.com/gpu", "1")]);
    let machine =
        vector([("cpu", "96"), ("memory", "768Gi"), ("ephemeral-storage", "2Ti"), ("nvidia.com/gpu", "8")]);
    let foreign_pod =
        vector([("cpu", "4"), ("memory", "8Gi"), ("example.org/fpga", "1"), ("hugepages-2Mi", "64Mi")]);
    let foreign_machine =
        vector([("cpu", "64"), ("memory", "256Gi"), ("example.org/fpga", "4"), ("hugepages-2Mi", "2Gi")]);
    let small = vector([("cpu", "500m"), ("memory", "2Gi"), ("ephemeral-storage", "10Gi"), ("pods", "1")]);
    [("known", pod, machine.clone()), ("foreign", foreign_pod, foreign_machine), ("mixed", small, machine)]
}

fn vectors(criterion: &mut Criterion) {
    for (kind, small, large) in pairs() {
        // The work is there: a benchmark of empty vectors would be fast too.
        assert_eq!((small.len(), large.len()), (4, 4));
        assert_eq!(small.add(&large).saturating_sub(&large), small);
        assert!(!small.covers(&large) && small.contributes(&large));
        assert_eq!(large.covers(&small), kind != "mixed");

        let mut group = criterion.benchmark_group(format!("resource/{kind}"));
        // The result is looked at where it lies: moving it into the benchmark would cost more than making it.
        group.bench_function("add", |b| {
            b.iter(|| {
                black_box(&black_box(&large).add(black_box(&small)));
            });
        });
        group.bench_function("sub", |b| {
            b.iter(|| {
                black_box(&black_box(&large).saturating_sub(black_box(&small)));
            });
        });
        group.bench_function("covers", |b| b.iter(|| black_box(&large).covers(black_box(&small))));
        group.bench_function("contributes", |b| b.iter(|| black_box(&large).contributes(black_box(&small))));
        group.finish();
    }
}

criterion_group!(benches, vectors);
criterion_main!(benches);
