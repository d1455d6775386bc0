//! `bigfleet context`: the named servers of this user.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use clap::Subcommand;
use serde::Serialize;

use super::config::{Context, Draft};
use super::{Config, Places, Reach};
use crate::exit::Failure;
use crate::output::{Cell, Grid, Head, Terminal, note, stdout, write_json_line};

/// Name servers and choose between them.
///
/// Contexts live in a TOML file: `$BIGFLEET_CONFIG`, or `bigfleet/config.toml` in `$XDG_CONFIG_HOME` (~/.config).
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet context set prod --server shard.example:7780 --tls-cert me.pem --tls-key me.key --tls-ca ca.pem --use
  bigfleet context list
  bigfleet get needs --context prod")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the contexts; the current one is marked
    List {
        /// As JSON lines, as into a pipe
        #[arg(long)]
        json: bool,
    },
    /// Make a context the current one
    Use {
        /// Which
        name: String,
    },
    /// Show one context, or what commands would talk to now
    Show {
        /// Which; by default what commands would talk to now
        name: Option<String>,
    },
    /// Make a context, or change what is given of it
    Set {
        /// Which
        name: String,
        /// host:port or URL of the shard; needed for a new context
        #[arg(long, value_name = "ADDRESS")]
        server: Option<String>,
        /// Our certificate chain; empty to leave it out
        #[arg(long, value_name = "FILE")]
        tls_cert: Option<String>,
        /// The key of our certificate; empty to leave it out
        #[arg(long, value_name = "FILE")]
        tls_key: Option<String>,
        /// The CA whose certificates we believe; empty to leave it out
        #[arg(long, value_name = "FILE")]
        tls_ca: Option<String>,
        /// Also make it the current one
        #[arg(long = "use")]
        choose: bool,
    },
    /// Forget a context
    Rm {
        /// Which
        name: String,
    },
}

/// A context as it is printed.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    current: bool,
    server: &'a str,
    tls_cert: Option<&'a Path>,
    tls_key: Option<&'a Path>,
    tls_ca: Option<&'a Path>,
}

impl<'a> Line<'a> {
    fn of(name: &'a str, context: &'a Context, config: &Config) -> Self {
        Self {
            name,
            current: config.current() == Some(name),
            server: &context.server,
            tls_cert: context.tls_cert.as_deref(),
            tls_key: context.tls_key.as_deref(),
            tls_ca: context.tls_ca.as_deref(),
        }
    }
}

/// Does it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let places = Places::of_this_user();
    match &args.what {
        What::List { json } => list(&Config::read(&places)?, *json)?,
        What::Show { name: Some(name) } => {
            let config = Config::read(&places)?;
            let mut out = stdout();
            write_json_line(&mut out, &Line::of(name, config.context(name)?, &config))?;
            out.flush()?;
        }
        What::Show { name: None } => show(&places)?,
        What::Use { name } => {
            let (mut draft, config) = Draft::open(&places)?;
            config.context(name)?;
            draft.choose(Some(name));
            draft.save()?;
            note(&format!("{name} is now the current context"));
        }
        What::Set { name, server, tls_cert, tls_key, tls_ca, choose } => {
            let (mut draft, config) = Draft::open(&places)?;
            if name.is_empty() || (server.is_none() && !config.contexts().contains_key(name)) {
                return Err(new_context_needs_server(name));
            }
            let files = [tls_cert, tls_key, tls_ca].map(|file| file.as_deref().map(whole).transpose());
            let [tls_cert, tls_key, tls_ca] = files;
            draft.set(
                name,
                &[
                    ("server", server.as_deref()),
                    ("tls_cert", tls_cert?.as_deref()),
                    ("tls_key", tls_key?.as_deref()),
                    ("tls_ca", tls_ca?.as_deref()),
                ],
            );
            if *choose || config.contexts().is_empty() {
                draft.choose(Some(name));
            }
            draft.save()?;
            note(&format!("context {name} is written to {}", places.config().display()));
        }
        What::Rm { name } => {
            let (mut draft, config) = Draft::open(&places)?;
            config.context(name)?;
            draft.remove(name);
            if config.current() == Some(name) {
                draft.choose(None);
            }
            draft.save()?;
            note(&format!("context {name} is gone"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn new_context_needs_server(name: &str) -> Failure {
    anyhow::anyhow!("context {name:?} is new and needs a server; add --server HOST:PORT").into()
}

/// The file by its whole path: the config file may lie elsewhere than where the command was given.
fn whole(file: &str) -> anyhow::Result<String> {
    if file.is_empty() {
        return Ok(String::new());
    }
    let path = std::path::absolute(file)?;
    match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => bail!("{} cannot be written into the config file: it is not UTF-8", path.display()),
    }
}

fn list(config: &Config, json: bool) -> Result<(), Failure> {
    let terminal = Terminal::of_stdout();
    let mut out = stdout();
    let lines = config.contexts().iter().map(|(name, context)| Line::of(name, context, config));
    if json || !terminal.interactive {
        for line in lines {
            write_json_line(&mut out, &line)?;
        }
    } else {
        let heads = ["", "NAME", "SERVER", "CERTIFICATE"];
        let heads = heads.map(|title| Head {
            title: title.into(),
            right: false,
            shrinks: title == "CERTIFICATE",
            keeps: false,
        });
        let row = |line: Line<'_>| -> Vec<Cell> {
            let certificate = line.tls_cert.map(|path| path.display().to_string());
            let mark = if line.current { "*" } else { "" };
            vec![mark.into(), line.name.into(), line.server.into(), certificate.unwrap_or_default().into()]
        };
        let rows: Vec<_> = lines.map(row).collect();
        let grid = Grid::settle(&heads, &rows, terminal.width, terminal.paint);
        grid.write_heads(&mut out, &heads)?;
        for row in &rows {
            grid.write_row(&mut out, row)?;
        }
    }
    out.flush()?;
    if config.contexts().is_empty() {
        note("no contexts; make one with `bigfleet context set NAME --server HOST:PORT`");
    }
    Ok(())
}

/// What a command without flags would talk to.
fn show(places: &Places) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Effective {
        server: String,
        source: String,
        tls: bool,
        config: PathBuf,
    }
    let reach = Reach {
        server: std::env::var("BIGFLEET_SERVER").ok().filter(|text| !text.is_empty()),
        context: std::env::var("BIGFLEET_CONTEXT").ok().filter(|text| !text.is_empty()),
        ..Reach::default()
    };
    let target = reach.target()?;
    let effective = Effective {
        server: target.server,
        source: target.source.to_string(),
        tls: target.tls.is_some(),
        config: places.config().to_owned(),
    };
    let mut out = stdout();
    if Terminal::of_stdout().interactive {
        writeln!(out, "{} ({})", effective.server, effective.source)?;
    } else {
        write_json_line(&mut out, &effective)?;
    }
    out.flush()?;
    Ok(())
}
