//! Why a need is covered, waits or is short, and what would help it.

use std::fmt::Write as _;

use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_view::v1::remedy::Change;
use bigfleet_view::v1::{AsOf, Funnel, Holder, Need, NeedExplanation, NeedRef, Reason, Remedy};

use crate::explain::origin;
use crate::sentence;
use crate::story::Story;
use crate::style::Tone;
use crate::words::{
    amounts, clock_time, count, hourly, need_long, one_of, reason, requirement, signed, span, state,
    thousands,
};

/// The answer in sentences.
pub fn story(answer: &NeedExplanation) -> Story {
    let mut story = Story::default();
    let need = answer.need.clone().unwrap_or_default();
    let key = need.key.clone().unwrap_or_default();
    let spec = need.spec.clone().unwrap_or_default();
    let as_of = answer.as_of.clone().unwrap_or_default();
    let now = sentence::seen_at(&as_of);
    let tone = match (need.satisfied, need.reason()) {
        (true, _) => Tone::Good,
        (false, Reason::InFlight) => Tone::Warn,
        (false, _) => Tone::Bad,
    };
    let mark = sentence::simulated(answer.as_of.as_ref());
    story.heading(format!("{}{mark}", heading(&need, &key, &spec)), tone);
    if need.parked {
        story.say_toned("parked", parked(&need, &as_of, now), Tone::Warn);
    }
    story.say("wants", wants(&spec));
    story.say("has", has(answer, &need));
    if let Some(origins) = &answer.origins {
        origin::sources(&mut story, origins, need.credited);
    }
    if let Some(expected) = need.expected.as_ref().filter(|_| need.coming > 0) {
        let coming = count(need.coming.into(), "machine");
        story.say("on its way", format!("{coming}, the last {}", sentence::expected(expected, now)));
    }
    if !need.satisfied {
        story.say("missing", missing(&need));
    }
    if need.pods_waiting > 0 {
        let names = need.pods_waiting_examples.iter().take(3).cloned().collect::<Vec<_>>().join(", ");
        let pods = count(need.pods_waiting.into(), "pod");
        story.say("waiting", format!("{pods} without a node, such as {names}"));
    }
    if !need.reserved.is_empty() {
        let reserved = amounts(&need.reserved);
        story.say("reserved", format!("{reserved} beyond the sum of its pods: some found no hole"));
    }
    domains(&mut story, answer, &need);
    if let Some(funnel) = &answer.funnel {
        story.say("considered", considered(funnel));
        held(&mut story, funnel, spec.priority, need.satisfied);
    }
    if let Some(free) = answer.free.as_ref().filter(|_| !need.satisfied) {
        let text = match (free.idle, free.speculative) {
            (0, 0) => "nothing it could use is free".to_owned(),
            (idle, quota) => format!(
                "{} idle and {} of quota it could use; the cheapest is {} at {}",
                thousands(idle.into()),
                thousands(quota.into()),
                free.cheapest,
                sentence::price(free.cheapest_usd_per_hour, free.price_source.as_ref(), now)
            ),
        };
        story.say("free", text);
    }
    for decision in &answer.withheld {
        story.say_toned("withheld", sentence::action(decision), Tone::Warn);
    }
    for remedy in &answer.remedies {
        story.say("would help", helps(remedy));
    }
    if answer.remedies_untried > 0 {
        let more = count(answer.remedies_untried.into(), "more change");
        story
            .say("would help", format!("{more} might, and were not tried for want of time; --thorough does"));
    }
    if !need.satisfied
        && answer.remedies_tried
        && answer.remedies_untried == 0
        && answer.remedies.is_empty()
        && need.reason() != Reason::InFlight
    {
        story.say(
            "would help",
            "nothing that was tried: a higher priority, fewer requirements, asking for less",
        );
    }
    if answer.asked_for_help_unix_nanos > 0 {
        let time = clock_time(answer.asked_for_help_unix_nanos, now);
        story.say("help", format!("asked for at {time}: the coordinator may ask other shards"));
    }
    for given in &answer.help {
        let (time, machines) = (clock_time(given.unix_nanos, now), count(given.machines.into(), "machine"));
        let names = one_of(&given.examples, 4);
        story.say("help", format!("shard {} gave {machines} ({names}) at {time}", given.shard_id));
    }
    if need.short_since_unix_nanos > 0 {
        let time = clock_time(need.short_since_unix_nanos, now);
        let long = span(now.saturating_sub(need.short_since_unix_nanos));
        story.say("since", format!("{time} ({long}), cycle {}", need.short_since_cycle));
    }
    for decision in answer.decisions.iter().take(3) {
        story.say("decisions", sentence::decision(decision, now));
    }
    let source = sentence::from_record(&as_of);
    story.say(
        "record",
        format!("cycle {}{source}; bigfleet explain need {} --at {}", as_of.cycle, key.id, as_of.cycle),
    );
    story
}

