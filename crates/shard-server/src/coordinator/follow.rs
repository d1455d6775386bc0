//! Follows what concerns this shard: quotas, clusters that are bound to it, and what other shards ask for.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::requirement::Requirement;
use bigfleet_net::{Clock, TlsFiles, dial};
use bigfleet_proto::convert::resources;
use bigfleet_proto::coordinator_v1::ask::Source;
use bigfleet_proto::coordinator_v1::fleet_client::FleetClient;
use bigfleet_proto::coordinator_v1::{
    AnswerAskRequest, Ask, Charge, FollowRequest, Given, Quota as QuotaMessage,
};
use bigfleet_proto::transport;
use bigfleet_shard::{Quota, Shard, Step, Wanted};
use tokio::sync::{Notify, watch};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::bindings::Bindings;
use crate::core::{Core, Gone};
use crate::provider::Provider;
use crate::session::Sessions;

/// How long until it is tried again.
const AGAIN: Duration = Duration::from_secs(2);
/// How long until one is tried again that knows no such call: another implementation, which may be replaced.
const LATER: Duration = Duration::from_mins(1);

/// Follows, for as long as the shard lives.
pub(crate) struct Follower {
    pub(crate) shard: Arc<str>,
    pub(crate) leader: watch::Receiver<Channel>,
    pub(crate) core: Core,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) bindings: Bindings,
    pub(crate) sessions: Sessions,
    pub(crate) hurry: Arc<Notify>,
    /// The providers, and where each was last known to serve.
    pub(crate) providers: Vec<(Provider, String)>,
    pub(crate) tls: Option<TlsFiles>,
}

/// Why following ended.
enum Ended {
    Coordinator(Status),
    Shard,
}

impl From<Status> for Ended {
    fn from(status: Status) -> Self {
        Self::Coordinator(status)
    }
}

impl From<Gone> for Ended {
    fn from(_: Gone) -> Self {
        Self::Shard
    }
}

impl Follower {
    /// Follows whoever leads.
    pub(crate) async fn run(mut self) {
        loop {
            let channel = self.leader.borrow_and_update().clone();
            let mut leader = self.leader.clone();
            let ended = tokio::select! {
                ended = self.follow(channel) => ended,
                // Whoever reports has found another leader.
                Ok(()) = leader.changed() => continue,
            };
            let wait = match ended {
                Err(Ended::Shard) => return,
                Err(Ended::Coordinator(status)) if status.code() == Code::Unimplemented => LATER,
                Err(Ended::Coordinator(_)) | Ok(()) => AGAIN,
            };
            self.clock.sleep(wait).await;
        }
    }

    async fn follow(&mut self, channel: Channel) -> Result<(), Ended> {
        let mut client = transport::fleet_client(channel);
        let request = FollowRequest { shard_id: self.shard.to_string() };
        let mut charges = client.follow(request).await?.into_inner();
        let mut answered = BTreeSet::new();
        while let Some(charge) = charges.message().await? {
            let term = charge.coordinator_term;
            if term < self.core.look(|shard, _| shard.coordinator_term()).await? {
                return Ok(());
            }
            self.take(&mut client, charge, &mut answered).await?;
        }
        Ok(())
    }

    async fn take(
        &mut self,
        client: &mut FleetClient<Channel>,
        charge: Charge,
        answered: &mut BTreeSet<u64>,
    ) -> Result<(), Ended> {
        let quotas: Vec<Quota> = charge.quotas.iter().filter_map(quota).collect();
        if self.core.look(|shard, _| shard.quotas().to_vec()).await? != quotas {
            self.core.act(move |shard, _, step| shard.set_quotas(quotas, step)).await?;
        }
        for told in &charge.providers {
            self.move_provider(&told.name, &told.address);
        }
        let gone = self.bindings.set(charge.cluster_ids);
        if !gone.is_empty() {
            self.sessions.hang_up_on(&gone);
        }
        answered.retain(|id| charge.asks.iter().any(|ask| ask.id == *id));
        for ask in charge.asks {
            if answered.insert(ask.id) {
                self.answer(client, ask).await?;
            }
        }
        Ok(())
    }

    /// The registry says where a provider of ours serves. One that this shard was not started with is none of ours.
    fn move_provider(&mut self, name: &str, address: &str) {
        let ours = self.providers.iter_mut().find(|(provider, at)| provider.name() == name && at != address);
        let Some((provider, at)) = ours else { return };
        match dial(address, self.tls.as_ref()) {
            Ok(channel) => {
                tracing::info!(provider = name, from = at, to = address, "a provider serves elsewhere");
                provider.moved_to(channel);
                address.clone_into(at);
            }
            Err(error) => {
                tracing::warn!(provider = name, %error, "the registry's address of a provider cannot be dialled");
            }
        }
    }

    /// Says what can be spared, which may be nothing.
    async fn answer(&self, client: &mut FleetClient<Channel>, ask: Ask) -> Result<(), Ended> {
        let in_use = ask.source() == Source::InUse;
        let spared = match wanted(&ask) {
            Some(wanted) => self.core.look(move |shard, now| shard.spare(&wanted, now)).await?,
            None => Vec::new(),
        };
        let gives = !spared.is_empty();
        let given: Vec<Box<str>> = spared.iter().map(|spared| spared.machine.clone()).collect();
        let machines = spared
            .into_iter()
            .map(|spared| Given { machine_id: spared.machine.into(), domain: spared.domain.into() });
        let request = AnswerAskRequest {
            shard_id: self.shard.to_string(),
            ask_id: ask.id,
            machines: machines.collect(),
        };
        match client.answer_ask(request).await {
            Ok(_) if gives => {
                // Now that somebody is to get them, and not before, they are taken from those they serve.
                if in_use {
                    let priority = ask.priority;
                    let promise = move |shard: &mut Shard, now, step: &mut Step| {
                        shard.promise(&given, priority, now, step);
                    };
                    self.core.act(promise).await?;
                }
                self.hurry.notify_one();
            }
            Ok(_) => {}
            // It was given up, or what was offered may not be given now: the coordinator goes on by itself.
            Err(status) => {
                tracing::info!(%status, ask = ask.id, "an answer to another shard's ask was not taken");
            }
        }
        Ok(())
    }
}

/// What is asked for; nothing if this build has no answer to it.
fn wanted(ask: &Ask) -> Option<Wanted> {
    let source = match ask.source() {
        Source::Idle => bigfleet_shard::Source::Idle,
        Source::Quota => bigfleet_shard::Source::Slots,
        Source::InUse => bigfleet_shard::Source::InUse,
        Source::Unspecified => return None,
    };
    let requirements: Vec<Requirement> =
        ask.requirements.iter().map(Requirement::try_from).collect::<Result<_, _>>().ok()?;
    let deficit = resources::from_map(&ask.deficit.as_ref()?.resources).ok()?;
    Some(Wanted { source, requirements, deficit, priority: ask.priority })
}

/// A quota; nothing if it is of a kind this build does not know, which the coordinator refuses as well.
fn quota(message: &QuotaMessage) -> Option<Quota> {
    let capacity_type = match &*message.capacity_type {
        "" => None,
        "bare_metal" => Some(CapacityType::BareMetal),
        "reserved" => Some(CapacityType::Reserved),
        "on_demand" => Some(CapacityType::OnDemand),
        "spot" => Some(CapacityType::Spot),
        _ => return None,
    };
    Some(Quota {
        provider: message.provider.as_str().into(),
        instance_type: message.instance_type.as_str().into(),
        zone: message.zone.as_str().into(),
        capacity_type,
        machines: message.machines?,
    })
}
