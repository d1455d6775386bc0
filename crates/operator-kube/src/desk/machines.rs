//! What the shard tells about machines, and what it asks for them.

use std::collections::BTreeSet;

use bigfleet_model::requirement::Requirement;
use bigfleet_net::nanos;
use bigfleet_operator::demand::APART;
use bigfleet_operator::template::{Fill, Template};
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::{
    AvailableCapacityUpdate, BootstrapBlobResponse, BootstrapRequest, MachineState, NodeStateUpdate,
};
use bigfleet_view::v1;

use super::Desk;
use super::objects::Wanted;
use crate::news::News;
use crate::status::steady;
use crate::token;
use crate::upcoming::{self, available_name, name_of};

/// How far an expectation must move to be written again.
const MOVED_NANOS: i64 = 10_000_000_000;
/// Kinds of free capacity shown at most.
const MOST_AVAILABLE: usize = 1000;

impl Desk {
    pub(super) fn told_of_machine(&mut self, update: NodeStateUpdate, now: i64) {
        let machine = update.machine_id.clone();
        if machine.is_empty() {
            return;
        }
        self.objects.told.insert(machine.clone());
        let state = update.state();
        let is_known =
            self.picture.machines.contains_key(&machine) || self.picture.upcoming.contains_key(&machine);
        let is_free =
            matches!(state, MachineState::Idle | MachineState::Deleting | MachineState::Speculative);
        if is_known && is_free {
            self.machine_left(&machine);
            return;
        }
        self.picture.tell(update);
        if state == MachineState::Configured {
            let orders = self.drains.take_back(&machine, now, &self.picture);
            if !orders.is_empty() {
                tracing::info!(machine, "the shard leaves a machine here after all");
            }
            self.carry_out(orders);
            self.drain_progress.remove(&machine);
            self.picture.held.remove(&machine);
        }
        self.show_machine(&machine, now);
        self.watchlist.look_soon(now);
        self.statuses.renew_soon(now);
        self.objects.nodes_changed(now);
    }

    /// Writes what is known about a machine into the cluster.
    fn show_machine(&mut self, machine: &str, now: i64) {
        let Some(update) = self.picture.machines.get(machine) else { return };
        let Some(phase) = upcoming::phase(update.state(), false) else { return };
        let seen = self.picture.upcoming.get(machine).map_or(0, |seen| seen.started_unix_nanos);
        let known = *self.objects.started.entry(machine.into()).or_insert(if seen == 0 { now } else { seen });
        let node = self.picture.node_name(machine);
        let expected = self.objects.expected.get(machine).copied().filter(|_| is_coming(update.state()));
        let (object, status) = upcoming::object(update, phase, node, known, expected);
        let unnamed =
            node.filter(|name| self.picture.nodes.get(*name).is_some_and(|node| !node.says_machine));
        let unnamed = unnamed.filter(|name| !self.objects.naming.contains(*name)).map(str::to_owned);
        self.objects.want(name_of(machine), Wanted::Upcoming(object, status));
        if let Some(name) = unnamed {
            self.objects.naming.insert(name.clone());
            let (hands, machine) = (self.hands.clone(), machine.to_owned());
            self.spawn(async move {
                let done = hands.name_machine(&name, &machine).await;
                News::Applied { object: format!("Node/{name}"), done }
            });
        }
    }

    /// The shard says when machines are expected.
    pub(super) fn expect_machines(&mut self, coming: &[v1::Coming], now: i64) {
        let mut before = std::mem::take(&mut self.objects.expected);
        for machine in coming.iter().filter(|machine| machine.expected.is_some()) {
            let shown = before.remove(&machine.machine_id);
            if let Some(expected) = steady(shown, machine.expected, MOVED_NANOS) {
                self.objects.expected.insert(machine.machine_id.clone(), expected);
                if shown != Some(expected) {
                    self.show_machine(&machine.machine_id, now);
                }
            }
        }
    }

    /// Machines whose node may have come or gone are shown again.
    pub(super) fn show_machines(&mut self, now: i64) {
        for machine in self.picture.machines.keys().cloned().collect::<Vec<_>>() {
            self.show_machine(&machine, now);
        }
    }

