//! What is to be different, from the command line to the messages of the view.

use std::collections::BTreeMap;

use anyhow::{Context, anyhow, bail};
use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_view::v1::{self, Edit, ListClustersRequest, MachineFilter};
use tokio_stream::StreamExt;

use crate::exit::Failure;
use crate::flags::Capacity;
use crate::reach::Shard;

/// What is to be different.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "What is different")]
pub(super) struct Edits {
    /// A zone dies: all its machines and offers are gone
    #[arg(long, value_name = "ZONE")]
    zone_down: Vec<String>,
    /// A provider is gone, with all it has
    #[arg(long, value_name = "NAME")]
    provider_down: Vec<String>,
    /// A need asks for so much more or less: shop/77aa88bb=1.5
    #[arg(long, value_name = "NEED=FACTOR")]
    scale: Vec<String>,
    /// A need is withdrawn
    #[arg(long, value_name = "NEED")]
    remove: Vec<String>,
    /// A need comes: 'CLUSTER cpu=40 memory=160Gi unit.cpu=4 priority=1000'
    #[arg(long, value_name = "NEED")]
    add_need: Vec<String>,
    /// A need, or all of a cluster, has another priority: shop=1000
    #[arg(long, value_name = "NEED|CLUSTER=PRIORITY")]
    priority: Vec<String>,
    /// A need, or all of a cluster, has another interruption penalty in dollars, or pinned: batch=0
    #[arg(long, value_name = "NEED|CLUSTER=USD")]
    penalty: Vec<String>,
    /// The same for the reclamation penalty
    #[arg(long, value_name = "NEED|CLUSTER=USD")]
    reclamation: Vec<String>,
    /// Machines have another price, or so many times theirs: capacity=spot,zone=zone-b:x2, type=m5:0.19
    #[arg(long, value_name = "FILTER:USD|xFACTOR")]
    price: Vec<String>,
    /// Machines are interrupted as often as this, an hour: capacity=spot:0.01
    #[arg(long, value_name = "FILTER:PROBABILITY")]
    probability: Vec<String>,
    /// More machines like this one, free: metal-01:4, aws-0031:10@0.19
    #[arg(long, value_name = "MACHINE:COUNT[@USD]")]
    add: Vec<String>,
}

/// The two sides of the last sign.
fn split<'a>(text: &'a str, sign: char, form: &str) -> anyhow::Result<(&'a str, &'a str)> {
    let parts = text.rsplit_once(sign).filter(|(a, b)| !a.is_empty() && !b.is_empty());
    parts.with_context(|| format!("{text:?} is not of the form {form}"))
}

fn number(text: &str, what: &str) -> anyhow::Result<f64> {
    let number: f64 =
        text.trim_start_matches('$').parse().map_err(|_| anyhow!("{what}: {text:?} is not a number"))?;
    if number.is_finite() { Ok(number) } else { bail!("{what}: {text:?} is not finite") }
}

/// `capacity=spot,zone=zone-b`, or `all`.
fn filter(text: &str) -> anyhow::Result<MachineFilter> {
    let mut filter = MachineFilter::default();
    if text == "all" {
        return Ok(filter);
    }
    for part in text.split(',') {
        let (key, value) = split(part, '=', "capacity=spot,zone=zone-b")?;
        match key {
            "capacity" => {
                let capacity = <Capacity as clap::ValueEnum>::from_str(value, true);
                filter.capacity_types.push(capacity.map_err(|error| anyhow!("{part}: {error}"))?.into());
            }
            "zone" => filter.zones.push(value.to_owned()),
            "type" => filter.instance_types.push(value.to_owned()),
            "provider" => value.clone_into(&mut filter.provider),
            "cluster" => value.clone_into(&mut filter.cluster),
            "machine" => value.clone_into(&mut filter.id_prefix),
            other => {
                bail!("{other:?} is no filter; there are capacity, zone, type, provider, cluster and machine")
            }
        }
    }
    Ok(filter)
}

/// `shop cpu=40 memory=160Gi unit.cpu=4 priority=1000`.
fn need(text: &str) -> anyhow::Result<v1::AddNeed> {
    let mut words = text.split_whitespace();
    let cluster = words.next().context("a need begins with its cluster")?.to_owned();
    let (mut all, mut unit, mut priority) = (BTreeMap::new(), BTreeMap::new(), 0);
    for word in words {
        let (key, value) = split(word, '=', "cpu=40")?;
        if key == "priority" {
            priority = value.parse().with_context(|| format!("priority {value:?}"))?;
        } else if let Some(name) = key.strip_prefix("unit.") {
            unit.insert(name.to_owned(), value.to_owned());
        } else {
            all.insert(key.to_owned(), value.to_owned());
        }
    }
    if all.is_empty() {
        bail!("{text:?} asks for nothing; write 'shop cpu=40 memory=160Gi'");
    }
    let need = CapacityNeed { aggregate_resources: all, min_unit: unit, priority, ..CapacityNeed::default() };
    Ok(v1::AddNeed { cluster, need: Some(need) })
}

fn dollars(text: &str) -> anyhow::Result<f64> {
    if text == "pinned" { Ok(f64::INFINITY) } else { number(text, "penalty") }
}

impl Edits {
    /// The messages; the server is asked which names are those of clusters.
    pub(super) async fn messages(&self, shard: &Shard) -> Result<Vec<Edit>, Failure> {
        let named = !(self.priority.is_empty() && self.penalty.is_empty() && self.reclamation.is_empty());
        let clusters = if named { clusters(shard).await? } else { Vec::new() };
        Ok(self.edits(&clusters)?)
    }

