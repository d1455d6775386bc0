//! One cluster: how it is connected, what holds the shard back, what is short, what was decided.

use bigfleet_view::v1::{Cluster, ClusterExplanation, Mode, PauseView};

use crate::output::Tone;
use crate::{sentence, words};

use super::super::model::Model;
use super::super::page::{Body, Form, Page, Pane, Said, Table};
use super::{decisions, fleet, needs};

/// All about one cluster.
pub(super) fn page(model: &Model, answer: &ClusterExplanation) -> Page {
    let now = model.shard_now_unix_nanos();
    let cluster = answer.cluster.clone().unwrap_or_default();
    let mut said = facts(&cluster, now);
    let name = cluster.lane.as_ref().map(|lane| lane.cluster.clone()).unwrap_or_default();
    // The summary counts what is used, and is newer than the answer.
    let lane = model.summary.iter().flat_map(|summary| &summary.lanes).find(|lane| lane.cluster == name);
    if let Some(used) = lane.map(|lane| words::used(&lane.r#use)).filter(|used| !used.is_empty()) {
        said.insert(1, Said::new("used", used));
    }
    if let Some(lane) = &cluster.lane {
        let tone = if matches!(lane.mode(), Mode::Auto) { Tone::Plain } else { Tone::Warn };
        said.push(Said::new("mode", sentence::mode(lane.mode, lane.mode_mixed)).toned(tone));
    }
    let costs = answer.costs.iter().map(|cost| {
        format!(
            "{} {} {}",
            words::thousands(cost.machines.into()),
            words::capacity_type(cost.capacity_type),
            words::hourly(cost.usd_per_hour)
        )
    });
    let costs: Vec<String> = costs.collect();
    if !costs.is_empty() {
        said.insert(1, Said::new("money", costs.join(", ")));
    }
    let short = answer.short.iter().map(|need| needs::row(model, need)).collect();
    let decided = |decided: &[_]| decided.iter().map(|decision| decisions::row(model, decision)).collect();
    let mut panes = vec![
        Pane::new(format!("cluster {name}"), Body::Said(said)),
        Pane::new(
            "short needs",
            Body::Table(Table { columns: needs::COLUMNS, rows: short, empty: "every need is covered" }),
        ),
    ];
    if !answer.withheld.is_empty() {
        let table =
            Table { columns: decisions::COLUMNS, rows: withheld_rows(decided(&answer.withheld)), empty: "" };
        panes.push(Pane::new("withheld by the last cycle", Body::Table(table)));
    }
    let table = Table {
        columns: decisions::COLUMNS,
        rows: decided(&answer.decisions),
        empty: "nothing was decided about it lately",
    };
    panes.push(Pane::new("decisions", Body::Table(table)));
    Page { panes, form: Form::Text }
}

/// The same decision may stand under both headings; its rows must differ all the same.
pub(super) fn withheld_rows(mut rows: Vec<super::super::page::Row>) -> Vec<super::super::page::Row> {
    for row in &mut rows {
        row.key.insert_str(0, "withheld ");
    }
    rows
}

fn facts(cluster: &Cluster, now: i64) -> Vec<Said> {
    let lane = cluster.lane.clone().unwrap_or_default();
    let unmet_tone = if lane.unmet > 0 { Tone::Bad } else { Tone::Plain };
    let mut said = vec![
        Said::new(
            "holds",
            format!(
                "{} for {}",
                words::count(lane.machines.into(), "machine"),
                words::hourly(lane.usd_per_hour)
            ),
        ),
        Said::new(
            "asks",
            format!(
                "{}, {} unmet, {} short",
                words::count(lane.needs.into(), "need"),
                lane.unmet,
                lane.short
            ),
        )
        .toned(unmet_tone),
        session(cluster, now),
    ];
    if !lane.reported {
        said.push(Said::new("", "it has not reported yet: nothing is reclaimed from it").toned(Tone::Warn));
    }
    if cluster.changed_unix_nanos != 0 {
        let ago = words::span(now.saturating_sub(cluster.changed_unix_nanos));
        said.push(Said::new("demand", format!("last changed {ago} ago")));
    }
    if let Some(held) = &cluster.held {
        let text = format!("a roll-up waits to be confirmed: seen {} of {} times", held.seen, held.of);
        said.push(Said::new("held", text).toned(Tone::Warn));
    }
    if let Some(cap) = &cluster.reclaim_cap {
        said.push(Said::new(
            "reclaims",
            format!("{} of {} allowed in the window are used", cap.used, cap.cap),
        ));
    }
    if cluster.backoff_until_unix_nanos > now {
        let left = words::span(cluster.backoff_until_unix_nanos.saturating_sub(now));
        let text = format!("its operator is left alone for {left}: {}", cluster.operator_error);
        said.push(Said::new("back-off", text).toned(Tone::Warn));
    }
    said.extend(cluster.pauses.iter().map(|pause| Said::new("paused", paused(pause, now)).toned(Tone::Warn)));
    said
}

fn session(cluster: &Cluster, now: i64) -> Said {
    let lane = cluster.lane.clone().unwrap_or_default();
    let cell = fleet::session(&lane);
    let text = match &cluster.session {
        Some(session) => format!(
            "{}: open for {}, last report {} ago",
            cell.text,
            words::span(now.saturating_sub(session.opened_unix_nanos)),
            words::span(now.saturating_sub(session.reported_unix_nanos)),
        ),
        None => cell.text.clone(),
    };
    Said::new("session", text).toned(cell.tone)
}

/// What is paused, for how long yet, why and by whom.
fn paused(pause: &PauseView, now: i64) -> String {
    let until = match pause.until_unix_nanos {
        0 => "until resumed".into(),
        until => format!("for {} more", words::span(until.saturating_sub(now))),
    };
    let author = if pause.author.is_empty() { String::new() } else { format!(" (by {})", pause.author) };
    format!("{} {until}: {}{author}", sentence::pause_scope(pause), pause.reason)
}
