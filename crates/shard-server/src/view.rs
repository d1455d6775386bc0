//! The shard as the view needs it.

use bigfleet_shard::{Shard, Step};
use bigfleet_view::{Gone, Shards};
use tokio::sync::watch;

use crate::core::Core;

impl Shards for Core {
    async fn inspect<R: Send + 'static>(
        &self,
        look: impl FnOnce(&Shard, i64) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.look(look).await.map_err(|_| Gone)
    }

    async fn command<R: Send + 'static>(
        &self,
        order: impl FnOnce(&mut Shard, i64, &mut Step) -> R + Send + 'static,
    ) -> Result<R, Gone> {
        self.act(order).await.map_err(|_| Gone)
    }

    fn cycle_times(&self) -> Vec<i64> {
        Core::cycle_times(self)
    }

    fn cycles(&self) -> watch::Receiver<u64> {
        Core::cycles(self)
    }
}
