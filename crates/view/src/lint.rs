//! What is wrong or doubtful in policies, needs, offers and providers: rules with stable codes. docs/lints.md has a section
//! for each.
//!
//! Errors are things that cannot work or figures that cannot be right. Warnings are things people may mean, and regret.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_engine::Reason;
use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::{INSTANCE_TYPE, ZONE};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::requirement::Operator;
use bigfleet_shard::Shard;
use tonic::Status;

use crate::known::Known;
use crate::names::short_id;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Snapshot, blocking};
use crate::v1;

/// Gangs whose domains are looked at.
const GANGS: usize = 100;
/// A probability an hour above which nobody keeps a machine for a day: it is a figure for a month, or for good.
const MOST_PROBABILITY: f64 = 0.02;
/// The share of needs that may be pinned before somebody should ask why.
const MOST_PINNED: f64 = 0.05;
/// How many days of a machine a penalty may be worth.
const MOST_DAYS: f64 = 100.0;

/// A rule: its code, how grave it is, and what to do about it.
pub struct Rule {
    /// Stable, as in BF101.
    pub code: &'static str,
    /// Errors stop a check in CI; warnings are told.
    pub is_error: bool,
    /// What it finds, in half a sentence.
    pub title: &'static str,
    /// What to do.
    pub fix: &'static str,
}

/// All rules there are.
pub const RULES: &[Rule] = &[
    Rule {
        code: "BF101",
        is_error: true,
        title: "no machine and no offer meets what a need asks for",
        fix: "drop or widen the requirement that nothing meets; `bigfleet explain need` counts what each removes",
    },
    Rule {
        code: "BF102",
        is_error: true,
        title: "a gang is larger than any domain it may be in",
        fix: "ask for less, or let the gang share a wider domain, as a zone instead of a rack",
    },
    Rule {
        code: "BF103",
        is_error: true,
        title: "spot capacity is never interrupted, by what its provider says",
        fix: "have the provider report a probability an hour; with 0 every penalty is ignored",
    },
    Rule {
        code: "BF104",
        is_error: true,
        title: "an interruption probability is too high for an hour",
        fix: "have the provider report it an hour: a monthly figure divided by 730",
    },
    Rule {
        code: "BF105",
        is_error: true,
        title: "rented capacity costs nothing",
        fix: "have the provider report its price; at $0 it is bought first and counted as free",
    },
    Rule {
        code: "BF106",
        is_error: true,
        title: "two providers list one machine",
        fix: "give every machine one provider: the second to list it is not believed",
    },
    Rule {
        code: "BF201",
        is_error: false,
        title: "all needs have one priority",
        fix: "give what may wait a lower priority: when capacity is short nobody can be preferred now",
    },
    Rule {
        code: "BF202",
        is_error: false,
        title: "many needs are pinned",
        fix: "pin only what a restart destroys; what is pinned can be neither preempted nor moved to cheaper capacity",
    },
    Rule {
        code: "BF203",
        is_error: false,
        title: "an interruption penalty is out of proportion",
        fix: "set the penalty to what an interruption costs; it rules out spot capacity at any price",
    },
    Rule {
        code: "BF204",
        is_error: false,
        title: "a need may be in one zone only",
        fix: "allow a second zone, or be ready to wait when that one is full",
    },
    Rule {
        code: "BF205",
        is_error: false,
        title: "a need takes one instance type only",
        fix: "ask for amounts and let prices choose the type",
    },
    Rule {
        code: "BF206",
        is_error: false,
        title: "prices are old",
        fix: "see why the provider does not answer: `bigfleet get providers`",
    },
];

