//! The language of `/`: words that must occur, and `key=value` pairs that the server filters by.
//!
//! Words are compared with what the rows show, at once, while they are typed. Pairs go to the server when Enter is
//! pressed, so that 500,000 machines can be filtered without fetching them.

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_view::v1::{
    ActionKind, Fate, ListDecisionsRequest, ListMachinesRequest, ListNeedsRequest, MachineFilter, Reason,
};

use crate::words;

/// Rows fetched of one list. More cannot be read anyway; a filter gets at the rest.
pub(crate) const ROWS: u32 = 2_000;

/// One `key=value`.
pub(crate) type Pair = (String, String);

/// A filter, taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) pairs: Vec<Pair>,
    /// In lower case.
    pub(crate) words: Vec<String>,
}

impl Filter {
    /// Reads what was typed.
    pub(crate) fn read(text: &str) -> Self {
        let mut filter = Self::default();
        for part in text.split_whitespace() {
            match part.split_once('=') {
                Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                    filter.pairs.push((key.to_owned(), value.to_owned()));
                }
                _ => filter.words.push(part.to_lowercase()),
            }
        }
        filter
    }

    /// Whether every word occurs in one of the texts.
    pub(crate) fn admits<'a>(&self, texts: &(impl Iterator<Item = &'a str> + Clone)) -> bool {
        self.words.iter().all(|word| texts.clone().any(|text| text.to_lowercase().contains(word)))
    }
}

/// The request for needs.
pub(crate) fn needs_request(pairs: &[Pair]) -> Result<ListNeedsRequest, String> {
    let mut request = ListNeedsRequest { limit: ROWS, ..ListNeedsRequest::default() };
    for (key, value) in pairs {
        match (key.as_str(), value.as_str()) {
            ("cluster", _) => request.cluster.clone_from(value),
            ("resource", _) => request.resource.clone_from(value),
            ("reason", _) => request.reason = number::<Reason>(value, words::reason, "reason")?,
            ("priority", _) => {
                let least = value.replace(',', "").parse();
                request.min_priority =
                    Some(least.map_err(|_| format!("{value} is no priority: give a number"))?);
            }
            ("is", "short") => request.short_only = true,
            ("is", "gang") => request.gangs_only = true,
            _ => return Err(unknown(key, value, "cluster= resource= reason= priority= is=short is=gang")),
        }
    }
    Ok(request)
}

/// The request for machines. A key that is none of ours is a label.
pub(crate) fn machines_request(pairs: &[Pair]) -> Result<ListMachinesRequest, String> {
    let mut filter = MachineFilter::default();
    for (key, value) in pairs {
        match (key.as_str(), value.as_str()) {
            ("cluster", _) => filter.cluster.clone_from(value),
            ("state", _) => filter.states.push(number::<MachineState>(value, words::state, "state")?),
            ("type", _) => {
                filter.capacity_types.push(number::<CapacityType>(
                    value,
                    words::capacity_type,
                    "capacity type",
                )?);
            }
            ("zone", _) => filter.zones.push(value.clone()),
            ("instance", _) => filter.instance_types.push(value.clone()),
            ("provider", _) => filter.provider.clone_from(value),
            ("id", _) => filter.id_prefix.clone_from(value),
            ("need", _) => filter.need.clone_from(value),
            ("is", "troubled") => filter.troubled = true,
            _ => filter.labels.push(format!("{key}={value}")),
        }
    }
    Ok(ListMachinesRequest { filter: Some(filter), limit: ROWS, ..ListMachinesRequest::default() })
}

/// The request for decisions.
pub(crate) fn decisions_request(pairs: &[Pair]) -> Result<ListDecisionsRequest, String> {
    let mut request = ListDecisionsRequest { limit: ROWS, fold: true, ..ListDecisionsRequest::default() };
    for (key, value) in pairs {
        match key.as_str() {
            "cluster" => request.cluster.clone_from(value),
            "action" => request.kinds.push(number::<ActionKind>(value, words::kind, "action")?),
            "fate" => request.fates.push(number::<Fate>(value, words::fate, "fate")?),
            "machine" => request.machine.clone_from(value),
            "need" => request.need.clone_from(value),
            _ => return Err(unknown(key, value, "cluster= action= fate= machine= need=")),
        }
    }
    Ok(request)
}

fn unknown(key: &str, value: &str, known: &str) -> String {
    format!("{key}={value} means nothing here: use {known}")
}

/// The number of an enumeration's value by how we write it, without regard to case, blanks and hyphens.
fn number<T: TryFrom<i32>>(value: &str, written: fn(i32) -> String, what: &str) -> Result<i32, String> {
    let plain = |text: &str| text.to_lowercase().replace([' ', '-', '_'], "");
    let known: Vec<(i32, String)> = (1..64)
        .filter(|number| T::try_from(*number).is_ok())
        .map(|number| (number, written(number)))
        .collect();
    let found = known.iter().find(|(_, name)| plain(name) == plain(value));
    found.map(|(number, _)| *number).ok_or_else(|| {
        let names: Vec<String> =
            known.iter().map(|(_, name)| name.to_lowercase().replace(' ', "-")).collect();
        format!("no {what} {value}: there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<Pair> {
        Filter::read(text).pairs
    }

    #[test]
    fn words_and_pairs_are_told_apart() {
        let filter = Filter::read(" Shop state=idle  = x=  ");
        assert_eq!(filter.pairs, [("state".to_owned(), "idle".to_owned())]);
        assert_eq!(filter.words, ["shop", "=", "x="]);
        let words = Filter::read("sho WEB");
        assert!(words.admits(&["shop", "web-1"].into_iter()));
        assert!(!words.admits(&["shop", "api"].into_iter()));
        assert!(Filter::default().admits(&[].into_iter()));
    }

    #[test]
    fn pairs_become_the_servers_filters() {
        let request =
            machines_request(&pairs("cluster=shop state=Idle state=draining type=on-demand rack=r2"))
                .unwrap();
        let filter = request.filter.unwrap();
        assert_eq!((filter.cluster.as_str(), filter.states.as_slice()), ("shop", [3, 6].as_slice()));
        assert_eq!(
            (filter.capacity_types.as_slice(), filter.labels.as_slice()),
            ([3].as_slice(), ["rack=r2".to_owned()].as_slice())
        );
        let request = needs_request(&pairs("is=short priority=900,000 reason=no-matching-supply")).unwrap();
        assert_eq!((request.short_only, request.min_priority), (true, Some(900_000)));
        assert_eq!(request.reason, Reason::NoMatchingSupply as i32);
        let request = decisions_request(&pairs("action=reclaim fate=dryrun need=77aa")).unwrap();
        assert_eq!(
            (request.kinds.as_slice(), request.fates.as_slice(), request.need.as_str()),
            ([4].as_slice(), [3].as_slice(), "77aa")
        );
    }

    #[test]
    fn what_makes_no_sense_is_said() {
        let refused = |text: &str| needs_request(&pairs(text)).unwrap_err();
        assert_eq!(
            refused("zone=a"),
            "zone=a means nothing here: use cluster= resource= reason= priority= is=short is=gang"
        );
        assert_eq!(refused("priority=high"), "high is no priority: give a number");
        let text = machines_request(&pairs("type=cheap")).unwrap_err();
        assert_eq!(text, "no capacity type cheap: there are bare-metal, reserved, on-demand, spot");
        assert!(
            decisions_request(&pairs("action=buy")).unwrap_err().contains("bootstrap, provision, preempt")
        );
    }
}
