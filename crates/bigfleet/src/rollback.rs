//! `bigfleet rollback`: freeze, say what a past cycle had and the present has not, and go back step by step, asking first.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::ExitCode;

use bigfleet_proto::v1alpha1::MachineState;
use bigfleet_tell::words::{count, rfc3339, state, thousands, usd_words};
use bigfleet_view::v1::{GetCostsRequest, Machine, Mode, PauseRequest, SetModeRequest};
use serde::Serialize;

use crate::at::At;
use crate::context::Reach;
use crate::diff::{Seen, seen};
use crate::exit::{FOUND, Failure};
use crate::output::{AnswerArgs, AnswerFormat, Story, Terminal, Tone, note, stdout, write_data};
use crate::reach::{Shard, block_on};

/// Go back to how machines were bound at a past cycle: freeze, say what will not be undone, and ask before each step.
///
/// First everything is paused and the mode of everything is set to approve. Then the machines of that moment are compared with
/// those of now: what is gone for good is told, and what could be put back. Nothing moves before you end the pause; then each
/// step waits as a proposal. A shard binds what demand asks for: a machine goes back where its cluster still asks for it.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet rollback --to 1h --look
  bigfleet rollback --to 1842 --reason 'bad price feed'
  bigfleet get proposals")]
pub(crate) struct Args {
    /// The moment to go back to: a cycle (1842), a time (14:02) or how long ago (1h)
    #[arg(long, value_name = "CYCLE|TIME")]
    to: At,
    /// Why; whoever wonders will read it
    #[arg(long, value_name = "TEXT", required_unless_present = "look")]
    reason: Option<String>,
    /// Who; by default the user of this machine
    #[arg(long, value_name = "NAME", env = "USER")]
    author: Option<String>,
    /// Only say what it would come to; freeze nothing
    #[arg(long)]
    look: bool,
    /// At most so many machines of each sort are named; the counts are of all
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    output: AnswerArgs,
    #[command(flatten)]
    reach: Reach,
}

/// What going back comes to.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Steps {
    /// Bound then, free now: can be bound again.
    put_back: Vec<String>,
    put_back_in_all: usize,
    /// Not there then, and free now: can be given back.
    give_back: Vec<String>,
    give_back_in_all: usize,
    /// Bound to another cluster now: has to be drained there first.
    move_back: Vec<String>,
    move_back_in_all: usize,
    /// Bound then, and gone now: another one would have to be bought.
    gone: Vec<String>,
    gone_in_all: usize,
}

#[derive(Serialize)]
struct Told {
    to_cycle: u64,
    to: String,
    /// The pause that freezes everything; 0 if nothing was frozen.
    pause: u64,
    spent_since_usd: f64,
    #[serde(flatten)]
    steps: Steps,
    #[serde(skip)]
    simulated: bool,
}

/// Freezes, compares and tells. Ends with 1 if something cannot be put back.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (told, target) = block_on(async {
        let shard = Shard::new(&args.reach)?.patient_for(std::time::Duration::from_mins(10));
        let now = shard.version().await?.now_unix_nanos;
        // A moment nobody recorded is refused before anything is frozen.
        let then = seen(&shard, Some(args.to.moment(now))).await?;
        let pause = if args.look { 0 } else { freeze(&shard, args, then.as_of.cycle).await? };
        let is = seen(&shard, None).await?;
        let request =
            GetCostsRequest { from_unix_nanos: then.as_of.cycle_unix_nanos, ..GetCostsRequest::default() };
        let costs = shard.ask(|mut client| async move { client.get_costs(request).await }).await?;
        let told = Told {
            to_cycle: then.as_of.cycle,
            to: rfc3339(then.as_of.cycle_unix_nanos),
            pause,
            spent_since_usd: costs.total_nano_usd as f64 / 1e9,
            steps: steps(&then, &is, args.limit),
            simulated: is.as_of.simulated,
        };
        Ok((told, shard.target.to_string()))
    })?;
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    match args.output.format(&terminal) {
        AnswerFormat::Text => {
            story(&told).write(&mut out, terminal.text_width(), terminal.paint)?;
            out.flush()?;
            note(&target);
        }
        format => write_data(&mut out, &told, format, &terminal)?,
    }
    out.flush()?;
    let lost = told.steps.gone_in_all > 0;
    Ok(if lost { ExitCode::from(FOUND) } else { ExitCode::SUCCESS })
}

/// Pauses everything, then asks before anything.
async fn freeze(shard: &Shard, args: &Args, cycle: u64) -> Result<u64, Failure> {
    let reason = format!("rollback to cycle {cycle}: {}", args.reason.as_deref().unwrap_or_default());
    let author = args.author.clone().unwrap_or_default();
    let pause = PauseRequest { reason: reason.clone(), author: author.clone(), ..PauseRequest::default() };
    let paused = shard.ask(|mut client| async move { client.pause(pause).await }).await?;
    let mode = SetModeRequest { mode: Mode::Approve.into(), reason, author, ..SetModeRequest::default() };
    shard.ask(|mut client| async move { client.set_mode(mode).await }).await?;
    Ok(paused.pause.map_or(0, |pause| pause.number))
}

fn is_bound(machine: &Machine) -> bool {
    machine.state() == MachineState::Configured
}

