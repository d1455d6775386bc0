//! The splitter is held against the decoder it replaces.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::{HostRef, Machine, MachineList, Resources};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::*;
use crate::wire::Field;

fn texts() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map("[a-z]{0,6}", "\\PC{0,8}", 0..4)
}

fn resources() -> impl Strategy<Value = Option<Resources>> {
    option::of(
        btree_map("(cpu|memory|[a-z]{1,4})", "[0-9]{1,3}(Gi|m)?", 0..3)
            .prop_map(|resources| Resources { resources }),
    )
}

fn machine() -> impl Strategy<Value = Machine> {
    let plain =
        ("\\PC{0,12}", 0..10_i32, option::of(("[a-z]{0,3}", "[a-z0-9]{0,6}")), "[a-z.0-9]{0,6}", 0..6_i32);
    (plain, any::<f64>(), any::<f64>(), resources(), resources(), texts(), texts(), "[a-z ]{0,9}").prop_map(
        |(
            (id, state, host, instance_type, capacity_type),
            price,
            odds,
            resources,
            allocatable,
            labels,
            meta,
            error,
        )| {
            Machine {
                id,
                state,
                host: host.map(|(provider, r#ref)| HostRef { provider, r#ref }),
                instance_type,
                zone: "z".into(),
                capacity_type,
                price_per_hour: price,
                interruption_probability: odds,
                resources,
                labels,
                last_error: error,
                allocatable,
                cluster: String::new(),
                shard_metadata: meta,
            }
        },
    )
}

fn key() -> DigestKey {
    DigestKey::new(|index| HASH.hash_one(index))
}

type Seen = (String, u64, Result<Told, BadRecord>);

fn seen(listing: &Listing, part: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    for start in (0..listing.len()).step_by(part) {
        let range = start..(start + part).min(listing.len());
        listing
            .part(range)
            .each(&mut |report| seen.push((report.id().to_owned(), report.content(), report.read())));
    }
    seen
}

fn split(list: &MachineList) -> Listing {
    Listing::split(&list.encode_to_vec().into(), &key(), Care::Digest).unwrap()
}

/// The same records with every map written backwards, which no encoder of ours does and others may.
fn backwards(machine: &Machine) -> Vec<u8> {
    let mut bytes = machine.encode_to_vec();
    let all: Vec<_> = fields(&bytes).map(Result::unwrap).collect();
    let (maps, others): (Vec<Field>, Vec<Field>) =
        all.iter().copied().partition(|field| matches!(field.number, LABELS | SHARD_METADATA));
    let mut turned = Vec::new();
    for field in others {
        if matches!(field.number, RESOURCES | ALLOCATABLE) {
            let inner = field.payload(&bytes);
            let mut entries: Vec<&[u8]> =
                fields(inner).map(|f| f.unwrap()).map(|f| &inner[f.start..f.end]).collect();
            entries.reverse();
            let inner = entries.concat();
            turned.push((field.number << 3 | 2) as u8);
            prost::encoding::encode_varint(inner.len() as u64, &mut turned);
            turned.extend(inner);
        } else {
            turned.extend(&bytes[field.start..field.end]);
        }
    }
    for field in maps.iter().rev() {
        turned.extend(&bytes[field.start..field.end]);
    }
    std::mem::swap(&mut bytes, &mut turned);
    bytes
}

proptest! {
    #[test]
    fn the_splitter_agrees_with_the_decoder(machines in vec(machine(), 0..20), revision in vec(any::<u8>(), 0..9), part in 1..9_usize, scans: bool) {
        let care = if scans { Care::Scan } else { Care::Digest };
        // Decoded once: minus zero does not travel.
        let sent = MachineList { machines, revision }.encode_to_vec();
        let list = MachineList::decode(&sent[..]).unwrap();
        let listing = Listing::split(&sent.into(), &key(), care).unwrap();
        prop_assert_eq!(listing.tail.as_deref().unwrap_or_default(), &list.revision[..]);
        prop_assert_eq!(listing.len(), list.machines.len());
        for ((id, _, read), machine) in seen(&listing, part).iter().zip(&list.machines) {
            prop_assert_eq!(id, &machine.id);
            match (read, told(machine)) {
                (Ok(read), Ok(told)) => {
                    prop_assert_eq!(format!("{:?}", read.machine), format!("{:?}", told.machine));
                    prop_assert_eq!(read.bad_stamps, told.bad_stamps);
                }
                (Err(read), Err(told)) => prop_assert_eq!(read, &told),
                (read, told) => prop_assert!(false, "{read:?} against {told:?}"),
            }
        }
    }

    #[test]
    fn the_hash_follows_the_content(one in machine(), other in machine()) {
        let both = MachineList { machines: vec![one.clone(), other.clone(), one.clone()], revision: vec![] };
        let seen = seen(&split(&both), 8);
        prop_assert_eq!(seen[0].1, seen[2].1);
        let same = one.encode_to_vec() == other.encode_to_vec();
        prop_assert_eq!(seen[0].1 == seen[1].1, same);
    }

    #[test]
    fn the_order_of_map_entries_does_not_count(machine in machine()) {
        let straight = scan(&machine.encode_to_vec()).unwrap();
        let bytes = backwards(&machine);
        let turned = scan(&bytes).unwrap();
        prop_assert_eq!(straight.1, turned.1);
        prop_assert_eq!(&bytes[turned.0], machine.id.as_bytes());
    }

    #[test]
    fn garbage_is_refused_and_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(listing) = Listing::split(&bytes.into(), &key(), Care::Scan) {
            seen(&listing, 3);
        }
    }

    #[test]
    fn a_damaged_listing_never_panics(machines in vec(machine(), 1..5), at in any::<prop::sample::Index>(), byte: u8) {
        let mut bytes = MachineList { machines, revision: vec![1] }.encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let decodes = MachineList::decode(&bytes[..]).is_ok();
        match Listing::split(&bytes.into(), &key(), Care::Scan) {
            Ok(listing) => drop(seen(&listing, 2)),
            Err(_) => prop_assert!(!decodes, "refused what the decoder takes"),
        }
    }
}

#[test]
fn a_malformed_record_is_refused_alone() {
    let mut bytes =
        MachineList { machines: vec![Machine { id: "a".into(), ..Machine::default() }], revision: vec![] }
            .encode_to_vec();
    bytes.extend([0x0A, 2, 0x0A, 9]);
    let seen = seen(&Listing::split(&bytes.into(), &key(), Care::Scan).unwrap(), 9);
    assert_eq!(seen.len(), 2);
    assert_eq!((seen[1].0.as_str(), seen[1].2.as_ref().unwrap_err().code), ("", "malformed"));
}

#[test]
fn a_record_has_the_digest_of_its_bytes_under_the_key() {
    let machine = |id: &str| Machine { id: id.into(), ..Machine::default() };
    let list = MachineList { machines: ["a", "b", "a"].map(machine).to_vec(), revision: vec![] };
    let digests = |key: &DigestKey, care| {
        let listing = Listing::split(&list.encode_to_vec().into(), key, care).unwrap();
        let mut digests = Vec::new();
        listing.part(0..3).each(&mut |report| digests.push(report.digest()));
        assert_eq!(listing.asked(), 0, "nobody looked into a record");
        digests
    };
    let ours = digests(&key(), Care::Digest);
    assert!(ours[0] == ours[2] && ours[0] != ours[1] && ours[0] != 0, "{ours:x?}");
    assert_eq!(digests(&key(), Care::Scan), ours);
    assert_ne!(digests(&DigestKey::new(|index| HASH.hash_one(index + 1)), Care::Digest)[0], ours[0]);
}

#[test]
fn records_are_scanned_ahead_where_that_is_wanted() {
    let listing = split(&MachineList { machines: vec![Machine::default(); 4], revision: vec![] });
    listing.part(0..4).each(&mut |report| assert!(report.digest() > 0));
    listing.part(0..2).each(&mut |report| assert_eq!((report.id(), report.content() > 0), ("", true)));
    assert_eq!(listing.asked(), 2);
    assert_eq!((Care::Digest.after(2, 4), Care::Digest.after(0, 4)), (Care::Scan, Care::Digest));
    assert_eq!((Care::Scan.after(2, 32), Care::Scan.after(1, 32)), (Care::Scan, Care::Digest));
    assert_eq!((Care::Scan.after(0, 0), Care::Digest.after(0, 0)), (Care::Scan, Care::Digest));
}
