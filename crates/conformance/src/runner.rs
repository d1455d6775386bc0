//! Carries the checks out: those that mind nobody beside each other, then the others one by one.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::behaviour::{Behaviour, Check, Manner};
use crate::catalogue::CHECKS;
use crate::clock::{Moment, Patience};
use crate::config::Config;
use crate::context::{Context, Run};
use crate::report::{CheckResult, Outcome, Report};
use crate::target::{CannotRun, Target};
use crate::verdict::{Ended, Failure};

/// Told of progress, from the task that runs the suite.
pub trait Observer: Send + Sync {
    /// The provider is dialled, and waited for if it does not answer.
    fn waiting(&self, address: &str, seconds: u64) {
        let _ = (address, seconds);
    }

    /// A check begins.
    fn started(&self, behaviour: &Behaviour) {
        let _ = behaviour;
    }

    /// A check has ended.
    fn finished(&self, result: &CheckResult) {
        let _ = result;
    }
}

/// An observer that says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

/// Tries the selected behaviours against a provider.
pub async fn run(config: Config, observer: &dyn Observer) -> Result<Report, CannotRun> {
    let unknown = config.selection.unknown();
    if !unknown.is_empty() {
        return Err(CannotRun::Usage(format!(
            "no behaviour or group is called {}; see --list",
            unknown.join(", ")
        )));
    }
    let selected: Vec<Check> =
        CHECKS.iter().copied().filter(|check| config.selection.holds(&check.behaviour)).collect();
    if selected.is_empty() {
        return Err(CannotRun::Usage("the selection leaves no behaviour to try; see --list".into()));
    }
    let started = Moment::now();
    let target = Target::new(&config)?;
    observer.waiting(&config.address, config.limits.call.as_secs());
    target.wait_until_reached(&config, &mut Patience::new(config.limits.call, config.limits.poll)).await?;
    let run = Arc::new(Run::new(config, target));
    let (beside, alone): (Vec<_>, Vec<_>) =
        selected.into_iter().partition(|check| check.manner == Manner::Beside);
    let mut results = run_beside(&run, &beside, observer).await;
    for check in alone {
        observer.started(&check.behaviour);
        // A task of its own, so that a fault in a check ends that check alone.
        let mut tasks = JoinSet::new();
        tasks.spawn(carry_out(run.clone(), check));
        results.extend(joined(&mut tasks, &run, observer).await);
    }
    let place = |id: &str| CHECKS.iter().position(|check| check.behaviour.id == id);
    results.sort_by_key(|result| place(result.behaviour.id));
    Ok(Report {
        address: run.config.address.clone(),
        seed: run.config.seed,
        took: started.elapsed(),
        results,
    })
}

async fn run_beside(run: &Arc<Run>, checks: &[Check], observer: &dyn Observer) -> Vec<CheckResult> {
    let mut tasks = JoinSet::new();
    let mut results = Vec::with_capacity(checks.len());
    for check in checks {
        if tasks.len() >= run.config.limits.parallel.max(1) {
            results.extend(joined(&mut tasks, run, observer).await);
        }
        observer.started(&check.behaviour);
        tasks.spawn(carry_out(run.clone(), *check));
    }
    while !tasks.is_empty() {
        results.extend(joined(&mut tasks, run, observer).await);
    }
    results
}

async fn joined(tasks: &mut JoinSet<CheckResult>, run: &Run, observer: &dyn Observer) -> Option<CheckResult> {
    match tasks.join_next().await? {
        Ok(result) => {
            observer.finished(&result);
            Some(result)
        }
        // The suite's own fault: not something to report about the provider.
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(error) => unreachable!("nobody cancels checks of {}: {error}", run.config.address),
    }
}

async fn carry_out(run: Arc<Run>, check: Check) -> CheckResult {
    let context = Context::new(run, check.behaviour.id);
    let started = Moment::now();
    let verdict = (check.run)(context.clone()).await;
    let took = started.elapsed();
    let notebook = &context.notebook;
    let outcome = match verdict {
        Ok(()) => Outcome::Passed,
        Err(Ended::Skipped(reason)) => Outcome::Skipped(reason),
        Err(Ended::Failed { expected, got }) => {
            let calls = notebook.calls.lock().expect("no holder panics").iter().cloned().collect();
            let config = &context.run.config;
            let reproduce =
                format!("bigfleet conform {} --only {} --seed {}", config.address, context.id, config.seed);
            Outcome::Failed(Failure { expected, got, calls, reproduce })
        }
    };
    CheckResult {
        behaviour: check.behaviour,
        outcome,
        took,
        notes: std::mem::take(&mut *notebook.notes.lock().expect("no holder panics")),
        latencies: std::mem::take(&mut *notebook.latencies.lock().expect("no holder panics")),
    }
}
