//! By which rules a need has what it has, and why a gang stands in its domain.

use bigfleet_view::v1::{DomainChoice, Lent, Origins};

use crate::sentence;
use crate::story::Story;
use crate::words::{count, hourly, need_long, one_of};

/// Where the machines that credit gave a need come from.
pub(super) fn sources(story: &mut Story, origins: &Origins, credited: u32) {
    if origins.gangs > 0 {
        let gangs = count(origins.gangs.into(), "gang");
        let fit = if origins.gangs == 1 { "it fits on one machine" } else { "each fits on one machine" };
        story.say("folded", format!("{gangs}, served as one plain need: {fit}, so no domain is needed"));
    }
    if origins.own > 0 {
        let all = origins.own == credited;
        let machines = count(origins.own.into(), "machine");
        let whose = if all && origins.own > 1 { format!("all {machines}") } else { machines };
        story.say("own", format!("{whose} bound or being created for it: a need keeps its own first"));
    }
    for lent in &origins.unkept {
        let whose = lent.need.as_ref().map_or_else(|| "nobody in particular".to_owned(), need_long);
        story.say("unkept", format!("{} that no need keeps, bound for {whose}", named(lent)));
    }
    for lent in &origins.taken_over {
        let whose = lent.need.as_ref().map_or_else(|| "a later need".to_owned(), need_long);
        let text =
            format!("{} from {whose}: nothing was left to acquire, and its turn came first", named(lent));
        story.say("taken over", text);
    }
    for lent in &origins.lost {
        let whose = lent.need.as_ref().map_or_else(|| "another need".to_owned(), need_long);
        story.say("lent", format!("{} of its own to {whose}", named(lent)));
    }
    if origins.given_back > 0 {
        let names = one_of(&origins.given_back_examples, 5);
        let more = if (origins.given_back_examples.len() as u32) < origins.given_back { ", …" } else { "" };
        let machines = count(origins.given_back.into(), "machine");
        story.say("given back", format!("{machines} of its own ({names}{more}): the others cover it"));
    }
}

fn named(lent: &Lent) -> String {
    let more = if (lent.examples.len() as u32) < lent.machines { ", …" } else { "" };
    format!("{} ({}{more})", count(lent.machines.into(), "machine"), lent.examples.join(", "))
}

/// Why a gang was given its domain: what the rule that decided compared there and in the next best.
pub(super) fn because(choice: &DomainChoice) -> String {
    let (here, there) = (choice.figure, choice.next_figure);
    let next = &choice.next;
    let share = |figure: f64| match figure {
        0.0 => "none".to_owned(),
        figure => sentence::percent(figure, choice.resources),
    };
    match choice.rule.as_str() {
        "home" => ": its own machines there do".into(),
        "only" if choice.covers => ": no other could".into(),
        "only" => ": no other has a machine for it".into(),
        "own" => {
            format!(": {} of it runs there on its own machines, in {next} {}", share(here), share(there))
        }
        "creditable" => {
            format!(": its cluster has {} of it there, in {next} {}", share(here), share(there))
        }
        "new_money" if here == 0.0 => {
            format!(
                ": completing it there adds nothing to the bill, in {next} it would add {}",
                hourly(there)
            )
        }
        "new_money" => {
            format!(": completing it there adds {}, in {next} it would add {}", hourly(here), hourly(there))
        }
        "tightest" => format!(": there least would be left over; {next} costs as much and is larger"),
        "nearest" => format!(": {} of it could be had there, in {next} {}", share(here), share(there)),
        "machines" => format!(": {next} is as good, with {there:.0} machines instead of {here:.0}"),
        "name" => format!(": {next} is as good, and comes later by name"),
        _ => String::new(),
    }
}
