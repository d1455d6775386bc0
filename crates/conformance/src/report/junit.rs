//! For build servers: one suite per group, in the dialect they all read.

use std::fmt::Write;
use std::time::Duration;

use crate::behaviour::Group;
use crate::report::{CheckResult, Outcome, Report, printable};

/// The report as `JUnit` XML.
pub fn junit(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&CheckResult> = report.results.iter().collect();
    let _ = writeln!(out, "<testsuites name=\"bigfleet-conformance\" {}>", counts(&all, report.took));
    for group in Group::ALL {
        let results: Vec<&CheckResult> = report.of(group).collect();
        if results.is_empty() {
            continue;
        }
        let took = results.iter().map(|result| result.took).sum();
        let _ = writeln!(out, "  <testsuite name=\"{group}\" {}>", counts(&results, took));
        for result in results {
            case(result, &mut out);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts(results: &[&CheckResult], took: Duration) -> String {
    let count = |name: &str| results.iter().filter(|result| result.outcome.name() == name).count();
    let (tests, failures, skipped) = (results.len(), count("failed"), count("skipped"));
    format!(
        "tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\"",
        took.as_secs_f64()
    )
}

fn case(result: &CheckResult, out: &mut String) {
    let behaviour = &result.behaviour;
    let name = escaped(&format!("{} {}", behaviour.id, behaviour.title));
    let seconds = result.took.as_secs_f64();
    let _ =
        write!(out, "    <testcase classname=\"{}\" name=\"{name}\" time=\"{seconds:.3}\"", behaviour.group);
    match &result.outcome {
        Outcome::Passed => out.push_str("/>\n"),
        Outcome::Skipped(reason) => {
            let _ = writeln!(out, "><skipped message=\"{}\"/></testcase>", escaped(reason));
        }
        Outcome::Failed(failure) => {
            let message = escaped(&format!("expected: {}; got: {}", failure.expected, failure.got));
            let text = format!(
                "expected: {}\ngot: {}\nit means: {}\ncontract: {}\ncalls:\n  {}\ntry again: {}\n",
                failure.expected,
                failure.got,
                behaviour.failure_means,
                behaviour.contract,
                failure.calls.join("\n  "),
                failure.reproduce
            );
            let _ = writeln!(out, "><failure message=\"{message}\">{}</failure></testcase>", escaped(&text));
        }
    }
}

fn escaped(text: &str) -> String {
    let text = printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_xml_holds_nothing_a_reader_refuses() {
        let xml = junit(&crate::report::tests::sample());
        assert!(
            xml.contains("tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\" time=\"2.000\""),
            "{xml}"
        );
        assert!(xml.contains("INTERNAL: &lt;bang&gt; &amp; \\u{1b}[31m"), "{xml}");
        assert!(xml.contains("<skipped message=\"no &quot;machines&quot;\"/>"), "{xml}");
        assert!(xml.chars().all(|c| c == '\n' || !c.is_control()), "{xml}");
    }
}
