//! `bigfleet support-bundle`: what somebody who helps needs to see, without the names of anybody.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use bigfleet_tell::Shown;
use bigfleet_view::v1::{
    GetCostsRequest, GetProviderTruthRequest, GetRailsRequest, GetSummaryRequest, GetVersionRequest,
    LintRequest, ListClustersRequest, ListDecisionsRequest, ListMachinesRequest, ListNeedsRequest,
    ListOffersRequest, ListProvidersRequest,
};
use prost::Message;
use serde_json::{Map, Value};
use tokio_stream::StreamExt;

use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{Progress, note};
use crate::reach::{Shard, block_on};
use crate::version::BUILD;

/// Write what somebody who helps needs to see into one file, with names redacted.
///
/// One JSON object a line: versions, summary, rails, clusters, needs, machines, offers, providers, decisions, costs, lints.
/// Every text that is not a known code, a quantity or a time becomes a token: the same text the same token, in one bundle.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet support-bundle bundle.jsonl
  bigfleet support-bundle bundle.jsonl --with-names")]
pub(crate) struct Args {
    /// The file to write; must not exist
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Leave names as they are
    #[arg(long)]
    with_names: bool,
    #[command(flatten)]
    reach: Reach,
}

/// Fields whose texts are codes of ours, and say nothing about anybody.
const CODES: &[&str] = &[
    "state",
    "capacity_type",
    "kind",
    "fate",
    "reason",
    "rule",
    "step",
    "trouble",
    "code",
    "severity",
    "about",
    "cause",
    "method",
    "fix",
    "operator",
    "api_version",
    "server_version",
    "section",
    "protocol",
    "role",
];

/// Replaces texts by tokens that are the same for the same text within this bundle.
struct Redaction {
    salt: u64,
    keeps_names: bool,
}

impl Redaction {
    fn token(&self, text: &str) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.salt;
        for byte in text.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        hash ^= hash >> 32;
        format!("x-{:08x}", hash & 0xffff_ffff)
    }

    fn value(&self, field: &str, value: Value) -> Value {
        match value {
            Value::String(text) if !self.keeps_names && !CODES.contains(&field) && !is_plain(&text) => {
                Value::String(self.token(&text))
            }
            Value::Array(all) => all.into_iter().map(|one| self.value(field, one)).collect(),
            Value::Object(all) => {
                // Labels and amounts are maps: their keys are names as well, but those of resources are needed.
                let is_map = matches!(field, "labels");
                let entry = |(key, value): (String, Value)| {
                    let value = self.value(&key, value);
                    (if is_map && !self.keeps_names { self.token(&key) } else { key }, value)
                };
                Value::Object(all.into_iter().map(entry).collect::<Map<_, _>>())
            }
            other => other,
        }
    }
}

/// Nothing, a number, an amount or a time: `7500m`, `16Gi`, `2026-11-15T14:02:10Z`.
fn is_plain(text: &str) -> bool {
    let number = text.trim_end_matches(|letter: char| "mkKMGTPEi".contains(letter));
    text.is_empty() || number.parse::<f64>().is_ok() || text.parse::<jiff::Timestamp>().is_ok()
}

struct Bundle<'a> {
    out: BufWriter<std::fs::File>,
    redaction: Redaction,
    shard: &'a Shard,
    lines: u64,
}

impl Bundle<'_> {
    fn line(&mut self, section: &str, name: &str, message: &impl Message) -> anyhow::Result<()> {
        let value = serde_json::to_value(Shown::new(name, message))?;
        let mut line = Map::new();
        line.insert("section".into(), section.into());
        line.insert(section.into(), self.redaction.value(section, value));
        serde_json::to_writer(&mut self.out, &Value::Object(line))?;
        self.out.write_all(b"\n")?;
        self.lines += 1;
        Ok(())
    }

    /// What could not be had is said in its place; the rest is worth having.
    fn missing(&mut self, section: &str, why: &str) -> anyhow::Result<()> {
        let line =
            serde_json::json!({"section": section, "missing": self.redaction.value("", Value::from(why))});
        serde_json::to_writer(&mut self.out, &line)?;
        self.out.write_all(b"\n")?;
        Ok(())
    }
}

macro_rules! one {
    ($bundle:ident, $section:literal, $method:ident, $request:expr, $name:literal) => {
        let request = $request;
        match $bundle.shard.ask(|mut client| async move { client.$method(request).await }).await {
            Ok(answer) => $bundle.line($section, $name, &answer)?,
            Err(trouble) => $bundle.missing($section, &trouble.to_string())?,
        }
    };
}

