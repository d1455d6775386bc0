//! Laws of quantities, over random texts, over a saved corpus, and over mutations of that corpus.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::path::Path;

use bigfleet_model::quantity::Quantity;
use proptest::prelude::*;

#[path = "quantity_laws/check.rs"]
mod check;

const SUFFIXES: [&str; 16] =
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Texts in the grammar, of ordinary and of absurd length.
fn spelling() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        4 => "[0-9]{1,6}(\\.[0-9]{0,4})?",
        2 => "[0-9]{1,22}(\\.[0-9]{0,22})?",
        1 => "\\.[0-9]{1,80}",
        1 => "[0-9]{1,60}(\\.[0-9]{0,80})?",
    ];
    let suffix = prop_oneof![
        4 => proptest::sample::select(&SUFFIXES[..]).prop_map(str::to_owned),
        1 => "[eE][+-]?[0-9]{1,2}",
    ];
    ("[+-]?", number, suffix).prop_map(|(sign, number, suffix)| sign + &number + &suffix)
}

/// Texts made of the letters of the grammar, mostly not in it.
fn near_miss() -> impl Strategy<Value = String> {
    "[-+.0-9eEinumkKMGTP ]{0,12}"
}

/// A number of thousandths as a binary quantity: a 1024th of it, written out, in Ki.
fn in_kibi(milli: i64) -> String {
    // 1/1024 has ten decimal places, so milli/1000/1024 has thirteen at most.
    let places = i128::from(milli) * (10_i128.pow(13) / 1_024_000);
    let sign = if milli < 0 { "-" } else { "" };
    let places = places.unsigned_abs();
    format!("{sign}{}.{:013}Ki", places / 10_u128.pow(13), places % 10_u128.pow(13))
}

/// A decimal number doubled that many times on paper, digit by digit, which is slow and has nothing in common
/// with the reader.
fn doubled(digits: &str, times: u32) -> String {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let mut number: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    for _ in 0..times {
        let mut carry = 0;
        for digit in number.iter_mut().rev() {
            let sum = *digit * 2 + carry;
            *digit = sum % 10;
            carry = sum / 10;
        }
        if carry > 0 {
            number.insert(0, carry);
        }
    }
    let point = number.len() - fraction.len();
    let text: String = number.into_iter().map(|digit| char::from(b'0' + digit)).collect();
    format!("{}.{}", &text[..point], &text[point..])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn texts_in_the_grammar_obey_the_laws(text in spelling()) {
        check::check(text.as_bytes());
    }

    #[test]
    fn texts_near_the_grammar_obey_the_laws(text in near_miss()) {
        check::check(text.as_bytes());
    }

    #[test]
    fn any_text_obeys_the_laws(text in any::<String>()) {
        check::check(text.as_bytes());
    }

    #[test]
    fn any_bytes_obey_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        check::check(&bytes);
    }

    #[test]
    fn order_equality_and_hash_are_by_value(a in any::<i32>(), near in -2_i64..=2, far in any::<i64>()) {
        // The same two values in every family; i32 thousandths keep the binary spelling exact and in range.
        let a = i64::from(a);
        let spellings = |milli: i64| [
            format!("{milli}m"),
            format!("{milli}e-3"),
            format!("{milli}000u"),
            in_kibi(milli),
        ].map(|text| Quantity::parse(&text).unwrap());
        for b in [a + near, far % (1 << 40)] {
            for (left, right) in spellings(a).into_iter().flat_map(|left| spellings(b).map(|right| (left, right))) {
                prop_assert_eq!(left.cmp(&right), a.cmp(&b));
                prop_assert_eq!(left == right, a == b);
                prop_assert_eq!(left.is_negative(), a < 0);
                prop_assert_eq!(left.to_f64().total_cmp(&right.to_f64()), a.cmp(&b));
                let hasher = BuildHasherDefault::<DefaultHasher>::new();
                prop_assert_eq!(hasher.hash_one(left) == hasher.hash_one(right), a == b);
            }
        }
    }

    #[test]
    fn a_float_is_the_nearest_one(nanos in any::<i64>(), suffix in proptest::sample::select(&["n", "u", "m", ""][..])) {
        let exponent = match suffix { "n" => -9, "u" => -6, "m" => -3, _ => 0 };
        let quantity = Quantity::parse(&format!("{nanos}{suffix}"));
        prop_assume!(quantity.is_ok());
        prop_assert_eq!(quantity.unwrap().to_f64(), format!("{nanos}e{exponent}").parse::<f64>().unwrap());
    }

    #[test]
    fn a_binary_suffix_is_repeated_doubling(number in "[0-9]{1,12}(\\.[0-9]{1,75})?", step in 1_usize..=6) {
        let written = format!("{number}{}", SUFFIXES[9 + step]);
        let long_hand = doubled(&number, 10 * step as u32);
        prop_assert_eq!(Quantity::parse(&written).ok(), Quantity::parse(&long_hand).ok());
    }

    #[test]
    fn an_exponent_moves_the_point(whole in "[0-9]{1,12}", fraction in "[0-9]{0,40}", shift in 0_usize..40) {
        let digits = format!("{whole}{fraction}{}", "0".repeat(40));
        let (moved_whole, moved_fraction) = digits.split_at(whole.len() + shift);
        let right = Quantity::parse(&format!("{whole}.{fraction}e{shift}"));
        prop_assert_eq!(right.ok(), Quantity::parse(&format!("{moved_whole}.{moved_fraction}")).ok());

        let padded = format!("{}{whole}", "0".repeat(40));
        let (moved_whole, moved_fraction) = padded.split_at(padded.len() - shift);
        let left = Quantity::parse(&format!("{whole}.{fraction}e-{shift}"));
        prop_assert_eq!(left.ok(), Quantity::parse(&format!("{moved_whole}.{moved_fraction}{fraction}")).ok());
    }
}

/// The saved inputs, in the order of their names.
fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/quantity");
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

#[test]
fn the_saved_corpus_obeys_the_laws() {
    let corpus = corpus();
    assert!(corpus.len() >= 60, "only {} saved inputs", corpus.len());
    for bytes in &corpus {
        check::check(bytes);
    }
}

/// A small fuzzer without coverage: the same inputs on every machine and in every run.
#[test]
fn mutations_of_the_saved_corpus_obey_the_laws() {
    const ROUNDS: usize = 400_000;
    const LETTERS: &[u8] = b"0123456789+-.eEinumkKMGTP \xff";
    let corpus = corpus();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut read = 0;
    for _ in 0..ROUNDS {
        let mut bytes = corpus[below(corpus.len())].clone();
        bytes.truncate(256);
        for _ in 0..=below(3) {
            let at = below(bytes.len() + 1);
            match below(5) {
                0 => bytes.insert(at, LETTERS[below(LETTERS.len())]),
                1 if at < bytes.len() => bytes[at] = LETTERS[below(LETTERS.len())],
                2 if at < bytes.len() => {
                    bytes.remove(at);
                }
                3 => bytes.truncate(at),
                4 => bytes.extend_from_slice(&corpus[below(corpus.len())]),
                _ => {}
            }
            bytes.truncate(256);
        }
        check::check(&bytes);
        read += usize::from(Quantity::parse_bytes(&bytes).is_ok());
    }
    assert!(read > ROUNDS / 10, "only {read} of {ROUNDS} mutations were quantities");
}
