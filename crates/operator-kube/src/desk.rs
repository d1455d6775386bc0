//! The desk: the one owner of what the operator knows. News comes in, orders go out.
//!
//! The loop takes all news that waits, then looks at what is due: drains, stuck pods, the roll-up, statuses, objects. Each
//! of these is a file of its own beside this one and does a bounded amount of work; calls to the API server run as tasks
//! whose answers come back as news.

mod apart;
mod demand;
mod drains;
mod existing;
mod leaving;
mod machines;
mod objects;
mod rollup;
mod statuses;
mod stuck;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_crds::Condition;
use bigfleet_kube_common::{Announcement, Severity, announce, server_unix_nanos};
use bigfleet_net::{Clock, nanos};
use bigfleet_operator::demand::{Demand, RowId};
use bigfleet_operator::drain::Drains;
use bigfleet_operator::reserve::Reserves;
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_view::v1;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use tokio::sync::{Semaphore, mpsc};
use tonic::transport::Channel;

use crate::Settings;
use crate::hands::{Hands, MANAGER};
use crate::metrics::Metrics;
use crate::news::News;
use crate::picture::Picture;
use crate::seen::Listed;
use crate::server_clock::ServerClock;
use objects::Objects;
use rollup::Rollups;
use statuses::Statuses;
use stuck::Watchlist;

/// News taken before looking at what is due.
const BATCH: usize = 2048;
/// Events under way; more are left unsaid.
const MOST_EVENTS: usize = 32;
/// How long the desk sleeps at most.
const LONGEST_SLEEP_NANOS: i64 = 1_000_000_000;

/// Everything the operator knows.
pub(crate) struct Desk {
    settings: Settings,
    client: Client,
    hands: Hands,
    channel: Channel,
    clock: Arc<dyn Clock>,
    pub(crate) server_clock: ServerClock,
    news: mpsc::Sender<News>,
    metrics: Metrics,
    events: Arc<Semaphore>,

    picture: Picture,
    demand: Demand,
    requests: HashMap<Box<str>, Request, FixedState>,
    by_pod: HashMap<Box<str>, Box<str>, FixedState>,
    lists: Lists,

    link: Option<mpsc::Sender<Saying>>,
    /// What could not be put on the link because it was full or gone; acknowledgements only.
    unsaid: Vec<Saying>,
    rollups: Rollups,
    verdicts: BTreeMap<(String, String), v1::Verdict>,
    has_verdicts: bool,
    reserves: Reserves,
    watchlist: Watchlist,
    drains: Drains,
    leaving: leaving::Leaving,
    drain_progress: BTreeMap<String, bigfleet_operator::drain::Progress>,
    statuses: Statuses,
    objects: Objects,
    existing: existing::Existing,
}

/// What is kept of a request beside the demand it adds up to.
#[derive(Debug, Default)]
struct Request {
    pod: Box<str>,
    /// When it was first part of a roll-up; 0 before.
    acknowledged_unix_nanos: i64,
    /// The shard has answered a roll-up with it: only then is there something to say about it.
    is_answered: bool,
    /// The digest of the status it shows.
    written: u64,
    /// Why it is refused.
    refused: Option<Box<str>>,
    /// Conditions that others wrote.
    others: Box<[Condition]>,
    /// The version it was last seen at, or written by us.
    version: Box<str>,
}

/// Which lists are complete, and what those under way held so far.
#[derive(Debug, Default)]
struct Lists {
    requests: Listing,
    nodes: Listing,
    pods: Listing,
    upcoming: Listing,
}

#[derive(Debug, Default)]
struct Listing {
    is_complete: bool,
    held: Option<BTreeSet<String>>,
}

impl Listing {
    /// Follows a list. At its end: all that it held.
    fn follow<T>(&mut self, listed: &Listed<T>) -> Option<BTreeSet<String>> {
        match listed {
            Listed::Begin => self.held = Some(BTreeSet::new()),
            Listed::Holds(key, _) => {
                if let Some(held) = &mut self.held {
                    held.insert(key.clone());
                }
            }
            Listed::End => {
                self.is_complete = true;
                return self.held.take();
            }
            Listed::Put(..) | Listed::Gone(_) => {}
        }
        None
    }
}

