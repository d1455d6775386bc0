//! Reading scenario files: every problem is found in one go, with a number, a place and a remedy.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bigfleet_model::quantity::Quantity;
use serde_json::{Map, Value};

use super::{Curve, Load, Point, Scenario};
use crate::fault::Line;
use crate::span::Span;
use crate::suggest::{nearest, perhaps};

/// What each code means. Codes are never given to anything else.
pub const CODES: &[(&str, &str)] = &[
    ("SC001", "the file is not JSON"),
    ("SC002", "a field has a value of the wrong kind"),
    ("SC003", "a field is unknown"),
    ("SC004", "a field is missing"),
    ("SC005", "a span of time cannot be read"),
    ("SC006", "a fault cannot be read"),
    ("SC007", "a fault begins after the scenario has ended"),
    ("SC008", "a load has no points"),
    ("SC009", "the points of a load are not in the order of time"),
    ("SC010", "a number of units is negative or too large"),
    ("SC011", "a quantity cannot be read or is not above zero"),
    ("SC012", "two loads have the same cluster and name"),
    ("SC013", "there is too much of something"),
];

/// The most faults, loads or points.
const LIMIT: usize = 10_000;
/// The most units a point may want.
const UNITS_LIMIT: f64 = 1e9;

/// One problem of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its number, from [`CODES`].
    pub code: &'static str,
    /// Where, such as `load[0].points[2].at`.
    pub place: String,
    /// What is wrong, and what to write.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: {}", self.code, self.place, self.message)
    }
}

/// All problems of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Problem::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Problems {}

pub(super) fn read(text: &str) -> Result<Scenario, Problems> {
    let mut reader = Reader { problems: Vec::new() };
    let tree = serde_json::from_str(text).map_err(|error| {
        Problems(vec![Problem { code: "SC001", place: "file".into(), message: error.to_string() }])
    })?;
    let scenario = reader.scenario(&tree);
    match scenario {
        Some(scenario) if reader.problems.is_empty() => Ok(scenario),
        _ => Err(Problems(reader.problems)),
    }
}

struct Reader {
    problems: Vec<Problem>,
}

/// An object of the file, and where it is.
struct Fields<'a> {
    place: String,
    fields: &'a Map<String, Value>,
}

impl Fields<'_> {
    fn place(&self, name: &str) -> String {
        if self.place.is_empty() { name.into() } else { format!("{}.{name}", self.place) }
    }
}

impl Reader {
    fn problem(&mut self, code: &'static str, place: impl Into<String>, message: impl Into<String>) {
        let place = place.into();
        let place = if place.is_empty() { "file".into() } else { place };
        self.problems.push(Problem { code, place, message: message.into() });
    }

    fn scenario(&mut self, tree: &Value) -> Option<Scenario> {
        let fields = self.object(tree, "", &["name", "note", "seed", "lasts", "load", "faults"])?;
        let name = self.text(&fields, "name", None);
        let note = self.text(&fields, "note", Some(""));
        let seed = match fields.fields.get("seed") {
            None => Some(1),
            Some(seed) => self.kind(seed.as_u64(), "seed", "a whole number from 0 on"),
        };
        let lasts = self.span(&fields, "lasts");
        let load = self.loads(&fields);
        let faults = self.faults(&fields, lasts);
        Some(Scenario { name: name?, note: note?, seed: seed?, lasts: lasts?, load, faults })
    }

    fn faults(&mut self, fields: &Fields<'_>, lasts: Option<Span>) -> Vec<Line> {
        let mut lines = Vec::new();
        for (place, value) in self.list(fields, "faults") {
            let Some(text) = self.kind(value.as_str(), &place, "a line such as \"zone-outage zone-b\"")
            else {
                continue;
            };
            match text.parse::<Line>() {
                Err(error) => self.problem("SC006", place, error.to_string()),
                Ok(line) if lasts.is_some_and(|lasts| line.after >= lasts) => {
                    let message =
                        format!("it begins after {}, when all is over; make lasts longer", line.after);
                    self.problem("SC007", place, message);
                }
                Ok(line) => lines.push(line),
            }
        }
        lines
    }

    fn loads(&mut self, fields: &Fields<'_>) -> Vec<Load> {
        let mut seen = BTreeSet::new();
        let mut loads = Vec::new();
        for (place, value) in self.list(fields, "load") {
            let Some(load) = self.load(value, &place) else { continue };
            if !seen.insert((load.cluster.clone(), load.name.clone())) {
                self.problem(
                    "SC012",
                    place,
                    format!("cluster {:?} has it already; give it a name", load.cluster),
                );
            }
            loads.push(load);
        }
        loads
    }

