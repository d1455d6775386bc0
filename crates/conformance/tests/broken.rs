//! The tester tested: nothing is held against a right provider, and every planted defect is found.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_conformance::report::{Skips, human};
use bigfleet_conformance::{Config, Limits, Report, Restart, Silent, run};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

mod provider;

use provider::defect::Defect;

async fn examine(defect: Option<Defect>, only: &[&str], transition: Duration) -> Report {
    let (address, provider) = provider::start(defect).await;
    let mut config = Config::new(address.to_string());
    config.selection.only = only.iter().map(|name| (*name).to_owned()).collect();
    config.seed = 20_261_115;
    config.restart = Restart::Function(Arc::new(provider));
    config.limits = Limits {
        call: Duration::from_secs(10),
        transition,
        restart: Duration::from_secs(10),
        quiet: Duration::from_millis(100),
        soak: Duration::from_millis(300),
        model_steps: 150,
        model: Duration::from_secs(20),
        max_scale: 40,
        parallel: 8,
        poll: Duration::from_millis(20),
    };
    run(config, &Silent).await.expect("the provider is there")
}

fn in_words(report: &Report) -> String {
    let mut out = Vec::new();
    human(report, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_provider_passes_everything() {
    let report = examine(None, &[], Duration::from_secs(20)).await;
    assert_eq!(report.exit_code(Skips::Refused), 0, "{}", in_words(&report));
    assert_eq!(report.results.len(), bigfleet_conformance::catalogue().len());
}

/// Prints which behaviours find which defect, over the whole suite. Takes a while:
/// `cargo test -p bigfleet-conformance --test broken -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs the whole suite once per defect"]
#[expect(clippy::print_stdout, reason = "a table for people")]
async fn table_of_defects() {
    for (defect, found) in examine_all(|_| Vec::new()).await {
        println!("{defect:?}: {}", found.failed_ids().join(" "));
    }
}

async fn examine_all(only: impl Fn(Defect) -> Vec<&'static str>) -> Vec<(Defect, Report)> {
    let gate = Arc::new(Semaphore::new(16));
    let mut tasks = JoinSet::new();
    for (defect, _) in provider::expected::FOUND_BY {
        let (gate, only) = (gate.clone(), only(*defect));
        tasks.spawn(async move {
            let _turn = gate.acquire().await.expect("nobody closes it");
            (*defect, examine(Some(*defect), &only, Duration::from_secs(2)).await)
        });
    }
    let mut reports = tasks.join_all().await;
    reports.sort_by_key(|(defect, _)| *defect);
    reports
}
