//! Numbers, times and codes as people read them.

mod codes;
mod names;
mod time;

pub use codes::{capacity_type, fate, kind, kind_done, reason, state};
pub use names::{amounts, need, need_long, one_of, requirement, used, used_most};
pub use time::{age, clock_time, rfc3339, short_span, span, zoned};

/// `$4.56/h`. Small prices keep three figures that mean something.
pub fn hourly(usd: f64) -> String {
    format!("{}/h", usd_words(usd))
}

/// `$4.56`, `$0.121`, `$12,400`, `-$3.10`, or `pinned` for an amount without end.
pub fn usd_words(usd: f64) -> String {
    if usd.is_infinite() {
        return "pinned".into();
    }
    let sign = if usd < 0.0 { "-" } else { "" };
    let size = usd.abs();
    let text = match size {
        0.0 => "0".into(),
        s if s < 0.000_1 => format!("{s:.1e}"),
        s if s < 1.0 => trimmed(&format!("{s:.*}", three_figures(s)), 2),
        s if s < 1000.0 => format!("{s:.2}"),
        s => thousands(s.round() as u64),
    };
    format!("{sign}${text}")
}

/// How many places behind the point show three figures of a number below 1.
fn three_figures(size: f64) -> usize {
    (2 - size.log10().floor() as i32).max(2) as usize
}

/// The same with its sign, for differences.
pub fn usd_change(usd: f64) -> String {
    if usd > 0.0 { format!("+{}", usd_words(usd)) } else { usd_words(usd) }
}

/// A probability an hour: `0.0021/h`, `0`.
pub fn probability(value: f64) -> String {
    if value == 0.0 { "0".into() } else { format!("{}/h", trimmed(&format!("{value:.6}"), 1)) }
}

/// `500,000`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `900,000`, `-5`: priorities are signed.
pub fn signed(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", thousands(number.unsigned_abs()))
}

/// `1 machine`, `2,000 machines`, `2 passes`, `2 tries`.
pub fn count(number: u64, noun: &str) -> String {
    let many = match noun.strip_suffix('y') {
        _ if number == 1 => noun.to_owned(),
        Some(stem) => format!("{stem}ies"),
        None if noun.ends_with('s') => format!("{noun}es"),
        None => format!("{noun}s"),
    };
    format!("{} {many}", thousands(number))
}

/// Drops zeros at the end, but keeps `least` figures behind the point.
fn trimmed(text: &str, least: usize) -> String {
    let point = text.find('.').map_or(text.len(), |at| at + 1);
    let mut end = text.len();
    while end > point + least && text.as_bytes()[end - 1] == b'0' {
        end -= 1;
    }
    text[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_keeps_the_figures_that_mean_something() {
        for (usd, text) in [
            (0.0, "$0"),
            (4.556, "$4.56"),
            (0.121, "$0.121"),
            (0.38, "$0.38"),
            (0.1, "$0.10"),
            (0.0031, "$0.0031"),
            (0.022_166, "$0.0222"),
            (0.000_123_4, "$0.000123"),
            (0.122_05, "$0.122"),
            (0.000_01, "$1.0e-5"),
            (109.4, "$109.40"),
            (12_400.4, "$12,400"),
            (-3.1, "-$3.10"),
            (f64::INFINITY, "pinned"),
        ] {
            assert_eq!(usd_words(usd), text);
        }
        assert_eq!(
            (usd_change(1.0), usd_change(-1.0), usd_change(0.0)),
            ("+$1.00".into(), "-$1.00".into(), "$0".into())
        );
    }

    #[test]
    fn counts_and_probabilities() {
        assert_eq!(
            (thousands(0), thousands(999), thousands(500_000)),
            ("0".into(), "999".into(), "500,000".into())
        );
        assert_eq!(
            (signed(-5_000), signed(i64::MIN)),
            ("-5,000".into(), "-9,223,372,036,854,775,808".into())
        );
        assert_eq!(
            (count(1, "machine"), count(2, "machine"), count(3, "try")),
            ("1 machine".into(), "2 machines".into(), "3 tries".into())
        );
        assert_eq!(
            (probability(0.0), probability(0.0021), probability(0.5)),
            ("0".into(), "0.0021/h".into(), "0.5/h".into())
        );
    }
}
