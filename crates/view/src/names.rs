//! Names: the short ids of needs, and finding what somebody meant by a text.
//!
//! A need is identified by cluster, fingerprint and group, which nobody can type. Its id is a hash of the three, the same
//! in every life and on every machine, and any unambiguous beginning of it will do. Whoever names something that is not
//! there is told what comes close.

use bigfleet_engine::Fleet;
use bigfleet_model::need::NeedKey;
use tonic::Status;

use crate::v1::NeedRef;

/// Digits of the short id.
const SHORT: usize = 8;
/// How many names a message suggests at most.
const SUGGESTED: usize = 5;
/// How many edits a suggestion may be away.
const NEAR: usize = 2;

/// The 16 digits of a need's id.
pub fn long_id(key: &NeedKey) -> String {
    format!("{:016x}", hash(&[&key.cluster, &key.fingerprint, &key.group]))
}

/// The 8 digits of a need's id.
pub fn short_id(key: &NeedKey) -> String {
    let mut id = long_id(key);
    id.truncate(SHORT);
    id
}

/// FNV-1a over the parts, each ended by a byte that UTF-8 never has, then mixed so that the first digits are as good as
/// the last. Ids are written down by people: this must never change.
fn hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    for part in parts {
        for byte in part.as_bytes() {
            take(*byte);
        }
        take(0xff);
    }
    bigfleet_model::splitmix::finalise(hash)
}

/// A need's identity for the wire.
pub(crate) fn need_ref(key: &NeedKey) -> NeedRef {
    let long_id = long_id(key);
    NeedRef {
        id: long_id[..SHORT].to_owned(),
        long_id,
        cluster: key.cluster.to_string(),
        fingerprint: key.fingerprint.to_string(),
        group: key.group.to_string(),
    }
}

/// The need somebody means: an id or its beginning, with or without the cluster in front, or a cluster and a gang.
pub(crate) fn find_need(fleet: &Fleet, text: &str) -> Result<NeedKey, Status> {
    if text.is_empty() {
        return Err(Status::invalid_argument(
            "no need is named; give its id, as `bigfleet get needs` shows it",
        ));
    }
    let beginning = Beginning::of(text);
    let mut found: Vec<NeedKey> = Vec::new();
    for demand in fleet.needs() {
        let need = &demand.need;
        let id = hash(&[&need.cluster, need.profile.fingerprint(), &need.group]);
        if beginning.is_some_and(|beginning| beginning.is_of(id))
            || named_in_cluster(&need.cluster, &need.group, id, text)
        {
            found.push(need.key());
        }
    }
    match &found[..] {
        [] => Err(near_needs(fleet, text).not_found("need")),
        [_] => Ok(found.swap_remove(0)),
        several => Err(ambiguous(
            "need",
            text,
            several.iter().map(|key| format!("{}/{}", key.cluster, long_id(key))),
        )),
    }
}

/// The first digits of an id.
#[derive(Clone, Copy)]
struct Beginning {
    digits: u64,
    /// How far an id must be shifted to leave as many.
    shift: u32,
}

impl Beginning {
    fn of(text: &str) -> Option<Self> {
        let is_beginning =
            (1..=16).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let digits = u64::from_str_radix(text, 16).ok().filter(|_| is_beginning)?;
        Some(Self { digits, shift: 64 - 4 * text.len() as u32 })
    }

    fn is_of(self, id: u64) -> bool {
        id >> self.shift == self.digits
    }
}

/// What comes near a need that is not there.
fn near_needs(fleet: &Fleet, text: &str) -> Near {
    let mut near = Near::to(text);
    for demand in fleet.needs() {
        let key = demand.need.key();
        near.consider(&short_id(&key));
        if !key.group.is_empty() {
            near.consider(&format!("{}/{}", key.cluster, spoken(&key.group)));
        }
    }
    for cluster in fleet.clusters() {
        near.consider(cluster);
    }
    near
}

