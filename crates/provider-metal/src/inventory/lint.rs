//! Checks an inventory: every rule looks at the whole file, so that people mend it once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use bigfleet_model::text::Quoted;

use super::raw::{At, RawBmc, RawBounds, RawHooks, RawHost, RawInventory, RawWatch};
use super::{
    Bmc, Bounds, Finding, HOST_LIMIT, Hooks, Host, HostKey, Inventory, Missing, SshAccess, Unknown, Watch,
};

/// A month, for prices: a twelfth of 365 days.
const HOURS_PER_MONTH: f64 = 730.0;
const NAME_LIMIT_CHARS: usize = 63;
const TEXT_LIMIT_BYTES: usize = 1024;
const HOOK_LIMIT_BYTES: usize = 256 << 10;
const ENTRY_LIMIT: usize = 64;
const HOST_KEY_TYPES: [&str; 7] = [
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// What was found so far.
#[derive(Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, line: u64, reason: impl Into<String>) {
        self.0.push(Finding { line, reason: reason.into() });
    }

    /// The value, if `wrong` has nothing to say about it.
    fn take<T: Clone>(&mut self, at: &At<T>, wrong: impl FnOnce(&T) -> Option<String>) -> Option<T> {
        match wrong(&at.value) {
            None => Some(at.value.clone()),
            Some(reason) => {
                self.add(line(at), reason);
                None
            }
        }
    }
}

fn line<T>(at: &At<T>) -> u64 {
    at.referenced.line()
}

pub(super) fn check(raw: RawInventory, missing: Missing) -> Result<(Inventory, Unknown), Vec<Finding>> {
    let mut found = Findings::default();
    let provider = raw
        .provider
        .as_ref()
        .map_or_else(|| Some("metal".to_owned()), |at| found.take(at, |text| bad_name("provider", text)));
    let mut hosts = BTreeMap::new();
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    let mut addresses: BTreeMap<(String, u16), String> = BTreeMap::new();
    let mut unknown = Vec::new();
    if let Some(name) = &raw.defaults.name {
        found.add(line(name), "defaults cannot give a name: every host needs its own");
    }
    let listed = raw.hosts.unwrap_or_default();
    if listed.is_empty() {
        found.add(0, "it lists no hosts; write at least one under `hosts:`");
    }
    if listed.len() > HOST_LIMIT {
        found.add(
            0,
            format!("it lists {} hosts; a provider takes at most {HOST_LIMIT}: use several", listed.len()),
        );
    }
    for at in listed.iter().take(HOST_LIMIT) {
        let place = line(at);
        let (host, lacks_resources) = host(&mut found, place, &at.value, &raw.defaults, missing);
        let Some(host) = host else { continue };
        if let Some(first) = lines.get(&host.name) {
            found.add(place, format!("host {} is there already, in line {first}", Quoted(&host.name)));
            continue;
        }
        let reached = (host.ssh.address.to_ascii_lowercase(), host.ssh.port);
        if let Some(other) = addresses.get(&reached) {
            let (address, port) = &reached;
            let reason = format!(
                "host {} has the address {address} port {port} of host {}",
                Quoted(&host.name),
                Quoted(other)
            );
            found.add(place, reason);
            continue;
        }
        if lacks_resources {
            unknown.push((host.name.clone(), place));
        }
        addresses.insert(reached, host.name.clone());
        lines.insert(host.name.clone(), place);
        hosts.insert(host.name.clone(), host);
    }
    let hooks = hooks(&mut found, raw.hooks);
    let bounds = bounds(&mut found, &raw.bounds);
    let watch = watch(&mut found, &raw.watch);
    let mut findings = found.0;
    findings.sort_by_key(|finding| finding.line);
    match provider {
        Some(provider) if findings.is_empty() => {
            Ok((Inventory { provider, hosts, hooks, bounds, watch }, unknown))
        }
        _ => Err(findings),
    }
}

