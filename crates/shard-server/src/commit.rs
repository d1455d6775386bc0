//! The committer thread: what the shard wants remembered is on disk before what it wants done begins.
//!
//! It takes all steps that wait, writes their facts in one transaction, and then lets their effects go in order. So a
//! crash between any two steps forgets nothing that anybody was told or asked. A disk that fails ends the process: a
//! shard that cannot remember must not act.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bigfleet_net::Clock;
use bigfleet_record::Store;
use bigfleet_shard::{Effect, Fact, Step};
use thiserror::Error;
use tokio::sync::oneshot;

use crate::metrics::Metrics;

/// How many steps may wait for the disk before the core thread waits too.
const QUEUE: usize = 256;

/// The disk failed.
#[derive(Debug, Error)]
#[error("{0}; the shard stops, because what it cannot remember it must not do")]
pub struct KeepError(pub String);

/// Where facts go.
pub(crate) trait Keeper: Send {
    /// Returns when the facts, all of them, would survive a crash.
    fn remember(&mut self, facts: &[Fact]) -> Result<(), KeepError>;

    /// Ends this life in order.
    fn close(self: Box<Self>) -> Result<(), KeepError>;
}

impl Keeper for Store {
    fn remember(&mut self, facts: &[Fact]) -> Result<(), KeepError> {
        self.commit(facts).map_err(|error| KeepError(error.to_string()))
    }

    fn close(self: Box<Self>) -> Result<(), KeepError> {
        Store::close(*self).map_err(|error| KeepError(error.to_string()))
    }
}

/// Remembers nothing beyond the process.
#[derive(Debug, Default)]
pub(crate) struct NothingKept;

impl Keeper for NothingKept {
    fn remember(&mut self, _: &[Fact]) -> Result<(), KeepError> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), KeepError> {
        Ok(())
    }
}

/// A step, and whom to tell once it is on disk.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) step: Step,
    pub(crate) told: Vec<oneshot::Sender<()>>,
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.step.facts.is_empty() && self.step.effects.is_empty() && self.told.is_empty()
    }
}

/// What carries out effects. Never waits.
pub(crate) trait Hands: Send {
    /// Begins one effect.
    fn begin(&self, effect: Effect);
}

pub(crate) fn channel() -> (SyncSender<Batch>, Receiver<Batch>) {
    sync_channel(QUEUE)
}

/// Runs until nobody sends any more or the disk fails.
pub(crate) fn run(
    batches: &Receiver<Batch>,
    mut keeper: Box<dyn Keeper>,
    hands: &dyn Hands,
    clock: &dyn Clock,
    metrics: &Metrics,
) -> Result<(), KeepError> {
    while let Ok(first) = batches.recv() {
        let mut waiting = vec![first];
        waiting.extend(batches.try_iter().take(QUEUE));
        let facts: Vec<Fact> = waiting.iter_mut().flat_map(|batch| batch.step.facts.drain(..)).collect();
        if !facts.is_empty() {
            let begun = clock.now_unix_nanos();
            metrics.commit_begins(begun);
            keeper.remember(&facts)?;
            metrics.committed(facts.len(), clock.now_unix_nanos() - begun);
        }
        let mut leftovers = Vec::new();
        for batch in waiting {
            leftovers.extend(batch.step.leftovers);
            for effect in batch.step.effects {
                hands.begin(effect);
            }
            for told in batch.told {
                // Whoever asked may have gone since.
                let _ = told.send(());
            }
        }
        // Nobody waits for this thread now.
        drop(leftovers);
    }
    keeper.close()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bigfleet_net::VirtualClock;
    use bigfleet_shard::{Notice, Urgency};

    use super::*;

    /// Writes down what it is asked, and refuses from a given commit on.
    #[derive(Default)]
    struct Notes {
        lines: Arc<Mutex<Vec<String>>>,
        commits_left: usize,
    }

    impl Keeper for Notes {
        fn remember(&mut self, facts: &[Fact]) -> Result<(), KeepError> {
            if self.commits_left == 0 {
                return Err(KeepError("no space left".into()));
            }
            self.commits_left -= 1;
            self.lines.lock().unwrap().push(format!("{facts:?}"));
            Ok(())
        }

        fn close(self: Box<Self>) -> Result<(), KeepError> {
            self.lines.lock().unwrap().push("closed".into());
            Ok(())
        }
    }

    impl Hands for Notes {
        fn begin(&self, effect: Effect) {
            let Effect::Say(notice) = effect else { unreachable!() };
            self.lines.lock().unwrap().push(notice.text);
        }
    }

    fn batch(cycle: Option<u64>, say: &str) -> Batch {
        let notice = Notice { urgency: Urgency::Info, code: "test", text: say.into() };
        let facts = cycle.map(Fact::Cycle).into_iter().collect();
        Batch {
            step: Step { facts, effects: vec![Effect::Say(notice)], leftovers: Vec::new() },
            told: Vec::new(),
        }
    }

    fn run_with(commits: usize, batches: Vec<Batch>) -> (Vec<String>, Result<(), KeepError>) {
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let (sender, receiver) = channel();
        for batch in batches {
            sender.send(batch).unwrap();
        }
        drop(sender);
        let keeper = Notes { lines: lines.clone(), commits_left: commits };
        let hands = Notes { lines: lines.clone(), commits_left: 0 };
        let done = run(&receiver, Box::new(keeper), &hands, &VirtualClock::at(0), &Metrics::new("s", "0"));
        let lines = lines.lock().unwrap().clone();
        (lines, done)
    }

    #[test]
    fn facts_are_kept_together_before_any_effect_begins() {
        let (lines, done) =
            run_with(9, vec![batch(Some(1), "first"), batch(None, "second"), batch(Some(2), "third")]);
        assert_eq!(lines, ["[Cycle(1), Cycle(2)]", "first", "second", "third", "closed"]);
        assert!(done.is_ok());
    }

    #[test]
    fn a_disk_that_fails_ends_it_and_nothing_is_done() {
        let (lines, done) = run_with(0, vec![batch(Some(1), "first")]);
        assert_eq!(lines, Vec::<String>::new());
        let text = done.unwrap_err().to_string();
        assert_eq!(text, "no space left; the shard stops, because what it cannot remember it must not do");
    }

    #[test]
    fn whoever_commands_is_told_after_the_commit_and_not_if_it_failed() {
        for (commits, heard) in [(1, true), (0, false)] {
            let (told, mut is_told) = oneshot::channel();
            let mut batch = batch(Some(1), "x");
            batch.told.push(told);
            let _ = run_with(commits, vec![batch]);
            assert_eq!(is_told.try_recv().is_ok(), heard);
        }
    }
}