    fn edits(&self, clusters: &[String]) -> anyhow::Result<Vec<Edit>> {
        use v1::edit::Edit as One;
        let mut all: Vec<One> = Vec::new();
        for zone in &self.zone_down {
            let filter = MachineFilter { zones: vec![zone.clone()], ..MachineFilter::default() };
            all.push(One::RemoveMachines(v1::RemoveMachines { filter: Some(filter), count: 0 }));
        }
        for provider in &self.provider_down {
            let filter = MachineFilter { provider: provider.clone(), ..MachineFilter::default() };
            all.push(One::RemoveMachines(v1::RemoveMachines { filter: Some(filter), count: 0 }));
        }
        for text in &self.scale {
            let (need, factor) = split(text, '=', "NEED=FACTOR")?;
            all.push(One::ScaleNeed(v1::ScaleNeed { need: need.into(), factor: number(factor, "scale")? }));
        }
        all.extend(self.remove.iter().map(|name| One::RemoveNeed(name.clone())));
        for text in &self.add_need {
            all.push(One::AddNeed(need(text)?));
        }
        let whom = |name: &str| {
            let is_cluster = clusters.iter().any(|cluster| cluster == name);
            if is_cluster { (String::new(), name.to_owned()) } else { (name.to_owned(), String::new()) }
        };
        for text in &self.priority {
            let (name, priority) = split(text, '=', "NEED|CLUSTER=PRIORITY")?;
            let (need, cluster) = whom(name);
            let priority =
                priority.replace('_', "").parse().with_context(|| format!("priority {priority:?}"))?;
            all.push(One::SetPriority(v1::SetPriority { need, cluster, priority }));
        }
        for (texts, is_reclamation) in [(&self.penalty, false), (&self.reclamation, true)] {
            for text in texts {
                let (name, usd) = split(text, '=', "NEED|CLUSTER=USD")?;
                let ((need, cluster), usd) = (whom(name), Some(dollars(usd)?));
                let (interruption_usd, reclamation_usd) =
                    if is_reclamation { (None, usd) } else { (usd, None) };
                all.push(One::SetPenalty(v1::SetPenalty {
                    need,
                    cluster,
                    interruption_usd,
                    reclamation_usd,
                }));
            }
        }
        for text in &self.price {
            let (which, price) = split(text, ':', "FILTER:USD or FILTER:xFACTOR")?;
            let price = match price.strip_prefix('x') {
                Some(factor) => v1::set_price::Price::Factor(number(factor, "price")?),
                None => v1::set_price::Price::UsdPerHour(number(price, "price")?),
            };
            all.push(One::SetPrice(v1::SetPrice { filter: Some(filter(which)?), price: Some(price) }));
        }
        for text in &self.probability {
            let (which, probability) = split(text, ':', "FILTER:PROBABILITY")?;
            all.push(One::SetProbability(v1::SetProbability {
                filter: Some(filter(which)?),
                interruption_probability: number(probability, "probability")?,
            }));
        }
        for text in &self.add {
            let (like, rest) = split(text, ':', "MACHINE:COUNT[@USD]")?;
            let (count, usd) = rest.split_once('@').map_or((rest, None), |(count, usd)| (count, Some(usd)));
            all.push(One::AddMachines(v1::AddMachines {
                like: like.into(),
                count: count.parse().with_context(|| format!("count {count:?}"))?,
                usd_per_hour: usd.map(|usd| number(usd, "price")).transpose()?,
                zone: String::new(),
            }));
        }
        if all.is_empty() {
            bail!("say what is to be different, such as --zone-down zone-b or --penalty batch=0; see --help");
        }
        Ok(all.into_iter().map(|edit| Edit { edit: Some(edit) }).collect())
    }
}

async fn clusters(shard: &Shard) -> Result<Vec<String>, Failure> {
    let request = ListClustersRequest::default();
    let mut stream = shard.ask(|mut client| async move { client.list_clusters(request).await }).await?;
    let mut names = Vec::new();
    while let Some(page) = stream.next().await {
        let page = page.map_err(|status| shard.trouble(&status))?;
        names.extend(page.clusters.into_iter().filter_map(|cluster| Some(cluster.lane?.cluster)));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        edits: Edits,
    }

    fn edits(arguments: &[&str]) -> anyhow::Result<Vec<Edit>> {
        let all = std::iter::once("whatif").chain(arguments.iter().copied());
        Only::try_parse_from(all)?.edits.edits(&["batch".to_owned()])
    }

    #[test]
    fn every_edit_has_a_flag_and_bad_ones_say_how() {
        let all = edits(&[
            "--zone-down",
            "zone-b",
            "--scale",
            "shop/77=2",
            "--penalty",
            "batch=0",
            "--priority",
            "shop/77=5",
            "--price",
            "capacity=spot,zone=zone-b:x2",
            "--add",
            "metal-01:4@0.19",
            "--add-need",
            "shop cpu=40 unit.cpu=4 priority=1000",
        ])
        .unwrap();
        assert_eq!(all.len(), 7);
        let Some(v1::edit::Edit::SetPenalty(penalty)) = all
            .iter()
            .find_map(|one| one.edit.clone().filter(|e| matches!(e, v1::edit::Edit::SetPenalty(_))))
        else {
            panic!("{all:?}")
        };
        assert_eq!((penalty.cluster.as_str(), penalty.need.as_str()), ("batch", ""));
        for (bad, says) in [
            (vec![], "say what is to be different"),
            (vec!["--scale", "shop"], "NEED=FACTOR"),
            (vec!["--price", "colour=red:2"], "there are capacity"),
            (vec!["--price", "all:cheap"], "not a number"),
            (vec!["--add-need", "shop"], "asks for nothing"),
            (vec!["--add", "m:x"], "count"),
        ] {
            let error = format!("{:#}", edits(&bad).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
    }
}
