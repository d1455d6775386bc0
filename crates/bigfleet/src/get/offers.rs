//! `bigfleet get offers`.

use bigfleet_view::v1::{ListOffersRequest, Moment, Offer};

use super::column::Column;
use super::listing::{Back, ListArgs, Listing, Pages, pages};
use super::machines::Filter;
use crate::at::At;
use crate::output::{Cell, Tone};
use crate::reach::{Shard, Trouble};
use crate::words::{age, amounts, capacity_type, hourly, probability, thousands};

/// Free capacity by provider, type, zone and capacity type: hardware that stands ready, and quota.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  bigfleet get offers --capacity spot --sort usd
  bigfleet get offers --need 77aa88bb
  bigfleet get offers --at 14:02")]
pub(crate) struct Args {
    #[command(flatten)]
    filter: Filter,
    /// Only what could serve this need
    #[arg(long, value_name = "NEED")]
    need: Option<String>,
    #[command(flatten)]
    back: Back,
    #[command(flatten)]
    pub(super) list: ListArgs,
}

/// One figure, or the two ends of a range.
fn range(low: f64, high: f64, words: fn(f64) -> String) -> String {
    let (first, last) = (words(low), words(high));
    if first == last { first } else { format!("{}..{last}", first.trim_end_matches("/h")) }
}

fn risk(offer: &Offer) -> Cell {
    let text = range(offer.min_interruption_probability, offer.max_interruption_probability, probability);
    // Spot that is never interrupted is a figure nobody looked up.
    let doubtful = offer.capacity_type() == bigfleet_proto::v1alpha1::CapacityType::Spot
        && offer.min_interruption_probability == 0.0;
    Cell::toned(text, if doubtful { Tone::Warn } else { Tone::Plain })
}

impl Listing for Args {
    type Item = Offer;
    const MESSAGE: &'static str = "Offer";
    const NOUN: &'static str = "offer";

    fn columns() -> Vec<Column<Offer>> {
        vec![
            Column::new("type", |offer: &Offer, _| offer.instance_type.clone()).shrinks(),
            Column::new("zone", |offer: &Offer, _| offer.zone.clone()).shrinks(),
            Column::new("capacity", |offer: &Offer, _| capacity_type(offer.capacity_type)),
            Column::new("provider", |offer: &Offer, _| offer.provider.clone()).shrinks(),
            Column::number(
                "idle",
                |offer: &Offer| offer.idle.into(),
                |offer, _| thousands(offer.idle.into()),
            ),
            Column::number(
                "quota",
                |offer: &Offer| offer.speculative.into(),
                |offer, _| thousands(offer.speculative.into()),
            ),
            Column::number(
                "usd",
                |offer: &Offer| offer.min_usd_per_hour,
                |offer, _| range(offer.min_usd_per_hour, offer.max_usd_per_hour, hourly),
            ),
            Column::number(
                "risk",
                |offer: &Offer| offer.max_interruption_probability,
                |offer, _| risk(offer),
            ),
            Column::new("provides", |offer: &Offer, _| amounts(&offer.provides)).shrinks(),
            Column::number(
                "price-age",
                |offer: &Offer| {
                    -(offer.price_source.as_ref().map_or(0, |source| source.heard_unix_nanos) as f64)
                },
                |offer, now| {
                    age(offer.price_source.as_ref().map_or(0, |source| source.heard_unix_nanos), now)
                },
            )
            .wide(),
        ]
    }

    fn name(offer: &Offer) -> String {
        format!(
            "{}/{}/{}/{}",
            offer.provider,
            offer.instance_type,
            offer.zone,
            capacity_type(offer.capacity_type)
        )
    }

    fn at(&self) -> Option<&At> {
        self.back.at.as_ref()
    }

    async fn list(&self, shard: &Shard, at: Option<Moment>, _: bool) -> Result<Pages<Offer>, Trouble> {
        let request = ListOffersRequest {
            filter: Some(self.filter.message()),
            need: self.need.clone().unwrap_or_default(),
            limit: self.list.server_limit(),
            at,
        };
        let stream = shard.ask(|mut client| async move { client.list_offers(request).await }).await?;
        Ok(pages(stream, |page| (page.as_of, page.offers)))
    }
}
