//! Leader election, events and definitions on a real control plane.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_kube_common::{Announcement, Election, ElectionSettings, Severity, Timing, announce, install};
use bigfleet_kube_testbed::{ControlPlane, Parts, eventually, scenarios};
use bigfleet_net::{Clock, Sleep, SystemClock};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use kube::api::{Api, ListParams};

#[test]
fn on_a_real_control_plane() {
    scenarios(
        Parts::ApiServer,
        4,
        scenarios![
            one_of_two_replicas_leads_and_the_other_takes_over,
            a_lease_that_was_given_back_is_taken_at_once,
            a_wrong_clock_takes_no_lease,
            a_leader_that_cannot_renew_stops_before_anybody_takes_over,
            an_event_is_told_once,
            definitions_are_installed_twice_without_harm,
        ],
    );
}

/// Spans short enough for a test; only their order is asserted.
const QUICK: Timing = Timing {
    lease: Duration::from_secs(3),
    give_up: Duration::from_secs(2),
    retry: Duration::from_millis(200),
};

fn settings(namespace: &str, identity: &str) -> ElectionSettings {
    ElectionSettings {
        namespace: namespace.into(),
        name: "leader".into(),
        identity: identity.into(),
        timing: QUICK,
    }
}

async fn holder(plane: &ControlPlane, namespace: &str) -> Option<String> {
    let leases: Api<Lease> = Api::namespaced(plane.client().await, namespace);
    leases.get_opt("leader").await.unwrap()?.spec?.holder_identity
}

async fn one_of_two_replicas_leads_and_the_other_takes_over(plane: &ControlPlane, namespace: String) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let mut first = Election::new(plane.client().await, settings(&namespace, "first"), clock.clone());
    let mut second = Election::new(plane.client().await, settings(&namespace, "second"), clock.clone());
    first.acquire().await;
    assert_eq!(holder(plane, &namespace).await.as_deref(), Some("first"));
    // While the first renews, for more than a lease's length, the second does not get it.
    tokio::select! {
        lost = first.hold() => panic!("{lost}"),
        () = second.acquire() => panic!("two leaders"),
        () = clock.sleep(QUICK.lease + QUICK.retry * 5) => {}
    }
    // The first renews no more.
    second.acquire().await;
    assert_eq!(holder(plane, &namespace).await.as_deref(), Some("second"));
    assert_eq!(first.hold().await, "another replica has the lease");
    let leases: Api<Lease> = Api::namespaced(plane.client().await, &namespace);
    assert_eq!(leases.get("leader").await.unwrap().spec.unwrap().lease_transitions, Some(1));
}

async fn a_lease_that_was_given_back_is_taken_at_once(plane: &ControlPlane, namespace: String) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let long = Timing { lease: Duration::from_hours(1), ..QUICK };
    let with = |identity: &str| ElectionSettings { timing: long, ..settings(&namespace, identity) };
    let mut first = Election::new(plane.client().await, with("first"), clock.clone());
    let mut second = Election::new(plane.client().await, with("second"), clock.clone());
    first.acquire().await;
    second.release().await.unwrap();
    assert_eq!(holder(plane, &namespace).await.as_deref(), Some("first"), "only the holder can give it back");
    first.release().await.unwrap();
    assert_eq!(holder(plane, &namespace).await, None);
    second.acquire().await;
    assert_eq!(holder(plane, &namespace).await.as_deref(), Some("second"));
}

/// A clock that runs as it should and shows another time.
#[derive(Debug)]
struct Skewed(SystemClock, i64);

impl Clock for Skewed {
    fn now_unix_nanos(&self) -> i64 {
        self.0.now_unix_nanos() + self.1
    }

    fn sleep_until(&self, unix_nanos: i64) -> Sleep {
        self.0.sleep_until(unix_nanos - self.1)
    }
}

async fn a_wrong_clock_takes_no_lease(plane: &ControlPlane, namespace: String) {
    let right: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let year = Duration::from_hours(365 * 24).as_nanos() as i64;
    let fast: Arc<dyn Clock> = Arc::new(Skewed(SystemClock::start(), year));
    let slow: Arc<dyn Clock> = Arc::new(Skewed(SystemClock::start(), -year));
    let mut leader = Election::new(plane.client().await, settings(&namespace, "slow"), slow);
    let mut other = Election::new(plane.client().await, settings(&namespace, "fast"), fast);
    leader.acquire().await;
    let leases: Api<Lease> = Api::namespaced(plane.client().await, &namespace);
    let renewed = leases.get("leader").await.unwrap().spec.unwrap().renew_time.unwrap().0.as_nanosecond();
    assert!(renewed < i128::from(right.now_unix_nanos() - year / 2), "the lease looks a year old");
    tokio::select! {
        lost = leader.hold() => panic!("{lost}"),
        () = other.acquire() => panic!("two leaders"),
        () = right.sleep(QUICK.lease + QUICK.retry * 5) => {}
    }
}

/// A server that lets a replica read and not write: the leader is told, and stops while the lease is still its own.
async fn a_leader_that_cannot_renew_stops_before_anybody_takes_over(plane: &ControlPlane, namespace: String) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let identity = bigfleet_kube_testbed::Identity { user: "nobody".into(), group: None };
    let mut leader = Election::new(plane.client().await, settings(&namespace, "nobody"), clock.clone());
    leader.acquire().await;
    let mut cut_off =
        Election::new(plane.client_of(&identity).await, settings(&namespace, "nobody"), clock.clone());
    let mut other = Election::new(plane.client().await, settings(&namespace, "other"), clock.clone());
    tokio::select! {
        lost = cut_off.hold() => assert!(lost.contains("could not be renewed in time") && lost.contains("forbidden"), "{lost}"),
        () = other.acquire() => panic!("taken over before the leader stopped"),
    }
    assert_eq!(holder(plane, &namespace).await.as_deref(), Some("nobody"), "the fault has struck");
    other.acquire().await;
}

async fn an_event_is_told_once(plane: &ControlPlane, namespace: String) {
    let (client, clock) = (plane.client().await, SystemClock::start());
    let mut announcement = Announcement {
        about: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Pod".into()),
            name: Some("web".into()),
            namespace: Some(namespace.clone()),
            uid: Some("4f3b".into()),
            ..ObjectReference::default()
        },
        severity: Severity::Warning,
        reason: "NotCarried",
        message: "a sentence".into(),
    };
    for _ in 0..3 {
        announce(&client, &clock, "test", &announcement).await.unwrap();
    }
    announcement.message = "é".repeat(2000);
    announce(&client, &clock, "test", &announcement).await.unwrap();
    let events: Api<Event> = Api::namespaced(client, &namespace);
    let told = eventually("two events", async || {
        let told = events.list(&ListParams::default().fields("involvedObject.uid=4f3b")).await.unwrap().items;
        (told.len() >= 2).then_some(told)
    })
    .await;
    let mut said: Vec<String> = told.into_iter().filter_map(|event| event.message).collect();
    said.sort();
    assert_eq!(said, ["a sentence".to_owned(), "é".repeat(512)]);
}

async fn definitions_are_installed_twice_without_harm(plane: &ControlPlane, _: String) {
    let (client, clock) = (plane.client().await, SystemClock::start());
    let names = install(&client, &clock).await.unwrap();
    assert_eq!(
        names,
        ["availablecapacities", "capacityrequests", "upcomingnodes"].map(|n| format!("{n}.bigfleet.lucy.sh"))
    );
    assert_eq!(install(&client, &clock).await.unwrap(), names);
}
