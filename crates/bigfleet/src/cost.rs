//! `bigfleet cost`: what everything costs, for what, and how good the decisions are.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use bigfleet_tell::words::{capacity_type, clock_time, signed, span, thousands, usd_words};
use bigfleet_tell::{Shown, Story, Tone, sentence};
use bigfleet_view::v1::{CostPart, CostPoint, Costs, GetCostsRequest, Version};
use clap::ValueEnum;

use crate::at::At;
use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Cell, Grid, Head, Terminal, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Show what everything costs, for what, and how good the decisions are.
///
/// Now, at a moment (--at), or over a recorded span (--last). The parts add up to the whole to the cent. Beside it: what
/// the same demand must cost at least by a linear bound, and what interruption penalties cost and prevent; both count
/// rented machines only, since owned ones are paid for anyway.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet cost
  bigfleet cost --by cluster,capacity
  bigfleet cost --last 24h --by cause
  bigfleet cost --cluster shop --at 14:02 --json")]
pub(crate) struct Args {
    /// What rows are told apart by
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [By::Cluster])]
    by: Vec<By>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Over the last span: 90m, 24h, 7d
    #[arg(long, value_name = "SPAN", value_parser = crate::at::nanos, conflicts_with_all = ["at", "since"])]
    last: Option<i64>,
    /// Over a span from here: 14:02, 2026-11-15T14:02:10Z, or how long ago
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    since: Option<At>,
    /// Up to here; now if nothing is said
    #[arg(long, value_name = "TIME", requires = "since")]
    until: Option<At>,
    /// As it was: a cycle (1842), a time (14:02) or how long ago (10m)
    #[arg(long, value_name = "CYCLE|TIME")]
    at: Option<At>,
    /// Do not work out the lower bound and the price of protection
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// What rows are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// The cluster it is spent for
    Cluster,
    /// The priority of the need it is spent for
    Class,
    /// How it is paid for
    Capacity,
    /// Who sells it
    Provider,
    /// What it is spent for: used, idle, draining and so on
    Cause,
}

impl By {
    fn title(self) -> &'static str {
        match self {
            Self::Cluster => "CLUSTER",
            Self::Class => "CLASS",
            Self::Capacity => "CAPACITY",
            Self::Provider => "PROVIDER",
            Self::Cause => "CAUSE",
        }
    }

    fn of(self, part: &CostPart) -> String {
        match self {
            Self::Cluster if part.cluster.is_empty() => "(nobody)".into(),
            Self::Cluster => part.cluster.clone(),
            Self::Class => part.priority.map_or_else(|| "-".into(), |priority| signed(priority.into())),
            Self::Capacity => capacity_type(part.capacity_type),
            Self::Provider => part.provider.clone(),
            Self::Cause => cause(&part.cause).to_owned(),
        }
    }
}

/// What money is spent for, in the words of tables.
fn cause(code: &str) -> &str {
    match code {
        "used" => "used",
        "above_demand" => "bound above demand",
        "unclaimed" => "bound, claimed by none",
        "starting" => "starting",
        "draining" => "drain tails",
        "idle_hold" => "idle hold",
        "idle_fixed" => "owned and idle",
        "giving_back" => "giving back",
        "failed" => "failed",
        other => other,
    }
}

fn is_waste(code: &str) -> bool {
    !matches!(code, "used" | "idle_fixed")
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (answer, target) = block_on(async {
        let shard = Shard::new(&args.reach)?.patient_for(std::time::Duration::from_mins(10));
        let version = if args.last.is_some() || args.since.is_some() || args.at.is_some() {
            shard.version().await?
        } else {
            Version::default()
        };
        let now = version.now_unix_nanos;
        let time = |at: &At| match at.moment(now).moment {
            Some(bigfleet_view::v1::moment::Moment::UnixNanos(time)) => Ok(time),
            _ => Err(anyhow::anyhow!("a span is between two times; write 14:02 or 24h instead of a cycle")),
        };
        let from = match (&args.last, &args.since) {
            // All there is of it, if the record is shorter.
            (Some(span), _) => now.saturating_sub(*span).max(version.oldest_unix_nanos),
            (None, Some(at)) => time(at)?,
            (None, None) => 0,
        };
        let request = GetCostsRequest {
            cluster: args.cluster.clone().unwrap_or_default(),
            at: args.at.as_ref().map(|at| at.moment(now)),
            from_unix_nanos: from,
            to_unix_nanos: args.until.as_ref().map(time).transpose()?.unwrap_or(0),
            points: 0,
            judge: !args.quick,
        };
        let _progress = crate::output::Progress::begin("adding it up");
        let answer = shard.ask(|mut client| async move { client.get_costs(request).await }).await?;
        Ok((answer, shard.target.to_string()))
    })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&answer).write(&mut out, terminal.text_width(), terminal.paint)?;
            table(&mut out, &answer, &args.by, &terminal)?;
            out.flush()?;
            note(&foot(&answer, &target));
        }
        format => write_data(&mut out, &Shown::new("Costs", &answer), format, &terminal)?,
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn foot(answer: &Costs, target: &str) -> String {
    let as_of = answer.as_of.clone().unwrap_or_default();
    let simulated = if as_of.simulated { ", SIMULATED" } else { "" };
    format!("cycle {}{}{simulated}, {target}", as_of.cycle, sentence::from_record(&as_of))
}

