//! The purchase rail: what replaces machines lost to a suspicious listing is bought at a bounded pace.
//!
//! It holds nothing but Provisions, and of those only as much as was lost: what a need asks for beyond that has grown, or
//! was missing before, and priority is the only throttle there. [`crate::losses`] keeps the books.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_engine::{ActionKind, Decision};
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::resource::ResourceVec;

use crate::config::SECOND;
use crate::effect::{Step, Urgency};
use crate::event::ProviderId;
use crate::losses::{Account, Loss, Losses, Of, Pace, Verdict};
use crate::memory::{Fact, LossMemo, PauseScope};
use crate::planted::Bug;
use crate::shard::Shard;

/// Which of a decision's Provisions replace lost machines, by their places, and which of those may go ahead.
#[derive(Debug, Default)]
pub(crate) struct Replacing {
    pub(crate) all: BTreeSet<usize>,
    pub(crate) passes: BTreeSet<usize>,
}

impl Replacing {
    pub(crate) fn holds(&self, index: usize) -> bool {
        self.all.contains(&index) && !self.passes.contains(&index)
    }
}

/// Marks, from the last to the first, actions that bring some of what is missing, until nothing is.
fn mark(
    missing: &mut ResourceVec,
    actions: impl Iterator<Item = (usize, ResourceVec)>,
    marked: &mut BTreeSet<usize>,
) {
    for (index, brings) in actions {
        if missing.is_zero() {
            return;
        }
        if !marked.contains(&index) && brings.contributes(missing) {
            *missing = missing.saturating_sub(&brings);
            marked.insert(index);
        }
    }
}

impl Shard {
    /// Takes up losses of a life before.
    pub(crate) fn recall_losses(
        &mut self,
        losses: BTreeMap<Box<str>, LossMemo>,
        bought: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
        now: i64,
    ) {
        let provider = |name: &str| {
            let place = self.config.providers.iter().position(|provider| *provider.name == *name)?;
            Some(ProviderId(place as u16))
        };
        let losses = losses
            .into_iter()
            .filter_map(|(id, memo)| Some(((memo.cluster, provider(&memo.provider)?), id, memo.loss)));
        self.losses = Losses::recall(losses, bought, now);
    }

    /// A bound machine was lost by its provider's word: `was` is what it was. Its counts are as they are without it.
    pub(crate) fn note_loss(&mut self, was: &Machine, provider: ProviderId, now: i64, step: &mut Step) {
        let name: Arc<str> = match self.clusters.get_key_value(&*was.cluster) {
            Some((name, _)) => name.clone(),
            None => return,
        };
        let claimed = self.engine.demand_claiming(&was.id).filter(|demand| demand.need.cluster == name);
        let loss = Loss::of(claimed.map(|demand| &**demand), was.provides(), was.price_usd_per_hour);
        let bills = (self.money.of_cluster(&name), self.money.bound());
        let config = (&self.config.guard, &self.config.rails);
        let noted = self.losses.note(&(name, provider), (was.id.clone(), loss), bills, config, now);
        for of in noted.opened {
            self.say_suspicious(&of, bills.0.machines, step);
        }
        for id in noted.written {
            let found = self
                .losses
                .accounts()
                .iter()
                .find_map(|(of, account)| account.lost.get(&id).map(|loss| (of, loss.clone())));
            if let Some(((cluster, provider), loss)) = found {
                let provider = self.providers[provider.0 as usize].name.clone();
                let memo = LossMemo { cluster: cluster.clone(), provider, loss };
                step.facts.push(Fact::Loss(id, Some(memo)));
            }
        }
    }

    fn say_suspicious(&self, (cluster, provider): &Of, left: u64, step: &mut Step) {
        let rails = &self.config.rails;
        let text = format!(
            "cluster {cluster} loses more than {} % of what it or the fleet is bound to, by the word of provider {} within {} s \
             ({left} machines are left to it); the cluster is told, and until {} full listings that far apart agree, at most \
             {} % of what is lost is replaced by purchases in {} s. `bigfleet get rails` shows it, `bigfleet resume --kind provision` \
             lets go",
            (self.config.guard.supply_drop * 100.0).round(),
            self.providers[provider.0 as usize].name,
            rails.purchase_window / SECOND,
            self.config.guard.confirmations,
            (rails.purchase_fraction * 100.0).round(),
            rails.purchase_window / SECOND,
        );
        Self::say(step, Urgency::Alarm, "suspicious_loss", text);
    }

