//! How a cluster stands.

use std::fmt::Write as _;

use bigfleet_view::v1::{ClusterExplanation, SupplyCell};

use crate::sentence;
use crate::story::Story;
use crate::style::Tone;
use crate::words::{amounts, capacity_type, clock_time, count, hourly, need, reason, span, state, thousands};

/// The answer in sentences.
pub fn story(answer: &ClusterExplanation) -> Story {
    let mut story = Story::default();
    let cluster = answer.cluster.clone().unwrap_or_default();
    let lane = cluster.lane.clone().unwrap_or_default();
    let now = answer.as_of.as_ref().map_or(0, |as_of| as_of.now_unix_nanos);
    let mark = sentence::simulated(answer.as_of.as_ref());
    let (needs, machines) = (count(lane.needs.into(), "need"), count(lane.machines.into(), "machine"));
    let state_of_needs = match (lane.unmet, lane.short) {
        (0, 0) => "all covered".to_owned(),
        (0, short) => format!("{} waiting for machines on their way", thousands(short.into())),
        (unmet, _) => format!("{} unmet", thousands(unmet.into())),
    };
    let tone = if lane.unmet > 0 { Tone::Bad } else { Tone::Good };
    story.heading(
        format!(
            "{}: {needs}, {state_of_needs}; {machines}, {}.{mark}",
            lane.cluster,
            hourly(lane.usd_per_hour)
        ),
        tone,
    );
    let mut session = match &cluster.session {
        Some(session) => {
            let open = span(now.saturating_sub(session.opened_unix_nanos));
            format!("connected for {open} ({})", session.protocol)
        }
        None => "not connected".into(),
    };
    match cluster.reported_unix_nanos {
        0 => session
            .push_str("; it has not reported in this life of the shard, so nothing is reclaimed from it"),
        time => {
            let _ = write!(session, "; last report {} ago", span(now.saturating_sub(time)));
        }
    }
    story.say_toned("session", session, if lane.connected { Tone::Plain } else { Tone::Bad });
    if let Some(held) = &cluster.held {
        let text = format!(
            "its last roll-up asks for far less and waits to be confirmed, seen {} of {} times",
            held.seen, held.of
        );
        story.say_toned("held", text, Tone::Warn);
    }
    for pause in &cluster.pauses {
        story.say_toned("paused", sentence::pause(pause, now), Tone::Warn);
    }
    if cluster.backoff_until_unix_nanos > now {
        let text = format!(
            "its operator failed {} in a row and is left alone until {}: {}",
            count(cluster.operator_failures.into(), "time"),
            clock_time(cluster.backoff_until_unix_nanos, now),
            cluster.operator_error
        );
        story.say_toned("operator", text, Tone::Bad);
    }
    let row = |supply: &SupplyCell| {
        let what = format!("{} {}", capacity_type(supply.capacity_type), state(supply.state));
        let what = what.trim_start_matches("- ").to_owned();
        vec![thousands(supply.machines.into()), what, hourly(supply.usd_per_hour)]
    };
    let rows: Vec<Vec<String>> = cluster.machines.iter().map(row).collect();
    story.columns("machines", &rows, &[0, 2]);
    if let Some(cap) = &cluster.reclaim_cap {
        story.say("reclaim cap", format!("{} of {} used in this window", cap.used, cap.cap));
    }
    for short in answer.short.iter().take(5) {
        let key = short.key.clone().unwrap_or_default();
        let long = match short.short_since_unix_nanos {
            0 => String::new(),
            since => format!(", for {}", span(now.saturating_sub(since))),
        };
        story.say_toned(
            "short",
            format!("{}: {}, misses {}{long}", need(&key), reason(short.reason), amounts(&short.deficit)),
            Tone::Warn,
        );
    }
    if answer.short.len() > 5 {
        story.say(
            "short",
            format!(
                "and {} more: bigfleet get needs --unmet --cluster {}",
                answer.short.len() - 5,
                lane.cluster
            ),
        );
    }
    for decision in answer.withheld.iter().take(3) {
        story.say_toned("withheld", sentence::action(decision), Tone::Warn);
    }
    for decision in answer.decisions.iter().take(5) {
        story.say("decisions", sentence::decision(decision, now));
    }
    story
}
