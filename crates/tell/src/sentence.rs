//! Sentences that several commands share, made from the data of the view.

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::{
    ActionKind, AsOf, Decision, Expected, Mode, ModeView, PauseView, PriceSource, Rule, RunnerUp, Why,
};
use std::fmt::Write as _;

use crate::words::{
    capacity_type, clock_time, fate, hourly, kind, kind_done, need, rfc3339, span, state, usd_words,
};

/// By which rules a moment was decided, if not by today's.
pub fn other_rules(as_of: &AsOf) -> String {
    as_of.recorded_edition.map_or_else(String::new, |edition| {
        format!(", decided under edition {edition} of the rules; verdicts are by this shard's edition")
    })
}

/// Where an answer comes from if it is not the living shard, and by which rules it was decided if not by today's.
pub fn from_record(as_of: &AsOf) -> String {
    let source = if as_of.from_record { ", from the record" } else { "" };
    format!("{source}{}", other_rules(as_of))
}

/// When what an answer shows was so: ages are told from there.
pub fn seen_at(as_of: &AsOf) -> i64 {
    if as_of.from_record { as_of.cycle_unix_nanos } else { as_of.now_unix_nanos }
}

/// ` (simulated)` if the machines are not real.
pub fn simulated(as_of: Option<&AsOf>) -> &'static str {
    if as_of.is_some_and(|as_of| as_of.simulated) { "  (simulated)" } else { "" }
}

/// Why a decision fell, in half a sentence.
pub fn why(decision: &Decision) -> String {
    let Some(why) = &decision.why else { return rule_of(decision.kind()).into() };
    let next = why.runner_up.as_ref();
    let beat = |unit: fn(f64) -> String| match next {
        Some(next) if why.figure == next.figure => format!("; {} would cost the same", next.machine),
        Some(next) => format!("; next best {} {}", next.machine, unit(next.figure)),
        None if why.brief => String::new(),
        None => "; no other would do".into(),
    };
    let score = |figure: f64| format!("scores {}", figure_words(figure));
    match why.rule() {
        Rule::CheapestIdle => match next.filter(|next| next.state() == MachineState::Speculative) {
            // It stood there and was paid for: its own price was no part of the choice.
            Some(next) => {
                format!("stands idle, $0 more; buying {} would add {}", next.machine, hourly(next.figure))
            }
            None => format!("stands idle, $0 more{}", beat(|figure| format!("at {}", hourly(figure)))),
        },
        Rule::LeastEffectiveCost => format!("{} with its risk{}", hourly(why.figure), beat(hourly)),
        Rule::BestVictim => format!("best victim, {}{}", score(why.figure), beat(score)),
        Rule::UnclaimedVictim => format!("no need claims it, {}{}", score(why.figure), beat(score)),
        Rule::PaidFor => format!("already paid for, $0 more{}{}", adds(why), instead(why)),
        Rule::Bargain => format!("{}{}", bargain(why.figure, why.share, why.resources), next_bargain(why)),
        Rule::Unclaimed => "no need of its cluster claims it".into(),
        Rule::HoldOver => format!("its hold is over, saves {}", hourly(why.figure)),
        Rule::Unspecified => String::new(),
    }
}

