//! The fleet screen: supply, clusters, unmet needs and what is being decided.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::{Lane, Mode, Shortfall, Summary};

use crate::output::Tone;
use crate::{sentence, words};

use super::super::model::Model;
use super::super::page::{Bar, Body, Cell, Column, Page, Pane, Row, Said, Table};
use super::super::screen::Screen;
use super::{admitted, counted, decisions, sorted};

/// Everything at a glance.
pub(super) fn page(model: &Model, summary: &Summary) -> Page {
    let unmet = unmet(model, &summary.worst);
    let lanes = lanes(model, &summary.lanes);
    let feed: Vec<Row> = model.feed.iter().map(|decision| decisions::row(model, decision)).collect();
    let titles = (
        format!("clusters {}", counted(lanes.rows.len(), summary.lanes.len(), summary.lanes.len() as u64)),
        format!("short needs {}", counted(unmet.rows.len(), summary.worst.len(), summary.short.into())),
    );
    let feed =
        Table { columns: decisions::COLUMNS, rows: admitted(model, feed), empty: "nothing was decided yet" };
    let mut panes = vec![Pane::new("supply", Body::Bars(supply(summary)))];
    if let Some((span, line)) = model.history.line() {
        panes.push(Pane::new(format!("the last {span}"), Body::Said(vec![Said::new("", line)])));
    }
    panes.extend([
        Pane::new(titles.0, Body::Table(lanes)),
        Pane::new(titles.1, Body::Table(unmet)),
        Pane::new("decisions", Body::Table(feed)),
    ]);
    if !model.look.notes.is_empty() {
        let notes = model.look.notes.iter().map(|note| Said::new("", note.clone()).toned(Tone::Dim));
        panes.push(Pane::new("try", Body::Said(notes.collect())));
    }
    Page { panes, ..Page::default() }
}

/// One bar a capacity type.
pub(super) fn supply(summary: &Summary) -> Vec<Bar> {
    let mut types: BTreeMap<i32, ([u64; 5], f64)> = BTreeMap::new();
    for cell in &summary.supply {
        let (parts, usd) = types.entry(cell.capacity_type).or_default();
        let part = match cell.state() {
            MachineState::Configured => 0,
            MachineState::Creating
            | MachineState::Configuring
            | MachineState::Draining
            | MachineState::Deleting => 1,
            MachineState::Idle => 2,
            MachineState::Failed | MachineState::Unspecified => 3,
            MachineState::Speculative => 4,
        };
        parts[part] += u64::from(cell.machines);
        *usd += cell.usd_per_hour;
    }
    let bar = |(capacity_type, (parts, usd)): (i32, ([u64; 5], f64))| {
        let [bound, moving, idle, failed, quota] = parts;
        let named = [(moving, "moving"), (idle, "idle"), (failed, "failed"), (quota, "quota")];
        let mut text = format!("{} bound", words::thousands(bound));
        for (machines, name) in named.into_iter().filter(|(machines, _)| *machines > 0) {
            text = format!("{text}  {} {name}", words::thousands(machines));
        }
        Bar { label: words::capacity_type(capacity_type), parts, text, figure: words::hourly(usd) }
    };
    types.into_iter().map(bar).collect()
}

const LANES: &[Column] = &[
    Column::left("CLUSTER", 255),
    Column::right("MACHINES", 90),
    Column::right("$/H", 80),
    Column::right("USED", 65),
    Column::right("NEEDS", 60),
    Column::right("UNMET", 100),
    Column::right("SHORT", 50),
    Column::left("SESSION", 70),
    Column::left("HELD BACK", 75).at_least(20),
];

fn lanes(model: &Model, lanes: &[Lane]) -> Table {
    let lanes = sorted(
        model,
        lanes,
        &[
            |a, b| b.usd_per_hour.total_cmp(&a.usd_per_hour),
            |a, b| b.machines.cmp(&a.machines),
            |a, b| (b.unmet, b.short).cmp(&(a.unmet, a.short)),
        ],
    );
    let rows = lanes.into_iter().map(lane).collect();
    Table { columns: LANES, rows: admitted(model, rows), empty: "no cluster has reported yet" }
}

fn lane(lane: &Lane) -> Row {
    let unmet_tone = if lane.unmet > 0 { Tone::Bad } else { Tone::Plain };
    Row {
        key: format!("lane {}", lane.cluster),
        opens: Some(Screen::Cluster(lane.cluster.clone())),
        cells: vec![
            lane.cluster.as_str().into(),
            words::thousands(lane.machines.into()).into(),
            words::usd_words(lane.usd_per_hour).into(),
            words::used_most(&lane.r#use).into(),
            words::thousands(lane.needs.into()).into(),
            Cell::toned(words::thousands(lane.unmet.into()), unmet_tone),
            words::thousands(lane.short.into()).into(),
            session(lane),
            Cell::toned(held_back(lane), Tone::Warn),
        ],
    }
}

/// How a cluster is connected.
pub(super) fn session(lane: &Lane) -> Cell {
    match (lane.connected, lane.reported) {
        (true, true) => Cell::toned("live", Tone::Good),
        (true, false) => Cell::toned("silent", Tone::Warn),
        (false, _) => Cell::toned("gone", Tone::Bad),
    }
}

/// What keeps the shard from acting on a cluster.
pub(super) fn held_back(lane: &Lane) -> String {
    let mut words = Vec::new();
    if !matches!(lane.mode(), Mode::Auto | Mode::Unspecified) {
        words.push(sentence::mode(lane.mode, lane.mode_mixed));
    }
    if lane.paused {
        words.push("paused".into());
    }
    if lane.held {
        words.push("roll-up held".into());
    }
    words.join(", ")
}

const UNMET: &[Column] = &[
    Column::left("NEED", 255),
    Column::left("CLUSTER", 90),
    Column::right("PRIORITY", 60),
    Column::left("WHY SHORT", 100),
    Column::left("MISSING", 80),
    Column::right("FOR", 70),
];

fn unmet(model: &Model, short: &[Shortfall]) -> Table {
    let rows = short.iter().map(|short| shortfall(model, short)).collect();
    Table { columns: UNMET, rows: admitted(model, rows), empty: "every need is covered" }
}

fn shortfall(model: &Model, short: &Shortfall) -> Row {
    let need = short.need.clone().unwrap_or_default();
    let missing = if short.unresolved.is_empty() { &short.deficit } else { &short.unresolved };
    Row {
        key: format!("short {}", need.long_id),
        cells: vec![
            words::need(&need).into(),
            need.cluster.as_str().into(),
            words::signed(short.priority.into()).into(),
            Cell::toned(words::reason(short.reason), super::needs::reason_tone(short.reason())),
            words::amounts(missing).into(),
            words::age(short.since_unix_nanos, model.shard_now_unix_nanos()).into(),
        ],
        opens: Some(Screen::Need(need.long_id)),
    }
}
