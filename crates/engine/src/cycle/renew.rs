//! Renewing the credit of single needs.
//!
//! A need that its own machines cover takes nothing else, and one that they leave short takes nothing of its cluster if
//! there is nothing that no need keeps. So where machines of some needs came or went, and nobody in the cluster claims what
//! is not its own, before or after, only these needs change. Where that is not certain, the cluster is walked.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amounts::{contributes, is_zero, subtract};
use crate::holdings::{DRAINING, Held, holder};
use crate::intern::NONE;
use crate::needs::{Demand, NeedsTable};
use crate::vocab::Amounts;

use super::cache::{Cache, Plan};
use super::sources::Sources;
use super::trim::trim;

/// Whose the machines of each identity of a cluster are, by identity: the row, or [`NONE`] where more than one need depends on it.
#[derive(Clone)]
pub(super) struct Owners(Box<[(u32, u32)]>);

impl Owners {
    fn new(plan: &Plan) -> Self {
        let mut owners: Vec<(u32, u32)> = Vec::new();
        for (row, demand) in (0..).zip(plan.credit.rows.iter()) {
            let alone = demand.same.is_none() && !plan.credit.sharing.contains(&row);
            owners.push((demand.key, if alone { row } else { NONE }));
            // Machines of a gang's own decide whether it is folded at all.
            owners.extend(demand.members.iter().map(|key| (*key, NONE)));
        }
        owners.sort_unstable_by_key(|(key, row)| (*key, std::cmp::Reverse(*row)));
        owners.dedup_by_key(|(key, _)| *key);
        Self(owners.into())
    }

    fn of(&self, key: u32) -> Owner {
        if key == DRAINING {
            return Owner::Several;
        }
        match self.0.binary_search_by_key(&key, |(key, _)| *key) {
            Err(_) => Owner::Nobody,
            Ok(at) if self.0[at].1 == NONE => Owner::Several,
            Ok(at) => Owner::Row(self.0[at].1),
        }
    }
}

/// Whose machines of an identity are.
enum Owner {
    /// No need of the cluster has it.
    Nobody,
    /// One plain need.
    Row(u32),
    /// More depends on them.
    Several,
}

/// What became of one need.
struct Renewed {
    row: u32,
    claims: SmallVec<[u32; 16]>,
    /// Empty if nothing is missing.
    missing: Amounts,
}

impl Cache {
    /// Renews the credit of the needs of a cluster whose own machines came or went, and lists them. False if more may depend
    /// on these machines.
    pub(super) fn renew(
        &mut self,
        cluster: u32,
        sources: Sources<'_>,
        needs: &NeedsTable,
        done: &mut Vec<(u32, u32)>,
    ) -> bool {
        let index = sources.index;
        let Some(plan) = &self.plans[cluster as usize] else { return false };
        if plan.shared
            || plan.credit.mixed
            || plan.demand != needs.version(cluster)
            || plan.generation != index.generation
        {
            return false;
        }
        let Some(touched) = index.holdings.touched_since(cluster, plan.supply) else { return false };
        if let Some(demand) = needs.cluster(cluster) {
            let same_folds = || self.fits_free(demand).eq(plan.fits_free.iter().copied());
            if plan.folds != self.folds.revision && !same_folds()
                || demand.folds.iter().any(|fold| self.folds.asks_supply(*fold))
            {
                return false;
            }
        }
        let plan = self.plans[cluster as usize].as_mut().expect("it was just there");
        if plan.owners.is_none() {
            plan.owners = Some(Owners::new(plan));
        }
        let owners = plan.owners.as_ref().expect("it was just made");
        let mut rows: SmallVec<[u32; 8]> = SmallVec::new();
        let mut keys: SmallVec<[u32; 16]> = SmallVec::new();
        for (_, key) in touched {
            keys.push(*key);
            match owners.of(*key) {
                Owner::Several => return false,
                Owner::Nobody => {}
                Owner::Row(row) => {
                    rows.push(row);
                    keys.extend_from_slice(&plan.credit.rows[row as usize].members);
                }
            }
        }
        keys.sort_unstable();
        let supply = index.holdings.supply(cluster);
        let mut renewed: SmallVec<[Renewed; 4]> = SmallVec::new();
        for row in rows {
            let demand = &*plan.credit.rows[row as usize];
            let Some(one) = renew_one(row, demand, supply.all(), supply.configured() as usize, sources)
            else {
                return false;
            };
            renewed.push(one);
        }
        let is_touched = |key: u32| keys.binary_search(&key).is_ok();
        let Some((excess, loose)) = unclaimed(plan, &renewed, cluster, is_touched, sources) else {
            return false;
        };

        let following = self.claimants.is_active();
        let credit = Arc::make_mut(&mut plan.credit);
        for Renewed { row, claims, missing } in renewed {
            if following {
                self.claimants.leave_row(credit, row);
            }
            credit.set_claims(row, &claims);
            credit.set_missing(row, missing);
            done.push((cluster, row));
        }
        (credit.excess, credit.loose) = (excess, loose);
        (plan.has_short, plan.has_excess) = (!credit.short.is_empty(), !credit.excess.is_empty());
        (plan.supply, plan.folds) = (index.holdings.version(cluster), self.folds.revision);
        true
    }
}

