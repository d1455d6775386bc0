//! The shard at the other end: what is watched and asked, turned into messages.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_view::v1::view_client::ViewClient;
use bigfleet_view::v1::{
    ApproveRequest, ExplainClusterRequest, ExplainDecisionRequest, ExplainMachineRequest, ExplainNeedRequest,
    PauseRequest, ResumeRequest, SetModeRequest, WatchRequest,
};
use tokio::sync::mpsc;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::context::Target;
use crate::reach::Trouble;
use crate::{sentence, words};

use super::command::{Deed, Ended};
use super::filter::{ROWS, decisions_request, machines_request, needs_request};
use super::model::Message;
use super::question::{Answer, Question};

/// How long a question may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The shortest and the longest wait before a broken watch is tried again.
const RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// Past decisions the first event brings.
const RECENT: u32 = 100;

/// What is needed to talk to the shard.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) client: ViewClient<Channel>,
    pub(super) clock: Arc<SystemClock>,
    pub(super) target: Target,
    pub(super) every: Duration,
    pub(super) author: String,
}

impl Link {
    /// Watches for ever, over broken connections, until nobody listens.
    pub(super) async fn watch(mut self, tell: mpsc::Sender<Message>) {
        let (mut wait, mut cycle) = (RETRY.0, 0);
        loop {
            let broken = match self.open(cycle).await {
                Ok(mut events) => loop {
                    match events.message().await {
                        Ok(Some(event)) => {
                            wait = RETRY.0;
                            let seen = event.summary.as_ref().and_then(|summary| summary.as_of.as_ref());
                            cycle = seen.map_or(cycle, |as_of| as_of.cycle);
                            if tell.send(Message::Watched(Box::new(event))).await.is_err() {
                                return;
                            }
                        }
                        Ok(None) => break Status::unavailable("the server ended the stream"),
                        Err(status) => break status,
                    }
                },
                Err(status) => status,
            };
            let why = Trouble::of(&broken, &self.target).to_string();
            if tell.send(Message::Lost { why }).await.is_err() {
                return;
            }
            self.clock.sleep(wait).await;
            wait = (wait * 2).min(RETRY.1);
        }
    }

    async fn open(&mut self, cycle: u64) -> Result<Streaming<bigfleet_view::v1::WatchEvent>, Status> {
        let request = WatchRequest {
            min_interval_millis: u32::try_from(self.every.as_millis()).unwrap_or(u32::MAX),
            decisions_after_cycle: cycle,
            decisions: RECENT,
        };
        Ok(self.client.watch(request).await?.into_inner())
    }

    /// Asks once.
    pub(super) async fn ask(self, question: Question) -> Message {
        let answer = tokio::select! {
            answer = answer(self.client.clone(), &question) => answer,
            () = self.clock.sleep(PATIENCE) => Err(Status::deadline_exceeded("no answer within 30 s")),
        };
        let answer = answer.map_err(|status| Trouble::of(&status, &self.target).to_string());
        Message::Answered { question, answer }
    }

    /// Tells the shard once.
    pub(super) async fn tell(self, deed: Deed) -> Message {
        let told = tokio::select! {
            told = tell(self.client.clone(), deed, self.author.clone()) => told,
            () = self.clock.sleep(PATIENCE) => Err(Status::deadline_exceeded("no answer within 30 s")),
        };
        Message::Told(told.map_err(|status| Trouble::of(&status, &self.target).to_string()))
    }
}

