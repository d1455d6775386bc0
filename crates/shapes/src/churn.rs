//! Churn: what an ordinary minute changes.

use std::collections::{BTreeMap, BTreeSet};

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_scenario::Scenario;
use bigfleet_scenario::seed::Seed;

use crate::change::{Change, pieces, resized, roll_ups, set_pieces};
use crate::floor::weighted;
use crate::settled::{bind, stamp, unbind};

/// The most an existing row changes by.
const SWING: f64 = 0.3;
/// How often a fitting machine or need is looked for before the draw is given up.
const TRIES: usize = 200;

/// A `fraction` of the machines and of the needs, changed; 0.001 is the usual one.
///
/// Of the changed machines 30 % were Idle and are now Configured for a plain need they match, 25 % were
/// Speculative and are being created for one, 20 % were Configured and are Idle now, 5 % were Configured and have
/// failed, and 20 % are spot machines whose price moved by up to a fifth. Of the changed rows, at least three,
/// one is new, one is gone and the others ask for up to 30 % more or less; each comes with its cluster's
/// whole roll-up.
pub fn churn(scenario: &Scenario, seed: u64, fraction: f64) -> Vec<Change> {
    let mut seed = Seed::new(seed);
    let machines = (scenario.machines.len() as f64 * fraction).round() as usize;
    let rows = (scenario.needs.len() as f64 * fraction).round() as usize;
    let mut changes = machine_changes(scenario, machines, &mut seed.fork());
    changes.extend(need_changes(scenario, rows.max(3), &mut seed.fork()));
    changes
}

/// New roll-ups of so many clusters: in each, one row asks for up to 30 % more or less.
pub fn reports(scenario: &Scenario, seed: u64, clusters: usize) -> Vec<Change> {
    let mut seed = Seed::new(seed);
    let mut roll_ups: Vec<_> = roll_ups(scenario).into_iter().collect();
    let mut changes = Vec::with_capacity(clusters);
    while changes.len() < clusters && !roll_ups.is_empty() {
        let (cluster, mut rows) = roll_ups.swap_remove(seed.below(roll_ups.len() as u64) as usize);
        let at = seed.below(rows.len() as u64) as usize;
        resize(&mut rows[at], &mut seed);
        changes.push(Change::Needs { cluster, rows });
    }
    changes
}

/// Makes a row ask for another number of pieces.
fn resize(row: &mut Need, seed: &mut Seed) {
    let before = pieces(row);
    let after = resized(before, SWING, seed);
    set_pieces(row, if after == before { before + 1 } else { after });
}

fn machine_changes(scenario: &Scenario, count: usize, seed: &mut Seed) -> Vec<Change> {
    let mut changed: BTreeMap<usize, Machine> = BTreeMap::new();
    let mut tries = 0;
    while changed.len() < count && tries < count * TRIES {
        tries += 1;
        let kind = KINDS[weighted(seed, KINDS.map(|(weight, _)| weight))].1;
        let at = (0..TRIES).map(|_| seed.below(scenario.machines.len() as u64) as usize);
        let at = at.into_iter().find(|at| !changed.contains_key(at) && kind.is_open(&scenario.machines[*at]));
        let Some(at) = at else { continue };
        let mut machine = scenario.machines[at].clone();
        if kind.happen(&mut machine, scenario, seed) {
            changed.insert(at, machine);
        }
    }
    changed.into_values().map(Change::Machine).collect()
}

/// What may happen to a machine, with how often it does.
const KINDS: [(u64, Kind); 5] =
    [(30, Kind::Joined), (25, Kind::Bought), (20, Kind::Left), (5, Kind::Died), (20, Kind::Repriced)];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Joined,
    Bought,
    Left,
    Died,
    Repriced,
}

impl Kind {
    /// Whether it may happen to this machine.
    fn is_open(self, machine: &Machine) -> bool {
        match self {
            Self::Joined => machine.state == MachineState::Idle,
            Self::Bought => machine.state == MachineState::Speculative,
            Self::Left | Self::Died => machine.state == MachineState::Configured,
            Self::Repriced => machine.capacity_type == CapacityType::Spot,
        }
    }

    /// Lets it happen, if a need can be found that it happens for.
    fn happen(self, machine: &mut Machine, scenario: &Scenario, seed: &mut Seed) -> bool {
        match self {
            Self::Joined | Self::Bought => {
                let Some(need) = plain_need_for(machine, scenario, seed) else { return false };
                let stamp = stamp(&need.cluster, &need.profile, &need.group);
                if self == Self::Joined {
                    bind(machine, stamp);
                } else {
                    machine.state = MachineState::Creating;
                    machine.assigned = stamp;
                }
            }
            Self::Left => unbind(machine, scenario.now_unix_nanos),
            Self::Died => {
                machine.state = MachineState::Failed;
                machine.last_error = "host stopped answering".into();
            }
            Self::Repriced => {
                let factor = 0.8 + 0.4 * seed.unit();
                machine.price_usd_per_hour = (machine.price_usd_per_hour * factor * 1e4).round() / 1e4;
            }
        }
        true
    }
}

fn plain_need_for<'a>(machine: &Machine, scenario: &'a Scenario, seed: &mut Seed) -> Option<&'a Need> {
    let mut drawn = (0..TRIES).map(|_| seed.pick(&scenario.needs));
    drawn.find(|need| {
        let fits = need.profile.same().is_none() && need.fits_on(machine.provides());
        fits && need.profile.matches(machine.facts())
    })
}

fn need_changes(scenario: &Scenario, count: usize, seed: &mut Seed) -> Vec<Change> {
    let mut roll_ups = roll_ups(scenario);
    let mut touched = BTreeSet::new();
    for number in 0..count.min(scenario.needs.len()) {
        let drawn = seed.pick(&scenario.needs).clone();
        let rows = roll_ups.get_mut(&drawn.cluster).expect("every need's cluster has a roll-up");
        let Some(at) = rows.iter().position(|row| row.key() == drawn.key()) else { continue };
        match number {
            0 => {
                rows.remove(at);
            }
            1 => rows.extend(newcomer(rows, scenario, seed)),
            _ => resize(&mut rows[at], seed),
        }
        touched.insert(drawn.cluster);
    }
    let changed = |cluster| roll_ups.remove(&cluster).map(|rows| Change::Needs { cluster, rows });
    touched.into_iter().filter_map(changed).collect()
}

/// A row the cluster does not have yet: one of its plain rows with another reclamation penalty.
fn newcomer(rows: &[Need], scenario: &Scenario, seed: &mut Seed) -> Option<Need> {
    let mut row = rows.iter().find(|row| row.profile.same().is_none())?.clone();
    let old = row.profile.clone();
    let mut profiles = PenaltyBucket::all().map(|reclamation| {
        let (requirements, spread) = (old.requirements().to_vec(), old.spread().to_vec());
        Profile::new(requirements, spread, old.priority(), old.interruption(), reclamation)
    });
    row.profile = profiles.find(|profile| rows.iter().all(|row| *row.profile != *profile))?.into();
    row.first_seen_unix_nanos = scenario.now_unix_nanos;
    set_pieces(&mut row, 1 + seed.below(20));
    Some(row)
}
