//! Which pods and which requests there are, and what follows from that. Pure: news go in, steps come out.
//!
//! Whatever is seen is compared as a whole, never step by step: what a pod wants against what is there. So lost news, news
//! twice, a restart or somebody else's edit all end in the same state.

mod intern;
mod queue;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_crds::{CapacityRequest, CapacityRequestSpec, Condition, OWNED_BY_POD};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::object::{PodName, conditions, fingerprint, is_owned, our_conditions, request_name};
use crate::translate::{ClassDefaults, Policy, Skip, Translation, Wanted, translate};
use intern::Interner;
use queue::{Queue, Urgency};

/// A pod's UID.
pub(crate) type Uid = Box<str>;

/// What is to be done next for one pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// Write the request.
    Apply { pod: PodName, spec: Box<CapacityRequestSpec> },
    /// Write our conditions, and tell people about the new ones.
    Status { pod: PodName, conditions: Vec<Condition> },
    /// Remove a request.
    Delete { namespace: Box<str>, name: Box<str>, uid: Option<String> },
}

#[derive(Debug)]
struct PodEntry {
    name: PodName,
    wanted: Result<Arc<Wanted>, Skip>,
    /// The fingerprint of a request that the server refused. It is not offered again.
    refused: Option<u64>,
}

#[derive(Clone, Debug, PartialEq)]
struct RequestEntry {
    uid: Option<String>,
    /// Absent if the object cannot be read.
    fingerprint: Option<u64>,
    owned: bool,
    conditions: Vec<Condition>,
}

/// Where a request is.
type Place = (Box<str>, Box<str>);

/// What is counted, for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Pods that ask for capacity.
    pub(crate) asking: i64,
    /// Pods that do not, by reason.
    pub(crate) skipped: BTreeMap<Skip, i64>,
    /// Pods by field that their request does not carry, and what follows.
    pub(crate) losses: BTreeMap<(&'static str, &'static str), i64>,
    /// Pods by annotation of their own that could not be read.
    pub(crate) bad_penalties: BTreeMap<&'static str, i64>,
    /// Pods whose request the server refuses.
    pub(crate) refused: i64,
    /// Requests that speak for pods.
    pub(crate) requests: i64,
}

/// The state of the controller.
#[derive(Debug)]
pub(crate) struct Ledger {
    policy: Policy,
    pods: BTreeMap<Uid, PodEntry>,
    /// One map for all, not one for each pod: that would cost a kilobyte a pod.
    requests: BTreeMap<(Uid, Place), RequestEntry>,
    classes: BTreeMap<String, ClassDefaults>,
    queue: Queue,
    /// While a list is read again: what it has had so far.
    listed_pods: Option<BTreeSet<Uid>>,
    listed_requests: Option<BTreeSet<(Uid, Place)>>,
    listed_classes: Option<BTreeSet<String>>,
    interner: Interner,
    tally: Tally,
}

