//! Why a machine is there, why it was chosen, why it is kept and what comes next.

use std::fmt::Write as _;

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::{ActionKind, Machine, MachineExplanation};

use crate::sentence;
use crate::story::Story;
use crate::style::Tone;
use crate::words::{
    amounts, capacity_type, clock_time, count, hourly, kind, need_long, reason, signed, span, state,
    usd_words, used,
};

/// The answer in sentences.
pub fn story(answer: &MachineExplanation) -> Story {
    let mut story = Story::default();
    let machine = answer.machine.clone().unwrap_or_default();
    let as_of = answer.as_of.clone().unwrap_or_default();
    let now = sentence::seen_at(&as_of);
    let mark = sentence::simulated(answer.as_of.as_ref());
    story.heading(format!("{}{mark}", heading(&machine)), tone(&machine));
    story.say("price", price(answer, &machine, now));
    story.say("provides", amounts(&machine.provides));
    if machine.state_since_unix_nanos > 0 {
        let time = clock_time(machine.state_since_unix_nanos, now);
        let long = span(now.saturating_sub(machine.state_since_unix_nanos));
        story.say("since", format!("{time} ({long}) {}", state(machine.state)));
    }
    if !machine.trouble.is_empty() {
        story.say_toned("trouble", trouble(&machine), Tone::Bad);
    }
    if let Some(bound) = &answer.bound_by {
        let label = if bound.kind() == ActionKind::Provision { "why bought" } else { "why bound" };
        story.say(label, format!("{}: {}", cycle(bound.cycle, bound.unix_nanos, now), for_whom(bound)));
        story.say("rule", sentence::why(bound));
        if let Some(next) = bound.why.as_ref().and_then(|why| why.runner_up.as_ref()) {
            story.say("next best", sentence::runner_up(next));
        }
        // Had it been decided on again, that decision would be the newer one.
        if bound.kind() == ActionKind::Provision
            && !machine.cluster.is_empty()
            && machine.cluster == bound.cluster
        {
            story.say("why bound", "when it came, its need still claimed it");
        }
    }
    story.say("why kept", kept(answer, &machine, now));
    let used = used(&answer.r#use);
    if !used.is_empty() {
        story.say("used", format!("{used}, over all machines of its need"));
    }
    story.say("next", next(answer, &machine, now));
    printed(&mut story, answer, now);
    let decisions = answer.decisions.iter().filter(|decision| Some(*decision) != answer.bound_by.as_ref());
    for decision in decisions.take(4) {
        story.say("decisions", sentence::decision(decision, now));
    }
    story.say(
        "record",
        format!(
            "cycle {}{}; bigfleet explain machine {} --at {}",
            as_of.cycle,
            sentence::other_rules(&as_of),
            machine.id,
            as_of.cycle
        ),
    );
    story
}

/// Lines of output that are told, the last ones.
const MOST_LINES: usize = 20;
/// Letters of a line that are told.
const MOST_LETTERS: usize = 300;

/// What it printed while it joined.
fn printed(story: &mut Story, answer: &MachineExplanation, now: i64) {
    if !answer.join_output_trouble.is_empty() {
        story.say("join printed", format!("not known: {}", answer.join_output_trouble));
    }
    let Some(output) = &answer.join_output else { return };
    let mut text = format!("joining {}", output.cluster);
    if !output.outcome.is_empty() {
        let _ = write!(text, ", {}", output.outcome);
    }
    if output.ended_unix_nanos > 0 {
        let _ = write!(text, " at {}", clock_time(output.ended_unix_nanos, now));
    }
    let lines: Vec<&str> = output.text.trim_end().lines().collect();
    let skipped = lines.len().saturating_sub(MOST_LINES);
    if output.text.trim().is_empty() {
        text.push_str("; it printed nothing");
    } else if skipped > 0 || output.is_cut {
        let _ =
            write!(text, "; its last {} (--json has more):", count((lines.len() - skipped) as u64, "line"));
    } else {
        text.push(':');
    }
    story.say("join printed", text);
    for line in &lines[skipped..] {
        let short: String = line.chars().take(MOST_LETTERS).collect();
        let end = if short.len() < line.len() { "…" } else { "" };
        story.say("join printed", format!("{short}{end}"));
    }
}

fn heading(machine: &Machine) -> String {
    let mut text = format!(
        "{}  {} {} {}  {}",
        machine.id,
        machine.instance_type,
        capacity_type(machine.capacity_type),
        machine.zone,
        state(machine.state)
    );
    if !machine.cluster.is_empty() {
        let _ = write!(text, " for {}", machine.cluster);
    }
    format!("{text}  {}", hourly(machine.usd_per_hour))
}

fn tone(machine: &Machine) -> Tone {
    if machine.trouble.is_empty() { Tone::Head } else { Tone::Bad }
}

fn price(answer: &MachineExplanation, machine: &Machine, now: i64) -> String {
    let said = sentence::price(machine.usd_per_hour, answer.price_source.as_ref(), now);
    if answer.effective_usd_per_hour == machine.usd_per_hour || machine.interruption_probability == 0.0 {
        return said;
    }
    let with_risk = sentence::effective(
        machine.usd_per_hour,
        machine.interruption_probability,
        machine.interruption_penalty_usd,
        answer.effective_usd_per_hour,
    );
    format!("{said}; with its risk {with_risk}")
}

fn cycle(cycle: u64, unix_nanos: i64, now: i64) -> String {
    format!("cycle {cycle} at {}", clock_time(unix_nanos, now))
}

fn for_whom(decision: &bigfleet_view::v1::Decision) -> String {
    match &decision.need {
        Some(need) => format!("for {}, priority {}", need_long(need), signed(decision.priority.into())),
        None => sentence::action(decision),
    }
}

fn trouble(machine: &Machine) -> String {
    let what = match machine.trouble.as_str() {
        "failed" => "it failed and does not count",
        "quarantined" => "it is kept apart after repeated failures and does not count",
        "overdue" => "it has been in its state for too long and does not count",
        "cooling" => "it failed a moment ago and is left alone for a while",
        "fenced" => "another shard owns it",
        other => other,
    };
    if machine.last_error.is_empty() { what.into() } else { format!("{what}: {}", machine.last_error) }
}

fn kept(answer: &MachineExplanation, machine: &Machine, now: i64) -> String {
    if let Some(need) = &answer.claimed_by {
        let key = need.key.clone().unwrap_or_default();
        let machines = count((need.credited + need.acquired).into(), "machine");
        let status =
            if need.satisfied { "covered".to_owned() } else { format!("short, {}", reason(need.reason)) };
        let other = machine.bound_for.as_ref().filter(|bound| bound.long_id != key.long_id);
        let other =
            other.map_or_else(String::new, |bound| format!("; it was bound for {}", need_long(bound)));
        let how = match answer.origin.as_str() {
            "own" => "; it was bound for it, and a need keeps its own first",
            "unkept" => "; no need kept it",
            "taken_over" => "; taken over, because nothing was left to acquire",
            _ => "",
        };
        return format!("claimed by {} ({machines}, {status}){how}{other}", need_long(&key));
    }
    if let Some(need) = &machine.draining_for {
        return format!("it drains for {}", need_long(need));
    }
    match machine.state() {
        MachineState::Idle if answer.hold_nanos == 0 => "it is fixed capacity and never given back".into(),
        MachineState::Idle if machine.idle_since_unix_nanos > 0 => format!(
            "idle for {} and held for {} in case it is wanted again",
            span(now.saturating_sub(machine.idle_since_unix_nanos)),
            span(answer.hold_nanos)
        ),
        MachineState::Configured => "no need claims it any more".into(),
        _ => String::new(),
    }
}

/// What will happen to it.
fn next(answer: &MachineExplanation, machine: &Machine, now: i64) -> String {
    if let Some(under_way) = &machine.under_way {
        let mut text = format!("{} is under way: {}", kind(under_way.kind), under_way.step.replace('_', " "));
        if under_way.tries > 1 {
            let _ = write!(text, ", {}", count(under_way.tries.into(), "try"));
        }
        if under_way.until_unix_nanos > now {
            let _ = write!(
                text,
                ", its grace ends at {} ({} left)",
                clock_time(under_way.until_unix_nanos, now),
                span(under_way.until_unix_nanos - now)
            );
        }
        if let Some(expected) = &machine.expected {
            let _ = write!(text, "; {}", sentence::expected(expected, now));
        }
        return text;
    }
    if answer.ordered() != ActionKind::Unspecified {
        return format!("the last cycle ordered {}", kind(answer.ordered));
    }
    match (machine.state(), answer.release_due_unix_nanos) {
        (MachineState::Idle, due) if due > now => {
            let left = due - now;
            let cost = machine.usd_per_hour * left as f64 / 3.6e12;
            format!(
                "given back at {} if nobody wants it ({} left, {} more)",
                clock_time(due, now),
                span(left),
                usd_words(cost)
            )
        }
        (MachineState::Idle, due) if due > 0 => "to be given back by the next cycle".into(),
        (MachineState::Configured, _) if answer.claimed_by.is_none() => {
            "to be reclaimed, as far as the rails allow".into()
        }
        _ => String::new(),
    }
}
