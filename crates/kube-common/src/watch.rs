//! Why a watch broke off.

use kube::runtime::watcher::Error;

/// One word, for metrics and messages.
pub fn watch_cause(error: &Error) -> &'static str {
    match error {
        // What was known is too old to go on from: the list is read anew.
        Error::WatchError(status) if status.code == 410 => "expired",
        Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410 => "expired",
        Error::InitialListFailed(_) => "list",
        _ => "watch",
    }
}
