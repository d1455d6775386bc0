//! `bigfleet get sessions`.

use bigfleet_view::v1::{ListSessionsRequest, Moment, Session};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::reach::{Shard, Trouble};
use crate::words::age;

/// The connections of clusters.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get sessions
  bigfleet get sessions shop -o json
  bigfleet get sessions --at 14:02")]
pub(crate) struct Args {
    /// Only of this cluster
    #[arg(value_name = "CLUSTER")]
    name: Option<String>,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

impl Listing for Args {
    type Item = Session;
    const MESSAGE: &'static str = "Session";
    const NOUN: &'static str = "session";

    fn columns() -> Vec<Column<Session>> {
        vec![
            Column::new("cluster", |session: &Session, _| session.cluster.clone()),
            Column::number(
                "number",
                |session: &Session| session.number as f64,
                |session, _| session.number.to_string(),
            ),
            Column::new("protocol", |session: &Session, _| session.protocol.clone()),
            Column::number(
                "open",
                |session: &Session| -(session.opened_unix_nanos as f64),
                |session, now| age(session.opened_unix_nanos, now),
            ),
            Column::number(
                "reported",
                |session: &Session| -(session.reported_unix_nanos as f64),
                |session, now| age(session.reported_unix_nanos, now),
            ),
        ]
    }

    fn name(session: &Session) -> String {
        session.cluster.clone()
    }

    fn asks_for(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Session>, Trouble> {
        let request = ListSessionsRequest {
            cluster: self.name.clone().unwrap_or_default(),
            limit: self.list.server_limit(),
            at,
        };
        let stream = shard.ask(|mut client| async move { client.list_sessions(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.sessions)))
    }
}
