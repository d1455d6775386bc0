//! An etcd. Its leases elect, its revisions fence, its watches tell.
//!
//! The leader holds a key that lives as long as its lease. The revision in which the key was made is the term, and every
//! commit is a transaction on the condition that the key of that revision is still there. A leader that was paused past its
//! lease and wakes amid a commit finds the key gone or another's, and has changed nothing.
//!
//! A call that failed may have been carried out. Reading, watching and electing are tried at the next member; a commit is
//! not: whoever does not know what became of it gives its leadership up and loads again.
//!
//! The client is ours, on the gRPC stack that is here anyway: the published one needs `protoc` to build (ADR 0029).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bigfleet_coordinator::Writes;
use bigfleet_net::{Clock, DialError, TlsFiles, dial};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

use super::{Change, Leadership, Loaded, StoreError, stored};

/// Generated from `proto/etcd.proto`.
#[allow(missing_docs, unreachable_pub, clippy::all, clippy::pedantic, reason = "generated code")]
mod api {
    tonic::include_proto!("etcdserverpb");
}

use api::compare::{CompareResult, CompareTarget, TargetUnion};
use api::kv_client::KvClient;
use api::lease_client::LeaseClient;
use api::maintenance_client::MaintenanceClient;
use api::request_op::Request as Op;
use api::watch_client::WatchClient;

/// Below the prefix: who leads. No key of a fleet is called so.
const LEADER: &str = "leader";
/// How many keys one answer brings.
const PAGE: i64 = 1_000;
/// The largest answer we take: a page of the largest values.
const ANSWER_LIMIT_BYTES: usize = 64 << 20;
/// A member whose file has so much unused room, and more unused than used, is defragmented.
const DEFRAGMENT_FROM_BYTES: i64 = 64 << 20;

/// How an etcd is reached and used.
#[derive(Clone, Debug)]
pub struct EtcdSettings {
    /// Its members, as host:port or URLs.
    pub members: Vec<String>,
    /// Certificates, if it wants them.
    pub tls: Option<TlsFiles>,
    /// Before every key.
    pub prefix: String,
    /// How long a leader that says nothing stays leader.
    pub lease: Duration,
    /// How long one call may take.
    pub patience: Duration,
}

/// An etcd in use.
#[derive(Debug)]
pub struct Etcd {
    settings: EtcdSettings,
    members: Vec<Channel>,
    /// The one that answered last.
    at: AtomicUsize,
    clock: Arc<dyn Clock>,
}

