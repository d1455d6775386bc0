//! What went wrong between us and a server, why, and what to do about it.

use std::error::Error;
use std::fmt;
use std::io;

use bigfleet_view::API_VERSION;
use bigfleet_view::v1::Version;
use tonic::{Code, Status};

use crate::context::{Source, Target};

/// A question that got no answer.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    what: String,
    hint: String,
}

/// Whose fault it is, as far as the exit code and tests care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nobody listens there, or nobody answers.
    Unreachable,
    /// The two do not believe each other's certificates, or one speaks TLS and the other does not.
    Tls,
    /// The server knows us and says no.
    Role,
    /// The server is older or newer than we are, or no shard.
    Version,
    /// The question names something that is not there or makes no sense.
    Question,
    /// The server failed.
    Server,
}

impl Trouble {
    /// 2 if the question was at fault, else 3.
    pub(crate) fn exit_code(&self) -> u8 {
        if self.kind == Kind::Question { 2 } else { 3 }
    }

    fn new(kind: Kind, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, what: what.into(), hint: hint.into() }
    }

    /// Reads a failed call.
    pub(crate) fn of(status: &Status, target: &Target) -> Self {
        let said = status.message();
        let server = &target.server;
        match status.code() {
            Code::NotFound | Code::InvalidArgument | Code::OutOfRange | Code::FailedPrecondition => {
                Self::new(Kind::Question, said, "")
            }
            Code::PermissionDenied | Code::Unauthenticated => Self::new(
                Kind::Role,
                format!("{server} refuses this: {said}"),
                format!(
                    "use a certificate with the role it asks for ({}); `bigfleet doctor` shows which role yours has",
                    match &target.tls {
                        Some(files) => format!("now {}", files.cert.display()),
                        None => "now none".into(),
                    }
                ),
            ),
            Code::Unimplemented => Self::unknown_question(status, None, target),
            Code::DeadlineExceeded => Self::new(
                Kind::Unreachable,
                format!("{server} ({}) took the call and did not answer: {said}", target.source),
                "the server is stuck or the network drops packets; look at its /readyz",
            ),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled => {
                Self::connection(status, target)
            }
            code => Self::new(
                Kind::Server,
                format!("{server} failed: {said} ({code})"),
                "look at the server's log",
            ),
        }
    }

    /// The server does not know the method; `version` is what it says it is, if it says.
    pub(crate) fn unknown_question(status: &Status, version: Option<&Version>, target: &Target) -> Self {
        let server = &target.server;
        let ours = env!("CARGO_PKG_VERSION");
        match version {
            Some(theirs) if theirs.api_version != API_VERSION => Self::new(
                Kind::Version,
                format!(
                    "{server} runs bigfleet {} and speaks view {}; this is bigfleet {ours} and speaks view {API_VERSION}",
                    theirs.server_version, theirs.api_version
                ),
                format!("use the bigfleet {} program with it", theirs.server_version),
            ),
            Some(theirs) => Self::new(
                Kind::Version,
                format!(
                    "{server} runs bigfleet {}, which cannot answer this yet; this is bigfleet {ours}",
                    theirs.server_version
                ),
                "upgrade the server, or use the program of its version",
            ),
            None => Self::new(
                Kind::Version,
                format!(
                    "{server} ({}) speaks gRPC, but not view {API_VERSION}: {}",
                    target.source,
                    status.message()
                ),
                "is it the port of a shard, and not of a provider? if it is a shard, it is much older or newer than this program",
            ),
        }
    }

    fn connection(status: &Status, target: &Target) -> Self {
        let causes = causes(status);
        let text = causes.join(": ");
        let server = &target.server;
        let has = |part: &str| text.contains(part);
        if let Some(alert) = causes.iter().find(|cause| cause.contains("fatal alert")) {
            let hint = match &target.tls {
                _ if alert.contains("CertificateRequired") => {
                    "it wants a certificate from us: give --tls-cert, --tls-key and --tls-ca".to_owned()
                }
                Some(files) => format!(
                    "it does not accept our certificate {}; was it issued by the CA the server believes, and is it still valid? `bigfleet doctor` checks",
                    files.cert.display()
                ),
                None => "give --tls-cert, --tls-key and --tls-ca".to_owned(),
            };
            return Self::new(Kind::Tls, format!("{server} ended the handshake: {alert}"), hint);
        }
        if let Some(rustls::Error::InvalidCertificate(why)) = tls_error(status) {
            use rustls::CertificateError as Bad;
            let hint = match why {
                Bad::UnknownIssuer => "it was not issued by the CA we believe; check --tls-ca",
                Bad::NotValidForName | Bad::NotValidForNameContext { .. } => {
                    "it is for another name; use an address that its certificate names"
                }
                Bad::Expired
                | Bad::ExpiredContext { .. }
                | Bad::NotValidYet
                | Bad::NotValidYetContext { .. } => {
                    "it has expired, or a clock is wrong; `bigfleet doctor` compares clocks"
                }
                _ => "check --tls-ca and the address",
            };
            let what = format!("the certificate of {server} is not to be believed: {why}");
            return Self::new(Kind::Tls, what, hint);
        }
        if has("InvalidContentType") || has("corrupt message") {
            return Self::new(
                Kind::Tls,
                format!("{server} does not speak TLS"),
                "leave the TLS flags (or the context's TLS files) away, or check the port",
            );
        }
        if refused(status) || has("onnection refused") {
            return Self::new(
                Kind::Unreachable,
                format!("nobody listens at {server} ({})", target.source),
                start(target),
            );
        }
        if has("dns error") || has("lookup") {
            return Self::new(
                Kind::Unreachable,
                format!("the name in {server} ({}) is not known: {}", target.source, last(&causes)),
                "check the address; `bigfleet context show` says where it comes from",
            );
        }
        // Somebody was there and hung up on what we said first. A refusal of our certificate may look like this too: the
        // alert that says so can be lost when the connection goes.
        let hung_up =
            ["h2 protocol error", "http2 error", "frame with invalid size", "closed", "broken pipe", "reset"];
        if hung_up.iter().any(|part| has(part)) {
            let hint = match &target.tls {
                None => {
                    "it may want TLS: give --tls-cert, --tls-key and --tls-ca, or a context that has them"
                        .into()
                }
                Some(files) => format!(
                    "perhaps it does not accept our certificate {}; `bigfleet doctor` checks it",
                    files.cert.display()
                ),
            };
            return Self::new(Kind::Tls, format!("{server} hung up: {}", last(&causes)), hint);
        }
        let kind = if status.code() == Code::Internal || status.code() == Code::Unknown {
            Kind::Server
        } else {
            Kind::Unreachable
        };
        Self::new(
            kind,
            format!("{server} ({}) did not answer: {text}", target.source),
            "`bigfleet doctor` looks closer",
        )
    }
}

