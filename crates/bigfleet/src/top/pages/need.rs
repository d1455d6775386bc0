//! One need: what it asks, what it has, why it is short, who holds what it wants, and what would help.

use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_view::v1::remedy::Change;
use bigfleet_view::v1::{DomainCoverage, Holder, Need, NeedExplanation, Remedy, Removed};

use crate::output::Tone;
use crate::words;

use super::super::model::Model;
use super::super::page::{Body, Cell, Column, Form, Page, Pane, Row, Said, Table};
use super::super::screen::Screen;
use super::cluster::withheld_rows;
use super::{decisions, needs};

/// All about one need.
pub(super) fn page(model: &Model, answer: &NeedExplanation) -> Page {
    let need = answer.need.clone().unwrap_or_default();
    let key = need.key.clone().unwrap_or_default();
    let mut said = facts(model, &need);
    said.extend(answer.free.as_ref().map(free));
    said.extend(remedies(answer));
    let mut panes = vec![Pane::new(words::need_long(&key), Body::Said(said))];
    if let Some(funnel) = &answer.funnel {
        let title = format!(
            "{} considered, {} its own; removed by rule",
            words::count(funnel.considered, "machine"),
            words::thousands(funnel.its_own)
        );
        let rows = funnel.removed.iter().enumerate().map(|(number, removed)| removed_row(number, removed));
        panes.push(table(title, REMOVED, rows.collect(), "no rule removed any"));
        let rows = funnel.holders.iter().enumerate().map(|(number, holder)| holder_row(number, holder));
        let title = match funnel.unlisted_holders {
            0 => "who holds what it wants".to_owned(),
            others => format!(
                "who holds what it wants; {} more with {} others",
                words::thousands(funnel.unlisted_machines),
                words::thousands(others)
            ),
        };
        panes.push(table(title, HOLDERS, rows.collect(), "nobody"));
    }
    if !answer.domains.is_empty() {
        let rows = answer.domains.iter().map(domain_row).collect();
        panes.push(table(format!("how far each {} could carry it", need.domain_key), DOMAINS, rows, ""));
    }
    let machines = machines(answer);
    if !machines.is_empty() {
        panes.push(table("its machines", MACHINES, machines, ""));
    }
    let decided = |decided: &[_]| decided.iter().map(|decision| decisions::row(model, decision)).collect();
    if !answer.withheld.is_empty() {
        let rows = withheld_rows(decided(&answer.withheld));
        panes.push(table("withheld by the last cycle", decisions::COLUMNS, rows, ""));
    }
    let rows = decided(&answer.decisions);
    panes.push(table("decisions", decisions::COLUMNS, rows, "nothing was decided for it lately"));
    Page { panes, form: Form::Text }
}

fn table(title: impl Into<String>, columns: &'static [Column], rows: Vec<Row>, empty: &'static str) -> Pane {
    Pane::new(title, Body::Table(Table { columns, rows, empty }))
}

fn facts(model: &Model, need: &Need) -> Vec<Said> {
    let now = model.shard_now_unix_nanos();
    let key = need.key.clone().unwrap_or_default();
    let spec = need.spec.clone().unwrap_or_default();
    let mut said = vec![status(need, now)];
    said.push(Said::new("asks for", asks(&spec)));
    if !spec.requirements.is_empty() {
        let where_: Vec<String> = spec.requirements.iter().map(words::requirement).collect();
        said.push(Said::new("where", where_.join("; ")));
    }
    let has = u64::from(need.credited) + u64::from(need.acquired);
    let coming =
        if need.in_flight > 0 { format!(", {} on their way", need.in_flight) } else { String::new() };
    said.push(Said::new(
        "has",
        format!("{}{coming}, {}", words::count(has, "machine"), words::hourly(need.usd_per_hour)),
    ));
    if !need.domain.is_empty() {
        let covers = if need.domain_covers { "covers it" } else { "does not cover it" };
        said.push(Said::new("domain", format!("{} {}: {covers}", need.domain_key, need.domain)));
    }
    let seen = words::span(now.saturating_sub(need.first_seen_unix_nanos));
    said.push(Said::new(
        "priority",
        format!("{}, first seen {seen} ago", words::signed(spec.priority.into())),
    ));
    said.push(Said::new("cluster", key.cluster.clone()).opening(Screen::Cluster(key.cluster)));
    said
}

fn status(need: &Need, now: i64) -> Said {
    if need.satisfied {
        return Said::new("status", "covered").toned(Tone::Good);
    }
    let missing = if need.unresolved.is_empty() { &need.deficit } else { &need.unresolved };
    let since = match need.short_since_unix_nanos {
        0 => String::new(),
        since => format!(
            ", for {} (cycle {})",
            words::span(now.saturating_sub(since)),
            words::thousands(need.short_since_cycle)
        ),
    };
    let text = format!("{}: {} missing{since}", words::reason(need.reason), words::amounts(missing));
    Said::new("status", text).toned(needs::reason_tone(need.reason()))
}

fn asks(spec: &CapacityNeed) -> String {
    let total = words::amounts(&spec.aggregate_resources);
    let unit = if spec.min_unit.is_empty() {
        String::new()
    } else {
        format!(", in units of {}", words::amounts(&spec.min_unit))
    };
    format!("{total}{unit}")
}

