//! Decisions as lines, for a terminal that is none: as they happen, with money and reason.

use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use bigfleet_net::{Clock, SystemClock};
use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_tell::feed::Fresh;
use bigfleet_tell::group::{Group, groups};
use bigfleet_view::v1::{ActionKind, Decision, Fate, Rule, Summary, WatchEvent, WatchRequest};
use bigfleet_view::view_client;
use tonic::transport::Channel;

use super::write;
use crate::sentence::is_owned;
use crate::words;

/// How long to wait before the shard is asked again. Real time.
const PAUSE: Duration = Duration::from_millis(200);
const HOUR: i64 = 3_600_000_000_000;

/// Writes lines until the reader is gone, which is no error, or nobody can write any more.
pub(crate) async fn follow(channel: Channel) -> io::Result<()> {
    let real = SystemClock::start();
    let mut feed = Feed::default();
    loop {
        let request =
            WatchRequest { min_interval_millis: 200, decisions_after_cycle: feed.last_cycle, decisions: 1 };
        let mut client = view_client(channel.clone());
        if let Ok(answer) = client.watch(request).await {
            let mut events = answer.into_inner();
            while let Ok(Some(event)) = events.message().await {
                write(&feed.lines(&event))?;
            }
        }
        real.sleep(PAUSE).await;
    }
}

/// What was written already.
#[derive(Debug, Default)]
struct Feed {
    last_cycle: u64,
    fresh: Fresh,
    /// The simulated hour of the last summary.
    hour: Option<i64>,
}

impl Feed {
    fn lines(&mut self, event: &WatchEvent) -> String {
        let mut text = String::new();
        let mut new = Vec::new();
        for decision in &event.decisions {
            self.last_cycle = self.last_cycle.max(decision.cycle);
            if self.fresh.is_new(decision) {
                new.push(decision);
            }
        }
        for group in groups(new) {
            let _ = writeln!(text, "{}", line(&group));
        }
        if event.skipped > 0 {
            let _ = writeln!(text, "          {} more decisions; bigfleet get decisions", event.skipped);
        }
        if let Some(summary) = &event.summary {
            text.push_str(&self.hourly(summary));
        }
        text
    }

    /// Once in a simulated hour: how it stands.
    fn hourly(&mut self, summary: &Summary) -> String {
        let Some(as_of) = &summary.as_of else { return String::new() };
        let hour = as_of.now_unix_nanos.div_euclid(HOUR);
        let is_new = self.hour.replace(hour).is_some_and(|before| before != hour);
        if !is_new {
            return String::new();
        }
        let lanes = summary.lanes.iter().map(|lane| {
            let machines = words::count(lane.machines.into(), "machine");
            format!("{} {machines} {}", lane.cluster, words::hourly(lane.usd_per_hour))
        });
        let lanes = lanes.collect::<Vec<_>>().join(", ");
        let time = time(as_of.now_unix_nanos);
        let (usd, unmet) = (words::hourly(summary.usd_per_hour), words::count(summary.unmet.into(), "need"));
        format!("{time}  all       {usd} in all: {lanes}; {unmet} unmet\n")
    }
}

fn time(unix_nanos: i64) -> String {
    words::zoned(unix_nanos).strftime("%H:%M:%S").to_string()
}

/// One decision or several that belong together: when, what, which machines, for whom, how much, why.
fn line(group: &Group<'_>) -> String {
    let decision = group.first();
    let by = match decision.kind() {
        ActionKind::Bootstrap | ActionKind::Provision => "for",
        ActionKind::Preempt | ActionKind::Reclaim => "from",
        ActionKind::Delete | ActionKind::Unspecified => "",
    };
    let verb = words::kind(decision.kind).to_lowercase();
    let is_one = group.decisions.len() == 1;
    let what = if is_one { decision.machine.clone() } else { group.machines() };
    let mut text = format!("{}  {verb:<9} {what}", time(decision.unix_nanos));
    if is_one && decision.capacity_type != 0 {
        let _ = write!(text, " {}", words::capacity_type(decision.capacity_type));
    }
    if !by.is_empty() && !decision.cluster.is_empty() {
        let _ = write!(text, " {by} {}", decision.cluster);
    }
    if is_one && decision.usd_per_hour > 0.0 {
        let is_there = decision.kind() == ActionKind::Bootstrap && is_owned(decision.capacity_type);
        let more = if is_there { "$0 more".into() } else { words::hourly(decision.usd_per_hour) };
        let _ = write!(text, " {more}");
    }
    let _ = write!(text, "  {}", reason(decision));
    if decision.fate() != Fate::Begun {
        let _ = write!(text, "  [withheld: {}]", words::fate(decision.fate));
    }
    text
}