/// One host with the defaults filled in; none if something is wrong with it.
fn host(
    found: &mut Findings,
    place: u64,
    own: &RawHost,
    defaults: &RawHost,
    missing: Missing,
) -> (Option<Host>, bool) {
    let before = found.0.len();
    let called =
        own.name.as_ref().map_or_else(|| "without a name".to_owned(), |at| Quoted(&at.value).to_string());
    let name = own.name.as_ref().and_then(|at| found.take(at, |text| bad_name("name", text)));
    if own.name.is_none() {
        found.add(place, "host without a name: write `name:`, it becomes the machine id");
    }
    let mut text = |field: &str, at: Option<&At<String>>, needed: bool| {
        if at.is_none() && needed {
            let reason = format!("host {called} has no {field}: write `{field}:`, here or under `defaults:`");
            found.add(place, reason);
        }
        at.and_then(|at| found.take(at, |text| bad_text(field, text))).unwrap_or_default()
    };
    let address = text("address", own.address.as_ref().or(defaults.address.as_ref()), true);
    let user = text("user", own.user.as_ref().or(defaults.user.as_ref()), false);
    let instance_type = text("type", own.instance_type.as_ref().or(defaults.instance_type.as_ref()), true);
    let zone = text("zone", own.zone.as_ref().or(defaults.zone.as_ref()), true);
    let rack = text("rack", own.rack.as_ref().or(defaults.rack.as_ref()), false);
    let folder = text("work_folder", own.work_folder.as_ref().or(defaults.work_folder.as_ref()), false);
    let work_folder = if folder.is_empty() { "/var/lib/bigfleet".to_owned() } else { folder };
    for (field, value) in [("address", &address), ("user", &user)] {
        if !value.is_empty() && !is_plain(value) {
            found.add(
                place,
                format!("host {called}: {field} {} is no host name, address or user name", Quoted(value)),
            );
        }
    }
    if !is_absolute_plain(&work_folder) {
        found.add(
            place,
            format!(
                "host {called}: work_folder {} must be an absolute path of letters, digits and ._-/ below /",
                Quoted(&work_folder)
            ),
        );
    }
    let port = own.port.as_ref().or(defaults.port.as_ref());
    if port.is_some_and(|at| at.value == 0) {
        found.add(place, format!("host {called}: port 0 is none"));
    }
    let file = |found: &mut Findings, field: &str, at: Option<&At<String>>| {
        let at = at?;
        if let Err(error) = std::fs::metadata(&at.value) {
            found.add(line(at), format!("{field} {}: {error}", Quoted(&at.value)));
        }
        Some(PathBuf::from(&at.value))
    };
    let ssh = SshAccess {
        address,
        port: port.map_or(22, |at| at.value),
        user: if user.is_empty() { "root".into() } else { user },
        sudo: own.sudo.or(defaults.sudo).unwrap_or(false),
        key_file: file(found, "key_file", own.key_file.as_ref().or(defaults.key_file.as_ref())),
        config_file: file(found, "ssh_config", own.ssh_config.as_ref().or(defaults.ssh_config.as_ref())),
        host_key: host_key(found, own, defaults),
        work_folder,
    };
    let raw_bmc = own.bmc.as_ref().or(defaults.bmc.as_ref());
    let bmc = raw_bmc.and_then(|at| bmc(found, line(at), &at.value));
    let always_on = own.always_on.as_ref().or(defaults.always_on.as_ref());
    if always_on.is_some_and(|at| !at.value) && raw_bmc.is_none() {
        found.add(place, format!("host {called} is not always_on and has no bmc: nobody could power it on"));
    }
    let price_usd_per_hour = price(found, place, &called, own, defaults);
    let is_reserved = own.capacity_type.as_ref().or(defaults.capacity_type.as_ref()).is_some_and(|at| {
        if !["bare-metal", "reserved"].contains(&at.value.as_str()) {
            found.add(
                line(at),
                format!("capacity_type {} is neither bare-metal nor reserved", Quoted(&at.value)),
            );
        }
        at.value == "reserved"
    });
    let resources = own.resources.as_ref().or(defaults.resources.as_ref());
    if resources.is_none() && missing == Missing::Refused {
        found.add(place, format!("host {called} has no resources: write them, or let `bigfleet provider metal discover` ask the host"));
    }
    let mut labels = defaults.labels.as_ref().map(|at| at.value.clone()).unwrap_or_default();
    labels.extend(own.labels.iter().flat_map(|at| at.value.clone()));
    let resource_map = resources.map(|at| at.value.clone()).unwrap_or_default();
    for (field, entries) in [("labels", &labels), ("resources", &resource_map)] {
        if entries.len() > ENTRY_LIMIT {
            found.add(
                place,
                format!("host {called} has {} {field}; at most {ENTRY_LIMIT} are taken", entries.len()),
            );
        }
        let long = entries
            .iter()
            .find(|(key, value)| key.len() > TEXT_LIMIT_BYTES || value.len() > TEXT_LIMIT_BYTES);
        if let Some((key, _)) = long {
            found.add(
                place,
                format!("host {called}: {field} {} is longer than {TEXT_LIMIT_BYTES} bytes", Quoted(key)),
            );
        }
    }
    let Some(name) = name.filter(|_| found.0.len() == before) else { return (None, false) };
    let host = Host {
        name,
        ssh,
        bmc,
        always_on: always_on.is_none_or(|at| at.value),
        rack,
        instance_type,
        zone,
        labels,
        resources: resource_map,
        allocatable: own.allocatable.as_ref().or(defaults.allocatable.as_ref()).map(|at| at.value.clone()),
        price_usd_per_hour,
        is_reserved,
    };
    // The kit knows what a shard would refuse; here it gets a line.
    if let Err(error) = host.offering().check() {
        let at =
            own.resources.as_ref().filter(|_| error.to_string().contains("resource")).map_or(place, line);
        found.add(at, error.to_string());
        return (None, false);
    }
    (Some(host), resources.is_none())
}

