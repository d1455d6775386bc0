//! What must hold for any bytes offered as a quantity.
//!
//! One function, used by the property tests, by the saved corpus and by the fuzzer, so that a law added here is
//! checked everywhere.

use bigfleet_model::quantity::{Quantity, QuantityError, parse_milli_ceil, parse_units_ceil};

/// A sign, 28 digits of billionths, a suffix of three.
const LONGEST_PRINT: usize = 32;

/// Two quoted pieces of at most 80 characters, each at most ten when escaped, and our own words.
const LONGEST_MESSAGE: usize = 2_000;

/// Panics unless the bytes are read, or refused, by the laws.
pub(crate) fn check(bytes: &[u8]) {
    let result = Quantity::parse_bytes(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        assert!(matches!(result, Err(QuantityError::NotUtf8 { .. })), "{result:?}");
        return;
    };
    assert_eq!(result, Quantity::parse(text));
    assert_eq!(parse_milli_ceil(text), result.clone().and_then(|quantity| quantity.to_milli_ceil()));
    assert_eq!(parse_units_ceil(text), result.clone().and_then(|quantity| quantity.to_units_ceil()));
    assert_eq!(Quantity::parse(&padded(text)).ok(), result.clone().ok(), "leading zeros count for nothing");
    match result {
        Ok(quantity) => check_quantity(quantity),
        Err(error) => check_message(&error.to_string()),
    }
}

/// The same number with enough zeros before it that only the general evaluation takes it.
fn padded(text: &str) -> String {
    let at = usize::from(text.starts_with(['+', '-']));
    let (sign, number) = text.split_at(at);
    // Zeros must not make a number of what had none.
    if number.starts_with(|first: char| first.is_ascii_digit()) {
        format!("{sign}{}{number}", "0".repeat(40))
    } else {
        text.to_owned()
    }
}

fn check_message(message: &str) {
    assert!(message.len() < LONGEST_MESSAGE, "{message}");
    assert!(!message.contains(char::is_control), "{message:?}");
}

fn check_quantity(quantity: Quantity) {
    // The print is the same value, and settles: a binary quantity that has no binary suffix prints bare
    // digits, which read back as a decimal quantity (1.953125Ki is 2000 is 2k); after that nothing moves.
    let print = quantity.to_string();
    assert!(print.len() <= LONGEST_PRINT, "{print}");
    let again = Quantity::parse(&print).expect("what we print, we read");
    assert_eq!(again, quantity);
    let settled = again.to_string();
    let bare = print.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
    assert!(settled == print || bare, "{print} settles as {settled}");
    assert_eq!(Quantity::parse(&settled).expect("what we print, we read").to_string(), settled);

    check_ceil(quantity, quantity.to_milli_ceil(), Quantity::from_milli);
    check_ceil(quantity, quantity.to_units_ceil(), Quantity::from_units);

    let float = quantity.to_f64();
    assert!(float.is_finite());
    assert_eq!(float < 0.0, quantity.is_negative());
    assert_eq!(float == 0.0, quantity.is_zero());
}

/// The amount is the least that is not below the quantity.
fn check_ceil(quantity: Quantity, amount: Result<u64, QuantityError>, back: fn(u64) -> Quantity) {
    match amount {
        Ok(amount) => {
            assert!(i64::try_from(amount).is_ok());
            assert!(back(amount) >= quantity);
            assert!(amount == 0 || back(amount - 1) < quantity);
        }
        Err(QuantityError::Negative { .. }) => assert!(quantity < Quantity::ZERO),
        Err(QuantityError::TooLarge { .. }) => assert!(quantity > back(i64::MAX as u64)),
        Err(error) => panic!("{error}"),
    }
}
