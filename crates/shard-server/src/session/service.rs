//! `Shard.Session` on the wire. Written by hand because the generated server decodes every frame before anybody can look
//! at it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bigfleet_model::limits::FRAME_BYTES;
use bigfleet_net::{Peer, Purse};
use bytes::Bytes;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService, StreamingService};
use tonic::{Request, Response, Status, Streaming};

use super::line::Frames;
use super::{Sessions, reader};
use crate::raw::Raw;

/// The service.
#[derive(Clone)]
pub(crate) struct SessionService(pub(crate) Sessions);

impl NamedService for SessionService {
    const NAME: &'static str = "bigfleet.v1alpha1.Shard";
}

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

impl Service<http::Request<Body>> for SessionService {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            if request.uri().path() != "/bigfleet.v1alpha1.Shard/Session" {
                return Ok(Status::unimplemented("there is only Session").into_http());
            }
            let mut grpc = Grpc::new(Raw).max_decoding_message_size(FRAME_BYTES);
            Ok(grpc.streaming(service, request).await)
        })
    }
}

impl StreamingService<Bytes> for SessionService {
    type Response = Bytes;
    type ResponseStream = Frames;
    type Future = BoxFuture<Result<Response<Frames>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let Self(sessions) = self.clone();
        Box::pin(async move {
            let line = sessions.add()?;
            let peer = request.extensions().get::<Peer>().cloned();
            if let Some(peer) = &peer {
                line.sits_on(peer.cut.seat());
            }
            let frames = Frames::new(Arc::clone(&line), sessions.clone());
            let purse = request.extensions().get::<Purse>().cloned();
            // The answer begins at once: some operators wait for its head before they say hello.
            tokio::spawn(reader::read(sessions, line, peer, purse, request.into_inner()));
            Ok(Response::new(frames))
        })
    }
}
