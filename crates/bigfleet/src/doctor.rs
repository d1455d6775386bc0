//! `bigfleet doctor`: looks for what commonly goes wrong, and says what to do about it.

mod certificates;
mod local;
mod server;
mod truth;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use bigfleet_net::{Clock, SystemClock};
use serde::Serialize;

use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::output::{
    AnswerArgs, AnswerFormat, Story, Terminal, Tone, note, stdout, write_json_line, write_yaml,
};
use crate::reach::block_on;
use crate::words::count;

/// Check the configuration, ports, certificates, the clock, versions, the store and what providers say.
///
/// Nothing is changed. Ends with 1 if a problem was found; warnings alone end with 0.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet doctor
  bigfleet doctor --context prod
  bigfleet doctor --data /var/lib/bigfleet --json")]
pub(crate) struct Args {
    /// Also check the folder of a shard on this machine
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warning,
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Finding {
    check: &'static str,
    verdict: Verdict,
    says: String,
    /// What to do; empty if nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

impl Finding {
    fn ok(check: &'static str, says: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Ok, says: says.into(), remedy: String::new() }
    }

    fn warning(check: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Warning, says: says.into(), remedy: remedy.into() }
    }

    fn problem(check: &'static str, says: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Problem, says: says.into(), remedy: remedy.into() }
    }
}

/// Looks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let findings = block_on(async { Ok(examine(args).await) })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => story(&findings).write(&mut out, terminal.text_width(), terminal.paint)?,
        AnswerFormat::Json => findings.iter().try_for_each(|finding| write_json_line(&mut out, finding))?,
        AnswerFormat::Yaml => write_yaml(&mut out, &findings)?,
    }
    out.flush()?;
    let number = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count() as u64;
    let (problems, warnings) = (number(Verdict::Problem), number(Verdict::Warning));
    note(&format!("{}, {}", count(problems, "problem"), count(warnings, "warning")));
    Ok(if problems > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

async fn examine(args: &Args) -> Vec<Finding> {
    let now = SystemClock::start().now_unix_nanos();
    let target = match args.reach.target() {
        Ok(target) => target,
        Err(error) => {
            let remedy = "mend it; `bigfleet context list` and `bigfleet context set` help";
            return vec![Finding::problem("config", format!("{error:#}"), remedy)];
        }
    };
    let mut findings =
        vec![Finding::ok("config", format!("the server is {} ({})", target.server, target.source))];
    if let Some(files) = &target.tls {
        findings.extend(certificates::check(files, now));
    }
    findings.extend(server::check(&target).await);
    findings.push(local::ports(&target));
    if let Some(folder) = &args.data {
        findings.push(local::data(folder));
    }
    findings
}

fn story(findings: &[Finding]) -> Story {
    let mut story = Story::default();
    for finding in findings {
        let (mark, tone) = match finding.verdict {
            Verdict::Ok => ("ok", Tone::Plain),
            Verdict::Warning => ("warning", Tone::Warn),
            Verdict::Problem => ("PROBLEM", Tone::Bad),
        };
        let text = match finding.verdict {
            Verdict::Ok => finding.says.clone(),
            _ => format!("{mark}: {}", finding.says),
        };
        story.say_toned(finding.check, text, tone);
        if !finding.remedy.is_empty() {
            story.say(finding.check, format!("-> {}", finding.remedy));
        }
    }
    story
}