/// What a machine adds, in percent of the whole demand.
pub(crate) fn percent(share: f64, resources: u32) -> String {
    let percent = 100.0 * share / f64::from(resources.max(1));
    if percent >= 10.0 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

fn adds(why: &Why) -> String {
    why.share.map_or(String::new(), |share| format!(", adds {}", percent(share, why.resources)))
}

/// What a machine asks for what it adds: the whole demand would cost so much at that rate.
fn bargain(figure: f64, share: Option<f64>, resources: u32) -> String {
    match share {
        Some(share) if share > 0.0 && figure.is_finite() => {
            let whole = figure * f64::from(resources.max(1)) / share;
            format!("adds {} for {} ({} for all)", percent(share, resources), hourly(figure), hourly(whole))
        }
        _ => format!("{} with its risk", hourly(figure)),
    }
}

/// What there would have been instead of a machine that costs nothing more.
fn instead(why: &Why) -> String {
    match &why.runner_up {
        Some(next) if next.given_back => next_bargain(why),
        Some(next) if next.state() == MachineState::Speculative => {
            format!("; buying {} would add {}", next.machine, hourly(next.figure))
        }
        Some(next) if is_owned(next.capacity_type) => format!("; {} would be $0 more too", next.machine),
        Some(next) => format!("; next best {} at {}", next.machine, hourly(next.figure)),
        None => next_bargain(why),
    }
}

/// Whether a machine of this capacity type is paid for whether it is used or not.
pub fn is_owned(capacity_type: i32) -> bool {
    use bigfleet_proto::v1alpha1::CapacityType;
    !matches!(CapacityType::try_from(capacity_type), Ok(CapacityType::OnDemand | CapacityType::Spot))
}

/// The bargain it was preferred to.
fn next_bargain(why: &Why) -> String {
    let Some(next) = &why.runner_up else {
        return if why.brief { String::new() } else { "; no other would do".into() };
    };
    if next.given_back {
        return format!("; {} was picked first and given back: not needed beside it", next.machine);
    }
    match next.share {
        Some(share) if share > 0.0 && next.figure.is_finite() => {
            let whole = next.figure * f64::from(why.resources.max(1)) / share;
            format!("; next best {} ({} for all)", next.machine, hourly(whole))
        }
        _ => format!("; next best {} {}", next.machine, hourly(next.figure)),
    }
}

/// The rule behind each kind of action, when nobody has worked out what it beat.
fn rule_of(kind: ActionKind) -> &'static str {
    match kind {
        ActionKind::Bootstrap => "best bargain among what stands idle",
        ActionKind::Provision => "best bargain",
        ActionKind::Preempt => "best victim",
        ActionKind::Reclaim => "no need of its cluster claims it",
        ActionKind::Delete => "its hold is over",
        ActionKind::Unspecified => "",
    }
}