fn host_key(found: &mut Findings, own: &RawHost, defaults: &RawHost) -> HostKey {
    if let Some(at) = &own.host_key {
        let mut words = at.value.split_ascii_whitespace();
        let (kind, key) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let is_base64 = |key: &str| {
            key.len() >= 32 && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
        };
        if !HOST_KEY_TYPES.contains(&kind) || !is_base64(key) {
            found.add(
                line(at),
                format!("host_key {} is no public key such as `ssh-ed25519 AAAA..`", Quoted(&at.value)),
            );
        }
        return HostKey::Pinned(format!("{kind} {key}"));
    }
    if let Some(at) = &defaults.host_key {
        found.add(line(at), "defaults cannot give a host_key: every host has its own");
    }
    match own.known_hosts.as_ref().or(defaults.known_hosts.as_ref()) {
        Some(at) => {
            if let Err(error) = std::fs::metadata(&at.value) {
                found.add(line(at), format!("known_hosts {}: {error}", Quoted(&at.value)));
            }
            HostKey::KnownHosts(PathBuf::from(&at.value))
        }
        None => HostKey::FirstUse,
    }
}

fn bmc(found: &mut Findings, place: u64, raw: &RawBmc) -> Option<Bmc> {
    let Some(url) = &raw.url else {
        found.add(place, "bmc without a url: write `url: https://..`");
        return None;
    };
    let plain = url.value.strip_prefix("https://").or_else(|| url.value.strip_prefix("http://"));
    let authority = plain.map(|rest| rest.trim_end_matches('/')).filter(|rest| {
        !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:[]".contains(&b))
    });
    let Some(authority) = authority else {
        found.add(
            line(url),
            format!("bmc url {} is not https://host or https://host:port", Quoted(&url.value)),
        );
        return None;
    };
    let scheme = if url.value.starts_with("https://") { "https" } else { "http" };
    if let Some(system) = raw.system.as_ref().filter(|at| !is_absolute_plain(&at.value)) {
        found.add(
            line(system),
            format!("bmc system {} is no path such as /redfish/v1/Systems/1", Quoted(&system.value)),
        );
    }
    if let Some(password) = &raw.password
        && let Err(error) = password.value.check()
    {
        found.add(line(password), format!("bmc password: {error}"));
    }
    if raw.user.is_some() != raw.password.is_some() {
        found.add(place, "bmc needs both user and password, or neither");
    }
    if let Some(ca) = &raw.ca_file
        && let Err(error) = std::fs::metadata(&ca.value)
    {
        found.add(line(ca), format!("bmc ca_file {}: {error}", Quoted(&ca.value)));
    }
    if scheme == "https" && raw.ca_file.is_none() {
        found.add(place, "bmc over https needs a ca_file: the CA, or the controller's own certificate");
    }
    Some(Bmc {
        url: format!("{scheme}://{authority}"),
        system: raw.system.as_ref().map(|at| at.value.clone()),
        user: raw.user.as_ref().map(|at| at.value.clone()),
        password: raw.password.as_ref().map(|at| at.value.clone()),
        ca_file: raw.ca_file.as_ref().map(|at| PathBuf::from(&at.value)),
    })
}

fn price(found: &mut Findings, place: u64, called: &str, own: &RawHost, defaults: &RawHost) -> f64 {
    let (hour, month) = match (&own.price_per_hour, &own.price_per_month) {
        (None, None) => (defaults.price_per_hour.as_ref(), defaults.price_per_month.as_ref()),
        (hour, month) => (hour.as_ref(), month.as_ref()),
    };
    let (at, hours) = match (hour, month) {
        (Some(hour), None) => (hour, 1.0),
        (None, Some(month)) => (month, HOURS_PER_MONTH),
        (None, None) => {
            found.add(
                place,
                format!(
                    "host {called} has no price: write price_per_hour or price_per_month, 0 if it is paid for"
                ),
            );
            return 0.0;
        }
        (Some(hour), Some(_)) => {
            found.add(
                line(hour),
                format!("host {called} has two prices: write price_per_hour or price_per_month"),
            );
            return 0.0;
        }
    };
    if !at.value.is_finite() || at.value < 0.0 {
        found.add(line(at), format!("host {called}: {} is no price", at.value));
        return 0.0;
    }
    at.value / hours
}

