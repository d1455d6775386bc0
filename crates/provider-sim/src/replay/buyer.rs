//! The buyer: holds as many machines as the load needs, cheapest first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bigfleet_model::machine::MachineState;
use bigfleet_model::quantity::Quantity;
use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider as _;
use bigfleet_proto::v1alpha1::{ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest};
use bigfleet_provider_kit::{Handle, Machine};
use tonic::Request;

use crate::scenario::Load;
use crate::shared::state_of;
use crate::sim::{Service, Sim};
use crate::span::Span;
use crate::world::NOTICE_LABEL;

/// What a replay came to. All of it is simulated.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// How long it was.
    pub lasted: Span,
    /// Moves that were accepted.
    pub moves: u64,
    /// Calls that were refused.
    pub refused: u64,
    /// Machines that were lost or could not be made while they were wanted.
    pub lost: u64,
    /// The time units of load were wanted and had no machine, added up, in unit-seconds.
    pub missing_unit_secs: f64,
    /// What the machines cost.
    pub usd: f64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "simulated {}: {} moves, {} calls refused, {} machines lost, {:.0} unit-seconds missing, {:.2} USD",
            self.lasted, self.moves, self.refused, self.lost, self.missing_unit_secs, self.usd
        )
    }
}

pub(super) struct Buyer<'a> {
    service: Service,
    handle: Handle,
    loads: &'a [Load],
    /// Which load holds a machine.
    held: BTreeMap<String, usize>,
    /// Machines on their way out.
    leaving: BTreeSet<String>,
    summary: Summary,
    missing_units: f64,
}

impl<'a> Buyer<'a> {
    pub(super) fn new(sim: &Sim, loads: &'a [Load]) -> Self {
        Self {
            service: sim.service(),
            handle: sim.handle(),
            loads,
            held: BTreeMap::new(),
            leaving: BTreeSet::new(),
            summary: Summary::default(),
            missing_units: 0.0,
        }
    }

    /// Looks at all loads and machines, and makes the next moves.
    pub(super) async fn look(&mut self, at: Span) {
        self.see_off().await;
        self.missing_units = 0.0;
        for (number, load) in self.loads.iter().enumerate() {
            let holds = self.keep_up(number, load).await;
            let wanted = load.units_at(at);
            if holds < wanted {
                self.buy(number, load, wanted - holds).await;
            } else {
                self.let_go(number, load, holds - wanted).await;
            }
            self.missing_units += (wanted - self.serving(number, load)).max(0.0);
        }
    }

    /// Pays for all hardware that was there for this long.
    pub(super) fn pay(&mut self, span: Span) {
        let hourly: f64 =
            self.handle.machines().iter().filter(|m| m.host.is_some()).map(|m| m.price_per_hour).sum();
        self.summary.usd += hourly * span.secs() / 3600.0;
        self.summary.missing_unit_secs += self.missing_units * span.secs();
    }

    pub(super) fn summary(&self, lasted: Span) -> Summary {
        Summary { lasted, ..self.summary.clone() }
    }

    /// Takes machines on: binds what is made, forgets what is lost. How many units there are or will be.
    async fn keep_up(&mut self, number: usize, load: &Load) -> f64 {
        let mut units = 0.0;
        for id in self.ids_of(number) {
            let Some(machine) = self.handle.get(&id) else { continue };
            match state_of(&machine) {
                MachineState::Failed | MachineState::Speculative | MachineState::Deleting => {
                    self.held.remove(&id);
                    self.summary.lost += 1;
                    continue;
                }
                MachineState::Idle => self.configure(&id, load).await,
                MachineState::Configured if machine.labels.contains_key(NOTICE_LABEL) => {
                    self.drain(&id).await;
                    continue;
                }
                _ => {}
            }
            units += holds(&machine, load);
        }
        units
    }

    fn serving(&self, number: usize, load: &Load) -> f64 {
        let ids = self.ids_of(number);
        let machines = ids.iter().filter_map(|id| self.handle.get(id));
        machines.filter(|m| state_of(m) == MachineState::Configured).map(|m| holds(&m, load)).sum()
    }

