//! Why a cycle decided what it did about one machine.

use bigfleet_view::v1::{DecisionExplanation, Reasons, VictimScore};

use crate::sentence::{self, figure_words};
use crate::story::Story;
use crate::style::Tone;
use crate::words::{
    amounts, capacity_type, clock_time, fate, hourly, kind, need_long, one_of, signed, span, state, usd_words,
};

/// The answer in sentences.
pub fn story(answer: &DecisionExplanation) -> Story {
    let mut story = Story::default();
    let decision = answer.decision.clone().unwrap_or_default();
    let as_of = answer.as_of.clone().unwrap_or_default();
    let now = as_of.now_unix_nanos;
    let mark = sentence::simulated(answer.as_of.as_ref());
    story.heading(format!("Cycle {}: {}.{mark}", decision.cycle, sentence::action(&decision)), Tone::Head);
    let ago = span(now.saturating_sub(decision.unix_nanos));
    story.say(
        "when",
        format!("{} ({ago} ago){}", clock_time(decision.unix_nanos, now), ran(answer.reasons.as_ref())),
    );
    let rule = match (decision.recorded_edition, &decision.why) {
        (Some(edition), None) => {
            format!("not kept; it was a rule of edition {edition}, which this shard no longer has")
        }
        _ => sentence::why(&decision),
    };
    story.say("rule", rule);
    if let Some(next) = decision.why.as_ref().and_then(|why| why.runner_up.as_ref()) {
        story.say("next best", sentence::runner_up(next));
    }
    if let Some(score) = &answer.score {
        scores(&mut story, score);
    }
    if let Some(need) = &answer.need {
        let key = need.key.clone().unwrap_or_default();
        let missing = amounts(&need.deficit);
        let missing = if missing.is_empty() { String::new() } else { format!("; it missed {missing}") };
        let priority = need.spec.as_ref().map_or(decision.priority, |spec| spec.priority);
        story.say("need", format!("{}, priority {}{missing}", need_long(&key), signed(priority.into())));
    }
    if let Some(machine) = &answer.machine {
        let provides = amounts(&machine.provides);
        let provides = if provides.is_empty() { String::new() } else { format!("; {provides}") };
        let sort =
            format!("{} {} {}", machine.instance_type, capacity_type(machine.capacity_type), machine.zone);
        story.say(
            "machine",
            format!("{sort}, {}, then {}{provides}", hourly(machine.usd_per_hour), state(machine.state)),
        );
    }
    let became = if sentence::withheld(&decision) {
        format!("withheld: {}", fate(decision.fate))
    } else {
        format!("{} was begun", kind(decision.kind))
    };
    story.say("fate", became);
    let how = if answer.replayed {
        "worked out by running the cycle again"
    } else {
        "kept from when it was decided"
    };
    let rules = decision.recorded_edition.map_or_else(String::new, |edition| {
        let now = answer.edition.unwrap_or_default();
        format!("; decided under edition {edition} of the rules, this shard decides under edition {now}")
    });
    story.say("record", format!("cycle {}, {how}{rules}", decision.cycle));
    if decision.recorded_edition.is_some() {
        let today = match &answer.today {
            Some(today) => format!("{}: {}", sentence::action(today), sentence::why(today)),
            None => "nothing about this machine, from what was known then".into(),
        };
        story.say("today", today);
    }
    story
}

/// Why the cycle ran.
fn ran(reasons: Option<&Reasons>) -> String {
    let Some(reasons) = reasons else { return String::new() };
    let parts = [
        (reasons.demand, "demand changed"),
        (reasons.supply, "supply changed"),
        (reasons.command, "somebody gave a command"),
        (reasons.leftover, "the cycle before left work"),
        (reasons.tick, "time had passed"),
    ];
    let parts: Vec<String> = parts.iter().filter(|(set, _)| *set).map(|(_, text)| (*text).into()).collect();
    if parts.is_empty() { String::new() } else { format!("; the cycle ran because {}", one_of(&parts, 5)) }
}

/// The parts of a victim's score, as columns that add up.
pub(crate) fn scores(story: &mut Story, score: &VictimScore) {
    let part = |name: &str, value: f64, from: String| vec![name.to_owned(), figure_words(value), from];
    let rows = [
        part(
            "priority gap",
            score.gap_part,
            format!(
                "{} over {}",
                signed(score.preemptor_priority.into()),
                signed(score.victim_priority.into())
            ),
        ),
        part(
            "drain",
            score.drain_part,
            format!("{} grace", span(i64::from(score.grace_secs) * 1_000_000_000)),
        ),
        part(
            "interruption",
            score.interruption_part,
            format!("penalty {}", usd_words(score.interruption_penalty_usd)),
        ),
        part(
            "reclamation",
            score.reclamation_part,
            format!("penalty {}", usd_words(score.reclamation_penalty_usd)),
        ),
        part("total", score.total, String::new()),
    ];
    story.columns("score", &rows, &[1]);
}
