//! Who asks for what: every row of demand, all but the amounts of the plain ones.
//!
//! Clusters live in one region each, in turn. Cluster `i` draws rows in proportion to 1 / √(i + 10): the
//! largest of two thousand has about 190 rows and the smallest about 13. Every cluster gets a cpu-batch row
//! first. Rows come archetype by archetype, exactly as many as the weights say.
//!
//! A gang row is either larger than any machine (2 or more of the largest it may use) or small: two pieces
//! or more that fit one machine. Small gangs come in packs of one to six alike, which a cycle folds.
//! Of the gangs, large or small, 6 % are new and have no machines yet.
//!
//! Rows were first seen between an hour and thirty days ago; large gangs up to thirty days before that, so that
//! they come first among their equals and keep their racks; new gangs within the last ten minutes.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_model::machine::MachineState;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::Requirement;
use bigfleet_scenario::seed::Seed;

use crate::archetype::{Archetype, bucket};
use crate::ask::{Ask, Form};
use crate::ground::Ground;
use crate::offer::OFFERS;
use crate::place::{RACK, REGIONS};
use crate::shape::Size;
use crate::{NOW_UNIX_NANOS, Variant, scarce};

const SECOND_NANOS: i64 = 1_000_000_000;
/// The share of gangs that have no machines yet.
const NEW_GANGS: f64 = 0.06;
/// The most small gangs of one pack.
const LARGEST_PACK: u64 = 6;

/// What the demand is drawn from.
pub(crate) struct Demand<'a> {
    size: Size,
    variant: Variant,
    ground: &'a Ground,
    /// Whether an Idle or Speculative machine of the offer exists: what folding may count on.
    is_free: Vec<bool>,
    /// Running sums of the clusters' weights.
    cluster_weights: Vec<f64>,
    /// (cluster, fingerprint after folding) of all asks but large gangs.
    taken: BTreeSet<(u32, Box<str>)>,
    gangs: u32,
    asks: Vec<Ask>,
    seed: Seed,
}

/// Rows still to be drawn for one archetype.
struct Quota {
    archetype: Archetype,
    plain: u32,
    gangs: u32,
}

impl<'a> Demand<'a> {
    pub(crate) fn new(size: Size, variant: Variant, ground: &'a Ground, seed: Seed) -> Self {
        let mut is_free = vec![false; OFFERS];
        for slot in &ground.floor.slots {
            is_free[slot.offer as usize] |= slot.state != MachineState::Configured;
        }
        let mut sum = 0.0;
        let weights = (0..size.clusters).map(|cluster| {
            sum += 1.0 / f64::from(cluster + 10).sqrt();
            sum
        });
        let cluster_weights = weights.collect();
        let (taken, asks) = (BTreeSet::new(), Vec::new());
        Self { size, variant, ground, is_free, cluster_weights, taken, gangs: 0, asks, seed }
    }

    /// All asks.
    pub(crate) fn draw(mut self) -> Vec<Ask> {
        for mut quota in self.quotas() {
            if quota.archetype == Archetype::CpuBatch {
                for cluster in 0..self.size.clusters.min(quota.plain) {
                    while !self.plain(cluster, quota.archetype) {}
                    quota.plain -= 1;
                }
            }
            while quota.plain > 0 {
                let cluster = self.cluster();
                quota.plain -= u32::from(self.plain(cluster, quota.archetype));
            }
            while quota.gangs > 0 {
                let cluster = self.cluster();
                quota.gangs -= self.gang(cluster, quota.archetype, quota.gangs);
            }
        }
        self.asks
    }

    /// Exact row counts by archetype: the weights first, then the gangs a shape asks for beyond them.
    fn quotas(&self) -> Vec<Quota> {
        let rows = Archetype::ALL.map(|archetype| self.size.needs * archetype.weight() / 100);
        let mut quotas: Vec<Quota> = Archetype::ALL
            .into_iter()
            .zip(rows)
            .map(|(archetype, rows)| {
                let gangs = if archetype.is_gang() { rows } else { 0 };
                Quota { archetype, plain: rows - gangs, gangs }
            })
            .collect();
        assert_eq!(rows.iter().sum::<u32>(), self.size.needs, "the weights divide the rows of every shape");
        let wanted = self.size.same_needs.unwrap_or(0);
        let plain: u32 = quotas.iter().map(|q| q.plain).sum();
        let mut more = wanted.saturating_sub(self.size.needs - plain);
        let mut left = plain;
        for quota in quotas.iter_mut().filter(|q| q.plain > 0) {
            // In proportion; the last archetype takes what rounding left.
            let moved = u64::from(more) * u64::from(quota.plain) / u64::from(left);
            left -= quota.plain;
            quota.plain -= moved as u32;
            quota.gangs += moved as u32;
            more -= moved as u32;
        }
        quotas
    }

