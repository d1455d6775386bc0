//! Any bytes are a case on which the engine and the oracle must agree, or are refused.
//!
//! One function, used by the saved corpus, by its mutations and by the fuzzer. Bytes that begin with a brace are
//! read as a scenario file. All others tell a story: a random fleet to begin with, then four bytes for each
//! thing that happens to it, among them cycles, in which all that was kept must not show.

use std::sync::Arc;

use bigfleet_calculator::{answer, decide, engine_options, load};
use bigfleet_engine::{Fleet, Parallelism};
use bigfleet_model::label::Labels;
use bigfleet_model::machine::{HostRef, Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::penalty::PenaltyBucket;
use bigfleet_model::profile::Profile;
use bigfleet_model::resource::ResourceVec;
use bigfleet_oracle::{Edit, Size, apply, as_vector, random_edits, random_scenario};
use bigfleet_scenario::answer::difference;
use bigfleet_scenario::{Answer, Scenario, input};

/// The most machines or needs a file may have: the oracle is slow, and small cases find as much.
const LIMIT: usize = 48;

/// The most things that happen in a story.
const MOST_EVENTS: usize = 48;

/// Holds the engine against the oracle; false if the bytes are no case.
pub(crate) fn check(bytes: &[u8]) -> bool {
    if bytes.first() == Some(&b'{') { check_file(bytes) } else { check_story(bytes) }
}

fn agree(scenario: &Scenario, ours: &Answer, when: &str) {
    if let Some(found) = difference(&bigfleet_oracle::decide(scenario), ours) {
        panic!("{when}: {found}\n{}", as_vector("found/fuzz", "A case from bytes.", scenario));
    }
}

fn check_file(bytes: &[u8]) -> bool {
    let Ok(scenario) = input::read(bytes) else { return false };
    if scenario.machines.len() > LIMIT || scenario.needs.len() > LIMIT {
        return false;
    }
    for threads in [1, 3] {
        let ours = decide(&scenario, Parallelism { threads, from_clusters: 0 });
        agree(&scenario, &ours.expect("what the reader takes, the engine takes"), "from a file");
    }
    true
}

fn check_story(bytes: &[u8]) -> bool {
    let Some((&[shape, low, high], events)) = bytes.split_first_chunk() else { return false };
    let size = if shape & 1 == 0 { Size::Tiny } else { Size::Small };
    let parallelism = Parallelism { threads: 1 + usize::from(shape >> 1 & 3), from_clusters: 0 };
    let scenario = random_scenario(u64::from(u16::from_le_bytes([low, high])), size);
    let fleet = load(&scenario, parallelism).expect("a random scenario is valid");
    let mut story = Story { fleet, scenario };
    for (event, bytes) in events.as_chunks().0.iter().take(MOST_EVENTS).enumerate() {
        story.tell(*bytes);
        if bytes[0] & 16 != 0 {
            story.cycle(event);
        }
    }
    story.cycle(MOST_EVENTS);
    true
}

/// A fleet, and the same fleet as a scenario.
struct Story {
    fleet: Fleet,
    scenario: Scenario,
}

fn pick<T>(items: &[T], byte: u8) -> Option<&T> {
    items.get(usize::from(byte) % items.len().max(1))
}

impl Story {
    fn cycle(&mut self, event: usize) {
        let Self { fleet, scenario } = self;
        let decision = fleet.cycle(&engine_options(&scenario.options), scenario.now_unix_nanos);
        agree(scenario, &answer(fleet, &decision), &format!("after event {event}"));
    }

    /// Something happens: the first byte says what, the others to whom and how.
    fn tell(&mut self, [what, who, how, more]: [u8; 4]) {
        match what & 15 {
            0..=5 => self.change_machine(what & 15, who, how, more),
            6 => {
                if let Some(machine) = pick(&self.scenario.machines, who) {
                    self.edit(Edit::Remove(machine.id.to_string()));
                }
            }
            7..=11 => self.change_need(what & 15, who, how, more),
            12 => self.edit(Edit::Advance { nanos: i64::from(how) << (more % 48) }),
            13 => {
                let clusters = self.scenario.needs.iter().map(|need| &need.cluster);
                let ready = clusters.filter(|cluster| cluster.bytes().any(|byte| byte % 3 == who % 3));
                let ready = ready.cloned().collect();
                self.scenario.options.ready_clusters = (how & 1 == 0).then_some(ready);
            }
            14 if how & 1 == 0 => self.fleet.forget_cache(),
            14 => self.fleet = self.fleet.fork(),
            _ => {
                let seed = u64::from(u32::from_le_bytes([0, who, how, more]));
                for edit in random_edits(seed, &self.scenario, 2) {
                    self.edit(edit);
                }
            }
        }
    }

    fn edit(&mut self, mut edit: Edit) {
        match &mut edit {
            Edit::Observe(machine) => {
                self.fleet.observe(machine).expect("a valid machine");
            }
            Edit::Remove(id) => {
                self.fleet.remove(id);
            }
            Edit::Replace { cluster, rows } => {
                // Rows the fleet knows keep the time they were first seen.
                for row in rows.iter_mut() {
                    if let Some(known) = self.scenario.needs.iter().find(|need| need.key() == row.key()) {
                        row.first_seen_unix_nanos = known.first_seen_unix_nanos;
                    }
                }
                self.fleet.replace(cluster, rows.clone(), 0).expect("a valid roll-up");
            }
            Edit::Advance { .. } | Edit::SetOptions(_) => {}
        }
        apply(&mut self.scenario, &edit);
    }

    fn change_machine(&mut self, what: u8, who: u8, how: u8, more: u8) {
        let Scenario { machines, needs, .. } = &self.scenario;
        let Some(mut machine) = pick(machines, who).cloned() else { return };
        match what {
            0 => {
                let cluster = pick(needs, more).map_or("nobody".into(), |need| need.cluster.clone());
                put_in_state(&mut machine, MachineState::ALL[usize::from(how % 8)], &cluster);
            }
            1 => {
                machine.price_usd_per_hour = f64::from(how) / 16.0;
                machine.interruption_probability = f64::from(more) / 255.0;
            }
            2 => machine.allocatable = size(how, more),
            3 => {
                let rack = ["r1", "r2", "r3", ""][usize::from(how % 4)];
                let keys = machines.iter().flat_map(|machine| machine.labels.iter()).map(|(key, _)| key);
                let key = keys.min().unwrap_or("example.org/rack");
                machine.labels = Labels::new([(key, rack)]).expect("one label");
                machine.zone = ["", "zone-a", "zone-b"][usize::from(more % 3)].into();
            }
            4 => {
                if let Some(need) = pick(needs, how) {
                    machine.assigned.fingerprint = need.profile.fingerprint().into();
                    machine.assigned.group = need.group.clone();
                    machine.assigned.priority = need.profile.priority();
                    machine.draining_for = pick(needs, more).map(Need::key);
                }
            }
            _ => machine.id = format!("m{how}").into(),
        }
        self.edit(Edit::Observe(Box::new(machine)));
    }

    fn change_need(&mut self, what: u8, who: u8, how: u8, more: u8) {
        let Some(need) = pick(&self.scenario.needs, who).cloned() else { return };
        let key = need.key();
        let mut changed = need.clone();
        match what {
            7 => changed.aggregate = size(how, more),
            8 => changed.min_unit = size(how % 8, more % 8),
            9 => {
                let old = &need.profile;
                let bucket = PenaltyBucket::from_wire(i32::from(more % 28)).expect("a bucket");
                let priority = [i32::MIN, 0, 1, 1_000, i32::MAX][usize::from(how % 5)];
                let parts = (old.requirements().to_vec(), old.spread().to_vec());
                changed.profile = Profile::new(parts.0, parts.1, priority, bucket, old.reclamation()).into();
            }
            10 if need.profile.same().is_some() => {
                changed.parked = how & 1 == 0;
                assert_eq!(self.fleet.set_parked(&key, changed.parked), changed.parked != need.parked);
            }
            10 => return,
            _ => changed.group = ["", "g1", "g2"][usize::from(how % 3)].into(),
        }
        let mut rows: Vec<Need> =
            self.scenario.needs.iter().filter(|n| n.cluster == need.cluster).cloned().collect();
        // A row that takes on another's identity takes its place.
        rows.retain(|row| row.key() != key && row.key() != changed.key());
        let withdrawn = (what, how) == (8, 255);
        rows.extend((!withdrawn).then_some(changed));
        self.edit(Edit::Replace { cluster: need.cluster.to_string(), rows });
    }
}

fn size(cpus: u8, gpus: u8) -> ResourceVec {
    let quantities = [("cpu", cpus.to_string()), ("nvidia.com/gpu", (gpus % 16).to_string())];
    ResourceVec::parse(quantities).expect("small numbers are quantities")
}

/// Brings the fields that depend on the state in line with it.
fn put_in_state(machine: &mut Machine, state: MachineState, cluster: &Arc<str>) {
    use MachineState::{Creating, Failed, Speculative};
    machine.state = state;
    machine.cluster = if state.is_bound() { (**cluster).into() } else { "".into() };
    machine.assigned.cluster = cluster.clone();
    machine.host = (!matches!(state, Speculative | Creating | Failed)).then(HostRef::default);
    machine.last_error = if state == Failed { "unknown".into() } else { "".into() };
}
