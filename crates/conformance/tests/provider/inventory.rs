//! What the provider has to offer: sixty slots, a few of them filled, a few made to break.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::{CapacityType, Machine, MachineState as State, Resources};

use crate::provider::defect::Defect;
use crate::provider::world::World;

impl World {
    pub(crate) fn offer(&mut self, number: usize) -> Machine {
        let types =
            [CapacityType::OnDemand, CapacityType::Spot, CapacityType::Reserved, CapacityType::BareMetal];
        let capacity = types[number % 4];
        let is_spot = capacity == CapacityType::Spot;
        let is_idle = number.is_multiple_of(5) && number < 50;
        let amounts = |cpu: &str, memory: &str| Resources {
            resources: BTreeMap::from([("cpu".into(), cpu.into()), ("memory".into(), memory.into())]),
        };
        let mut machine = Machine {
            id: format!("m-{number:03}"),
            state: State::Speculative as i32,
            instance_type: "test.large".into(),
            zone: format!("zone-{}", number % 3),
            capacity_type: capacity as i32,
            price_per_hour: 0.5,
            interruption_probability: if is_spot { 0.1 } else { 0.0 },
            resources: Some(amounts("4", "16Gi")),
            allocatable: number.is_multiple_of(2).then(|| amounts("3800m", "15Gi")),
            labels: BTreeMap::from([("topology.bigfleet/rack".into(), format!("rack-{}", number % 7))]),
            ..Machine::default()
        };
        if number >= 56 {
            machine.labels.insert("conformance.fault/create".into(), "error".into());
        }
        if is_idle {
            machine.state = State::Idle as i32;
            machine.host = Some(self.new_host());
        }
        match self.defect {
            Some(Defect::ZoneMissing) => machine.zone.clear(),
            Some(Defect::InstanceTypeMissing) if number == 7 => machine.instance_type.clear(),
            Some(Defect::CapacityTypeMissing) if number == 7 => machine.capacity_type = 0,
            Some(Defect::ForbiddenLabel) if number == 7 => {
                machine.labels.insert("instance_type".into(), "test.large".into());
            }
            Some(Defect::BadQuantity) if number == 7 => machine.resources = Some(amounts("four", "16Gi")),
            Some(Defect::AllocatableTooLarge) if number == 8 => {
                machine.allocatable = Some(amounts("5", "16Gi"));
            }
            Some(Defect::SafeSpot) => machine.interruption_probability = 0.0,
            Some(Defect::NanPrice) if number == 7 => machine.price_per_hour = f64::NAN,
            Some(Defect::NegativePrice) if number == 7 => machine.price_per_hour = -0.1,
            Some(Defect::ProbabilityAboveOne) if is_spot => machine.interruption_probability = 10.0,
            _ => {}
        }
        machine
    }
}
