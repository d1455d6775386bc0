//! Recognising words without looking them up: is this number the one of that text?
//!
//! A number stands for one text only, so comparing with the text it stands for is exact, and costs no hash.

use bigfleet_model::machine::Machine;

use crate::intern::NONE;

use super::{Dim, Vocabulary, Worth};

impl Vocabulary {
    fn is_string(&self, sym: u32, text: &str) -> bool {
        self.text(sym) == text
    }

    /// Whether a number, or [`NONE`], is the one of a cluster, or of none.
    pub(crate) fn is_cluster(&self, cluster: u32, name: Option<&str>) -> bool {
        match name {
            Some(name) => cluster != NONE && self.cluster_name(cluster) == name,
            None => cluster == NONE,
        }
    }

    /// Whether a number, or [`NONE`], is the one of an identity, or of none.
    pub(crate) fn is_key(&self, key: u32, parts: Option<[&str; 3]>) -> bool {
        let Some([cluster, fingerprint, group]) = parts else { return key == NONE };
        if key == NONE {
            return false;
        }
        let tuple = self.keys.get(key);
        self.cluster_name(tuple[0]) == cluster
            && self.is_string(tuple[2], group)
            && self.is_string(tuple[1], fingerprint)
    }

    /// Whether terms are this price and this probability, to the last digit.
    pub(crate) fn is_terms(&self, terms: u32, price: f64, probability: f64) -> bool {
        let (known_price, known_probability) = self.price_and_probability(terms);
        (known_price.to_bits(), known_probability.to_bits()) == (price.to_bits(), probability.to_bits())
    }

    /// Whether a worth is this one, to the last digit.
    pub(crate) fn is_worth(&self, number: u32, worth: Worth) -> bool {
        let digits = |worth: Worth| {
            (worth.priority, worth.interruption_usd.to_bits(), worth.reclamation_usd.to_bits())
        };
        digits(self.worth_of(number)) == digits(worth)
    }

    /// Whether a kind is the one of a machine.
    pub(crate) fn is_kind(&self, kind: u32, machine: &Machine) -> bool {
        let [facts, shape] = *self.kinds.get(kind) else { unreachable!("a kind has two parts") };
        let amounts = self.shape(shape).map(|(dim, amount): (Dim, u64)| (self.dim_name(dim), amount));
        if !amounts.eq(machine.provides().iter()) {
            return false;
        }
        let facts = self.facts.get(facts);
        let is_field = |sym: u32, text: &str| {
            if text.is_empty() { sym == NONE } else { sym != NONE && self.is_string(sym, text) }
        };
        let labels = facts[2..].chunks_exact(2);
        labels.len() == machine.labels.len()
            && is_field(facts[0], &machine.instance_type)
            && is_field(facts[1], &machine.zone)
            && labels
                .zip(machine.labels.iter())
                .all(|(pair, (key, value))| self.is_string(pair[1], value) && self.is_string(pair[0], key))
    }
}
