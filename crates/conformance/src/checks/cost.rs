//! COST: numbers that money is reckoned with.

use bigfleet_proto::v1alpha1::{CapacityType, Machine};

use crate::behaviour::checks;
use crate::checks::field::every;
use crate::context::Context;
use crate::verdict::{Verdict, skipped};

checks! { Cost:
    "COST-001" Core Beside "the price is a number" => every(price_is_a_number):
        "no price is NaN", "the shard refuses the record", "2 Machine.price_per_hour, 2.3";
    "COST-002" Core Beside "the price is not negative" => every(price_not_negative):
        "no price is below 0", "the shard refuses the record", "2 Machine.price_per_hour, 2.3";
    "COST-003" Core Beside "the price is finite" => every(price_finite):
        "no price is infinite", "sums of money are worthless", "2 Machine.price_per_hour";
    "COST-004" Core Beside "the interruption probability is a number" => every(probability_is_a_number):
        "no probability is NaN", "the shard refuses the record", "2 Machine.interruption_probability, 2.3";
    "COST-005" Core Beside "the interruption probability is between 0 and 1" => every(probability_in_range):
        "every probability is in 0..1", "the shard refuses the record", "2 Machine.interruption_probability, 2.3";
    "COST-006" Core Beside "spot machines may be interrupted" => spot():
        "the probability of a SPOT machine is above 0",
        "spot looks as safe as on-demand and takes what must not be lost", "2 Machine.interruption_probability";
}

fn price_is_a_number(m: &Machine) -> Option<String> {
    m.price_per_hour.is_nan().then(|| "price NaN".into())
}

fn price_not_negative(m: &Machine) -> Option<String> {
    (m.price_per_hour < 0.0).then(|| format!("price {}", m.price_per_hour))
}

fn price_finite(m: &Machine) -> Option<String> {
    m.price_per_hour.is_infinite().then(|| format!("price {}", m.price_per_hour))
}

fn probability_is_a_number(m: &Machine) -> Option<String> {
    m.interruption_probability.is_nan().then(|| "probability NaN".into())
}

fn probability_in_range(m: &Machine) -> Option<String> {
    let p = m.interruption_probability;
    (!p.is_nan() && !(0.0..=1.0).contains(&p)).then(|| format!("probability {p}"))
}

fn spot_is_risky(m: &Machine) -> Option<String> {
    let safe = is_spot(m) && m.interruption_probability <= 0.0;
    safe.then(|| format!("SPOT with probability {}", m.interruption_probability))
}

fn is_spot(m: &Machine) -> bool {
    m.capacity_type == CapacityType::Spot as i32
}

async fn spot(c: Context) -> Verdict {
    if !c.life().await?.everything().any(|seen| is_spot(&seen.machine)) {
        return skipped("no SPOT machine is listed");
    }
    every(c, spot_is_risky).await
}
