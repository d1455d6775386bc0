//! Amounts of the three resources the generator deals in: small, `Copy`, and turned into model vectors last.

use bigfleet_model::resource::{ResourceName, ResourceVec};

/// One gibibyte.
pub(crate) const GIB: u64 = 1 << 30;

/// Cpu in thousandths, memory in bytes, gpus in devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Amount(pub(crate) [u64; 3]);

impl Amount {
    pub(crate) const fn new(cpu_milli: u64, memory_bytes: u64, gpus: u64) -> Self {
        Self([cpu_milli, memory_bytes, gpus])
    }

    pub(crate) fn covers(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(have, want)| *have >= want)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|d| self.0[d] + other.0[d]))
    }

    pub(crate) fn less(self, other: Self) -> Self {
        Self(std::array::from_fn(|d| self.0[d].saturating_sub(other.0[d])))
    }

    pub(crate) fn times(self, count: u64) -> Self {
        Self(std::array::from_fn(|d| self.0[d] * count))
    }

    /// How many whole `unit`s it holds; `unit` must not be zero.
    pub(crate) fn units(self, unit: Self) -> u64 {
        let each = self.0.iter().zip(unit.0).filter(|(_, want)| *want > 0).map(|(have, want)| have / want);
        each.min().expect("a unit asks for something")
    }

    /// The same as a model vector.
    pub(crate) fn to_vec(self) -> ResourceVec {
        let gpu = ResourceName::new("nvidia.com/gpu").expect("the name is not empty");
        let names = [ResourceName::CPU, ResourceName::MEMORY, gpu];
        ResourceVec::new(names.into_iter().zip(self.0)).expect("amounts are small and names differ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scarcest_resource_limits_the_units() {
        let machine = Amount::new(15_780, 60 * GIB, 0);
        assert_eq!(machine.units(Amount::new(1_000, GIB, 0)), 15);
        assert_eq!(machine.units(Amount::new(1_000, 8 * GIB, 0)), 7);
        assert_eq!(machine.units(Amount::new(1_000, GIB, 1)), 0);
    }
}
