//! `bigfleet observe`: what a fleet would do for a cluster that is not connected to it. Reads on both sides, and changes nothing.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use bigfleet_kube_common::Connection;
use bigfleet_net::Clock as _;
use bigfleet_proto::v1alpha1::CapacityNeed;
use bigfleet_tell::words::{count, hourly, usd_change};
use bigfleet_view::v1::edit::Edit as Change;
use bigfleet_view::v1::{AddNeed, Edit, WhatIfAnswer, WhatIfRequest};

use crate::assess::look;
use crate::context::Reach;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Shown, Story, Terminal, Tone, stdout, write_data};
use crate::reach::{Shard, block_on};
use crate::sentence;

/// Cycles that the changed fleet may settle for.
const CYCLES: u32 = 5;
/// Decisions told one by one.
const MOST_TOLD: usize = 10;

/// Say what a fleet would do for a cluster if it were connected now. Nothing is changed on either side.
///
/// Needs rights to list pods, nodes and priority classes in the cluster (deploy/kubernetes/assess.yaml), and to look at
/// the shard.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet observe --kubeconfig ~/.kube/config --server https://shard:7780
  bigfleet observe --all-pods --every 1m")]
pub(crate) struct Args {
    /// The name it would have
    #[arg(long, value_name = "NAME", default_value = "observed")]
    cluster: String,
    /// The cluster's API server, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<std::path::PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME")]
    kube_context: Option<String>,
    /// Ask also for pods that run on nodes the cluster has
    #[arg(long)]
    all_pods: bool,
    /// Look again this often, and tell when the answer is another; without it, once
    #[arg(long, value_name = "SPAN", value_parser = crate::at::nanos)]
    every: Option<i64>,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// Looks and tells.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    block_on(async {
        let connection =
            Connection { kubeconfig: args.kubeconfig.clone(), context: args.kube_context.clone() };
        let client = connection.client().await.map_err(anyhow::Error::from)?;
        let shard = Shard::new(&args.reach)?;
        let mut last = None;
        loop {
            let looked = look::look(&client).await.map_err(anyhow::Error::from)?;
            let needs = if args.all_pods { looked.with_all } else { looked.as_it_is };
            let edits = needs.iter().map(|need| Edit {
                edit: Some(Change::AddNeed(AddNeed {
                    cluster: args.cluster.clone(),
                    need: Some(CapacityNeed::from(need)),
                })),
            });
            let request =
                WhatIfRequest { edits: edits.collect(), cycles: CYCLES, ..WhatIfRequest::default() };
            let mut answer = shard.ask(|mut client| async move { client.what_if(request).await }).await?;
            let as_of = answer.as_of.take();
            if last.as_ref() != Some(&answer) {
                last = Some(answer.clone());
                tell(args, &WhatIfAnswer { as_of, ..answer }, needs.len())?;
            }
            let Some(every) = args.every else { return Ok(ExitCode::SUCCESS) };
            shard.clock().sleep(Duration::from_nanos(every.unsigned_abs())).await;
        }
    })
}

fn tell(args: &Args, answer: &WhatIfAnswer, needs: usize) -> Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(answer, &args.cluster, needs).write(&mut out, terminal.text_width(), terminal.paint)?;
        }
        format => write_data(&mut out, &Shown::new("WhatIfAnswer", answer), format, &terminal)?,
    }
    Ok(out.flush()?)
}

fn story(answer: &WhatIfAnswer, cluster: &str, needs: usize) -> Story {
    let mut story = Story::default();
    let (before, after) =
        (answer.before.clone().unwrap_or_default(), answer.after.clone().unwrap_or_default());
    let more_short = after.short.saturating_sub(before.short);
    let tone = if more_short == 0 { Tone::Good } else { Tone::Warn };
    let needs = count(needs as u64, "need");
    story.heading(format!("{cluster} would ask for {needs}; nothing is changed by looking"), tone);
    let change = usd_change(after.usd_per_hour - before.usd_per_hour);
    story.say(
        "cost",
        format!("{} now, {} with it ({change})", hourly(before.usd_per_hour), hourly(after.usd_per_hour)),
    );
    if more_short > 0 {
        story.say_toned("short", format!("{} more than now", count(more_short.into(), "need")), Tone::Warn);
    }
    for decision in answer.only_after.iter().take(MOST_TOLD) {
        story.say("would", sentence::action(decision));
    }
    let rest = answer.only_after.len().saturating_sub(MOST_TOLD);
    if rest > 0 {
        story.say("would", format!("and {}", count(rest as u64, "more action")));
    }
    story
}
