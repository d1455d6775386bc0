//! The edits somebody wants tried, made on a copy.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::stamp::Assignment;
use tonic::Status;

use super::world::World;
use crate::filter::Filter;
use crate::known::{Known, Search};
use crate::names::{find_cluster, find_need};
use crate::v1;
use crate::v1::edit::Edit;

/// Machines that may be added in one edit.
const MOST_ADDED: u32 = 1_000_000;

/// What edits touched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Edited {
    pub(super) machines: usize,
    pub(super) needs: usize,
}

impl World {
    /// Makes all edits in order; `knowns` are the machines as the shard knows them.
    pub(super) fn edit(&mut self, edits: &[v1::Edit], knowns: &[Known]) -> Result<Edited, Status> {
        let mut edited = Edited::default();
        for (at, edit) in edits.iter().enumerate() {
            let edit =
                edit.edit.as_ref().ok_or_else(|| Status::invalid_argument(format!("edit {at} is empty")))?;
            let told =
                |status: Status| Status::new(status.code(), format!("edit {at}: {}", status.message()));
            match edit {
                Edit::AddNeed(add) => edited.needs += self.add_need(add).map_err(told)?,
                Edit::RemoveNeed(name) => {
                    edited.needs += self.change_needs(name, "", |_| Ok(None)).map_err(told)?;
                }
                Edit::ScaleNeed(scale) => edited.needs += self.scale(scale).map_err(told)?,
                Edit::SetPriority(set) => {
                    let change = |need: Need| Ok(Some(with_terms(need, Some(set.priority), None, None)));
                    edited.needs += self.change_needs(&set.need, &set.cluster, change).map_err(told)?;
                }
                Edit::SetPenalty(set) => edited.needs += self.set_penalty(set).map_err(told)?,
                Edit::AddMachines(add) => edited.machines += self.add_machines(add, knowns).map_err(told)?,
                Edit::RemoveMachines(remove) => {
                    let most = if remove.count == 0 { usize::MAX } else { remove.count as usize };
                    let chosen = self.choose(remove.filter.clone(), knowns).map_err(told)?;
                    for machine in chosen.iter().take(most) {
                        self.remove(&machine.id);
                        edited.machines += 1;
                    }
                }
                Edit::SetPrice(set) => edited.machines += self.set_price(set, knowns).map_err(told)?,
                Edit::SetProbability(set) => {
                    edited.machines += self.set_probability(set, knowns).map_err(told)?;
                }
            }
        }
        Ok(edited)
    }

    fn add_need(&mut self, add: &v1::AddNeed) -> Result<usize, Status> {
        let spec = add.need.as_ref().ok_or_else(|| Status::invalid_argument("no need is given"))?;
        let cluster: Arc<str> = add.cluster.as_str().into();
        let need = bigfleet_proto::convert::demand::need(&cluster, spec)
            .map_err(|error| Status::invalid_argument(error.to_string()))?;
        let mut rows = self.rows(&cluster);
        rows.push(need);
        self.replace(&cluster, rows)?;
        Ok(1)
    }

    fn scale(&mut self, scale: &v1::ScaleNeed) -> Result<usize, Status> {
        let factor = scale.factor;
        if !(factor.is_finite() && factor >= 0.0) {
            return Err(Status::invalid_argument(format!("factor {factor} is not a number from 0 up")));
        }
        self.change_needs(&scale.need, "", |need| {
            let amounts = need.aggregate.iter().map(|(name, amount)| {
                // At least one indivisible piece stays, or it would not be the same need.
                let least = need.min_unit.get(name);
                (name.clone(), ((amount as f64 * factor).round() as u64).max(least))
            });
            let aggregate =
                ResourceVec::new(amounts).map_err(|error| Status::invalid_argument(error.to_string()))?;
            Ok((factor > 0.0).then_some(Need { aggregate, ..need }))
        })
    }

    fn set_penalty(&mut self, set: &v1::SetPenalty) -> Result<usize, Status> {
        let bucket = |dollars: Option<f64>| match dollars {
            None => Ok(None),
            Some(dollars) => PenaltyBucket::for_dollars(dollars)
                .map(Some)
                .map_err(|error| Status::invalid_argument(error.to_string())),
        };
        let (interruption, reclamation) = (bucket(set.interruption_usd)?, bucket(set.reclamation_usd)?);
        self.change_needs(&set.need, &set.cluster, |need| {
            Ok(Some(with_terms(need, None, interruption, reclamation)))
        })
    }

    /// Changes one need, or all of a cluster.
    fn change_needs(
        &mut self,
        need: &str,
        cluster: &str,
        change: impl Fn(Need) -> Result<Option<Need>, Status>,
    ) -> Result<usize, Status> {
        if need.is_empty() == cluster.is_empty() {
            return Err(Status::invalid_argument("name either a need or a cluster"));
        }
        let key: Option<NeedKey> = if need.is_empty() {
            find_cluster(cluster, self.fleet.clusters())?;
            None
        } else {
            Some(find_need(&self.fleet, need)?)
        };
        let cluster: Arc<str> = key.as_ref().map_or_else(|| cluster.into(), |key| key.cluster.clone());
        let (mut rows, mut changed) = (Vec::new(), 0);
        for row in self.rows(&cluster) {
            if key.as_ref().is_none_or(|key| row.key() == *key) {
                changed += 1;
                rows.extend(change(row)?);
            } else {
                rows.push(row);
            }
        }
        self.replace(&cluster, rows)?;
        Ok(changed)
    }