    fn cluster(&mut self) -> u32 {
        let at = self.seed.unit() * self.cluster_weights[self.cluster_weights.len() - 1];
        self.cluster_weights.partition_point(|sum| *sum <= at) as u32
    }

    /// Adds a plain row, unless the cluster has one of that profile.
    fn plain(&mut self, cluster: u32, archetype: Archetype) -> bool {
        let set = self.ground.sets.pick(archetype, cluster as usize % REGIONS.len(), &mut self.seed);
        let mut ask = self.blank(cluster, set, Form::Plain);
        // A few attract many machines, most attract few.
        ask.weight = 1.0 / (0.05 + self.seed.unit());
        self.add(ask)
    }

    /// Adds one gang or one pack of up to `most` gangs; says how many rows it added.
    fn gang(&mut self, cluster: u32, archetype: Archetype, most: u32) -> u32 {
        let set = self.ground.sets.pick(archetype, cluster as usize % REGIONS.len(), &mut self.seed);
        let large = self.seed.chance(archetype.large_gang_share());
        let mut ask = self.blank(cluster, set, if large { Form::Gang } else { Form::Folded });
        let drawn = self.ground.set(set);
        if large {
            let machines = 2 + self.seed.below(self.size.largest_gang - 1);
            ask.count = machines * drawn.largest.units(ask.unit);
        } else {
            let free: Vec<u16> = drawn.offers.iter().copied().filter(|o| self.is_free[*o as usize]).collect();
            if free.is_empty() {
                return 0;
            }
            let machine = self.ground.offers[*self.seed.pick(&free) as usize].allocatable;
            let room = machine.units(ask.unit);
            ask.count = (room as f64 * (0.3 + 0.7 * self.seed.unit())) as u64;
            ask.count = ask.count.clamp(room.min(2), room);
            ask.rows = (1 + self.seed.below(LARGEST_PACK) as u32).min(most);
        }
        if large {
            ask.first_seen_unix_nanos -= 30 * 86_400 * SECOND_NANOS;
        }
        let new_gangs = if self.variant == Variant::Scarce { scarce::NEW_GANGS } else { NEW_GANGS };
        ask.served = !self.seed.chance(new_gangs);
        if !ask.served {
            ask.first_seen_unix_nanos = NOW_UNIX_NANOS - self.nanos_below(600);
        }
        ask.first_gang = self.gangs;
        let rows = ask.rows;
        if !self.add(ask) {
            return 0;
        }
        self.gangs += rows;
        rows
    }

    fn blank(&mut self, cluster: u32, set: u32, form: Form) -> Ask {
        let drawn = self.ground.set(set);
        let terms = &drawn.terms;
        let (interruption, reclamation) = *self.seed.pick(terms.archetype.penalties());
        let priority = match self.variant {
            Variant::Cold => terms.priority,
            Variant::Scarce => scarce::priority(cluster, terms.archetype),
        };
        let mut requirements = drawn.requirements.clone();
        let spread = if form == Form::Plain { terms.spread() } else { Vec::new() };
        if form != Form::Plain {
            requirements.push(Requirement::same(RACK));
        }
        let profile = Profile::new(requirements, spread, priority, bucket(interruption), bucket(reclamation));
        let profile = Arc::new(profile);
        let served_as = if form == Form::Folded { profile.without_same().into() } else { profile.clone() };
        // From an hour to thirty days ago.
        let age_nanos = 3_600 * SECOND_NANOS + self.nanos_below(30 * 86_400 - 3_600);
        Ask {
            cluster,
            set,
            form,
            profile,
            served_as,
            rows: 1,
            first_gang: 0,
            first_seen_unix_nanos: NOW_UNIX_NANOS - age_nanos,
            unit: terms.unit,
            count: 1,
            served: true,
            weight: 0.0,
        }
    }

    /// Whole seconds below so many, in nanoseconds.
    fn nanos_below(&mut self, secs: u32) -> i64 {
        i64::from(self.seed.below(secs.into()) as u32) * SECOND_NANOS
    }

    fn add(&mut self, ask: Ask) -> bool {
        let fresh =
            ask.form == Form::Gang || self.taken.insert((ask.cluster, ask.served_as.fingerprint().into()));
        if fresh {
            self.asks.push(ask);
        }
        fresh
    }
}
