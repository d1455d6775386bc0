//! `bigfleet crds`: the custom resource definitions, printed or installed.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use bigfleet_crds::{ServerVersion, definitions, yaml};
use bigfleet_kube_common::{Connection, InstallError, install};
use bigfleet_net::SystemClock;

use crate::exit::Failure;
use crate::output::stdout;

/// Exit code of a cluster that cannot be reached or says no.
const CANNOT_REACH: u8 = 3;

/// Print the definitions of BigFleet's custom resources, or install them.
///
/// CapacityRequest, UpcomingNode and AvailableCapacity, as YAML for `kubectl apply`.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet crds | kubectl apply -f -
  bigfleet crds --for 1.20 | kubectl apply -f -
  bigfleet crds --install --kubeconfig ~/.kube/config --context prod-eu")]
pub(crate) struct Args {
    /// The server's version; an older one is given only what it knows [default: a current one]
    #[arg(long = "for", value_name = "VERSION", conflicts_with = "install")]
    version: Option<ServerVersion>,
    /// As JSON, one definition a line
    #[arg(long, conflicts_with = "install")]
    json: bool,
    /// Install them, or bring them up to date, as far as the server knows what is in them
    #[arg(long)]
    install: bool,
    /// The cluster, if not that of KUBECONFIG, ~/.kube/config or this pod
    #[arg(long, value_name = "FILE", requires = "install")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME", requires = "install")]
    context: Option<String>,
}

/// Prints or installs them.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut out = stdout();
    if args.install {
        let connection = Connection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let installed = runtime.block_on(async {
            let client = connection.client().await.context("cannot connect")?;
            Ok::<_, anyhow::Error>(install(&client, &SystemClock::start()).await)
        })?;
        return match installed {
            Ok(names) => {
                for name in names {
                    writeln!(out, "{name}")?;
                }
                out.flush()?;
                Ok(ExitCode::SUCCESS)
            }
            Err(error) => Ok(say(&error)),
        };
    }
    let version = args.version.unwrap_or(ServerVersion::CURRENT);
    if args.json {
        for definition in definitions(version) {
            serde_json::to_writer(&mut out, &definition).map_err(std::io::Error::from)?;
            writeln!(out)?;
        }
    } else {
        out.write_all(yaml(version).as_bytes())?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn say(error: &InstallError) -> ExitCode {
    // Nothing is left to be done if even this cannot be written.
    let _ = writeln!(std::io::stderr(), "bigfleet: {error}");
    ExitCode::from(CANNOT_REACH)
}