    fn rows(&self, cluster: &str) -> Vec<Need> {
        self.fleet.rows_of(cluster).iter().map(|demand| demand.need.clone()).collect()
    }

    fn replace(&mut self, cluster: &str, rows: Vec<Need>) -> Result<(), Status> {
        let replaced = self.fleet.replace(cluster, rows, self.now_unix_nanos);
        replaced.map(|_| ()).map_err(|error| Status::invalid_argument(error.to_string()))
    }

    /// Machines a filter lets through, as they are in this copy, by id.
    fn choose(
        &self,
        filter: Option<v1::MachineFilter>,
        knowns: &[Known],
    ) -> Result<Vec<Arc<Machine>>, Status> {
        let filter = Filter::new(filter, &self.fleet)?;
        let mut chosen: Vec<Arc<Machine>> = knowns
            .iter()
            .filter(|known| filter.admits(known))
            .filter_map(|known| self.machines.get(&known.machine.id).cloned())
            .collect();
        if chosen.is_empty() {
            return Err(Status::not_found("no machine passes the filter, so nothing would be different"));
        }
        chosen.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(chosen)
    }

    fn add_machines(&mut self, add: &v1::AddMachines, knowns: &[Known]) -> Result<usize, Status> {
        if add.count == 0 || add.count > MOST_ADDED {
            return Err(Status::invalid_argument(format!("{} machines; give 1 to {MOST_ADDED}", add.count)));
        }
        let model = if let Some(model) = self.machines.get(&*add.like) {
            model.clone()
        } else {
            let mut search = Search::new(&add.like);
            for known in knowns {
                search.consider(known.clone());
            }
            search.result()?.machine
        };
        let fixed = matches!(
            model.capacity_type,
            CapacityType::BareMetal | CapacityType::Reserved | CapacityType::Unspecified
        );
        let mut added = 0;
        for number in 1..=add.count {
            let id: Box<str> = format!("what-if-{}-{number}", model.id).into();
            let mut machine = Machine {
                id: id.clone(),
                state: if fixed { MachineState::Idle } else { MachineState::Speculative },
                host: fixed.then(|| HostRef { provider: "what-if".into(), reference: id }),
                cluster: "".into(),
                assigned: Assignment::default(),
                draining_for: None,
                idle_since_unix_nanos: fixed.then_some(self.now_unix_nanos),
                last_error: "".into(),
                ..Machine::clone(&model)
            };
            machine.price_usd_per_hour = add.usd_per_hour.unwrap_or(machine.price_usd_per_hour);
            if !add.zone.is_empty() {
                machine.zone = add.zone.as_str().into();
            }
            machine.check().map_err(|error| Status::invalid_argument(error.to_string()))?;
            self.put(machine);
            added += 1;
        }
        Ok(added)
    }

    fn set_price(&mut self, set: &v1::SetPrice, knowns: &[Known]) -> Result<usize, Status> {
        use v1::set_price::Price;
        let price = set.price.ok_or_else(|| Status::invalid_argument("no price and no factor is given"))?;
        self.change_machines(set.filter.clone(), knowns, |machine| {
            machine.price_usd_per_hour = match price {
                Price::UsdPerHour(usd) => usd,
                Price::Factor(factor) => machine.price_usd_per_hour * factor,
            };
        })
    }

    fn set_probability(&mut self, set: &v1::SetProbability, knowns: &[Known]) -> Result<usize, Status> {
        let probability = set.interruption_probability;
        self.change_machines(set.filter.clone(), knowns, |m| m.interruption_probability = probability)
    }

    fn change_machines(
        &mut self,
        filter: Option<v1::MachineFilter>,
        knowns: &[Known],
        change: impl Fn(&mut Machine),
    ) -> Result<usize, Status> {
        let chosen = self.choose(filter, knowns)?;
        for machine in &chosen {
            let mut machine = Machine::clone(machine);
            change(&mut machine);
            machine.check().map_err(|error| Status::invalid_argument(error.to_string()))?;
            self.put(machine);
        }
        Ok(chosen.len())
    }
}

/// A need with another priority or other penalties.
fn with_terms(
    need: Need,
    priority: Option<i32>,
    interruption: Option<PenaltyBucket>,
    reclamation: Option<PenaltyBucket>,
) -> Need {
    let profile = &need.profile;
    let changed = Profile::new(
        profile.requirements().to_vec(),
        profile.spread().to_vec(),
        priority.unwrap_or(profile.priority()),
        interruption.unwrap_or(profile.interruption()),
        reclamation.unwrap_or(profile.reclamation()),
    );
    Need { profile: Arc::new(changed), ..need }
}
