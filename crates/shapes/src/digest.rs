//! A number that tells two scenarios apart: printed beside results, so that a figure names its input.

use bigfleet_model::resource::ResourceVec;
use bigfleet_scenario::Scenario;

/// A digest of everything decisions look at, the same on every machine. Not meant to resist anybody.
pub fn digest(scenario: &Scenario) -> u64 {
    let mut sum = Sum(0xCBF2_9CE4_8422_2325);
    sum.number(scenario.now_unix_nanos as u64);
    for machine in &scenario.machines {
        for text in [&machine.id, &machine.cluster, &machine.instance_type, &machine.zone] {
            sum.text(text);
        }
        sum.number(machine.state as u64);
        sum.number(machine.capacity_type as u64);
        for (key, value) in machine.labels.iter() {
            sum.text(key);
            sum.text(value);
        }
        sum.vector(machine.provides());
        sum.number(machine.price_usd_per_hour.to_bits());
        sum.number(machine.interruption_probability.to_bits());
        let assigned = &machine.assigned;
        sum.number(assigned.priority as u64);
        sum.number(assigned.interruption_penalty_usd.to_bits());
        sum.number(assigned.reclamation_penalty_usd.to_bits());
        for text in [&assigned.cluster, &assigned.fingerprint, &assigned.group] {
            sum.text(text);
        }
        sum.number(machine.idle_since_unix_nanos.unwrap_or(0) as u64);
    }
    for need in &scenario.needs {
        for text in [&*need.cluster, need.profile.fingerprint(), &need.group] {
            sum.text(text);
        }
        sum.vector(&need.aggregate);
        sum.vector(&need.min_unit);
        sum.number(need.first_seen_unix_nanos as u64);
        sum.number(need.parked.into());
    }
    sum.0
}

/// FNV-1a, eight bytes at a time where there are eight.
struct Sum(u64);

impl Sum {
    fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x100_0000_01B3);
        self.0 ^= self.0 >> 32;
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        for chunk in text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.number(u64::from_le_bytes(word));
        }
    }

    fn vector(&mut self, vector: &ResourceVec) {
        for (name, amount) in vector.iter() {
            self.text(name.as_str());
            self.number(amount);
        }
    }
}