/// Amounts that are shown rounded, and still add up: in cents, or in hundredths of them if all is less than ten dollars.
struct Rounded {
    figures: usize,
    unit: i64,
}

impl Rounded {
    fn of(total_nano_usd: i64) -> Self {
        if total_nano_usd >= 10_000_000_000 {
            Self { figures: 2, unit: 10_000_000 }
        } else {
            Self { figures: 4, unit: 100_000 }
        }
    }

    fn parts(&self, nanos: &[i64]) -> Vec<i64> {
        let parts: Vec<i128> = nanos.iter().map(|nanos| i128::from(*nanos)).collect();
        let rounded = bigfleet_view::divide(&parts, self.unit.into());
        rounded.into_iter().map(|part| i64::try_from(part).unwrap_or(i64::MAX)).collect()
    }

    fn words(&self, units: i64) -> String {
        let usd = units as f64 * self.unit as f64 / 1e9;
        format!("${usd:.*}", self.figures)
    }
}

fn story(answer: &Costs) -> Story {
    let mut story = Story::default();
    let mark = sentence::simulated(answer.as_of.as_ref());
    let total = answer.total_nano_usd as f64 / 1e9;
    let heading = match &answer.span {
        None => format!("{} an hour.", usd_words(total)),
        Some(over) => {
            let long = span(over.to_unix_nanos - over.from_unix_nanos);
            let since = clock_time(over.from_unix_nanos, over.to_unix_nanos);
            format!(
                "{} in {long} since {since}, {} an hour.",
                usd_words(total),
                usd_words(answer.usd_per_hour)
            )
        }
    };
    story.heading(format!("{heading}{mark}"), Tone::Head);
    let waste: i64 = answer.parts.iter().filter(|part| is_waste(&part.cause)).map(|part| part.nano_usd).sum();
    if answer.total_nano_usd > 0 {
        let percent = 100.0 * waste as f64 / answer.total_nano_usd as f64;
        story.say("waste", format!("{} ({percent:.1} %) serves nobody", usd_words(waste as f64 / 1e9)));
    }
    causes(&mut story, answer);
    if let Some(judged) = &answer.judgement {
        bigfleet_tell::explain::cost::judged(&mut story, judged);
    }
    if !answer.points.is_empty() {
        story.say("curve", curve(&answer.points, |point| point.usd_per_hour));
        let most = answer.points.iter().map(|point| point.usd_per_hour).fold(0.0, f64::max);
        story.say("curve", format!("$/h over the span; the highest {}", usd_words(most)));
    }
    if let Some(over) = answer.span.as_ref().filter(|over| over.looked_at < over.cycles) {
        let (all, seen) = (thousands(over.cycles), thousands(over.looked_at));
        story.say(
            "looked at",
            format!("{seen} of {all} recorded cycles; between them nothing is taken to change"),
        );
    }
    story
}

