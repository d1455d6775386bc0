//! The server: does it answer, does its version fit, do our clocks agree, what may we do there.

use bigfleet_net::Clock;
use bigfleet_view::API_VERSION;
use bigfleet_view::v1::Version;
use std::fmt::Write as _;

use super::{Finding, truth};
use crate::context::Target;
use crate::reach::Shard;
use crate::version::BUILD;
use crate::words::{clock_time, span, thousands};

/// A difference of clocks that is more than the time a call takes.
const SKEW_WARNING: i64 = 500_000_000;
const SKEW_PROBLEM: i64 = 5_000_000_000;

/// Looks at the server and, if it answers, at what it knows.
pub(super) async fn check(target: &Target) -> Vec<Finding> {
    let shard = match Shard::at(target.clone()) {
        Ok(shard) => shard,
        Err(failure) => {
            return vec![Finding::problem(
                "server",
                format!("{failure:?}"),
                "check the address and the TLS files",
            )];
        }
    };
    // The first call connects; the second one measures.
    if let Err(trouble) = shard.version().await {
        let text = trouble.to_string();
        let (says, remedy) = text.split_once("\n  ").unwrap_or((&text, ""));
        return vec![Finding::problem("server", says, remedy)];
    }
    let before = shard.clock().now_unix_nanos();
    let version = match shard.version().await {
        Ok(version) => version,
        Err(trouble) => return vec![Finding::problem("server", trouble.to_string(), "")],
    };
    let after = shard.clock().now_unix_nanos();
    let mut findings = vec![answers(&version), versions(&version), clocks(&version, before, after)];
    findings.push(record(&version));
    findings.extend(truth::check(&shard, version.simulated).await);
    findings
}

fn answers(version: &Version) -> Finding {
    let mut says = format!("shard {} answers, epoch {}", version.shard_id, version.epoch);
    if version.simulated {
        says.push_str(", its machines are SIMULATED");
    }
    match version.role.as_str() {
        "" => says.push_str("; no roles: everybody who reaches it may do everything"),
        role => {
            let _ = write!(says, "; our role is {role}");
        }
    }
    Finding::ok("server", says)
}

fn versions(version: &Version) -> Finding {
    let says = format!(
        "server {} (view {}), this program {} (view {API_VERSION})",
        version.server_version, version.api_version, BUILD.version
    );
    if version.api_version != API_VERSION {
        return Finding::problem(
            "versions",
            says,
            format!("use the bigfleet {} program", version.server_version),
        );
    }
    if version.server_version != BUILD.version {
        return Finding::warning(
            "versions",
            says,
            "they understand each other; new questions may go unanswered",
        );
    }
    Finding::ok("versions", says)
}

fn clocks(version: &Version, before: i64, after: i64) -> Finding {
    if version.simulated {
        // Simulated time may start anywhere and run faster.
        return Finding::ok("clock", "the server's time is simulated and not compared");
    }
    // The server read its clock somewhere between our two looks.
    let now = version.now_unix_nanos;
    let skew = if now < before { before - now } else { (now - after).max(0) };
    let says = format!("the server's clock differs from ours by {}", span(skew));
    match skew {
        0 => Finding::ok(
            "clock",
            format!("agrees with the server's within {} ms", (after - before) / 1_000_000 + 1),
        ),
        skew if skew < SKEW_WARNING => Finding::ok("clock", says),
        skew if skew < SKEW_PROBLEM => Finding::warning("clock", says, "let both machines keep time by NTP"),
        _ => Finding::problem(
            "clock",
            says,
            "let both machines keep time by NTP: certificates and ages depend on it",
        ),
    }
}

fn record(version: &Version) -> Finding {
    if !version.recording {
        let remedy =
            "start the shard with --data and recording on, or --at and replay will have nothing to look at";
        return Finding::warning("record", "the shard keeps no decision record", remedy);
    }
    let since = match version.oldest_unix_nanos {
        0 => String::new(),
        time => format!(" at {}", clock_time(time, version.now_unix_nanos)),
    };
    Finding::ok(
        "record",
        format!("decisions are kept since cycle {}{since}", thousands(version.oldest_cycle)),
    )
}
