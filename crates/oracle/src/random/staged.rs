//! Staged fleets: a handful of machines and needs set up so that one group of rules has something to decide.
//!
//! A world draws everything alike, and some rules need three things at once: a gang that is short, a domain it
//! is not in, and just enough victims there. Stages put these together and leave the rest to chance.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::requirement::{Operator, Requirement};
use bigfleet_model::resource::ResourceVec;
use bigfleet_model::spread::{TopologySpread, WhenUnsatisfiable};
use bigfleet_scenario::seed::Seed;

use super::machines::idle_since;
use super::world::{POOL, RACK, vector};
use super::{put_in_state, stamp};

/// What one stage has so far.
pub(super) struct Stage<'a> {
    seed: &'a mut Seed,
    /// Put before ids and clusters, so that several stages fit into one fleet.
    prefix: &'a str,
    pub(super) needs: Vec<Need>,
    pub(super) machines: Vec<Machine>,
}

/// One stage, drawn.
pub(super) fn stage<'a>(seed: &'a mut Seed, prefix: &'a str) -> Stage<'a> {
    let mut stage = Stage { seed, prefix, needs: Vec::new(), machines: Vec::new() };
    match stage.seed.below(10) {
        0..3 => stage.gang_that_must_make_room(),
        3 | 4 => stage.gang_that_must_choose(),
        5 | 6 => stage.gangs_that_fold(),
        7 => stage.needs_that_keep(),
        _ => stage.needs_that_spread(),
    }
    stage
}

/// Amounts in cpus, with memory beside them: so many of one, so many of the other.
fn size(cpus: u64, memory: u64) -> ResourceVec {
    vector([("cpu", cpus * 1_000), ("memory", memory)].into_iter().filter(|(_, amount)| *amount > 0))
}

