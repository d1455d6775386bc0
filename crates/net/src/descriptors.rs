//! How many files and sockets this process may have open.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the limit as far as we may, and returns it. Some systems begin with a thousand, which a thousand operators use up.
pub fn descriptors() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let raised = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
        match setrlimit(Resource::Nofile, raised) {
            Ok(()) => limit.current = limit.maximum,
            Err(error) => tracing::info!(%error, "the limit of open files stays as it is"),
        }
    }
    limit.current.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX))
}
