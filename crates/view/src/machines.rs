//! Lists of machines, and of what is free among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::MachineState;
use tonic::Status;

use crate::convert::amounts;
use crate::filter::Filter;
use crate::known::{Claims, Known};
use crate::names::find_need;
use crate::pages::Pages;
use crate::service::View;
use crate::shards::Shards;
use crate::snapshot::{Walk, blocking};
use crate::v1;

/// Machines on one page with all detail; brief ones come in slices as they are.
const FULL_PAGE: usize = 500;
/// Offers on one page.
const OFFER_PAGE: usize = 1000;

impl<S: Shards> View<S> {
    pub(crate) async fn list_machines(
        &self,
        request: v1::ListMachinesRequest,
        pages: Pages<v1::MachinePage>,
    ) -> Result<(), Status> {
        let detail = request.detail();
        let snapshot = self.snapshot(request.at).await?;
        if let Some(filter) = request.filter.as_ref().filter(|filter| !filter.cluster.is_empty()) {
            self.check_cluster(&snapshot, &filter.cluster).await?;
        }
        let filter = Filter::new(request.filter, &snapshot.fleet)?;
        let mut left = if request.limit == 0 { usize::MAX } else { request.limit as usize };
        let (mut skip, mut matching) = (request.skip, 0);
        let mut known = Some(match &snapshot.past {
            Some(past) => past.machines.len() as u64,
            None => self.shards.inspect(|shard, _| shard.machine_count() as u64).await?,
        });
        let (as_of, past, fleet) = (snapshot.as_of, snapshot.past, snapshot.fleet);
        // The fork has served then: kept any longer, it would make the shard copy what it changes.
        let claims = blocking(move || Ok(Claims::of(&fleet))).await?;
        let size = if detail == v1::Detail::Full { FULL_PAGE } else { crate::known::SLICE };
        let page = |machines, known| v1::MachinePage {
            as_of: Some(as_of.clone()),
            machines,
            known,
            ..v1::MachinePage::default()
        };
        let mut walk = Walk::begin(past.as_ref());
        while (left > 0 || request.count)
            && let Some(mut slice) = self.next_slice(&mut walk).await?
        {
            for one in &mut slice {
                one.claimed_by = claims.claimant(&one.machine.id).cloned();
            }
            slice.retain(|one| filter.admits(one));
            matching += slice.len() as u64;
            let skipped = (slice.len() as u64).min(skip);
            skip -= skipped;
            let slice = &slice[skipped as usize..];
            let slice = &slice[..slice.len().min(left)];
            left -= slice.len();
            let slice = self.expectations(slice.to_vec(), as_of.now_unix_nanos).await?;
            for part in slice.chunks(size) {
                let message = |(one, expected): &(Known, Option<v1::Expected>)| v1::Machine {
                    expected: *expected,
                    ..one.message(detail)
                };
                let machines = part.iter().map(message).collect();
                pages.send(page(machines, known.take())).await?;
            }
        }
        if known.is_some() || request.count {
            let matching = request.count.then_some(matching);
            pages.send(v1::MachinePage { matching, ..page(Vec::new(), known) }).await?;
        }
        Ok(())
    }

    pub(crate) async fn list_offers(
        &self,
        request: v1::ListOffersRequest,
        pages: Pages<v1::OfferPage>,
    ) -> Result<(), Status> {
        let snapshot = self.snapshot(request.at).await?;
        let filter = Filter::new(request.filter, &snapshot.fleet)?;
        let need = if request.need.is_empty() {
            None
        } else {
            let key = find_need(&snapshot.fleet, &request.need)?;
            snapshot.fleet.need(&key).map(|demand| demand.need.clone())
        };
        let (as_of, past) = (snapshot.as_of, snapshot.past);
        drop(snapshot.fleet);
        let mut lots: BTreeMap<Sort, v1::Offer> = BTreeMap::new();
        let mut walk = Walk::begin(past.as_ref());
        while let Some(slice) = self.next_slice(&mut walk).await? {
            for one in &slice {
                let machine = &one.machine;
                let is_free = matches!(machine.state, MachineState::Idle | MachineState::Speculative);
                let serves = need.as_ref().is_none_or(|need| {
                    need.profile.matches(machine.facts()) && need.fits_on(machine.provides())
                });
                if is_free && one.counts && serves && filter.admits(one) {
                    count(&mut lots, one);
                }
            }
        }
        let mut offers: Vec<v1::Offer> = lots.into_values().collect();
        offers.sort_by(|a, b| a.min_usd_per_hour.total_cmp(&b.min_usd_per_hour));
        let total = offers.len();
        let most = if request.limit == 0 { total } else { (request.limit as usize).min(total) };
        offers.truncate(most);
        let mut first = true;
        let mut parts = offers.chunks(OFFER_PAGE);
        loop {
            let part = parts.next();
            if part.is_none() && !first {
                return Ok(());
            }
            let offers = part.unwrap_or_default().to_vec();
            let total = first.then_some(total as u64);
            pages.send(v1::OfferPage { as_of: Some(as_of.clone()), offers, total }).await?;
            first = false;
        }
    }
}

/// What makes machines the same sort of offer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Sort {
    provider: Arc<str>,
    capacity_type: CapacityType,
    instance_type: Box<str>,
    zone: Box<str>,
}

fn count(lots: &mut BTreeMap<Sort, v1::Offer>, one: &Known) {
    let machine = &*one.machine;
    let sort = Sort {
        provider: one.provider.clone(),
        capacity_type: machine.capacity_type,
        instance_type: machine.instance_type.clone(),
        zone: machine.zone.clone(),
    };
    let offer = lots.entry(sort).or_insert_with(|| v1::Offer {
        provider: one.provider.to_string(),
        instance_type: machine.instance_type.to_string(),
        zone: machine.zone.to_string(),
        capacity_type: machine.capacity_type.to_wire(),
        min_usd_per_hour: f64::INFINITY,
        min_interruption_probability: f64::INFINITY,
        price_source: Some(one.price_source()),
        ..v1::Offer::default()
    });
    match machine.state {
        MachineState::Idle => offer.idle += 1,
        _ => offer.speculative += 1,
    }
    let (price, risk) = (machine.price_usd_per_hour, machine.interruption_probability);
    if price < offer.min_usd_per_hour {
        offer.min_usd_per_hour = price;
        offer.provides = amounts(machine.provides());
    }
    offer.max_usd_per_hour = offer.max_usd_per_hour.max(price);
    offer.min_interruption_probability = offer.min_interruption_probability.min(risk);
    offer.max_interruption_probability = offer.max_interruption_probability.max(risk);
}
