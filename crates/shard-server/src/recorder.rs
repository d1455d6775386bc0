//! The recorder thread: appends cycles to the decision record.
//!
//! Nobody waits for it. A full state of a large fleet takes a while to write, so it has a queue of its own; what does
//! not fit is left out, and the shard is asked for a full state, with which the record goes on.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bigfleet_record::tape::{AppendError, Writer};
use bigfleet_shard::CycleRecord;

use crate::metrics::Metrics;

/// How many records may wait.
const QUEUE: usize = 64;

pub(crate) type Queue = SyncSender<Arc<CycleRecord>>;

pub(crate) fn channel() -> (Queue, Receiver<Arc<CycleRecord>>) {
    sync_channel(QUEUE)
}

/// Runs until nobody sends any more. `want_full` asks the shard for a full state.
pub(crate) fn run(
    records: &Receiver<Arc<CycleRecord>>,
    mut writer: Writer,
    metrics: &Metrics,
    want_full: &dyn Fn(),
) -> Result<(), String> {
    let mut has_asked = false;
    metrics.recorded(writer.bytes());
    while let Ok(record) = records.recv() {
        has_asked &= record.full.is_none();
        match writer.append(&record) {
            Ok(()) => {}
            Err(error @ AppendError::WantsFull { .. }) => tracing::debug!(%error, "a gap in the record"),
            Err(error) => {
                metrics.record_lost();
                tracing::error!(%error, "the decision record has a gap; is the disk full?");
            }
        }
        if writer.wants_full() && !has_asked {
            has_asked = true;
            want_full();
        }
        metrics.recorded(writer.bytes());
    }
    writer.close().map_err(|error| error.to_string())
}
