//! Our own certificate: does it fit together, is it valid, and who does it say we are.

use bigfleet_net::{Role, TlsFiles};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Finding;
use crate::words::{rfc3339, span};

const CHECK: &str = "certificate";
const DAY: i64 = 86_400_000_000_000;
/// Certificates that end sooner than this deserve a word.
const SOON_DAYS: i64 = 14;

/// Looks at the files.
pub(super) fn check(files: &TlsFiles, now_unix_nanos: i64) -> Vec<Finding> {
    if let Err(error) = files.client_config() {
        return vec![Finding::problem(CHECK, error.to_string(), "give files that belong together")];
    }
    let chain = CertificateDer::pem_file_iter(&files.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let Ok(chain) = chain else {
        let says = format!("{} cannot be read", files.cert.display());
        return vec![Finding::problem(CHECK, says, "check the file and its rights")];
    };
    let mut findings = Vec::new();
    if let Some(leaf) = chain.first() {
        findings.push(validity(leaf, files, now_unix_nanos));
    }
    findings.push(match Role::of(&chain) {
        Ok(role @ (Role::Admin | Role::ReadOnly)) => Finding::ok(CHECK, format!("we are {role}")),
        Ok(role) => Finding::warning(
            CHECK,
            format!("we are {role}, which opens no view"),
            "use a certificate with bigfleet://readonly or bigfleet://admin",
        ),
        Err(error) => Finding::problem(
            CHECK,
            error.to_string(),
            "issue one with bigfleet://readonly or bigfleet://admin",
        ),
    });
    findings
}

fn validity(leaf: &CertificateDer<'_>, files: &TlsFiles, now: i64) -> Finding {
    let path = files.cert.display();
    let Ok((_, certificate)) = X509Certificate::from_der(leaf) else {
        return Finding::problem(CHECK, format!("{path} holds no certificate we can read"), "issue it anew");
    };
    let nanos = |secs: i64| secs.saturating_mul(1_000_000_000);
    let begins = nanos(certificate.validity().not_before.timestamp());
    let ends = nanos(certificate.validity().not_after.timestamp());
    if now < begins {
        let says = format!("{path} is not valid before {}", rfc3339(begins));
        return Finding::problem(CHECK, says, "is this machine's clock right?");
    }
    if now >= ends {
        return Finding::problem(CHECK, format!("{path} expired at {}", rfc3339(ends)), "issue it anew");
    }
    let says = format!("{path} is valid until {} ({})", rfc3339(ends), span(ends - now));
    if ends - now < SOON_DAYS * DAY {
        return Finding::warning(CHECK, says, "renew it; running programs take the new file by themselves");
    }
    Finding::ok(CHECK, says)
}
