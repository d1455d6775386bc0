//! Slots that are made to fail come last in every listing.
//!
//! A suite that takes the first free slot it sees should get one that works; one that looks for a slot with the
//! fault label finds it all the same. The wire promises no order, and a capped listing may choose.

use std::collections::BTreeSet;

use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{
    ConfigureRequest, CreateRequest, DeleteRequest, DrainRequest, ListFilter, Machine, MachineList,
    MachineRef, TransitionAck,
};
use bigfleet_provider_kit::{Lister, Outputs, Selection};
use tonic::{Request, Response, Status};

use crate::inventory::FAULT_LABEL;

/// How often a short listing is filled up with slots that work: enough for many that do not.
const ROUNDS: usize = 64;

/// A service with its fault slots at the end of every listing.
#[derive(Clone)]
pub struct FaultsLast<S>(pub(crate) S);

#[tonic::async_trait]
impl<S: CapacityProvider + Lister> CapacityProvider for FaultsLast<S> {
    async fn create(&self, request: Request<CreateRequest>) -> Result<Response<TransitionAck>, Status> {
        self.0.create(request).await
    }

    async fn configure(&self, request: Request<ConfigureRequest>) -> Result<Response<TransitionAck>, Status> {
        self.0.configure(request).await
    }

    async fn drain(&self, request: Request<DrainRequest>) -> Result<Response<TransitionAck>, Status> {
        self.0.drain(request).await
    }

    async fn delete(&self, request: Request<DeleteRequest>) -> Result<Response<TransitionAck>, Status> {
        self.0.delete(request).await
    }

    async fn get(&self, request: Request<MachineRef>) -> Result<Response<Machine>, Status> {
        self.0.get(request).await
    }

    async fn list(&self, request: Request<ListFilter>) -> Result<Response<MachineList>, Status> {
        Ok(Response::new(self.select(request.get_ref()).await?.into_list().await))
    }
}

impl<S: Lister> Lister for FaultsLast<S> {
    async fn select(&self, filter: &ListFilter) -> Result<Selection, Status> {
        let mut list = self.0.select(filter).await?;
        list.machines.sort_by_key(|machine| is_broken(machine));
        let cap = filter.max_results.max(0) as usize;
        for _ in 0..ROUNDS {
            let broken = list.machines.iter().filter(|machine| is_broken(machine)).count();
            if cap == 0 || broken == 0 {
                break;
            }
            // The next listing goes on where this one stopped, so asking for what is missing skips nobody.
            let missing =
                ListFilter { max_results: i32::try_from(broken).unwrap_or(i32::MAX), ..filter.clone() };
            let more = self.0.select(&missing).await?.machines;
            let known: BTreeSet<String> = list.machines.iter().map(|machine| machine.id.clone()).collect();
            list.machines.extend(more.into_iter().filter(|machine| !known.contains(&machine.id)));
            list.machines.sort_by_key(|machine| is_broken(machine));
            list.machines.truncate(cap);
        }
        Ok(list)
    }
}

/// Machines that do not exist print nothing.
impl<S: Send + Sync + 'static> Outputs for FaultsLast<S> {}

fn is_broken(machine: &Machine) -> bool {
    machine.labels.contains_key(FAULT_LABEL)
}
