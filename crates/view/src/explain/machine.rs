//! Why a machine is where it is, and why a need does not have it.

use bigfleet_model::cost::effective_cost;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_shard::Shard;
use tonic::Status;

use crate::convert::{exclusion, kind};
use crate::decisions::Wanted;
use crate::known::{self, Known};
use crate::names::{find_need, need_ref};
use crate::needs;
use crate::outputs;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Decisions told about a machine.
const TOLD: usize = 50;

impl<S: Shards> View<S> {
    /// A moment and a machine in it, in one look: the name is found out before.
    async fn snapshot_of(&self, at: Option<v1::Moment>, text: &str) -> Result<(Snapshot, Known), Status> {
        if at.is_some_and(|at| at.moment.is_some()) || self.about.record_only {
            let snapshot = self.snapshot(at).await?;
            let known = self.find_machine(&snapshot, text).await?;
            return Ok((snapshot, known));
        }
        let id = known::find(&*self.shards, text).await?.machine.id.clone();
        let simulated = self.about.simulated;
        let wanted = id.clone();
        let look = move |shard: &Shard, now: i64| {
            let known = shard.machine(&wanted).map(|view| Known::new(shard, view))?;
            Some((Snapshot::live(shard, now, simulated), known))
        };
        let gone = || Status::not_found(format!("machine {id:?} has just gone"));
        self.shards.inspect(look).await?.ok_or_else(gone)
    }

    pub(crate) async fn explain_machine(
        &self,
        request: v1::ExplainMachineRequest,
    ) -> Result<v1::MachineExplanation, Status> {
        let (snapshot, mut known) = self.snapshot_of(request.at, &request.machine).await?;
        let id = known.machine.id.clone();
        let (snapshot, story, claimed) = blocking(move || {
            let story = snapshot.fleet.explain_machine(&id, &snapshot.options);
            let claimant = story.as_ref().and_then(|story| story.claimed_by.clone());
            let claimed = claimant.and_then(|key| {
                Some((needs::used(&snapshot.fleet, &key), needs::one(&snapshot.fleet, &key)?))
            });
            Ok((snapshot, story, claimed))
        })
        .await?;
        known.claimed_by = story.as_ref().and_then(|story| story.claimed_by.clone());
        let machine = &known.machine;
        let hold = snapshot.options.release.hold_nanos(machine.capacity_type);
        let penalty = PenaltyBucket::for_dollars(machine.assigned.interruption_penalty_usd);
        let penalty = penalty.ok().filter(|_| machine.state.is_bound()).unwrap_or(PenaltyBucket::ZERO);
        let expected = self.expectations(vec![known.clone()], snapshot.now_unix_nanos).await?.pop();
        let message = known.message(v1::Detail::Full);
        let message = v1::Machine { expected: expected.and_then(|(_, expected)| expected), ..message };
        let mut answer = v1::MachineExplanation {
            machine: Some(message),
            origin: story.as_ref().and_then(|s| s.origin).map_or_else(String::new, |o| o.code().to_owned()),
            ordered: story.as_ref().and_then(|s| s.ordered).map_or(v1::ActionKind::Unspecified, kind).into(),
            release_due_unix_nanos: story.and_then(|s| s.release_due_unix_nanos).unwrap_or_default(),
            hold_nanos: hold.map_or(0, |nanos| i64::try_from(nanos).unwrap_or(i64::MAX)),
            price_source: Some(known.price_source()),
            effective_usd_per_hour: effective_cost(
                machine.price_usd_per_hour,
                machine.interruption_probability,
                penalty,
            ),
            ..v1::MachineExplanation::default()
        };
        if let Some((used, row)) = claimed {
            answer.r#use = used;
            answer.claimed_by = Some(snapshot.fill(row));
        }
        let decisions = if let Some(past) = &snapshot.past {
            let of_it = past.record.decided.iter().filter(|decided| decided.machine == machine.id);
            of_it.map(|decided| past.message(decided)).collect()
        } else {
            let wanted = Wanted { machine: machine.id.to_string(), ..Wanted::default() };
            wanted.of_recent_folded(&snapshot.beside.recent, TOLD)
        };
        answer.decisions = decisions;
        let binds = |d: &&v1::Decision| {
            matches!(d.kind(), v1::ActionKind::Bootstrap | v1::ActionKind::Provision)
                && d.fate() == v1::Fate::Begun
        };
        answer.bound_by = answer.decisions.iter().find(binds).cloned();
        if let (Some(outputs), None, false) = (&self.outputs, &snapshot.past, known.provider.is_empty()) {
            outputs::tell(&mut answer, outputs.configure_output(&known.provider, &known.machine.id).await);
        }
        answer.as_of = Some(snapshot.as_of);
        Ok(answer)
    }

    pub(crate) async fn why_not(&self, request: v1::WhyNotRequest) -> Result<v1::WhyNotAnswer, Status> {
        let (snapshot, known) = self.snapshot_of(request.at, &request.machine).await?;
        blocking(move || {
            let fleet = &snapshot.fleet;
            let key = find_need(fleet, &request.need)?;
            let mut answer = v1::WhyNotAnswer {
                need: Some(need_ref(&key)),
                machine: Some(known.message(v1::Detail::Full)),
                need_priority: fleet.need(&key).map_or(0, |demand| demand.priority()),
                ..v1::WhyNotAnswer::default()
            };
            let Some(found) = fleet.why_not(&key, &known.machine.id) else {
                return Err(Status::failed_precondition(if known.counts {
                    format!(
                        "no cycle has decided on need {:?} and machine {:?} together yet; ask again after the next",
                        request.need, known.machine.id
                    )
                } else {
                    format!(
                        "machine {:?} does not count as supply ({}), so no cycle looked at it",
                        known.machine.id,
                        if known.trouble.is_empty() { "withheld from the engine" } else { known.trouble }
                    )
                }));
            };
            exclusion(&found, &mut answer);
            answer.as_of = Some(snapshot.as_of);
            Ok(answer)
        })
        .await
    }
}
