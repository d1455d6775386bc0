//! The journal: what has changed since the last record, what the tape last said, and the last few hundred cycles.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::tape::{CycleRecord, Input, Surroundings};

/// How many cycles are kept at hand.
const RECENT: usize = 256;
/// How many actions they may have in all: while a fleet is built up every cycle has hundreds.
const RECENT_ACTIONS: usize = 20_000;

/// What is written down, and what was.
#[derive(Debug)]
pub(crate) struct Journal {
    /// What changed since the last record.
    inputs: Vec<Input>,
    wants_whole: bool,
    /// What the tape last said of the surroundings.
    pub(crate) said: Surroundings,
    recent: VecDeque<Arc<CycleRecord>>,
    /// How many actions those have in all.
    recent_actions: usize,
}

impl Journal {
    /// An empty one, whose first record is a whole one.
    pub(crate) fn begin() -> Self {
        Self {
            inputs: Vec::new(),
            wants_whole: true,
            said: Surroundings::default(),
            recent: VecDeque::new(),
            recent_actions: 0,
        }
    }

    /// Something changed.
    pub(crate) fn note(&mut self, input: Input) {
        self.inputs.push(input);
    }

    /// Several things did.
    pub(crate) fn note_all(&mut self, inputs: impl IntoIterator<Item = Input>) {
        self.inputs.extend(inputs);
    }

    /// How much is noted.
    pub(crate) fn noted(&self) -> usize {
        self.inputs.len()
    }

    /// What changed since this was last called.
    pub(crate) fn take_inputs(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.inputs)
    }

    /// The next record is to be a whole one.
    pub(crate) fn want_whole(&mut self) {
        self.wants_whole = true;
    }

    /// Whether the next record is to be a whole one; it is taken for written then.
    pub(crate) fn takes_whole(&mut self) -> bool {
        std::mem::take(&mut self.wants_whole)
    }

    /// Keeps a cycle at hand.
    pub(crate) fn keep(&mut self, record: &CycleRecord) {
        self.recent_actions += record.actions.len();
        while self.recent.len() >= RECENT || self.recent_actions > RECENT_ACTIONS {
            let Some(oldest) = self.recent.pop_front() else { break };
            self.recent_actions -= oldest.actions.len();
        }
        // Inputs would keep whole fleets alive; those who page back want decisions.
        let brief =
            CycleRecord { inputs: Vec::new(), full: None, around: None, ..CycleRecord::clone(record) };
        self.recent.push_back(Arc::new(brief));
    }

    /// The cycles at hand, oldest first.
    pub(crate) fn recent(&self) -> impl DoubleEndedIterator<Item = &Arc<CycleRecord>> {
        self.recent.iter()
    }
}