impl Lists {
    fn are_complete(&self) -> bool {
        [&self.requests, &self.nodes, &self.pods, &self.upcoming].iter().all(|list| list.is_complete)
    }
}

impl Desk {
    pub(crate) fn new(
        settings: Settings,
        client: Client,
        hands: Hands,
        channel: Channel,
        clock: Arc<dyn Clock>,
        news: mpsc::Sender<News>,
        metrics: Metrics,
    ) -> Self {
        let demand = Demand::new(settings.cluster.as_str());
        Self {
            settings,
            client,
            hands,
            channel,
            clock,
            server_clock: ServerClock::default(),
            news,
            metrics,
            events: Arc::new(Semaphore::new(MOST_EVENTS)),
            picture: Picture::default(),
            demand,
            requests: HashMap::default(),
            by_pod: HashMap::default(),
            lists: Lists::default(),
            link: None,
            unsaid: Vec::new(),
            rollups: Rollups::default(),
            verdicts: BTreeMap::new(),
            has_verdicts: false,
            reserves: Reserves::default(),
            watchlist: Watchlist::default(),
            drains: Drains::default(),
            leaving: leaving::Leaving::default(),
            drain_progress: BTreeMap::new(),
            statuses: Statuses::default(),
            objects: Objects::default(),
            existing: existing::Existing::default(),
        }
    }

    /// Works until nobody has news any more.
    pub(crate) async fn run(mut self, mut inbox: mpsc::Receiver<News>) {
        loop {
            let now = self.clock.now_unix_nanos();
            let due = self.act(now);
            let wake = due.clamp(now, now.saturating_add(LONGEST_SLEEP_NANOS));
            tokio::select! {
                news = inbox.recv() => {
                    let Some(news) = news else { return };
                    let now = self.clock.now_unix_nanos();
                    self.take(news, now);
                    for _ in 1..BATCH {
                        let Ok(news) = inbox.try_recv() else { break };
                        self.take(news, now);
                    }
                }
                () = self.clock.sleep_until(wake) => {}
            }
        }
    }

    fn take(&mut self, news: News, now: i64) {
        match news {
            News::Request(listed) => self.take_request(listed, now),
            News::Node(listed) => self.take_node(listed, now),
            News::Pod(listed) => self.take_pod(listed, now),
            News::Upcoming(listed) => self.take_upcoming(listed),
            News::Connected(link) => self.connected(link, now),
            News::Disconnected(why) => self.disconnected(&why),
            News::Heard(heard) => self.hear(heard, now),
            News::Verdicts(verdicts) => self.take_verdicts(verdicts, now),
            News::NoVerdicts(why) => {
                tracing::debug!(why, "no verdicts");
                self.has_verdicts = false;
                self.metrics.verdicts(false);
            }
            News::Evicted { uid, outcome } => self.evicted(&uid, outcome, now),
            News::Written { request, digest, done } => self.written(&request, digest, done, now),
            News::Applied { object, done } => self.applied(&object, done, now),
            News::Blob(saying) => self.say(saying),
            News::ServerClock(server) => self.server_clock.note(server, now),
        }
    }

    /// Does what is due. When to look again.
    fn act(&mut self, now: i64) -> i64 {
        if !self.lists.are_complete() {
            return i64::MAX;
        }
        self.say_unsaid();
        let mut due = self.compare_clocks(now);
        due = due.min(self.judge_leaving(now));
        due = due.min(self.step_drains(now));
        due = due.min(self.look_at_existing(now));
        due = due.min(self.look_at_stuck(now));
        due = due.min(self.send_rollup(now));
        due = due.min(self.renew_statuses(now));
        due = due.min(self.flush_statuses(now));
        due = due.min(self.flush_objects(now));
        due.min(self.report_nodes(now))
    }