/// How to get somebody to listen.
fn start(target: &Target) -> String {
    match &target.source {
        Source::Record => "is the record whole? `bigfleet record list` shows what can be read of it".into(),
        Source::Default => "start one with `bigfleet up`, or name another with --server or --context".into(),
        Source::Up(path) => format!(
            "that `bigfleet up` has ended without clearing up; start it again, or remove {}",
            path.display()
        ),
        Source::Context(name) => {
            format!("is the shard running? `bigfleet context show {name}` says what the context holds")
        }
        Source::Flag => "is the shard running, and is that its gRPC port?".into(),
    }
}

fn last(causes: &[String]) -> &str {
    causes.last().map_or("", String::as_str)
}

/// The message and what is behind it, outermost first, without repetitions.
fn causes(status: &Status) -> Vec<String> {
    let mut causes = vec![status.message().to_owned()];
    let mut at: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = at {
        let text = error.to_string();
        if !causes.iter().any(|known| known.contains(&text)) {
            causes.push(text);
        }
        at = error.source();
    }
    causes
}

/// What TLS had to say, if it was TLS.
fn tls_error(status: &Status) -> Option<&rustls::Error> {
    let mut at: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = at {
        let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let inner = inner.and_then(|inner| inner.downcast_ref::<rustls::Error>());
        if let Some(found) = inner.or_else(|| error.downcast_ref()) {
            return Some(found);
        }
        at = error.source();
    }
    None
}

fn refused(status: &Status) -> bool {
    let mut at: Option<&(dyn Error + 'static)> = status.source();
    while let Some(error) = at {
        if error
            .downcast_ref::<io::Error>()
            .is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
        {
            return true;
        }
        at = error.source();
    }
    false
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.hint) }
    }
}

impl Error for Trouble {}
