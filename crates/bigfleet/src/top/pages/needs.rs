//! The list of needs.

use bigfleet_view::v1::{Need, Reason};

use crate::output::Tone;
use crate::words;

use super::super::model::Model;
use super::super::page::{Body, Cell, Column, Page, Pane, Row, Table};
use super::super::screen::Screen;
use super::{admitted, counted, sorted};

/// Needs that pass the filter.
pub(super) fn page(model: &Model, needs: &[Need], total: u64) -> Page {
    let ordered = sorted(
        model,
        needs,
        &[
            |a, b| (a.satisfied, a.short_since_unix_nanos).cmp(&(b.satisfied, b.short_since_unix_nanos)),
            |a, b| b.usd_per_hour.total_cmp(&a.usd_per_hour),
            |a, b| cluster_of(a).cmp(cluster_of(b)),
            |a, b| a.first_seen_unix_nanos.cmp(&b.first_seen_unix_nanos),
        ],
    );
    let rows = admitted(model, ordered.into_iter().map(|need| row(model, need)).collect());
    let title = format!("needs {}", counted(rows.len(), needs.len(), total));
    let table = Table { columns: COLUMNS, rows, empty: "no need passes the filter" };
    Page { panes: vec![Pane::new(title, Body::Table(table))], ..Page::default() }
}

fn cluster_of(need: &Need) -> &str {
    need.key.as_ref().map_or("", |key| &key.cluster)
}

pub(super) const COLUMNS: &[Column] = &[
    Column::left("NEED", 255),
    Column::left("CLUSTER", 100),
    Column::right("PRIORITY", 60),
    Column::left("STATUS", 120),
    Column::right("HAS", 80),
    Column::right("COMING", 50),
    Column::right("$/H", 70),
    Column::right("SHORT FOR", 40),
    Column::left("ASKS FOR", 65),
];

/// One need in a line.
pub(super) fn row(model: &Model, need: &Need) -> Row {
    let key = need.key.clone().unwrap_or_default();
    let spec = need.spec.clone().unwrap_or_default();
    let status = if need.satisfied {
        Cell::toned("covered", Tone::Good)
    } else {
        Cell::toned(words::reason(need.reason), reason_tone(need.reason()))
    };
    let short_for = words::age(need.short_since_unix_nanos, model.shard_now_unix_nanos());
    Row {
        key: format!("need {}", key.long_id),
        cells: vec![
            words::need(&key).into(),
            key.cluster.as_str().into(),
            words::signed(spec.priority.into()).into(),
            status,
            words::thousands(u64::from(need.credited) + u64::from(need.acquired)).into(),
            words::thousands(need.in_flight.into()).into(),
            words::usd_words(need.usd_per_hour).into(),
            short_for.into(),
            words::amounts(&spec.aggregate_resources).into(),
        ],
        opens: Some(Screen::Need(key.long_id)),
    }
}

/// What solves itself is less bad than what does not.
pub(super) fn reason_tone(reason: Reason) -> Tone {
    match reason {
        Reason::Unspecified => Tone::Plain,
        Reason::InFlight | Reason::Parked => Tone::Warn,
        _ => Tone::Bad,
    }
}