/// What was found, by code and by what it is like.
#[derive(Default)]
struct Findings(BTreeMap<(&'static str, String), v1::Finding>);

impl Findings {
    /// One more; those of one code that are alike are told once.
    fn add(&mut self, code: &'static str, about: &str, alike: String, subject: String, found: String) {
        let rule = RULES.iter().find(|rule| rule.code == code).expect("a code of the list");
        let severity = if rule.is_error { v1::Severity::Error } else { v1::Severity::Warning };
        let finding = self.0.entry((code, alike)).or_insert_with(|| v1::Finding {
            code: code.to_owned(),
            severity: severity.into(),
            about: about.to_owned(),
            subject,
            found,
            fix: rule.fix.to_owned(),
            times: 0,
        });
        finding.times += 1;
    }

    fn need(&mut self, code: &'static str, key: &bigfleet_model::need::NeedKey, found: String) {
        let subject = format!("{}/{}", key.cluster, short_id(key));
        self.add(code, "need", subject.clone(), subject, found);
    }

    fn offer(&mut self, code: &'static str, known: &Known, found: String) {
        let machine = &known.machine;
        let capacity = capacity(machine.capacity_type);
        let subject = format!("{}/{} {capacity} {}", known.provider, machine.instance_type, machine.zone);
        self.add(code, "offer", subject.clone(), subject, found);
    }
}

fn capacity(capacity_type: CapacityType) -> &'static str {
    match capacity_type {
        CapacityType::Unspecified => "unspecified",
        CapacityType::BareMetal => "bare-metal",
        CapacityType::Reserved => "reserved",
        CapacityType::OnDemand => "on-demand",
        CapacityType::Spot => "spot",
    }
}

fn needs(found: &mut Findings, snapshot: &Snapshot, daily_usd: f64) {
    let fleet = &snapshot.fleet;
    let keys: Vec<_> = fleet.short_needs().iter().map(|short| short.demand.need.key()).collect();
    let mut gangs = 0;
    for (key, reason) in keys.iter().zip(fleet.reasons_of(&keys)) {
        let has_any = || fleet.outcome_of(key).is_some_and(|o| o.credited.len() + o.acquired.len() > 0);
        // One that has machines is met by those; it only finds no more of them.
        if reason == Some(Reason::NoMatchingSupply) && !has_any() {
            let looked = fleet.machine_count();
            found.need("BF101", key, format!("none of {looked} machines and offers meets what it asks for"));
        }
        let is_gang = fleet.need(key).is_some_and(|demand| demand.need.profile.same().is_some());
        if is_gang && gangs < GANGS {
            gangs += 1;
            let domains = fleet.domain_coverage(key).unwrap_or_default();
            if let Some(best) =
                domains.iter().max_by_key(|domain| domain.per_mille).filter(|d| d.per_mille < 1000)
            {
                let percent = best.per_mille / 10;
                found.need(
                    "BF102",
                    key,
                    format!("the largest domain, {}, could carry {percent} % of it", best.domain),
                );
            }
        }
    }
    let all: Vec<_> = fleet.needs().collect();
    let priorities: BTreeSet<i32> = all.iter().map(|demand| demand.priority()).collect();
    if let (1, Some(priority), true) = (priorities.len(), priorities.first(), all.len() > 1) {
        let text = format!("{} needs, all of priority {priority}", all.len());
        found.add("BF201", "fleet", String::new(), "priorities".into(), text);
    }
    let pinned =
        all.iter().filter(|demand| demand.need.profile.interruption() == PenaltyBucket::PINNED).count();
    if pinned as f64 > MOST_PINNED * all.len() as f64 {
        let percent = (100 * pinned) / all.len().max(1);
        let text = format!("{pinned} of {} needs are pinned ({percent} %)", all.len());
        found.add("BF202", "fleet", String::new(), "penalties".into(), text);
    }
    for demand in all {
        let (profile, key) = (&demand.need.profile, demand.need.key());
        let penalty = profile.interruption().upper_bound_dollars();
        if penalty.is_finite() && daily_usd > 0.0 && penalty > MOST_DAYS * daily_usd {
            let days = penalty / daily_usd;
            found.need(
                "BF203",
                &key,
                format!("${penalty} is what the cheapest machine costs in {days:.0} days"),
            );
        }
        for requirement in profile.requirements() {
            let [only] = requirement.values() else { continue };
            if requirement.operator() == Operator::In && requirement.key() == ZONE {
                found.need("BF204", &key, format!("only in {only}"));
            }
            if requirement.operator() == Operator::In && requirement.key() == INSTANCE_TYPE {
                found.need("BF205", &key, format!("only {only}"));
            }
        }
    }
}

fn offers(found: &mut Findings, machines: &[Known]) {
    for known in machines {
        let machine = &*known.machine;
        let (price, risk) = (machine.price_usd_per_hour, machine.interruption_probability);
        if machine.capacity_type == CapacityType::Spot && risk == 0.0 {
            found.offer("BF103", known, "probability 0 an hour".into());
        }
        if risk > MOST_PROBABILITY {
            let days = 1.0 / risk / 24.0;
            found.offer(
                "BF104",
                known,
                format!("probability {risk} an hour: one interruption in {days:.1} days"),
            );
        }
        if machine.capacity_type.is_elastic() && price == 0.0 {
            found.offer("BF105", known, "price $0 an hour".into());
        }
    }
}

/// What a living shard knows of its providers.
struct Providers {
    stale: Vec<(String, i64)>,
    claimed_twice: u64,
    count: usize,
}

fn providers(found: &mut Findings, providers: &Providers) {
    if providers.claimed_twice > 0 {
        let text = format!("{} records of machines that another provider lists", providers.claimed_twice);
        found.add("BF106", "fleet", String::new(), "providers".into(), text);
    }
    for (name, secs) in &providers.stale {
        let text =
            if *secs < 0 { "never heard in this life".into() } else { format!("not heard for {secs} s") };
        found.add("BF206", "provider", name.clone(), name.clone(), text);
    }
}

impl<S: Shards> View<S> {
    pub(crate) async fn lint(&self, request: v1::LintRequest) -> Result<v1::LintAnswer, Status> {
        for code in &request.codes {
            if !RULES.iter().any(|rule| rule.code == code) {
                let known = RULES.iter().map(|rule| rule.code).collect::<Vec<_>>().join(", ");
                return Err(Status::invalid_argument(format!(
                    "there is no rule {code:?}; there are {known}"
                )));
            }
        }
        let (snapshot, machines) = self.moment_with_machines(request.at).await?;
        let known = if snapshot.past.is_none() {
            self.shards.inspect(look).await?
        } else {
            Providers { stale: Vec::new(), claimed_twice: 0, count: 0 }
        };
        blocking(move || {
            let mut found = Findings::default();
            let prices =
                machines.iter().map(|known| known.machine.price_usd_per_hour).filter(|usd| *usd > 0.0);
            let cheapest = prices.fold(f64::INFINITY, f64::min);
            let daily = if cheapest.is_finite() { 24.0 * cheapest } else { 0.0 };
            needs(&mut found, &snapshot, daily);
            offers(&mut found, &machines);
            providers(&mut found, &known);
            let wanted = |one: &v1::Finding| request.codes.is_empty() || request.codes.contains(&one.code);
            Ok(v1::LintAnswer {
                findings: found.0.into_values().filter(wanted).collect(),
                needs: snapshot.fleet.need_count() as u32,
                machines: machines.len() as u32,
                providers: known.count as u32,
                as_of: Some(snapshot.as_of),
            })
        })
        .await
    }
}

fn look(shard: &Shard, now: i64) -> Providers {
    let all = (0..shard.providers().len()).map(|at| crate::clusters::provider_brief(shard, at, now));
    let stale = all.filter(|brief| brief.stale).map(|brief| {
        let secs =
            if brief.heard_unix_nanos == 0 { -1 } else { (now - brief.heard_unix_nanos) / 1_000_000_000 };
        (brief.name, secs)
    });
    Providers {
        stale: stale.collect(),
        claimed_twice: shard.tally().claimed_twice,
        count: shard.providers().len(),
    }
}
