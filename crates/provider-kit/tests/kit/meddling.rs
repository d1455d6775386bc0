//! The wrapper that lies.

use bigfleet_proto::v1alpha1::capacity_provider_server::CapacityProvider;
use bigfleet_proto::v1alpha1::{CreateRequest, ListFilter, MachineRef, TransitionAck};
use bigfleet_provider_kit::{Asked, Meddled, Meddler, OperationKind, Selection};
use tonic::{Code, Request, Status};

use crate::cloud::World;

/// Lists half, and loses the answers to moves of m-1; Get is down.
struct Liar;

impl Meddler for Liar {
    async fn before(&self, asked: &Asked) -> Result<(), Status> {
        if matches!(asked, Asked::Get(_)) { Err(Status::unavailable("down")) } else { Ok(()) }
    }

    async fn acked(
        &self,
        asked: &Asked,
        honest: Result<TransitionAck, Status>,
    ) -> Result<TransitionAck, Status> {
        if *asked == Asked::Move(OperationKind::Create, "m-1".into()) {
            return Err(Status::deadline_exceeded("too late"));
        }
        honest
    }

    async fn listed(&self, _: &ListFilter, mut honest: Selection) -> Result<Selection, Status> {
        honest.machines.truncate(honest.machines.len() / 2);
        Ok(honest)
    }
}

#[tokio::test]
async fn a_liar_changes_what_is_seen_and_not_what_is() {
    let world = World::new(4).await;
    let service = Meddled::new(world.provider.clone(), Liar);
    assert_eq!(
        service.list(Request::new(ListFilter::default())).await.unwrap().into_inner().machines.len(),
        2
    );
    let create = |id: &str| Request::new(CreateRequest { machine_id: id.into(), ..CreateRequest::default() });
    assert!(service.create(create("m-0")).await.is_ok());
    assert_eq!(service.create(create("m-1")).await.unwrap_err().code(), Code::DeadlineExceeded);
    let get = service.get(Request::new(MachineRef { id: "m-0".into() })).await;
    assert_eq!(get.unwrap_err().code(), Code::Unavailable);
    world.reach("m-1", bigfleet_model::machine::MachineState::Idle).await;
}
