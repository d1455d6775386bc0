//! Who was preempted for whom, by which score.

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::{Preemption, PreemptionExplanation};

use super::decision;
use crate::sentence;
use crate::story::Story;
use crate::style::Tone;
use crate::words::{clock_time, count, fate, need_long, signed, span, state};

/// The answer in sentences.
pub fn story(answer: &PreemptionExplanation) -> Story {
    let mut story = Story::default();
    let now = answer.as_of.as_ref().map_or(0, sentence::seen_at);
    let mark = sentence::simulated(answer.as_of.as_ref());
    if answer.preemptions.is_empty() {
        story.heading(format!("No preemption is known.{mark}"), Tone::Good);
        story.say("look at", "bigfleet get decisions --kind preempt --all");
        return story;
    }
    let number = count(answer.preemptions.len() as u64, "preemption");
    story.heading(format!("{number}, the newest first.{mark}"), Tone::Head);
    for preemption in &answer.preemptions {
        one(&mut story, preemption, now);
    }
    story
}

fn one(story: &mut Story, preemption: &Preemption, now: i64) {
    let decision = preemption.decision.clone().unwrap_or_default();
    let time = clock_time(decision.unix_nanos, now);
    story.heading(format!("{} at {time}, cycle {}", decision.machine, decision.cycle), Tone::Warn);
    let victim = match &preemption.victim_need {
        Some(need) => need_long(need),
        None => format!("cluster {}", decision.cluster),
    };
    let victim_priority = preemption.score.as_ref().map(|score| score.victim_priority);
    let at = victim_priority
        .map(|priority| format!(" (priority {})", signed(priority.into())))
        .unwrap_or_default();
    story.say("taken from", format!("{victim}{at}"));
    if let Some(need) = &decision.need {
        story.say("for", format!("{} (priority {})", need_long(need), signed(decision.priority.into())));
    }
    story.say("rule", sentence::why(&decision));
    if let Some(score) = &preemption.score {
        decision::scores(story, score);
    }
    let grace = span(i64::from(decision.grace_secs) * 1_000_000_000);
    let left = match preemption.until_unix_nanos {
        time if time > now => format!(", {} left", span(time - now)),
        _ => String::new(),
    };
    story.say("grace", format!("{grace}{left}"));
    let place = match preemption.state() {
        MachineState::Unspecified => "the machine is gone".to_owned(),
        _ => format!("the machine is {}", state(preemption.state)),
    };
    let withheld = if sentence::withheld(&decision) {
        format!("; withheld: {}", fate(decision.fate))
    } else {
        String::new()
    };
    story.say("now", format!("{place}{withheld}"));
}
