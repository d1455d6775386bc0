//! The loop: watches in, steps out, as many at a time as are allowed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bigfleet_crds::{CapacityRequest, OWNED_BY_POD};
use bigfleet_kube_common::watch_cause;
use bigfleet_net::Backoff;
use bigfleet_net::{Clock, nanos};
use futures::stream::{self, BoxStream, FuturesUnordered, StreamExt as _};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use xxhash_rust::xxh3::xxh3_64;

use crate::ledger::{Ledger, Step, Uid};
use crate::metrics::Metrics;
use crate::object::request_name;
use crate::translate::{ClassDefaults, Penalties, Policy};
use crate::write::{Done, Outcome, carry_out};

/// How many calls are under way at once.
const AT_ONCE: usize = 32;
/// How long a pod waits whose call failed.
const BACKOFF: Backoff = Backoff { first: Duration::from_millis(500), limit: Duration::from_mins(1) };
/// How often failures are said in the log, however many there are.
const SAY_EVERY: Duration = Duration::from_secs(10);

/// News from the server.
enum News {
    Pod(Box<watcher::Result<Event<Pod>>>),
    Request(Box<watcher::Result<Event<DeserializeGuard<CapacityRequest>>>>),
    Class(Box<watcher::Result<Event<PriorityClass>>>),
}

/// What the loop works with.
pub(crate) struct Controller {
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    /// Set when all lists have been read once.
    pub(crate) synced: Arc<AtomicBool>,
}

/// The loop's own state.
struct Work {
    ledger: Ledger,
    /// Lists that have not been read yet.
    missing: BTreeSet<&'static str>,
    busy: BTreeSet<Uid>,
    failures: BTreeMap<Uid, u32>,
    /// Pods that wait after a failure, and when they are due.
    waiting: BTreeSet<Uid>,
    due: BTreeSet<(i64, Uid)>,
    failed_since_said: u64,
    say_from_unix_nanos: i64,
}

impl Controller {
    /// Works until it is dropped.
    pub(crate) async fn run(&self, policy: Policy) {
        let mut news = self.news();
        let mut calls = FuturesUnordered::new();
        let mut work = Work {
            ledger: Ledger::new(policy),
            missing: BTreeSet::from(["pods", "capacityrequests", "priorityclasses"]),
            busy: BTreeSet::new(),
            failures: BTreeMap::new(),
            waiting: BTreeSet::new(),
            due: BTreeSet::new(),
            failed_since_said: 0,
            say_from_unix_nanos: i64::MIN,
        };
        loop {
            if work.missing.is_empty() {
                self.synced.store(true, Ordering::Relaxed);
                while calls.len() < AT_ONCE
                    && let Some((pod, step)) = work.next_step(self.clock.now_unix_nanos())
                {
                    calls.push(carry_out(self.client.clone(), self.clock.clone(), pod, step));
                }
            }
            self.metrics.tally(work.ledger.tally());
            let next_due = work.due.first().map_or(i64::MAX, |(due, _)| *due);
            tokio::select! {
                Some(done) = calls.next(), if !calls.is_empty() => self.ended(&mut work, done),
                Some(heard) = news.next() => {
                    self.heard(&mut work, heard);
                    // What has come together is taken together.
                    while let std::task::Poll::Ready(Some(heard)) = futures::poll!(news.next()) {
                        self.heard(&mut work, heard);
                    }
                }
                () = self.clock.sleep_until(next_due), if next_due != i64::MAX => {
                    work.wake(self.clock.now_unix_nanos());
                }
            }
        }
    }

