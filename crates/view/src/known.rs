//! Machines as they leave the shard's thread: a few shared pointers each, so that taking thousands holds it for
//! microseconds. Everything is made of them elsewhere.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Demand, Fleet};
use bigfleet_model::machine::Machine;
use bigfleet_model::need::NeedKey;
use bigfleet_shard::{Care, MachineView, Shard};
use tonic::Status;

use crate::convert::{amounts, kind};
use crate::names::{Near, ambiguous, need_ref};
use crate::shards::Shards;
use crate::v1;

/// Machines taken from the shard at once.
pub(crate) const SLICE: usize = 2000;

/// One machine and what its shard knows of it.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) machine: Arc<Machine>,
    /// Its provider's name; empty if the record does not say.
    pub(crate) provider: Arc<str>,
    /// When its provider was last heard; 0 for never.
    pub(crate) heard_unix_nanos: i64,
    pub(crate) since_unix_nanos: i64,
    /// What is wrong with it; empty for nothing.
    pub(crate) trouble: &'static str,
    pub(crate) under_way: Option<v1::Move>,
    /// Whether the engine counts it.
    pub(crate) counts: bool,
    /// The need that claims it, once somebody looked.
    pub(crate) claimed_by: Option<NeedKey>,
}

/// Which need claims each machine by the last cycle: the one meaning of "the machines of a need".
#[derive(Debug, Default)]
pub(crate) struct Claims {
    needs: Vec<NeedKey>,
    /// Machines by id, with the place of their need.
    machines: Vec<(Box<str>, u32)>,
}

impl Claims {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let mut places: BTreeMap<*const Demand, u32> = BTreeMap::new();
        let mut claims = Self::default();
        for (machine, demand) in fleet.claims() {
            let place = *places.entry(Arc::as_ptr(demand)).or_insert_with(|| {
                claims.needs.push(demand.need.key());
                claims.needs.len() as u32 - 1
            });
            claims.machines.push((machine.into(), place));
        }
        claims.machines.sort_unstable();
        claims
    }

    pub(crate) fn claimant(&self, machine: &str) -> Option<&NeedKey> {
        let at = self.machines.binary_search_by(|(id, _)| (**id).cmp(machine)).ok()?;
        Some(&self.needs[self.machines[at].1 as usize])
    }
}

impl Known {
    pub(crate) fn new(shard: &Shard, view: MachineView<'_>) -> Self {
        let provider = &shard.providers()[usize::from(view.provider.0)];
        Self {
            machine: view.machine.clone(),
            provider: provider.name.clone(),
            heard_unix_nanos: provider.listed_unix_nanos.unwrap_or_default(),
            since_unix_nanos: view.since_unix_nanos,
            trouble: if *view.care == Care::Fine { "" } else { view.care.code() },
            under_way: view.flight.map(|flight| v1::Move {
                kind: kind(flight.kind).into(),
                step: flight.stage.code().to_owned(),
                since_unix_nanos: flight.begun_unix_nanos,
                tries: flight.tries,
                until_unix_nanos: if flight.grace_until_unix_nanos > flight.begun_unix_nanos {
                    flight.grace_until_unix_nanos
                } else {
                    0
                },
                cycle: flight.cycle,
            }),
            counts: view.shown,
            claimed_by: None,
        }
    }

    /// A machine of the decision record, which keeps what the engine saw.
    pub(crate) fn recorded(machine: Arc<Machine>) -> Self {
        let provider = machine.host.as_ref().map_or_else(|| Arc::from(""), |host| Arc::from(&*host.provider));
        Self {
            machine,
            provider,
            heard_unix_nanos: 0,
            since_unix_nanos: 0,
            trouble: "",
            under_way: None,
            counts: true,
            claimed_by: None,
        }
    }

    /// The need it was bound for or is being created for.
    pub(crate) fn bound_for(&self) -> Option<NeedKey> {
        let stamp = &self.machine.assigned;
        (!stamp.fingerprint.is_empty()).then(|| NeedKey {
            cluster: stamp.cluster.clone(),
            fingerprint: stamp.fingerprint.clone(),
            group: stamp.group.clone(),
        })
    }

    pub(crate) fn price_source(&self) -> v1::PriceSource {
        v1::PriceSource { provider: self.provider.to_string(), heard_unix_nanos: self.heard_unix_nanos }
    }

