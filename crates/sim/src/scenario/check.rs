//! Reading scenario files: problems have a number, a place and a remedy.

use std::collections::BTreeSet;

use super::{Curve, Pods, Scenario, StartState, What, demand};
use bigfleet_model::requirement::Operator;
use bigfleet_model::resource::ResourceVec;
pub use bigfleet_provider_sim::scenario::{Problem, Problems};

/// What each code means. Codes are never given to anything else.
pub const CODES: &[(&str, &str)] = &[
    ("SM001", "the file is not JSON"),
    ("SM002", "a field is unknown, missing or of the wrong kind"),
    ("SM003", "two pools, clusters or kinds of work have the same name, or none"),
    ("SM004", "a quantity cannot be read or is not above zero"),
    ("SM005", "a way of paying is unknown"),
    ("SM006", "a configured machine belongs to no known cluster"),
    ("SM007", "a price, probability or share is out of its range"),
    ("SM008", "a requirement cannot be used"),
    ("SM009", "a gang and its label do not go together"),
    ("SM010", "the points of a curve are missing or not in the order of time"),
    ("SM011", "a fault begins after the scenario has ended"),
    ("SM012", "a fault names something that does not exist"),
    ("SM013", "an expectation states nothing, or looks after the end"),
    ("SM014", "there is too much of something"),
    ("SM015", "a cluster's shard does not exist, or shards have no zones"),
    ("SM016", "a span that must be above zero is not"),
];

/// The most machines or pods.
const LIMIT: u64 = 1_000_000;

pub(super) fn read(text: &str) -> Result<Scenario, Problems> {
    let scenario: Scenario = serde_json::from_str(text).map_err(|error| {
        let code = if error.is_data() { "SM002" } else { "SM001" };
        let place = format!("line {} column {}", error.line(), error.column());
        Problems(vec![Problem { code, place, message: error.to_string() }])
    })?;
    let mut check = Check { scenario: &scenario, problems: Vec::new() };
    check.all();
    if check.problems.is_empty() { Ok(scenario) } else { Err(Problems(check.problems)) }
}

struct Check<'a> {
    scenario: &'a Scenario,
    problems: Vec<Problem>,
}