/// A score with the figures that mean something.
pub fn figure_words(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1000.0 => crate::words::signed(figure.round() as i64),
        size if size >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

/// `14:05:40 cycle 1790: provisioned aws-0031 m5.2xlarge spot for a1b2c3 of shop, $0.121/h (…)`.
pub fn decision(decision: &Decision, now_unix_nanos: i64) -> String {
    let time = clock_time(decision.unix_nanos, now_unix_nanos);
    let mut text = format!("{time} cycle {}: {}", decision.cycle, action(decision));
    let reason = why(decision);
    if !reason.is_empty() {
        let _ = write!(text, " ({reason})");
    }
    text
}

/// What an action does to a machine, without time and reason.
pub fn action(decision: &Decision) -> String {
    let mut text = if withheld(decision) {
        format!("{} of {}", kind(decision.kind), decision.machine)
    } else {
        format!("{} {}", kind_done(decision.kind), decision.machine)
    };
    if !decision.instance_type.is_empty() {
        let _ = write!(text, " {} {}", decision.instance_type, capacity_type(decision.capacity_type));
    }
    let wanted = decision.need.as_ref();
    match (decision.kind(), wanted) {
        (ActionKind::Bootstrap | ActionKind::Provision, Some(wanted)) => {
            let _ = write!(text, " for {} of {}", need(wanted), wanted.cluster);
        }
        (ActionKind::Preempt, Some(wanted)) => {
            let _ = write!(
                text,
                " from {} for {} of {} (priority {}, {} grace)",
                decision.cluster,
                need(wanted),
                wanted.cluster,
                crate::words::signed(decision.priority.into()),
                span(i64::from(decision.grace_secs) * 1_000_000_000)
            );
        }
        (ActionKind::Reclaim, _) => {
            let _ = write!(text, " from {}", decision.cluster);
        }
        _ => {}
    }
    if decision.usd_per_hour > 0.0 {
        // Binding what is there already costs nothing more.
        let is_there = decision.kind() == ActionKind::Bootstrap && is_owned(decision.capacity_type);
        let more = if is_there { "$0 more, owned at " } else { "" };
        let _ = write!(text, ", {more}{}", hourly(decision.usd_per_hour));
    }
    if withheld(decision) {
        let _ = write!(text, ", withheld: {}{}", fate(decision.fate), again(decision));
    }
    text
}

/// The machine that would have been next: `aws-0044 m5.2xlarge on-demand zone-a, $0.38/h, Speculative`.
pub fn runner_up(next: &RunnerUp) -> String {
    let sort = [&next.instance_type, &capacity_type(next.capacity_type), &next.zone];
    let sort: Vec<&str> = sort.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    format!("{} {}, {}, {}", next.machine, sort.join(" "), hourly(next.usd_per_hour), state(next.state))
}

/// ` 12 times since cycle 57`: how often the same was withheld; empty for once.
pub fn again(decision: &Decision) -> String {
    match decision.times {
        0 | 1 => String::new(),
        times => format!(" {times} times since cycle {}", decision.first_cycle),
    }
}

/// Why a decision fell, and if it was withheld by what, how often and since when.
pub fn why_and_fate(decision: &Decision) -> String {
    if !withheld(decision) {
        return why(decision);
    }
    let again = again(decision);
    let why = why(decision);
    let why = if why.is_empty() { why } else { format!("; {why}") };
    format!("withheld: {}{again}{why}", fate(decision.fate))
}

/// When something on its way is expected: `expected 14:09:20 to 14:10:05 (in 40 s to 1 min 25 s; 12 seen)`.
pub fn expected(expected: &Expected, now_unix_nanos: i64) -> String {
    let Expected { from_unix_nanos: from, to_unix_nanos: to, samples } = *expected;
    if to <= now_unix_nanos {
        let late = span(now_unix_nanos - to);
        return format!("expected by {}, overdue by {late} ({samples} seen)", clock_time(to, now_unix_nanos));
    }
    let (soon, late) = (span((from - now_unix_nanos).max(0)), span(to - now_unix_nanos));
    let times = format!("{} to {}", clock_time(from, now_unix_nanos), clock_time(to, now_unix_nanos));
    format!("expected {times} (in {soon} to {late}; {samples} seen)")
}

/// The same for a text that is read later, elsewhere: `expected 14:09:20 to 14:10:05 UTC (12 seen)`.
pub fn expected_at(expected: &Expected) -> String {
    let clock = |time: i64| {
        let text = rfc3339(time);
        text.get(11..19).unwrap_or(&text).to_owned()
    };
    let (from, to) = (clock(expected.from_unix_nanos), clock(expected.to_unix_nanos));
    format!("expected {from} to {to} UTC ({} seen)", expected.samples)
}

/// Whether rails kept it from being executed.
pub fn withheld(decision: &Decision) -> bool {
    use bigfleet_view::v1::Fate;
    !matches!(decision.fate(), Fate::Unspecified | Fate::Begun)
}

/// What a pause covers: `Reclaim in shop`.
pub fn pause_scope(pause: &PauseView) -> String {
    let what = match pause.kind() {
        ActionKind::Unspecified => "everything".to_owned(),
        _ => kind(pause.kind),
    };
    if pause.cluster.is_empty() { what } else { format!("{what} in {}", pause.cluster) }
}

/// A mode in a word: `approve`, or that it is the strictest of several.
pub fn mode(number: i32, mixed: bool) -> String {
    let name = match Mode::try_from(number) {
        Ok(Mode::Auto) => "auto",
        Ok(Mode::Approve) => "approve",
        Ok(Mode::Observe) => "observe",
        Ok(Mode::Unspecified) | Err(_) => "",
    };
    if mixed { format!("{name}, in part") } else { name.to_owned() }
}

/// An order about a mode: what it covers, since when, why and by whom.
pub fn mode_order(order: &ModeView, now_unix_nanos: i64) -> String {
    let what = match order.kind() {
        ActionKind::Unspecified => "everything".to_owned(),
        _ => kind(order.kind),
    };
    let scope = if order.cluster.is_empty() { what } else { format!("{what} in {}", order.cluster) };
    let author = if order.author.is_empty() { String::new() } else { format!(" (by {})", order.author) };
    let since = clock_time(order.since_unix_nanos, now_unix_nanos);
    format!("{scope}: {} since {since}: {}{author}", mode(order.mode, false), order.reason)
}

/// What a pause covers, until when, why and by whom.
pub fn pause(pause: &PauseView, now_unix_nanos: i64) -> String {
    let scope = pause_scope(pause);
    let until = match pause.until_unix_nanos {
        0 => "until resumed".into(),
        time => format!(
            "until {} ({} left)",
            clock_time(time, now_unix_nanos),
            span(time.saturating_sub(now_unix_nanos))
        ),
    };
    let rehearsal = if pause.dry_run { ", as a rehearsal" } else { "" };
    let author = if pause.author.is_empty() { String::new() } else { format!(" (by {})", pause.author) };
    format!("{scope} {until}{rehearsal}: {}{author}  [pause {}]", pause.reason, pause.number)
}

/// `$0.121/h (said by aws, 3 min ago)`, or that the price is unknown.
pub fn price(usd_per_hour: f64, source: Option<&PriceSource>, now_unix_nanos: i64) -> String {
    let text = hourly(usd_per_hour);
    match source {
        Some(source) if source.heard_unix_nanos > 0 => {
            let old = span(now_unix_nanos.saturating_sub(source.heard_unix_nanos));
            format!("{text} (said by {}, {old} ago)", source.provider)
        }
        Some(source) if !source.provider.is_empty() => {
            format!("{text} (said by {} in an earlier life of the shard)", source.provider)
        }
        _ => format!("{text} (source unknown)"),
    }
}

/// `0.121 + 0.0021 x $0.50 = $0.122`: the price with the risk in it.
pub fn effective(price: f64, probability: f64, penalty_usd: f64, total: f64) -> String {
    if probability == 0.0 || penalty_usd == 0.0 {
        return hourly(total);
    }
    format!(
        "{} + {} x {} = {}",
        usd_words(price),
        crate::words::probability(probability),
        usd_words(penalty_usd),
        hourly(total)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One sentence per rule by which machines are chosen.
    #[test]
    fn every_rule_has_its_sentence() {
        let next = |machine: &str, figure: f64, share: Option<f64>, given_back: bool| RunnerUp {
            machine: machine.into(),
            figure,
            share,
            given_back,
            ..RunnerUp::default()
        };
        let said = |rule: Rule, figure: f64, share: Option<f64>, runner_up: Option<RunnerUp>| {
            let chosen = Why { rule: rule.into(), figure, share, resources: 2, runner_up, brief: false };
            why(&Decision { why: Some(chosen), ..Decision::default() })
        };
        let dear = || {
            let state = MachineState::Speculative.into();
            Some(RunnerUp { state, ..next("od-7", 0.38, Some(1.0), false) })
        };
        let spared = || Some(next("od-2", 0.05, Some(0.2), true));
        let scored = || Some(next("m-2", 12.5, None, false));
        for (sentence, expected) in [
            (
                said(Rule::Bargain, 0.122, Some(0.8), dear()),
                "adds 40 % for $0.122/h ($0.305/h for all); next best od-7 ($0.76/h for all)",
            ),
            (
                said(Rule::Bargain, 0.122, Some(0.8), spared()),
                "adds 40 % for $0.122/h ($0.305/h for all); od-2 was picked first and given back: not needed beside it",
            ),
            (
                said(Rule::PaidFor, 4.28, Some(0.1), dear()),
                "already paid for, $0 more, adds 5.0 %; buying od-7 would add $0.38/h",
            ),
            (
                said(Rule::PaidFor, 4.28, Some(2.0), None),
                "already paid for, $0 more, adds 100 %; no other would do",
            ),
            (
                said(Rule::BestVictim, 13.0, None, scored()),
                "best victim, scores 13.0; next best m-2 scores 12.5",
            ),
            (
                said(Rule::UnclaimedVictim, 11.0, None, scored()),
                "no need claims it, scores 11.0; next best m-2 scores 12.5",
            ),
            (said(Rule::Unclaimed, 0.1, None, None), "no need of its cluster claims it"),
            (said(Rule::HoldOver, 0.1, None, None), "its hold is over, saves $0.10/h"),
        ] {
            assert_eq!(sentence, expected);
        }
    }

    #[test]
    fn a_time_that_is_read_elsewhere_says_in_which_zone() {
        let at = |secs: i64| (1_800_000_000 + secs) * 1_000_000_000 + 5;
        let expected = Expected { from_unix_nanos: at(0), to_unix_nanos: at(65), samples: 12 };
        assert_eq!(expected_at(&expected), "expected 08:00:00 to 08:01:05 UTC (12 seen)");
    }
}
