//! `bigfleet get proposals`: what waits for a yes.

use bigfleet_view::v1::{Decision, ListProposalsRequest, Moment, Proposal};

use super::column::Column;
use super::listing::{ListArgs, Listing, Pages, pages};
use crate::flags::Kind;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::sentence;
use crate::words::{age, hourly, kind, need, short_span};

/// Actions that wait for a yes, where the mode is to approve; the oldest first.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get proposals
  bigfleet get proposals --cluster shop --kind provision
  bigfleet approve 0a1b2c3d")]
pub(crate) struct Args {
    /// Only what takes a machine from this cluster or gives it one
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Only this kind of action
    #[arg(long, value_enum, ignore_case = true)]
    kind: Option<Kind>,
    /// Also what was approved and is not over yet
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

fn decision(proposal: &Proposal) -> Decision {
    proposal.decision.clone().unwrap_or_default()
}

fn status(proposal: &Proposal, now: i64) -> Cell {
    match (proposal.begun, &*proposal.approved_by) {
        (true, author) => Cell::toned(format!("under way, approved by {author}"), Tone::Good),
        (false, "") => {
            let left = short_span(proposal.until_unix_nanos.saturating_sub(now).max(0));
            Cell::toned(format!("waits, {left} left"), Tone::Warn)
        }
        (false, author) => Cell::toned(format!("approved by {author}"), Tone::Good),
    }
}

impl Listing for Args {
    type Item = Proposal;
    const MESSAGE: &'static str = "Proposal";
    const NOUN: &'static str = "proposal";

    fn columns() -> Vec<Column<Proposal>> {
        vec![
            Column::new("id", |proposal: &Proposal, _| proposal.id.clone()),
            Column::number(
                "age",
                |proposal: &Proposal| -(proposal.since_unix_nanos as f64),
                |proposal, now| age(proposal.since_unix_nanos, now),
            ),
            Column::new("kind", |proposal: &Proposal, _| kind(decision(proposal).kind)),
            Column::new("machine", |proposal: &Proposal, _| decision(proposal).machine),
            Column::number(
                "usd",
                |proposal: &Proposal| proposal.usd_per_hour,
                |proposal, _| hourly(proposal.usd_per_hour),
            ),
            Column::new("cluster", |proposal: &Proposal, _| decision(proposal).cluster),
            Column::new("need", |proposal: &Proposal, _| {
                decision(proposal).need.as_ref().map(need).unwrap_or_default()
            })
            .shrinks(),
            Column::new("status", status),
            Column::new("why", |proposal: &Proposal, _| sentence::why(&decision(proposal))).shrinks().keeps(),
        ]
    }

    fn name(proposal: &Proposal) -> String {
        proposal.id.clone()
    }

    async fn list(&self, shard: &Shard, _: Option<Moment>, _: bool) -> Result<Pages<Proposal>, Trouble> {
        let request = ListProposalsRequest {
            cluster: self.cluster.clone().unwrap_or_default(),
            kind: self.kind.map_or(0, Into::into),
            all: self.all,
        };
        let stream = shard.ask(|mut client| async move { client.list_proposals(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.proposals)))
    }
}
