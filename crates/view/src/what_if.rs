//! What if something were different: edits on a copy, decided by the engine itself.
//!
//! The copy is the engine's fleet and the machines. Between cycles every machine arrives at once where it was sent, so a
//! few cycles show where things would settle. Rails, operators and providers take no part: this is about what would be
//! decided, not how long it would take. What the hours after that would bring is asked of the simulator ([`forward`]).

mod edit;
mod forward;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_model::machine::Machine;
use bigfleet_model::need::NeedKey;
use bigfleet_record::Decided;
use bigfleet_shard::MachineFacts;
use tonic::Status;

use crate::convert::{is_unmet, reason};
use crate::decisions::{At, message, with_facts};
use crate::known::{Claims, Known};
use crate::names::need_ref;
use crate::rails::totals;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

use forward::{Ahead, Surroundings};

pub(crate) use world::World;

/// Cycles at most.
const MOST_CYCLES: u32 = 50;
/// Actions told if nobody says how many.
const TOLD: u32 = 200;
/// Verdicts told at most.
const VERDICTS: usize = 500;

/// What one side came to.
struct Side {
    world: World,
    decided: Vec<(u64, Decided)>,
    cycles: u32,
    settled: bool,
}

impl Side {
    /// Lets a world settle.
    fn settle(mut world: World, most: u32, first_cycle: u64) -> Self {
        let (mut decided, mut settled, mut cycles) = (Vec::new(), false, 0);
        while cycles < most && !settled {
            cycles += 1;
            let decision = world.cycle();
            let number = first_cycle + u64::from(cycles) - 1;
            decided.extend(Decided::all_of(&decision).into_iter().map(|one| (number, one)));
            settled = decision.actions.is_empty();
            world.arrive(&decision);
        }
        Self { world, decided, cycles, settled }
    }

    fn message(&self) -> v1::WhatIfSide {
        let bill = self.world.bill();
        let shorts = self.world.fleet.short_needs();
        v1::WhatIfSide {
            usd_per_hour: bill.usd_per_hour,
            unmet: shorts.iter().filter(|short| is_unmet(short)).count() as u32,
            short: shorts.len() as u32,
            actions: totals(self.decided.iter().map(|(_, one)| (one.kind, one.fate))),
            spot_share: if bill.bound == 0 { 0.0 } else { bill.spot as f64 / bill.bound as f64 },
            interruptions_per_hour: bill.interruptions_per_hour,
            cycles: self.cycles,
            settled: self.settled,
            bound_machines: bill.bound as u32,
            ahead: None,
        }
    }

    /// Short needs by identity, with how many machines they have.
    fn verdicts(&self) -> BTreeMap<NeedKey, v1::Reason> {
        let shorts = self.world.fleet.short_needs();
        let keys: Vec<NeedKey> = shorts.iter().map(|short| short.demand.need.key()).collect();
        let reasons = self.world.fleet.reasons_of(&keys);
        keys.into_iter().zip(reasons).map(|(key, why)| (key, reason(why))).collect()
    }

    fn machines_of(&self, key: &NeedKey) -> u32 {
        self.world.fleet.outcome_of(key).map_or(0, |o| (o.credited.len() + o.acquired.len()) as u32)
    }
}

/// The needs whose verdict differs.
fn differences(before: &Side, after: &Side) -> Vec<v1::VerdictChange> {
    let (was, is) = (before.verdicts(), after.verdicts());
    let keys: BTreeSet<&NeedKey> = was.keys().chain(is.keys()).collect();
    let differing = keys.into_iter().filter(|key| was.get(*key) != is.get(*key));
    let change = |key: &NeedKey| v1::VerdictChange {
        need: Some(need_ref(key)),
        satisfied_before: !was.contains_key(key),
        satisfied_after: !is.contains_key(key),
        reason_before: was.get(key).copied().unwrap_or_default().into(),
        reason_after: is.get(key).copied().unwrap_or_default().into(),
        machines_before: before.machines_of(key),
        machines_after: after.machines_of(key),
    };
    differing.take(VERDICTS).map(change).collect()
}

/// The actions of one side that the other would not take.
fn only<'a>(side: &'a Side, other: &Side, most: usize) -> Vec<&'a (u64, Decided)> {
    let identity = |one: &Decided| {
        (one.kind, one.machine.clone(), one.cluster.clone(), one.need.as_ref().map(|n| n.key.clone()))
    };
    let theirs: BTreeSet<_> = other.decided.iter().map(|(_, one)| identity(one)).collect();
    side.decided.iter().filter(|(_, one)| !theirs.contains(&identity(one))).take(most).collect()
}

impl<S: Shards> View<S> {
    pub(crate) async fn what_if(&self, request: v1::WhatIfRequest) -> Result<v1::WhatIfAnswer, Status> {
        if request.edits.is_empty() {
            return Err(Status::invalid_argument("nothing is different; give at least one edit"));
        }
        let (snapshot, mut knowns) = self.moment_with_machines(request.at).await?;
        knowns.retain(|known| known.counts);
        let by_id = |known: &Known| (known.machine.id.clone(), known.machine.clone());
        let machines: BTreeMap<Box<str>, Arc<Machine>> = knowns.iter().map(by_id).collect();
        let ahead = Ahead::of(&request, machines.len() as u64)?;
        let config = self.shards.inspect(|shard, _| shard.config().clone()).await?;
        let (watched, record) = (self.watched.clone(), self.about.record_dir.clone());
        let now = self.now_of(&snapshot.as_of).await?;
        let cycles = request.cycles.clamp(1, MOST_CYCLES);
        let limit = if request.limit == 0 { TOLD } else { request.limit } as usize;
        blocking(move || {
            let Snapshot { as_of, fleet, options, now_unix_nanos, .. } = snapshot;
            let claims = Claims::of(&fleet);
            for known in &mut knowns {
                known.claimed_by = claims.claimant(&known.machine.id).cloned();
            }
            let first = as_of.cycle + 1;
            let before = World { fleet: fleet.fork(), machines: machines.clone(), options, now_unix_nanos };
            let mut after = before.clone();
            let edited = after.edit(&request.edits, &knowns)?;
            let forward = match ahead {
                Some(ahead) => {
                    let around = Surroundings::new(config, &knowns, watched, record.as_deref(), now);
                    Some((ahead.go(&before, &around)?, ahead.go(&after, &around)?))
                }
                None => None,
            };
            let (before, after) = (Side::settle(before, cycles, first), Side::settle(after, cycles, first));
            let told = |(cycle, one): &(u64, Decided), world: &World| {
                let at =
                    At { cycle: *cycle, epoch: as_of.epoch, unix_nanos: now_unix_nanos, other_edition: None };
                let facts = |id: &str| world.machines.get(id).map(|machine| MachineFacts::from(&**machine));
                message(at, &with_facts(one.clone(), facts))
            };
            let (ahead_before, ahead_after) = forward.unzip();
            Ok(v1::WhatIfAnswer {
                before: Some(v1::WhatIfSide { ahead: ahead_before, ..before.message() }),
                after: Some(v1::WhatIfSide { ahead: ahead_after, ..after.message() }),
                only_before: only(&before, &after, limit)
                    .into_iter()
                    .map(|one| told(one, &before.world))
                    .collect(),
                only_after: only(&after, &before, limit)
                    .into_iter()
                    .map(|one| told(one, &after.world))
                    .collect(),
                needs: differences(&before, &after),
                edited_machines: edited.machines as u64,
                edited_needs: edited.needs as u64,
                as_of: Some(as_of),
            })
        })
        .await
    }
}