/// Whether a machine is there and serves nobody.
fn is_free(machine: &Machine) -> bool {
    machine.state() == MachineState::Idle
}

fn steps(then: &Seen, now: &Seen, limit: usize) -> Steps {
    let (mut put_back, mut give_back) = (Vec::new(), Vec::new());
    let (mut move_back, mut gone) = (Vec::new(), Vec::new());
    for (id, was) in &then.machines {
        if !is_bound(was) {
            continue;
        }
        match now.machines.get(id) {
            Some(is) if is_bound(is) && is.cluster == was.cluster => {}
            Some(is) if is_free(is) => put_back.push(format!("{id} to {}", was.cluster)),
            Some(is) if is.cluster.is_empty() || is.state() == MachineState::Failed => {
                gone.push(format!("{id} of {}: {} now", was.cluster, state(is.state)));
            }
            Some(is) if is.cluster == was.cluster => {
                put_back.push(format!("{id} to {}: {} now", was.cluster, state(is.state)));
            }
            Some(is) => move_back.push(format!("{id} from {} to {}", is.cluster, was.cluster)),
            None => gone.push(format!("{id} of {}", was.cluster)),
        }
    }
    for (id, is) in &now.machines {
        let was_there = then.machines.get(id).is_some_and(|was| was.state() != MachineState::Speculative);
        if is_free(is) && !was_there {
            give_back.push(id.clone());
        }
    }
    let first = |mut all: Vec<String>| {
        let count = all.len();
        all.truncate(limit);
        (all, count)
    };
    let (put_back, put_back_in_all) = first(put_back);
    let (give_back, give_back_in_all) = first(give_back);
    let (move_back, move_back_in_all) = first(move_back);
    let (gone, gone_in_all) = first(gone);
    Steps {
        put_back,
        put_back_in_all,
        give_back,
        give_back_in_all,
        move_back,
        move_back_in_all,
        gone,
        gone_in_all,
    }
}

fn story(told: &Told) -> Story {
    let mut story = Story::default();
    let mark = if told.simulated { "  (simulated)" } else { "" };
    let frozen = match told.pause {
        0 => "Nothing is frozen: this is a look.".to_owned(),
        number => format!("Everything is frozen by pause {number}, and the mode of everything is approve."),
    };
    story.heading(format!("Back to cycle {}, {}. {frozen}{mark}", told.to_cycle, told.to), Tone::Warn);
    let steps = &told.steps;
    let sorts: BTreeMap<&'static str, (&Vec<String>, usize)> = BTreeMap::from([
        ("put back", (&steps.put_back, steps.put_back_in_all)),
        ("give back", (&steps.give_back, steps.give_back_in_all)),
        ("move back", (&steps.move_back, steps.move_back_in_all)),
    ]);
    for (sort, (named, all)) in sorts {
        for line in named {
            story.say(sort, line.clone());
        }
        if all > named.len() {
            story.say(sort, format!("and {} more", thousands((all - named.len()) as u64)));
        }
    }
    let not = "not undone";
    story.say_toned(not, format!("{} spent since", usd_words(told.spent_since_usd)), Tone::Warn);
    story.say_toned(not, "pods that were evicted since, and what they had not saved", Tone::Warn);
    for line in &steps.gone {
        story.say_toned(not, format!("{line}: another would have to be bought"), Tone::Warn);
    }
    let more = steps.gone_in_all - steps.gone.len();
    if more > 0 {
        story.say_toned(not, format!("and {} that are gone", count(more as u64, "more machine")), Tone::Warn);
    }
    if told.pause > 0 {
        story.say(
            "next",
            format!(
                "bigfleet resume {}; then each step waits: bigfleet get proposals, bigfleet approve; at the end bigfleet mode inherit",
                told.pause
            ),
        );
    }
    story
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(id: &str, state: MachineState, cluster: &str) -> (String, Machine) {
        let machine =
            Machine { id: id.into(), state: state.into(), cluster: cluster.into(), ..Machine::default() };
        (id.into(), machine)
    }

    #[test]
    fn each_machine_is_in_the_step_that_brings_it_back() {
        use MachineState::{Configured, Failed, Idle, Speculative};
        let then = Seen::of([
            machine("a", Configured, "shop"),
            machine("b", Configured, "shop"),
            machine("c", Configured, "shop"),
            machine("d", Configured, "shop"),
            machine("e", Configured, "shop"),
            machine("f", Speculative, ""),
            machine("g", Idle, ""),
        ]);
        let now = Seen::of([
            machine("a", Configured, "shop"),
            machine("b", Idle, ""),
            machine("c", Configured, "ml"),
            machine("d", Failed, "shop"),
            machine("f", Idle, ""),
            machine("g", Idle, ""),
        ]);
        let steps = steps(&then, &now, 20);
        assert_eq!(steps.put_back, ["b to shop"]);
        assert_eq!(steps.move_back, ["c from ml to shop"]);
        assert_eq!(steps.gone, ["d of shop: Failed now", "e of shop"]);
        assert_eq!(steps.give_back, ["f"]);
        assert_eq!(super::steps(&then, &then, 20), Steps::default(), "nothing changed, nothing to do");
    }
}
