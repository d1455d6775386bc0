//! `bigfleet flags`: every command with its flags as data, and whether a command line would be understood. For what is made
//! from them: charts, manifests, the book.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command};
use serde::Serialize;

use crate::exit::Failure;
use crate::output::stdout;

/// Print every command with its flags as JSON, or try whether a command line is understood.
#[derive(clap::Args)]
#[command(hide = true)]
pub(crate) struct Args {
    /// A command line to be read and not run
    #[arg(last = true, value_name = "COMMAND LINE")]
    line: Vec<String>,
}

#[derive(Serialize)]
struct Listed {
    /// As it is typed, without the program's name.
    command: String,
    about: String,
    flags: Vec<Flag>,
}

#[derive(Serialize)]
struct Flag {
    name: String,
    help: String,
    /// What its value is called; none for a switch.
    value: Option<String>,
    default: Vec<String>,
    choices: Vec<String>,
    repeats: bool,
    heading: String,
}

/// Lists what `program` takes, or reads a command line with it.
pub(crate) fn run(args: &Args, mut program: Command) -> Result<ExitCode, Failure> {
    if !args.line.is_empty() {
        let line = std::iter::once("bigfleet").chain(args.line.iter().map(String::as_str));
        return Ok(match program.try_get_matches_from_mut(line) {
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                error.print()?;
                ExitCode::from(2)
            }
        });
    }
    program.build();
    let mut listed = Vec::new();
    list(&program, "", &mut listed);
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, &listed).map_err(std::io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(command: &Command, path: &str, to: &mut Vec<Listed>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
    {
        let path = format!("{path} {}", below.get_name()).trim_start().to_owned();
        let flags = below.get_arguments().filter_map(flag).collect();
        let about = below.get_about().map(ToString::to_string).unwrap_or_default();
        to.push(Listed { command: path.clone(), about, flags });
        list(below, &path, to);
    }
}

/// A flag people may give; none for what stands without a name, and for those every command has.
fn flag(arg: &Arg) -> Option<Flag> {
    let name = arg.get_long().filter(|name| !["help", "version"].contains(name))?;
    let takes_value = arg.get_action().takes_values();
    let choices = arg.get_possible_values();
    Some(Flag {
        name: name.to_owned(),
        help: arg.get_help().map(ToString::to_string).unwrap_or_default(),
        value: takes_value.then(|| match arg.get_value_names() {
            Some([first, ..]) => first.to_string(),
            _ => name.to_uppercase(),
        }),
        default: arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect(),
        choices: if takes_value {
            choices.iter().map(|choice| choice.get_name().to_owned()).collect()
        } else {
            Vec::new()
        },
        repeats: matches!(arg.get_action(), ArgAction::Append),
        heading: arg.get_help_heading().unwrap_or_default().to_owned(),
    })
}
