//! `bigfleet completions` and `bigfleet man`: what shells and readers of manuals want, made from the commands themselves.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::exit::Failure;
use crate::output::{note, stdout};

/// Print completions for a shell.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet completions bash > ~/.local/share/bash-completion/completions/bigfleet
  bigfleet completions zsh > ~/.zfunc/_bigfleet
  bigfleet completions fish > ~/.config/fish/completions/bigfleet.fish")]
pub(crate) struct CompletionsArgs {
    /// Which shell
    shell: Shell,
}

/// Print the manual page, or write one page for every command.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet man | man -l -
  bigfleet man --dir ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Prints completions of `command`.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "bigfleet", &mut text);
    let mut out = stdout();
    out.write_all(&text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of `command`, or writes all of them.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<ExitCode, Failure> {
    match &args.dir {
        None => {
            let mut out = stdout();
            Man::new(command).render(&mut out)?;
            out.flush()?;
        }
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
            clap_mangen::generate_to(command, folder)
                .with_context(|| format!("cannot write manual pages into {}", folder.display()))?;
            note(&format!("manual pages written to {}", folder.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}