    fn load(&mut self, value: &Value, place: &str) -> Option<Load> {
        let names = ["cluster", "name", "unit", "priority", "curve", "points"];
        let fields = self.object(value, place, &names)?;
        let cluster = self.text(&fields, "cluster", None);
        let name = self.text(&fields, "name", Some(""));
        let priority = match fields.fields.get("priority") {
            None => Some(0),
            Some(value) => {
                let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
                self.kind(number, &fields.place("priority"), "a whole number of 32 bits")
            }
        };
        let curve = match self.text(&fields, "curve", Some("lines"))?.as_str() {
            "lines" => Some(Curve::Lines),
            "steps" => Some(Curve::Steps),
            _ => self.kind(None, &fields.place("curve"), "\"lines\" or \"steps\""),
        };
        let unit = self.unit(&fields);
        let points = self.points(&fields);
        Some(Load { cluster: cluster?, name: name?, unit: unit?, priority: priority?, curve: curve?, points })
    }

    fn unit(&mut self, fields: &Fields<'_>) -> Option<BTreeMap<String, String>> {
        let place = fields.place("unit");
        let Some(value) = fields.fields.get("unit") else {
            self.problem("SC004", place, "say what one unit needs, such as { \"cpu\": \"4\" }");
            return None;
        };
        let resources = self.kind(value.as_object(), &place, "an object of quantities")?;
        if resources.is_empty() {
            self.problem("SC011", place.as_str(), "a unit needs something, such as { \"cpu\": \"4\" }");
        }
        let mut unit = BTreeMap::new();
        for (resource, quantity) in resources {
            let place = format!("{place}.{resource}");
            let Some(text) = self.kind(quantity.as_str(), &place, "a quantity in quotes, such as \"16Gi\"")
            else {
                continue;
            };
            match text.parse::<Quantity>() {
                Ok(quantity) if quantity > Quantity::ZERO => {
                    unit.insert(resource.clone(), text.to_string());
                }
                Ok(_) => self.problem("SC011", place, format!("{text:?} is not above zero")),
                Err(error) => self.problem("SC011", place, error.to_string()),
            }
        }
        Some(unit)
    }

    fn points(&mut self, fields: &Fields<'_>) -> Vec<Point> {
        let mut points: Vec<Point> = Vec::new();
        let list = self.list(fields, "points");
        if list.is_empty() {
            self.problem(
                "SC008",
                fields.place("points"),
                "give at least one, such as { \"at\": \"0s\", \"units\": 10 }",
            );
        }
        for (place, value) in list {
            let Some(point) = self.object(value, &place, &["at", "units"]) else { continue };
            let at = self.span(&point, "at");
            let Some(units) = point.fields.get("units") else {
                self.problem("SC004", point.place("units"), "say how many units are wanted");
                continue;
            };
            let units = self.kind(units.as_f64(), &point.place("units"), "a number");
            let (Some(at), Some(units)) = (at, units) else { continue };
            if !(0.0..=UNITS_LIMIT).contains(&units) {
                self.problem(
                    "SC010",
                    point.place("units"),
                    format!("{units} is not between 0 and {UNITS_LIMIT}"),
                );
            }
            if points.last().is_some_and(|last| last.at >= at) {
                self.problem("SC009", point.place("at"), format!("{at} is not after the point before it"));
            }
            points.push(Point { at, units });
        }
        points
    }

