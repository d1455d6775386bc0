//! For programs. Fields are added, never renamed; `format` says which set it is.

use serde_json::{Value, json};

use crate::report::{CheckResult, Outcome, Report};

/// The report as JSON.
pub fn json(report: &Report) -> Value {
    json!({
        "format": "bigfleet-conformance/1",
        "address": report.address,
        // As text: many readers would round a number of this size.
        "seed": report.seed.to_string(),
        "seconds": report.took.as_secs_f64(),
        "passed": report.count("passed"),
        "failed": report.count("failed"),
        "skipped": report.count("skipped"),
        "results": report.results.iter().map(result).collect::<Vec<_>>(),
    })
}

fn result(result: &CheckResult) -> Value {
    let behaviour = &result.behaviour;
    let mut value = json!({
        "id": behaviour.id,
        "group": behaviour.group.name(),
        "level": behaviour.level.name(),
        "title": behaviour.title,
        "contract": behaviour.contract,
        "outcome": result.outcome.name(),
        "seconds": result.took.as_secs_f64(),
        "notes": result.notes,
        "latencies": result.latencies.iter().map(|latency| json!({
            "what": latency.what,
            "count": latency.count,
            "p50_ms": latency.p50.as_secs_f64() * 1000.0,
            "p90_ms": latency.p90.as_secs_f64() * 1000.0,
            "p99_ms": latency.p99.as_secs_f64() * 1000.0,
            "max_ms": latency.max.as_secs_f64() * 1000.0,
        })).collect::<Vec<_>>(),
    });
    match &result.outcome {
        Outcome::Passed => {}
        Outcome::Skipped(reason) => value["reason"] = json!(reason),
        Outcome::Failed(failure) => {
            value["expected"] = json!(failure.expected);
            value["got"] = json!(failure.got);
            value["means"] = json!(behaviour.failure_means);
            value["calls"] = json!(failure.calls);
            value["reproduce"] = json!(failure.reproduce);
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_has_its_fields() {
        let value = json(&crate::report::tests::sample());
        assert_eq!([&value["passed"], &value["failed"], &value["skipped"]], [1, 1, 1]);
        assert_eq!(value["seed"], "7");
        assert_eq!(value["results"][1]["got"], "INTERNAL: <bang> & \u{1b}[31m");
        assert_eq!(value["results"][2]["reason"], "no \"machines\"");
        assert_eq!(value["results"][0]["latencies"][0]["p99_ms"], 2.0);
    }
}
