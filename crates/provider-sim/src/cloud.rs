//! The cloud behind the kit: how machines are made, joined, emptied and given back, and how long that takes.
//!
//! Everything is decided when a move begins, from the seed, the machine and the moment; then it takes its time.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_provider_kit::{Backend, CapacityType, Failure, Machine, Offering, OperationKind, Recovery};

use crate::catalogue::find;
use crate::fault::Kind;
use crate::inventory::{FAULT_LABEL, is_owned};
use crate::models::Taken;
use crate::shared::Shared;
use crate::span::Span;

/// The backend. Clones are the same cloud.
#[derive(Clone)]
pub struct Cloud(pub(crate) Arc<Shared>);

impl Cloud {
    /// Lets a move take its time; `least` and `most` bound what is drawn.
    async fn take_time(
        &self,
        kind: OperationKind,
        machine: &Machine,
        most: Option<Span>,
    ) -> Result<(), Failure> {
        let shared = &self.0;
        let name = event_name(kind);
        let wait = self.wait(kind, machine, most);
        let suits = |fault: &crate::fault::Fault| fault.concerns_move(kind) && fault.concerns(machine);
        if shared.hit(Kind::Hang, &machine.id, suits).is_some() {
            shared.event(name, &machine.id, "begins and will never end");
            std::future::pending::<()>().await;
        }
        let failure = self.failure(kind, machine);
        shared.event(name, &machine.id, format!("begins, will take {wait}"));
        shared.clock.sleep(wait.duration()).await;
        let outage = self.outage(kind, machine);
        if let Some(reason) = failure.or(outage) {
            shared.event(name, &machine.id, format!("fails: {reason}"));
            return Err(Failure(reason));
        }
        shared.event(name, &machine.id, "ends");
        Ok(())
    }

    fn wait(&self, kind: OperationKind, machine: &Machine, most: Option<Span>) -> Span {
        let shared = &self.0;
        let latencies = &shared.models.latency;
        let latency = match kind {
            OperationKind::Create if find(&machine.instance_type).is_some_and(|kind| kind.metal) => {
                latencies.create_metal
            }
            OperationKind::Create => latencies.create,
            OperationKind::Configure => latencies.configure,
            OperationKind::Drain => latencies.drain,
            OperationKind::Delete => latencies.delete,
        };
        let drawn = latency.draw(shared.dice, kind.name(), &machine.id, shared.now().cast_unsigned());
        let slower: f64 = shared
            .active(Kind::Slow)
            .iter()
            .filter(|(_, fault)| fault.concerns_move(kind) && fault.concerns(machine))
            .map(|(_, fault)| fault.number("factor"))
            .product();
        let drawn = most.map_or(drawn, |most| drawn.min(most.max(latency.least)));
        Span::from_nanos((drawn.nanos() as f64 * slower) as i64)
    }

    /// Why the move will fail, if it will: known from the beginning, told at the end.
    fn failure(&self, kind: OperationKind, machine: &Machine) -> Option<String> {
        if kind == OperationKind::Create
            && machine.labels.get(FAULT_LABEL).is_some_and(|value| value == "error")
        {
            return Some(format!("this slot is made to fail: label {FAULT_LABEL}=error (simulated)"));
        }
        let suits = |fault: &crate::fault::Fault| fault.concerns_move(kind) && fault.concerns(machine);
        self.0
            .hit(Kind::Fail, &machine.id, suits)
            .map(|_| format!("{kind} failed by a fault on the board (simulated)"))
    }

    fn outage(&self, kind: OperationKind, machine: &Machine) -> Option<String> {
        let is_out = self.0.active(Kind::ZoneOutage).iter().any(|(_, fault)| fault.concerns(machine));
        (is_out && kind == OperationKind::Create).then(|| format!("zone {} is out (simulated)", machine.zone))
    }

