//! Vectors of common names and one other stay off the heap.

use allocation_counter::measure;
use bigfleet_model::resource::{ResourceName, ResourceVec};

fn vector(quantities: &[(&str, &str)]) -> ResourceVec {
    ResourceVec::parse(quantities.iter().copied()).unwrap()
}

/// Pairs of vectors whose union has common names and at most one other.
fn small_pairs() -> Vec<(ResourceVec, ResourceVec)> {
    let known = [("cpu", "4"), ("memory", "16Gi"), ("nvidia.com/gpu", "1"), ("pods", "110")];
    let mixed = |other| [known[0], known[1], other, known[3]];
    let mut pairs = Vec::new();
    for list in [known, mixed(("a.org/x", "1")), mixed(("cpus", "3")), mixed(("zone.org/z", "4"))] {
        for split in 0..=4 {
            pairs.push((vector(&list[..split]), vector(&list[split..])));
            pairs.push((vector(&list), vector(&list[split..])));
            pairs.push((vector(&list[..split]), vector(&list)));
        }
    }
    pairs
}

#[test]
fn arithmetic_on_common_names_and_one_other_allocates_nothing() {
    for (a, b) in small_pairs() {
        let info = measure(|| {
            let sum = a.add(&b);
            assert!(sum.covers(&a) && sum.max(&a).covers(&b));
            assert!(a.is_zero() || a.contributes(&sum));
            assert!(sum.saturating_sub(&b).scale(3).covers(&a.saturating_sub(&b)));
            assert!(sum.cmp_by_name(&a).is_ge());
            let copy = sum.clone();
            assert!(copy.iter().all(|(name, amount)| sum.get(name) == amount));
        });
        assert_eq!(info.count_total, 0, "{a} and {b}");
    }
}

#[test]
fn making_a_vector_of_common_names_allocates_nothing() {
    let info = measure(|| {
        let parsed =
            vector(&[("cpu", "1500m"), ("memory", "16Gi"), ("ephemeral-storage", "1Ti"), ("pods", "0")]);
        let amounts = [(ResourceName::MEMORY, 17_179_869_184), (ResourceName::CPU, 1_500)];
        let made = ResourceVec::new(amounts).unwrap();
        assert!(parsed.covers(&made) && !made.covers(&parsed));
    });
    assert_eq!(info.count_total, 0);
}

#[test]
fn common_names_stay_off_the_heap_in_any_number() {
    let all =
        [("cpu", "4"), ("ephemeral-storage", "1"), ("memory", "2"), ("nvidia.com/gpu", "1"), ("pods", "1")];
    let all = vector(&all);
    let info = measure(|| assert!(all.add(&all).saturating_sub(&all) == all));
    assert_eq!(info.count_total, 0);
}

#[test]
fn the_counter_counts() {
    // Five names of their own do not fit: if this one were 0, the zeros above would prove nothing.
    let many = vector(&[("a", "1"), ("b", "1"), ("c", "1"), ("d", "1"), ("e", "1")]);
    let info = measure(|| assert!(many.add(&many).covers(&many)));
    assert!(info.count_total > 0);
}
