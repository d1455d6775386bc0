//! Calls to the provider, and what their answers must look like.
//!
//! Three things can come back: a message, a refusal with a code, or nothing. Nothing (no answer in time, a
//! broken connection) is never taken for a refusal: a provider that crashes on bad input must not pass.

use std::error::Error;
use std::future::Future;

use bigfleet_proto::transport::code_name;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use tonic::{Code, Response, Status};

use crate::clock::{self, Moment};
use crate::context::Context;
use crate::moves::{Kind, Order, Token, state_name, state_of};
use crate::verdict::{Ended, Verdict, ensure, failed};

/// What came back from a move.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The call in words.
    pub(crate) what: String,
    pub(crate) result: Result<TransitionAck, Status>,
}

impl Context {
    /// Makes a move.
    pub(crate) async fn act(&self, order: &Order, id: &str, token: &Token) -> Result<Answer, Ended> {
        let what = format!("{}({:?}, {token})", order.kind(), shortened(id));
        let mut client = self.client();
        let Token { shard_id, epoch: shard_epoch, sequence: sequence_number } = token.clone();
        let machine_id = id.to_owned();
        let result = match order.clone() {
            Order::Create => {
                let request = CreateRequest { machine_id, shard_id, shard_epoch, sequence_number };
                self.answered(&what, client.create(request)).await?
            }
            Order::Configure { cluster, metadata, blob } => {
                let request = ConfigureRequest {
                    machine_id,
                    cluster_id: cluster,
                    bootstrap_blob: blob,
                    shard_id,
                    shard_epoch,
                    sequence_number,
                    shard_metadata: metadata,
                };
                self.answered(&what, client.configure(request)).await?
            }
            Order::Drain { grace_secs: grace_period_seconds } => {
                let request =
                    DrainRequest { machine_id, grace_period_seconds, shard_id, shard_epoch, sequence_number };
                self.answered(&what, client.drain(request)).await?
            }
            Order::Delete => {
                let request = DeleteRequest { machine_id, shard_id, shard_epoch, sequence_number };
                self.answered(&what, client.delete(request)).await?
            }
        };
        Ok(Answer { what, result })
    }

    /// The plainest move of a kind.
    pub(crate) async fn plain(&self, kind: Kind, id: &str, token: &Token) -> Result<Answer, Ended> {
        self.act(&Order::plain(kind), id, token).await
    }

    /// Asks for a machine that may not exist.
    pub(crate) async fn look_up(&self, id: &str) -> Result<Result<Machine, Status>, Ended> {
        let what = format!("Get({:?})", shortened(id));
        let mut client = self.client();
        self.answered(&what, client.get(MachineRef { id: id.into() })).await
    }

    /// Asks for a machine that must exist.
    pub(crate) async fn get(&self, id: &str) -> Result<Machine, Ended> {
        match self.look_up(id).await? {
            Ok(machine) => Ok(machine),
            Err(status) => failed(format!("Get({id:?}) gives the machine"), in_words(&status)),
        }
    }

    /// Lists with a filter that may be refused.
    pub(crate) async fn try_list(&self, filter: ListFilter) -> Result<Result<MachineList, Status>, Ended> {
        let what = format!(
            "List(states {:?}, max_results {}, since_revision of {} bytes)",
            filter.states,
            filter.max_results,
            filter.since_revision.len()
        );
        let mut client = self.client();
        self.answered(&what, client.list(filter)).await
    }

    /// Lists with a filter that must be taken.
    pub(crate) async fn list(&self, filter: ListFilter) -> Result<MachineList, Ended> {
        match self.try_list(filter.clone()).await? {
            Ok(list) => Ok(list),
            Err(status) => failed("List answers", in_words(&status)),
        }
    }

    /// Everything there is.
    pub(crate) async fn list_all(&self) -> Result<MachineList, Ended> {
        self.list(ListFilter::default()).await
    }

    /// Waits for an answer, notes it down, and takes silence for a failure.
    pub(crate) async fn answered<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<Result<T, Status>, Ended> {
        let limit = self.limits().call;
        let started = Moment::now();
        let answer = clock::within(limit, call).await;
        let took = started.elapsed();
        match answer {
            None => {
                self.remember(format!("{what} -> nothing for {limit:?}"));
                failed(format!("{what} is answered within {limit:?}"), "no answer")
            }
            Some(Err(status)) if status.source().is_some() => {
                self.remember(format!("{what} -> connection broke: {}", in_words(&status)));
                failed(format!("{what} is answered"), format!("the connection broke: {}", in_words(&status)))
            }
            Some(Err(status)) => {
                self.remember(format!("{what} -> {}", in_words(&status)));
                Ok(Err(status))
            }
            Some(Ok(response)) => {
                self.remember(format!("{what} -> OK in {took:.1?}"));
                Ok(Ok(response.into_inner()))
            }
        }
    }
}

impl Answer {
    /// The move was accepted: an operation id and a snapshot of the machine.
    pub(crate) fn accepted(self) -> Result<Ack, Ended> {
        let expected = format!("{} is accepted", self.what);
        match self.result {
            Err(status) => failed(expected, in_words(&status)),
            Ok(TransitionAck { operation_id, .. }) if operation_id.is_empty() => {
                failed(expected + " with an operation id", "an empty operation_id")
            }
            Ok(TransitionAck { machine: None, .. }) => {
                failed(expected + " with a snapshot", "no machine in the ack")
            }
            Ok(TransitionAck { operation_id, machine: Some(machine) }) => Ok(Ack { operation_id, machine }),
        }
    }

    pub(crate) fn has_code(&self, code: Code, why: &str) -> Verdict {
        let got = self.result.as_ref().err().map(Status::code);
        ensure(got == Some(code), format!("{} is {}: {why}", self.what, code_name(code)), || self.in_words())
    }

    /// The fence refused it.
    pub(crate) fn fenced(&self, why: &str) -> Verdict {
        self.has_code(Code::FailedPrecondition, why)
    }

    /// The fence let it through, whatever happened then.
    pub(crate) fn passed_the_fence(&self, why: &str) -> Verdict {
        let code = self.result.as_ref().err().map(Status::code);
        ensure(
            code != Some(Code::FailedPrecondition),
            format!("{} passes the fence: {why}", self.what),
            || self.in_words(),
        )
    }

    /// It was refused, and not with the code that means fenced.
    pub(crate) fn refused(&self, why: &str) -> Verdict {
        let expected = || format!("{} is refused, and not with FAILED_PRECONDITION: {why}", self.what);
        let code = self.result.as_ref().err().map(Status::code);
        ensure(code.is_some_and(|code| code != Code::FailedPrecondition), expected(), || self.in_words())
    }

    pub(crate) fn in_words(&self) -> String {
        match &self.result {
            Ok(ack) => {
                let state =
                    ack.machine.as_ref().map_or("no machine", |machine| state_name(state_of(machine)));
                format!("OK, operation {:?}, {state}", ack.operation_id)
            }
            Err(status) => in_words(status),
        }
    }
}

/// An accepted move.
#[derive(Clone, Debug)]
pub(crate) struct Ack {
    pub(crate) operation_id: String,
    pub(crate) machine: Machine,
}

/// A refusal in words.
pub(crate) fn in_words(status: &Status) -> String {
    let mut message: String = status.message().chars().take(300).collect();
    if message.is_empty() {
        message.push_str("(no message)");
    }
    format!("{}: {message}", code_name(status.code()))
}

/// Ids may be a megabyte long; a report should not be.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}.. ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}