fn reason(decision: &Decision) -> String {
    let why = decision.why.as_ref();
    let need = decision.need.as_ref().map(words::need);
    let next = why.and_then(|why| why.runner_up.as_ref()).map(|next| next.figure);
    let beat = |next: f64| format!("; next best {}", words::hourly(next));
    match (why.map(bigfleet_view::v1::Why::rule), decision.kind()) {
        (Some(Rule::PaidFor), _) => {
            let next = why.and_then(|why| why.runner_up.as_ref());
            let next = next.filter(|next| next.state() == MachineState::Speculative && !next.given_back);
            let buying = next
                .map_or(String::new(), |next| format!("; buying would add {}", words::hourly(next.figure)));
            format!("need {}: already paid for{buying}", need.unwrap_or_default())
        }
        (Some(Rule::Bargain), _) => {
            let whole = |figure: f64, share: Option<f64>| {
                let resources = why.map_or(1, |why| why.resources).max(1);
                share.filter(|share| *share > 0.0).map(|share| figure * f64::from(resources) / share)
            };
            let own = why.and_then(|why| whole(why.figure, why.share));
            let own = own.map_or(String::new(), |rate| format!(", {} for all", words::hourly(rate)));
            let beaten = why.and_then(|why| why.runner_up.as_ref()).filter(|next| !next.given_back);
            let beaten = beaten.and_then(|next| whole(next.figure, next.share));
            format!(
                "need {}: best bargain{own}{}",
                need.unwrap_or_default(),
                beaten.map_or(String::new(), beat)
            )
        }
        (Some(Rule::CheapestIdle), _) | (None, ActionKind::Bootstrap) => {
            format!(
                "need {}: the cheapest free machine{}",
                need.unwrap_or_default(),
                next.map_or(String::new(), beat)
            )
        }
        (Some(Rule::LeastEffectiveCost), _) | (None, ActionKind::Provision) => {
            format!(
                "need {}: least cost with risk{}",
                need.unwrap_or_default(),
                next.map_or(String::new(), beat)
            )
        }
        (Some(Rule::BestVictim | Rule::UnclaimedVictim), _) | (None, ActionKind::Preempt) => {
            let priority = words::signed(decision.priority.into());
            format!("need {} of priority {priority} takes it", need.unwrap_or_default())
        }
        (Some(Rule::Unclaimed), _) | (None, ActionKind::Reclaim) => "no need claims it".into(),
        (Some(Rule::HoldOver), _) | (None, ActionKind::Delete) => "idle for longer than its hold".into(),
        (Some(Rule::Unspecified) | None, _) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::CapacityType;
    use bigfleet_view::v1::{AsOf, Lane, NeedRef, RunnerUp, Why};

    use super::*;

    fn bought() -> Decision {
        let runner_up = RunnerUp { figure: 0.38, share: Some(1.0), ..RunnerUp::default() };
        Decision {
            cycle: 7,
            kind: ActionKind::Provision.into(),
            machine: "sim-zone-b-std-8-000031".into(),
            cluster: "shop".into(),
            need: Some(NeedRef { id: "77aa88bb".into(), ..NeedRef::default() }),
            fate: Fate::Begun.into(),
            why: Some(Why {
                rule: Rule::Bargain.into(),
                figure: 0.122,
                share: Some(0.8),
                resources: 2,
                runner_up: Some(runner_up),
                brief: false,
            }),
            capacity_type: CapacityType::Spot.into(),
            usd_per_hour: 0.121,
            ..Decision::default()
        }
    }

    fn one(decision: &Decision) -> String {
        line(&Group { decisions: vec![decision] })
    }

    #[test]
    fn decisions_that_belong_together_are_one_line() {
        let more = Decision { machine: "sim-zone-b-std-8-000032".into(), ..bought() };
        let event = WatchEvent { decisions: vec![bought(), more], ..WatchEvent::default() };
        let text = Feed::default().lines(&event);
        assert_eq!(
            without_time(text.trim_end()),
            "provision 2 spot ($0.242/h) for shop  need 77aa88bb: best bargain, $0.305/h for all; next best $0.76/h"
        );
    }

    fn without_time(line: &str) -> &str {
        line.split_once("  ").expect("the time is first").1
    }

    #[test]
    fn a_line_has_machine_money_and_reason() {
        assert_eq!(
            without_time(&one(&bought())),
            "provision sim-zone-b-std-8-000031 spot for shop $0.121/h  need 77aa88bb: best bargain, $0.305/h for all; next best $0.76/h"
        );
        let taken = Decision {
            kind: ActionKind::Preempt.into(),
            cluster: "batch".into(),
            priority: 900_000,
            why: None,
            ..bought()
        };
        assert_eq!(
            without_time(&one(&taken)),
            "preempt   sim-zone-b-std-8-000031 spot from batch $0.121/h  need 77aa88bb of priority 900,000 takes it"
        );
    }

    #[test]
    fn what_is_withheld_is_said_once() {
        let capped = Decision {
            kind: ActionKind::Reclaim.into(),
            fate: Fate::Capped.into(),
            why: None,
            need: None,
            ..bought()
        };
        let event =
            |decision: &Decision| WatchEvent { decisions: vec![decision.clone()], ..WatchEvent::default() };
        let mut feed = Feed::default();
        let first = feed.lines(&event(&capped));
        assert_eq!(
            without_time(first.trim_end()),
            "reclaim   sim-zone-b-std-8-000031 spot from shop $0.121/h  no need claims it  [withheld: capped]"
        );
        assert_eq!(feed.lines(&event(&capped)), "");
        assert_ne!(feed.lines(&event(&Decision { fate: Fate::Begun.into(), ..capped.clone() })), "");
        assert_ne!(feed.lines(&event(&capped)), "", "it begins anew");
        assert_eq!(feed.last_cycle, 7);
    }

    #[test]
    fn every_simulated_hour_has_one_summary() {
        let at = |minutes: i64| {
            let lane = Lane { cluster: "shop".into(), machines: 3, usd_per_hour: 1.5, ..Lane::default() };
            let as_of = AsOf { now_unix_nanos: minutes * HOUR / 60, ..AsOf::default() };
            let summary = Summary {
                as_of: Some(as_of),
                lanes: vec![lane],
                usd_per_hour: 2.0,
                unmet: 1,
                ..Summary::default()
            };
            WatchEvent { summary: Some(summary), ..WatchEvent::default() }
        };
        let mut feed = Feed::default();
        assert_eq!(feed.lines(&at(10)), "");
        assert_eq!(feed.lines(&at(59)), "");
        let text = feed.lines(&at(60));
        assert_eq!(
            without_time(text.trim_end()),
            "all       $2.00/h in all: shop 3 machines $1.50/h; 1 need unmet"
        );
        assert_eq!(feed.lines(&at(61)), "");
    }
}
