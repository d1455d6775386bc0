//! A provider: the author's code, the state, and the calls of the wire put together.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, RwLock};

use bigfleet_proto::v1alpha1::TransitionAck;
use tokio::sync::watch;
use tonic::Status;

use crate::backend::Backend;
use crate::handle::Handle;
use crate::journal::{Committer, Journal};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::recovery::{StartError, fleet_of, interrupted, settle_interrupted, take_offerings};
use crate::refusal::Refusal;
use crate::shared::{Shared, Turns, UnderWay};
use crate::steps::{self, Accepted, Call};
use crate::store::{Disk, Loaded, Place, Store, StoreError};
use crate::work::{carry_out, recover};
use bigfleet_model::splitmix::mix;

/// A running provider. It answers the calls of the wire whether or not a socket is in between, so tests and
/// simulations call it directly. Clones are the same provider.
pub struct Provider<B> {
    pub(crate) backend: Arc<B>,
    pub(crate) shared: Arc<Shared>,
}

impl<B> Clone for Provider<B> {
    fn clone(&self) -> Self {
        Self { backend: self.backend.clone(), shared: self.shared.clone() }
    }
}

impl<B: Backend> Provider<B> {
    /// Opens the store, settles what a crash cut short, takes in the offerings, and is ready.
    pub async fn open(backend: B, store: Store, options: Options) -> Result<Self, StartError> {
        let is_disk = matches!(store.0, Place::Disk { .. });
        let instance = mix(options.seed);
        let (disk, loaded) = read(store.0, instance).await?;
        let (instance, next_operation) = (loaded.instance, loaded.next_operation);
        let fleet = Arc::new(RwLock::new(fleet_of(loaded, options.clock.now_unix_nanos())));
        let metrics = Metrics::new();
        let (changes, changed) = watch::channel(0);
        let committer = Committer {
            disk,
            fleet: fleet.clone(),
            clock: options.clock.clone(),
            metrics: metrics.clone(),
            next_operation,
            changes,
            forgotten: Vec::new(),
        };
        let shared = Shared {
            provider_name: backend.name().into(),
            fleet,
            journal: if is_disk { Journal::threaded(committer) } else { Journal::inline(committer) },
            changes: changed,
            metrics,
            instance,
            next_operation: AtomicU64::new(next_operation),
            rotation: AtomicUsize::new(mix(options.seed ^ 1) as usize >> 1),
            stopping: AtomicBool::new(false),
            under_way: UnderWay::default(),
            turns: Turns::new(),
            options,
        };
        let provider = Self { backend: Arc::new(backend), shared: Arc::new(shared) };
        if provider.backend.recovers_while_serving() {
            for (row, kind) in interrupted(&provider.shared) {
                provider.shared.under_way.begin();
                let provider = provider.clone();
                tokio::spawn(async move {
                    let ended = EndOnDrop(provider.shared.clone());
                    recover(provider, row.machine, kind, row.operations.get(kind)).await;
                    drop(ended);
                });
            }
        } else {
            settle_interrupted(&*provider.backend, &provider.shared).await?;
        }
        take_offerings(&*provider.backend, &provider.shared).await?;
        Ok(provider)
    }

    /// The provider's own voice.
    pub fn handle(&self) -> Handle {
        Handle(self.shared.clone())
    }

    /// The author's code.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Takes a call through the steps and sets its work going.
    ///
    /// In a task of its own: a caller that goes away in the middle must not leave a machine that has entered
    /// a transitional state and nobody working on it.
    pub(crate) async fn accept(&self, call: Call) -> Result<TransitionAck, Status> {
        let provider = self.clone();
        let task = tokio::spawn(async move {
            let supports_delete = provider.backend.supports_delete();
            match steps::run(&provider.shared, supports_delete, &call).await? {
                Accepted::Repeated(ack) => Ok::<_, Refusal>(ack),
                Accepted::Begun { ack, machine, number } => {
                    provider.shared.under_way.begin();
                    tokio::spawn(async move {
                        let ended = EndOnDrop(provider.shared.clone());
                        carry_out(provider, machine, number, call.order).await;
                        drop(ended);
                    });
                    Ok(ack)
                }
            }
        });
        match task.await {
            Ok(answer) => Ok(answer?),
            Err(error) => Err(Status::internal(format!("the call could not be carried out: {error}"))),
        }
    }
}

/// Counts a move as ended even when the author's code panics.
struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.under_way.end();
    }
}

/// Reads the store, away from the threads that serve calls if it is on disk.
async fn read(place: Place, instance: u64) -> Result<(Box<dyn Disk>, Loaded), StoreError> {
    let read = move |place: Place| -> Result<(Box<dyn Disk>, Loaded), StoreError> {
        let mut disk = place.open()?;
        let loaded = disk.load(instance)?;
        Ok((disk, loaded))
    };
    match place {
        Place::Memory(_) => read(place),
        Place::Disk { .. } => {
            tokio::task::spawn_blocking(move || read(place)).await.unwrap_or(Err(StoreError::Closed))
        }
    }
}
