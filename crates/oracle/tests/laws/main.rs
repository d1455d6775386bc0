//! Laws that follow from the rules and can be checked without following them.
//!
//! Each law looks at an input and its answer from outside, with the vocabulary's own matching and sums, which
//! the oracle does not use. A law that fails prints the smallest fleet that breaks it, as a vector file.

mod case;
mod demand;
mod order;
mod supply;

use bigfleet_oracle::{Size, as_vector, random_scenario, shrink};

use case::Case;

/// Holds a law against random fleets of every size.
fn hold(law: fn(&Case) -> Result<(), String>) {
    for (size, seeds) in [(Size::Tiny, 2_000), (Size::Small, 100), (Size::Medium, 2)] {
        for seed in 0..seeds {
            let scenario = random_scenario(seed, size);
            if law(&Case::new(&scenario)).is_err() {
                let small = shrink(scenario, |candidate| law(&Case::new(candidate)).is_err());
                let breach = law(&Case::new(&small)).expect_err("shrinking keeps the failure");
                panic!("{size:?} {seed}: {breach}\n{}", as_vector("law/broken", &breach, &small));
            }
        }
    }
}

/// Says what is wrong unless something holds.
fn ensure(holds: bool, breach: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(breach()) }
}