fn hooks(found: &mut Findings, raw: RawHooks) -> Hooks {
    let mut hooks = Hooks::default();
    let given = [
        ("join", raw.join, &mut hooks.join),
        ("ready", raw.ready, &mut hooks.ready),
        ("reset", raw.reset, &mut hooks.reset),
        ("clean", raw.clean, &mut hooks.clean),
    ];
    for (name, at, hook) in given {
        let Some(at) = at else { continue };
        if at.value.trim().is_empty() || at.value.len() > HOOK_LIMIT_BYTES {
            found.add(
                line(&at),
                format!("hook {name} has {} bytes; it needs 1 to {HOOK_LIMIT_BYTES}", at.value.len()),
            );
        }
        *hook = at.value;
    }
    hooks
}

fn bounds(found: &mut Findings, raw: &RawBounds) -> Bounds {
    let mut bounds = Bounds::default();
    for (name, at, bound) in [
        ("parallel", &raw.parallel, &mut bounds.parallel),
        ("parallel_per_rack", &raw.parallel_per_rack, &mut bounds.parallel_per_rack),
    ] {
        if let Some(count) = at.as_ref().and_then(|at| within(found, name, at, 1, 1024)) {
            *bound = count as usize;
        }
    }
    for (name, at, bound) in [
        ("queue_secs", &raw.queue_secs, &mut bounds.queue),
        ("create_secs", &raw.create_secs, &mut bounds.create),
        ("configure_secs", &raw.configure_secs, &mut bounds.configure),
        ("drain_secs", &raw.drain_secs, &mut bounds.drain),
        ("delete_secs", &raw.delete_secs, &mut bounds.delete),
    ] {
        if let Some(secs) = at.as_ref().and_then(|at| within(found, name, at, 1, 86_400)) {
            *bound = Duration::from_secs(secs);
        }
    }
    if let Some(at) = &raw.leave_grace_secs
        && let Some(secs) = within(found, "leave_grace_secs", at, 0, 86_400)
    {
        bounds.leave_grace = Duration::from_secs(secs);
    }
    bounds
}

fn watch(found: &mut Findings, raw: &RawWatch) -> Watch {
    let mut watch = Watch::default();
    for (name, at, period) in [
        ("ssh_secs", &raw.ssh_secs, &mut watch.ssh),
        ("boot_id_secs", &raw.boot_id_secs, &mut watch.boot_id),
        ("redfish_secs", &raw.redfish_secs, &mut watch.redfish),
    ] {
        if let Some(secs) = at.as_ref().and_then(|at| within(found, name, at, 1, 86_400)) {
            *period = Duration::from_secs(secs);
        }
    }
    watch
}

fn within(found: &mut Findings, name: &str, at: &At<u64>, least: u64, most: u64) -> Option<u64> {
    found.take(at, |count| {
        (!(least..=most).contains(count)).then(|| format!("{name} is {count}; it must be {least} to {most}"))
    })
}

fn bad_name(field: &str, text: &str) -> Option<String> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let fits = !text.is_empty() && text.len() <= NAME_LIMIT_CHARS && text.chars().all(is_good);
    let opens = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    (!fits || !opens).then(|| {
        let shown = Quoted(text);
        format!("{field} {shown} must be 1 to {NAME_LIMIT_CHARS} letters, digits and ._- and begin with a letter or digit")
    })
}

fn bad_text(field: &str, text: &str) -> Option<String> {
    let bad = text.is_empty() || text.len() > TEXT_LIMIT_BYTES || text.chars().any(char::is_control);
    bad.then(|| {
        format!(
            "{field} {} is empty, longer than {TEXT_LIMIT_BYTES} bytes or has control characters",
            Quoted(text)
        )
    })
}

/// Nothing that a command line could take for something else.
fn is_plain(text: &str) -> bool {
    !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:%".contains(c))
}

fn is_absolute_plain(text: &str) -> bool {
    text.len() > 1
        && text.starts_with('/')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c))
        && !text.split('/').any(|part| part == "..")
}