impl Ledger {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            pods: BTreeMap::new(),
            requests: BTreeMap::new(),
            classes: BTreeMap::new(),
            queue: Queue::default(),
            listed_pods: None,
            listed_requests: None,
            listed_classes: None,
            interner: Interner::default(),
            tally: Tally::default(),
        }
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// A list of pods begins.
    pub(crate) fn pods_begin(&mut self) {
        self.listed_pods = Some(BTreeSet::new());
    }

    /// The list is complete: what was not in it is gone.
    pub(crate) fn pods_end(&mut self) {
        let listed = self.listed_pods.take().unwrap_or_default();
        let gone: Vec<Uid> = self.pods.keys().filter(|uid| !listed.contains(*uid)).cloned().collect();
        for uid in &gone {
            self.pod_gone(uid);
        }
    }

    /// A pod as it is now.
    pub(crate) fn pod(&mut self, pod: &Pod) {
        let Some(uid) = pod.metadata.uid.as_deref() else { return };
        if let Some(listed) = &mut self.listed_pods {
            listed.insert(uid.into());
        }
        let wanted = match translate(pod, &self.policy) {
            Translation::Skipped(skip) => Err(skip),
            Translation::Wanted(wanted) => Ok(self.interner.share(*wanted)),
        };
        if let Some(before) = self.pods.get(uid)
            && before.wanted == wanted
        {
            return;
        }
        let text = |text: &Option<String>| text.as_deref().unwrap_or("").into();
        let name = PodName {
            namespace: text(&pod.metadata.namespace),
            name: text(&pod.metadata.name),
            uid: uid.into(),
        };
        let entry = PodEntry { name, wanted, refused: None };
        count(&mut self.tally, &entry, 1);
        if let Some(before) = self.pods.insert(uid.into(), entry) {
            count(&mut self.tally, &before, -1);
        }
        self.queue.push(uid.into(), Urgency::Asking);
    }

    /// A pod is no more.
    pub(crate) fn pod_gone(&mut self, uid: &str) {
        if let Some(before) = self.pods.remove(uid) {
            count(&mut self.tally, &before, -1);
        }
        if self.requests_of(uid).next().is_some() {
            self.queue.push(uid.into(), Urgency::Tidying);
        }
    }

    /// A list of requests begins.
    pub(crate) fn requests_begin(&mut self) {
        self.listed_requests = Some(BTreeSet::new());
    }

    /// The list is complete: what was not in it is gone.
    pub(crate) fn requests_end(&mut self) {
        let listed = self.listed_requests.take().unwrap_or_default();
        let gone: Vec<(Uid, Place)> =
            self.requests.keys().filter(|key| !listed.contains(*key)).cloned().collect();
        for (uid, place) in gone {
            self.forget_request(&uid, &place);
        }
    }

    /// A request as it is now; `readable` only if it makes sense.
    pub(crate) fn request(&mut self, metadata: &ObjectMeta, readable: Option<&CapacityRequest>) {
        let Some((pod, place)) = address(metadata) else { return };
        if let Some(listed) = &mut self.listed_requests {
            listed.insert((pod.clone(), place.clone()));
        }
        let entry = RequestEntry {
            uid: metadata.uid.clone(),
            fingerprint: readable.map(|request| fingerprint(&request.spec)),
            owned: readable.is_some_and(|request| is_owned(request, &pod)),
            conditions: readable.map(our_conditions).unwrap_or_default(),
        };
        let before = self.requests.insert((pod.clone(), place), entry.clone());
        if before.is_none() {
            self.tally.requests += 1;
        }
        if before != Some(entry) {
            let urgency = self.urgency(&pod);
            self.queue.push(pod, urgency);
        }
    }

    /// A request is no more.
    pub(crate) fn request_gone(&mut self, metadata: &ObjectMeta) {
        if let Some((pod, place)) = address(metadata) {
            self.forget_request(&pod, &place);
        }
    }

    /// The same, by its place.
    pub(crate) fn forget_request(&mut self, pod: &str, place: &Place) {
        if self.requests.remove(&(pod.into(), place.clone())).is_some() {
            self.tally.requests -= 1;
            let urgency = self.urgency(pod);
            self.queue.push(pod.into(), urgency);
        }
    }

    /// A list of priority classes begins.
    pub(crate) fn classes_begin(&mut self) {
        self.listed_classes = Some(BTreeSet::new());
    }

    /// The list is complete: what was not in it is gone.
    pub(crate) fn classes_end(&mut self) {
        let listed = self.listed_classes.take().unwrap_or_default();
        let gone: Vec<String> = self.classes.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in &gone {
            self.class(name, None);
        }
    }

    /// What a priority class says now.
    pub(crate) fn class(&mut self, name: &str, defaults: Option<ClassDefaults>) {
        if let (Some(listed), Some(_)) = (&mut self.listed_classes, &defaults) {
            listed.insert(name.into());
        }
        let defaults = defaults.filter(|defaults| *defaults != ClassDefaults::default());
        if self.classes.get(name) == defaults.as_ref() {
            return;
        }
        match defaults {
            Some(defaults) => self.classes.insert(name.into(), defaults),
            None => self.classes.remove(name),
        };
        let of_class = |entry: &PodEntry| {
            entry.wanted.as_ref().is_ok_and(|wanted| wanted.class.as_deref() == Some(name))
        };
        for (uid, _) in self.pods.iter().filter(|(_, entry)| of_class(entry)) {
            self.queue.push(uid.clone(), Urgency::Tidying);
        }
    }

    /// A pod about which something may have to be done.
    pub(crate) fn pop(&mut self) -> Option<Uid> {
        self.queue.pop()
    }

    /// Looks at a pod once more.
    pub(crate) fn mark(&mut self, uid: Uid) {
        let urgency = self.urgency(&uid);
        self.queue.push(uid, urgency);
    }

    /// A pod that asks comes before leftovers of pods that do not.
    fn urgency(&self, uid: &str) -> Urgency {
        if self.pods.get(uid).is_some_and(|entry| entry.wanted.is_ok()) {
            Urgency::Asking
        } else {
            Urgency::Tidying
        }
    }

    /// The server refuses a pod's request as it is.
    pub(crate) fn refuse(&mut self, uid: &str, spec: &CapacityRequestSpec) {
        if let Some(entry) = self.pods.get_mut(uid) {
            count(&mut self.tally, entry, -1);
            entry.refused = Some(fingerprint(spec));
            count(&mut self.tally, entry, 1);
        }
    }

    /// The requests that speak for a pod.
    fn requests_of(&self, uid: &str) -> impl Iterator<Item = (&Place, &RequestEntry)> {
        let first = (Uid::from(uid), Place::default());
        let from_there = self.requests.range(first.clone()..);
        from_there.take_while(move |((pod, _), _)| *pod == first.0).map(|((_, place), entry)| (place, entry))
    }

    /// The penalties that a pod's class says.
    fn class_of(&self, wanted: &Wanted) -> Option<&ClassDefaults> {
        self.classes.get(wanted.class.as_deref()?)
    }

    /// What follows for a pod from what is known. Only when all lists have been read once.
    pub(crate) fn next(&self, uid: &str, now_unix_nanos: i64) -> Option<Step> {
        let delete = |(place, entry): (&Place, &RequestEntry)| Step::Delete {
            namespace: place.0.clone(),
            name: place.1.clone(),
            uid: entry.uid.clone(),
        };
        let Some(PodEntry { name, wanted: Ok(wanted), refused }) = self.pods.get(uid) else {
            return self.requests_of(uid).next().map(delete);
        };
        let class = self.class_of(wanted);
        let spec = wanted.request(class);
        let desired = fingerprint(&spec);
        let key: (Uid, Place) = (uid.into(), (name.namespace.clone(), request_name(uid).into()));
        let own = self.requests.get(&key);
        let right = own.is_some_and(|entry| entry.owned && entry.fingerprint == Some(desired));
        if !right {
            return (*refused != Some(desired))
                .then(|| Step::Apply { pod: name.clone(), spec: Box::new(spec) });
        }
        // Only with the right one in place is a second one too many.
        if let Some(extra) = self.requests_of(uid).find(|(other, _)| **other != key.1) {
            return Some(delete(extra));
        }
        let entry = own?;
        let said = conditions(wanted, class, &entry.conditions, now_unix_nanos);
        (said != entry.conditions).then(|| Step::Status { pod: name.clone(), conditions: said })
    }
}

/// Whose request it is, and where.
fn address(metadata: &ObjectMeta) -> Option<(Uid, Place)> {
    let pod = metadata.labels.as_ref()?.get(OWNED_BY_POD)?;
    let place = (metadata.namespace.as_deref()?.into(), metadata.name.as_deref()?.into());
    Some((pod.as_str().into(), place))
}

fn count(tally: &mut Tally, entry: &PodEntry, by: i64) {
    let add = |slot: &mut i64| *slot += by;
    match &entry.wanted {
        Err(skip) => add(tally.skipped.entry(*skip).or_default()),
        Ok(wanted) => {
            add(&mut tally.asking);
            let fields: BTreeSet<_> =
                wanted.losses.iter().map(|loss| (loss.field, loss.effect.name())).collect();
            for key in fields {
                add(tally.losses.entry(key).or_default());
            }
            for bad in &wanted.penalties.bad {
                add(tally.bad_penalties.entry(bad.annotation).or_default());
            }
            if entry.refused.is_some() {
                add(&mut tally.refused);
            }
        }
    }
}

#[cfg(test)]
mod tests;
