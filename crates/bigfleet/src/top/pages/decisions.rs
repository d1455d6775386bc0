//! The list of decisions, and how one of them reads in a line.

use bigfleet_view::v1::{ActionKind, Decision};

use crate::output::Tone;
use crate::{sentence, words};

use super::super::filter::ROWS;
use super::super::model::Model;
use super::super::page::{Body, Cell, Column, Page, Pane, Row, Table};
use super::super::screen::Screen;
use super::{admitted, counted, sorted};

/// The newest decisions that pass the filter.
pub(super) fn page(model: &Model, decisions: &[Decision]) -> Page {
    let ordered = sorted(
        model,
        decisions,
        &[
            |a, b| b.usd_per_hour.total_cmp(&a.usd_per_hour),
            |a, b| a.cluster.cmp(&b.cluster),
            |a, b| a.kind.cmp(&b.kind),
            |a, b| a.machine.cmp(&b.machine),
        ],
    );
    let rows = admitted(model, ordered.into_iter().map(|decision| row(model, decision)).collect());
    let title = if decisions.len() >= ROWS as usize {
        format!("decisions: the newest {}; / narrows", words::thousands(decisions.len() as u64))
    } else {
        format!("decisions {}", counted(rows.len(), decisions.len(), decisions.len() as u64))
    };
    let table = Table { columns: COLUMNS, rows, empty: "no decision passes the filter" };
    Page { panes: vec![Pane::new(title, Body::Table(table))], ..Page::default() }
}

pub(super) const COLUMNS: &[Column] = &[
    Column::left("TIME", 100),
    Column::right("CYCLE", 30),
    Column::left("ACTION", 255),
    Column::left("MACHINE", 250),
    Column::left("CLUSTER", 120),
    Column::right("$/H", 60),
    Column::left("SORT", 40),
    Column::left("FOR", 50),
    Column::left("WHY", 90).at_least(28),
];

/// One decision in a line.
pub(super) fn row(model: &Model, decision: &Decision) -> Row {
    let sort = super::sort_of(&decision.instance_type, decision.capacity_type, &decision.zone);
    let tone = if sentence::withheld(decision) { Tone::Warn } else { Tone::Plain };
    let why = Cell::toned(sentence::why_and_fate(decision), tone);
    Row {
        key: format!("{}/{}/{}/{}", decision.epoch, decision.cycle, decision.kind, decision.machine),
        opens: Some(Screen::Decision { cycle: decision.cycle, machine: decision.machine.clone() }),
        cells: vec![
            model.clock(decision.unix_nanos).into(),
            words::thousands(decision.cycle).into(),
            Cell::toned(words::kind(decision.kind), kind_tone(decision.kind())),
            decision.machine.as_str().into(),
            decision.cluster.as_str().into(),
            words::usd_words(decision.usd_per_hour).into(),
            sort.into(),
            decision.need.as_ref().map(words::need).unwrap_or_default().into(),
            why,
        ],
    }
}

fn kind_tone(kind: ActionKind) -> Tone {
    match kind {
        ActionKind::Bootstrap | ActionKind::Provision => Tone::Good,
        ActionKind::Preempt => Tone::Bad,
        ActionKind::Reclaim | ActionKind::Delete => Tone::Warn,
        ActionKind::Unspecified => Tone::Plain,
    }
}