/// The answer in a sentence.
fn heading(need: &Need, key: &NeedRef, spec: &CapacityNeed) -> String {
    let name = need_long(key);
    if need.satisfied {
        let machines = count((need.credited + need.acquired).into(), "machine");
        return format!("{name} is covered: {machines}, {}.", hourly(need.usd_per_hour));
    }
    format!("{name} {}", why_short(need, spec))
}

/// Why a need is not covered, as what is said of it: `is short: no machine ...`.
pub fn why_short(need: &Need, spec: &CapacityNeed) -> String {
    let is_gang = need.key.as_ref().is_some_and(|key| !key.group.is_empty());
    match need.reason() {
        Reason::InFlight => format!(
            "is waiting: {} on the way to it will cover the rest.",
            count((need.in_flight + need.victims).into(), "machine")
        ),
        Reason::Parked => {
            let domain = domain_noun(need, spec);
            format!(
                "is parked: no {domain} could carry the gang for a while, so it takes nothing more for now."
            )
        }
        Reason::NoMatchingSupply => {
            "is short: no machine there is, whoever holds it, meets what it asks for.".into()
        }
        Reason::TopologyUnsatisfiable if is_gang => {
            format!("is waiting: no {} holds enough machines for the gang.", domain_noun(need, spec))
        }
        Reason::TopologyUnsatisfiable => {
            "is short: machines are free, but its strict spread keeps them out.".into()
        }
        Reason::PreemptionExhausted => "is short: all that may be preempted for it is not enough.".into(),
        Reason::PriorityStarved if is_gang => format!(
            "is waiting: its machines must share one {}, and there needs of equal or higher priority hold what it lacks.",
            domain_noun(need, spec)
        ),
        Reason::PriorityStarved => {
            "is short: what it could use is held by needs of equal or higher priority.".into()
        }
        Reason::Unspecified => match reason(need.reason) {
            text if text.is_empty() => "is short.".to_owned(),
            text => format!("is short: {text}."),
        },
    }
}

/// What a gang's machines must share, without the path before it.
fn domain_noun(need: &Need, spec: &CapacityNeed) -> String {
    use bigfleet_proto::v1alpha1::node_selector_requirement::Operator;
    let same = spec.requirements.iter().find(|requirement| requirement.operator() == Operator::Same);
    let key =
        if need.domain_key.is_empty() { same.map(|same| same.key.as_str()) } else { Some(&*need.domain_key) };
    key.map_or("domain", |key| key.rsplit('/').next().unwrap_or(key)).to_owned()
}

/// What a parked gang keeps, and when it tries again.
fn parked(need: &Need, as_of: &AsOf, now: i64) -> String {
    let keeps = match need.credited {
        0 => "it holds nothing back from others".to_owned(),
        machines => {
            format!(
                "it keeps the {} it has ({})",
                count(machines.into(), "machine"),
                hourly(need.usd_per_hour)
            )
        }
    };
    let next = match need.next_try_cycle {
        0 => "it tries again every 32nd cycle".to_owned(),
        cycle => {
            let left = count(cycle.saturating_sub(as_of.cycle), "cycle");
            let latest = clock_time(need.next_try_unix_nanos, now);
            format!("it tries again in cycle {cycle} ({left} from now, at {latest} at the latest)")
        }
    };
    format!("{keeps}; {next}")
}

/// What it asks for.
pub fn wants(spec: &CapacityNeed) -> String {
    let mut text = amounts(&spec.aggregate_resources);
    if !spec.min_unit.is_empty() {
        let _ = write!(text, ", each machine at least {}", amounts(&spec.min_unit));
    }
    let _ = write!(text, "; priority {}", signed(spec.priority.into()));
    for rule in &spec.requirements {
        let _ = write!(text, "; {}", requirement(rule));
    }
    for spread in &spec.spread {
        let _ = write!(text, "; spread over {} within {}", spread.topology_key, spread.max_skew);
    }
    text
}

fn has(answer: &NeedExplanation, need: &Need) -> String {
    let mut parts = Vec::new();
    let list = |number: u32, names: &[String]| {
        let more = if names.is_empty() { String::new() } else { format!(" ({})", one_of(names, 4)) };
        // The server sends some of the names; the count is of all.
        if (names.len() as u32) < number && names.len() <= 4 && !names.is_empty() {
            return format!("{} ({}, …)", count(number.into(), "machine"), names.join(", "));
        }
        format!("{}{more}", count(number.into(), "machine"))
    };
    if need.credited > 0 {
        parts.push(format!("{}, {}", list(need.credited, &answer.credited), hourly(need.usd_per_hour)));
    }
    if need.acquired > 0 {
        parts.push(format!("{} given by the last cycle", list(need.acquired, &answer.acquired)));
    }
    if need.in_flight > 0 {
        parts.push(format!("{} draining for it", list(need.in_flight, &answer.in_flight)));
    }
    if need.victims > 0 {
        parts.push(format!("{} preempted for it by the last cycle", list(need.victims, &answer.victims)));
    }
    if parts.is_empty() { "nothing".into() } else { parts.join("; ") }
}

