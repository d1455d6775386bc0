//! What a cloud does behind the kit: it takes its time, and some moves fail or never end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_proto::v1alpha1::Machine;
use bigfleet_provider_kit::{Backend, Clock as _, Failure, Offering, OperationKind, VirtualClock};

use crate::present::{Present, offering};
use crate::random::Random;
use crate::scenario::{Call, Dwell, RACK, Scenario, StartState};

/// Something that goes wrong with moves for a while.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    /// Which fault it is, to be lifted by.
    pub(crate) fault: usize,
    pub(crate) kind: OperationKind,
    /// Only ids that begin like this.
    pub(crate) prefix: String,
    /// Only this zone.
    pub(crate) zone: String,
    pub(crate) p: f64,
    /// It never ends, rather than fail.
    pub(crate) hangs: bool,
}

/// What goes wrong right now, shared with the plants.
#[derive(Clone, Debug, Default)]
pub(crate) struct Troubles(Arc<Mutex<Vec<Trouble>>>);

impl Troubles {
    pub(crate) fn add(&self, trouble: Trouble) {
        self.0.lock().expect("no holder panics").push(trouble);
    }

    pub(crate) fn lift(&self, fault: usize) {
        self.0.lock().expect("no holder panics").retain(|trouble| trouble.fault != fault);
    }

    fn hit(&self, kind: OperationKind, machine: &Machine, random: &Mutex<Random>) -> Option<Trouble> {
        let troubles = self.0.lock().expect("no holder panics");
        let mut random = random.lock().expect("no holder panics");
        let concerns = |trouble: &&Trouble| {
            trouble.kind == kind
                && machine.id.starts_with(&trouble.prefix)
                && (trouble.zone.is_empty() || trouble.zone == machine.zone)
        };
        troubles.iter().filter(concerns).find(|trouble| random.happens(trouble.p)).cloned()
    }
}

impl Call {
    /// The kit's word for it.
    pub(crate) fn kind(self) -> OperationKind {
        match self {
            Self::Create => OperationKind::Create,
            Self::Configure => OperationKind::Configure,
            Self::Drain => OperationKind::Drain,
            Self::Delete => OperationKind::Delete,
        }
    }
}

/// One provider's machinery.
pub(crate) struct Plant {
    name: String,
    offerings: Vec<Offering>,
    dwell: Dwell,
    /// How long moves of some machines take, where that is known one by one.
    own: BTreeMap<String, Dwell>,
    clock: Arc<VirtualClock>,
    troubles: Troubles,
    random: Mutex<Random>,
}

impl Plant {
    pub(crate) fn new(
        scenario: &Scenario,
        present: Option<&Present>,
        name: &str,
        clock: Arc<VirtualClock>,
        troubles: Troubles,
    ) -> Self {
        let pools = scenario.fleet.iter().filter(|pool| pool.provider == name);
        let offerings = pools.flat_map(|pool| {
            (0..pool.count).map(move |number| {
                let id = pool.id(number);
                let instance_type =
                    if pool.instance_type.is_empty() { &pool.name } else { &pool.instance_type };
                let mut labels = pool.labels.clone();
                if let Some(rack) = pool.rack(number) {
                    labels.insert(RACK.into(), rack);
                }
                Offering {
                    host: (pool.state != StartState::Speculative).then(|| format!("host-{id}")),
                    capacity_type: pool.capacity_type().expect("scenarios are checked"),
                    price_usd_per_hour: pool.price,
                    interruption_probability: pool.interruption,
                    resources: pool.resources.clone(),
                    labels,
                    ..Offering::new(id, instance_type, pool.zone(number))
                }
            })
        });
        let random = Mutex::new(Random::new(scenario.seed).fork(name));
        let standing = || present.iter().flat_map(|present| present.of_provider(name));
        Self {
            name: name.into(),
            offerings: offerings.chain(standing().map(|one| offering(&one.machine))).collect(),
            dwell: scenario.dwell,
            own: standing().map(|one| (one.machine.id.to_string(), one.dwell)).collect(),
            clock,
            troubles,
            random,
        }
    }

    /// Waits as long as a move takes, and says whether it went well.
    async fn take_time(&self, kind: OperationKind, machine: &Machine) -> Result<(), Failure> {
        let dwell = self.own.get(&machine.id).unwrap_or(&self.dwell);
        let usual = match kind {
            OperationKind::Create => dwell.create,
            OperationKind::Configure => dwell.configure,
            OperationKind::Drain => dwell.drain,
            OperationKind::Delete => dwell.delete,
        };
        let more = self.random.lock().expect("no holder panics").unit() * dwell.jitter;
        let wait = usual.nanos() + (usual.nanos() as f64 * more) as i64;
        let trouble = self.troubles.hit(kind, machine, &self.random);
        if trouble.as_ref().is_some_and(|trouble| trouble.hangs) {
            // The kit gives up on it.
            std::future::pending::<()>().await;
        }
        self.clock.sleep(Duration::from_nanos(wait.max(0).unsigned_abs())).await;
        match trouble {
            Some(_) => Err(Failure(format!("the simulated {kind} has failed"))),
            None => Ok(()),
        }
    }
}

impl Backend for Plant {
    fn name(&self) -> &str {
        &self.name
    }

    async fn offerings(&self) -> Result<Vec<Offering>, Failure> {
        Ok(self.offerings.clone())
    }

    async fn create(&self, machine: &Machine) -> Result<String, Failure> {
        self.take_time(OperationKind::Create, machine).await?;
        Ok(format!("host-{}-{}", machine.id, self.clock.now_unix_nanos() / 1_000_000_000))
    }

    async fn configure(&self, machine: &Machine, _bootstrap: &[u8]) -> Result<(), Failure> {
        self.take_time(OperationKind::Configure, machine).await
    }

    async fn confirm_ready(&self, _machine: &Machine) -> Result<bool, Failure> {
        Ok(true)
    }

    async fn drain(&self, machine: &Machine, _grace: Duration) -> Result<(), Failure> {
        self.take_time(OperationKind::Drain, machine).await
    }

    async fn delete(&self, machine: &Machine) -> Result<(), Failure> {
        self.take_time(OperationKind::Delete, machine).await
    }
}
