//! The whole conformance suite against hosts behind real sshd, with restarts. Nothing fails, and nothing is
//! skipped but what metal cannot have: spot machines.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bigfleet_conformance::{Config, Outcome, Restart, Restarter, Silent, run};
use tokio::runtime::Handle;

use crate::lab::{Emulator, Host, Lab};
use crate::provider::Provider;

/// Kills the provider and starts it again where it was.
struct Again {
    inventory: PathBuf,
    state: PathBuf,
    provider: Mutex<Option<Provider>>,
}

impl Restarter for Again {
    fn restart(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        let old = self.provider.lock().expect("no holder panics").take();
        let address = old.map(|provider| provider.address.clone());
        Box::pin(async move {
            let address = address.ok_or("it was never started")?;
            let (inventory, state) = (self.inventory.clone(), self.state.clone());
            let new = tokio::spawn(async move { Provider::start_at(&inventory, &state, &address).await });
            let new = new.await.map_err(|error| error.to_string())?;
            *self.provider.lock().expect("no holder panics") = Some(new);
            Ok(())
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_behaviours_hold_that_metal_can_show() {
    let mut lab = Lab::new(14).await;
    // The suite moves hosts all the time; watchers at the pace of the other tests would take half the machine.
    lab.head = lab.head.replace("ssh_secs: 1, boot_id_secs: 2", "ssh_secs: 30, boot_id_secs: 300");
    lab.head = lab.head.replace("create_secs: 60", "create_secs: 40");
    let emulator = Emulator::start(1, None).await;
    // One that is powered on and never answers: its Create fails, as the suite asks for.
    let label = "    labels: {conformance.fault/create: error}\n";
    let more = format!("{}{label}", emulator.lines(0));
    lab.hosts.push(Host::unanswering("broken", more));
    let (inventory, state) = (lab.inventory(), lab.path("state"));
    let provider = Provider::start(&inventory, &state).await;
    let mut config = Config::new(provider.address.clone());
    let again = Again { inventory, state, provider: Mutex::new(Some(provider)) };
    config.restart = Restart::Function(Arc::new(again));
    config.limits.transition = Duration::from_mins(3);
    config.limits.soak = Duration::from_secs(1);
    config.limits.model_steps = 20;
    config.limits.model = Duration::from_secs(20);
    config.limits.max_scale = 12;
    let report = Handle::current().spawn(async move { run(config, &Silent).await }).await;
    let report = report.expect("it ends").expect("it can be reached");
    assert!(report.results.len() >= 100, "{} behaviours", report.results.len());
    let bad: Vec<String> = report
        .results
        .iter()
        .filter(|result| result.outcome != Outcome::Passed && result.behaviour.id != "COST-006")
        .map(|result| format!("{} {:?}", result.behaviour.id, result.outcome))
        .collect();
    assert!(bad.is_empty(), "seed {}: {bad:#?}", report.seed);
}
