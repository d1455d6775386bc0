//! What providers say: how old it is, and whether it can be true. And what keeps the shard from acting.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_view::v1::{
    GetRailsRequest, GetSummaryRequest, ListMachinesRequest, ListOffersRequest, ListProvidersRequest, Offer,
    Provider, Rails, Summary,
};
use tokio_stream::StreamExt;

use super::Finding;
use crate::reach::{Shard, Trouble};
use crate::words::{capacity_type, count, one_of, probability, span, thousands};

/// An interruption probability an hour above this is mostly a monthly figure in disguise.
const PROBABLY_MONTHLY: f64 = 0.02;

/// Looks at providers, their offers, and the rails.
pub(super) async fn check(shard: &Shard, simulated: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    match providers(shard).await {
        Ok((providers, now)) => findings.extend(providers.iter().map(|provider| heard(provider, now))),
        Err(trouble) => findings.push(unanswered("providers", &trouble)),
    }
    match offers(shard).await {
        Ok(offers) => findings.extend(prices(&offers, simulated)),
        Err(trouble) => findings.push(unanswered("offers", &trouble)),
    }
    match fleet(shard).await {
        Ok(found) => findings.extend(found),
        Err(trouble) => findings.push(unanswered("fleet", &trouble)),
    }
    match shard.ask(|mut client| async move { client.get_rails(GetRailsRequest::default()).await }).await {
        Ok(rails) => findings.extend(rails_of(&rails)),
        Err(trouble) => findings.push(unanswered("rails", &trouble)),
    }
    findings
}

/// Whether everybody has what they asked for, and every zone still has machines that work.
async fn fleet(shard: &Shard) -> Result<Vec<Finding>, Trouble> {
    let request = GetSummaryRequest { decisions: 1 };
    let summary = shard.ask(|mut client| async move { client.get_summary(request).await }).await?;
    let mut found = vec![unmet(&summary)];
    let request = ListMachinesRequest::default();
    let mut stream = shard.ask(|mut client| async move { client.list_machines(request).await }).await?;
    let mut zones: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    while let Some(page) = stream.next().await {
        for machine in page.map_err(|status| shard.trouble(&status))?.machines {
            // Quota says nothing about the zone: there is no hardware behind it yet.
            if machine.host.is_empty() {
                continue;
            }
            let (works, broken) = zones.entry(machine.zone.clone()).or_default();
            let is_broken = !machine.trouble.is_empty() || machine.state() == MachineState::Failed;
            *if is_broken { broken } else { works } += 1;
        }
    }
    let dead = zones.into_iter().filter(|(_, (works, broken))| *works == 0 && *broken > 0);
    found.extend(dead.map(|(zone, (_, broken))| {
        let says = format!("zone {zone} is dead: all {} of it failed", count(broken, "machine"));
        Finding::problem(
            "zones",
            says,
            "ask its provider; `bigfleet get machines --troubled` has their errors",
        )
    }));
    Ok(found)
}

fn unmet(summary: &Summary) -> Finding {
    let needs = count(summary.needs.into(), "need");
    if summary.unmet == 0 {
        return Finding::ok("needs", format!("{needs}, none unmet"));
    }
    let worst = summary.worst.first().and_then(|worst| worst.need.as_ref());
    let name = worst.map(|need| need.id.clone()).unwrap_or_default();
    Finding::warning(
        "needs",
        format!("{} of {needs} unmet", summary.unmet),
        format!("bigfleet explain need {name} says why and what would help"),
    )
}

fn unanswered(check: &'static str, trouble: &Trouble) -> Finding {
    Finding::warning(check, format!("could not be looked at: {trouble}"), "")
}

async fn providers(shard: &Shard) -> Result<(Vec<Provider>, i64), Trouble> {
    let request = ListProvidersRequest::default();
    let mut stream = shard.ask(|mut client| async move { client.list_providers(request).await }).await?;
    let (mut all, mut now) = (Vec::new(), 0);
    while let Some(page) = stream.next().await {
        let page = page.map_err(|status| shard.trouble(&status))?;
        now = page.as_of.map_or(now, |as_of| as_of.now_unix_nanos);
        all.extend(page.providers);
    }
    Ok((all, now))
}

async fn offers(shard: &Shard) -> Result<Vec<Offer>, Trouble> {
    let request = ListOffersRequest::default();
    let mut stream = shard.ask(|mut client| async move { client.list_offers(request).await }).await?;
    let mut all = Vec::new();
    while let Some(page) = stream.next().await {
        all.extend(page.map_err(|status| shard.trouble(&status))?.offers);
    }
    Ok(all)
}

