//! Several named tests on one control plane.
//!
//! A control plane takes seconds to start and half a gigabyte to run, and test runners give every test a process of its
//! own. So the tests that can share one are scenarios of a single test: they run at the same time, each in its own
//! namespace, all of them even if one fails, and the report names every one. `BIGFLEET_SCENARIO=part of a name` runs only
//! those.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::time::Duration;

use bigfleet_net::{Clock as _, SystemClock};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use crate::plane::{ControlPlane, Parts};

/// What a test does.
type Run = dyn for<'a> Fn(&'a ControlPlane, String) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A named test. It is given the control plane and a namespace that is its own.
pub struct Scenario {
    name: &'static str,
    run: Box<Run>,
}

impl Scenario {
    /// A test with this name.
    pub fn new(
        name: &'static str,
        run: impl for<'a> Fn(&'a ControlPlane, String) -> Pin<Box<dyn Future<Output = ()> + 'a>> + 'static,
    ) -> Self {
        Self { name, run: Box::new(run) }
    }
}

impl std::fmt::Debug for Scenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Scenario").field(&self.name).finish()
    }
}

/// Lists functions `async fn name(plane: &ControlPlane, namespace: String)` as scenarios of their own name.
#[macro_export]
macro_rules! scenarios {
    ($($name:path),+ $(,)?) => {
        vec![$($crate::Scenario::new(stringify!($name), |plane, namespace| Box::pin($name(plane, namespace)))),+]
    };
}

/// Runs the scenarios on one control plane, `at_once` of them at a time, and panics with the names of those that
/// failed.
///
/// # Panics
/// If the control plane does not start or a scenario panics.
pub fn scenarios(parts: Parts, at_once: usize, scenarios: Vec<Scenario>) {
    let wanted = std::env::var("BIGFLEET_SCENARIO").unwrap_or_default();
    let chosen: Vec<Scenario> =
        scenarios.into_iter().filter(|scenario| scenario.name.contains(&wanted)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let clock = SystemClock::start();
        let started = clock.now_unix_nanos();
        let plane = match ControlPlane::start(parts).await {
            Ok(plane) => plane,
            Err(error) => panic!("{error}"),
        };
        let now = &clock;
        let secs = |since: i64| Duration::from_nanos(now.now_unix_nanos().abs_diff(since)).as_secs_f64();
        eprintln!("control plane 1.{} ready in {:.1} s", plane.minor(), secs(started));
        let (plane, secs, clock) = (&plane, &secs, &clock);
        let outcomes = stream::iter(&chosen).map(|scenario| async move {
            let began = clock.now_unix_nanos();
            let namespace = plane.namespace(&prefix(scenario.name)).await;
            let outcome = AssertUnwindSafe((scenario.run)(plane, namespace)).catch_unwind().await;
            let word = if outcome.is_ok() { "ok" } else { "FAILED" };
            eprintln!("{word:>6} {:6.1} s  {}", secs(began), scenario.name);
            outcome.is_err().then_some(scenario.name)
        });
        let failed: Vec<&str> =
            outcomes.buffer_unordered(at_once).filter_map(std::future::ready).collect().await;
        if !failed.is_empty() {
            eprintln!("{}", plane.last_words());
        }
        assert!(failed.is_empty(), "{} of {} failed: {}", failed.len(), chosen.len(), failed.join(", "));
    });
}

/// A namespace's name from a function's.
fn prefix(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap_or(name).trim().replace('_', "-");
    name.chars().take(40).collect::<String>().trim_matches('-').to_owned()
}
