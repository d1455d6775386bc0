//! What the lists have in common: flags, pages, and what a thing must say about itself.

use std::pin::Pin;

use bigfleet_view::v1::{AsOf, Moment};
use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tonic::{Status, Streaming};

use super::column::Column;
use crate::at::At;
use crate::context::Reach;
use crate::output::{ListFormat, Terminal};
use crate::reach::{Shard, Trouble};

/// The flags of every list.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct ListArgs {
    /// How to print; a table on a terminal and JSON lines into a pipe if nothing is said
    #[arg(short, long, value_enum, value_name = "FORMAT", help_heading = "Output")]
    output: Option<ListFormat>,
    /// The same as -o json
    #[arg(long, conflicts_with = "output", help_heading = "Output")]
    json: bool,
    /// Which columns a table shows, by name
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Output")]
    pub(super) columns: Vec<String>,
    /// Sort by columns; a minus in front turns one round, as in --sort=-usd
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        allow_hyphen_values = true,
        help_heading = "Output"
    )]
    pub(super) sort: Vec<String>,
    /// At most so many
    #[arg(long, value_name = "COUNT", help_heading = "Output", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) limit: Option<u32>,
    /// Go on and show what changes; at most once in this span
    ///
    /// A table is drawn anew each time. Into a pipe go things that are new or have changed, as lines of JSON or
    /// documents of YAML like those of the list; one that is there no more, or no longer passes the filters, is told
    /// as {"event":"removed","kind":"machine","name":"m-17"}. With -o name only the new and changed are named.
    #[arg(short, long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "1s", value_parser = crate::at::nanos, help_heading = "Output")]
    pub(super) watch: Option<i64>,
    #[command(flatten)]
    pub(super) reach: Reach,
}

/// The flag of lists that can be seen as they were.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Back {
    /// As it was: a cycle (1842), a time (14:02, 2026-11-15T14:02:10Z) or how long ago (10m)
    #[arg(long, value_name = "CYCLE|TIME", conflicts_with = "watch")]
    pub(super) at: Option<At>,
}

/// The moment somebody means. The server's clock is asked where it matters.
pub(super) async fn moment(shard: &Shard, at: Option<&At>) -> Result<Option<Moment>, Trouble> {
    Ok(match at {
        None => None,
        Some(at) if at.needs_now() => Some(at.moment(shard.version().await?.now_unix_nanos)),
        Some(at) => Some(at.moment(0)),
    })
}

impl ListArgs {
    /// What is asked for, or what fits where the list goes.
    pub(super) fn format(&self, terminal: &Terminal) -> ListFormat {
        match self.output {
            Some(format) => format,
            None if self.json || !terminal.interactive => ListFormat::Json,
            None => ListFormat::Table,
        }
    }

    /// What the server is told: everything must come if it is to be sorted here.
    pub(super) fn server_limit(&self) -> u32 {
        if self.sort.is_empty() { self.limit.unwrap_or(0) } else { 0 }
    }
}

/// A piece of a list.
pub(super) struct Page<T> {
    pub(super) as_of: Option<AsOf>,
    pub(super) items: Vec<T>,
}

/// A list as it comes.
pub(super) type Pages<T> = Pin<Box<dyn Stream<Item = Result<Page<T>, Status>>>>;

/// Makes pages of the messages of one call.
pub(super) fn pages<M: 'static, T: 'static>(
    stream: Streaming<M>,
    open: impl Fn(M) -> (Option<AsOf>, Vec<T>) + 'static,
) -> Pages<T> {
    Box::pin(stream.map(move |message| {
        message.map(|message| {
            let (as_of, items) = open(message);
            Page { as_of, items }
        })
    }))
}

/// One page that is all.
pub(super) fn single<T: 'static>(as_of: Option<AsOf>, items: Vec<T>) -> Pages<T> {
    Box::pin(tokio_stream::once(Ok(Page { as_of, items })))
}

/// Something that can be listed.
pub(super) trait Listing {
    /// One of them.
    type Item: Message + Default + 'static;
    /// The message's name in the proto file.
    const MESSAGE: &'static str;
    /// What one is called.
    const NOUN: &'static str;

    /// The columns a table adds up below its last row.
    const SUMS: &'static [&'static str] = &[];

    /// Adds one of them to the sum of those before it.
    fn add(_total: &mut Self::Item, _item: &Self::Item) {}

    /// All columns there are.
    fn columns() -> Vec<Column<Self::Item>>;

    /// A column that is made from its name, as those of labels are.
    fn column_named(_: &str) -> Option<Column<Self::Item>> {
        None
    }

    /// By what it can be named in other commands.
    fn name(item: &Self::Item) -> String;

    /// Whether the newest comes first, so that a watch must turn the list round.
    fn newest_first() -> bool {
        false
    }

    /// The name somebody asks for, which must be there: an empty answer to it is a mistake.
    fn asks_for(&self) -> Option<&str> {
        None
    }

    /// By which column a table is sorted if nobody says.
    fn usual_order() -> Option<&'static str> {
        None
    }

    /// Which moment is asked about, if not now.
    fn at(&self) -> Option<&At> {
        None
    }

    /// Asks for the list. `full` if details beyond the usual columns will be shown.
    async fn list(&self, shard: &Shard, at: Option<Moment>, full: bool)
    -> Result<Pages<Self::Item>, Trouble>;
}
