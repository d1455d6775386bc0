//! Quantities against two tables of spellings: what we read, and what we refuse.
//!
//! The expected numbers were computed elsewhere, with exact rational arithmetic, so a fault here and in the
//! code under test would have to be the same fault twice.

use bigfleet_model::quantity::{Quantity, QuantityError, parse_milli_ceil, parse_units_ceil};

const ACCEPTED: &str = include_str!("data/quantity_accepted.tsv");
const REJECTED: &str = include_str!("data/quantity_rejected.tsv");

/// The rows of a table, split into `N` columns; comments begin with `# `, which no quantity does.
fn rows<const N: usize>(table: &str) -> Vec<[&str; N]> {
    table
        .lines()
        .filter(|line| !line.starts_with("# "))
        .map(|line| {
            let columns: Vec<&str> = line.split('\t').collect();
            columns.try_into().unwrap_or_else(|_| panic!("{line:?} does not have {N} columns"))
        })
        .collect()
}

fn kind(error: &QuantityError) -> &'static str {
    match error {
        QuantityError::Empty => "empty",
        QuantityError::NotUtf8 { .. } => "not-utf8",
        QuantityError::NoNumber { .. } => "no-number",
        QuantityError::UnknownSuffix { .. } => "unknown-suffix",
        QuantityError::BadExponent { .. } => "bad-exponent",
        QuantityError::ExponentOutOfRange { .. } => "exponent-out-of-range",
        QuantityError::TooLarge { .. } => "too-large",
        QuantityError::Negative { .. } => "negative",
    }
}

/// An amount as the table writes it.
fn amount(result: Result<u64, QuantityError>) -> String {
    match result {
        Ok(amount) => amount.to_string(),
        Err(error) => kind(&error).to_owned(),
    }
}

/// The bytes that a spelling with escapes stands for.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend(plain.as_bytes());
        let used = match escape.as_bytes()[0] {
            b'x' => {
                bytes.push(u8::from_str_radix(&escape[1..3], 16).unwrap());
                3
            }
            b'u' => {
                let end = escape.find('}').unwrap();
                let character = char::from_u32(u32::from_str_radix(&escape[2..end], 16).unwrap()).unwrap();
                bytes.extend(character.encode_utf8(&mut [0; 4]).as_bytes());
                end + 1
            }
            short => {
                let at = b"tnr0\\".iter().position(|letter| *letter == short).unwrap();
                bytes.push(b"\t\n\r\0\\"[at]);
                1
            }
        };
        rest = &escape[used..];
    }
    bytes.extend(rest.as_bytes());
    bytes
}

#[test]
fn the_tables_are_large_enough_to_mean_something() {
    assert!(rows::<5>(ACCEPTED).len() >= 400);
    assert!(rows::<2>(REJECTED).len() >= 200);
    for expected in
        ["empty", "not-utf8", "no-number", "unknown-suffix", "bad-exponent", "exponent-out-of-range"]
    {
        assert!(rows::<2>(REJECTED).iter().any(|[_, kind]| *kind == expected), "no row for {expected}");
    }
}

#[test]
fn accepted_spellings_have_the_value_and_the_print_of_the_table() {
    for [text, nanos, print, milli, units] in rows(ACCEPTED) {
        let quantity = Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        // Read off the fields, because reading the expected number with the code under test proves little.
        assert!(
            format!("{quantity:?}").contains(&format!(" nanos: {nanos},")),
            "value of {text}: {quantity:?}"
        );
        assert_eq!(quantity.to_string(), print, "print of {text}");
        assert_eq!(amount(quantity.to_milli_ceil()), milli, "thousandths of {text}");
        assert_eq!(amount(quantity.to_units_ceil()), units, "units of {text}");
        assert_eq!(amount(parse_milli_ceil(text)), milli, "thousandths of {text}, read directly");
        assert_eq!(amount(parse_units_ceil(text)), units, "units of {text}, read directly");
        assert_eq!(quantity.is_zero(), nanos == "0", "{text}");
        assert_eq!(quantity.is_negative(), nanos.starts_with('-'), "{text}");
        let float: f64 = format!("{nanos}e-9").parse().unwrap();
        assert_eq!(quantity.to_f64(), float, "float of {text}");
    }
}

#[test]
fn order_of_the_accepted_spellings_is_the_order_of_their_values() {
    let mut table: Vec<(i128, Quantity)> = rows::<5>(ACCEPTED)
        .iter()
        .map(|[text, nanos, ..]| (nanos.parse().unwrap(), text.parse().unwrap()))
        .collect();
    table.sort_by_key(|(nanos, _)| *nanos);
    for pair in table.windows(2) {
        assert_eq!(
            pair[0].1.cmp(&pair[1].1),
            pair[0].0.cmp(&pair[1].0),
            "{} against {}",
            pair[0].1,
            pair[1].1
        );
    }
}

