//! A fleet to which things happen, with its tape: what a shard does, without the shard.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bigfleet_calculator::engine_options;
use bigfleet_engine::Fleet;
use bigfleet_model::need::Need;
use bigfleet_oracle::{Edit, Size, apply, random_edits, random_scenario};
use bigfleet_record::Recorded;
use bigfleet_scenario::Scenario;
use bigfleet_shard::{
    Around, CycleRecord, Fate, Input, Listed, Ordered, Pause, PauseScope, ProviderSettings, Reasons,
    Settings, Surroundings,
};

pub(crate) struct Recording {
    fleet: Fleet,
    scenario: Scenario,
    inputs: Vec<Input>,
    parked: BTreeSet<bigfleet_model::need::NeedKey>,
    pub(crate) cycle: u64,
    pub(crate) epoch: i64,
    pub(crate) surroundings: Surroundings,
}

impl Recording {
    /// The fleet of a seed, with everything in it still to be recorded.
    pub(crate) fn begin(seed: u64, size: Size) -> Self {
        let scenario = random_scenario(seed, size);
        let mut recording = Self {
            fleet: Fleet::default(),
            scenario: Scenario { machines: Vec::new(), needs: Vec::new(), ..scenario.clone() },
            inputs: Vec::new(),
            parked: BTreeSet::new(),
            cycle: 0,
            epoch: 1,
            surroundings: Surroundings::default(),
        };
        for machine in scenario.machines {
            recording.edit(&Edit::Observe(Box::new(machine)));
        }
        for (cluster, rows) in by_cluster(&scenario.needs) {
            recording.edit(&Edit::Replace { cluster, rows });
        }
        recording
    }

    /// Changes that suit the fleet as it is.
    pub(crate) fn edits(&self, seed: u64, count: usize) -> Vec<Edit> {
        random_edits(seed, &self.scenario, count)
    }

    pub(crate) fn edit(&mut self, edit: &Edit) {
        apply(&mut self.scenario, edit);
        let input = match edit {
            Edit::Observe(machine) => Input::Observe(Arc::new((**machine).clone())),
            Edit::Remove(id) => Input::Remove(id.as_str().into()),
            Edit::Replace { cluster, rows } => {
                let needs: Arc<[Need]> = rows.iter().cloned().collect();
                let rows = self.fleet.replace(cluster, needs.to_vec(), self.scenario.now_unix_nanos);
                rows.expect("the oracle invents good roll-ups");
                self.parked.retain(|key| *key.cluster != **cluster);
                self.parked.extend(needs.iter().filter(|need| need.parked).map(Need::key));
                Input::Replace {
                    cluster: cluster.as_str().into(),
                    needs,
                    at_unix_nanos: self.scenario.now_unix_nanos,
                }
            }
            Edit::Advance { .. } | Edit::SetOptions(_) => return,
        };
        match &input {
            Input::Observe(machine) => {
                self.fleet.observe(machine).expect("the oracle invents good machines");
            }
            Input::Remove(id) => {
                self.fleet.remove(id);
            }
            _ => {}
        }
        self.inputs.push(input);
    }

    /// Parks a gang, or lets one try again.
    pub(crate) fn toggle_park(&mut self, seed: u64) {
        let gangs: Vec<_> =
            self.scenario.needs.iter().filter(|need| need.profile.same().is_some()).map(Need::key).collect();
        let Some(key) = gangs.get(seed as usize % gangs.len().max(1)).cloned() else { return };
        let parked = !self.parked.contains(&key);
        if self.fleet.set_parked(&key, parked) {
            if parked {
                self.parked.insert(key.clone())
            } else {
                self.parked.remove(&key)
            };
            self.inputs.push(Input::Park { key, parked });
        }
    }

    /// The whole input. Built from what the fleet was told, not from the tape.
    fn whole(&self) -> Vec<Input> {
        let machines = self.scenario.machines.iter().map(|machine| Input::Observe(Arc::new(machine.clone())));
        let first_seen: BTreeMap<_, i64> = self
            .fleet
            .outcomes()
            .iter()
            .filter(|outcome| !outcome.demand.folded)
            .map(|outcome| (outcome.demand.need.key(), outcome.demand.need.first_seen_unix_nanos))
            .collect();
        let rollups = by_cluster(&self.scenario.needs).into_iter().map(|(cluster, rows)| Input::Replace {
            cluster: cluster.into(),
            needs: rows
                .into_iter()
                .map(|need| {
                    let key = need.key();
                    let stamp = first_seen.get(&key).copied().unwrap_or(need.first_seen_unix_nanos);
                    Need { parked: self.parked.contains(&key), first_seen_unix_nanos: stamp, ..need }
                })
                .collect(),
            at_unix_nanos: self.scenario.now_unix_nanos,
        });
        machines.chain(rollups).collect()
    }