fn free(free: &bigfleet_view::v1::FreeSupply) -> Said {
    let text = format!(
        "{} idle, {} quota",
        words::thousands(free.idle.into()),
        words::thousands(free.speculative.into())
    );
    if free.cheapest.is_empty() {
        return Said::new("free for it", text);
    }
    let price = words::hourly(free.cheapest_usd_per_hour);
    Said::new("free for it", format!("{text}; cheapest {} at {price}", free.cheapest))
        .opening(Screen::Machine(free.cheapest.clone()))
}

fn remedies(answer: &NeedExplanation) -> Vec<Said> {
    if answer.remedies.is_empty() && answer.remedies_tried {
        return vec![Said::new("would help", "nothing that was tried")];
    }
    let tried =
        answer.remedies.iter().map(|remedy| Said::new("would help", remedy_text(remedy)).toned(Tone::Good));
    let untried = (answer.remedies_untried > 0).then(|| {
        let more = words::count(answer.remedies_untried.into(), "more change");
        Said::new("would help", format!("{more} might, and were not tried for want of time"))
    });
    tried.chain(untried).collect()
}

fn remedy_text(remedy: &Remedy) -> String {
    let change = match &remedy.change {
        Some(Change::Priority(priority)) => format!("priority {}", words::signed((*priority).into())),
        Some(Change::WithoutRequirement(requirement)) => format!("without {requirement}"),
        Some(Change::WithoutSpread(_)) => "without a strict spread".into(),
        Some(Change::Less(less)) => format!("asking for no more than {}", words::amounts(&less.amounts)),
        None => "a change this program does not know".into(),
    };
    let gains = words::count(remedy.acquires.into(), "machine");
    let preempts =
        if remedy.preempts > 0 { format!(", preempts {}", remedy.preempts) } else { String::new() };
    format!("{change}: {gains} at once{preempts}")
}

const REMOVED: &[Column] =
    &[Column::left("RULE", 255), Column::right("MACHINES", 200), Column::left("WHAT", 100)];

fn removed_row(number: usize, removed: &Removed) -> Row {
    let rule = match removed.code.as_str() {
        "dead" => "broken or leaving",
        "requirement" => "requirement",
        "min_unit" => "too small",
        "other_domain" => "in another domain",
        "adds_nothing" => "adds nothing",
        other => other,
    };
    let cells = vec![rule.into(), words::thousands(removed.machines).into(), removed.detail.as_str().into()];
    Row { key: format!("removed {number}"), opens: None, cells }
}

const HOLDERS: &[Column] = &[
    Column::right("MACHINES", 200),
    Column::left("HELD BY", 255),
    Column::right("PRIORITY", 150),
    Column::left("STATE", 100),
];

fn holder_row(number: usize, holder: &Holder) -> Row {
    let who = match (&holder.need, holder.cluster.as_str()) {
        (Some(need), _) => words::need_long(need),
        (None, "") => "nobody: free".into(),
        (None, cluster) => format!("{cluster}, claimed by no need"),
    };
    let priority = if holder.need.is_some() { words::signed(holder.priority.into()) } else { String::new() };
    Row {
        key: format!("holder {number}"),
        opens: holder.need.as_ref().map(|need| Screen::Need(need.long_id.clone())),
        cells: vec![
            words::thousands(holder.machines).into(),
            who.into(),
            priority.into(),
            words::state(holder.state).into(),
        ],
    }
}

const DOMAINS: &[Column] = &[
    Column::left("DOMAIN", 255),
    Column::right("COVERS", 200),
    Column::right("MACHINES", 150),
    Column::right("WITHIN REACH", 190),
];

fn domain_row(domain: &DomainCoverage) -> Row {
    let per_cent = |per_mille: u32| format!("{}.{} %", per_mille / 10, per_mille % 10);
    Row {
        key: format!("domain {}", domain.domain),
        opens: None,
        cells: vec![
            domain.domain.as_str().into(),
            per_cent(domain.coverage_per_mille).into(),
            words::thousands(domain.machines.into()).into(),
            format!(
                "{} machines, {}",
                words::thousands(domain.reachable_machines.into()),
                per_cent(domain.reachable_per_mille)
            )
            .into(),
        ],
    }
}

const MACHINES: &[Column] = &[Column::left("MACHINE", 255), Column::left("AS", 200)];

fn machines(answer: &NeedExplanation) -> Vec<Row> {
    let sorts = [
        (&answer.credited, "kept", Tone::Good),
        (&answer.acquired, "given by the last cycle", Tone::Good),
        (&answer.in_flight, "drains for it", Tone::Warn),
        (&answer.victims, "preempted for it", Tone::Bad),
    ];
    let rows = sorts.into_iter().flat_map(|(machines, what, tone)| {
        machines.iter().map(move |machine| Row {
            key: format!("{what} {machine}"),
            opens: Some(Screen::Machine(machine.clone())),
            cells: vec![machine.as_str().into(), Cell::toned(what, tone)],
        })
    });
    rows.collect()
}
