//! Scarcity: demand for twice of what there is.
//!
//! A fleet that has been short for a while has hardly anything left to give: 97 machines in 100 are
//! Configured, 1 Idle and 2 Speculative, whatever the shape's own mix. Every fifth cluster is a production
//! cluster: its needs stand at 1,000 and its critical ones at 1,000,000; the needs of all other clusters stand at
//! 100. So a fifth of the needs may preempt, and the machines of the other clusters are their victims. Of
//! the gangs, 30 % are new instead of 6 %.
//!
//! Gangs keep their size, for a gang larger than a rack would only be unsatisfiable. The plain needs of
//! production clusters grow by 40 %, a few percent of the fleet: they use up what is free, and most of them have
//! to preempt for the rest. The plain needs of the other clusters grow in proportion until the whole demand
//! is twice the supply. Supply and demand are measured in cpus.

use crate::archetype::Archetype;
use crate::ask::{Ask, Form};
use crate::ground::Ground;
use crate::shape::Size;

/// The share of gangs that have no machines yet.
pub(crate) const NEW_GANGS: f64 = 0.3;
/// One cluster in so many is a production cluster.
const PRODUCTION: u32 = 5;
/// What its plain needs want, over what is bound for them.
const RUSH: f64 = 1.4;
/// Demand over supply.
const SCARCITY: f64 = 2.0;

/// The size of a shape's scarce fleet.
pub(crate) fn size(size: Size) -> Size {
    Size { configured: size.machines / 100 * 97, idle: size.machines / 100, ..size }
}

/// The priority of a cluster's needs.
pub(crate) fn priority(cluster: u32, archetype: Archetype) -> i32 {
    match (is_production(cluster), archetype) {
        (true, Archetype::Critical) => 1_000_000,
        (true, _) => 1_000,
        (false, _) => 100,
    }
}

/// Makes the plain asks larger.
pub(crate) fn grow(asks: &mut [Ask], ground: &Ground) {
    for ask in asks.iter_mut().filter(|ask| ask.form == Form::Plain && is_production(ask.cluster)) {
        ask.count = scaled(ask.count, RUSH);
    }
    let is_other = |ask: &Ask| ask.form == Form::Plain && !is_production(ask.cluster);
    let supply: f64 =
        (0..ground.floor.slots.len()).map(|slot| ground.offer(slot).allocatable.0[0] as f64).sum();
    let demand: f64 = asks.iter().map(cpus).sum();
    let others: f64 = asks.iter().filter(|ask| is_other(ask)).map(cpus).sum();
    let factor = ((SCARCITY * supply - demand + others) / others).max(1.0);
    for ask in asks.iter_mut().filter(|ask| is_other(ask)) {
        ask.count = scaled(ask.count, factor);
    }
}

fn is_production(cluster: u32) -> bool {
    cluster.is_multiple_of(PRODUCTION)
}

/// All an ask wants, in thousandths of a cpu.
fn cpus(ask: &Ask) -> f64 {
    ask.total().0[0] as f64
}

fn scaled(count: u64, factor: f64) -> u64 {
    (count as f64 * factor).ceil() as u64
}
