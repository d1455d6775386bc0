//! `bigfleet get machines`.

use bigfleet_view::v1::{Detail, ListMachinesRequest, Machine, MachineFilter, Moment};
use std::fmt::Write as _;

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::flags::{Capacity, State, numbers};
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::words::{age, amounts, capacity_type, hourly, kind, need, probability, signed, state};

/// The machines there are, and the quota that could become machines.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get machines --state configured --capacity spot --zone zone-b
  bigfleet get machines --cluster shop --sort=-usd --limit 10
  bigfleet get machines --label topology/rack=rack-2 --columns id,state,label:topology/rack
  bigfleet get machines -o name | wc -l")]
pub(crate) struct Args {
    /// Only those whose id begins so
    #[arg(value_name = "ID")]
    name: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Only those this need claims: what it has, keeps or is given
    #[arg(long, value_name = "NEED")]
    need: Option<String>,
    /// Only those that were bound or bought for this need, whoever claims them now
    #[arg(long, value_name = "NEED")]
    bound_for: Option<String>,
    /// Only those something is wrong with
    #[arg(long)]
    troubled: bool,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

/// What machines are told apart by.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Filter {
    /// Only those bound to this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only in these states
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    state: Vec<State>,
    /// Only of these capacity types
    #[arg(long, value_enum, ignore_case = true, value_delimiter = ',')]
    capacity: Vec<Capacity>,
    /// Only in these zones
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    zone: Vec<String>,
    /// Only of these instance types
    #[arg(long = "type", value_name = "NAMES", value_delimiter = ',')]
    instance_type: Vec<String>,
    /// Only of this provider
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// Only with this label: KEY, KEY=VALUE or KEY!=VALUE; again for more, all must hold
    #[arg(short = 'l', long, value_name = "SELECTOR", value_delimiter = ',')]
    label: Vec<String>,
}

impl Filter {
    pub(super) fn message(&self) -> MachineFilter {
        MachineFilter {
            cluster: self.cluster.clone().unwrap_or_default(),
            states: numbers(&self.state),
            capacity_types: numbers(&self.capacity),
            zones: self.zone.clone(),
            instance_types: self.instance_type.clone(),
            provider: self.provider.clone().unwrap_or_default(),
            labels: self.label.clone(),
            ..MachineFilter::default()
        }
    }
}

/// What is wrong with it, or under way, in a few words.
fn note(machine: &Machine, now: i64) -> Cell {
    if !machine.trouble.is_empty() {
        let why =
            if machine.last_error.is_empty() { String::new() } else { format!(": {}", machine.last_error) };
        return Cell::toned(format!("{}{why}", machine.trouble), Tone::Bad);
    }
    let Some(under_way) = &machine.under_way else { return machine.last_error.clone().into() };
    let mut text = format!("{} {}", kind(under_way.kind), under_way.step.replace('_', " "));
    if under_way.tries > 1 {
        let _ = write!(text, ", try {}", under_way.tries);
    }
    if under_way.until_unix_nanos > now {
        let _ = write!(text, ", {} left", crate::words::short_span(under_way.until_unix_nanos - now));
    }
    if let Some(expected) = machine.expected.as_ref().filter(|expected| expected.to_unix_nanos > now) {
        let span = |time: i64| crate::words::short_span((time - now).max(0));
        let _ = write!(text, ", done in {}-{}", span(expected.from_unix_nanos), span(expected.to_unix_nanos));
    }
    Cell::toned(text, Tone::Warn)
}

impl Listing for Args {
    type Item = Machine;
    const MESSAGE: &'static str = "Machine";
    const NOUN: &'static str = "machine";

    fn columns() -> Vec<Column<Machine>> {
        vec![
            Column::new("id", |machine: &Machine, _| machine.id.clone()),
            Column::new("state", |machine: &Machine, _| state(machine.state)),
            Column::new("type", |machine: &Machine, _| machine.instance_type.clone()).shrinks(),
            Column::new("zone", |machine: &Machine, _| machine.zone.clone()).shrinks(),
            Column::new("capacity", |machine: &Machine, _| capacity_type(machine.capacity_type)),
            Column::number(
                "usd",
                |machine: &Machine| machine.usd_per_hour,
                |machine, _| hourly(machine.usd_per_hour),
            ),
            Column::new("cluster", |machine: &Machine, _| machine.cluster.clone()),
            Column::new("need", |machine: &Machine, _| {
                machine.claimed_by.as_ref().map(need).unwrap_or_default()
            })
            .shrinks(),
            Column::number(
                "age",
                |machine: &Machine| -(machine.state_since_unix_nanos as f64),
                |machine, now| age(machine.state_since_unix_nanos, now),
            ),
            Column::new("note", note).shrinks(),
            Column::new("bound-for", |machine: &Machine, _| {
                machine.bound_for.as_ref().map(need).unwrap_or_default()
            })
            .wide(),
            Column::new("provider", |machine: &Machine, _| machine.provider.clone()).wide(),
            Column::new("host", |machine: &Machine, _| machine.host.clone()).wide(),
            Column::number(
                "risk",
                |machine: &Machine| machine.interruption_probability,
                |machine, _| probability(machine.interruption_probability),
            )
            .wide(),
            Column::number(
                "priority",
                |machine: &Machine| machine.bound_priority.into(),
                |machine, _| signed(machine.bound_priority.into()),
            )
            .wide(),
            Column::new("provides", |machine: &Machine, _| amounts(&machine.provides)).wide(),
            Column::new("labels", |machine: &Machine, _| {
                let labels = machine.labels.iter().map(|(key, value)| format!("{key}={value}"));
                labels.collect::<Vec<_>>().join(",")
            })
            .wide(),
        ]
    }

    fn column_named(name: &str) -> Option<Column<Machine>> {
        let (sort, key) = name.split_once(':')?;
        let (title, key) = (name.to_owned(), key.to_owned());
        match sort {
            "label" => Some(Column::new(title, move |machine: &Machine, _| {
                machine.labels.get(&key).cloned().unwrap_or_default()
            })),
            "resource" => Some(Column::new(title, move |machine: &Machine, _| {
                machine.resources.get(&key).cloned().unwrap_or_default()
            })),
            _ => None,
        }
    }

    fn name(machine: &Machine) -> String {
        machine.id.clone()
    }

    fn usual_order() -> Option<&'static str> {
        Some("id")
    }

    fn asks_for(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, full: bool) -> Result<Pages<Machine>, Trouble> {
        let filter = MachineFilter {
            id_prefix: self.name.clone().unwrap_or_default(),
            need: self.need.clone().unwrap_or_default(),
            bound_for: self.bound_for.clone().unwrap_or_default(),
            troubled: self.troubled,
            ..self.filter.message()
        };
        let detail = if full { Detail::Full } else { Detail::Brief };
        let request = ListMachinesRequest {
            filter: Some(filter),
            detail: detail.into(),
            limit: self.list.server_limit(),
            at,
            ..ListMachinesRequest::default()
        };
        let stream = shard.ask(|mut client| async move { client.list_machines(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.machines)))
    }
}
