//! `bigfleet assess`: looks at a cluster once, changes nothing, and says what connecting it would mean.

pub(crate) mod look;

use std::io::Write as _;
use std::process::ExitCode;

use bigfleet_tell::words::{amounts, count, thousands};

use crate::daemon::ApiFlags;
use crate::exit::Failure;
use crate::output::{AnswerArgs, AnswerFormat, Story, Terminal, Tone, stdout, write_data};
use crate::reach::block_on;
use look::Assessment;

/// Look at a cluster, without changing anything, and say what connecting it to a fleet would mean.
///
/// Needs rights to list pods, nodes and priority classes, and no others: deploy/kubernetes/assess.yaml.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet assess --kubeconfig ~/.kube/config
  bigfleet assess --context prod --json > prod.json")]
pub(crate) struct Args {
    #[command(flatten)]
    api: ApiFlags,
    #[command(flatten)]
    output: AnswerArgs,
}

/// Looks and tells.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    block_on(async {
        let client = args.api.connection().client().await.map_err(anyhow::Error::from)?;
        let found = look::look(&client).await.map_err(anyhow::Error::from)?.assessment;
        let terminal = Terminal::of_stdout();
        let mut out = stdout();
        match args.output.format(&terminal) {
            AnswerFormat::Text => story(&found).write(&mut out, terminal.text_width(), terminal.paint)?,
            format => write_data(&mut out, &found, format, &terminal)?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    })
}

fn story(found: &Assessment) -> Story {
    let mut story = Story::default();
    let Assessment { nodes, pods, .. } = found;
    story.heading(
        format!(
            "{} and {}: the fleet would be asked for {}",
            count(nodes.count, "node"),
            count(pods.count, "pod"),
            count(found.needs.len() as u64, "need")
        ),
        Tone::Good,
    );
    story.say(
        "nodes",
        format!("{} of them ready; they offer {}", thousands(nodes.ready), amounts(&nodes.allocatable)),
    );
    story.say("pods", format!("{} ask for {}", thousands(pods.asking), amounts(&pods.requested)));
    for (state, count) in &pods.skipped {
        story.say("", format!("{} ask for nothing: {state}", thousands(*count)));
    }
    if pods.waiting > 0 {
        story.say_toned("waiting", format!("{} have no node today", count(pods.waiting, "pod")), Tone::Warn);
    }
    story.say(
        "packing",
        format!(
            "all that asks would fit on {} of the {} nodes there are, largest pods first; {} found no hole",
            thousands(found.packing.nodes_used),
            thousands(nodes.count),
            count(found.packing.pods_without_hole, "pod")
        ),
    );
    story.say(
        "brownfield",
        format!(
            "connected as it is, {} on nodes that are not the fleet's would stay out of the demand, and the fleet would be \
             asked for {}; with --ignore-existing-nodes, or for nodes annotated bigfleet.lucy.sh/adopt=true, for {}",
            count(found.brownfield.pods_set_aside, "pod"),
            some(&found.brownfield.asked_as_it_is),
            some(&found.brownfield.asked_with_all)
        ),
    );
    let adoptable: Vec<Vec<String>> = found
        .brownfield
        .adoptable
        .iter()
        .take(MOST_NODES)
        .map(|one| vec![format!("+ {}", one.node), count(one.pods, "pod"), some(&one.adds)])
        .collect();
    story.columns("adopting", &adoptable, &[]);
    if let more @ 1.. = found.brownfield.adoptable.len().saturating_sub(MOST_NODES) {
        story.say("", format!("and {} more; --json names all", count(more as u64, "node")));
    }
    for loss in &found.losses {
        let text = format!("{}: {} ({})", loss.field, count(loss.pods, "pod"), loss.effect);
        story.say_toned("not carried", text, if loss.effect == "Crowded" { Tone::Plain } else { Tone::Warn });
    }
    for refused in &found.refused {
        story.say_toned("refused", refused.as_str(), Tone::Bad);
    }
    let rows: Vec<Vec<String>> = found
        .needs
        .iter()
        .take(10)
        .map(|need| {
            vec![
                count(need.pods, "pod"),
                need.priority.to_string(),
                amounts(&need.aggregate),
                need.requires.clone(),
            ]
        })
        .collect();
    story.columns("needs", &rows, &[1]);
    story
}

/// Nodes whose adoption is shown one by one.
const MOST_NODES: usize = 20;

fn some(amount: &std::collections::BTreeMap<String, String>) -> String {
    if amount.is_empty() { "nothing".into() } else { amounts(amount) }
}
