//! One decision: what was done to which machine, for whom, by which rule, and what came second.

use bigfleet_view::v1::{Decision, DecisionExplanation, Reasons, VictimScore};

use crate::output::Tone;
use crate::{sentence, words};

use super::super::model::Model;
use super::super::page::{Body, Form, Page, Pane, Said};
use super::super::screen::Screen;

/// All about one decision.
pub(super) fn page(model: &Model, answer: &DecisionExplanation) -> Page {
    let decision = answer.decision.clone().unwrap_or_default();
    let title = format!(
        "{} {} in cycle {}",
        words::kind(decision.kind),
        decision.machine,
        words::thousands(decision.cycle)
    );
    let mut panes = vec![Pane::new(title, Body::Said(facts(model, &decision, answer)))];
    if let Some(score) = &answer.score {
        panes.push(Pane::new("victim score", Body::Said(score_parts(score))));
    }
    Page { panes, form: Form::Text }
}

fn facts(model: &Model, decision: &Decision, answer: &DecisionExplanation) -> Vec<Said> {
    let withheld = sentence::withheld(decision);
    let sort = super::sort_of(&decision.instance_type, decision.capacity_type, &decision.zone);
    let mut said = vec![
        Said::new("when", model.clock(decision.unix_nanos)),
        Said::new("fate", words::fate(decision.fate)).toned(if withheld { Tone::Warn } else { Tone::Good }),
        Said::new(
            "machine",
            format!("{}: {} {}", decision.machine, sort, words::hourly(decision.usd_per_hour)),
        )
        .opening(Screen::Machine(decision.machine.clone())),
    ];
    if !decision.cluster.is_empty() {
        said.push(
            Said::new("cluster", decision.cluster.clone()).opening(Screen::Cluster(decision.cluster.clone())),
        );
    }
    if let Some(need) = &decision.need {
        let text =
            format!("{} at priority {}", words::need_long(need), words::signed(decision.priority.into()));
        said.push(Said::new("for", text).opening(Screen::Need(need.long_id.clone())));
    }
    if decision.grace_secs > 0 {
        said.push(Said::new("grace", words::span(i64::from(decision.grace_secs) * 1_000_000_000)));
    }
    let why = sentence::why(decision);
    if !why.is_empty() {
        said.push(Said::new("why", why));
    }
    if let Some(next) = decision.why.as_ref().and_then(|why| why.runner_up.as_ref()) {
        let sort = super::sort_of(&next.instance_type, next.capacity_type, &next.zone);
        let text = format!("{}: {} {}", next.machine, sort, words::hourly(next.usd_per_hour));
        said.push(Said::new("runner-up", text).opening(Screen::Machine(next.machine.clone())));
    }
    said.extend(answer.reasons.map(|reasons| Said::new("cycle ran", ran(reasons))));
    if answer.replayed {
        said.push(Said::new("", "worked out by running that cycle again").toned(Tone::Dim));
    }
    said
}

fn ran(reasons: Reasons) -> String {
    let named = [
        (reasons.demand, "demand changed"),
        (reasons.supply, "supply changed"),
        (reasons.command, "somebody told it to"),
        (reasons.leftover, "the cycle before left work"),
        (reasons.tick, "its time had come"),
    ];
    let named: Vec<&str> = named.into_iter().filter(|(applies, _)| *applies).map(|(_, text)| text).collect();
    named.join(", ")
}

fn score_parts(score: &VictimScore) -> Vec<Said> {
    let priorities = format!(
        "{} against {}: a gap of {}",
        words::signed(score.preemptor_priority.into()),
        words::signed(score.victim_priority.into()),
        words::signed(score.gap)
    );
    let part = |label, figure: f64, text: String| {
        Said::new(label, format!("{:>8}  {text}", sentence::figure_words(figure)))
    };
    vec![
        part("gap", score.gap_part, priorities),
        part("drain", score.drain_part, format!("grace of {} s", score.grace_secs)),
        part(
            "interruption",
            score.interruption_part,
            format!("penalty {}", words::usd_words(score.interruption_penalty_usd)),
        ),
        part(
            "reclamation",
            score.reclamation_part,
            format!("penalty {}", words::usd_words(score.reclamation_penalty_usd)),
        ),
        part("total", score.total, "the highest is taken".into()),
    ]
}
