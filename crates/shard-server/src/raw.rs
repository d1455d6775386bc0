//! Codecs that leave bytes as they are: for answers that are split instead of decoded, and for roll-ups that mostly
//! repeat themselves.

use std::marker::PhantomData;

use bigfleet_proto::v1alpha1::ShardMessage;
use bytes::{Buf, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Buffers begin small and grow with what is sent: most of thousands of sessions say little most of the time.
const BUFFER_BYTES: usize = 512;
/// Frames are gathered up to this size before they are handed to the connection.
const GATHERED_BYTES: usize = 4 << 10;

/// Sends `Sent` as protobuf and takes whatever comes as bytes.
pub(crate) struct Raw<Sent>(PhantomData<fn(Sent)>);

/// The codec of sessions: frames out, bytes in.
pub(crate) type RawFrames = Raw<ShardMessage>;

impl<Sent> Default for Raw<Sent> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<Sent: Message + 'static> Codec for Raw<Sent> {
    type Encode = Sent;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self::default()
    }

    fn decoder(&mut self) -> Self {
        Self::default()
    }
}

impl<Sent: Message + 'static> Encoder for Raw<Sent> {
    type Item = Sent;
    type Error = Status;

    fn encode(&mut self, item: Sent, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        item.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, GATHERED_BYTES)
    }
}

impl<Sent> Decoder for Raw<Sent> {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER_BYTES, GATHERED_BYTES)
    }
}