macro_rules! pages {
    ($bundle:ident, $section:literal, $method:ident, $request:expr, $name:literal, $items:ident) => {
        let request = $request;
        match $bundle.shard.ask(|mut client| async move { client.$method(request).await }).await {
            Ok(mut pages) => {
                while let Some(page) = pages.next().await {
                    match page {
                        Ok(page) => {
                            for item in &page.$items {
                                $bundle.line($section, $name, item)?;
                            }
                        }
                        Err(status) => {
                            let text = $bundle.shard.trouble(&status).to_string();
                            $bundle.missing($section, &text)?;
                        }
                    }
                }
            }
            Err(trouble) => $bundle.missing($section, &trouble.to_string())?,
        }
    };
}

/// Asks everything and writes it down.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let lines = block_on(async {
        let shard = Shard::new(&args.reach)?.patient_for(std::time::Duration::from_mins(2));
        // A server that cannot be reached is told as that, not as a bundle without anything in it.
        let version = shard.version().await?;
        let file = OpenOptions::new().write(true).create_new(true).open(&args.file);
        let file = file.with_context(|| args.file.display().to_string())?;
        let redaction = Redaction { salt: salt(version.started_unix_nanos), keeps_names: args.with_names };
        let mut bundle = Bundle { out: BufWriter::new(file), redaction, shard: &shard, lines: 0 };
        let progress = Progress::begin("gathering");
        gather(&mut bundle).await?;
        drop(progress);
        bundle.out.flush()?;
        Ok(bundle.lines)
    })?;
    let names = if args.with_names { "with names" } else { "names redacted" };
    note(&format!("{lines} lines written to {} ({names})", args.file.display()));
    Ok(ExitCode::SUCCESS)
}

/// What names are hashed with. Nobody may guess it: whoever could, could try names.
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this one must differ from run to run, and nothing is decided by it"
)]
fn salt(seed: i64) -> u64 {
    std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), seed)
}

async fn gather(bundle: &mut Bundle<'_>) -> anyhow::Result<()> {
    let client = serde_json::json!({"section": "client", "client": BUILD});
    serde_json::to_writer(&mut bundle.out, &client)?;
    bundle.out.write_all(b"\n")?;
    one!(bundle, "version", get_version, GetVersionRequest {}, "Version");
    one!(bundle, "summary", get_summary, GetSummaryRequest { decisions: 50 }, "Summary");
    one!(bundle, "rails", get_rails, GetRailsRequest::default(), "Rails");
    one!(bundle, "costs", get_costs, GetCostsRequest::default(), "Costs");
    one!(bundle, "lint", lint, LintRequest::default(), "LintAnswer");
    one!(bundle, "truth", get_provider_truth, GetProviderTruthRequest::default(), "ProviderTruth");
    pages!(bundle, "provider", list_providers, ListProvidersRequest::default(), "Provider", providers);
    pages!(bundle, "cluster", list_clusters, ListClustersRequest::default(), "Cluster", clusters);
    pages!(bundle, "need", list_needs, ListNeedsRequest::default(), "Need", needs);
    pages!(bundle, "offer", list_offers, ListOffersRequest::default(), "Offer", offers);
    let machines = ListMachinesRequest { limit: 5000, ..ListMachinesRequest::default() };
    pages!(bundle, "machine", list_machines, machines, "Machine", machines);
    let decisions = ListDecisionsRequest { limit: 2000, fold: true, ..ListDecisionsRequest::default() };
    pages!(bundle, "decision", list_decisions, decisions, "Decision", decisions);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_and_codes_amounts_and_times_stay() {
        let redaction = Redaction { salt: 7, keeps_names: false };
        let value = serde_json::json!({
            "machine": "aws-0031", "state": "configured", "cluster": "shop", "usd_per_hour": 0.1,
            "provides": {"cpu": "7500m", "memory": "16Gi"}, "since": "2026-11-15T14:02:10Z",
            "labels": {"team": "payments"}, "need": {"cluster": "shop"},
        });
        let told = redaction.value("machine", value);
        let text = told.to_string();
        for secret in ["aws-0031", "shop", "payments", "team"] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        assert_eq!((&told["state"], &told["provides"]["cpu"]), (&"configured".into(), &"7500m".into()));
        assert_eq!(told["since"], "2026-11-15T14:02:10Z");
        assert_eq!(told["cluster"], told["need"]["cluster"], "the same text is the same token");
        let named =
            Redaction { salt: 7, keeps_names: true }.value("x", serde_json::json!({"cluster": "shop"}));
        assert_eq!(named["cluster"], "shop");
    }
}
