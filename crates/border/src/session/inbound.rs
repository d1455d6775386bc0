//! Frames from an operator, as far as they must be read at once.

use std::hash::{BuildHasher, Hasher};

use bigfleet_proto::v1alpha1::operator_message::Payload;
use bigfleet_proto::v1alpha1::{BootstrapBlobResponse, Hello, OperatorMessage, ReclaimAck};
use bytes::Bytes;
use foldhash::quality::FixedState;
use prost::{DecodeError, Message};

use crate::wire::fields;

// OperatorMessage
const ROLLUP: u32 = 2;
// ClusterCapacityNeeds
const TAKEN: u32 = 2;

/// Of the two halves of a digest.
const SEEDS: [u64; 2] = [0x726f_6c6c_2d75_7031, 0x726f_6c6c_2d75_7032];

/// One frame.
#[derive(Debug, PartialEq)]
pub(super) enum Inbound {
    /// Who it is.
    Hello(Hello),
    /// A roll-up, still bytes.
    Rollup(Bytes),
    /// An answer to a request for a blob.
    Blob(BootstrapBlobResponse),
    /// A word about a reclaim.
    Reclaim(ReclaimAck),
    /// Something this build does not know.
    Unknown,
}

impl Inbound {
    /// Reads a frame; the inside of a roll-up is left alone.
    pub(super) fn read(frame: &Bytes) -> Result<Self, DecodeError> {
        if let Some(Ok(only)) = fields(frame).next()
            && (only.number, only.is_delimited, only.end) == (ROLLUP, true, frame.len())
        {
            return Ok(Self::Rollup(frame.slice(only.payload..)));
        }
        Ok(match OperatorMessage::decode(frame.clone())?.payload {
            Some(Payload::Hello(hello)) => Self::Hello(hello),
            Some(Payload::Rollup(rollup)) => Self::Rollup(rollup.encode_to_vec().into()),
            Some(Payload::BootstrapResponse(response)) => Self::Blob(response),
            Some(Payload::ReclaimAck(ack)) => Self::Reclaim(ack),
            None => Self::Unknown,
        })
    }
}

/// A digest of all that a roll-up says but when it was taken: equal bytes are equal demand. 128 bits, so that two different
/// ones of a session never share it by accident; whoever brought that about on purpose would deceive nobody but himself.
pub(super) fn digest_without_time(rollup: &[u8]) -> u128 {
    let mut halves = SEEDS.map(|seed| FixedState::with_seed(seed).build_hasher());
    for field in fields(rollup) {
        let part = match &field {
            Ok(field) if field.number == TAKEN => continue,
            Ok(field) => &rollup[field.start..field.end],
            // Not a roll-up; whoever decodes it will say so.
            Err(_) => rollup,
        };
        for half in &mut halves {
            half.write_usize(part.len());
            half.write(part);
        }
        if field.is_err() {
            break;
        }
    }
    let [high, low] = halves.map(|half| half.finish());
    u128::from(high) << 64 | u128::from(low)
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::{CapacityNeed, ClusterCapacityNeeds};
    use proptest::prelude::*;

    use super::*;

    fn rollup(taken: i64, priority: i32) -> ClusterCapacityNeeds {
        let needs = vec![CapacityNeed { priority, ..CapacityNeed::default() }];
        ClusterCapacityNeeds { cluster_id: "shop".into(), timestamp_unix_nanos: taken, needs }
    }

    fn frame(payload: Payload) -> Bytes {
        OperatorMessage { payload: Some(payload) }.encode_to_vec().into()
    }

    #[test]
    fn a_roll_up_is_passed_on_as_it_came() {
        let sent = rollup(5, 1);
        let Inbound::Rollup(bytes) = Inbound::read(&frame(Payload::Rollup(sent.clone()))).unwrap() else {
            panic!()
        };
        assert_eq!(ClusterCapacityNeeds::decode(bytes).unwrap(), sent);
    }

    #[test]
    fn an_odd_encoding_is_read_as_protobuf_has_it() {
        // A hello and then a roll-up in one frame: the last of a choice counts.
        let mut bytes = frame(Payload::Hello(Hello::default())).to_vec();
        bytes.extend(frame(Payload::Rollup(rollup(5, 1))));
        assert!(matches!(Inbound::read(&bytes.into()), Ok(Inbound::Rollup(_))));
        let hello = Hello { cluster_id: "shop".into(), protocol_version: "v1alpha1".into() };
        assert_eq!(Inbound::read(&frame(Payload::Hello(hello.clone()))).unwrap(), Inbound::Hello(hello));
        assert_eq!(Inbound::read(&Bytes::new()).unwrap(), Inbound::Unknown);
        assert!(Inbound::read(&Bytes::from_static(&[0x0A, 9])).is_err());
    }

    #[test]
    fn only_the_time_is_left_out_of_the_comparison() {
        let bytes = |taken, priority| digest_without_time(&rollup(taken, priority).encode_to_vec());
        assert_eq!(bytes(1, 7), bytes(2, 7));
        assert_ne!(bytes(1, 7), bytes(1, 8));
        assert_ne!(
            digest_without_time(&[0xFF]),
            digest_without_time(&[0xFE]),
            "what is no roll-up is told apart as well"
        );
        let twice = [rollup(1, 7).encode_to_vec(), rollup(1, 7).encode_to_vec()].concat();
        assert_ne!(bytes(1, 7), digest_without_time(&twice), "all of it counts");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = digest_without_time(&bytes);
            let _ = Inbound::read(&bytes.into());
        }
    }
}
