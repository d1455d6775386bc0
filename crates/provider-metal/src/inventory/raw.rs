//! The shape of an inventory file as people write it, before anything is checked. Every value knows its line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_saphyr::Spanned;

use super::Finding;
use super::secret::SecretRef;

/// A value with its place in the file.
pub(super) type At<T> = Spanned<T>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInventory {
    pub(super) provider: Option<At<String>>,
    #[serde(default)]
    pub(super) defaults: RawHost,
    pub(super) hosts: Option<Vec<At<RawHost>>>,
    #[serde(default)]
    pub(super) hooks: RawHooks,
    #[serde(default)]
    pub(super) bounds: RawBounds,
    #[serde(default)]
    pub(super) watch: RawWatch,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHost {
    pub(super) name: Option<At<String>>,
    pub(super) address: Option<At<String>>,
    pub(super) port: Option<At<u16>>,
    pub(super) user: Option<At<String>>,
    pub(super) sudo: Option<bool>,
    pub(super) key_file: Option<At<String>>,
    pub(super) ssh_config: Option<At<String>>,
    pub(super) host_key: Option<At<String>>,
    pub(super) known_hosts: Option<At<String>>,
    pub(super) work_folder: Option<At<String>>,
    #[serde(rename = "type")]
    pub(super) instance_type: Option<At<String>>,
    pub(super) zone: Option<At<String>>,
    pub(super) rack: Option<At<String>>,
    pub(super) labels: Option<At<BTreeMap<String, String>>>,
    pub(super) resources: Option<At<BTreeMap<String, String>>>,
    pub(super) allocatable: Option<At<BTreeMap<String, String>>>,
    pub(super) price_per_hour: Option<At<f64>>,
    pub(super) price_per_month: Option<At<f64>>,
    pub(super) capacity_type: Option<At<String>>,
    pub(super) always_on: Option<At<bool>>,
    pub(super) bmc: Option<At<RawBmc>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBmc {
    pub(super) url: Option<At<String>>,
    pub(super) system: Option<At<String>>,
    pub(super) user: Option<At<String>>,
    pub(super) password: Option<At<SecretRef>>,
    pub(super) ca_file: Option<At<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawHooks {
    pub(super) join: Option<At<String>>,
    pub(super) ready: Option<At<String>>,
    pub(super) reset: Option<At<String>>,
    pub(super) clean: Option<At<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBounds {
    pub(super) parallel: Option<At<u64>>,
    pub(super) parallel_per_rack: Option<At<u64>>,
    pub(super) queue_secs: Option<At<u64>>,
    pub(super) create_secs: Option<At<u64>>,
    pub(super) configure_secs: Option<At<u64>>,
    pub(super) drain_secs: Option<At<u64>>,
    pub(super) delete_secs: Option<At<u64>>,
    pub(super) leave_grace_secs: Option<At<u64>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the names people write, with their unit")]
pub(super) struct RawWatch {
    pub(super) ssh_secs: Option<At<u64>>,
    pub(super) boot_id_secs: Option<At<u64>>,
    pub(super) redfish_secs: Option<At<u64>>,
}

/// Reads YAML of the right shape. A wrong shape ends the reading, so it is one finding.
pub(super) fn parse(text: &str) -> Result<RawInventory, Vec<Finding>> {
    serde_saphyr::from_str(text).map_err(|error| {
        let line = error.location().map_or(0, |at| at.line());
        let said = error.without_snippet().to_string();
        // The first line is the reason; what may follow repeats the file.
        let reason = said.lines().next().unwrap_or_default().chars().filter(|c| !c.is_control()).take(300);
        vec![Finding { line, reason: reason.collect() }]
    })
}