fn causes(story: &mut Story, answer: &Costs) {
    let mut sums: BTreeMap<&str, (i64, f64)> = BTreeMap::new();
    for part in &answer.parts {
        let sum = sums.entry(&part.cause).or_default();
        *sum = (sum.0 + part.nano_usd, sum.1 + part.machines);
    }
    let mut sums: Vec<(&str, (i64, f64))> = sums.into_iter().collect();
    sums.sort_by_key(|(code, (nanos, _))| (std::cmp::Reverse(*nanos), *code));
    let rounded = Rounded::of(answer.total_nano_usd);
    let parts = rounded.parts(&sums.iter().map(|(_, (nanos, _))| *nanos).collect::<Vec<_>>());
    let unit = if answer.span.is_some() { "machine-hours" } else { "machines" };
    let mut rows: Vec<Vec<String>> = sums
        .iter()
        .zip(&parts)
        .map(|((code, (_, machines)), part)| {
            vec![cause(code).to_owned(), rounded.words(*part), format!("{machines:.1} {unit}")]
        })
        .collect();
    rows.push(vec!["all".into(), rounded.words(parts.iter().sum()), String::new()]);
    story.columns("for what", &rows, &[1]);
}

/// A curve in one line of text.
pub(crate) fn curve(points: &[CostPoint], figure: impl Fn(&CostPoint) -> f64) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = points.iter().map(&figure).fold(0.0, f64::max);
    let step = |point: &CostPoint| {
        let part = if most > 0.0 { figure(point) / most } else { 0.0 };
        STEPS[((part * 7.0).round() as usize).min(7)]
    };
    points.iter().map(step).collect()
}

fn table(out: &mut impl Write, answer: &Costs, by: &[By], terminal: &Terminal) -> std::io::Result<()> {
    let mut sums: BTreeMap<Vec<String>, (i64, f64, i64)> = BTreeMap::new();
    for part in &answer.parts {
        let sum = sums.entry(by.iter().map(|by| by.of(part)).collect()).or_default();
        sum.0 += part.nano_usd;
        sum.1 += part.machines;
        sum.2 += if is_waste(&part.cause) { part.nano_usd } else { 0 };
    }
    let rounded = Rounded::of(answer.total_nano_usd);
    let mut rows: Vec<(Vec<String>, (i64, f64, i64))> = sums.into_iter().collect();
    rows.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let money = rounded.parts(&rows.iter().map(|(_, sum)| sum.0).collect::<Vec<_>>());
    let waste = rounded.parts(&rows.iter().map(|(_, sum)| sum.2).collect::<Vec<_>>());
    let (usd, machines) =
        if answer.span.is_some() { ("USD", "MACHINE-HOURS") } else { ("USD/H", "MACHINES") };
    let head = |title: &str, right: bool| Head { title: title.into(), right, shrinks: !right, keeps: false };
    let heads: Vec<Head> = by
        .iter()
        .map(|by| head(by.title(), false))
        .chain([head(usd, true), head("WASTE", true), head(machines, true)])
        .collect();
    let line = |name: Vec<String>, money: i64, waste: i64, machines: f64| -> Vec<Cell> {
        let figures = [rounded.words(money), rounded.words(waste), format!("{machines:.1}")];
        name.into_iter().chain(figures).map(Cell::from).collect()
    };
    let total = {
        let mut name = vec![String::new(); by.len()];
        if let Some(first) = name.first_mut() {
            "all".clone_into(first);
        }
        line(name, money.iter().sum(), waste.iter().sum(), rows.iter().map(|(_, sum)| sum.1).sum())
    };
    let rows = rows.into_iter().zip(money).zip(waste);
    let mut rows: Vec<Vec<Cell>> =
        rows.map(|(((name, sum), money), waste)| line(name, money, waste, sum.1)).collect();
    rows.push(total);
    let grid = Grid::settle(&heads, &rows, terminal.width, terminal.paint);
    writeln!(out)?;
    grid.write_heads(out, &heads)?;
    rows.iter().try_for_each(|row| grid.write_row(out, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_adds_up_to_the_cent() {
        let mut state = 7_u64;
        for _ in 0..500 {
            let parts: Vec<i64> = (0..7)
                .map(|_| {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state >> 30).cast_signed()
                })
                .collect();
            let total: i64 = parts.iter().sum();
            let rounded = Rounded::of(total);
            assert_eq!(rounded.parts(&parts).iter().sum::<i64>(), total / rounded.unit);
        }
    }

    #[test]
    fn a_curve_is_as_high_as_its_figures() {
        let point = |usd_per_hour| CostPoint { usd_per_hour, ..CostPoint::default() };
        assert_eq!(curve(&[point(0.0), point(1.0), point(2.0)], |p| p.usd_per_hour), "▁▅█");
        assert_eq!(curve(&[point(0.0)], |p| p.usd_per_hour), "▁");
    }
}