    fn news(&self) -> stream::SelectAll<BoxStream<'static, News>> {
        let pods =
            watcher(Api::<Pod>::all(self.client.clone()), watcher::Config::default()).default_backoff();
        let ours = watcher::Config::default().labels(OWNED_BY_POD);
        let requests = Api::<DeserializeGuard<CapacityRequest>>::all(self.client.clone());
        let requests = watcher(requests, ours).default_backoff();
        let classes = Api::<PriorityClass>::all(self.client.clone());
        let classes = watcher(classes, watcher::Config::default()).default_backoff();
        stream::select_all([
            pods.map(|event| News::Pod(Box::new(event))).boxed(),
            requests.map(|event| News::Request(Box::new(event))).boxed(),
            classes.map(|event| News::Class(Box::new(event))).boxed(),
        ])
    }

    fn heard(&self, work: &mut Work, news: News) {
        let ledger = &mut work.ledger;
        match news {
            News::Pod(news) => match *news {
                Ok(Event::Init) => ledger.pods_begin(),
                Ok(Event::InitApply(pod) | Event::Apply(pod)) => ledger.pod(&pod),
                Ok(Event::Delete(pod)) => ledger.pod_gone(pod.metadata.uid.as_deref().unwrap_or("")),
                Ok(Event::InitDone) => {
                    ledger.pods_end();
                    work.missing.remove("pods");
                }
                Err(error) => self.broke_off("pods", &error),
            },
            News::Request(news) => match *news {
                Ok(Event::Init) => ledger.requests_begin(),
                Ok(Event::InitApply(DeserializeGuard(request)) | Event::Apply(DeserializeGuard(request))) => {
                    match request {
                        Ok(request) => ledger.request(&request.metadata, Some(&request)),
                        Err(invalid) => ledger.request(&invalid.metadata, None),
                    }
                }
                Ok(Event::Delete(request)) => ledger.request_gone(request.meta()),
                Ok(Event::InitDone) => {
                    ledger.requests_end();
                    work.missing.remove("capacityrequests");
                }
                Err(error) => self.broke_off("capacityrequests", &error),
            },
            News::Class(news) => match *news {
                Ok(Event::Init) => ledger.classes_begin(),
                Ok(Event::InitApply(class) | Event::Apply(class)) => {
                    let penalties = Penalties::read(class.metadata.annotations.as_ref());
                    ledger.class(&class.name_any(), Some(ClassDefaults { penalties }));
                }
                Ok(Event::Delete(class)) => ledger.class(&class.name_any(), None),
                Ok(Event::InitDone) => {
                    ledger.classes_end();
                    work.missing.remove("priorityclasses");
                }
                Err(error) => self.broke_off("priorityclasses", &error),
            },
        }
    }

    /// The watch goes on by itself, after a wait.
    fn broke_off(&self, resource: &'static str, error: &watcher::Error) {
        let cause = watch_cause(error);
        self.metrics.watch_error(resource, cause);
        tracing::warn!(%error, resource, cause, "a watch broke off");
    }

    fn ended(&self, work: &mut Work, done: Done) {
        let Done { pod, step, outcome } = done;
        self.metrics.wrote(step.name(), outcome.name());
        work.busy.remove(&pod);
        match outcome {
            Outcome::Written(request) => work.ledger.request(&request.metadata, Some(&request)),
            Outcome::Gone => {
                let place = match step {
                    Step::Delete { namespace, name, .. } => (namespace, name),
                    Step::Apply { pod, .. } | Step::Status { pod, .. } => {
                        (pod.namespace, request_name(&pod.uid).into())
                    }
                };
                work.ledger.forget_request(&pod, &place);
            }
            Outcome::Refused(reason) => {
                tracing::info!(%pod, reason, "the server refuses a request");
                match &step {
                    Step::Apply { spec, .. } => work.ledger.refuse(&pod, spec),
                    // The status of a request the server no longer understands: wait for a better day.
                    _ => return work.wait(self.clock.now_unix_nanos(), pod),
                }
            }
            Outcome::Failed(error) => {
                let now = self.clock.now_unix_nanos();
                work.failed_since_said += 1;
                if now >= work.say_from_unix_nanos {
                    let count = std::mem::take(&mut work.failed_since_said);
                    work.say_from_unix_nanos = now.saturating_add(nanos(SAY_EVERY));
                    tracing::warn!(%error, step = step.name(), count, "calls failed; they are tried again");
                }
                return work.wait(now, pod);
            }
        }
        work.failures.remove(&pod);
        work.ledger.mark(pod);
    }
}

impl Work {
    /// The next pod about which something is to be done, and what.
    fn next_step(&mut self, now: i64) -> Option<(Uid, Step)> {
        while let Some(pod) = self.ledger.pop() {
            // One call at a time for a pod; it is looked at again when that ends. One that waits is looked at when due.
            if self.busy.contains(&pod) || self.waiting.contains(&pod) {
                continue;
            }
            if let Some(step) = self.ledger.next(&pod, now) {
                self.busy.insert(pod.clone());
                return Some((pod, step));
            }
            self.failures.remove(&pod);
        }
        None
    }

    fn wait(&mut self, now: i64, pod: Uid) {
        let failures = self.failures.entry(pod.clone()).or_default();
        *failures = failures.saturating_add(1);
        let wait = BACKOFF.wait(*failures, xxh3_64(pod.as_bytes()));
        self.waiting.insert(pod.clone());
        self.due.insert((now.saturating_add(nanos(wait)), pod));
    }

    /// Looks again at pods that have waited long enough.
    fn wake(&mut self, now: i64) {
        while let Some((due, _)) = self.due.first()
            && *due <= now
            && let Some((_, pod)) = self.due.pop_first()
        {
            self.waiting.remove(&pod);
            self.ledger.mark(pod);
        }
    }
}