/// What it lacks.
pub fn missing(need: &Need) -> String {
    match (need.deficit.is_empty(), need.unresolved.is_empty()) {
        (true, true) => String::new(),
        (_, true) => format!("{}, all of it on its way", amounts(&need.deficit)),
        (true, false) => amounts(&need.unresolved),
        (false, false) if need.deficit == need.unresolved => amounts(&need.deficit),
        (false, false) => {
            format!(
                "{}; {} when all that is on its way has come",
                amounts(&need.deficit),
                amounts(&need.unresolved)
            )
        }
    }
}

fn domains(story: &mut Story, answer: &NeedExplanation, need: &Need) {
    if !need.domain.is_empty() {
        let covers = if need.domain_covers { "which covers it" } else { "which does not cover it" };
        let because = answer.domain_choice.as_ref().map_or_else(String::new, origin::because);
        story.say("placed in", format!("{}, {covers}{because}", need.domain));
    }
    let rows: Vec<Vec<String>> = answer
        .domains
        .iter()
        .take(4)
        .map(|domain| {
            vec![
                domain.domain.clone(),
                format!("{} %", domain.coverage_per_mille / 10),
                format!("{} that fit", count(domain.machines.into(), "machine")),
                format!(
                    "{} free or its own ({} %)",
                    thousands(domain.reachable_machines.into()),
                    domain.reachable_per_mille / 10
                ),
            ]
        })
        .collect();
    story.columns("best", &rows, &[1]);
}

fn considered(funnel: &Funnel) -> String {
    let mut text = count(funnel.considered, "machine");
    for removed in &funnel.removed {
        let rule = match removed.code.as_str() {
            "dead" => "are failed or being deleted".to_owned(),
            "requirement" => format!("do not meet {:?}", removed.detail),
            "min_unit" => "are too small for one piece".into(),
            "adds_nothing" => "have nothing of what is missing".into(),
            "other_domain" => "lie in another domain".into(),
            other => other.replace('_', " "),
        };
        let _ = write!(text, "; {} {rule}", thousands(removed.machines));
    }
    if funnel.its_own > 0 {
        let _ = write!(text, "; {} are its own", thousands(funnel.its_own));
    }
    text
}

/// Who has what it could use.
fn held(story: &mut Story, funnel: &Funnel, priority: i32, satisfied: bool) {
    let label = if satisfied { "others" } else { "why not" };
    for holder in funnel.holders.iter().take(4) {
        story.say(label, holds(holder, priority));
    }
    let listed = funnel.holders.iter().skip(4);
    let machines = listed.clone().map(|holder| holder.machines).sum::<u64>() + funnel.unlisted_machines;
    let holders = listed.count() as u64 + funnel.unlisted_holders;
    if holders > 0 {
        story.say(label, format!("{} more with {} others", thousands(machines), thousands(holders)));
    }
}

fn holds(holder: &Holder, priority: i32) -> String {
    let machines = count(holder.machines, "machine");
    let compared = match holder.priority.cmp(&priority) {
        std::cmp::Ordering::Greater => {
            format!("priority {} > its {}", signed(holder.priority.into()), signed(priority.into()))
        }
        std::cmp::Ordering::Equal => format!("the same priority {}", signed(priority.into())),
        std::cmp::Ordering::Less => {
            format!("priority {} < its {}", signed(holder.priority.into()), signed(priority.into()))
        }
    };
    match &holder.need {
        Some(need) => format!("{machines} {} held by {} ({compared})", state(holder.state), need_long(need)),
        None if holder.cluster.is_empty() => format!("{machines} {} and free", state(holder.state)),
        None => format!(
            "{machines} {} in {}, claimed by no need ({compared})",
            state(holder.state),
            holder.cluster
        ),
    }
}

fn helps(remedy: &Remedy) -> String {
    let change = match &remedy.change {
        Some(Change::Priority(priority)) => format!("priority {}", signed((*priority).into())),
        Some(Change::WithoutRequirement(rule)) => format!("without {rule:?}"),
        Some(Change::WithoutSpread(_)) => "without the strict spread".into(),
        Some(Change::Less(less)) => format!("asking for {}", amounts(&less.amounts)),
        None => "a change this program is too old to name".into(),
    };
    let effect = match (remedy.acquires, remedy.preempts) {
        (0, 0) => "it would be covered".into(),
        (acquires, 0) => format!("gets {} at once", count(acquires.into(), "machine")),
        (0, preempts) => format!("would preempt {}", count(preempts.into(), "machine")),
        (acquires, preempts) => format!(
            "gets {} at once and would preempt {}",
            count(acquires.into(), "machine"),
            thousands(preempts.into())
        ),
    };
    format!("{change}: {effect}")
}