/// Does a deed, and says what came of it.
async fn tell(mut client: ViewClient<Channel>, deed: Deed, author: String) -> Result<String, Status> {
    Ok(match deed {
        Deed::Pause { cluster, for_nanos, reason } => {
            let request = PauseRequest { cluster, for_nanos, reason, author, ..PauseRequest::default() };
            let pause = client.pause(request).await?.into_inner().pause.unwrap_or_default();
            let until = sentence::pause(&pause, pause.since_unix_nanos);
            format!("paused {until}; :resume {} ends it", pause.number)
        }
        Deed::Resume(which) => {
            let mut request = ResumeRequest::default();
            match which {
                Ended::Number(number) => request.number = number,
                Ended::Cluster(cluster) => request.cluster = cluster,
                Ended::All => request.everything = true,
            }
            let ended = client.resume(request).await?.into_inner().ended;
            match &ended[..] {
                [] => "no pause has exactly this scope".to_owned(),
                [pause] => format!("resumed {}", sentence::pause_scope(pause)),
                all => format!("ended {}", words::count(all.len() as u64, "pause")),
            }
        }
        Deed::Mode { mode, cluster, reason } => {
            let request =
                SetModeRequest { cluster, mode: mode.into(), reason, author, ..SetModeRequest::default() };
            let answer = client.set_mode(request).await?.into_inner();
            match (answer.is, answer.was) {
                (Some(is), _) => sentence::mode_order(&is, is.since_unix_nanos),
                (None, Some(was)) => {
                    format!("taken back: {}", sentence::mode_order(&was, was.since_unix_nanos))
                }
                (None, None) => "nothing was ordered".to_owned(),
            }
        }
        Deed::Approve { ids } => {
            let everything = ids.is_empty();
            let request = ApproveRequest { ids, everything, author, ..ApproveRequest::default() };
            let approved = client.approve(request).await?.into_inner().approved;
            format!("approved {}", words::count(approved.len() as u64, "action"))
        }
    })
}

async fn answer(mut client: ViewClient<Channel>, question: &Question) -> Result<Answer, Status> {
    let refused = Status::invalid_argument;
    Ok(match question.clone() {
        Question::Needs(pairs) => {
            let pages = client.list_needs(needs_request(&pairs).map_err(refused)?).await?.into_inner();
            let mut total = 0;
            let needs = collect(pages, |page| {
                total = page.total.unwrap_or(total);
                page.needs
            });
            Answer::Needs { needs: needs.await?, total }
        }
        Question::Machines(pairs) => {
            let pages = client.list_machines(machines_request(&pairs).map_err(refused)?).await?.into_inner();
            let mut known = 0;
            let machines = collect(pages, |page| {
                known = page.known.unwrap_or(known);
                page.machines
            });
            let mut machines = machines.await?;
            // They come in no promised order, and a list that shuffles itself cannot be read.
            machines.sort_unstable_by(|a, b| a.id.cmp(&b.id));
            Answer::Machines { machines, known }
        }
        Question::Decisions(pairs) => {
            let pages =
                client.list_decisions(decisions_request(&pairs).map_err(refused)?).await?.into_inner();
            Answer::Decisions(collect(pages, |page| page.decisions).await?)
        }
        Question::Cluster(cluster) => {
            Answer::Cluster(boxed(client.explain_cluster(ExplainClusterRequest { cluster })).await?)
        }
        Question::Need(need) => {
            let request = ExplainNeedRequest { need, ..ExplainNeedRequest::default() };
            Answer::Need(boxed(client.explain_need(request)).await?)
        }
        Question::Machine(machine) => {
            let request = ExplainMachineRequest { machine, ..ExplainMachineRequest::default() };
            Answer::Machine(boxed(client.explain_machine(request)).await?)
        }
        Question::Decision { cycle, machine } => {
            Answer::Decision(boxed(client.explain_decision(ExplainDecisionRequest { cycle, machine })).await?)
        }
    })
}

async fn boxed<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<Box<T>, Status> {
    Ok(Box::new(call.await?.into_inner()))
}

/// The items of all pages; no more than are shown, whatever the server sends.
async fn collect<P, T>(
    mut pages: Streaming<P>,
    mut items: impl FnMut(P) -> Vec<T>,
) -> Result<Vec<T>, Status> {
    let mut all = Vec::new();
    while all.len() < ROWS as usize
        && let Some(page) = pages.message().await?
    {
        all.append(&mut items(page));
    }
    all.truncate(ROWS as usize);
    Ok(all)
}
