//! What reaches the desk.

use bigfleet_operator::drain::Evicted;
use bigfleet_proto::v1alpha1::operator_message::Payload as Saying;
use bigfleet_proto::v1alpha1::shard_message::Payload as Heard;
use bigfleet_view::v1;
use tokio::sync::mpsc;

use crate::seen::{Listed, NodeSeen, PodSeen, RequestSeen, UpcomingSeen};

/// Something happened.
#[derive(Debug)]
pub(crate) enum News {
    /// In the cluster.
    Request(Listed<RequestSeen>),
    Node(Listed<NodeSeen>),
    Pod(Listed<PodSeen>),
    Upcoming(Listed<UpcomingSeen>),
    /// The shard answers; what is put in here reaches it.
    Connected(mpsc::Sender<Saying>),
    /// The session ended.
    Disconnected(String),
    /// The shard said something.
    Heard(Heard),
    /// The shard's verdicts.
    Verdicts(v1::Verdicts),
    /// What time the API server has, if it said.
    ServerClock(Option<i64>),
    /// The shard tells no verdicts.
    NoVerdicts(String),
    /// A pod's eviction was answered.
    Evicted {
        uid: String,
        outcome: Evicted,
    },
    /// The status of a request was written, or could not be.
    Written {
        request: String,
        digest: u64,
        /// The version it has by now.
        done: Result<String, Trouble>,
    },
    /// An object of ours was written or removed, or could not be.
    Applied {
        object: String,
        done: Result<(), Trouble>,
    },
    /// Bootstrap data with a token is ready.
    Blob(Saying),
}

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The object is gone.
    Gone,
    /// Somebody wrote it since it was read; it is tried again from what they wrote.
    Conflict,
    /// Anything else; it is tried again.
    Failed(String),
}
