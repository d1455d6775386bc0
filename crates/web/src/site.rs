//! What the page is served from: shards, what is known of them, and who may look.

use std::sync::Arc;

use bigfleet_net::{Clock, SystemClock};

use crate::guard::{Access, Sessions};
use crate::live::Live;
use crate::way::Shard;

/// What a page is made of.
pub struct Settings {
    /// The shards to show; at least one.
    pub shards: Vec<Shard>,
    /// Who may look, and who may act.
    pub access: Access,
    /// Whether the page is served over TLS: cookies then say so.
    pub tls: bool,
}

/// A page that is kept up to date, ready to be served.
pub struct Site {
    pub(crate) shards: Vec<Shard>,
    pub(crate) access: Access,
    pub(crate) tls: bool,
    pub(crate) live: Arc<Live>,
    pub(crate) sessions: Sessions,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Site {
    /// Begins to watch the shards. Must be called within a runtime.
    pub fn new(settings: Settings) -> Self {
        let Settings { shards, access, tls } = settings;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let live = Live::watch(&shards, &clock);
        Self { shards, access, tls, live, sessions: Sessions::default(), clock }
    }
}
