//! The whole conformance suite against the standard test binary: nothing fails, and nothing is skipped.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_conformance::{Config, Outcome, Restart, Restarter, Silent, run};

use crate::process::Process;

/// Kills the provider and starts it again where it was.
struct Again {
    state: PathBuf,
    address: String,
    process: Mutex<Option<Process>>,
}

impl Restarter for Again {
    fn restart(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        let mut process = self.process.lock().expect("no holder panics");
        if let Some(running) = process.take() {
            running.kill();
        }
        *process = Some(Process::standard(&self.address, 200, &self.state));
        Box::pin(std::future::ready(Ok(())))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_behaviours_hold_and_none_is_skipped() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let process = Process::standard("127.0.0.1:0", 200, &state);
    let address = process.address.clone();
    let again = Again { state, address: address.clone(), process: Mutex::new(Some(process)) };
    let mut config = Config::new(address);
    config.restart = Restart::Function(Arc::new(again));
    config.limits.soak = Duration::from_millis(500);
    config.limits.model_steps = 90;
    config.limits.max_scale = 60;
    let report = run(config, &Silent).await.expect("it can be reached");
    assert!(report.results.len() >= 100, "{} behaviours", report.results.len());
    let bad: Vec<String> = report
        .results
        .iter()
        .filter(|result| result.outcome != Outcome::Passed)
        .map(|result| format!("{} {:?}", result.behaviour.id, result.outcome))
        .collect();
    assert!(bad.is_empty(), "seed {}: {bad:#?}", report.seed);
}