    /// A machine is nothing to this cluster any more: its object goes, and its node if we had drained it.
    fn machine_left(&mut self, machine: &str) {
        tracing::info!(machine, "a machine has left");
        if let Some(name) = self.picture.node_name(machine).map(str::to_owned)
            && let Some(node) = self.picture.nodes.get(&name).filter(|node| node.mark.is_some())
        {
            let (hands, uid) = (self.hands.clone(), node.uid.clone());
            self.spawn(async move {
                let done = hands.delete_node(&name, &uid).await;
                News::Applied { object: format!("Node/{name}"), done }
            });
        }
        self.drains.forget(machine);
        self.drain_progress.remove(machine);
        self.objects.started.remove(machine);
        self.objects.want(name_of(machine), Wanted::NoUpcoming);
        self.picture.forget_machine(machine);
    }

    /// The shard has told of every machine it has for us: what it did not name is gone.
    pub(super) fn all_machines_told(&mut self, now: i64) {
        let known: BTreeSet<String> =
            self.picture.machines.keys().chain(self.picture.upcoming.keys()).cloned().collect();
        for machine in known.difference(&self.objects.told.clone()) {
            self.machine_left(machine);
        }
        self.existing.look_soon(now);
    }

    pub(super) fn told_of_free(&mut self, update: &AvailableCapacityUpdate) {
        let name = available_name(&update.supersedes_key);
        if self.objects.available.len() >= MOST_AVAILABLE && !self.objects.available.contains(&name) {
            tracing::debug!("too many kinds of free capacity; this one is not shown");
            return;
        }
        self.objects.available.insert(name.clone());
        self.objects.want(name, Wanted::Available(upcoming::available(update)));
    }

    /// The shard wants bootstrap data for a machine.
    pub(super) fn bootstrap(&mut self, request: BootstrapRequest, now: i64) {
        let ttl = self.settings.blob_ttl;
        // What sets rows of one cluster apart is no matter of a machine's.
        let asked = request.requirements.iter().filter(|requirement| requirement.key != APART);
        let requirements = asked.map(Requirement::try_from).collect::<Result<Vec<_>, _>>();
        let requirements = match requirements {
            Ok(requirements) => requirements,
            Err(error) => {
                self.metrics.blob("refused");
                return self.say(answer(request.request_id, Err(error.to_string()), 0));
            }
        };
        let (template, cluster) = (self.settings.template.clone(), self.settings.cluster.clone());
        if !template.wants_token() {
            let done = render(&template, &cluster, &requirements, "");
            self.metrics.blob(if done.is_ok() { "ok" } else { "failed" });
            return self.say(answer(request.request_id, done, ttl.as_secs().cast_signed()));
        }
        let (client, metrics) = (self.client.clone(), self.metrics.clone());
        let until = self.server_now(now).saturating_add(nanos(ttl));
        self.spawn(async move {
            let done = match token::mint(client, &cluster, until).await {
                Ok(token) => render(&template, &cluster, &requirements, &token),
                Err(why) => Err(format!("no bootstrap token: {why}")),
            };
            metrics.blob(if done.is_ok() { "ok" } else { "failed" });
            News::Blob(answer(request.request_id, done, ttl.as_secs().cast_signed()))
        });
    }
}

/// Whether a machine in this state is on its way.
fn is_coming(state: MachineState) -> bool {
    matches!(state, MachineState::Creating | MachineState::Idle | MachineState::Configuring)
}

fn render(
    template: &Template,
    cluster_id: &str,
    requirements: &[Requirement],
    join_token: &str,
) -> Result<String, String> {
    template.render(Fill { cluster_id, requirements, join_token }).map_err(|error| error.to_string())
}

fn answer(request_id: String, done: Result<String, String>, ttl_seconds: i64) -> Saying {
    let (user_data, error) = match done {
        Ok(text) => (text.into_bytes(), String::new()),
        Err(error) => (Vec::new(), error),
    };
    Saying::BootstrapResponse(BootstrapBlobResponse { request_id, user_data, ttl_seconds, error })
}