impl Check<'_> {
    fn problem(&mut self, code: &'static str, place: impl Into<String>, message: impl Into<String>) {
        self.problems.push(Problem { code, place: place.into(), message: message.into() });
    }

    fn all(&mut self) {
        self.spans();
        self.supply();
        self.demand();
        self.faults();
        self.expectations();
    }

    fn spans(&mut self) {
        let shard = &self.scenario.shard;
        let spans = [
            ("lasts", self.scenario.lasts),
            ("shard.tick", shard.tick),
            ("shard.list_every", shard.list_every),
            ("shard.full_list_every", shard.full_list_every),
        ];
        for (place, span) in spans {
            if span.nanos() <= 0 {
                self.problem("SM016", place, "it must be above zero, such as 10s");
            }
        }
        if !(0.0..=1.0).contains(&shard.reclaim_fraction) {
            self.problem("SM007", "shard.reclaim_fraction", "it must lie between 0 and 1");
        }
        let is_shared_out = shard.council.is_some() || shard.zones.len() == shard.shards;
        if shard.shards == 0 || (shard.shards > 1 && !is_shared_out) {
            self.problem("SM015", "shard.zones", "several shards need one list of zones each");
        }
    }

    fn names<'b>(&mut self, place: &str, names: impl Iterator<Item = &'b str>) {
        let mut seen = BTreeSet::new();
        for (index, name) in names.enumerate() {
            if name.is_empty() || !seen.insert(name) {
                self.problem(
                    "SM003",
                    format!("{place}[{index}].name"),
                    format!("{name:?} is taken or empty"),
                );
            }
        }
    }

    fn quantities<'b>(&mut self, place: &str, amounts: impl Iterator<Item = (&'b String, &'b String)>) {
        match ResourceVec::parse(amounts) {
            Ok(amounts) if amounts.is_zero() => {
                self.problem("SM004", place, "say how much, such as { \"cpu\": \"4\" }");
            }
            Ok(_) => {}
            Err(error) => self.problem("SM004", place, error.to_string()),
        }
    }

    fn supply(&mut self) {
        let scenario = self.scenario;
        self.names("fleet", scenario.fleet.iter().map(|pool| pool.name.as_str()));
        let total: u64 = scenario.fleet.iter().map(|pool| pool.count as u64).sum();
        if total > LIMIT {
            self.problem("SM014", "fleet", format!("{total} machines; at most {LIMIT} are allowed"));
        }
        for (index, pool) in scenario.fleet.iter().enumerate() {
            let place = format!("fleet[{index}]");
            self.quantities(&format!("{place}.resources"), pool.resources.iter());
            if pool.capacity_type().is_none() {
                let message = "it should be bare-metal, reserved, on-demand or spot";
                self.problem("SM005", format!("{place}.capacity"), message);
            }
            let known = scenario.clusters.iter().any(|cluster| cluster.name == pool.cluster);
            if (pool.state == StartState::Configured) != known {
                self.problem(
                    "SM006",
                    format!("{place}.cluster"),
                    "configured machines, and only they, name a cluster",
                );
            }
            if !(pool.price >= 0.0 && pool.price.is_finite()) {
                self.problem("SM007", format!("{place}.price"), "it must be 0 or more");
            }
            let spot = pool.capacity == "spot";
            if !(0.0..=1.0).contains(&pool.interruption) || spot && pool.interruption == 0.0 {
                self.problem("SM007", format!("{place}.interruption"), "between 0 and 1, above 0 for spot");
            }
            if pool.zones.is_empty() || pool.zones.iter().any(String::is_empty) {
                self.problem("SM002", format!("{place}.zones"), "name at least one zone");
            }
        }
    }

    fn demand(&mut self) {
        let scenario = self.scenario;
        self.names("clusters", scenario.clusters.iter().map(|cluster| cluster.name.as_str()));
        for (index, cluster) in scenario.clusters.iter().enumerate() {
            let place = format!("clusters[{index}]");
            self.names(&format!("{place}.work"), cluster.work.iter().map(|work| work.name.as_str()));
            if cluster.shard >= scenario.shard.shards {
                self.problem(
                    "SM015",
                    format!("{place}.shard"),
                    "there are fewer shards; they are counted from 0",
                );
            }
            if cluster.roll_up.nanos() <= 0 {
                self.problem("SM016", format!("{place}.roll_up"), "it must be above zero, such as 10s");
            }
            for (index, work) in cluster.work.iter().enumerate() {
                self.work(&format!("{place}.work[{index}]"), work);
            }
        }
    }

    fn work(&mut self, place: &str, work: &demand::Work) {
        self.quantities(&format!("{place}.unit"), work.unit.iter());
        if work.same.is_empty() != (work.gang == 0) {
            self.problem(
                "SM009",
                format!("{place}.gang"),
                "a gang names the label it shares, and only a gang does",
            );
        }
        let asked = work.requires.iter().map(|r| demand::operator(&r.operator));
        if asked.clone().any(|o| matches!(o, Operator::Unspecified | Operator::Same)) {
            let message = "the operator should be In, NotIn, Exists or DoesNotExist";
            self.problem("SM008", format!("{place}.requires"), message);
        }
        if let Err(error) = work.profile().validate() {
            self.problem("SM008", place, error.to_string());
        }
        let money = [work.interruption_usd, work.reclamation_usd].into_iter().flatten();
        if money.chain([work.churn_per_hour]).any(|number| number.is_nan() || number < 0.0) {
            self.problem("SM007", place, "penalties and churn must be 0 or more");
        }
        let most = match &work.pods {
            Pods::Always(pods) => *pods,
            Pods::Curve(Curve::Day { high, low, every }) => {
                if high < low || every.nanos() <= 0 {
                    self.problem(
                        "SM010",
                        format!("{place}.pods"),
                        "high is not below low, every is above zero",
                    );
                }
                *high
            }
            Pods::Curve(Curve::Steps(points)) => {
                if points.is_empty() || points.windows(2).any(|pair| pair[0].at >= pair[1].at) {
                    self.problem("SM010", format!("{place}.pods"), "give points in the order of time");
                }
                points.iter().map(|point| point.pods).max().unwrap_or(0)
            }
        };
        if most.saturating_mul(work.gang.max(1) as u64) > LIMIT {
            self.problem("SM014", format!("{place}.pods"), format!("at most {LIMIT} are allowed"));
        }
    }

    fn faults(&mut self) {
        let scenario = self.scenario;
        for (index, fault) in scenario.faults.iter().enumerate() {
            let place = format!("faults[{index}]");
            if fault.at >= scenario.lasts {
                self.problem("SM011", format!("{place}.at"), "it never happens; make lasts longer");
            }
            let cluster = match &fault.what {
                What::OperatorGone { cluster }
                | What::OperatorGarbage { cluster }
                | What::OperatorEmpty { cluster }
                | What::OperatorStuck { cluster }
                | What::OperatorRefuses { cluster }
                | What::OperatorCrashLoops { cluster, .. } => Some(cluster),
                What::Paused { cluster, .. }
                | What::Trusted { cluster, .. }
                | What::MachinesDie { cluster, .. }
                | What::ShownAs { cluster, .. }
                    if !cluster.is_empty() =>
                {
                    Some(cluster)
                }
                _ => None,
            };
            if let Some(name) = cluster.filter(|name| scenario.clusters.iter().all(|c| c.name != **name)) {
                self.problem("SM012", format!("{place}.what"), format!("there is no cluster {name:?}"));
            }
            let pool = match &fault.what {
                What::MovesFail { pool, .. }
                | What::MovesHang { pool, .. }
                | What::MachinesDie { pool, .. }
                    if !pool.is_empty() =>
                {
                    Some(pool)
                }
                What::Price { pool, .. } => Some(pool),
                _ => None,
            };
            if let Some(name) = pool.filter(|name| scenario.fleet.iter().all(|p| p.name != **name)) {
                self.problem("SM012", format!("{place}.what"), format!("there is no pool {name:?}"));
            }
            let share = match &fault.what {
                What::CallsFail { p }
                | What::AnswersLost { p }
                | What::AnswersLate { p }
                | What::AnswersTwice { p }
                | What::MovesFail { p, .. }
                | What::MovesHang { p, .. }
                | What::MovesDenied { p }
                | What::ListDoubles { p }
                | What::ShownAs { share: p, .. } => *p,
                What::ListTruncated { keep } => *keep,
                _ => 0.0,
            };
            if !(0.0..=1.0).contains(&share) {
                self.problem("SM007", format!("{place}.what"), "a chance lies between 0 and 1");
            }
        }
    }

    fn expectations(&mut self) {
        let scenario = self.scenario;
        for (index, expect) in scenario.expect.iter().enumerate() {
            let place = format!("expect[{index}]");
            let empty = expect.is.or(expect.at_least).or(expect.at_most).is_none();
            if empty || expect.from.is_some_and(|from| from > scenario.lasts) {
                self.problem("SM013", place, "give is, at_least or at_most, within the time of the scenario");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
        "name": "n", "lasts": "10m",
        "fleet": [{ "name": "m", "count": 2, "resources": { "cpu": "4" }, "price": 1.5 }],
        "clusters": [{ "name": "c", "work": [{ "name": "w", "pods": { "steps": [{ "at": "0s", "pods": 3 }] }, "unit": { "cpu": "1" } }] }],
        "faults": [{ "at": "1m", "for": "2m", "what": { "operator-gone": { "cluster": "c" } } }],
        "expect": [{ "measure": "pods_bound", "is": 3 }]
    }"#;

    #[test]
    fn a_good_file_reads_and_writes_back() {
        let scenario = read(GOOD).expect("a good file");
        assert_eq!(read(&scenario.to_json()), Ok(scenario));
    }

    #[test]
    fn every_code_is_found() {
        let with = |old: &str, new: &str| {
            assert!(GOOD.contains(old), "{old}");
            GOOD.replace(old, new)
        };
        let cases = [
            ("SM001", "{".to_string()),
            ("SM002", with("\"fleet\"", "\"fleets\"")),
            ("SM003", with("\"name\": \"m\"", "\"name\": \"\"")),
            ("SM004", with("{ \"cpu\": \"1\" }", "{ \"cpu\": \"many\" }")),
            ("SM005", with("\"price\": 1.5", "\"capacity\": \"gold\"")),
            ("SM006", with("\"price\": 1.5", "\"state\": \"configured\", \"cluster\": \"x\"")),
            ("SM007", with("\"price\": 1.5", "\"price\": -1")),
            ("SM008", with("\"unit\"", "\"requires\": [{ \"key\": \"a\", \"operator\": \"Gt\" }], \"unit\"")),
            ("SM009", with("\"unit\"", "\"gang\": 4, \"unit\"")),
            ("SM010", with("[{ \"at\": \"0s\", \"pods\": 3 }]", "[]")),
            ("SM011", with("\"at\": \"1m\"", "\"at\": \"1h\"")),
            ("SM012", with("{ \"cluster\": \"c\" }", "{ \"cluster\": \"x\" }")),
            ("SM013", with(", \"is\": 3", "")),
            ("SM014", with("\"pods\": 3", "\"pods\": 3000000")),
            ("SM015", with("\"name\": \"c\"", "\"name\": \"c\", \"shard\": 3")),
            ("SM016", with("\"10m\"", "\"0s\"")),
        ];
        for (code, text) in &cases {
            let problems = read(text).expect_err(code).0;
            assert!(problems.iter().any(|problem| problem.code == *code), "{code}: {problems:?}");
        }
        let covered: BTreeSet<&str> = cases.iter().map(|(code, _)| *code).collect();
        assert_eq!(covered, CODES.iter().map(|(code, _)| *code).collect());
    }
}
