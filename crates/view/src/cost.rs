//! What everything costs, and for what: every paid machine's money falls under exactly one cause, or is divided between two.
//!
//! Amounts are whole billionths of a dollar, so the parts of a bill add up to it exactly. [`span`] adds bills up over a
//! recorded span; [`judge`] says what the same demand must cost at least.

mod judge;
mod span;

pub use span::divide;

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_engine::{Demand, Fleet};
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::resource::{ResourceName, ResourceVec};
use bigfleet_shard::{Shard, is_paid_for};
use tonic::Status;

use crate::known::Known;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Past, Snapshot, Walk, blocking};
use crate::v1;

/// Machines that are taken from the shard in one look with everything else. A larger fleet is taken in slices.
const ONE_LOOK: usize = 50_000;

/// What money is spent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Used,
    AboveDemand,
    Unclaimed,
    Starting,
    Draining,
    IdleHold,
    IdleFixed,
    GivingBack,
    Failed,
}

impl Cause {
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::AboveDemand => "above_demand",
            Self::Unclaimed => "unclaimed",
            Self::Starting => "starting",
            Self::Draining => "draining",
            Self::IdleHold => "idle_hold",
            Self::IdleFixed => "idle_fixed",
            Self::GivingBack => "giving_back",
            Self::Failed => "failed",
        }
    }

    /// Money that serves nobody and could be saved: idle hardware of one's own is paid for anyway.
    pub(crate) fn is_waste(self) -> bool {
        !matches!(self, Self::Used | Self::IdleFixed)
    }
}

/// What sorts of money are told apart by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sort {
    pub(crate) cause: Cause,
    pub(crate) cluster: Arc<str>,
    pub(crate) priority: Option<i32>,
    pub(crate) capacity_type: CapacityType,
    pub(crate) provider: Arc<str>,
}

/// How much of one sort.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sum {
    pub(crate) nanos: i128,
    pub(crate) machines: f64,
}

/// What machines cost an hour, by sort.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bill {
    pub(crate) sums: BTreeMap<Sort, Sum>,
}

/// A price in billionths.
pub(crate) fn nano_usd(usd: f64) -> i128 {
    (usd * 1e9).round() as i128
}

/// How much of what a need's machines provide it asks for: the largest share over what it asks for, as a fraction.
#[derive(Clone, Copy, Debug)]
struct Share {
    asked: u64,
    provided: u64,
}

impl Share {
    fn of(aggregate: &ResourceVec, provided: &BTreeMap<ResourceName, u64>) -> Self {
        let whole = Self { asked: 1, provided: 1 };
        let shares = aggregate.iter().filter(|(_, amount)| *amount > 0).map(|(name, asked)| {
            let provided = provided.get(name).copied().unwrap_or(0);
            if provided <= asked { whole } else { Self { asked, provided } }
        });
        shares.max_by(|a, b| a.ratio().total_cmp(&b.ratio())).unwrap_or(whole)
    }

    fn ratio(self) -> f64 {
        self.asked as f64 / self.provided as f64
    }

    /// That share of an amount, rounded down.
    fn part(self, nanos: i128) -> i128 {
        nanos * i128::from(self.asked) / i128::from(self.provided)
    }
}

/// Who claims machines, and how much of what they provide is asked for.
struct Uses<'a> {
    claims: BTreeMap<&'a str, (&'a Arc<Demand>, *const Demand)>,
    shares: BTreeMap<*const Demand, Share>,
}

impl<'a> Uses<'a> {
    fn of(fleet: &'a Fleet, machine: impl Fn(&str) -> Option<Arc<Machine>>) -> Self {
        let claims: BTreeMap<_, _> =
            fleet.claims().map(|(id, demand)| (id, (demand, Arc::as_ptr(demand)))).collect();
        let mut provided: BTreeMap<*const Demand, (&Arc<Demand>, BTreeMap<ResourceName, u64>)> =
            BTreeMap::new();
        for (id, (demand, place)) in &claims {
            let Some(machine) = machine(id).filter(|m| m.state == MachineState::Configured) else { continue };
            let (_, sums) = provided.entry(*place).or_insert_with(|| (*demand, BTreeMap::new()));
            for (name, amount) in machine.provides().iter() {
                let sum = sums.entry(name.clone()).or_default();
                *sum = sum.saturating_add(amount);
            }
        }
        let share = |(place, (demand, sums)): (_, (&Arc<Demand>, _))| {
            (place, Share::of(&demand.need.aggregate, &sums))
        };
        let shares = provided.into_iter().map(share).collect();
        Self { claims, shares }
    }
}

