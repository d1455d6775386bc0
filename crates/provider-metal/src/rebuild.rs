//! Rebuilding a lost store from the hosts: each has a copy of the record it was last bound or emptied by. What
//! would change is shown first. Hosts are not trusted: a copy counts for the host it was found on and for
//! nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bigfleet_model::text::Quoted;
use bigfleet_provider_kit::{Handle, HostRef, Machine, MachineState};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::agent::{self, Report, Standing};
use crate::inventory::{Host, Inventory};
use crate::moves::{HostRecord, RECORD_FORMAT};
use crate::shared::Shared;
use crate::truth::state_of;

/// How many hosts are asked at once.
const PARALLEL: usize = 32;
/// What the kit takes of metadata.
const METADATA_LIMIT_BYTES: usize = 1 << 20;

/// What a host's own copy says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nothing was ever done there, or it was emptied.
    Free,
    /// It is a node.
    Bound { cluster: String, metadata: BTreeMap<String, String> },
    /// It was on its way, or its copy cannot be used.
    Unclear(String),
    /// It could not be asked.
    Unknown(String),
}

/// One host: what the store says and what the host says.
pub(crate) struct Comparison {
    pub(crate) name: String,
    stored: Arc<Machine>,
    claim: Claim,
}

impl Comparison {
    /// Whether the store would be changed to what the host says.
    pub(crate) fn is_change(&self) -> bool {
        match (&self.claim, state_of(&self.stored)) {
            (Claim::Bound { cluster, .. }, MachineState::Configured) => *cluster != self.stored.cluster,
            (Claim::Bound { .. }, MachineState::Idle | MachineState::Speculative | MachineState::Failed) => {
                true
            }
            _ => false,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = state_of(&self.stored);
        write!(f, "{} {}: the store says {state:?}", if self.is_change() { '~' } else { ' ' }, self.name)?;
        if !self.stored.cluster.is_empty() {
            write!(f, " in {}", Quoted(&self.stored.cluster))?;
        }
        match &self.claim {
            Claim::Free => f.write_str(", the host says free"),
            Claim::Bound { cluster, metadata } => {
                write!(
                    f,
                    ", the host says Configured in {} with {} metadata",
                    Quoted(cluster),
                    metadata.len()
                )
            }
            Claim::Unclear(reason) => write!(f, ", and the host's copy is no help: {reason}"),
            Claim::Unknown(reason) => write!(f, ", and the host was not asked: {reason}"),
        }
    }
}

/// Asks every host of the inventory and compares.
pub(crate) async fn compare(shared: &Arc<Shared>, handle: &Handle) -> Vec<Comparison> {
    let places = Arc::new(Semaphore::new(PARALLEL));
    let inventory = shared.inventory();
    let mut asked = JoinSet::new();
    for host in inventory.hosts.values().cloned() {
        let (shared, places, inventory) = (shared.clone(), places.clone(), inventory.clone());
        asked.spawn(async move {
            let _place = places.acquire().await;
            let claim = match agent::record(&shared.ssh, &host).await {
                Ok(report) => claim(&inventory, &host, &report),
                Err(error) => Claim::Unknown(error.to_string()),
            };
            (host.name, claim)
        });
    }
    let mut compared: Vec<Comparison> = asked
        .join_all()
        .await
        .into_iter()
        .filter_map(|(name, claim)| Some(Comparison { stored: handle.get(&name)?, name, claim }))
        .collect();
    compared.sort_by(|a, b| a.name.cmp(&b.name));
    compared
}

/// What a host's answer amounts to.
fn claim(inventory: &Inventory, host: &Host, report: &Report) -> Claim {
    let Some(bytes) = &report.record else { return Claim::Free };
    let record: HostRecord = match serde_json::from_slice(bytes) {
        Ok(record) => record,
        Err(error) => return Claim::Unclear(format!("it cannot be read: {error}")),
    };
    let metadata_bytes: usize = record.metadata.iter().map(|(key, value)| key.len() + value.len()).sum();
    if record.format != RECORD_FORMAT || metadata_bytes > METADATA_LIMIT_BYTES {
        return Claim::Unclear(format!("format {} with {metadata_bytes} bytes of metadata", record.format));
    }
    if record.machine != host.name || record.provider != inventory.provider {
        let (machine, provider) = (Quoted(&record.machine), Quoted(&record.provider));
        return Claim::Unclear(format!("it is about machine {machine} of provider {provider}"));
    }
    match (record.kind.as_str(), &report.standing) {
        ("Configure", Standing::Ended(0)) if !record.cluster.is_empty() => {
            Claim::Bound { cluster: record.cluster, metadata: record.metadata }
        }
        ("Create" | "Drain" | "Delete", Standing::Ended(0)) => Claim::Free,
        (kind, standing) => Claim::Unclear(format!("its last job, {}, is {standing:?}", Quoted(kind))),
    }
}

/// Changes the store to what a host says.
pub(crate) async fn apply(handle: &Handle, provider: &str, comparison: &Comparison) -> Result<(), String> {
    let Claim::Bound { cluster, metadata } = &comparison.claim else { return Ok(()) };
    let change = |machine: &mut Machine| {
        machine.state = MachineState::Configured.to_wire();
        machine.host = Some(HostRef { provider: provider.into(), r#ref: machine.id.clone() });
        machine.cluster.clone_from(cluster);
        machine.shard_metadata.clone_from(metadata);
    };
    handle.update(&comparison.name, change).await.map(drop).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(record: Option<&str>, standing: Standing) -> Report {
        Report {
            standing,
            operation: "op".into(),
            boot_id: "b".into(),
            output: String::new(),
            record: record.map(|text| text.as_bytes().to_vec()),
            machine_id: "m".into(),
            cpus: None,
            memory_kib: None,
        }
    }

    #[test]
    fn a_copy_counts_for_the_host_it_was_found_on_and_for_nothing_else() {
        let inventory = crate::inventory::parse(
            "defaults: {zone: z, type: t, price_per_hour: 1, resources: {cpu: 1}}\nhosts: [{name: a, address: x}]\n",
        )
        .expect("good");
        let host = &inventory.hosts["a"];
        let claimed = |record: Option<&str>, standing| claim(&inventory, host, &report(record, standing));
        let record = r#"{"format":1,"provider":"metal","machine":"a","operation":"op","kind":"Configure","cluster":"c","metadata":{"k":"\u0000"}}"#;
        let bound =
            Claim::Bound { cluster: "c".into(), metadata: BTreeMap::from([("k".into(), "\0".into())]) };
        assert_eq!(claimed(Some(record), Standing::Ended(0)), bound);
        assert_eq!(claimed(None, Standing::None), Claim::Free);
        assert_eq!(claimed(Some(&record.replace("Configure", "Drain")), Standing::Ended(0)), Claim::Free);
        for (record, standing) in [
            (record.to_owned(), Standing::Ended(1)),
            (record.to_owned(), Standing::Running),
            (record.replace("\"a\"", "\"b\""), Standing::Ended(0)),
            (record.replace("metal", "other"), Standing::Ended(0)),
            (record.replace("\"format\":1", "\"format\":2"), Standing::Ended(0)),
            (record[..40].to_owned(), Standing::Ended(0)),
        ] {
            assert!(matches!(claimed(Some(&record), standing), Claim::Unclear(_)), "{record}");
        }
    }
}
