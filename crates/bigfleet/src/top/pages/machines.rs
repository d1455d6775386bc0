//! The list of machines.

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::Machine;

use crate::output::Tone;
use crate::words;

use super::super::filter::ROWS;
use super::super::model::Model;
use super::super::page::{Body, Cell, Column, Page, Pane, Row, Table};
use super::super::screen::Screen;
use super::{admitted, counted, sorted};

/// Machines that pass the filter.
pub(super) fn page(model: &Model, machines: &[Machine], known: u64) -> Page {
    let ordered = sorted(
        model,
        machines,
        &[
            |a, b| b.usd_per_hour.total_cmp(&a.usd_per_hour),
            |a, b| a.state.cmp(&b.state),
            |a, b| a.cluster.cmp(&b.cluster),
            |a, b| (a.capacity_type, &a.instance_type).cmp(&(b.capacity_type, &b.instance_type)),
        ],
    );
    let rows = admitted(model, ordered.into_iter().map(|machine| row(model, machine)).collect());
    // How many pass the server's filter is not known before all were listed.
    let all = if machines.len() < ROWS as usize { machines.len() as u64 } else { known };
    let of = if all < known { format!(" (of {})", words::thousands(known)) } else { String::new() };
    let title = format!("machines {}{of}", counted(rows.len(), machines.len(), all));
    let table = Table { columns: COLUMNS, rows, empty: "no machine passes the filter" };
    Page { panes: vec![Pane::new(title, Body::Table(table))], ..Page::default() }
}

pub(super) const COLUMNS: &[Column] = &[
    Column::left("MACHINE", 255),
    Column::left("STATE", 120),
    Column::left("CLUSTER", 100),
    Column::left("INSTANCE", 70),
    Column::left("TYPE", 80),
    Column::left("ZONE", 60),
    Column::right("$/H", 90),
    Column::right("SINCE", 50),
    Column::left("FOR", 40),
    Column::left("REMARK", 75).at_least(16),
];

/// One machine in a line.
pub(super) fn row(model: &Model, machine: &Machine) -> Row {
    let bound = machine.draining_for.as_ref().or(machine.bound_for.as_ref());
    Row {
        key: format!("machine {}", machine.id),
        opens: Some(Screen::Machine(machine.id.clone())),
        cells: vec![
            machine.id.as_str().into(),
            Cell::toned(words::state(machine.state), state_tone(machine.state())),
            machine.cluster.as_str().into(),
            machine.instance_type.as_str().into(),
            words::capacity_type(machine.capacity_type).into(),
            machine.zone.as_str().into(),
            words::usd_words(machine.usd_per_hour).into(),
            words::age(machine.state_since_unix_nanos, model.shard_now_unix_nanos()).into(),
            bound.map(words::need).unwrap_or_default().into(),
            remark(machine),
        ],
    }
}

/// What is wrong with it, or what is being done to it.
fn remark(machine: &Machine) -> Cell {
    if !machine.trouble.is_empty() {
        return Cell::toned(machine.trouble.clone(), Tone::Bad);
    }
    if !machine.last_error.is_empty() {
        return Cell::toned(machine.last_error.clone(), Tone::Warn);
    }
    match &machine.under_way {
        Some(under_way) => Cell::toned(
            format!("{}: {}", words::kind(under_way.kind), super::machine::step(&under_way.step)),
            Tone::Dim,
        ),
        None => "".into(),
    }
}

pub(super) fn state_tone(state: MachineState) -> Tone {
    match state {
        MachineState::Configured => Tone::Good,
        MachineState::Failed => Tone::Bad,
        MachineState::Speculative => Tone::Dim,
        MachineState::Idle | MachineState::Unspecified => Tone::Plain,
        _ => Tone::Warn,
    }
}