    fn object<'a>(&mut self, value: &'a Value, place: &str, names: &[&str]) -> Option<Fields<'a>> {
        let fields = self.kind(value.as_object(), place, "an object")?;
        let fields = Fields { place: place.into(), fields };
        for name in fields.fields.keys().filter(|name| !names.contains(&name.as_str())) {
            let hint = perhaps(nearest(name, names.iter().copied()).as_deref());
            self.problem(
                "SC003",
                fields.place(name),
                format!("there is no such field{hint}; fields are {}", names.join(", ")),
            );
        }
        Some(fields)
    }

    fn list<'a>(&mut self, fields: &Fields<'a>, name: &str) -> Vec<(String, &'a Value)> {
        let Some(value) = fields.fields.get(name) else { return Vec::new() };
        let place = fields.place(name);
        let Some(list) = self.kind(value.as_array(), &place, "a list") else { return Vec::new() };
        if list.len() > LIMIT {
            self.problem("SC013", place, format!("{} entries; at most {LIMIT} are allowed", list.len()));
            return Vec::new();
        }
        list.iter().enumerate().map(|(index, value)| (format!("{place}[{index}]"), value)).collect()
    }

    fn text(&mut self, fields: &Fields<'_>, name: &str, default: Option<&str>) -> Option<String> {
        match (fields.fields.get(name), default) {
            (Some(value), _) => {
                let text = value.as_str().filter(|text| default.is_some() || !text.is_empty());
                self.kind(text, &fields.place(name), "a text").map(String::from)
            }
            (None, Some(default)) => Some(default.into()),
            (None, None) => {
                self.problem("SC004", fields.place(name), "it must be there");
                None
            }
        }
    }

    fn span(&mut self, fields: &Fields<'_>, name: &str) -> Option<Span> {
        let text = self.text(fields, name, None)?;
        match text.parse::<Span>() {
            Ok(span) => Some(span),
            Err(error) => {
                self.problem("SC005", fields.place(name), error.to_string());
                None
            }
        }
    }

    /// The value, or a problem with what it should have been.
    fn kind<T>(&mut self, value: Option<T>, place: &str, wanted: &str) -> Option<T> {
        if value.is_none() {
            self.problem("SC002", place, format!("it should be {wanted}"));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
        "name": "n", "seed": 7, "lasts": "2h",
        "load": [{ "cluster": "c", "unit": { "cpu": "4" }, "points": [{ "at": "0s", "units": 3 }] }],
        "faults": ["zone-outage zone-b --after 30m --for 10m"]
    }"#;

    #[test]
    fn a_good_file_reads_and_writes_back() {
        let scenario = read(GOOD).expect("a good file");
        assert_eq!((scenario.seed, scenario.lasts, scenario.load.len()), (7, Span::from_secs(7200), 1));
        assert_eq!(read(&scenario.to_json()), Ok(scenario));
    }

    #[test]
    fn every_code_is_found_where_it_is() {
        let with = |old: &str, new: &str| {
            assert!(GOOD.contains(old), "{old}");
            GOOD.replace(old, new)
        };
        let many = format!("\"faults\": [{}\"api-outage\"]", "\"api-outage\",".repeat(LIMIT));
        let twice =
            r#""load": [{"cluster": "c", "unit": {"cpu": "1"}, "points": [{"at": "0s", "units": 1}]},"#;
        for (code, place, text) in [
            ("SC001", "file", "{".to_string()),
            ("SC002", "seed", with("\"seed\": 7", "\"seed\": \"7\"")),
            ("SC002", "file", "[]".to_string()),
            ("SC003", "fault", with("\"faults\"", "\"fault\"")),
            ("SC004", "lasts", with(", \"lasts\": \"2h\"", "")),
            ("SC005", "lasts", with("2h", "soon")),
            ("SC006", "faults[0]", with("zone-outage zone-b", "zone-outge zone-b")),
            ("SC007", "faults[0]", with("--after 30m", "--after 3h")),
            ("SC008", "load[0].points", with("[{ \"at\": \"0s\", \"units\": 3 }]", "[]")),
            (
                "SC009",
                "load[0].points[1].at",
                with("\"units\": 3 }]", "\"units\": 3 }, { \"at\": \"0s\", \"units\": 4 }]"),
            ),
            ("SC010", "load[0].points[0].units", with("\"units\": 3", "\"units\": -3")),
            ("SC011", "load[0].unit.cpu", with("\"4\"", "\"four\"")),
            ("SC012", "load[1]", with("\"load\": [", twice)),
            ("SC013", "faults", with("\"faults\": [\"zone-outage zone-b --after 30m --for 10m\"]", &many)),
        ] {
            let Problems(problems) = read(&text).expect_err(code);
            assert_eq!(problems.len(), 1, "{code}: {problems:?}");
            assert_eq!((problems[0].code, problems[0].place.as_str()), (code, place), "{}", problems[0]);
            assert!(CODES.iter().any(|(known, _)| *known == code));
        }
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let text = r#"{ "name": 3, "lasts": "x", "faults": ["a", "b"], "load": [{}] }"#;
        let Problems(problems) = read(text).expect_err("nothing is right");
        let codes: Vec<&str> = problems.iter().map(|problem| problem.code).collect();
        assert_eq!(codes, ["SC002", "SC005", "SC004", "SC004", "SC008", "SC006", "SC006"]);
    }
}