    /// Takes a machine out of its pool, or says why there is none.
    fn take_stock(&self, machine: &Machine) -> Result<Option<Stock>, Failure> {
        let shared = &self.0;
        if CapacityType::from_wire(machine.capacity_type).is_some_and(is_owned) {
            return Ok(None);
        }
        let (kind, zone) = (&machine.instance_type, &machine.zone);
        let out = shared.active(Kind::StockOut).iter().any(|(_, fault)| fault.covers(kind, zone));
        let taken = if out { Taken::StillEmpty } else { shared.pools().take(kind, zone, shared.now()) };
        if taken == Taken::Yes {
            let (instance_type, zone) = (kind.clone(), zone.clone());
            return Ok(Some(Stock { shared: shared.clone(), instance_type, zone, used: false }));
        }
        if taken == Taken::RanEmpty {
            shared.event("stock-out", &format!("{kind}/{zone}"), "the pool has run empty");
        }
        Err(Failure(format!("insufficient capacity: no {kind} is left in {zone} (simulated)")))
    }
}

/// A machine taken out of its pool. It goes back unless it is used, also when the move is given up.
struct Stock {
    shared: Arc<Shared>,
    instance_type: String,
    zone: String,
    used: bool,
}

impl Drop for Stock {
    fn drop(&mut self) {
        if !self.used {
            let now = self.shared.now();
            self.shared.pools().put_back(&self.instance_type, &self.zone, now);
        }
    }
}

fn event_name(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Create => "create",
        OperationKind::Configure => "configure",
        OperationKind::Drain => "drain",
        OperationKind::Delete => "delete",
    }
}

/// A name for hardware that nothing else has or had.
pub(crate) fn new_host(shared: &Shared, machine_id: &str) -> String {
    format!("sim-{:016x}", shared.dice.bits("host", machine_id, shared.now().cast_unsigned()))
}

impl Backend for Cloud {
    fn name(&self) -> &str {
        &self.0.name
    }

    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        Ok(self.0.inventory.offerings(&self.0.name, self.0.dice))
    }

    /// Prices and notices are the world's; a restart does not put them back.
    fn renews_offerings(&self) -> bool {
        false
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        let stock = self.take_stock(machine);
        if let Err(failure) = &stock {
            // A real provider also needs a moment to notice.
            self.0.clock.sleep(self.0.models.latency.create.least.duration()).await;
            self.0.event("create", &machine.id, format!("fails: {failure}"));
        }
        let stock = stock?;
        self.take_time(OperationKind::Create, machine, None).await?;
        if let Some(mut stock) = stock {
            stock.used = true;
        }
        Ok(new_host(&self.0, &machine.id))
    }

    async fn configure(&self, machine: &Machine, _bootstrap: &[u8]) -> Result<(), Failure> {
        self.take_time(OperationKind::Configure, machine, None).await?;
        if self.0.hit(Kind::NoNode, &machine.id, |fault| fault.concerns(machine)).is_some() {
            self.0.event("lie", &machine.id, "Configured is reported without a node");
        } else {
            self.0.nodes().insert(machine.id.clone(), machine.cluster.clone());
        }
        Ok(())
    }

    async fn confirm_ready(&self, machine: &Machine) -> Result<bool, Failure> {
        // Asked again and again: the chance is drawn once per machine and fault, not once per question.
        let stuck = self.0.active(Kind::StuckConfiguring).into_iter().any(|(id, fault)| {
            fault.concerns(machine) && self.0.dice.happens(fault.number("p"), "stuck", &machine.id, id)
        });
        Ok(!stuck)
    }

    async fn drain(&self, machine: &Machine, grace: Duration) -> Result<(), Failure> {
        let grace = Span::from_nanos(i64::try_from(grace.as_nanos()).unwrap_or(i64::MAX));
        self.take_time(OperationKind::Drain, machine, Some(grace)).await?;
        self.0.nodes().remove(&machine.id);
        Ok(())
    }

    async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        self.take_time(OperationKind::Delete, machine, None).await?;
        if !CapacityType::from_wire(machine.capacity_type).is_some_and(is_owned) {
            let now = self.0.now();
            self.0.pools().put_back(&machine.instance_type, &machine.zone, now);
        }
        Ok(())
    }

    /// The cloud has gone on while the provider was away.
    async fn recover(&self, machine: &Machine, kind: OperationKind) -> Recovery {
        let recovery = match kind {
            OperationKind::Create => match self.failure(kind, machine) {
                Some(reason) => Recovery::Failed(reason),
                None => Recovery::Ended(new_host(&self.0, &machine.id)),
            },
            OperationKind::Configure | OperationKind::Drain | OperationKind::Delete => {
                Recovery::Ended(String::new())
            }
        };
        self.0.event(event_name(kind), &machine.id, "went on while the provider was away");
        recovery
    }
}