/// What a plain need claims of its own machines, if it takes nothing else; `None` if its turn depends on more.
fn renew_one(
    row: u32,
    demand: &Demand,
    held: &[Held],
    configured: usize,
    sources: Sources<'_>,
) -> Option<Renewed> {
    let is_own = |key: u32| key == demand.key || demand.members.contains(&key);
    let own = held.iter().enumerate().filter(|(_, held)| is_own(held.key));
    let mut missing = Amounts::from_slice(&demand.aggregate);
    let mut picked: Vec<(u32, u32)> = Vec::new();
    let (mut covered, mut all_configured) = (is_zero(&missing), true);
    for (position, held) in own {
        if covered {
            break;
        }
        let class = sources.classes.of_kind(held.kind);
        let provides = sources.classes.provides(class);
        if sources.counts(class, demand) && contributes(provides, &missing) {
            picked.push((held.machine, class));
            all_configured &= position < configured;
            covered = subtract(&mut missing, provides);
        }
    }
    if !covered && demand.spread.is_some() {
        return None;
    }
    if covered {
        if demand.spread.is_none() && all_configured {
            trim(&mut picked, &demand.aggregate, |(_, class)| sources.classes.provides(class), |_| {});
        }
        missing.clear();
    }
    Some(Renewed { row, claims: picked.iter().map(|(machine, _)| *machine).collect(), missing })
}

/// What nobody claims: Configured machines in keep order, and Configuring ones. `None` if a short need could take one of them.
fn unclaimed(
    plan: &Plan,
    renewed: &[Renewed],
    cluster: u32,
    is_touched: impl Fn(u32) -> bool,
    sources: Sources<'_>,
) -> Option<(Vec<u32>, Vec<u32>)> {
    let Sources { vocab, inventory, index, .. } = sources;
    let credit = &*plan.credit;
    let stands = |machine: &u32| {
        let row = inventory.row(*machine);
        holder(row, vocab).is_some_and(|(holder, _)| holder == cluster) && !is_touched(row.key)
    };
    let before = |list: &[u32]| list.iter().copied().filter(stands).collect::<Vec<u32>>();
    let (mut excess, mut loose) = (before(&credit.excess), before(&credit.loose));
    let kept = excess.len();
    let supply = index.holdings.supply(cluster);
    let claimed = |machine: u32| renewed.iter().any(|one| one.claims.contains(&machine));
    for (position, held) in (0..supply.bound()).zip(supply.all()) {
        if is_touched(held.key) && !claimed(held.machine) {
            if position < supply.configured() { &mut excess } else { &mut loose }.push(held.machine);
        }
    }
    if kept > 0 && excess.len() > kept {
        excess.sort_by(|a, b| inventory.row(*a).cmp_keep(inventory.row(*b)));
    }
    let is_renewed = |row: u32| renewed.iter().any(|one| one.row == row);
    let still =
        credit.short.iter().filter(|(row, _)| !is_renewed(*row)).map(|(row, missing)| (*row, missing));
    let new = renewed.iter().filter(|one| !one.missing.is_empty()).map(|one| (one.row, &one.missing));
    for (row, missing) in still.chain(new) {
        let demand = &credit.rows[row as usize];
        let takes = |machine: &u32| {
            let class = sources.class_of(*machine);
            sources.counts(class, demand) && contributes(sources.classes.provides(class), missing)
        };
        if excess.iter().chain(&loose).any(takes) {
            return None;
        }
    }
    Some((excess, loose))
}