fn heard(provider: &Provider, now: i64) -> Finding {
    let brief = provider.brief.clone().unwrap_or_default();
    let name = &brief.name;
    if !provider.list_error.is_empty() {
        let says = format!("{name}: listing fails: {}", provider.list_error);
        return Finding::problem(
            "providers",
            says,
            "is it running, and is its address right? see the shard's --provider",
        );
    }
    if brief.heard_unix_nanos == 0 {
        let says = format!("{name} was not heard in this life of the shard");
        return Finding::problem("providers", says, "nothing is decided on its machines until it is");
    }
    let old = span(now.saturating_sub(brief.heard_unix_nanos));
    if brief.stale {
        let says = format!(
            "{name} was last heard {old} ago, which is too old (limit {})",
            span(provider.stale_after_nanos)
        );
        return Finding::problem(
            "providers",
            says,
            "nothing is reclaimed or given back on its word meanwhile",
        );
    }
    if provider.held {
        let says = format!(
            "{name} lost {} at once; the listing is held",
            count(provider.held_missing.into(), "machine")
        );
        return Finding::warning("providers", says, "if they are really gone, the next listings confirm it");
    }
    Finding::ok("providers", format!("{name}: {}, heard {old} ago", count(brief.machines.into(), "machine")))
}

/// Prices and probabilities that cannot be true.
fn prices(offers: &[Offer], simulated: bool) -> Vec<Finding> {
    let elastic =
        |offer: &&Offer| matches!(offer.capacity_type(), CapacityType::OnDemand | CapacityType::Spot);
    let spot = |offer: &&Offer| offer.capacity_type() == CapacityType::Spot;
    let names = |found: &[&Offer]| {
        let name = |offer: &&Offer| {
            format!("{} {} in {}", offer.instance_type, capacity_type(offer.capacity_type), offer.zone)
        };
        one_of(&found.iter().map(name).collect::<Vec<_>>(), 3)
    };
    let mut findings = Vec::new();
    let safe: Vec<&Offer> =
        offers.iter().filter(spot).filter(|offer| offer.min_interruption_probability == 0.0).collect();
    if !safe.is_empty() {
        let says = format!(
            "{} said to be never interrupted: {}",
            count(safe.len() as u64, "spot offer"),
            names(&safe)
        );
        let remedy = "have the provider report a probability; with 0, penalties have no effect on the choice";
        findings.push(Finding::problem("offers", says, remedy));
    }
    let free: Vec<&Offer> =
        offers.iter().filter(elastic).filter(|offer| offer.min_usd_per_hour == 0.0).collect();
    if !free.is_empty() {
        let says = format!("{} at no price: {}", count(free.len() as u64, "rented offer"), names(&free));
        findings.push(Finding::problem(
            "offers",
            says,
            "have the provider report a price; with 0 they are always bought first",
        ));
    }
    let risky: Vec<&Offer> =
        offers.iter().filter(|offer| offer.max_interruption_probability > PROBABLY_MONTHLY).collect();
    // The simulated cloud says its figures are an hour's, and they are.
    if let Some(worst) = risky.first().filter(|_| !simulated) {
        let says = format!(
            "{} above {}: {} says {}",
            count(risky.len() as u64, "interruption probability"),
            probability(PROBABLY_MONTHLY),
            names(&[worst]),
            probability(worst.max_interruption_probability)
        );
        findings.push(Finding::warning("offers", says, "the unit is an hour; is this a monthly figure?"));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            "offers",
            format!("{}, prices and probabilities are plausible", count(offers.len() as u64, "offer")),
        ));
    }
    findings
}

fn rails_of(rails: &Rails) -> Vec<Finding> {
    let mut findings = Vec::new();
    if rails.dry_run {
        findings.push(Finding::warning(
            "rails",
            "the whole shard rehearses",
            "start it without --dry-run to let it act",
        ));
    }
    if !rails.pauses.is_empty() {
        let says = format!("{} in force", count(rails.pauses.len() as u64, "pause"));
        findings.push(Finding::warning(
            "rails",
            says,
            "`bigfleet get rails` shows them, `bigfleet resume` ends them",
        ));
    }
    if !rails.held_rollups.is_empty() {
        let names: Vec<String> = rails.held_rollups.iter().map(|held| held.cluster.clone()).collect();
        let says = format!("the roll-up of {} is held: it asks for far less than before", one_of(&names, 3));
        findings.push(Finding::warning("rails", says, "the next roll-ups confirm it, if it is meant"));
    }
    if !rails.silent_clusters.is_empty() {
        let says = format!("{} never reported", one_of(&rails.silent_clusters, 5));
        findings.push(Finding::warning(
            "clusters",
            says,
            "nothing is reclaimed from them; is their operator running?",
        ));
    }
    if findings.is_empty() {
        findings.push(Finding::ok(
            "rails",
            format!("nothing is held back; {} under way", thousands(rails.moves)),
        ));
    }
    findings
}