    /// A full listing of a provider has ended and is believed: it may confirm what was lost, or that it is back.
    pub(crate) fn compare_losses(&mut self, id: ProviderId, now: i64, step: &mut Step) {
        if !self.losses.doubts(id) {
            return;
        }
        let mut losses = std::mem::take(&mut self.losses);
        let config = (&self.config.guard, &self.config.rails);
        let (struck, closed) =
            losses.compare(id, config, now, |cluster, id, loss| self.is_back(cluster, id, loss));
        self.losses = losses;
        step.facts.extend(struck.into_iter().map(|id| Fact::Loss(id, None)));
        for ((cluster, _), verdict) in closed {
            let provider = &self.providers[id.0 as usize].name;
            let (code, text) = match verdict {
                Verdict::Believed(lost) => (
                    "loss_believed",
                    format!(
                        "cluster {cluster}: listings of provider {provider} agree, {lost} machines are lost; \
                             they are replaced like any others"
                    ),
                ),
                Verdict::Returned => (
                    "loss_returned",
                    format!("cluster {cluster}: its machines at provider {provider} are back"),
                ),
            };
            Self::say(step, Urgency::Warning, code, text);
            self.news.supply = true;
        }
    }

    /// A machine, if it is there for a cluster.
    fn serving(&self, cluster: &str, id: &str) -> Option<&Machine> {
        let machine = &self.table.row(self.table.find(id)?).machine;
        (machine.state.is_bound() && *machine.cluster == *cluster).then_some(&**machine)
    }

    /// How much of a loss is not back.
    fn left_of(&self, cluster: &str, id: &str, loss: &Loss) -> ResourceVec {
        let counts = |machine: &&Machine| {
            let demand = loss.need.as_ref().and_then(|need| self.engine.need(need));
            demand.is_none_or(|demand| counts_for(machine, &demand.need))
        };
        let back = self.serving(cluster, id).filter(counts);
        back.map_or_else(|| loss.amount.clone(), |machine| loss.amount.saturating_sub(machine.provides()))
    }

    /// Whether a cluster has a machine again as it was.
    fn is_back(&self, cluster: &str, id: &str, loss: &Loss) -> bool {
        self.serving(cluster, id).is_some() && self.left_of(cluster, id, loss).is_zero()
    }

    /// What a replacement is, if it is on its way or there.
    fn on_its_way(&self, id: &str, cluster: &str) -> Option<&Machine> {
        let machine = &self.table.row(self.table.find(id)?).machine;
        let comes = machine.state == MachineState::Creating && *machine.assigned.cluster == *cluster;
        if comes { Some(machine) } else { self.serving(cluster, id) }
    }

    /// Which Provisions of a decision replace machines lost to suspicious listings, and which of those may go ahead.
    pub(crate) fn replacing(&self, decision: &Decision, now: i64) -> Replacing {
        let mut replacing = Replacing::default();
        if self.losses.is_empty() || self.config.has(Bug::PurchaseRailOff) {
            return replacing;
        }
        let rails = &self.config.rails;
        let mut usd: f64 = self.replacement_usd_per_hour();
        for cluster in self.losses.clusters() {
            let mut outstanding = self.losses.outstanding(
                cluster,
                |id, loss| self.left_of(cluster, id, loss),
                |id| self.on_its_way(id, cluster).map(|machine| machine.provides().clone()),
            );
            if outstanding.is_empty() {
                continue;
            }
            let provisions = self.provisions_of(decision, cluster);
            let mut marked = BTreeSet::new();
            // First what the very need lost that buys now.
            for (need, missing) in &mut outstanding {
                let mine = provisions.iter().rev().filter(|(_, key, _)| key == *need);
                mark(
                    missing,
                    mine.map(|(index, _, machine)| (*index, machine.provides().clone())),
                    &mut marked,
                );
            }
            // It may have taken over what another need of its cluster had, and that one buys.
            let mut rest = outstanding.into_values().fold(ResourceVec::ZERO, |sum, more| sum.add(&more));
            let all = provisions.iter().rev().map(|(index, _, machine)| (*index, machine.provides().clone()));
            mark(&mut rest, all, &mut marked);
            let pace = self.losses.pace(cluster, rails, now);
            let mut may = pace.most.saturating_sub(pace.used);
            for (index, _, machine) in provisions.iter().filter(|(index, ..)| marked.contains(index)) {
                if may == 0 || usd + machine.price_usd_per_hour > rails.purchase_usd_per_hour {
                    break;
                }
                may -= 1;
                usd += machine.price_usd_per_hour;
                replacing.passes.insert(*index);
            }
            replacing.all.extend(marked);
        }
        replacing
    }

