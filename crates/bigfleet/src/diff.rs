//! `bigfleet diff`: what changed between two moments of the record.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use bigfleet_tell::words::{count, hourly, need_long, reason, rfc3339, state, thousands, usd_change};
use bigfleet_view::v1::{AsOf, Detail, ListMachinesRequest, ListNeedsRequest, Machine, Moment, Need};
use serde::Serialize;
use tokio_stream::StreamExt;

use crate::at::At;
use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::output::{AnswerArgs, AnswerFormat, Story, Terminal, Tone, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Show what changed between two moments: machines, prices, needs and verdicts.
///
/// Both are read from the decision record. Ends with 1 if anything differs and --check is given.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet diff 1841 1842
  bigfleet diff 1h now
  bigfleet diff 14:02 14:10 --json")]
pub(crate) struct Args {
    /// The earlier moment: a cycle (1841), a time (14:02) or how long ago (1h)
    #[arg(value_name = "FROM")]
    from: At,
    /// The later one; now if nothing is said
    #[arg(value_name = "TO")]
    to: Option<String>,
    /// At most so many of each sort of difference; the totals count all
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    /// End with 1 if anything differs
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// A fleet at a moment, as far as two of them are compared.
pub(crate) struct Seen {
    pub(crate) as_of: AsOf,
    pub(crate) machines: BTreeMap<String, Machine>,
    needs: BTreeMap<String, Need>,
}

#[cfg(test)]
impl Seen {
    /// One of these machines.
    pub(crate) fn of(machines: impl IntoIterator<Item = (String, Machine)>) -> Self {
        Self { as_of: AsOf::default(), machines: machines.into_iter().collect(), needs: BTreeMap::new() }
    }
}

#[derive(Default, Serialize)]
struct Told {
    from_cycle: u64,
    from: String,
    to_cycle: u64,
    to: String,
    usd_per_hour_from: f64,
    usd_per_hour_to: f64,
    machines: Vec<String>,
    machines_in_all: usize,
    prices: Vec<String>,
    prices_in_all: usize,
    needs: Vec<String>,
    needs_in_all: usize,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (from, to, target) = block_on(async {
        let shard = Shard::new(&args.reach)?;
        let now = shard.version().await?.now_unix_nanos;
        let from = seen(&shard, Some(args.from.moment(now))).await?;
        let to = match args.to.as_deref() {
            None | Some("now") => None,
            Some(text) => Some(text.parse::<At>()?.moment(now)),
        };
        let to = seen(&shard, to).await?;
        Ok((from, to, shard.target.to_string()))
    })?;
    let told = compare(&from, &to, args.limit);
    let all = told.machines_in_all + told.prices_in_all + told.needs_in_all;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&told, to.as_of.simulated).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            note(&format!("{}, {target}", count(all as u64, "difference")));
        }
        format => write_data(&mut out, &told, format, &terminal)?,
    }
    out.flush()?;
    Ok(if args.check && all > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// A fleet as it was at a moment, or is.
pub(crate) async fn seen(shard: &Shard, at: Option<Moment>) -> Result<Seen, Failure> {
    let mut seen = Seen { as_of: AsOf::default(), machines: BTreeMap::new(), needs: BTreeMap::new() };
    let request = ListMachinesRequest { at, detail: Detail::Brief.into(), ..ListMachinesRequest::default() };
    let mut pages = shard.ask(|mut client| async move { client.list_machines(request).await }).await?;
    while let Some(page) = pages.next().await {
        let page = page.map_err(|status| shard.trouble(&status))?;
        seen.as_of = page.as_of.unwrap_or(seen.as_of);
        seen.machines.extend(page.machines.into_iter().map(|machine| (machine.id.clone(), machine)));
    }
    let request = ListNeedsRequest { at, ..ListNeedsRequest::default() };
    let mut pages = shard.ask(|mut client| async move { client.list_needs(request).await }).await?;
    while let Some(page) = pages.next().await {
        let page = page.map_err(|status| shard.trouble(&status))?;
        let key = |need: &Need| need.key.as_ref().map(|key| key.long_id.clone()).unwrap_or_default();
        seen.needs.extend(page.needs.into_iter().map(|need| (key(&need), need)));
    }
    Ok(seen)
}

/// What machines cost that are paid for.
fn bill(seen: &Seen) -> f64 {
    use bigfleet_proto::v1alpha1::MachineState::{Creating, Speculative};
    let paid = seen.machines.values().filter(|machine| !matches!(machine.state(), Speculative | Creating));
    paid.map(|machine| machine.usd_per_hour).sum()
}

fn place(machine: &Machine) -> String {
    match machine.cluster.as_str() {
        "" => state(machine.state),
        cluster => format!("{} for {cluster}", state(machine.state)),
    }
}

fn verdict(need: &Need) -> String {
    let machines = count((need.credited + need.acquired).into(), "machine");
    if need.satisfied {
        format!("covered, {machines}")
    } else {
        format!("short ({}), {machines}", reason(need.reason))
    }
}

fn compare(from: &Seen, to: &Seen, limit: usize) -> Told {
    let (mut machines, mut prices, mut needs) = (Vec::new(), Vec::new(), Vec::new());
    let ids: std::collections::BTreeSet<&String> = from.machines.keys().chain(to.machines.keys()).collect();
    for id in ids {
        match (from.machines.get(id), to.machines.get(id)) {
            (Some(was), Some(is)) => {
                if place(was) != place(is) {
                    machines.push(format!("{id}: {} -> {}", place(was), place(is)));
                }
                if was.usd_per_hour != is.usd_per_hour {
                    prices.push(format!("{id}: {} -> {}", hourly(was.usd_per_hour), hourly(is.usd_per_hour)));
                }
            }
            (Some(was), None) => machines.push(format!("{id}: {} -> gone", place(was))),
            (None, Some(is)) => machines.push(format!("{id}: new, {}", place(is))),
            (None, None) => {}
        }
    }
    let keys: std::collections::BTreeSet<&String> = from.needs.keys().chain(to.needs.keys()).collect();
    for key in keys {
        let name = |need: &Need| need.key.as_ref().map(need_long).unwrap_or_default();
        match (from.needs.get(key), to.needs.get(key)) {
            (Some(was), Some(is)) => {
                let asks = was.spec.as_ref().map(|spec| &spec.aggregate_resources)
                    != is.spec.as_ref().map(|spec| &spec.aggregate_resources);
                if asks || verdict(was) != verdict(is) {
                    let more = if asks { ", and asks for something else" } else { "" };
                    needs.push(format!("{}: {} -> {}{more}", name(is), verdict(was), verdict(is)));
                }
            }
            (Some(was), None) => needs.push(format!("{}: withdrawn", name(was))),
            (None, Some(is)) => needs.push(format!("{}: new, {}", name(is), verdict(is))),
            (None, None) => {}
        }
    }
    let first = |list: &[String]| list.iter().take(limit).cloned().collect::<Vec<_>>();
    Told {
        from_cycle: from.as_of.cycle,
        from: rfc3339(from.as_of.cycle_unix_nanos),
        to_cycle: to.as_of.cycle,
        to: rfc3339(to.as_of.cycle_unix_nanos),
        usd_per_hour_from: bill(from),
        usd_per_hour_to: bill(to),
        machines: first(&machines),
        machines_in_all: machines.len(),
        prices: first(&prices),
        prices_in_all: prices.len(),
        needs: first(&needs),
        needs_in_all: needs.len(),
    }
}

fn story(told: &Told, simulated: bool) -> Story {
    let mut story = Story::default();
    let mark = if simulated { "  (simulated)" } else { "" };
    let heading = format!(
        "From cycle {} ({}) to cycle {} ({}).{mark}",
        thousands(told.from_cycle),
        told.from,
        thousands(told.to_cycle),
        told.to
    );
    story.heading(heading, Tone::Head);
    let change = told.usd_per_hour_to - told.usd_per_hour_from;
    let change = if change.abs() < 1e-9 { "unchanged".into() } else { format!("{}/h", usd_change(change)) };
    story.say(
        "cost",
        format!("{} -> {} ({change})", hourly(told.usd_per_hour_from), hourly(told.usd_per_hour_to)),
    );
    for (label, list, all) in [
        ("machines", &told.machines, told.machines_in_all),
        ("prices", &told.prices, told.prices_in_all),
        ("needs", &told.needs, told.needs_in_all),
    ] {
        for line in list {
            story.say(label, line.clone());
        }
        match (all, all - list.len()) {
            (0, _) => story.say(label, "none changed"),
            (_, 0) => &mut story,
            (_, more) => story.say(label, format!("and {} more (--limit)", thousands(more as u64))),
        };
    }
    story
}
