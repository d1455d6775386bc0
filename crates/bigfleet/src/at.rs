//! `--at`: which moment is meant, by cycle or by time.

use std::str::FromStr;

use anyhow::{Context, bail};
use bigfleet_view::v1::Moment;
use bigfleet_view::v1::moment;
use jiff::civil::Time;
use jiff::{SignedDuration, Timestamp, ToSpan};

use crate::words::zoned;

/// A moment as it is written: `1842`, `2026-11-15T14:02:10Z`, `14:02`, `10m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The state in which this cycle decided.
    Cycle(u64),
    /// A time of the calendar.
    Time(i64),
    /// The last time it was so late.
    OfDay(Time),
    /// So long before now.
    Ago(i64),
}

impl FromStr for At {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        if let Ok(cycle) = text.strip_prefix('#').unwrap_or(text).parse() {
            return Ok(Self::Cycle(cycle));
        }
        let nanos_of = |time: Timestamp| {
            i64::try_from(time.as_nanosecond()).ok().context("a time outside of the years 1678 to 2261")
        };
        if let Ok(time) = text.parse::<Timestamp>() {
            return Ok(Self::Time(nanos_of(time)?));
        }
        if let Ok(time) = text.parse::<jiff::civil::DateTime>() {
            return Ok(Self::Time(nanos_of(time.to_zoned(jiff::tz::TimeZone::system())?.timestamp())?));
        }
        if let Ok(time) = Time::strptime("%H:%M:%S", text).or_else(|_| Time::strptime("%H:%M", text)) {
            return Ok(Self::OfDay(time));
        }
        if let Ok(span) = nanos(text.trim_end_matches("ago").trim()) {
            return Ok(Self::Ago(span));
        }
        bail!(
            "neither a cycle nor a time; write a cycle (1842), a time (2026-11-15T14:02:10Z, 14:02) or how long ago (10m)"
        )
    }
}

impl At {
    /// Whether the server's clock is needed to know what is meant. It may not be ours: simulated time runs faster.
    pub(crate) fn needs_now(&self) -> bool {
        matches!(self, Self::OfDay(_) | Self::Ago(_))
    }

    /// The moment, seen from the server's `now`.
    pub(crate) fn moment(&self, now_unix_nanos: i64) -> Moment {
        let chosen = match self {
            Self::Cycle(cycle) => moment::Moment::Cycle(*cycle),
            Self::Time(time) => moment::Moment::UnixNanos(*time),
            Self::Ago(span) => moment::Moment::UnixNanos(now_unix_nanos.saturating_sub(*span)),
            Self::OfDay(time) => {
                let now = zoned(now_unix_nanos);
                let on =
                    |zoned: &jiff::Zoned| zoned.with().time(*time).build().unwrap_or_else(|_| zoned.clone());
                let today = on(&now);
                let meant = if today > now { on(&now.saturating_sub(1.day())) } else { today };
                let nanos = meant.timestamp().as_nanosecond();
                moment::Moment::UnixNanos(i64::try_from(nanos).unwrap_or(now_unix_nanos))
            }
        };
        Moment { moment: Some(chosen) }
    }
}

/// A span such as `30m`, `90s`, `1h30m` or `2d`, in nanoseconds.
pub(crate) fn nanos(text: &str) -> anyhow::Result<i64> {
    // Days are 24 hours here: nobody pauses a fleet by the calendar.
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) if days.parse::<i64>().is_ok() => (days.parse::<i64>()?, rest.trim()),
        _ => (0, text),
    };
    let rest = if rest.is_empty() && text.contains('d') {
        SignedDuration::ZERO
    } else {
        rest.parse::<SignedDuration>()
            .with_context(|| format!("{text:?} is not a span; write 90s, 30m, 1h30m or 2d"))?
    };
    let whole =
        days.checked_mul(24 * 3600).and_then(|secs| rest.checked_add(SignedDuration::from_secs(secs)));
    match whole.and_then(|span| i64::try_from(span.as_nanos()).ok()) {
        Some(nanos) if nanos >= 0 => Ok(nanos),
        _ => bail!("{text:?} is not a span we can use; write 90s, 30m, 1h30m or 2d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_cycle_a_time_or_how_long_ago() {
        let at = |text: &str| text.parse::<At>().map_err(|error| error.to_string());
        assert_eq!(at("1842"), Ok(At::Cycle(1842)));
        assert_eq!(at("#1842"), Ok(At::Cycle(1842)));
        assert_eq!(at("1970-01-01T00:00:01Z"), Ok(At::Time(1_000_000_000)));
        assert_eq!(at("14:02"), Ok(At::OfDay(jiff::civil::time(14, 2, 0, 0))));
        assert_eq!(at("14:02:10"), Ok(At::OfDay(jiff::civil::time(14, 2, 10, 0))));
        assert_eq!(at("10m"), Ok(At::Ago(600_000_000_000)));
        assert_eq!(at("10m ago"), Ok(At::Ago(600_000_000_000)));
        assert_eq!(at("2999-01-01T00:00:00Z").unwrap_err(), "a time outside of the years 1678 to 2261");
        for bad in ["", "yesterday", "-5", "25:99", "10 parsecs"] {
            assert!(at(bad).unwrap_err().contains("neither a cycle nor a time"), "{bad}");
        }
    }

    #[test]
    fn spans_are_read_and_nonsense_is_refused() {
        assert_eq!(nanos("90s").unwrap(), 90_000_000_000);
        assert_eq!(nanos("1h30m").unwrap(), 5_400_000_000_000);
        assert_eq!(nanos("2d").unwrap(), 172_800_000_000_000);
        assert_eq!(nanos("1d 2h").unwrap(), 93_600_000_000_000);
        for bad in ["", "30", "m", "-5m", "99999999999999d", "d"] {
            assert!(nanos(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_of_day_is_the_last_one() {
        let now = 1_700_000_000_000_000_000;
        let of_day = |hours: i32| {
            let time = zoned(now).saturating_add(hours.hours()).time();
            let moment = At::OfDay(time).moment(now).moment.unwrap();
            let moment::Moment::UnixNanos(nanos) = moment else { panic!("a time") };
            (now - nanos) / 3_600_000_000_000
        };
        assert_eq!((of_day(-1), of_day(1)), (1, 23));
    }
}