impl Bill {
    /// The bill of these machines, which are those of the fleet and perhaps some it does not count.
    pub(crate) fn of(fleet: &Fleet, knowns: &[Known]) -> Self {
        let by_id: BTreeMap<&str, &Arc<Machine>> =
            knowns.iter().map(|known| (&*known.machine.id, &known.machine)).collect();
        let uses = Uses::of(fleet, |id| by_id.get(id).map(|machine| (*machine).clone()));
        let mut bill = Self::default();
        let nobody: Arc<str> = "".into();
        let mut names: BTreeMap<&str, Arc<str>> = BTreeMap::new();
        for known in knowns.iter().filter(|known| is_paid_for(known.machine.state)) {
            let machine = &*known.machine;
            let cluster = if machine.cluster.is_empty() {
                nobody.clone()
            } else {
                names.entry(&machine.cluster).or_insert_with(|| (&*machine.cluster).into()).clone()
            };
            let sort = |cause, priority| Sort {
                cause,
                cluster: cluster.clone(),
                priority,
                capacity_type: machine.capacity_type,
                provider: known.provider.clone(),
            };
            let nanos = nano_usd(machine.price_usd_per_hour);
            let cause = match machine.state {
                MachineState::Configured => {
                    let Some((demand, place)) = uses.claims.get(&*machine.id) else {
                        bill.add(sort(Cause::Unclaimed, None), nanos, 1.0);
                        continue;
                    };
                    let share = uses.shares.get(place).copied().unwrap_or(Share { asked: 1, provided: 1 });
                    let (used, priority) = (share.part(nanos), Some(demand.priority()));
                    bill.add(sort(Cause::Used, priority), used, share.ratio());
                    if share.asked < share.provided {
                        bill.add(sort(Cause::AboveDemand, priority), nanos - used, 1.0 - share.ratio());
                    }
                    continue;
                }
                MachineState::Configuring => Cause::Starting,
                MachineState::Draining => Cause::Draining,
                MachineState::Deleting => Cause::GivingBack,
                MachineState::Failed => Cause::Failed,
                _ if machine.capacity_type.is_elastic() => Cause::IdleHold,
                _ => Cause::IdleFixed,
            };
            bill.add(sort(cause, None), nanos, 1.0);
        }
        bill
    }

    /// The bill of a moment gone by. What the record says was paid beyond the machines the engine counted was for machines
    /// that were out of order.
    pub(crate) fn of_past(fleet: &Fleet, past: &Past) -> Self {
        let knowns: Vec<Known> = past.machines.values().map(|machine| past.known(machine)).collect();
        let mut bill = Self::of(fleet, &knowns);
        bill.complete(past.record.usd_per_hour);
        bill
    }

    /// Adds what is missing to a total that is known.
    fn complete(&mut self, total_usd: f64) {
        let missing = nano_usd(total_usd) - self.total();
        // The total was added up in another order, in floating point.
        if missing > 1000 {
            let nobody: Arc<str> = "".into();
            let (capacity_type, provider) = (CapacityType::Unspecified, nobody.clone());
            let sort =
                Sort { cause: Cause::Failed, cluster: nobody, priority: None, capacity_type, provider };
            self.add(sort, missing, 0.0);
        }
    }

    fn add(&mut self, sort: Sort, nanos: i128, machines: f64) {
        let sum = self.sums.entry(sort).or_default();
        sum.nanos += nanos;
        sum.machines += machines;
    }

    pub(crate) fn total(&self) -> i128 {
        self.sums.values().map(|sum| sum.nanos).sum()
    }

    fn sum(&self, counts: impl Fn(&Sort) -> bool) -> i128 {
        self.sums.iter().filter(|(sort, _)| counts(sort)).map(|(_, sum)| sum.nanos).sum()
    }

    /// Only what one cluster pays.
    fn keep_cluster(&mut self, cluster: &str) {
        if !cluster.is_empty() {
            self.sums.retain(|sort, _| *sort.cluster == *cluster);
        }
    }