impl Stage<'_> {
    fn gang_that_must_make_room(&mut self) {
        use MachineState::{Configured, Configuring, Draining, Idle, Speculative};
        let piece = 1 + self.seed.below(2);
        let pieces = 2 + self.seed.below(3);
        let priority = *self.seed.pick(&[1_000, 1_000, 600_000, 1_000_000]);
        let gang = self.gang("c1", priority, "g1", piece * pieces);
        self.fillers(&[0, 0, 100, 1_000]);
        for rack in ["r0", "r1", "r2"] {
            // A rack full of others' work, one with a little of everything, or one with hardly anything.
            let (states, count) = match self.seed.below(4) {
                0 | 1 => (
                    vec![Configured, Configured, Configured, Configured, Draining],
                    pieces + self.seed.below(3),
                ),
                2 => {
                    (vec![Configured, Configuring, Draining, Idle, Speculative], self.seed.below(pieces + 2))
                }
                _ => (vec![Configured, Configured, Idle], self.seed.below(2)),
            };
            for _ in 0..count {
                let state = *self.seed.pick(&states);
                let cpus = *self.seed.pick(&[piece, piece, 1, 2]);
                let memory = cpus * *self.seed.pick(&[4, 4, 4, 2, 8]);
                let at = self.machine(state, size(cpus, memory), rack);
                let priority = *self.seed.pick(&[0, 0, 1, 100, 1_000]);
                self.machines[at].assigned.priority = priority;
                if state.is_bound() && self.seed.chance(0.7) {
                    let other: Arc<str> = format!("{}c2", self.prefix).into();
                    put_in_state(&mut self.machines[at], state, &other);
                }
                if state == Draining && self.seed.chance(0.6) {
                    self.machines[at].draining_for = Some(gang.clone());
                }
            }
        }
    }

    fn gang_that_must_choose(&mut self) {
        use MachineState::{Configured, Configuring, Creating, Draining, Idle, Speculative};
        let gang = self.gang("c1", 100, "g1", 5);
        self.fillers(&[0, 0, 100]);
        let mut totals = Vec::new();
        let free_of_charge = self.seed.chance(0.4);
        let states = if self.seed.chance(0.5) {
            vec![Idle, Speculative]
        } else {
            vec![Configured, Configuring, Creating, Draining, Idle, Speculative, Speculative]
        };
        for rack in ["r0", "r1", "r2"] {
            let mut total = 0;
            for _ in 0..=self.seed.below(4) {
                let state = *self.seed.pick(&states);
                let cpus = *self.seed.pick(&[1, 2, 2, 4]);
                let at = self.machine(state, size(cpus, cpus * 4), rack);
                if free_of_charge {
                    self.machines[at].price_usd_per_hour = 0.0;
                }
                if self.seed.chance(0.3) {
                    self.stamp(at, &gang);
                }
                if state == Draining && self.seed.chance(0.7) {
                    self.machines[at].draining_for = Some(gang.clone());
                }
                total += cpus;
            }
            totals.push(total);
        }
        // Just enough for one of them, or a little less or more.
        let enough = *self.seed.pick(&totals) + self.seed.below(2);
        let wanted = enough.saturating_sub(self.seed.below(2)).max(5);
        self.needs[0].aggregate = size(wanted, wanted * 4);
        self.needs[0].parked = self.seed.chance(0.25);
    }

    fn gangs_that_fold(&mut self) {
        use MachineState::{Configured, Configuring, Creating, Draining, Idle, Speculative};
        for group in ["g1", "g2", "g3", "g4"].into_iter().take(2 + self.seed.below(3) as usize) {
            let cpus = *self.seed.pick(&[2, 2, 2, 4]);
            self.gang("c1", 100, group, cpus);
        }
        // Gangs of one profile fold together.
        if self.seed.chance(0.8) {
            let profile = self.needs[0].profile.clone();
            for need in &mut self.needs {
                need.profile = profile.clone();
            }
        }
        let mut keys: Vec<NeedKey> = self.needs.iter().map(Need::key).collect();
        let folded = NeedKey {
            fingerprint: self.needs[0].profile.without_same().fingerprint().into(),
            group: Arc::from(""),
            ..keys[0].clone()
        };
        if self.seed.chance(0.4) {
            // What the gangs become when they fold, wanted as such.
            let plain = Need {
                profile: Arc::new(self.needs[0].profile.without_same()),
                group: Arc::from(""),
                parked: false,
                ..self.needs[0].clone()
            };
            self.needs.push(plain);
        }
        self.fillers(&[0, 1_000]);
        keys.extend([folded.clone(), folded]);
        let states = [Configured, Configured, Configuring, Creating, Draining, Idle, Speculative];
        // Often only machines in one state are large enough for a gang.
        let only_large = self.seed.chance(0.4).then(|| *self.seed.pick(&states));
        for _ in 0..2 + self.seed.below(7) {
            let state = *self.seed.pick(&states);
            let is_small = only_large.is_some_and(|large| large != state);
            let cpus = if is_small { 1 } else { *self.seed.pick(&[1, 2, 2, 4]) };
            let rack = *self.seed.pick(&["r0", "r1"]);
            let at = self.machine(state, size(cpus, cpus * 4), rack);
            let key = self.seed.pick(&keys).clone();
            if self.seed.chance(0.7) {
                self.stamp(at, &key);
            }
            if state == Draining && self.seed.chance(0.8) {
                self.machines[at].draining_for = Some(self.seed.pick(&keys).clone());
            }
        }
    }

    fn needs_that_keep(&mut self) {
        use MachineState::{Configured, Configuring, Creating, Draining, Idle, Speculative};
        let count = 2 + self.seed.below(3);
        let mut keys = Vec::new();
        for number in 0..count {
            let priority = *self.seed.pick(&[0, 100, 100, 1_000]);
            let cluster = *self.seed.pick(&["c1", "c1", "c1", "c2"]);
            let group = if number == 0 { "" } else { *self.seed.pick(&["", "g1", "g2"]) };
            let requirements =
                if self.seed.chance(0.3) { vec![Requirement::is_in(RACK, ["r0"])] } else { Vec::new() };
            let profile = self.profile(requirements, Vec::new(), priority);
            let (cpus, memory) = (1 + self.seed.below(8), self.seed.below(24));
            keys.extend(self.ask(cluster, profile, group, size(cpus, memory), ResourceVec::ZERO));
        }
        for _ in 0..3 + self.seed.below(9) {
            let state = *self.seed.pick(&[
                Configured,
                Configured,
                Configured,
                Configured,
                Configuring,
                Creating,
                Draining,
                Idle,
                Speculative,
            ]);
            // Some hold much of one thing, some of the other.
            let (cpus, memory) = *self.seed.pick(&[(1, 4), (2, 8), (4, 2), (1, 16), (3, 0), (0, 9), (5, 12)]);
            let rack = *self.seed.pick(&["r0", "r1"]);
            let at = self.machine(state, size(cpus, memory), rack);
            let key = self.seed.pick(&keys).clone();
            if self.seed.chance(0.6) {
                self.stamp(at, &key);
            }
            if state == Draining && self.seed.chance(0.7) {
                self.machines[at].draining_for = Some(key);
            }
        }
    }

    fn needs_that_spread(&mut self) {
        use MachineState::{Configured, Configuring, Draining, Idle, Speculative};
        let mut keys = Vec::new();
        for group in ["", "g1", "g2"].into_iter().take(1 + self.seed.below(3) as usize) {
            let mode = *self.seed.pick(&[
                WhenUnsatisfiable::DoNotSchedule,
                WhenUnsatisfiable::DoNotSchedule,
                WhenUnsatisfiable::ScheduleAnyway,
            ]);
            let skew = 1 + self.seed.below(2) as i32;
            let priority = *self.seed.pick(&[0, 100, 1_000]);
            let profile = self.profile(Vec::new(), vec![TopologySpread::new(RACK, skew, mode)], priority);
            let cpus = 2 + self.seed.below(5);
            let cluster = *self.seed.pick(&["c1", "c1", "c2"]);
            keys.extend(self.ask(cluster, profile, group, size(cpus, cpus * 4), size(1, 4)));
        }
        self.fillers(&[0, 1_000]);
        let states = if self.seed.chance(0.4) {
            vec![Configured, Configured, Configured, Draining]
        } else {
            vec![Configured, Configured, Configuring, Draining, Idle, Idle, Speculative]
        };
        let apart = self.seed.chance(0.4);
        for _ in 0..4 + self.seed.below(8) {
            let rack = *self.seed.pick(if apart { &["r0", "r1"][..] } else { &["r0", "r1", "r2"] });
            // What is free may lie in one rack, and what others hold in the others.
            let states = match rack {
                "r0" if apart => &[Idle, Speculative][..],
                _ if apart => &[Configured, Configured, Configured, Configuring][..],
                _ => &states[..],
            };
            let state = *self.seed.pick(states);
            let cpus = *self.seed.pick(&[1, 1, 1, 2]);
            let at = self.machine(state, size(cpus, cpus * 4), rack);
            let key = self.seed.pick(&keys).clone();
            if self.seed.chance(0.3) {
                self.stamp(at, &key);
            }
            if state == Draining && self.seed.chance(0.7) {
                self.machines[at].draining_for = Some(key);
            }
        }
    }

    /// One to three plain needs that hold machines, or want them.
    fn fillers(&mut self, priorities: &[i32]) {
        for _ in 0..=self.seed.below(3) {
            let priority = *self.seed.pick(priorities);
            let cluster = *self.seed.pick(&["c1", "c1", "c2"]);
            let profile = self.profile(Vec::new(), Vec::new(), priority);
            let cpus = 1 + self.seed.below(4);
            self.ask(cluster, profile, "", size(cpus, cpus * 4), ResourceVec::ZERO);
        }
    }

    /// A gang over racks that wants so many cpus.
    fn gang(&mut self, cluster: &str, priority: i32, group: &str, cpus: u64) -> NeedKey {
        let same = if self.seed.chance(0.85) {
            Requirement::same(RACK)
        } else {
            Requirement::new(RACK, Operator::Same, ["r0", "r1"])
        };
        let min_unit = if self.seed.chance(0.7) { ResourceVec::ZERO } else { size(1, 4) };
        let profile = self.profile(vec![same], Vec::new(), priority);
        self.ask(cluster, profile, group, size(cpus, cpus * 4), min_unit)
            .expect("gangs of one profile differ in group")
    }

    fn profile(
        &mut self,
        requirements: Vec<Requirement>,
        spread: Vec<TopologySpread>,
        priority: i32,
    ) -> Arc<Profile> {
        let buckets = [0, 0, 0, 1, 3, 27].map(|number| PenaltyBucket::from_wire(number).expect("a bucket"));
        // One draw for both, or equals would be rare.
        let bucket =
            if self.seed.chance(0.6) { PenaltyBucket::UNSPECIFIED } else { *self.seed.pick(&buckets) };
        Arc::new(Profile::new(requirements, spread, priority, bucket, PenaltyBucket::UNSPECIFIED))
    }

    /// Adds a need, unless there is one of this identity already.
    fn ask(
        &mut self,
        cluster: &str,
        profile: Arc<Profile>,
        group: &str,
        aggregate: ResourceVec,
        min_unit: ResourceVec,
    ) -> Option<NeedKey> {
        let need = Need {
            cluster: format!("{}{cluster}", self.prefix).into(),
            profile,
            group: group.into(),
            aggregate,
            min_unit,
            first_seen_unix_nanos: *self.seed.pick(&[1, 1, 1, 2]),
            parked: false,
        };
        let key = need.key();
        if self.needs.iter().any(|known| known.key() == key) {
            return None;
        }
        self.needs.push(need);
        Some(key)
    }

    /// Adds a machine in a rack, bound to one of the clusters if its state says so, perhaps for one of the needs.
    fn machine(&mut self, state: MachineState, resources: ResourceVec, rack: &str) -> usize {
        let number = self.machines.len();
        let mut machine = Machine::new(format!("{}m{number}", self.prefix), state);
        machine.resources = resources;
        machine.capacity_type = *self.seed.pick(&[
            CapacityType::Unspecified,
            CapacityType::BareMetal,
            CapacityType::OnDemand,
            CapacityType::Spot,
        ]);
        machine.price_usd_per_hour = *self.seed.pick(&[0.0, 0.5, 1.0, 1.0, 1.0, 2.0]);
        machine.interruption_probability = *self.seed.pick(&[0.0, 0.0, 0.0, 0.1]);
        let mut labels = vec![(RACK, rack)];
        if self.seed.chance(0.2) {
            labels.push((POOL, "blue"));
        }
        if self.seed.chance(0.04) {
            labels.remove(0);
        }
        machine.labels = Labels::new(labels).expect("every key once");
        machine.idle_since_unix_nanos = idle_since(self.seed);
        let cluster: Arc<str> =
            format!("{}{}", self.prefix, self.seed.pick(&["c1", "c1", "c1", "c2"])).into();
        if !self.needs.is_empty() && self.seed.chance(0.5) {
            let need = self.seed.pick(&self.needs).clone();
            machine.assigned = stamp(&need.cluster, &need.profile, &need.group);
            put_in_state(&mut machine, state, &need.cluster);
        } else {
            put_in_state(&mut machine, state, &cluster);
        }
        self.machines.push(machine);
        number
    }

    /// Stamps a machine for a need and puts it into that need's cluster.
    fn stamp(&mut self, at: usize, key: &NeedKey) {
        let machine = &mut self.machines[at];
        machine.assigned.cluster = key.cluster.clone();
        machine.assigned.fingerprint = key.fingerprint.clone();
        machine.assigned.group = key.group.clone();
        let state = machine.state;
        put_in_state(machine, state, &key.cluster);
    }
}
