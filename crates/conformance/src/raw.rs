//! Calls below the generated client: bytes in, bytes out. Only so can a string that is not UTF-8, a message
//! that is cut short or a field nobody knows be sent.

use bigfleet_proto::transport::MESSAGE_LIMIT_BYTES;
use prost::bytes::{Buf, BufMut};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Status};

use crate::context::Context;
use crate::verdict::{Ended, failed};

#[derive(Clone, Copy, Debug, Default)]
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut bytes = vec![0; buffer.remaining()];
        buffer.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }
}

impl Context {
    /// Sends these bytes as the request of a method of `CapacityProvider`.
    pub(crate) async fn send_bytes(
        &self,
        method: &str,
        bytes: Vec<u8>,
    ) -> Result<Result<Vec<u8>, Status>, Ended> {
        let what = format!("{method}({} raw bytes)", bytes.len());
        let path = format!("/bigfleet.v1alpha1.CapacityProvider/{method}");
        let path = PathAndQuery::try_from(path).expect("a method name is a path");
        let mut grpc = Grpc::new(self.run.target.channel())
            .max_decoding_message_size(MESSAGE_LIMIT_BYTES)
            .max_encoding_message_size(MESSAGE_LIMIT_BYTES);
        if let Err(error) = grpc.ready().await {
            return failed("the provider can be connected to", error.to_string());
        }
        self.answered(&what, grpc.unary(Request::new(bytes), path, Bytes)).await
    }
}

/// A field of bytes, as protobuf writes it. Strings are written the same way, so it holds invalid ones too.
pub(crate) fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 12);
    prost::encoding::bytes::encode(number, &bytes.to_vec(), &mut out);
    out
}