    fn ids_of(&self, number: usize) -> Vec<String> {
        self.held.iter().filter(|(_, holder)| **holder == number).map(|(id, _)| id.clone()).collect()
    }

    async fn buy(&mut self, number: usize, load: &Load, mut missing: f64) {
        let mut offers: Vec<(f64, bool, String, f64)> = Vec::new();
        for machine in self.handle.machines() {
            let state = state_of(&machine);
            let free = matches!(state, MachineState::Idle | MachineState::Speculative);
            let units = holds(&machine, load);
            if free
                && units >= 1.0
                && !self.held.contains_key(&machine.id)
                && !self.leaving.contains(&machine.id)
            {
                let made = state == MachineState::Idle;
                offers.push((machine.price_per_hour / units, !made, machine.id.clone(), units));
            }
        }
        // What is there already is paid for; then the cheapest.
        offers.sort_by(|a, b| a.1.cmp(&b.1).then(a.0.total_cmp(&b.0)).then(a.2.cmp(&b.2)));
        for (_, must_be_made, id, units) in offers {
            if missing <= 0.0 {
                break;
            }
            let taken = if must_be_made { self.create(&id).await } else { true };
            if taken {
                self.held.insert(id.clone(), number);
                missing -= units;
            }
            if !must_be_made {
                self.configure(&id, load).await;
            }
        }
    }

    async fn let_go(&mut self, number: usize, load: &Load, mut spare: f64) {
        let mut bound: Vec<_> = self.ids_of(number).iter().filter_map(|id| self.handle.get(id)).collect();
        bound.retain(|machine| state_of(machine) == MachineState::Configured);
        bound.sort_by(|a, b| b.price_per_hour.total_cmp(&a.price_per_hour).then(a.id.cmp(&b.id)));
        for machine in bound {
            let units = holds(&machine, load);
            if units <= spare {
                self.drain(&machine.id).await;
                spare -= units;
            }
        }
    }

    /// Gives back what was drained.
    async fn see_off(&mut self) {
        for id in self.leaving.clone() {
            let Some(machine) = self.handle.get(&id) else { continue };
            match state_of(&machine) {
                MachineState::Idle => {
                    let request = DeleteRequest { machine_id: id.clone(), ..DeleteRequest::default() };
                    let answer = self.service.delete(Request::new(request)).await;
                    self.count(answer.is_ok());
                }
                MachineState::Speculative | MachineState::Failed => {
                    self.leaving.remove(&id);
                }
                _ => {}
            }
        }
    }

    async fn create(&mut self, id: &str) -> bool {
        let request = CreateRequest { machine_id: id.into(), ..CreateRequest::default() };
        let answer = self.service.create(Request::new(request)).await;
        self.count(answer.is_ok())
    }

    async fn configure(&mut self, id: &str, load: &Load) {
        let (machine_id, cluster_id) = (id.into(), load.cluster.clone());
        let request = ConfigureRequest { machine_id, cluster_id, ..ConfigureRequest::default() };
        let answer = self.service.configure(Request::new(request)).await;
        self.count(answer.is_ok());
    }

    async fn drain(&mut self, id: &str) {
        let request =
            DrainRequest { machine_id: id.into(), grace_period_seconds: 60, ..DrainRequest::default() };
        let answer = self.service.drain(Request::new(request)).await;
        if self.count(answer.is_ok()) {
            self.held.remove(id);
            self.leaving.insert(id.into());
        }
    }

    fn count(&mut self, accepted: bool) -> bool {
        *if accepted { &mut self.summary.moves } else { &mut self.summary.refused } += 1;
        accepted
    }
}

/// How many units of a load a machine holds.
fn holds(machine: &Machine, load: &Load) -> f64 {
    let Some(has) = &machine.allocatable else { return 0.0 };
    let amount = |text: &str| text.parse::<Quantity>().map_or(0.0, |quantity| quantity.to_f64());
    let fits = load.unit.iter().map(|(resource, needed)| {
        let available = has.resources.get(resource).map_or(0.0, |text| amount(text));
        available / amount(needed)
    });
    fits.fold(f64::INFINITY, f64::min).floor()
}
