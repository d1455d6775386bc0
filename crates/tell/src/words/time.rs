//! Times and spans. People see their own time zone, data is in UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const SECOND: i64 = 1_000_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A time in the zone of whoever reads; the ends of time if it lies outside of what calendars know.
pub fn zoned(unix_nanos: i64) -> jiff::Zoned {
    let timestamp = Timestamp::from_nanosecond(unix_nanos.into())
        .expect("64 bits of nanoseconds are within the calendar");
    timestamp.to_zoned(TimeZone::system())
}

/// `2026-11-15T14:02:10Z`.
pub fn rfc3339(unix_nanos: i64) -> String {
    Timestamp::from_nanosecond(unix_nanos.into())
        .expect("64 bits of nanoseconds are within the calendar")
        .to_string()
}

/// `14:02:10` if it is the day of `now`, else with the date before it.
pub fn clock_time(unix_nanos: i64, now_unix_nanos: i64) -> String {
    let (time, now) = (zoned(unix_nanos), zoned(now_unix_nanos));
    let format = if time.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    time.strftime(format).to_string()
}

/// `14 s`, `6 min`, `2 h 5 min`, `3 d 4 h`: for sentences. Below ten minutes to the second.
pub fn span(nanos: i64) -> String {
    let nanos = nanos.max(0);
    let two = |whole: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{whole} {unit}") } else { format!("{whole} {unit} {rest} {small}") }
    };
    match nanos {
        n if n < 10 * SECOND && n % SECOND >= SECOND / 10 => format!("{:.1} s", n as f64 / 1e9),
        n if n < MINUTE => format!("{} s", n / SECOND),
        n if n < 10 * MINUTE => two(n / MINUTE, "min", n % MINUTE / SECOND, "s"),
        n if n < HOUR => format!("{} min", n / MINUTE),
        n if n < DAY => two(n / HOUR, "h", n % HOUR / MINUTE, "min"),
        n => two(n / DAY, "d", n % DAY / HOUR, "h"),
    }
}

/// `14s`, `6m`, `2h5m`, `3d4h`: for columns.
pub fn short_span(nanos: i64) -> String {
    let nanos = nanos.max(0);
    let two = |whole: i64, unit: &str, rest: i64, small: &str| {
        if rest == 0 { format!("{whole}{unit}") } else { format!("{whole}{unit}{rest}{small}") }
    };
    match nanos {
        n if n < 2 * MINUTE => format!("{}s", n / SECOND),
        n if n < 10 * MINUTE => two(n / MINUTE, "m", n % MINUTE / SECOND, "s"),
        n if n < 2 * HOUR => format!("{}m", n / MINUTE),
        n if n < 10 * HOUR => two(n / HOUR, "h", n % HOUR / MINUTE, "m"),
        n if n < 2 * DAY => format!("{}h", n / HOUR),
        n => two(n / DAY, "d", n % DAY / HOUR, "h"),
    }
}

/// How long ago something was, for columns; a dash if it never was.
pub fn age(unix_nanos: i64, now_unix_nanos: i64) -> String {
    if unix_nanos == 0 { "-".into() } else { short_span(now_unix_nanos.saturating_sub(unix_nanos)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_at_most_two_units() {
        for (nanos, long, short) in [
            (0, "0 s", "0s"),
            (SECOND * 3 / 2, "1.5 s", "1s"),
            (14 * SECOND, "14 s", "14s"),
            (6 * MINUTE, "6 min", "6m"),
            (6 * MINUTE + 5 * SECOND, "6 min 5 s", "6m5s"),
            (59 * MINUTE + 5 * SECOND, "59 min", "59m"),
            (2 * HOUR + 5 * MINUTE, "2 h 5 min", "2h5m"),
            (DAY, "1 d", "24h"),
            (3 * DAY + 4 * HOUR + MINUTE, "3 d 4 h", "3d4h"),
            (-5, "0 s", "0s"),
        ] {
            assert_eq!((span(nanos).as_str(), short_span(nanos).as_str()), (long, short));
        }
    }

    #[test]
    fn the_ends_of_time_do_not_panic() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        for end in [i64::MIN, i64::MAX] {
            assert!(!rfc3339(end).is_empty() && !clock_time(end, 0).is_empty() && !age(end, 0).is_empty());
        }
    }
}
