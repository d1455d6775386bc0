//! The part of an address behind the question mark: known names only, bounded, checked.

use bigfleet_view::v1::{Moment, moment};

use crate::answer::Refusal;

/// Longest address that is read.
const MOST_BYTES: usize = 8192;
/// Values of one question.
const MOST_VALUES: usize = 64;

/// What was asked.
#[derive(Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads it; names that are not in `known` are refused, so that a misspelt filter is not taken for none.
    pub(crate) fn read(uri: &http::Uri, known: &[&str]) -> Result<Self, Refusal> {
        let text = uri.query().unwrap_or_default();
        if text.len() > MOST_BYTES {
            return Err(Refusal::bad(format!(
                "the query has {} bytes; at most {MOST_BYTES} are read",
                text.len()
            )));
        }
        let mut values = Vec::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            if !known.contains(&&*name) {
                let name = bigfleet_model::text::Quoted(&name);
                return Err(Refusal::bad(format!(
                    "{name} is not known here; known are {}",
                    known.join(", ")
                )));
            }
            if values.len() == MOST_VALUES {
                return Err(Refusal::bad(format!("more than {MOST_VALUES} values")));
            }
            if !value.is_empty() {
                values.push((name.into_owned(), value.into_owned()));
            }
        }
        Ok(Self(values))
    }

    /// The value of a name; empty if it was not given.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    /// All values of a name, also those with commas between them.
    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        let given = self.0.iter().filter(|(given, _)| given == name);
        given.flat_map(|(_, value)| value.split(',')).filter(|one| !one.is_empty()).map(Into::into).collect()
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, name: &str) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some("0" | "false") => Ok(false),
            Some("1" | "true") => Ok(true),
            Some(other) => Err(Refusal::bad(format!("{name}: {other:?} is neither 1 nor 0"))),
        }
    }

    /// A number within bounds.
    pub(crate) fn number(&self, name: &str, default: u64, most: u64) -> Result<u64, Refusal> {
        let Some(text) = self.get(name) else { return Ok(default) };
        match text.parse::<u64>() {
            Ok(number) if number <= most => Ok(number),
            Ok(number) => Err(Refusal::bad(format!("{name}: {number} is above {most}"))),
            Err(_) => Err(Refusal::bad(format!("{name}: {text:?} is not a number"))),
        }
    }

    /// The moment that is meant by `at`: a cycle, or Unix nanoseconds behind a `t`.
    pub(crate) fn moment(&self) -> Result<Option<Moment>, Refusal> {
        let Some(text) = self.get("at") else { return Ok(None) };
        let moment = match text.strip_prefix('t') {
            Some(nanos) => nanos.parse().ok().map(moment::Moment::UnixNanos),
            None => text.parse().ok().map(moment::Moment::Cycle),
        };
        match moment {
            Some(moment) => Ok(Some(Moment { moment: Some(moment) })),
            None => Err(Refusal::bad(format!("at: {text:?} is neither a cycle nor t and Unix nanoseconds"))),
        }
    }

    /// The place of a name of an enumeration among its names in lower case, as the view's JSON has them.
    pub(crate) fn code(
        &self,
        name: &str,
        from_name: impl Fn(&str) -> Option<i32>,
        prefix: &str,
    ) -> Result<Vec<i32>, Refusal> {
        let number = |text: String| {
            let full = format!("{prefix}{}", text.to_ascii_uppercase().replace('-', "_"));
            from_name(&full).ok_or_else(|| Refusal::bad(format!("{name}: {text:?} is not known")))
        };
        self.list(name).into_iter().map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Query, String> {
        let uri: http::Uri = format!("/x?{query}").parse().unwrap();
        Query::read(&uri, &["cluster", "limit", "at", "unmet", "state"])
            .map_err(|refusal| format!("{refusal:?}"))
    }

    #[test]
    fn known_names_are_read_and_others_refused() {
        let query = read("cluster=a%20b&limit=5&unmet=1&state=idle,failed&at=").unwrap();
        assert_eq!((query.text("cluster").as_str(), query.number("limit", 1, 10).unwrap()), ("a b", 5));
        assert!(query.flag("unmet").unwrap() && query.moment().unwrap().is_none());
        assert_eq!(query.list("state"), ["idle", "failed"]);
        assert!(read("color=a").unwrap_err().contains("color"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_name_and_bound() {
        let refused =
            |query: &str, f: fn(&Query) -> Result<(), Refusal>| format!("{:?}", f(&read(query).unwrap()));
        assert!(
            refused("limit=11", |q| q.number("limit", 1, 10).map(drop)).contains("limit: 11 is above 10")
        );
        assert!(refused("limit=x", |q| q.number("limit", 1, 10).map(drop)).contains("not a number"));
        assert!(refused("unmet=yes", |q| q.flag("unmet").map(drop)).contains("neither 1 nor 0"));
        assert!(refused("at=noon", |q| q.moment().map(drop)).contains("neither a cycle"));
        assert!(read(&format!("cluster={}", "x".repeat(9000))).unwrap_err().contains("8192"));
        assert!(read(&"limit=1&".repeat(65)).unwrap_err().contains("more than 64"));
    }

    #[test]
    fn moments_are_cycles_or_times() {
        let moment = |text: &str| read(text).unwrap().moment().unwrap().unwrap().moment.unwrap();
        assert_eq!(moment("at=1842"), moment::Moment::Cycle(1842));
        assert_eq!(moment("at=t17"), moment::Moment::UnixNanos(17));
    }
}