    /// The Provisions of a decision for needs of one cluster, in order.
    fn provisions_of<'a>(
        &'a self,
        decision: &Decision,
        cluster: &Arc<str>,
    ) -> Vec<(usize, NeedKey, &'a Arc<Machine>)> {
        let actions = decision.actions.iter().enumerate();
        let mine = actions.filter_map(|(index, action)| {
            let need = action.need.as_ref().filter(|_| action.kind == ActionKind::Provision)?;
            let slot = self.table.find(&action.machine)?;
            (need.need.cluster == *cluster).then(|| (index, need.need.key(), &self.table.row(slot).machine))
        });
        mine.collect()
    }

    /// Notes which replacements were begun.
    pub(crate) fn note_replacements(
        &mut self,
        decision: &Decision,
        begun: impl Iterator<Item = usize>,
        now: i64,
        step: &mut Step,
    ) {
        let mut bought: BTreeMap<Arc<str>, Vec<(Box<str>, NeedKey)>> = BTreeMap::new();
        for index in begun {
            let action = &decision.actions[index];
            let Some(demand) = &action.need else { continue };
            let machines = bought.entry(demand.need.cluster.clone()).or_default();
            machines.push((action.machine.clone(), demand.need.key()));
        }
        for (cluster, machines) in bought {
            self.tally.replaced_under_rail += machines.len() as u64;
            let times = self.losses.buy(&cluster, machines, &self.config.rails, now);
            step.facts.push(Fact::Bought(cluster, Some(times)));
        }
        for cluster in self.losses.forget_purchases(&self.config.rails, now) {
            step.facts.push(Fact::Bought(cluster, None));
        }
    }

    /// Cancels purchases that still wait for a place to be called, where the last cycle has no need for them any more: what
    /// was lost is back, or the demand is gone.
    pub(crate) fn cancel_unwanted(&mut self, now: i64, step: &mut Step) {
        let unwanted = self.moves.line().map(|(.., slot)| *slot).filter(|slot| {
            let flight = self.flight(*slot);
            // A call that is tried again may have been carried out.
            let is_fresh = flight.kind == ActionKind::Provision && flight.tries == 0;
            is_fresh && self.engine.demand_claiming(&self.table.row(*slot).machine.id).is_none()
        });
        for slot in unwanted.collect::<Vec<_>>() {
            self.roll_back(slot, "cancelled", now, step);
        }
    }

    /// Lets go of what the purchase rail holds, if a scope covers it. The clusters it was held for.
    pub(crate) fn release_purchases(&mut self, scope: &PauseScope, step: &mut Step) -> Vec<Arc<str>> {
        let covers = |(cluster, _): &&Of| scope.covers(ActionKind::Provision, Some(cluster));
        let released: Vec<Of> = self.losses.accounts().keys().filter(covers).cloned().collect();
        for of in &released {
            let gone = self.losses.close(of);
            step.facts.extend(gone.into_iter().map(|id| Fact::Loss(id, None)));
            self.news.command = true;
        }
        released.into_iter().map(|(cluster, _)| cluster).collect()
    }

    /// Losses that are not believed, by cluster and provider.
    pub fn suspicious_losses(&self) -> impl Iterator<Item = (&Arc<str>, ProviderId, &Account)> {
        self.losses.accounts().iter().map(|((cluster, provider), account)| (cluster, *provider, account))
    }

    /// How many replacements a cluster may buy within a window while its losses are not believed.
    pub fn purchase_pace(&self, cluster: &str, now_unix_nanos: i64) -> Pace {
        self.losses.pace(cluster, &self.config.rails, now_unix_nanos)
    }

    /// What machines bought as such replacements cost an hour.
    pub fn replacement_usd_per_hour(&self) -> f64 {
        let replacements = self.losses.replacements().iter();
        let machines = replacements.filter_map(|(id, need)| self.on_its_way(id, &need.cluster));
        // An empty sum would be minus nothing.
        machines.map(|machine| machine.price_usd_per_hour).fold(0.0, |sum, price| sum + price)
    }
}

/// Whether a machine counts for a need at all.
pub(crate) fn counts_for(machine: &Machine, need: &Need) -> bool {
    need.profile.matches(machine.facts()) && need.fits_on(machine.provides())
}