#[test]
fn rejected_spellings_are_refused_for_the_reason_in_the_table() {
    for [escaped, expected] in rows(REJECTED) {
        let bytes = unescaped(escaped);
        let error = match Quantity::parse_bytes(&bytes) {
            Err(error) => error,
            Ok(quantity) => panic!("{escaped:?} was read as {quantity}"),
        };
        assert_eq!(kind(&error), expected, "{escaped:?}: {error}");
        if let Ok(text) = std::str::from_utf8(&bytes) {
            assert_eq!(Quantity::parse(text).as_ref(), Err(&error), "{escaped:?}");
            assert_eq!(parse_milli_ceil(text).as_ref(), Err(&error), "{escaped:?}");
            assert_eq!(parse_units_ceil(text).as_ref(), Err(&error), "{escaped:?}");
        }
    }
}

#[test]
fn messages_name_the_text_and_the_remedy() {
    let message = |text: &str| parse_milli_ceil(text).unwrap_err().to_string();
    assert_eq!(message(""), r#"quantity "" is empty; use forms like 500m, 2, 1.5Gi"#);
    assert_eq!(
        message(" 1"),
        r#"quantity " 1" does not begin with a number; use forms like 500m, 2, 1.5Gi, without spaces"#
    );
    assert_eq!(
        message("1KB"),
        r#"quantity "1KB" ends in "KB", which is no suffix; use n u m k M G T P E, Ki Mi Gi Ti Pi Ei, an exponent like e3, or nothing"#
    );
    assert_eq!(
        message("1e+"),
        r#"quantity "1e+" has a malformed exponent; write a whole number behind the e, like 1e3 or 5e-3"#
    );
    assert_eq!(
        message("1e4294967297"),
        r#"quantity "1e4294967297" has an exponent out of range; use forms like 500m, 2, 1.5Gi"#
    );
    assert_eq!(message("9Ei"), r#"quantity "9Ei" is beyond 2^63-1 units; ask for less"#);
    assert_eq!(message("7Ei"), r#"quantity "7Ei" is beyond 2^63-1 thousandths; ask for less"#);
    assert_eq!(message("-1"), r#"quantity "-1" is negative; an amount is zero or more"#);
    assert_eq!(message("1\u{1b}[31m").matches('\u{1b}').count(), 0);
    assert_eq!(
        Quantity::parse_bytes(b"5\xff").unwrap_err().to_string(),
        r#"quantity "5\xff" is not UTF-8; use forms like 500m, 2, 1.5Gi"#
    );
}

#[test]
fn megabytes_cost_no_more_than_looking_at_them() {
    let mega = 1 << 20;
    let zeros = "0".repeat(mega);
    let nines = "9".repeat(mega);
    let one: Quantity = "1".parse().unwrap();
    let billionth: Quantity = "1n".parse().unwrap();

    assert_eq!(Quantity::parse(&format!("{zeros}1")), Ok(one));
    assert_eq!(Quantity::parse(&format!("1.{zeros}")), Ok(one));
    assert_eq!(Quantity::parse(&format!("1e{zeros}")), Ok(one));
    assert_eq!(Quantity::parse(&format!("0.{zeros}1")), Ok(billionth));
    assert_eq!(Quantity::parse(&format!("0.{zeros}1Ei")), Ok(billionth));
    assert_eq!(Quantity::parse(&format!("0.{zeros}1e{}", mega + 1)), Ok(one));
    assert_eq!(Quantity::parse(&format!("1{zeros}e-{mega}")), Ok(one));
    assert_eq!(Quantity::parse(&format!("0.{nines}")), Ok(one));
    assert_eq!(Quantity::parse(&format!("1.{nines}Ki")), Ok("2Ki".parse().unwrap()));
    for (text, expected) in [
        (nines.clone(), "too-large"),
        (format!("{nines}Ei"), "too-large"),
        (format!("1e{nines}"), "exponent-out-of-range"),
        (format!("1e-{nines}"), "exponent-out-of-range"),
        (format!("1{}", "K".repeat(mega)), "unknown-suffix"),
        ("\u{1f600}".repeat(mega), "no-number"),
        (" ".repeat(mega), "no-number"),
    ] {
        let error = Quantity::parse(&text).unwrap_err();
        assert_eq!(kind(&error), expected);
        assert!(error.to_string().len() < 2_000);
        assert_eq!(parse_units_ceil(&text), Err(error));
    }
    let noise = vec![0xff; mega];
    assert!(Quantity::parse_bytes(&noise).unwrap_err().to_string().len() < 2_000);
}

#[test]
fn quantities_built_from_amounts_are_those_amounts() {
    assert_eq!(Quantity::from_milli(1_500), "1.5".parse().unwrap());
    assert_eq!(Quantity::from_milli(u64::MAX).to_string(), "18446744073709551615m");
    assert_eq!(Quantity::from_units(2_000).to_string(), "2k");
    assert_eq!(Quantity::from_units(u64::MAX), Quantity::MAX);
    assert_eq!(Quantity::MAX.to_units_ceil(), Ok(i64::MAX as u64));
    assert!(Quantity::ZERO.is_zero());
}

#[test]
fn print_respects_width() {
    let quantity: Quantity = "0.5Gi".parse().unwrap();
    assert_eq!(format!("[{quantity:>8}] [{quantity:<6}]"), "[   512Mi] [512Mi ]");
}
