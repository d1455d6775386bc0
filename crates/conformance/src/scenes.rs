//! Scenes: sequences that several behaviours are read from, played once per run.
//!
//! A machine's whole life, a broken machine, a crash or a wave of many machines costs minutes on a real cloud.
//! Each is played by the first check that asks, and every check then looks at what was seen.

use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::context::Context;
use crate::verdict::Ended;

pub(crate) mod crash;
pub(crate) mod fault;
pub(crate) mod life;
pub(crate) mod wave;

type Scene<T> = OnceCell<Result<Arc<T>, Ended>>;

#[derive(Default)]
pub(crate) struct Scenes {
    life: Scene<life::Life>,
    fault: Scene<fault::Fault>,
    wave: Scene<wave::Wave>,
    crash: Scene<crash::Crash>,
}

impl Context {
    pub(crate) async fn life(&self) -> Result<Arc<life::Life>, Ended> {
        self.run.scenes.life.get_or_init(|| async { life::play(self).await.map(Arc::new) }).await.clone()
    }

    pub(crate) async fn fault(&self) -> Result<Arc<fault::Fault>, Ended> {
        self.run.scenes.fault.get_or_init(|| async { fault::play(self).await.map(Arc::new) }).await.clone()
    }

    pub(crate) async fn wave(&self) -> Result<Arc<wave::Wave>, Ended> {
        self.run.scenes.wave.get_or_init(|| async { wave::play(self).await.map(Arc::new) }).await.clone()
    }

    pub(crate) async fn crash(&self) -> Result<Arc<crash::Crash>, Ended> {
        self.run.scenes.crash.get_or_init(|| async { crash::play(self).await.map(Arc::new) }).await.clone()
    }
}
