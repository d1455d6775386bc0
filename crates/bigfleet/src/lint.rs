//! `bigfleet lint`: what is wrong or doubtful in policies, needs, offers and providers.

use std::io::Write;
use std::process::ExitCode;

use bigfleet_tell::words::count;
use bigfleet_tell::{Shown, Story, Tone, sentence};
use bigfleet_view::lint::RULES;
use bigfleet_view::v1::{Finding, LintAnswer, LintRequest, Severity};

use crate::at::At;
use crate::context::Reach;
use crate::exit::{FOUND, Failure};
use crate::output::{AnswerArgs, AnswerFormat, Terminal, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Look for what is wrong or doubtful in needs, policies, offers and providers.
///
/// Every rule has a stable code, a section in docs/lints.md and a fix. Ends with 1 if there are errors, or with --strict if
/// there is anything.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet lint
  bigfleet lint --code BF104,BF105
  bigfleet lint --strict --json
  bigfleet lint --rules")]
pub(crate) struct Args {
    /// Only these rules
    #[arg(long, value_name = "CODES", value_delimiter = ',')]
    code: Vec<String>,
    /// Warnings end with 1 too
    #[arg(long)]
    strict: bool,
    /// List the rules there are, and ask nobody
    #[arg(long)]
    rules: bool,
    /// As it was: a cycle (1842), a time (14:02) or how long ago (10m)
    #[arg(long, value_name = "CYCLE|TIME")]
    at: Option<At>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Asks and prints.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    if args.rules {
        for rule in RULES {
            let grade = if rule.is_error { "error" } else { "warning" };
            writeln!(out, "{}  {grade:<7}  {}", rule.code, rule.title)?;
        }
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (answer, target) = block_on(async {
        let shard = Shard::new(&args.reach)?;
        let at = match &args.at {
            Some(at) => Some(at.moment(shard.version().await?.now_unix_nanos)),
            None => None,
        };
        let request = LintRequest { at, codes: args.code.clone() };
        let answer = shard.ask(|mut client| async move { client.lint(request).await }).await?;
        Ok((answer, shard.target.to_string()))
    })?;
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&answer).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            note(&format!("bigfleet lint --rules lists the rules, docs/lints.md explains them; {target}"));
        }
        format => write_data(&mut out, &Shown::new("LintAnswer", &answer), format, &terminal)?,
    }
    out.flush()?;
    let found = if args.strict { answer.findings.len() } else { errors(&answer) };
    Ok(if found > 0 { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

fn errors(answer: &LintAnswer) -> usize {
    answer.findings.iter().filter(|finding| finding.severity() == Severity::Error).count()
}

fn story(answer: &LintAnswer) -> Story {
    let mut story = Story::default();
    let (errors, all) = (errors(answer), answer.findings.len());
    let mark = sentence::simulated(answer.as_of.as_ref());
    let (errors, warnings) = (count(errors as u64, "error"), count((all - errors) as u64, "warning"));
    let seen =
        format!("{} and {}", count(answer.needs.into(), "need"), count(answer.machines.into(), "machine"));
    let tone = if all == 0 { Tone::Good } else { Tone::Warn };
    story.heading(format!("{errors}, {warnings} in {seen}.{mark}"), tone);
    for finding in &answer.findings {
        one(&mut story, finding);
    }
    story
}

fn one(story: &mut Story, finding: &Finding) {
    let (grade, tone) = match finding.severity() {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning | Severity::Unspecified => ("warning", Tone::Warn),
    };
    let more =
        if finding.times > 1 { format!(" (and {} like it)", finding.times - 1) } else { String::new() };
    story.heading(format!("{} {grade}: {} {}{more}", finding.code, finding.about, finding.subject), tone);
    story.say("found", finding.found.clone());
    story.say("fix", finding.fix.clone());
}
