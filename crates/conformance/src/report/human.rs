//! For people: failures and skips in full, the rest in numbers.

use std::io::{self, Write};
use std::time::Duration;

use crate::behaviour::{Behaviour, Group};
use crate::report::{CheckResult, Outcome, Report, printable};

/// Writes the behaviours as a table.
pub fn list(behaviours: &[Behaviour], out: &mut dyn Write) -> io::Result<()> {
    for behaviour in behaviours {
        writeln!(out, "{:<11} {:<9} {}", behaviour.id, behaviour.level, behaviour.title)?;
    }
    Ok(())
}

/// Writes the report as text.
pub fn human(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for result in report.results.iter().filter(|result| !matches!(result.outcome, Outcome::Skipped(_))) {
        detail(result, out)?;
    }
    skips(report, out)?;
    latencies(report, out)?;
    writeln!(out, "{:<8} {:>7} {:>7} {:>8} {:>9}", "group", "passed", "failed", "skipped", "time")?;
    for group in Group::ALL {
        let results: Vec<&CheckResult> = report.of(group).collect();
        if results.is_empty() {
            continue;
        }
        let count = |name: &str| results.iter().filter(|result| result.outcome.name() == name).count();
        let took: Duration = results.iter().map(|result| result.took).sum();
        let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(count);
        writeln!(out, "{group:<8} {passed:>7} {failed:>7} {skipped:>8} {:>9}", seconds(took))?;
    }
    let [passed, failed, skipped] = ["passed", "failed", "skipped"].map(|name| report.count(name));
    writeln!(out, "{:<8} {passed:>7} {failed:>7} {skipped:>8} {:>9}", "all", seconds(report.took))?;
    writeln!(out, "\nprovider {}, seed {}", report.address, report.seed)
}

/// Skipped checks by the reason they share: twenty that need the same thing say it once.
fn skips(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for result in &report.results {
        let Outcome::Skipped(reason) = &result.outcome else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, ids)) => ids.push(result.behaviour.id),
            None => reasons.push((reason, vec![result.behaviour.id])),
        }
    }
    for (reason, ids) in reasons {
        writeln!(out, "SKIPPED {}", ids.join(", "))?;
        writeln!(out, "    {}\n", printable(reason))?;
    }
    Ok(())
}

/// Calls without the looks in between: a poll that was answered like the one before says nothing new.
fn without_polls(calls: &[String]) -> Vec<String> {
    let mut told: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match told.last_mut() {
            Some((last, times)) if *last == call => *times += 1,
            _ => told.push((call, 1)),
        }
    }
    let times = |(call, times): (&str, usize)| {
        if times > 1 { format!("{call}  ({times} times)") } else { call.to_owned() }
    };
    told.into_iter().map(times).collect()
}

fn detail(result: &CheckResult, out: &mut dyn Write) -> io::Result<()> {
    let behaviour = &result.behaviour;
    match &result.outcome {
        Outcome::Passed | Outcome::Skipped(_) => return Ok(()),
        Outcome::Failed(failure) => {
            writeln!(out, "FAILED  {} {}", behaviour.id, behaviour.title)?;
            writeln!(out, "    expected   {}", printable(&failure.expected))?;
            writeln!(out, "    got        {}", printable(&failure.got))?;
            writeln!(out, "    it means   {} (contract {})", behaviour.failure_means, behaviour.contract)?;
            for (index, call) in without_polls(&failure.calls).iter().enumerate() {
                writeln!(
                    out,
                    "    {} {}",
                    if index == 0 { "calls     " } else { "          " },
                    printable(call)
                )?;
            }
            writeln!(out, "    try again  {}", failure.reproduce)?;
        }
    }
    for note in &result.notes {
        writeln!(out, "    note       {}", printable(note))?;
    }
    writeln!(out)
}

fn latencies(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let measured: Vec<_> = report
        .results
        .iter()
        .flat_map(|result| result.latencies.iter().map(move |l| (result.behaviour.id, l)))
        .collect();
    if measured.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<11} {:<28} {:>7} {:>10} {:>10} {:>10} {:>10}",
        "measured", "what", "count", "p50", "p90", "p99", "max"
    )?;
    for (id, l) in measured {
        let [p50, p90, p99, max] = [l.p50, l.p90, l.p99, l.max].map(millis);
        writeln!(out, "{id:<11} {:<28} {:>7} {p50:>10} {p90:>10} {p99:>10} {max:>10}", l.what, l.count)?;
    }
    writeln!(out)
}

fn seconds(span: Duration) -> String {
    format!("{:.1} s", span.as_secs_f64())
}

fn millis(span: Duration) -> String {
    format!("{:.2} ms", span.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_that_says_the_same_again_is_counted() {
        let calls = ["Create a: OK", "Get a: CREATING", "Get a: CREATING", "Get a: IDLE"].map(String::from);
        assert_eq!(without_polls(&calls), ["Create a: OK", "Get a: CREATING  (2 times)", "Get a: IDLE"]);
    }

    #[test]
    fn failures_and_skips_are_told_in_full() {
        let mut out = Vec::new();
        human(&crate::report::tests::sample(), &mut out).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("FAILED  LIFE-002"), "{text}");
        assert!(text.contains("got        INTERNAL: <bang> & \\u{1b}[31m"), "{text}");
        assert!(text.contains("try again  bigfleet conform h:1 --only LIFE-002 --seed 7"), "{text}");
        assert!(text.contains("SKIPPED LIFE-003"), "{text}");
        assert!(!text.contains("LIFE-001 C"), "{text}");
        assert!(text.contains("LIFE           1       1        1     4.5 s"), "{text}");
        assert!(text.contains("2.00 ms"), "{text}");
    }
}
