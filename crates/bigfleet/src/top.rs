//! `bigfleet top`: the live view of a shard in a terminal, which `bigfleet up` opens too.
//!
//! The core is pure. [`model`] holds what is known and where the reader is, `update` takes in keys and messages and
//! answers with what is to be asked, [`pages`] turns the model into content and [`draw`] puts that on a terminal of
//! any size. Sockets, the clock and the real terminal are known to [`driver`], [`link`] and [`terminal`] alone.

mod command;
mod draw;
mod driver;
mod filter;
mod history;
mod key;
mod link;
mod model;
mod page;
mod pages;
mod question;
mod screen;
mod terminal;
mod update;

#[cfg(test)]
mod canned;
#[cfg(test)]
mod tests;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;

use crate::context::{Reach, Target};
use crate::exit::Failure;
use crate::reach::{Shard, block_on};

pub(crate) use driver::run;
pub(crate) use terminal::is_there;

/// Watch a shard: supply and money, clusters, unmet needs with their reasons, decisions as they are made.
///
/// Enter opens what the cursor is on, Esc goes back, / filters, s sorts, p pauses, : takes commands, ? explains all keys.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  bigfleet top\n  bigfleet top --server 127.0.0.1:7780 --every 2")]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// At least so many seconds between two pictures
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, value_parser = seconds)]
    every: f64,
}

/// How the view is to be.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Who is at the other end, for messages.
    pub(crate) target: Target,
    /// At least so long between two pictures.
    pub(crate) every: Duration,
    /// Colours, or weight alone.
    pub(crate) coloured: bool,
    /// Who gives commands, for the record.
    pub(crate) author: String,
    /// Lines shown at the bottom of the first screen and in the help: what to try next.
    pub(crate) notes: Vec<String>,
}

impl Options {
    /// What fits this terminal, without notes.
    pub(crate) fn of(target: Target) -> Self {
        let unset = |name: &str| std::env::var_os(name).is_none_or(|value| value.is_empty());
        Self {
            target,
            every: Duration::from_millis(500),
            coloured: unset("NO_COLOR"),
            author: std::env::var("USER").unwrap_or_default(),
            notes: Vec::new(),
        }
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('s').parse() {
        Ok(seconds) if (0.05..=60.0).contains(&seconds) => Ok(seconds),
        _ => Err("give seconds between 0.05 and 60".into()),
    }
}

/// Watches until the reader has seen enough.
pub(crate) fn execute(args: &Args) -> Result<ExitCode, Failure> {
    if !is_there() {
        return Err(Failure::Usage(anyhow!(
            "top needs a terminal, and this is none; for a pipe there is `bigfleet get decisions --watch`"
        )));
    }
    let target = args.reach.target()?;
    block_on(async {
        // A wrong address or certificate is said at once, in the words of all commands. Later breaks are waited out.
        Shard::at(target.clone())?.version().await?;
        let channel = target.channel()?;
        run(channel, Options { every: Duration::from_secs_f64(args.every), ..Options::of(target) }).await?;
        Ok(ExitCode::SUCCESS)
    })
}
