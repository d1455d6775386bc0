//! `bigfleet get providers`.

use bigfleet_view::v1::{ListProvidersRequest, Moment, Provider, ProviderBrief};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use crate::at::At;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::words::{age, short_span, thousands};

/// The providers machines come from, and when each was last heard.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get providers
  bigfleet get providers -o wide --watch=5s
  bigfleet get providers --at 14:02")]
pub(crate) struct Args {
    /// Only those whose name begins so
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

pub(super) fn brief(provider: &Provider) -> ProviderBrief {
    provider.brief.clone().unwrap_or_default()
}

pub(super) fn status(provider: &Provider) -> Cell {
    let mut words = Vec::new();
    if !provider.list_error.is_empty() {
        let again =
            if provider.failures > 1 { format!(" ({} times)", provider.failures) } else { String::new() };
        words.push(format!("listing fails{again}: {}", provider.list_error));
    }
    if provider.held {
        words.push(format!(
            "a listing that lost {} machines is held, seen {} of {} times",
            thousands(provider.held_missing.into()),
            provider.held_seen,
            provider.held_of
        ));
    }
    if brief(provider).stale {
        words.push("stale: nothing is taken away on its word".into());
    }
    if words.is_empty() { Cell::toned("ok", Tone::Good) } else { Cell::toned(words.join("; "), Tone::Bad) }
}

impl Listing for Args {
    type Item = Provider;
    const MESSAGE: &'static str = "Provider";
    const NOUN: &'static str = "provider";

    fn columns() -> Vec<Column<Provider>> {
        vec![
            Column::new("name", |provider, _| brief(provider).name),
            Column::number(
                "machines",
                |provider| brief(provider).machines.into(),
                |provider, _| thousands(brief(provider).machines.into()),
            ),
            Column::number(
                "heard",
                |provider| -(brief(provider).heard_unix_nanos as f64),
                |provider, now| age(brief(provider).heard_unix_nanos, now),
            ),
            Column::new("status", |provider, _| status(provider)).shrinks(),
            Column::number(
                "full-list",
                |provider: &Provider| -(provider.last_full_list_unix_nanos as f64),
                |provider, now| age(provider.last_full_list_unix_nanos, now),
            )
            .wide(),
            Column::new("lists", |provider: &Provider, _| {
                let how = if provider.incremental { "changes" } else { "everything" };
                format!("{how} every {}", short_span(provider.list_every_nanos))
            })
            .wide(),
            Column::new("stale-after", |provider: &Provider, _| short_span(provider.stale_after_nanos))
                .wide(),
            Column::new(
                "takes-back",
                |provider: &Provider, _| {
                    if provider.supports_delete { "yes" } else { "no" }
                },
            )
            .wide(),
        ]
    }

    fn name(provider: &Provider) -> String {
        brief(provider).name
    }

    fn asks_for(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Provider>, Trouble> {
        let request = ListProvidersRequest { prefix: self.name.clone().unwrap_or_default(), at };
        let stream = shard.ask(|mut client| async move { client.list_providers(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.providers)))
    }
}
