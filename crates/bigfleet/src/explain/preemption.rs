//! `bigfleet explain preemption`.

use std::process::ExitCode;

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_view::v1::{ExplainPreemptionRequest, Preemption, PreemptionExplanation};

use super::{Common, decision};
use crate::exit::Failure;
use crate::output::{Story, Tone};
use crate::reach::Shard;
use crate::sentence;
use crate::words::{clock_time, count, fate, need_long, signed, span, state};

/// Who was preempted for whom, by which score, and how long the grace was.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet explain preemption
  bigfleet explain preemption aws-0031
  bigfleet explain preemption --need ml/train-7")]
pub(super) struct Args {
    /// A machine that was preempted; without it and --need, the newest of all
    #[arg(value_name = "MACHINE")]
    machine: Option<String>,
    /// A need that gained or lost by it
    #[arg(long, value_name = "NEED", conflicts_with = "machine")]
    need: Option<String>,
    /// At most so many, the newest
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

pub(super) async fn run(args: &Args) -> Result<ExitCode, Failure> {
    let shard = Shard::new(&args.common.reach)?;
    let request = ExplainPreemptionRequest {
        machine: args.machine.clone().unwrap_or_default(),
        need: args.need.clone().unwrap_or_default(),
        limit: args.limit,
    };
    let answer = shard.ask(|mut client| async move { client.explain_preemption(request).await }).await?;
    args.common.print("PreemptionExplanation", &answer, story)
}

fn story(answer: &PreemptionExplanation) -> Story {
    let mut story = Story::default();
    let now = answer.as_of.as_ref().map_or(0, sentence::seen_at);
    let mark = sentence::simulated(answer.as_of.as_ref());
    if answer.preemptions.is_empty() {
        story.heading(format!("No preemption is known.{mark}"), Tone::Good);
        story.say("look at", "bigfleet get decisions --kind preempt --all");
        return story;
    }
    let number = count(answer.preemptions.len() as u64, "preemption");
    story.heading(format!("{number}, the newest first.{mark}"), Tone::Head);
    for preemption in &answer.preemptions {
        one(&mut story, preemption, now);
    }
    story
}

fn one(story: &mut Story, preemption: &Preemption, now: i64) {
    let decision = preemption.decision.clone().unwrap_or_default();
    let time = clock_time(decision.unix_nanos, now);
    story.heading(format!("{} at {time}, cycle {}", decision.machine, decision.cycle), Tone::Warn);
    let victim = match &preemption.victim_need {
        Some(need) => need_long(need),
        None => format!("cluster {}", decision.cluster),
    };
    let victim_priority = preemption.score.as_ref().map(|score| score.victim_priority);
    let at = victim_priority
        .map(|priority| format!(" (priority {})", signed(priority.into())))
        .unwrap_or_default();
    story.say("taken from", format!("{victim}{at}"));
    if let Some(need) = &decision.need {
        story.say("for", format!("{} (priority {})", need_long(need), signed(decision.priority.into())));
    }
    story.say("rule", sentence::why(&decision));
    if let Some(score) = &preemption.score {
        decision::scores(story, score);
    }
    let grace = span(i64::from(decision.grace_secs) * 1_000_000_000);
    let left = match preemption.until_unix_nanos {
        time if time > now => format!(", {} left", span(time - now)),
        _ => String::new(),
    };
    story.say("grace", format!("{grace}{left}"));
    let place = match preemption.state() {
        MachineState::Unspecified => "the machine is gone".to_owned(),
        _ => format!("the machine is {}", state(preemption.state)),
    };
    let withheld = if sentence::withheld(&decision) {
        format!("; withheld: {}", fate(decision.fate))
    } else {
        String::new()
    };
    story.say("now", format!("{place}{withheld}"));
}
