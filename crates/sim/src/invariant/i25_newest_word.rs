//! 25: no word of a provider is taken over a newer one.

use std::collections::BTreeMap;

use bigfleet_model::machine::MachineState;

use super::{Invariant, Moment};

#[derive(Default)]
pub(super) struct NewestWord {
    /// The newest word a host has heard of a machine: of when, and which state it told.
    words: BTreeMap<(usize, String), (i64, i32)>,
}

impl Invariant for NewestWord {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.words.retain(|(of, _), _| of != host);
                None
            }
            Moment::Answered { host, machine, taken } => {
                let word = self.words.entry((*host, machine.id.clone())).or_insert((*taken, machine.state));
                if *taken >= word.0 {
                    *word = (*taken, machine.state);
                }
                None
            }
            Moment::Heard { clean: false, .. } => {
                self.words.clear();
                None
            }
            Moment::Heard { host, shard, machines, taken, .. } => machines.iter().find_map(|listed| {
                let word = self.words.entry((*host, listed.id.clone())).or_insert((*taken, listed.state));
                if *taken >= word.0 {
                    *word = (*taken, listed.state);
                    return None;
                }
                let known = shard.machine(&listed.id)?;
                let undone =
                    word.1 != listed.state && known.told.to_wire() == listed.state && known.flight.is_none();
                undone.then(|| {
                    let newer = MachineState::from_wire(word.1);
                    format!(
                        "machine {} is {} by a listing older than the answer {newer:?}",
                        listed.id, known.told
                    )
                })
            }),
            _ => None,
        }
    }
}