/// A group as people type it: what separates its parts cannot be typed.
fn spoken(group: &str) -> String {
    group.replace('\0', "/")
}

/// Whether a text is the need's cluster and then its id's beginning or its gang, or the cluster alone.
fn named_in_cluster(cluster: &str, group: &str, id: u64, text: &str) -> bool {
    let Some(rest) = text.strip_prefix(cluster) else { return false };
    if rest.is_empty() {
        return true;
    }
    let Some(rest) = rest.strip_prefix('/').filter(|rest| !rest.is_empty()) else { return false };
    Beginning::of(rest).is_some_and(|beginning| beginning.is_of(id)) || group == rest || spoken(group) == rest
}

/// The cluster somebody means.
pub(crate) fn find_cluster<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Result<(), Status> {
    let mut near = Near::to(text);
    for name in known {
        if name == text {
            return Ok(());
        }
        near.consider(name);
    }
    Err(near.not_found("cluster"))
}

/// Says that a text means several things.
pub(crate) fn ambiguous(thing: &str, text: &str, names: impl Iterator<Item = String>) -> Status {
    let names: Vec<String> = names.collect();
    let shown = names.iter().take(SUGGESTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if names.len() > SUGGESTED { ", …" } else { "" };
    Status::invalid_argument(format!(
        "{thing} {text:?} is ambiguous: {} begin like that ({shown}{more}); give more of the name",
        names.len()
    ))
}

/// Collects the names nearest to one that does not exist.
#[derive(Debug)]
pub(crate) struct Near {
    text: String,
    best: Vec<(usize, String)>,
}

impl Near {
    pub(crate) fn to(text: &str) -> Self {
        Self { text: text.to_owned(), best: Vec::new() }
    }

    /// Looks at one name that exists.
    pub(crate) fn consider(&mut self, name: &str) {
        // The whole name with something missing or added at its end is near enough.
        let begins_alike = || {
            let text = self.text.as_str();
            text.len().min(name.len()) > 2 && (name.starts_with(text) || text.starts_with(name))
        };
        let near = distance_up_to(&self.text, name, NEAR);
        let Some(distance) = near.or_else(|| begins_alike().then_some(NEAR + 1)) else { return };
        let entry = (distance, name.to_owned());
        if let Err(at) = self.best.binary_search(&entry) {
            self.best.insert(at, entry);
            self.best.truncate(SUGGESTED);
        }
    }

    /// Says that there is no such thing, and what comes close.
    pub(crate) fn not_found(&self, thing: &str) -> Status {
        let text = &self.text;
        if self.best.is_empty() {
            return Status::not_found(format!(
                "there is no {thing} {text:?}; `bigfleet get {thing}s` lists those there are"
            ));
        }
        let names: Vec<&str> = self.best.iter().map(|(_, name)| name.as_str()).collect();
        Status::not_found(format!("there is no {thing} {text:?}; did you mean {}?", names.join(", ")))
    }
}

/// How many insertions, deletions and substitutions lie between two texts, if no more than `most`.
fn distance_up_to(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    // Most names differ early and everywhere: look only at the band around the diagonal.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        let (from, to) = (i.saturating_sub(most), (i + most + 1).min(b.len()));
        let mut least = row[0];
        if from > 0 {
            diagonal = row[from];
            row[from] = most + 1;
        }
        for j in from..to {
            let substituted = diagonal + usize::from(*x != b[j]);
            diagonal = row[j + 1];
            // The cell above lies outside the band for the last column.
            let above = if j + 1 == i + most + 1 { most + 1 } else { diagonal };
            row[j + 1] = substituted.min(above + 1).min(row[j] + 1);
            least = least.min(row[j + 1]);
        }
        if least > most {
            return None;
        }
    }
    Some(row[b.len()]).filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bigfleet_model::need::Need;
    use bigfleet_model::penalty::PenaltyBucket;
    use bigfleet_model::profile::Profile;
    use bigfleet_model::resource::ResourceVec;

    use super::*;

    fn need(cluster: &str, priority: i32, group: &str) -> Need {
        let profile = Profile::new(vec![], vec![], priority, PenaltyBucket::ZERO, PenaltyBucket::ZERO);
        let unit = Need::of_unit(cluster, Arc::new(profile), ResourceVec::parse([("cpu", "1")]).unwrap());
        Need { group: group.into(), ..unit }
    }

    fn fleet() -> Fleet {
        let mut fleet = Fleet::default();
        fleet.replace("shop", vec![need("shop", 1, ""), need("shop", 2, "")], 1).unwrap();
        fleet.replace("ml", vec![need("ml", 3, "team\0train")], 1).unwrap();
        fleet
    }

    #[test]
    fn ids_never_change() {
        let key = NeedKey { cluster: "shop".into(), fingerprint: "p=1".into(), group: "".into() };
        assert_eq!((long_id(&key), short_id(&key)), ("7ab4655f7d366e6a".into(), "7ab4655f".into()));
        let moved = NeedKey { cluster: "shopp".into(), fingerprint: "=1".into(), group: "".into() };
        assert_ne!(long_id(&key), long_id(&moved), "the parts are kept apart");
    }

    #[test]
    fn a_need_is_found_by_any_beginning_of_its_id_and_by_its_gang() {
        let fleet = fleet();
        let key = need("shop", 1, "").key();
        let id = long_id(&key);
        let texts = [
            id.clone(),
            id[..8].to_owned(),
            id[..5].to_ascii_uppercase(),
            format!("shop/{id}"),
            format!("shop/{}", &id[..4]),
        ];
        for text in texts {
            assert_eq!(find_need(&fleet, &text).unwrap(), key, "{text}");
        }
        let gang = need("ml", 3, "team\0train").key();
        for text in ["ml", "ml/team/train", "ml/team\0train"] {
            assert_eq!(find_need(&fleet, text).unwrap(), gang, "{text}");
        }
    }

    #[test]
    fn unknown_and_ambiguous_needs_come_with_help() {
        let fleet = fleet();
        let message = |text: &str| {
            let status = find_need(&fleet, text).unwrap_err();
            (status.code(), status.message().to_owned())
        };
        let (code, text) = message("shop");
        assert_eq!(code, tonic::Code::InvalidArgument);
        assert!(text.starts_with("need \"shop\" is ambiguous: 2 begin like that (shop/"), "{text}");
        let (code, text) = message("shpo");
        assert_eq!((code, &*text), (tonic::Code::NotFound, "there is no need \"shpo\"; did you mean shop?"));
        assert_eq!(
            message("ml/team/trane").1,
            "there is no need \"ml/team/trane\"; did you mean ml/team/train?"
        );
        assert_eq!(
            message("zzzzzzzzz").1,
            "there is no need \"zzzzzzzzz\"; `bigfleet get needs` lists those there are"
        );
        assert_eq!(message("").0, tonic::Code::InvalidArgument);
    }

    #[test]
    fn distances_agree_with_the_plain_table() {
        fn plain(a: &[u8], b: &[u8]) -> usize {
            let mut row: Vec<usize> = (0..=b.len()).collect();
            for (i, x) in a.iter().enumerate() {
                let mut diagonal = row[0];
                row[0] = i + 1;
                for (j, y) in b.iter().enumerate() {
                    let substituted = diagonal + usize::from(x != y);
                    diagonal = row[j + 1];
                    row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
                }
            }
            row[b.len()]
        }
        let mut state = 7_u64;
        let mut next = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..20_000 {
            let mut word = || (0..next(9)).map(|_| (b'a' + next(3) as u8) as char).collect::<String>();
            let (a, b) = (word(), word());
            let exact = plain(a.as_bytes(), b.as_bytes());
            for most in 0..4 {
                let bounded = distance_up_to(&a, &b, most);
                assert_eq!(bounded, (exact <= most).then_some(exact), "{a} {b} {most}");
            }
        }
    }
}