    fn parts(&self) -> Vec<v1::CostPart> {
        let part = |(sort, sum): (&Sort, &Sum)| v1::CostPart {
            cluster: sort.cluster.to_string(),
            priority: sort.priority,
            capacity_type: sort.capacity_type.to_wire(),
            provider: sort.provider.to_string(),
            cause: sort.cause.code().to_owned(),
            nano_usd: whole(sum.nanos),
            machines: sum.machines,
        };
        self.sums.iter().map(part).collect()
    }

    /// Everything that is said about it, for an hour of it.
    fn message(&self) -> v1::Costs {
        let usd = |nanos: i128| nanos as f64 / 1e9;
        let mut cells: BTreeMap<(&Arc<str>, CapacityType), Sum> = BTreeMap::new();
        for (sort, sum) in &self.sums {
            let cell = cells.entry((&sort.cluster, sort.capacity_type)).or_default();
            cell.nanos += sum.nanos;
            cell.machines += sum.machines;
        }
        let moving = [Cause::Starting, Cause::Draining, Cause::GivingBack];
        let idle = [Cause::IdleHold, Cause::IdleFixed];
        v1::Costs {
            usd_per_hour: usd(self.total()),
            idle_usd_per_hour: usd(self.sum(|sort| idle.contains(&sort.cause))),
            moving_usd_per_hour: usd(self.sum(|sort| moving.contains(&sort.cause))),
            failed_usd_per_hour: usd(self.sum(|sort| sort.cause == Cause::Failed)),
            cells: cells
                .into_iter()
                .map(|((cluster, capacity_type), sum)| v1::CostCell {
                    cluster: cluster.to_string(),
                    capacity_type: capacity_type.to_wire(),
                    machines: sum.machines.round() as u32,
                    usd_per_hour: usd(sum.nanos),
                })
                .collect(),
            total_nano_usd: whole(self.total()),
            parts: self.parts(),
            ..v1::Costs::default()
        }
    }
}

/// As the wire has it: nine billion dollars fit.
fn whole(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

impl<S: Shards> View<S> {
    /// This instant with all its machines: in one look if there are not too many of them.
    pub(crate) async fn with_machines(&self) -> Result<(Snapshot, Vec<Known>), Status> {
        let simulated = self.about.simulated;
        let look = move |shard: &Shard, now: i64| {
            let few = shard.machine_count() <= ONE_LOOK;
            let machines = few.then(|| shard.machines_from(0).map(|view| Known::new(shard, view)).collect());
            (Snapshot::live(shard, now, simulated), machines)
        };
        let (snapshot, machines): (Snapshot, Option<Vec<Known>>) = self.shards.inspect(look).await?;
        if let Some(machines) = machines {
            return Ok((snapshot, machines));
        }
        let mut machines = Vec::new();
        let mut walk = Walk::begin(None);
        while let Some(slice) = self.next_slice(&mut walk).await? {
            machines.extend(slice);
        }
        Ok((snapshot, machines))
    }

    /// A moment with all its machines.
    pub(crate) async fn moment_with_machines(
        &self,
        at: Option<v1::Moment>,
    ) -> Result<(Snapshot, Vec<Known>), Status> {
        if at.is_none_or(|at| at.moment.is_none()) && !self.about.record_only {
            return self.with_machines().await;
        }
        let snapshot = self.snapshot(at).await?;
        let machines =
            snapshot.past.iter().flat_map(|past| past.machines.values().map(|one| past.known(one)));
        let machines = machines.collect();
        Ok((snapshot, machines))
    }

    pub(crate) async fn costs(&self, request: v1::GetCostsRequest) -> Result<v1::Costs, Status> {
        if request.from_unix_nanos != 0 {
            return self.costs_over(request).await;
        }
        let (snapshot, machines) = self.moment_with_machines(request.at).await?;
        if !request.cluster.is_empty() {
            self.check_cluster(&snapshot, &request.cluster).await?;
        }
        blocking(move || {
            let mut bill = match &snapshot.past {
                Some(past) => Bill::of_past(&snapshot.fleet, past),
                None => Bill::of(&snapshot.fleet, &machines),
            };
            bill.keep_cluster(&request.cluster);
            let mut costs = bill.message();
            if request.judge {
                costs.judgement = Some(judge::judge(&snapshot, &machines));
            }
            costs.as_of = Some(snapshot.as_of);
            Ok(costs)
        })
        .await
    }
}

#[cfg(test)]
mod tests;
