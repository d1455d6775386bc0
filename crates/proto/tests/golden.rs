//! The bytes of every message, held against fixtures that another implementation of protobuf wrote.
//!
//! Each file in `golden/` is one message with all its fields set, as hex; oneofs have a file per member. The
//! values follow one rule, so that a field that changes place shows: a string holds its field's name, bytes
//! hold 00 ff and the name, an int32 is 1000 + its number, an int64 is minus its number, a double is its
//! number and a half, an enum its last value, a map `a`, `b` to 1, 2, and a list of scalars has two entries.

mod samples;

use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::path::Path;

use prost::Message;

/// What a sample does when it is checked: its fixture's name is marked as seen.
pub(crate) struct Golden {
    seen: BTreeSet<String>,
}

impl Golden {
    /// Encodes to exactly the fixture, and the fixture decodes to exactly the message.
    pub(crate) fn check<M: Message + Default + PartialEq + Debug>(&mut self, name: &str, message: &M) {
        let hex = std::fs::read_to_string(folder().join(format!("{name}.hex")))
            .unwrap_or_else(|error| panic!("fixture of {name}: {error}"));
        let ours = message.encode_to_vec().iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a string takes everything");
            text
        });
        assert_eq!(ours, hex.trim(), "{name} encodes differently");
        let bytes: Vec<u8> = (0..hex.trim().len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("fixtures are hex"))
            .collect();
        assert_eq!(&M::decode(&*bytes).expect("fixtures decode"), message, "{name} decodes differently");
        // Whoever is newer says more: fields that are not known here, a number and a text, change nothing.
        let newer = [&bytes[..], &[0xc0, 0xa9, 0x07, 7], &[0xca, 0xa9, 0x07, 2, b'h', b'i']].concat();
        assert_eq!(
            &M::decode(&*newer).expect("unknown fields"),
            message,
            "{name} minds fields it does not know"
        );
        assert!(self.seen.insert(name.into()), "{name} is checked twice");
    }
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

#[test]
fn every_message_has_the_bytes_of_its_fixture() {
    let mut golden = Golden { seen: BTreeSet::new() };
    samples::capacity::check(&mut golden);
    samples::provider::check(&mut golden);
    samples::shard::check(&mut golden);
    samples::shardread::check(&mut golden);
    samples::coordinator::check(&mut golden);

    let fixtures: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("the folder of fixtures")
        .map(|entry| entry.expect("a fixture").file_name().into_string().expect("plain names"))
        .map(|name| name.trim_end_matches(".hex").to_string())
        .collect();
    assert_eq!(golden.seen, fixtures, "a fixture without a sample, or the reverse");
}

/// Old callers of Delete send a machine reference, whose bytes must read as a Delete without a token.
#[test]
fn a_machine_reference_reads_as_a_delete_request() {
    use bigfleet_proto::v1alpha1::{DeleteRequest, MachineRef};
    let bytes = MachineRef { id: "m-1".into() }.encode_to_vec();
    let expected = DeleteRequest { machine_id: "m-1".into(), ..DeleteRequest::default() };
    assert_eq!(DeleteRequest::decode(&*bytes), Ok(expected));
}
