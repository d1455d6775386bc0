//! `bigfleet fault add|rm|list|export`: makes a running simulated cloud go wrong, and right again.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::admin::v1::Fault;
use crate::admin::{AdminClient, AdminError};
use crate::fault::Line;

/// Where a simulated cloud takes faults unless it is told otherwise.
pub const DEFAULT_ADMIN: &str = "127.0.0.1:9001";

/// Makes a running simulated cloud go wrong, and right again.
#[derive(Clone, Debug, Parser)]
pub struct Args {
    /// Where the cloud takes faults; by default a running `bigfleet up`, or 127.0.0.1:9001
    #[arg(long, global = true, value_name = "HOST:PORT", env = "BIGFLEET_ADMIN")]
    pub admin: Option<String>,
    /// What to do
    #[command(subcommand)]
    pub action: Action,
}

/// What to do with the board of faults.
#[derive(Clone, Debug, Subcommand)]
pub enum Action {
    /// Add a fault, such as: zone-outage zone-b --for 10m
    Add {
        /// The kind of fault and its words
        #[arg(required = true, allow_hyphen_values = true, trailing_var_arg = true, value_name = "LINE")]
        line: Vec<String>,
    },
    /// Lift faults by their numbers
    Rm {
        /// Which
        #[arg(required = true, value_name = "NUMBER")]
        ids: Vec<u64>,
    },
    /// List what is planned and active
    List {
        /// Also what is over
        #[arg(long)]
        all: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Write down what went wrong so far as a scenario file
    Export {
        /// Its name
        #[arg(long, default_value = "incident")]
        name: String,
        /// Where to; standard output if nothing is said
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// Does it. Exit codes: 0 done, 1 refused, 2 makes no sense, 3 no cloud answers.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match runtime.block_on(act(args)) {
        Ok(text) => {
            super::print(&text)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let code = match error.downcast_ref::<AdminError>() {
                Some(AdminError::Unreachable { .. }) => 3,
                Some(AdminError::Refused(_)) => 1,
                Some(AdminError::Address(_)) | None => 2,
            };
            writeln!(std::io::stderr(), "error: {error}")?;
            Ok(ExitCode::from(code))
        }
    }
}

async fn act(args: &Args) -> anyhow::Result<String> {
    // A line that makes no sense is refused before anybody is asked.
    let line = match &args.action {
        Action::Add { line } => Some(Line::from_words(line)?),
        _ => None,
    };
    let client = AdminClient::new(args.admin.as_deref().unwrap_or(DEFAULT_ADMIN))?;
    match &args.action {
        Action::Add { .. } => {
            let line = line.expect("it was just read");
            let fault = client.add(&line).await?;
            Ok(format!("fault {} {} (simulated): {}\n", fault.id, fault.status, fault.line))
        }
        Action::Rm { ids } => {
            let mut lifted = Vec::new();
            for id in ids {
                let fault = client.lift(*id).await?;
                lifted.push(format!("fault {} lifted (simulated): {}\n", fault.id, fault.line));
            }
            Ok(lifted.concat())
        }
        Action::List { all, json } => {
            let faults = client.list(*all).await?;
            Ok(if *json { as_json(&faults) } else { as_table(&faults) })
        }
        Action::Export { name, output } => {
            let scenario = client.export(name).await?;
            let Some(path) = output else { return Ok(scenario) };
            std::fs::write(path, scenario).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
            Ok(format!("written to {}\n", path.display()))
        }
    }
}

fn as_table(faults: &[Fault]) -> String {
    if faults.is_empty() {
        return "no faults\n".into();
    }
    let row = |fault: &Fault| format!("{:>5}  {:<8} {}\n", fault.id, fault.status, fault.line);
    faults.iter().map(row).collect::<Vec<_>>().concat()
}

fn as_json(faults: &[Fault]) -> String {
    let row = |fault: &Fault| {
        serde_json::json!({
            "id": fault.id,
            "line": fault.line,
            "status": fault.status,
            "from_unix_nanos": fault.from_unix_nanos,
            "until_unix_nanos": (fault.until_unix_nanos != 0).then_some(fault.until_unix_nanos),
        })
    };
    let rows: Vec<_> = faults.iter().map(row).collect();
    format!("{:#}\n", serde_json::Value::from(rows))
}