impl Etcd {
    /// Dials lazily: an etcd that is not there yet is waited for by whoever calls.
    pub fn new(settings: EtcdSettings, clock: Arc<dyn Clock>) -> Result<Self, DialError> {
        let members = settings.members.iter().map(|member| dial(member, settings.tls.as_ref()));
        let members = members.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { settings, members, at: AtomicUsize::new(0), clock })
    }

    fn key(&self, name: &str) -> Vec<u8> {
        format!("{}{name}", self.settings.prefix).into_bytes()
    }

    /// The first key behind all of ours.
    fn end(&self) -> Vec<u8> {
        let mut end = self.key("");
        *end.last_mut().expect("the prefix is not empty") += 1;
        end
    }

    fn member(&self) -> Channel {
        self.members[self.at.load(Ordering::Relaxed) % self.members.len()].clone()
    }

    /// Waits for an answer, not for ever.
    async fn patiently<T>(&self, call: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
        self.within(self.settings.patience, call).await
    }

    async fn within<T>(
        &self,
        patience: Duration,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, Status> {
        tokio::select! {
            answer = call => answer,
            () = self.clock.sleep(patience) => Err(Status::deadline_exceeded(format!("no answer within {patience:?}"))),
        }
    }

    /// Calls a member, and the next one if it is not there. Only for what may be done twice.
    async fn anywhere<T, F>(&self, call: impl Fn(Channel) -> F + Send) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Status>> + Send,
        T: Send,
    {
        self.anywhere_within(self.settings.patience, call).await
    }

    /// The same, with so much patience for each.
    async fn anywhere_within<T, F>(
        &self,
        patience: Duration,
        call: impl Fn(Channel) -> F + Send,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Status>> + Send,
        T: Send,
    {
        let mut last = None;
        for _ in 0..self.members.len() {
            match self.within(patience, call(self.member())).await {
                Ok(answer) => return Ok(answer),
                Err(status) => {
                    // Another may have a leader, or be there at all.
                    self.at.fetch_add(1, Ordering::Relaxed);
                    last = Some(status);
                }
            }
        }
        Err(unavailable(&last.expect("there is a member")))
    }

    pub(super) async fn load(&self) -> Result<Loaded, StoreError> {
        let (mut loaded, mut from) = (Loaded::default(), self.key(""));
        loop {
            let request = api::RangeRequest {
                key: from.clone(),
                range_end: self.end(),
                limit: PAGE,
                // All pages as of one instant.
                revision: loaded.revision,
            };
            let answer = self.range(request).await?;
            if loaded.revision == 0 {
                loaded.revision = answer.header.map_or(0, |header| header.revision);
            }
            for entry in answer.kvs {
                from.clone_from(&entry.key);
                let name = self.name(&entry.key)?;
                if name != LEADER {
                    loaded.entries.push((name, entry.value));
                }
            }
            if !answer.more {
                return Ok(loaded);
            }
            from.push(0);
        }
    }

    async fn range(&self, request: api::RangeRequest) -> Result<api::RangeResponse, StoreError> {
        let ask = |member| {
            let request = request.clone();
            async move { kv(member).range(request).await.map(tonic::Response::into_inner) }
        };
        self.anywhere(ask).await
    }

    fn name(&self, key: &[u8]) -> Result<String, StoreError> {
        let name =
            key.strip_prefix(self.settings.prefix.as_bytes()).and_then(|name| str::from_utf8(name).ok());
        name.map(str::to_owned)
            .ok_or_else(|| StoreError::Unavailable("etcd answers with keys nobody asked for".into()))
    }

    /// Watches everything under the prefix after a revision, and says at once who leads.
    pub(super) async fn watch(self: &Arc<Self>, after: i64) -> Result<Watching, StoreError> {
        let stream = self.open_watch(self.key(""), self.end(), after + 1).await?;
        let leader = self.leader().await?;
        let first = Change::Leader(leader.map(|(address, _)| address));
        Ok(Watching { etcd: self.clone(), stream, revision: after, first: Some(first) })
    }

    async fn open_watch(
        &self,
        key: Vec<u8>,
        range_end: Vec<u8>,
        start_revision: i64,
    ) -> Result<WatchStream, StoreError> {
        let create = api::WatchCreateRequest { key, range_end, start_revision, progress_notify: true };
        let request = api::WatchRequest {
            request_union: Some(api::watch_request::RequestUnion::CreateRequest(create)),
        };
        let opened = self.anywhere(|member| {
            let request = request.clone();
            async move {
                // The stream of questions stays open for as long as answers are wanted.
                let (questions, asked) = mpsc::channel(1);
                questions.send(request).await.map_err(|_| Status::internal("the stream is closed"))?;
                let mut client = WatchClient::new(member).max_decoding_message_size(ANSWER_LIMIT_BYTES);
                let answers = client.watch(ReceiverStream::new(asked)).await?.into_inner();
                Ok((answers, questions))
            }
        });
        let (answers, questions) = opened.await?;
        Ok(WatchStream { answers, _questions: questions })
    }

    /// Who leads, and since which revision.
    async fn leader(&self) -> Result<Option<(String, i64)>, StoreError> {
        let request = api::RangeRequest { key: self.key(LEADER), ..api::RangeRequest::default() };
        let answer = self.range(request).await?;
        Ok(answer.kvs.into_iter().next().map(|key| (text(&key.value), key.create_revision)))
    }

    /// Waits for the key to be free, and takes it.
    pub(super) async fn lead(
        self: &Arc<Self>,
        address: &str,
        clock: &Arc<dyn Clock>,
    ) -> Result<Leadership, StoreError> {
        loop {
            let ttl = i64::try_from(self.settings.lease.as_secs().max(1)).unwrap_or(i64::MAX);
            let grant = api::LeaseGrantRequest { ttl, id: 0 };
            let begun = clock.now_unix_nanos();
            let granted = self.anywhere(|member| async move { lease(member).lease_grant(grant).await });
            let granted = granted.await?.into_inner();
            let take = api::PutRequest { key: self.key(LEADER), value: address.into(), lease: granted.id };
            let look = api::RangeRequest { key: self.key(LEADER), ..api::RangeRequest::default() };
            let request = api::TxnRequest {
                compare: vec![self.is_led_since(0)],
                success: vec![op(Op::RequestPut(take))],
                failure: vec![op(Op::RequestRange(look))],
            };
            let answer = self.patiently(kv(self.member()).txn(request)).await;
            let answer = answer.map_err(|status| unavailable(&status))?.into_inner();
            let revision = answer.header.map_or(0, |header| header.revision);
            if answer.succeeded {
                return Ok(self.keep(granted.id, revision, begun, clock));
            }
            let revoke = api::LeaseRevokeRequest { id: granted.id };
            // It would lapse by itself.
            let _ = self.patiently(lease(self.member()).lease_revoke(revoke)).await;
            self.until_free(revision).await?;
        }
    }

    async fn until_free(&self, after: i64) -> Result<(), StoreError> {
        let mut watch = self.open_watch(self.key(LEADER), Vec::new(), after + 1).await?;
        loop {
            let answer = watch.answers.message().await.map_err(|status| unavailable(&status))?;
            let answer = answer.ok_or_else(|| StoreError::Unavailable("etcd ended a watch".into()))?;
            if answer.canceled {
                return Err(StoreError::Unavailable(format!("etcd ended a watch: {}", answer.cancel_reason)));
            }
            if answer.events.iter().any(|event| event.r#type() == api::event::EventType::Delete) {
                return Ok(());
            }
        }
    }

    /// Keeps the lease alive until it is given up or lost.
    fn keep(self: &Arc<Self>, id: i64, term: i64, begun: i64, clock: &Arc<dyn Clock>) -> Leadership {
        let (is_lost, lost) = watch::channel(false);
        let (guard, mut given_up) = oneshot::channel();
        let (etcd, clock) = (self.clone(), clock.clone());
        tokio::spawn(async move {
            let lease = etcd.settings.lease;
            let mut alive_since = begun;
            loop {
                tokio::select! {
                    // The leader has let go: the next one need not wait for the lease to lapse.
                    _ = &mut given_up => {
                        let revoke = api::LeaseRevokeRequest { id };
                        let _ = etcd.patiently(self::lease(etcd.member()).lease_revoke(revoke)).await;
                        return;
                    }
                    () = clock.sleep(lease / 3) => {}
                }
                let asked = clock.now_unix_nanos();
                match etcd.refresh(id).await {
                    Ok(true) => alive_since = asked,
                    Ok(false) => break,
                    Err(error) => tracing::warn!(%error, "the lease could not be kept alive yet"),
                }
                // From here on somebody else may lead. It counts from when we asked, not from when etcd answered.
                if clock.now_unix_nanos().saturating_sub(alive_since) > bigfleet_net::nanos(lease) {
                    break;
                }
            }
            is_lost.send_replace(true);
        });
        Leadership { term, lost, _guard: guard }
    }

    /// Keeps a lease alive once. False if it is gone.
    async fn refresh(&self, id: i64) -> Result<bool, StoreError> {
        // A member that does not answer must not use up the lease: there is time to ask another.
        let patience = self.settings.patience.min(self.settings.lease / 3);
        let refreshed = self.anywhere_within(patience, |member| async move {
            let questions = tokio_stream::once(api::LeaseKeepAliveRequest { id });
            let mut answers = lease(member).lease_keep_alive(questions).await?.into_inner();
            answers.message().await
        });
        Ok(refreshed.await?.is_some_and(|answer| answer.ttl > 0))
    }

    pub(super) async fn commit(&self, term: i64, writes: &Writes) -> Result<i64, StoreError> {
        let ops = writes.as_slice().iter().map(|write| {
            let (name, value) = stored(write);
            let key = self.key(&name);
            op(match value {
                Some(value) => Op::RequestPut(api::PutRequest { key, value, lease: 0 }),
                None => Op::RequestDeleteRange(api::DeleteRangeRequest { key, range_end: Vec::new() }),
            })
        });
        let request = api::TxnRequest {
            compare: vec![self.is_led_since(term)],
            success: ops.collect(),
            failure: Vec::new(),
        };
        let answer = self.patiently(kv(self.member()).txn(request)).await;
        let answer = answer.map_err(|status| {
            self.at.fetch_add(1, Ordering::Relaxed);
            unavailable(&status)
        })?;
        let answer = answer.into_inner();
        if !answer.succeeded {
            return Err(StoreError::Deposed);
        }
        Ok(answer.header.map_or(0, |header| header.revision))
    }

    /// The condition of a transaction: the leader's key was made in this revision; 0: there is none.
    fn is_led_since(&self, revision: i64) -> api::Compare {
        api::Compare {
            result: CompareResult::Equal.into(),
            target: CompareTarget::Create.into(),
            key: self.key(LEADER),
            target_union: Some(TargetUnion::CreateRevision(revision)),
        }
    }

    /// Forgets what was before a revision, and gives unused room back to the disk, member by member.
    pub async fn tidy(&self, before: i64) -> Result<(), StoreError> {
        let compact = api::CompactionRequest { revision: before, physical: false };
        let compacted = self.patiently(kv(self.member()).compact(compact)).await;
        match compacted {
            // Somebody else has done so already, further than we wanted.
            Err(status) if status.code() == Code::OutOfRange => {}
            other => drop(other.map_err(|status| unavailable(&status))?),
        }
        for member in &self.members {
            let mut client = MaintenanceClient::new(member.clone());
            let Ok(status) = self.patiently(client.status(api::StatusRequest {})).await else { continue };
            let status = status.into_inner();
            let unused = status.db_size - status.db_size_in_use;
            if unused > DEFRAGMENT_FROM_BYTES && unused > status.db_size_in_use {
                // The member answers nobody meanwhile; the others do.
                let done = self.patiently(client.defragment(api::DefragmentRequest {})).await;
                tracing::info!(unused, ok = done.is_ok(), "a member of etcd was defragmented");
            }
        }
        Ok(())
    }
}

/// Changes as etcd tells them.
#[derive(Debug)]
pub struct Watching {
    etcd: Arc<Etcd>,
    stream: WatchStream,
    revision: i64,
    first: Option<Change>,
}

#[derive(Debug)]
struct WatchStream {
    answers: Streaming<api::WatchResponse>,
    _questions: mpsc::Sender<api::WatchRequest>,
}

impl Watching {
    pub(super) async fn next(&mut self) -> Result<(Vec<Change>, i64), StoreError> {
        if let Some(first) = self.first.take() {
            return Ok((vec![first], self.revision));
        }
        let answer = self.stream.answers.message().await.map_err(|status| unavailable(&status))?;
        let answer = answer.ok_or_else(|| StoreError::Unavailable("etcd ended a watch".into()))?;
        if answer.compact_revision > 0 {
            return Err(StoreError::Compacted(self.revision));
        }
        if answer.canceled {
            return Err(StoreError::Unavailable(format!("etcd ended a watch: {}", answer.cancel_reason)));
        }
        let mut changes = Vec::with_capacity(answer.events.len());
        for event in answer.events {
            let is_put = event.r#type() == api::event::EventType::Put;
            let Some(key) = event.kv else { continue };
            self.revision = self.revision.max(key.mod_revision);
            let name = self.etcd.name(&key.key)?;
            changes.push(match name.as_str() {
                LEADER => Change::Leader(is_put.then(|| text(&key.value))),
                _ => Change::Entry(name, is_put.then_some(key.value)),
            });
        }
        Ok((changes, self.revision))
    }
}

fn kv(member: Channel) -> KvClient<Channel> {
    KvClient::new(member).max_decoding_message_size(ANSWER_LIMIT_BYTES)
}

fn lease(member: Channel) -> LeaseClient<Channel> {
    LeaseClient::new(member)
}

fn op(request: Op) -> api::RequestOp {
    api::RequestOp { request: Some(request) }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn unavailable(status: &Status) -> StoreError {
    StoreError::Unavailable(format!("{:?}: {}", status.code(), status.message()))
}
