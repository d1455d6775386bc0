//! Asking hosts what they are made of, for those whose lines do not say it. What is found is shown as a diff of
//! the inventory file; only when told to is it written there.

use std::fmt::Write as _;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::agent;
use crate::inventory::{self, Finding, Host};
use crate::ssh::Ssh;

/// How many hosts are asked at once.
const PARALLEL: usize = 32;

/// What was found, as it would stand in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Discovery {
    /// Host, the line its entry begins in, and what it is made of.
    found: Vec<(String, u64, String)>,
    /// Hosts that could not be asked, with the reason.
    pub(crate) failed: Vec<(String, String)>,
}

/// Asks every host without resources.
pub(crate) async fn discover(ssh: &Ssh, text: &str) -> Result<Discovery, Vec<Finding>> {
    let (inventory, unknown) = inventory::parse_to_discover(text)?;
    let places = Arc::new(Semaphore::new(PARALLEL));
    let mut asked = JoinSet::new();
    for (name, line) in unknown {
        let (ssh, host, places) = (ssh.clone(), inventory.hosts[&name].clone(), places.clone());
        asked.spawn(async move {
            let _place = places.acquire().await;
            (name, line, resources(&ssh, &host).await)
        });
    }
    let mut discovery = Discovery::default();
    for (name, line, answer) in asked.join_all().await {
        match answer {
            Ok(resources) => discovery.found.push((name, line, resources)),
            Err(reason) => discovery.failed.push((name, reason)),
        }
    }
    discovery.found.sort_by_key(|(_, line, _)| *line);
    discovery.failed.sort();
    Ok(discovery)
}

async fn resources(ssh: &Ssh, host: &Host) -> Result<String, String> {
    let seen = agent::probe(ssh, host).await.map_err(|error| error.to_string())?;
    let is_sane = |count: &u64| (1..1 << 40).contains(count);
    let cpus = seen.cpus.filter(is_sane).ok_or("it does not say how many processors it has")?;
    let memory = seen.memory_kib.filter(is_sane).ok_or("it does not say how much memory it has")?;
    Ok(format!("resources: {{cpu: \"{cpus}\", memory: {memory}Ki}}"))
}

impl Discovery {
    /// The lines that would be added, with the line before each.
    pub(crate) fn diff(&self, text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let mut diff = String::new();
        for (name, line, resources) in &self.found {
            let at = *line as usize;
            let before = lines.get(at - 1).copied().unwrap_or_default();
            let added = insertion(before, resources)
                .unwrap_or_else(|| format!("(by hand: host {name} is written in one line) {resources}"));
            let _ = writeln!(diff, "@@ line {at} @@\n {before}\n+{added}");
        }
        for (name, reason) in &self.failed {
            let _ = writeln!(diff, "! {name}: {reason}");
        }
        diff
    }

    /// The file with the lines added.
    pub(crate) fn applied(&self, text: &str) -> Result<String, String> {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (name, line, resources) in self.found.iter().rev() {
            let before = lines.get(*line as usize - 1).map(String::as_str).unwrap_or_default();
            let added = insertion(before, resources)
                .ok_or_else(|| format!("host {name} is written in one line: add {resources} by hand"))?;
            lines.insert(*line as usize, added);
        }
        let new = lines.join("\n") + "\n";
        inventory::parse(&new)
            .map_err(|findings| format!("the file would still be refused: {}", findings[0]))?;
        Ok(new)
    }
}

/// The new line after `before`, the first of a host: `  - name: a`. None if the entry does not go on below it.
fn insertion(before: &str, resources: &str) -> Option<String> {
    let indent = before.find("- ")? + 2;
    let is_block = before[indent - 2..].starts_with("- ") && !before[indent..].trim_start().starts_with('{');
    let opens = before[..indent - 2].trim().is_empty();
    (is_block && opens).then(|| format!("{:indent$}{resources}", ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "defaults: {zone: z, type: t, price_per_hour: 1}\nhosts:\n  - name: a\n    address: 10.0.0.1\n  - address: 10.0.0.2\n    name: b\n";

    fn found() -> Discovery {
        let found =
            |name: &str, line| (name.to_owned(), line, "resources: {cpu: \"2\", memory: 4Ki}".to_owned());
        Discovery { found: vec![found("a", 3), found("b", 5)], failed: vec![("c".into(), "no".into())] }
    }

    #[test]
    fn what_is_found_is_shown_before_it_is_written() {
        assert_eq!(
            found().diff(TEXT),
            "@@ line 3 @@\n   - name: a\n+    resources: {cpu: \"2\", memory: 4Ki}\n@@ line 5 @@\n   - address: 10.0.0.2\n+    resources: {cpu: \"2\", memory: 4Ki}\n! c: no\n"
        );
        let new = found().applied(TEXT).expect("a good file");
        assert_eq!(inventory::parse(&new).expect("good").hosts["b"].offering().resources["memory"], "4Ki");
        let flow = TEXT.replace("- name: a\n    address: 10.0.0.1", "- {name: a, address: 10.0.0.1}");
        assert!(found().applied(&flow).expect_err("one line").contains("by hand"));
    }
}