    /// What happens around it: the provider is listed, a cluster comes every third cycle, the first of them reports, and
    /// every fifth cycle somebody begins or ends a pause.
    fn around(&mut self, is_full: bool) -> Around {
        let now = self.scenario.now_unix_nanos;
        let cycle = self.cycle;
        let listed = Listed { unix_nanos: Some(now), full_unix_nanos: None, machines: cycle as u32 };
        let mut around = Around { listed: vec![(0, listed)], moves: cycle as u32, ..Around::default() };
        if cycle.is_multiple_of(3) {
            around.came.push(format!("!{cycle:05}").into());
        }
        if cycle.is_multiple_of(5) {
            let pause = Pause {
                scope: PauseScope::default(),
                dry_run: false,
                reason: "month end".into(),
                author: "sam".into(),
                since_unix_nanos: now,
                until_unix_nanos: None,
            };
            around.pauses.push((1, (cycle % 10 == 5).then_some(pause)));
        }
        around.reported = vec![(0, now / 1_000_000_000)];
        if is_full {
            let providers = vec![ProviderSettings { name: "sim".into(), ..ProviderSettings::default() }];
            let whole = &self.surroundings;
            around.came.extend(whole.clusters.keys().cloned());
            around.pauses = whole
                .pauses
                .iter()
                .map(|(number, pause)| (*number, Some(pause.clone())))
                .chain(around.pauses)
                .collect();
            around.settings = Some(Settings { providers, ..Settings::default() }.into());
        }
        self.surroundings.take(&around);
        around
    }

    /// Runs a cycle and writes it down.
    pub(crate) fn cycle(&mut self, is_full: bool) -> CycleRecord {
        self.cycle += 1;
        let options = engine_options(&self.scenario.options);
        let now_unix_nanos = self.scenario.now_unix_nanos;
        let decision = self.fleet.cycle(&options, now_unix_nanos);
        let actions = decision.actions.iter().enumerate().map(|(index, action)| Ordered {
            action: action.clone(),
            fate: if index % 3 == 1 { Fate::Capped } else { Fate::Begun },
            machine: None,
            runner_up: None,
            approved_by: None,
            why: self.fleet.explain_action(action, &options),
        });
        let actions = actions.collect();
        let inputs = std::mem::take(&mut self.inputs);
        let around = Some(self.around(is_full));
        CycleRecord {
            around,
            cycle: self.cycle,
            epoch: self.epoch,
            edition: bigfleet_engine::EDITION,
            now_unix_nanos,
            reasons: Reasons { tick: self.cycle.is_multiple_of(2), supply: true, ..Reasons::default() },
            full: is_full.then(|| Arc::new(self.whole())),
            inputs: if is_full { Vec::new() } else { inputs },
            options,
            actions,
            decided: decision.actions.len() as u32,
            digest: bigfleet_shard::digest(&decision.actions),
            usd_per_hour: 1.5,
            short_needs: decision.work.short_needs as u32,
        }
    }
}

fn by_cluster(needs: &[Need]) -> BTreeMap<String, Vec<Need>> {
    let mut rollups: BTreeMap<String, Vec<Need>> = BTreeMap::new();
    for need in needs {
        rollups.entry(need.cluster.to_string()).or_default().push(need.clone());
    }
    rollups
}

/// Holds what was read against what was written, in every field.
pub(crate) fn assert_same(read: &Recorded, written: &CycleRecord) {
    let written = Recorded::from(written);
    assert_eq!(
        (read.cycle, read.epoch, read.edition, read.now_unix_nanos),
        (written.cycle, written.epoch, written.edition, written.now_unix_nanos)
    );
    assert_eq!((read.reasons, read.short_needs), (written.reasons, written.short_needs));
    assert_eq!(read.usd_per_hour.to_bits(), written.usd_per_hour.to_bits());
    assert_eq!(read.options, written.options);
    assert_eq!(read.decided, written.decided);
    assert_eq!(read.around, written.around);
    assert_eq!((read.decided_in_all, read.digest), (written.decided_in_all, written.digest));
    assert_eq!(read.full.is_some(), written.full.is_some());
    assert_same_inputs(read.full.as_deref().unwrap_or(&[]), written.full.as_deref().unwrap_or(&[]));
    assert_same_inputs(&read.inputs, &written.inputs);
}

pub(crate) fn assert_same_inputs(read: &[Input], written: &[Input]) {
    assert_eq!(read.len(), written.len());
    for (a, b) in read.iter().zip(written) {
        match (a, b) {
            (Input::Observe(a), Input::Observe(b)) => assert_eq!(a, b),
            (Input::Remove(a), Input::Remove(b)) => assert_eq!(a, b),
            (
                Input::Replace { cluster: a, needs: rows, at_unix_nanos: at },
                Input::Replace { cluster: b, needs: expected, at_unix_nanos: when },
            ) => {
                assert_eq!((a, rows, at), (b, expected, when));
                for (row, need) in rows.iter().zip(&**expected) {
                    // The fingerprint does not tell no values from the empty value alone.
                    assert_eq!(row.profile.requirements(), need.profile.requirements());
                }
            }
            (Input::Park { key: a, parked: p }, Input::Park { key: b, parked: q }) => {
                assert_eq!((a, p), (b, q));
            }
            _ => panic!("{a:?} is not {b:?}"),
        }
    }
}
