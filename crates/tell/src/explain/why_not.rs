//! The first rule that keeps a need and a machine apart.

use bigfleet_view::v1::{NeedRef, WhyNotAnswer};

use crate::sentence;
use crate::story::Story;
use crate::style::Tone;
use crate::words::{capacity_type, hourly, need_long, signed, state};

/// The answer in sentences.
pub fn story(answer: &WhyNotAnswer) -> Story {
    let mut story = Story::default();
    let need = answer.need.clone().unwrap_or_default();
    let machine = answer.machine.clone().unwrap_or_default();
    let mark = sentence::simulated(answer.as_of.as_ref());
    let (sentence, tone) = because(answer, &need, &machine.id);
    story.heading(format!("{sentence}{mark}"), tone);
    let place = if machine.cluster.is_empty() { String::new() } else { format!(" for {}", machine.cluster) };
    story.say(
        "machine",
        format!(
            "{} {} {} {}, {}{place}, {}",
            machine.id,
            machine.instance_type,
            capacity_type(machine.capacity_type),
            machine.zone,
            state(machine.state),
            hourly(machine.usd_per_hour)
        ),
    );
    story.say("more", format!("bigfleet explain need {}", need.id));
    story
}

fn because(answer: &WhyNotAnswer, need: &NeedRef, machine: &str) -> (String, Tone) {
    let name = need_long(need);
    let other = || answer.other.as_ref().map_or_else(|| "another need".into(), need_long);
    let why = match answer.code.as_str() {
        "none" => return (format!("{name} has {machine}, or gets it."), Tone::Good),
        "dead" => format!("{machine} is failed or being deleted"),
        "requirement" => match &answer.value {
            Some(value) => format!("it asks for {:?}, and {machine} has {value:?}", answer.requirement),
            None => format!("it asks for {:?}, and {machine} lacks that label", answer.requirement),
        },
        "too_small" => format!(
            "one piece of it needs {} {}, and {machine} provides {}",
            answer.needed, answer.resource, answer.provides
        ),
        "covered" => "it misses nothing any more: other machines served it first".into(),
        "adds_nothing" => format!("{machine} has nothing of what it still misses"),
        "parked" => "the gang is parked and acquires nothing until it is tried again".into(),
        "no_domain" => "the gang has no domain that could carry it, so nothing is acquired for it".into(),
        "other_domain" => {
            format!(
                "the gang was placed in {}, and {machine} lies in {}",
                answer.chosen_domain, answer.machine_domain
            )
        }
        "claimed_by" => format!(
            "{machine} is claimed by {} (priority {}, its own is {})",
            other(),
            signed(answer.priority.into()),
            signed(answer.need_priority.into())
        ),
        "not_lower_priority" => format!(
            "{machine} was bound at priority {}, which is not below its {}",
            signed(answer.priority.into()),
            signed(answer.need_priority.into())
        ),
        "preempted_for" => format!("{machine} was just preempted for {}", other()),
        "in_transit" => format!("{machine} is on its way for somebody else"),
        "spread" => format!("{machine} would break its strict spread"),
        code => format!("of a rule this program is too old to name ({code})"),
    };
    (format!("{name} does not have {machine}: {why}."), Tone::Warn)
}
