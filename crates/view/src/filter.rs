//! Which machines somebody asks for.

use bigfleet_engine::Fleet;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use tonic::Status;

use crate::known::Known;
use crate::names::find_need;
use crate::v1;

/// A filter that was understood. Everything it says must hold.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    cluster: String,
    states: Vec<MachineState>,
    capacity_types: Vec<CapacityType>,
    zones: Vec<String>,
    instance_types: Vec<String>,
    provider: String,
    id_prefix: String,
    labels: Vec<Label>,
    need: Option<NeedKey>,
    bound_for: Option<NeedKey>,
    troubled: bool,
}

/// What a label must be.
#[derive(Debug, PartialEq, Eq)]
enum Label {
    There(String),
    Is(String, String),
    IsNot(String, String),
}

impl Filter {
    /// Understands a filter; `fleet` knows the needs it may name.
    pub(crate) fn new(filter: Option<v1::MachineFilter>, fleet: &Fleet) -> Result<Self, Status> {
        let filter = filter.unwrap_or_default();
        let states = filter.states.iter().map(|number| {
            MachineState::from_wire(*number)
                .ok_or_else(|| Status::invalid_argument(format!("there is no machine state number {number}")))
        });
        let capacity_types = filter.capacity_types.iter().map(|number| {
            CapacityType::from_wire(*number)
                .ok_or_else(|| Status::invalid_argument(format!("there is no capacity type number {number}")))
        });
        let find = |name: &str| {
            if name.is_empty() { Ok(None) } else { find_need(fleet, name).map(Some) }
        };
        Ok(Self {
            states: states.collect::<Result<_, _>>()?,
            capacity_types: capacity_types.collect::<Result<_, _>>()?,
            labels: filter.labels.iter().map(|text| label(text)).collect::<Result<_, _>>()?,
            need: find(&filter.need)?,
            bound_for: find(&filter.bound_for)?,
            cluster: filter.cluster,
            zones: filter.zones,
            instance_types: filter.instance_types,
            provider: filter.provider,
            id_prefix: filter.id_prefix,
            troubled: filter.troubled,
        })
    }

    /// Whether a machine is asked for.
    pub(crate) fn admits(&self, known: &Known) -> bool {
        fn any<T: PartialEq<U>, U: ?Sized>(wanted: &[T], value: &U) -> bool {
            wanted.is_empty() || wanted.iter().any(|one| one == value)
        }
        let machine = &*known.machine;
        let facts = machine.facts();
        let label = |label: &Label| match label {
            Label::There(key) => facts.value(key).is_some(),
            Label::Is(key, value) => facts.value(key) == Some(value),
            Label::IsNot(key, value) => facts.value(key) != Some(value),
        };
        (self.cluster.is_empty() || *machine.cluster == *self.cluster)
            && any(&self.states, &machine.state)
            && any(&self.capacity_types, &machine.capacity_type)
            && any(&self.zones, &*machine.zone)
            && any(&self.instance_types, &*machine.instance_type)
            && (self.provider.is_empty() || *known.provider == *self.provider)
            && machine.id.starts_with(&self.id_prefix)
            && self.labels.iter().all(label)
            && (self.need.is_none() || known.claimed_by == self.need)
            && (self.bound_for.is_none() || known.bound_for() == self.bound_for)
            && (!self.troubled || !known.trouble.is_empty())
    }
}

fn label(text: &str) -> Result<Label, Status> {
    let own = |part: &str| part.trim().to_owned();
    let parsed = if let Some((key, value)) = text.split_once("!=") {
        Label::IsNot(own(key), own(value))
    } else if let Some((key, value)) = text.split_once('=') {
        Label::Is(own(key), own(value))
    } else {
        Label::There(own(text))
    };
    let (Label::There(key) | Label::Is(key, _) | Label::IsNot(key, _)) = &parsed;
    if key.is_empty() {
        return Err(Status::invalid_argument(format!(
            "label filter {text:?} has no key; write key, key=value or key!=value"
        )));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_model::label::Labels;
    use bigfleet_model::machine::Machine;

    use super::*;

    fn known() -> Known {
        let mut machine = Machine::new("aws-1", MachineState::Configured);
        machine.cluster = "shop".into();
        machine.zone = "za".into();
        machine.instance_type = "m5".into();
        machine.capacity_type = CapacityType::Spot;
        machine.labels = Labels::new([("rack", "r1")]).unwrap();
        Known { provider: "aws".into(), ..Known::recorded(Arc::new(machine)) }
    }

    #[test]
    fn everything_a_filter_says_must_hold() {
        let fleet = Fleet::default();
        let admits = |edit: &dyn Fn(&mut v1::MachineFilter)| {
            let mut filter = v1::MachineFilter::default();
            edit(&mut filter);
            Filter::new(Some(filter), &fleet).unwrap().admits(&known())
        };
        assert!(admits(&|_| {}));
        assert!(admits(&|f| f.cluster = "shop".into()) && !admits(&|f| f.cluster = "sho".into()));
        assert!(admits(&|f| f.states = vec![3, 5]) && !admits(&|f| f.states = vec![3]));
        assert!(admits(&|f| f.capacity_types = vec![4]) && !admits(&|f| f.capacity_types = vec![1, 2]));
        assert!(
            admits(&|f| f.zones = vec!["zb".into(), "za".into()])
                && !admits(&|f| f.zones = vec!["zb".into()])
        );
        assert!(!admits(&|f| f.instance_types = vec!["m6".into()]));
        assert!(admits(&|f| f.provider = "aws".into()) && !admits(&|f| f.provider = "gcp".into()));
        assert!(admits(&|f| f.id_prefix = "aws-".into()) && !admits(&|f| f.id_prefix = "gcp-".into()));
        for (label, admitted) in [
            ("rack", true),
            ("row", false),
            ("rack=r1", true),
            ("rack=r2", false),
            ("rack!=r2", true),
            ("rack!=r1", false),
            ("row!=r1", true),
            ("topology.kubernetes.io/zone=za", true),
        ] {
            assert_eq!(admits(&|f| f.labels = vec![label.into()]), admitted, "{label}");
        }
        assert!(!admits(&|f| f.troubled = true));
        assert!(!admits(&|f| {
            f.cluster = "shop".into();
            f.zones = vec!["zb".into()];
        }));
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        let fleet = Fleet::default();
        let refused = |filter| Filter::new(Some(filter), &fleet).unwrap_err().message().to_owned();
        assert_eq!(
            refused(v1::MachineFilter { states: vec![9], ..Default::default() }),
            "there is no machine state number 9"
        );
        assert_eq!(
            refused(v1::MachineFilter { labels: vec!["=x".into()], ..Default::default() }),
            "label filter \"=x\" has no key; write key, key=value or key!=value"
        );
        assert!(
            refused(v1::MachineFilter { need: "abc".into(), ..Default::default() })
                .starts_with("there is no need")
        );
    }
}
