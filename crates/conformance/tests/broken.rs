//! The tester tested: nothing is held against a right provider, and every planted defect is found.

use std::sync::Arc;
use std::time::Duration;

use bigfleet_conformance::report::human;
use bigfleet_conformance::{Config, Limits, Report, Restart, Silent, catalogue, run};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

mod provider;

use provider::defect::Defect;
use provider::expected::FOUND_BY;

/// How often a run is made: on a busy machine a move may end before the call that should meet it, and then a check
/// is skipped and proves nothing.
const TRIES: usize = 3;

async fn examine(defect: Option<Defect>, only: &[&str], transition: Duration) -> Report {
    examine_with(defect, only, transition, 20_261_115).await
}

async fn examine_with(defect: Option<Defect>, only: &[&str], transition: Duration, seed: u64) -> Report {
    let (address, provider) = provider::start(defect).await;
    let mut config = Config::new(address.to_string());
    config.selection.only = only.iter().map(|name| (*name).to_owned()).collect();
    config.seed = seed;
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
    let mut report = examine(None, &[], Duration::from_secs(20)).await;
    for _ in 1..TRIES {
        assert_eq!(report.count("failed"), 0, "{}", in_words(&report));
        if report.count("skipped") > 0 {
            report = examine(None, &[], Duration::from_secs(20)).await;
        }
    }
    assert_eq!((report.count("failed"), report.count("skipped")), (0, 0), "{}", in_words(&report));
    assert_eq!(report.results.len(), catalogue().len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_planted_defect_is_found() {
    let mut missed = Vec::new();
    for (defect, report) in examine_all(Scope::Named).await {
        let expected = named(defect);
        let found = report.failed_ids();
        if found != expected {
            missed.push(format!(
                "{defect:?}: expected {expected:?} to fail, failed: {found:?}\n{}",
                in_words(&report)
            ));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The suite must not blame a right provider that is merely slow: sixteen runs at once on few cores.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "for changes of the suite itself"]
async fn a_right_provider_passes_under_load() {
    let mut tasks = JoinSet::new();
    for seed in 100..116 {
        tasks.spawn(async move { examine_with(None, &[], Duration::from_secs(20), seed).await });
    }
    for report in tasks.join_all().await {
        // A move that ends before the next call arrives is an honest reason to skip.
        assert_eq!(report.count("failed"), 0, "{}", in_words(&report));
    }
}

/// Prints which behaviours find which defect, over the whole suite. Takes minutes:
/// `cargo test -p bigfleet-conformance --test broken -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "runs the whole suite once per defect"]
async fn table_of_defects() {
    examine_all(Scope::Everything).await;
}

/// How much of the suite a defect has to face.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The behaviours that are said to find it.
    Named,
    /// All of them; what fails is printed.
    Everything,
}

fn named(defect: Defect) -> Vec<&'static str> {
    let entry =
        FOUND_BY.iter().find(|(planted, _)| *planted == defect).expect("every defect is in the table");
    let place = |id: &str| catalogue().iter().position(|behaviour| behaviour.id == id);
    let mut ids = entry.1.to_vec();
    ids.sort_by_key(|id| place(id));
    ids
}

async fn examine_all(scope: Scope) -> Vec<(Defect, Report)> {
    let gate = Arc::new(Semaphore::new(16));
    let mut tasks = JoinSet::new();
    for (defect, _) in FOUND_BY {
        let gate = gate.clone();
        tasks.spawn(async move {
            let _turn = gate.acquire().await.expect("nobody closes it");
            let only = if scope == Scope::Named { named(*defect) } else { Vec::new() };
            for _ in 1..TRIES {
                let report = examine(Some(*defect), &only, Duration::from_secs(2)).await;
                if scope == Scope::Everything || report.failed_ids() == only {
                    return (*defect, report);
                }
            }
            (*defect, examine(Some(*defect), &only, Duration::from_secs(2)).await)
        });
    }
    let mut reports = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        let (defect, report) = joined.expect("the suite does not panic");
        if scope == Scope::Everything {
            tell(defect, &report);
        }
        reports.push((defect, report));
    }
    reports
}

#[expect(clippy::print_stdout, reason = "a table for people")]
fn tell(defect: Defect, report: &Report) {
    println!("{defect:?}: {:.1?}: {}", report.took, report.failed_ids().join(" "));
}
