//! One machine: what it is, whom it serves, why it is kept, what was decided about it.

use bigfleet_view::v1::{Machine, MachineExplanation, Need};

use crate::output::Tone;
use crate::{sentence, words};

use super::super::model::Model;
use super::super::page::{Body, Form, Page, Pane, Said, Table};
use super::super::screen::Screen;
use super::{decisions, machines};

/// All about one machine.
pub(super) fn page(model: &Model, answer: &MachineExplanation) -> Page {
    let now = model.shard_now_unix_nanos();
    let machine = answer.machine.clone().unwrap_or_default();
    let mut said = facts(&machine, answer, now);
    said.extend(answer.claimed_by.as_ref().map(claimed));
    let used = words::used(&answer.r#use);
    if !used.is_empty() {
        said.push(Said::new("used", format!("{used}, over all machines of its need")));
    }
    if let Some(bound) = &answer.bound_by {
        let text = format!("{} in cycle {}", words::kind_done(bound.kind), words::thousands(bound.cycle));
        let screen = Screen::Decision { cycle: bound.cycle, machine: bound.machine.clone() };
        said.push(Said::new("why here", text).opening(screen));
    }
    if answer.ordered != 0 {
        said.push(Said::new("ordered", format!("{} by the last cycle", words::kind(answer.ordered))));
    }
    said.extend(release(answer, &machine, now));
    let rows = answer.decisions.iter().map(|decision| decisions::row(model, decision)).collect();
    let table = Table { columns: decisions::COLUMNS, rows, empty: "nothing was decided about it lately" };
    let mut panes = vec![Pane::new(format!("machine {}", machine.id), Body::Said(said))];
    panes.push(Pane::new("decisions", Body::Table(table)));
    if !machine.labels.is_empty() {
        let labels = machine.labels.iter().map(|(key, value)| Said::new("", format!("{key}={value}")));
        panes.push(Pane::new("labels", Body::Said(labels.collect())));
    }
    Page { panes, form: Form::Text }
}

fn facts(machine: &Machine, answer: &MachineExplanation, now: i64) -> Vec<Said> {
    let since = match machine.state_since_unix_nanos {
        0 => String::new(),
        since => format!(" for {}", words::span(now.saturating_sub(since))),
    };
    let sort = super::sort_of(&machine.instance_type, machine.capacity_type, &machine.zone);
    let mut said = vec![
        Said::new("state", format!("{}{since}", words::state(machine.state)))
            .toned(machines::state_tone(machine.state())),
        Said::new("sort", format!("{}, of {}", sort, machine.provider)),
        Said::new("price", price(machine, answer, now)),
    ];
    if !machine.trouble.is_empty() {
        said.push(
            Said::new(
                "trouble",
                format!(
                    "{}{}",
                    machine.trouble,
                    if machine.counts { "" } else { ": it does not count as supply" }
                ),
            )
            .toned(Tone::Bad),
        );
    }
    if !machine.last_error.is_empty() {
        said.push(Said::new("error", machine.last_error.clone()).toned(Tone::Warn));
    }
    if !machine.provides.is_empty() {
        said.push(Said::new("provides", words::amounts(&machine.provides)));
    }
    if !machine.cluster.is_empty() {
        said.push(
            Said::new("cluster", machine.cluster.clone()).opening(Screen::Cluster(machine.cluster.clone())),
        );
    }
    if let Some(need) = &machine.bound_for {
        let text = format!(
            "{} at priority {}",
            words::need_long(need),
            words::signed(machine.bound_priority.into())
        );
        said.push(Said::new("bound for", text).opening(Screen::Need(need.long_id.clone())));
    }
    if let Some(need) = &machine.draining_for {
        said.push(
            Said::new("drains for", words::need_long(need)).opening(Screen::Need(need.long_id.clone())),
        );
    }
    if let Some(under_way) = &machine.under_way {
        let since = words::span(now.saturating_sub(under_way.since_unix_nanos));
        let text = format!("{}: {} for {since}", words::kind(under_way.kind), step(&under_way.step));
        said.push(Said::new("under way", text).toned(Tone::Warn));
    }
    said
}

/// Where a move is, in words.
pub(super) fn step(code: &str) -> String {
    match code {
        "waits_for_blob" => "waits for the cluster's join data".into(),
        "waits_for_cluster" => "waits for the cluster to let go".into(),
        "calling" => "the provider is being told".into(),
        "asking" => "the provider is being asked how far it is".into(),
        "backoff" => "waits before it is tried again".into(),
        other => other.replace('_', " "),
    }
}

fn price(machine: &Machine, answer: &MachineExplanation, now: i64) -> String {
    let price = sentence::price(machine.usd_per_hour, answer.price_source.as_ref(), now);
    if machine.interruption_probability == 0.0 {
        return price;
    }
    let whole = words::hourly(answer.effective_usd_per_hour);
    format!("{price}; {whole} with the risk of {}", words::probability(machine.interruption_probability))
}

fn claimed(need: &Need) -> Said {
    let key = need.key.clone().unwrap_or_default();
    let text = format!("{} claims it", words::need_long(&key));
    Said::new("why kept", text).opening(Screen::Need(key.long_id))
}

fn release(answer: &MachineExplanation, machine: &Machine, now: i64) -> Option<Said> {
    if machine.idle_since_unix_nanos == 0 {
        return None;
    }
    let text = match answer.release_due_unix_nanos {
        0 => "never: capacity of this type is kept".into(),
        due if due <= now => "due".into(),
        due => format!("in {} if nobody wants it", words::span(due.saturating_sub(now))),
    };
    Some(Said::new("release", text))
}
