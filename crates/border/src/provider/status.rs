//! What a provider's status codes mean. Only for providers: a coordinator means something else by the same codes.

use std::error::Error;

use bigfleet_proto::transport::code_name;
use bigfleet_shard::{CallError, CallErrorKind};
use tonic::{Code, Status, TimeoutExpired};

/// What to make of a call that failed.
pub fn meaning(status: &Status) -> CallError {
    let kind = match status.code() {
        Code::FailedPrecondition => CallErrorKind::Fenced,
        Code::NotFound => CallErrorKind::NotFound,
        Code::Unimplemented => CallErrorKind::NotSupported,
        Code::DeadlineExceeded => CallErrorKind::TimedOut,
        _ if caused_by::<TimeoutExpired>(status) => CallErrorKind::TimedOut,
        // It asked to be left alone for a while, or could not be reached.
        Code::Unavailable | Code::ResourceExhausted => CallErrorKind::Unavailable,
        _ if is_of_the_connection(status) => CallErrorKind::Unavailable,
        _ => CallErrorKind::Refused,
    };
    let text = match status.message() {
        "" => code_name(status.code()).to_owned(),
        message => format!("{}: {message}", code_name(status.code())),
    };
    CallError { kind, text: bounded(text) }
}

/// A provider may say anything, and at any length; it ends up in memory and in logs.
fn bounded(mut text: String) -> String {
    const MOST: usize = 1024;
    if text.len() > MOST {
        let end = (0..=MOST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    text
}

/// A status our own side made up because the connection broke carries the reason; one that was sent has none.
pub fn is_of_the_connection(status: &Status) -> bool {
    status.source().is_some()
}

/// Whether a call failed because its answer is larger than one of the two sides takes.
///
/// Our own side and servers like ours say `OUT_OF_RANGE`, which List has no other use for. Most others say
/// `RESOURCE_EXHAUSTED`, which also means "too many calls", so that their words must be looked at: those of gRPC for Go,
/// C++ and whatever is built on it, Java, and .NET.
pub fn is_too_large(status: &Status) -> bool {
    const WORDS: [&str; 3] =
        ["larger than max", "exceeds maximum size", "exceeds the maximum configured message size"];
    let text = status.message();
    match status.code() {
        Code::OutOfRange => true,
        Code::ResourceExhausted => WORDS.iter().any(|words| text.contains(words)),
        _ => false,
    }
}

fn caused_by<E: Error + 'static>(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<E>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_means_what_the_wire_says() {
        use CallErrorKind::{Fenced, NotFound, NotSupported, Refused, TimedOut, Unavailable};
        for number in 1..=16 {
            let code = Code::from_i32(number);
            let expected = match code {
                Code::FailedPrecondition => Fenced,
                Code::NotFound => NotFound,
                Code::Unimplemented => NotSupported,
                Code::DeadlineExceeded => TimedOut,
                Code::Unavailable | Code::ResourceExhausted => Unavailable,
                _ => Refused,
            };
            assert_eq!(meaning(&Status::new(code, "why")).kind, expected, "{code:?}");
        }
        assert_eq!(meaning(&Status::internal("stock is out")).text, "INTERNAL: stock is out");
        assert_eq!(meaning(&Status::internal("")).text, "INTERNAL");
    }

    #[test]
    fn what_our_own_side_makes_up_is_told_apart() {
        let timeout = Status::from_error(Box::new(TimeoutExpired(())));
        assert_eq!(meaning(&timeout).kind, CallErrorKind::TimedOut);
        let broken = Status::from_error(Box::new(std::io::Error::other("connection reset")));
        assert_eq!(meaning(&broken).kind, CallErrorKind::Unavailable);
    }

    #[test]
    fn an_answer_that_is_too_large_is_told_from_too_many_calls() {
        for (code, text, expected) in [
            (
                Code::OutOfRange,
                "Error, decoded message length too large: found 9 bytes, the limit is: 5 bytes",
                true,
            ),
            (Code::ResourceExhausted, "grpc: received message larger than max (9 vs. 5)", true),
            (Code::ResourceExhausted, "grpc: trying to send message larger than max (9 vs. 5)", true),
            (Code::ResourceExhausted, "Received message larger than max (9 vs. 5)", true),
            (Code::ResourceExhausted, "gRPC message exceeds maximum size 5: 9", true),
            (Code::ResourceExhausted, "Received message exceeds the maximum configured message size.", true),
            (Code::ResourceExhausted, "too many calls; come back in 2s", false),
            (Code::Internal, "message larger than max", false),
        ] {
            assert_eq!(is_too_large(&Status::new(code, text)), expected, "{text}");
        }
    }

    #[test]
    fn long_complaints_are_cut() {
        let text = meaning(&Status::internal("ä".repeat(5000))).text;
        assert!(text.len() < 1100 && text.ends_with('…'), "{}", text.len());
    }
}
