//! `bigfleet get shortfalls`.

use bigfleet_view::v1::{ListShortfallsRequest, Moment, NeedRef, Shortfall};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::words::{age, amounts, reason, signed};

/// What is missing, the highest priority first, then the oldest.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get shortfalls
  bigfleet get shortfalls --cluster ml --watch
  bigfleet get shortfalls --at 1842")]
pub(crate) struct Args {
    /// Only of this cluster
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

fn key(shortfall: &Shortfall) -> NeedRef {
    shortfall.need.clone().unwrap_or_default()
}

impl Listing for Args {
    type Item = Shortfall;
    const MESSAGE: &'static str = "Shortfall";
    const NOUN: &'static str = "shortfall";

    fn columns() -> Vec<Column<Shortfall>> {
        vec![
            Column::new("need", |shortfall, _| key(shortfall).id),
            Column::new("cluster", |shortfall, _| key(shortfall).cluster),
            Column::new("gang", |shortfall, _| key(shortfall).group).shrinks(),
            Column::number(
                "priority",
                |shortfall: &Shortfall| shortfall.priority.into(),
                |shortfall, _| signed(shortfall.priority.into()),
            ),
            Column::number(
                "since",
                |shortfall: &Shortfall| -(shortfall.since_unix_nanos as f64),
                |shortfall, now| age(shortfall.since_unix_nanos, now),
            ),
            Column::new("reason", |shortfall: &Shortfall, _| {
                let text = reason(shortfall.reason);
                let tone = if text == "on its way" { Tone::Warn } else { Tone::Bad };
                Cell::toned(text, tone)
            }),
            Column::new("missing", |shortfall: &Shortfall, _| amounts(&shortfall.deficit)).shrinks(),
            Column::new("unresolved", |shortfall: &Shortfall, _| amounts(&shortfall.unresolved)).shrinks(),
        ]
    }

    fn name(shortfall: &Shortfall) -> String {
        key(shortfall).id
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Shortfall>, Trouble> {
        let request = ListShortfallsRequest {
            cluster: self.cluster.clone().unwrap_or_default(),
            limit: self.list.server_limit(),
            at,
        };
        let stream = shard.ask(|mut client| async move { client.list_shortfalls(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.shortfalls)))
    }
}