    /// The message. A brief one leaves out labels, amounts and fingerprints.
    pub(crate) fn message(&self, detail: v1::Detail) -> v1::Machine {
        let machine = &*self.machine;
        let full = detail == v1::Detail::Full;
        let reference = |key: &NeedKey| {
            let mut reference = need_ref(key);
            if !full {
                reference.fingerprint.clear();
            }
            reference
        };
        v1::Machine {
            id: machine.id.to_string(),
            state: machine.state.to_wire(),
            provider: self.provider.to_string(),
            host: machine.host.as_ref().map_or_else(String::new, |host| host.reference.to_string()),
            cluster: machine.cluster.to_string(),
            instance_type: machine.instance_type.to_string(),
            zone: machine.zone.to_string(),
            capacity_type: machine.capacity_type.to_wire(),
            usd_per_hour: machine.price_usd_per_hour,
            interruption_probability: machine.interruption_probability,
            labels: if full {
                machine.labels.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()
            } else {
                BTreeMap::new()
            },
            resources: if full { amounts(&machine.resources) } else { BTreeMap::new() },
            provides: if full { amounts(machine.provides()) } else { BTreeMap::new() },
            bound_for: self.bound_for().as_ref().map(reference),
            bound_priority: machine.assigned.priority,
            draining_for: machine.draining_for.as_ref().map(reference),
            last_error: machine.last_error.to_string(),
            state_since_unix_nanos: self.since_unix_nanos,
            idle_since_unix_nanos: machine.idle_since_unix_nanos.unwrap_or_default(),
            under_way: self.under_way.clone(),
            trouble: self.trouble.to_owned(),
            interruption_penalty_usd: machine.assigned.interruption_penalty_usd,
            reclamation_penalty_usd: machine.assigned.reclamation_penalty_usd,
            counts: self.counts,
            claimed_by: self.claimed_by.as_ref().map(reference),
            expected: None,
        }
    }
}

/// The next slice of machines, and where the one after it begins.
pub(crate) struct Slice {
    pub(crate) machines: Vec<Known>,
    pub(crate) next: Option<u32>,
}

/// Takes the machines from a place on.
pub(crate) async fn slice<S: Shards>(shards: &S, from: u32) -> Result<Slice, Status> {
    let look = move |shard: &Shard, _| {
        let views: Vec<MachineView<'_>> = shard.machines_from(from).take(SLICE).collect();
        let next = (views.len() == SLICE).then(|| views.last().map(|last| last.place + 1)).flatten();
        Slice { machines: views.into_iter().map(|view| Known::new(shard, view)).collect(), next }
    };
    Ok(shards.inspect(look).await?)
}

/// Takes machines by name; those unknown are left out.
pub(crate) async fn named<S: Shards>(shards: &S, ids: Vec<Box<str>>) -> Result<Vec<Known>, Status> {
    let mut found = Vec::with_capacity(ids.len());
    let mut ids = ids.into_iter().peekable();
    while ids.peek().is_some() {
        let part: Vec<Box<str>> = ids.by_ref().take(SLICE).collect();
        let look = move |shard: &Shard, _| -> Vec<Known> {
            let views = part.iter().filter_map(|id| shard.machine(id));
            views.map(|view| Known::new(shard, view)).collect()
        };
        found.extend(shards.inspect(look).await?);
    }
    Ok(found)
}

/// The machine somebody means: its id, or an unambiguous beginning of it.
pub(crate) async fn find<S: Shards>(shards: &S, text: &str) -> Result<Known, Status> {
    if text.is_empty() {
        return Err(Status::invalid_argument(
            "no machine is named; give its id, as `bigfleet get machines` shows it",
        ));
    }
    if let Some(exact) = named(shards, vec![text.into()]).await?.pop() {
        return Ok(exact);
    }
    let mut search = Search::new(text);
    let mut from = Some(0);
    while let Some(place) = from {
        let slice = slice(shards, place).await?;
        slice.machines.into_iter().for_each(|known| search.consider(known));
        from = slice.next;
    }
    search.result()
}

/// Looks for the machine somebody means among many.
pub(crate) struct Search {
    text: String,
    found: Vec<Known>,
    near: Near,
}

impl Search {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), found: Vec::new(), near: Near::to(text) }
    }

    pub(crate) fn consider(&mut self, known: Known) {
        if known.machine.id.starts_with(&self.text) {
            self.found.push(known);
        } else {
            self.near.consider(&known.machine.id);
        }
    }

    pub(crate) fn result(mut self) -> Result<Known, Status> {
        if let Some(exact) = self.found.iter().position(|known| *known.machine.id == *self.text) {
            return Ok(self.found.swap_remove(exact));
        }
        match self.found.len() {
            0 => Err(self.near.not_found("machine")),
            1 => Ok(self.found.swap_remove(0)),
            _ => Err(ambiguous(
                "machine",
                &self.text,
                self.found.iter().map(|known| known.machine.id.to_string()),
            )),
        }
    }
}
