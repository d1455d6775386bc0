//! A question to a shard: connected, with a deadline, and with errors that people can act on.

mod line;
mod trouble;

use std::future::Future;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_view::v1::view_client::ViewClient;
use bigfleet_view::v1::{GetVersionRequest, Version};
use bigfleet_view::view_client;
use tonic::{Code, Response, Status};

use crate::context::{Reach, Target};
use crate::exit::Failure;

pub(crate) use line::{Line, folder as record_folder};
pub(crate) use trouble::Trouble;

/// How long a server may take to begin its answer. Explanations take milliseconds; this is for dead networks.
const PATIENCE: Duration = Duration::from_secs(30);

/// A shard that can be asked.
pub(crate) struct Shard {
    pub(crate) target: Target,
    client: ViewClient<Line>,
    clock: SystemClock,
    patience: Duration,
}

impl Shard {
    /// The one the flags mean. Nothing is connected before the first question.
    pub(crate) fn new(reach: &Reach) -> Result<Self, Failure> {
        if let Some(folder) = &reach.record {
            let target = Target {
                server: folder.display().to_string(),
                tls: None,
                source: crate::context::Source::Record,
            };
            return Ok(Self::over(target, Line::to_record(folder)?));
        }
        Self::at(reach.target()?)
    }

    fn over(target: Target, line: Line) -> Self {
        Self { target, client: view_client(line), clock: SystemClock::start(), patience: PATIENCE }
    }

    /// The one at `target`.
    pub(crate) fn at(target: Target) -> Result<Self, Failure> {
        let channel = target.channel()?;
        Ok(Self::over(target, Line::Wire(channel)))
    }

    /// The same with another deadline.
    pub(crate) fn patient_for(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// This machine's clock.
    pub(crate) fn clock(&self) -> &SystemClock {
        &self.clock
    }

    /// Asks one thing: `call` gets a client and makes the call.
    pub(crate) async fn ask<T, F>(&self, call: impl FnOnce(ViewClient<Line>) -> F) -> Result<T, Trouble>
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        match self.within(call(self.client.clone())).await {
            Ok(answer) => Ok(answer.into_inner()),
            Err(status) if status.code() == Code::Unimplemented => Err(self.unknown_question(&status).await),
            Err(status) => Err(self.trouble(&status)),
        }
    }

    /// What a failed call means.
    pub(crate) fn trouble(&self, status: &Status) -> Trouble {
        Trouble::of(status, &self.target)
    }

    /// Who the server says it is.
    pub(crate) async fn version(&self) -> Result<Version, Trouble> {
        self.ask(|mut client| async move { client.get_version(GetVersionRequest {}).await }).await
    }

    /// The server does not know the question: it is older, newer, or no shard at all.
    async fn unknown_question(&self, status: &Status) -> Trouble {
        let version =
            self.within(async { self.client.clone().get_version(GetVersionRequest {}).await }).await;
        Trouble::unknown_question(status, version.ok().map(Response::into_inner).as_ref(), &self.target)
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        tokio::select! {
            answer = call => answer,
            () = self.clock.sleep(self.patience) => {
                Err(Status::deadline_exceeded(format!("no answer within {} s", self.patience.as_secs())))
            }
        }
    }
}

/// Runs a command that asks servers.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work)
}
