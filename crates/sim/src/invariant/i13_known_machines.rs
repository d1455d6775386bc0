//! 13: every machine a provider lists is known, and none is invented.

use std::collections::BTreeSet;

use bigfleet_model::label::ZONE;
use bigfleet_proto::v1alpha1::Machine;

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct KnownMachines {
    exist: BTreeSet<String>,
}

impl Invariant for KnownMachines {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Changed { machine, .. } => {
                self.exist.insert(machine.id.clone());
                None
            }
            Moment::Listed { shard, machines, .. } => {
                let domains = &shard.config().domains;
                let owns = |m: &Machine| {
                    if shard.config().is_assigned {
                        shard.owned().acts_on(&m.id, (ZONE, &m.zone))
                    } else {
                        domains.is_empty() || domains.iter().any(|(_, value)| **value == *m.zone)
                    }
                };
                let unknown = machines.iter().find(|m| owns(m) && shard.machine(&m.id).is_none())?;
                Some(format!("machine {} was listed and is not known", unknown.id))
            }
            Moment::Decided { mirror, .. } => {
                let invented = mirror.machines.keys().find(|id| !self.exist.contains(&***id))?;
                Some(format!("machine {invented} is on the record and does not exist"))
            }
            _ => None,
        }
    }
}
