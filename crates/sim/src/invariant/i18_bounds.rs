//! 18: queues stay within their bounds, and a machine has one call at a time.
//!
//! Counted from outside: what was sent to providers and has not come back, against the bounds the scenario states.

use std::collections::BTreeMap;

use bigfleet_shard::{CallId, Effect, Limits, Request};

use super::{Invariant, Moment};

pub(super) struct Bounds {
    limits: Limits,
    /// Moves under way: by host and call, the machine.
    moves: BTreeMap<(usize, CallId), Box<str>>,
    /// Listings under way.
    listings: BTreeMap<(usize, CallId), u16>,
}

impl Bounds {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, moves: BTreeMap::new(), listings: BTreeMap::new() }
    }

    fn of(&self, host: usize) -> impl Iterator<Item = &str> {
        self.moves.iter().filter(move |((of, _), _)| *of == host).map(|(_, machine)| &**machine)
    }
}

/// Timers per machine that mean something, and as many again that no longer do.
const TIMERS_PER_MACHINE: usize = 20;

impl Invariant for Bounds {
    fn see(&mut self, _now: i64, moment: &Moment<'_>) -> Option<String> {
        match moment {
            Moment::Started { host, .. } => {
                self.moves.retain(|(of, _), _| of != host);
                self.listings.retain(|(of, _), _| of != host);
                None
            }
            Moment::Returned { host, call } => {
                self.moves.remove(&(*host, *call));
                self.listings.remove(&(*host, *call));
                None
            }
            Moment::Step { host, shard, step, .. } => {
                for effect in &step.effects {
                    match effect {
                        Effect::List { call, provider, .. } => {
                            if self
                                .listings
                                .iter()
                                .any(|((of, _), listed)| of == host && *listed == provider.0)
                            {
                                return Some(format!("provider {} is listed twice at once", provider.0));
                            }
                            self.listings.insert((*host, *call), provider.0);
                        }
                        Effect::Call { request: Request::Get { .. }, .. } => {}
                        Effect::Call { call, request, .. } => {
                            let machine = request.machine();
                            if self.of(*host).any(|other| other == machine) {
                                return Some(format!("two calls for machine {machine} at once"));
                            }
                            self.moves.insert((*host, *call), machine.into());
                        }
                        _ => {}
                    }
                }
                let (queues, machines) = (shard.queues(), shard.machine_count());
                let most = TIMERS_PER_MACHINE * (machines + shard.providers().len()) + 1000;
                let bounds = [
                    ("moves at providers", self.of(*host).count(), self.limits.flights),
                    ("timers", queues.timers, most),
                ];
                let broken = bounds.into_iter().find(|(_, is, most)| is > most);
                broken.map(|(what, is, most)| format!("{is} {what}, at most {most} were promised"))
            }
            _ => None,
        }
    }
}