    /// Asks the server what time it has, now and then.
    fn compare_clocks(&mut self, now: i64) -> i64 {
        if self.server_clock.due() <= now {
            self.server_clock.looks(now);
            let client = self.client.clone();
            self.spawn(async move { News::ServerClock(server_unix_nanos(&client).await) });
        }
        self.server_clock.due()
    }

    /// What the API server would say now.
    fn server_now(&self, now: i64) -> i64 {
        self.server_clock.now(now)
    }

    fn connected(&mut self, link: mpsc::Sender<Saying>, now: i64) {
        tracing::info!(cluster = self.settings.cluster, "the shard answers");
        self.link = Some(link);
        self.metrics.connected(true);
        self.rollups.begin_session(now);
        self.objects.begin_session();
    }

    fn disconnected(&mut self, why: &str) {
        tracing::info!(why, "no session with the shard");
        self.link = None;
        // Answers belong to the session they were asked on; what it asks again is answered again.
        self.unsaid.clear();
        self.metrics.connected(false);
        self.rollups.end_session();
    }

    fn hear(&mut self, heard: Heard, now: i64) {
        match heard {
            Heard::Ack(ack) => self.acknowledged(&ack.echo, now),
            Heard::BootstrapRequest(request) => self.bootstrap(request, now),
            Heard::ReclaimInstruction(instruction) => self.instructed(&instruction, now),
            Heard::NodeStateUpdate(update) => self.told_of_machine(update, now),
            Heard::AvailableCapacity(update) => self.told_of_free(&update),
        }
    }

    fn take_verdicts(&mut self, verdicts: v1::Verdicts, now: i64) {
        if !std::mem::replace(&mut self.has_verdicts, true) {
            tracing::info!("the shard tells verdicts");
        }
        self.metrics.verdicts(true);
        let by_key = verdicts.needs.into_iter().filter_map(|verdict| {
            let key = verdict.key.as_ref()?;
            Some(((key.fingerprint.clone(), key.group.clone()), verdict))
        });
        self.verdicts = by_key.collect();
        self.expect_machines(&verdicts.coming, now);
        self.set_apart(now);
        self.watchlist.look_soon(now);
        self.statuses.renew_soon(now);
    }

    /// The verdict on a row.
    fn verdict(&self, row: RowId) -> Option<&v1::Verdict> {
        let (fingerprint, group) = self.demand.key_of(row)?;
        self.verdicts.get(&(fingerprint.to_owned(), group.to_owned()))
    }

    /// Says something to the shard, now or as soon as there is room.
    fn say(&mut self, saying: Saying) {
        let Some(link) = &self.link else { return };
        if let Err(mpsc::error::TrySendError::Full(saying)) = link.try_send(saying) {
            self.unsaid.push(saying);
        }
    }

    fn say_unsaid(&mut self) {
        for saying in std::mem::take(&mut self.unsaid) {
            self.say(saying);
        }
    }

    /// Runs a call to the API server beside the desk; its answer comes back as news.
    fn spawn(&self, work: impl Future<Output = News> + Send + 'static) {
        let news = self.news.clone();
        tokio::spawn(async move {
            let done = work.await;
            // Nobody is left to be told if the desk has gone.
            let _ = news.send(done).await;
        });
    }

    /// Says something on an object, once. Left unsaid when too much is being said.
    fn announce(&self, about: ObjectReference, severity: Severity, reason: &'static str, message: String) {
        let Ok(place) = self.events.clone().try_acquire_owned() else { return };
        let (client, clock) = (self.client.clone(), self.clock.clone());
        tokio::spawn(async move {
            let announcement = Announcement { about, severity, reason, message };
            if let Err(error) = announce(&client, &*clock, MANAGER, &announcement).await {
                tracing::debug!(%error, reason, "an event could not be written");
            }
            drop(place);
        });
    }

    fn pod_reference(&self, uid: &str) -> Option<ObjectReference> {
        let pod = self.picture.pod(uid)?;
        Some(ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            namespace: Some(pod.namespace.to_string()),
            name: Some(pod.name.to_string()),
            uid: Some(uid.into()),
            ..ObjectReference::default()
        })
    }

    fn settle_nanos(&self) -> i64 {
        nanos(self.settings.settle)
    }
}
