//! `bigfleet demand`: what the simulated clusters of a running `bigfleet up` want, looked at and changed.

mod show;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::anyhow;
use bigfleet_model::text::shown;
use bigfleet_net::{Clock, SystemClock};
use bigfleet_proto::transport;
use bigfleet_provider_sim::admin::v1::sim_demand_client::SimDemandClient;
use bigfleet_provider_sim::admin::v1::{
    ListDemandRequest, RemoveDemandRequest, SetDemandRequest, Wanted, Work,
};
use bigfleet_provider_sim::cli::fault::DEFAULT_ADMIN;
use clap::Subcommand;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::context::{Places, Up};
use crate::exit::{FOUND, Failure};
use crate::output::{ListFormat, note, stdout};
use crate::reach::block_on;

/// Change what the simulated clusters of a running `bigfleet up` want.
///
/// Work follows a curve of its own until somebody fixes its number. Numbers are pods, or gangs for work that comes in
/// gangs.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet demand list
  bigfleet demand set shop web=90
  bigfleet demand set ml train=3 serve=0
  bigfleet demand rm shop web
  bigfleet demand wait --for 2m")]
pub(crate) struct Args {
    /// Where the simulated world takes changes; by default a running `bigfleet up`, or 127.0.0.1:9001
    #[arg(long, global = true, value_name = "HOST:PORT", env = "BIGFLEET_ADMIN")]
    admin: Option<String>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// List the work of the simulated clusters
    List {
        /// Only of this cluster
        #[arg(value_name = "CLUSTER")]
        cluster: Option<String>,
        /// How to print; a table on a terminal and JSON lines into a pipe if nothing is said
        #[arg(short, long, value_enum, value_name = "FORMAT")]
        output: Option<ListFormat>,
    },
    /// Fix how many pods, or gangs, a kind of work wants
    Set {
        /// Of which cluster
        #[arg(value_name = "CLUSTER")]
        cluster: String,
        /// Which work, and how many
        #[arg(required = true, value_name = "WORK=N", value_parser = wanted)]
        wanted: Vec<Wanted>,
    },
    /// Let a kind of work follow its own curve again
    Rm {
        /// Of which cluster
        #[arg(value_name = "CLUSTER")]
        cluster: String,
        /// Which work
        #[arg(value_name = "WORK")]
        work: String,
    },
    /// Wait until every pod that is wanted has a node
    Wait {
        /// Only those of this cluster
        #[arg(value_name = "CLUSTER")]
        cluster: Option<String>,
        /// For how long at most, in real time: 90s, 2m
        #[arg(long = "for", value_name = "SPAN", value_parser = crate::at::nanos, default_value = "1m")]
        most: i64,
    },
}

fn wanted(text: &str) -> Result<Wanted, String> {
    let (work, count) = text.split_once('=').ok_or("write WORK=N, such as web=40")?;
    let count =
        count.trim().parse().map_err(|_| format!("{count:?} is no number of pods; write {work}=40"))?;
    Ok(Wanted { work: work.trim().into(), count })
}

/// Does it.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let known = || Up::read(&Places::of_this_user()).map(|up| up.admin).filter(|admin| !admin.is_empty());
    let admin = args.admin.clone().or_else(known).unwrap_or_else(|| DEFAULT_ADMIN.into());
    block_on(async {
        let mut client = client(&admin)?;
        let done = match &args.action {
            Action::List { cluster, output } => {
                let request = ListDemandRequest { cluster: cluster.clone().unwrap_or_default() };
                match client.list_demand(request).await {
                    Ok(answer) => return show::list(&answer.into_inner().work, *output),
                    Err(status) => Err(status),
                }
            }
            Action::Set { cluster, wanted } => {
                let request = SetDemandRequest { cluster: cluster.clone(), wanted: wanted.clone() };
                client.set_demand(request).await.map(|answer| answer.into_inner().work)
            }
            Action::Rm { cluster, work } => {
                let request = RemoveDemandRequest { cluster: cluster.clone(), work: work.clone() };
                client
                    .remove_demand(request)
                    .await
                    .map(|answer| answer.into_inner().work.into_iter().collect())
            }
            Action::Wait { cluster, most } => match wait(&mut client, cluster.as_deref(), *most).await {
                Ok(code) => return Ok(code),
                Err(status) => Err(status),
            },
        };
        match done {
            Ok(work) => {
                let mut out = stdout();
                for work in &work {
                    writeln!(out, "{}", shown(&show::sentence(work)))?;
                }
                out.flush()?;
                Ok(ExitCode::SUCCESS)
            }
            Err(status) => Ok(refused(&status, &admin)),
        }
    })
}

/// Waits until no pod waits. Ends with 1 if some still do when the time is over.
async fn wait(
    client: &mut SimDemandClient<Channel>,
    cluster: Option<&str>,
    most_nanos: i64,
) -> Result<ExitCode, Status> {
    const LOOK_EVERY: Duration = Duration::from_millis(200);
    let clock = SystemClock::start();
    let until = clock.now_unix_nanos().saturating_add(most_nanos);
    loop {
        let request = ListDemandRequest { cluster: cluster.unwrap_or_default().into() };
        let work = client.list_demand(request).await?.into_inner().work;
        let waiting: Vec<&Work> = work.iter().filter(|work| work.waiting_pods > 0).collect();
        if waiting.is_empty() {
            let pods: u64 = work.iter().map(|work| work.running_pods).sum();
            let mut out = stdout();
            // A reader that is gone has seen enough.
            let _ = writeln!(out, "all {pods} pods run (simulated)").and_then(|()| out.flush());
            return Ok(ExitCode::SUCCESS);
        }
        if clock.now_unix_nanos() >= until {
            for work in waiting {
                note(&show::sentence(work));
            }
            note("bigfleet: some pods still wait; `bigfleet get shortfalls` says why");
            return Ok(ExitCode::from(FOUND));
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

fn client(admin: &str) -> anyhow::Result<SimDemandClient<Channel>> {
    let endpoint = Endpoint::from_shared(format!("http://{admin}"));
    let endpoint = endpoint.ok().filter(|_| admin.contains(':') && !admin.contains("//"));
    let endpoint = endpoint.ok_or_else(|| anyhow!("--admin: {admin:?} is no address; write HOST:PORT"))?;
    Ok(SimDemandClient::new(transport::endpoint(endpoint).connect_lazy()))
}

/// Says why not, and with which exit code.
fn refused(status: &Status, admin: &str) -> ExitCode {
    let (words, code) = match status.code() {
        Code::Unavailable => (
            format!(
                "no simulated clusters answer at {admin} ({}); start them with `bigfleet up`",
                status.message()
            ),
            3,
        ),
        Code::Unimplemented => (
            format!(
                "at {admin} there is a simulated cloud but no simulated clusters; start both with `bigfleet up`"
            ),
            3,
        ),
        _ => (status.message().to_owned(), 2),
    };
    note(&format!("bigfleet: {words}"));
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_nonsense_is_refused() {
        assert_eq!(wanted("web=40"), Ok(Wanted { work: "web".into(), count: 40 }));
        assert_eq!(wanted("web"), Err("write WORK=N, such as web=40".into()));
        assert_eq!(wanted("web=many"), Err("\"many\" is no number of pods; write web=40".into()));
        assert!(wanted("web=-1").is_err());
    }
}
