//! Leader election: of several replicas one does the work, by a Lease.
//!
//! The rules are those of Kubernetes' own programs. Nobody compares clocks: how long a lease has not been renewed is
//! measured by the one who looks, from when it last saw it change. So a replica whose clock is wrong neither takes a lease
//! too early nor loses one. A holder stops its work well before others may take over: it gives up after `give_up` without a
//! renewal, they wait for `lease`.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Clock, nanos};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::time::micro_time;

/// The spans of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a lease holds that is not renewed.
    pub lease: Duration,
    /// How long the holder goes on without having renewed it. Less than `lease`.
    pub give_up: Duration,
    /// How often it is renewed, and how often others look.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            give_up: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// Which lease, and who we are.
#[derive(Clone, Debug)]
pub struct ElectionSettings {
    /// The lease's namespace.
    pub namespace: String,
    /// The lease's name.
    pub name: String,
    /// Us; no other process may have the same, nor a later one on this machine.
    pub identity: String,
    /// The spans.
    pub timing: Timing,
}

/// Our part in an election.
#[derive(Debug)]
pub struct Election {
    leases: Api<Lease>,
    settings: ElectionSettings,
    clock: Arc<dyn Clock>,
    seen: Option<Seen>,
}

/// A lease as it was when it last changed, and when we saw that.
#[derive(Debug)]
struct Seen {
    version: Option<String>,
    at_unix_nanos: i64,
}

/// What follows from what a lease says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judgement {
    /// It is ours: renew it.
    Renew,
    /// It is nobody's, or its holder is gone: take it.
    Take,
    /// Somebody has it.
    Wait,
}

impl Election {
    /// Begins without a lease.
    pub fn new(client: Client, settings: ElectionSettings, clock: Arc<dyn Clock>) -> Self {
        assert!(
            settings.timing.give_up < settings.timing.lease,
            "a holder must stop before others may begin"
        );
        let leases = Api::namespaced(client, &settings.namespace);
        Self { leases, settings, clock, seen: None }
    }

    /// Ends when the lease is ours.
    pub async fn acquire(&mut self) {
        loop {
            match self.attempt().await {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => tracing::warn!(%error, lease = self.settings.name, "cannot look at the lease"),
            }
            self.clock.sleep(self.settings.timing.retry).await;
        }
    }

    /// Keeps the lease that [`Self::acquire`] got, and ends when it is lost, with the reason. Whoever works under it
    /// must stop then.
    pub async fn hold(&mut self) -> String {
        let mut renewed = self.clock.now_unix_nanos();
        let mut trouble = String::from("no answer");
        loop {
            self.clock.sleep(self.settings.timing.retry).await;
            let deadline = renewed.saturating_add(nanos(self.settings.timing.give_up));
            let too_late = self.clock.sleep_until(deadline);
            let asked = self.clock.now_unix_nanos();
            let outcome = tokio::select! {
                biased;
                outcome = self.attempt() => outcome,
                () = too_late => return format!("the lease could not be renewed in time: {trouble}"),
            };
            match outcome {
                // From when it was asked for: the server counts from no later.
                Ok(true) => renewed = asked,
                Ok(false) => return "another replica has the lease".into(),
                Err(error) => trouble = error.to_string(),
            }
            if self.clock.now_unix_nanos() > deadline {
                return format!("the lease could not be renewed in time: {trouble}");
            }
        }
    }

    /// Gives the lease back, so that nobody has to wait for its end. Only after the work has stopped.
    pub async fn release(&mut self) -> kube::Result<()> {
        let Some(mut lease) = self.leases.get_opt(&self.settings.name).await? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.settings.identity) {
            return Ok(());
        }
        spec.holder_identity = None;
        spec.renew_time = Some(micro_time(self.clock.now_unix_nanos()));
        self.leases.replace(&self.settings.name, &PostParams::default(), &lease).await.map(drop)
    }

    /// Looks at the lease and takes or renews it if that is right. Says whether it is ours.
    async fn attempt(&mut self) -> kube::Result<bool> {
        let now = self.clock.now_unix_nanos();
        let name = self.settings.name.clone();
        let Some(mut lease) = self.leases.get_opt(&name).await? else {
            let lease = Lease {
                metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
                ..Lease::default()
            };
            let lease = Lease { spec: Some(self.taken(now, None)), ..lease };
            return match self.leases.create(&PostParams::default(), &lease).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
                Err(error) => Err(error),
            };
        };
        let judgement = self.judge(&lease, now);
        let spec = match judgement {
            Judgement::Wait => return Ok(false),
            Judgement::Take => self.taken(now, lease.spec.as_ref()),
            Judgement::Renew => {
                LeaseSpec { renew_time: Some(micro_time(now)), ..lease.spec.take().unwrap_or_default() }
            }
        };
        lease.spec = Some(spec);
        // The version in it makes the server refuse this if anybody was quicker.
        match self.leases.replace(&name, &PostParams::default(), &lease).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 409 && judgement == Judgement::Take => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn judge(&mut self, lease: &Lease, now: i64) -> Judgement {
        let holder = lease.spec.as_ref().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or("");
        if holder == self.settings.identity {
            return Judgement::Renew;
        }
        let version = &lease.metadata.resource_version;
        let seen = match &self.seen {
            Some(seen) if seen.version == *version => seen,
            _ => self.seen.insert(Seen { version: version.clone(), at_unix_nanos: now }),
        };
        let said = lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds).unwrap_or(0);
        let holds = Duration::from_secs(said.max(0).unsigned_abs().into()).max(self.settings.timing.lease);
        let expired = now >= seen.at_unix_nanos.saturating_add(nanos(holds));
        if holder.is_empty() || expired { Judgement::Take } else { Judgement::Wait }
    }

    fn taken(&self, now: i64, before: Option<&LeaseSpec>) -> LeaseSpec {
        let transitions = before.map(|spec| spec.lease_transitions.unwrap_or(0).saturating_add(1));
        let secs = self.settings.timing.lease.as_secs_f64().ceil() as i32;
        LeaseSpec {
            holder_identity: Some(self.settings.identity.clone()),
            lease_duration_seconds: Some(secs.max(1)),
            acquire_time: Some(micro_time(now)),
            renew_time: Some(micro_time(now)),
            lease_transitions: Some(transitions.unwrap_or(0)),
            ..LeaseSpec::default()
        }
    }
}
