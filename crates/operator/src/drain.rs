//! Letting go of machines: cordon, say so, evict politely, say when it is done.
//!
//! The shard names machines; the cluster has nodes. Each instruction is carried out by looking at the cluster as it is
//! and ordering the next step, so it does not matter what was done before a restart or behind our back:
//!
//! ```text
//!   no node ──────────────────────────────► nothing to do
//!   node ──► cordon and mark ──► acknowledge ──► evict what may be evicted ──► empty: done
//!                                                  │ its pods have no other place: a moment for the shard to leave it
//!                                                  │ a budget refuses: again later, visibly
//!                                                  └ the grace is over: stop; the machine goes as it is
//! ```
//!
//! The mark on the node carries instruction and deadline. It says after a restart that the instruction was acknowledged
//! (the shard takes a second acknowledgement for "done") and that the cordon is ours to lift. What is done is told with
//! no nodes, which the shard understands whether or not it heard the first.
//!
//! Nodes drain side by side; nobody waits for another.

use std::collections::BTreeMap;

use bigfleet_model::backoff::Backoff;

mod lift;
mod world;

use lift::Lifts;
pub use world::{Carried, Node, Pod, World};

/// How long to wait before a refused eviction is tried again: the first time, and at most.
const RETRY: Backoff = Backoff { first: 1_000_000_000, limit: 15_000_000_000 };
/// How long to wait for a step that failed.
const STEP_RETRY_NANOS: i64 = 2_000_000_000;
/// Evictions under way per node.
const MOST_UNDER_WAY: usize = 16;
/// Instructions kept at a time.
pub const MOST_INSTRUCTIONS: usize = 10_000;

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Make a node unschedulable and put the mark on it.
    Cordon {
        /// The node.
        node: String,
        /// What the mark says.
        mark: Mark,
    },
    /// Make it schedulable again and take the mark off.
    Uncordon {
        /// The node.
        node: String,
    },
    /// Tell the shard.
    Acknowledge {
        /// Of which instruction.
        instruction: String,
        /// How many nodes were cordoned; 0 when nothing is left to do.
        nodes_started: i32,
    },
    /// Ask for the eviction of a pod.
    Evict {
        /// The pod.
        pod: Pod,
        /// Where it is.
        node: String,
        /// Its own grace if that fits in what is left, else what is left.
        grace_secs: Option<i64>,
    },
    /// People should know.
    Tell(Progress),
}

/// What a node says about its drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// For which instruction.
    pub instruction: String,
    /// Which machine it is.
    pub machine: String,
    /// Until when evictions are tried.
    pub until_unix_nanos: i64,
}

/// How far the drain of one machine is. Told when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The machine.
    pub machine: String,
    /// Its node, if there is one.
    pub node: Option<String>,
    /// What is the case.
    pub state: State,
    /// Pods still there that must go.
    pub pods_left: usize,
    /// Of these, pods a disruption budget holds.
    pub blocked: usize,
    /// One that is held, and what the API server said.
    pub example: Option<(String, String)>,
}

/// What is the case with a machine that is let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The cluster has no such node.
    NotFound,
    /// It has one, and it must still be cordoned.
    Cordoning,
    /// Its pods have no other place: the shard is asked to leave it, and has a moment to say so.
    Held,
    /// Pods are leaving.
    Evicting,
    /// Nothing is left on it.
    Empty,
    /// The grace is over and pods are left.
    GraceOver,
    /// The shard changed its mind.
    TakenBack,
}

/// What came of an eviction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// The pod is on its way out, or was gone.
    Accepted,
    /// A disruption budget refuses, for now.
    Blocked(String),
    /// It could not be asked.
    Failed(String),
}

/// All instructions that are being carried out.
#[derive(Debug, Default)]
pub struct Drains {
    instructions: BTreeMap<String, Instruction>,
    /// Of drains that are off.
    lifts: Lifts,
}

#[derive(Debug)]
struct Instruction {
    until_unix_nanos: i64,
    is_acknowledged: bool,
    machines: BTreeMap<String, Drain>,
}

#[derive(Debug, Default)]
struct Drain {
    /// When a cordon was last ordered.
    cordoned_at: Option<i64>,
    /// Nothing is left to do for it.
    is_over: bool,
    evictions: BTreeMap<String, Eviction>,
    told: Option<Progress>,
}

#[derive(Debug)]
struct Eviction {
    tries: u32,
    /// Asked and not answered.
    is_under_way: bool,
    accepted: bool,
    retry_at: i64,
    blocked: Option<String>,
}

impl Drains {
    /// The shard wants machines back within a grace. Said again, it only moves the deadline. False if there are too many
    /// instructions already; the shard waits for its grace then.
    pub fn instruct(&mut self, instruction: &str, machines: &[String], grace_secs: i64, now: i64) -> bool {
        let until = now.saturating_add(grace_secs.max(0).saturating_mul(1_000_000_000));
        if let Some(known) = self.instructions.get_mut(instruction) {
            known.until_unix_nanos = until;
            return true;
        }
        if self.instructions.len() >= MOST_INSTRUCTIONS {
            return false;
        }
        for machine in machines {
            self.lifts.forget(machine);
        }
        let machines = machines.iter().map(|machine| (machine.clone(), Drain::default())).collect();
        let drain = Instruction { until_unix_nanos: until, is_acknowledged: false, machines };
        self.instructions.insert(instruction.into(), drain);
        true
    }

    /// A node bears our mark and nobody remembers why: this process was started again. Goes on with it.
    pub fn resume(&mut self, mark: &Mark) {
        if self.instructions.len() >= MOST_INSTRUCTIONS && !self.instructions.contains_key(&mark.instruction)
        {
            return;
        }
        let known = self.instructions.entry(mark.instruction.clone()).or_insert_with(|| Instruction {
            until_unix_nanos: mark.until_unix_nanos,
            is_acknowledged: true,
            machines: BTreeMap::new(),
        });
        known.is_acknowledged = true;
        known.machines.entry(mark.machine.clone()).or_default();
        self.lifts.forget(&mark.machine);
    }

    /// The shard says that a machine is Configured: whatever was asked of it is off. Lifts our cordon and no other, also one
    /// that was ordered and has not landed yet.
    pub fn take_back(&mut self, machine: &str, now: i64, world: &dyn World) -> Vec<Order> {
        let mut orders = Vec::new();
        let node = world.node_of(machine);
        let mark = node.as_ref().and_then(|node| node.mark.as_ref());
        let mut cordoned_at = None;
        for (id, instruction) in &mut self.instructions {
            if let Some(mut drain) = instruction.machines.remove(machine) {
                if mark.is_none_or(|mark| mark.instruction != *id) {
                    cordoned_at = cordoned_at.max(drain.cordoned_at);
                }
                let node = node.as_ref().map(|node| node.name.clone());
                orders.extend(drain.tell(machine, node, State::TakenBack, &[]));
            }
        }
        self.instructions.retain(|_, instruction| !instruction.machines.is_empty());
        if mark.is_some() || cordoned_at.is_some() {
            self.lifts.add(machine, cordoned_at);
            self.lifts.step(now, world, &mut orders);
        }
        orders
    }

    /// A machine is no node here any more; nothing is left to do for it.
    pub fn forget(&mut self, machine: &str) {
        for instruction in self.instructions.values_mut() {
            instruction.machines.remove(machine);
        }
        self.instructions.retain(|_, instruction| !instruction.machines.is_empty());
        self.lifts.forget(machine);
    }

    /// An eviction was answered.
    pub fn evicted(&mut self, pod_uid: &str, outcome: Evicted, now: i64) {
        let drains = self.instructions.values_mut().flat_map(|instruction| instruction.machines.values_mut());
        for drain in drains {
            if let Some(eviction) = drain.evictions.get_mut(pod_uid) {
                eviction.is_under_way = false;
                let wait = RETRY.after(eviction.tries);
                match outcome {
                    Evicted::Accepted => (eviction.accepted, eviction.blocked) = (true, None),
                    Evicted::Blocked(why) => {
                        (eviction.retry_at, eviction.blocked) = (now.saturating_add(wait), Some(why));
                    }
                    Evicted::Failed(_) => {
                        (eviction.retry_at, eviction.blocked) = (now.saturating_add(wait), None);
                    }
                }
                return;
            }
        }
    }

    /// The machines that are being let go.
    pub fn machines(&self) -> impl Iterator<Item = &str> {
        self.instructions
            .values()
            .flat_map(|instruction| instruction.machines.keys().map(|machine| &**machine))
    }

    /// Whether nothing is being let go and no cordon is left to lift.
    pub fn is_empty(&self) -> bool {
        self.instructions.is_empty() && self.lifts.is_empty()
    }

    /// How many instructions are being carried out.
    pub fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Looks at the cluster and orders what is next, in a fixed order.
    pub fn step(&mut self, now: i64, world: &dyn World) -> Vec<Order> {
        let mut orders = Vec::new();
        for (id, instruction) in &mut self.instructions {
            let until = instruction.until_unix_nanos;
            let mut cordoned = 0;
            let mut waits_for_cordon = false;
            for (machine, drain) in &mut instruction.machines {
                let Some(node) = world.node_of(machine) else {
                    drain.is_over = true;
                    orders.extend(drain.tell(machine, None, State::NotFound, &[]));
                    continue;
                };
                let ours = node.mark.as_ref().is_some_and(|mark| mark.instruction == *id);
                if !node.is_cordoned || !ours {
                    waits_for_cordon = true;
                    if drain.cordoned_at.is_none_or(|at| at.saturating_add(STEP_RETRY_NANOS) <= now) {
                        drain.cordoned_at = Some(now);
                        let mark = Mark {
                            instruction: id.clone(),
                            machine: machine.clone(),
                            until_unix_nanos: until,
                        };
                        orders.push(Order::Cordon { node: node.name.clone(), mark });
                        orders.extend(drain.tell(machine, Some(node.name), State::Cordoning, &[]));
                    }
                    continue;
                }
                cordoned += 1;
                if now < until && world.is_held(machine) {
                    orders.extend(drain.tell(machine, Some(node.name), State::Held, &[]));
                    continue;
                }
                drain.evict(machine, &node.name, until, now, world, &mut orders);
            }
            let is_over = instruction.machines.values().all(|drain| drain.is_over);
            if !instruction.is_acknowledged && !waits_for_cordon && cordoned > 0 {
                instruction.is_acknowledged = true;
                orders.push(Order::Acknowledge { instruction: id.clone(), nodes_started: cordoned });
            }
            if is_over {
                orders.push(Order::Acknowledge { instruction: id.clone(), nodes_started: 0 });
            }
        }
        self.instructions.retain(|_, instruction| instruction.machines.values().any(|drain| !drain.is_over));
        self.lifts.step(now, world, &mut orders);
        orders
    }

    /// When to look again if nothing happens before.
    pub fn next_due(&self) -> Option<i64> {
        let due = self.instructions.values().flat_map(|instruction| {
            let retries = instruction.machines.values().flat_map(|drain| {
                let cordon = drain.cordoned_at.map(|at| at.saturating_add(STEP_RETRY_NANOS));
                let waits = |eviction: &&Eviction| !eviction.is_under_way && !eviction.accepted;
                drain.evictions.values().filter(waits).map(|eviction| eviction.retry_at).chain(cordon)
            });
            retries.chain([instruction.until_unix_nanos])
        });
        due.chain(self.lifts.next_due()).min()
    }
}

impl Drain {
    fn evict(
        &mut self,
        machine: &str,
        node: &str,
        until: i64,
        now: i64,
        world: &dyn World,
        orders: &mut Vec<Order>,
    ) {
        self.cordoned_at = None;
        let pods = world.pods_on(node);
        self.evictions.retain(|uid, _| pods.iter().any(|pod| pod.uid == *uid));
        let left: Vec<&Pod> = pods.iter().filter(|pod| pod.carried == Carried::ByItself).collect();
        if left.is_empty() {
            self.is_over = true;
            orders.extend(self.tell(machine, Some(node.into()), State::Empty, &[]));
            return;
        }
        if now >= until {
            // The shard goes on without us; that is what a grace is.
            self.is_over = true;
            orders.extend(self.tell(machine, Some(node.into()), State::GraceOver, &left));
            return;
        }
        let mut under_way = self.evictions.values().filter(|eviction| eviction.is_under_way).count();
        for pod in &left {
            if pod.is_terminating {
                continue;
            }
            let eviction = self.evictions.entry(pod.uid.clone()).or_insert(Eviction {
                tries: 0,
                is_under_way: false,
                accepted: false,
                retry_at: now,
                blocked: None,
            });
            if eviction.is_under_way
                || eviction.accepted
                || eviction.retry_at > now
                || under_way >= MOST_UNDER_WAY
            {
                continue;
            }
            eviction.tries = eviction.tries.saturating_add(1);
            eviction.is_under_way = true;
            under_way += 1;
            let secs_left = (until - now) / 1_000_000_000;
            let grace_secs = (pod.grace_secs > secs_left).then_some(secs_left.max(1));
            orders.push(Order::Evict { pod: (*pod).clone(), node: node.into(), grace_secs });
        }
        orders.extend(self.tell(machine, Some(node.into()), State::Evicting, &left));
    }

    /// The progress, if it is news.
    fn tell(&mut self, machine: &str, node: Option<String>, state: State, left: &[&Pod]) -> Option<Order> {
        let held = left.iter().filter_map(|pod| {
            let why = self.evictions.get(&pod.uid)?.blocked.as_ref()?;
            Some((format!("{}/{}", pod.namespace, pod.name), why.clone()))
        });
        let held: Vec<(String, String)> = held.collect();
        let progress = Progress {
            machine: machine.into(),
            node,
            state,
            pods_left: left.len(),
            blocked: held.len(),
            example: held.into_iter().next(),
        };
        let is_news = self.told.as_ref() != Some(&progress);
        self.told = Some(progress.clone());
        is_news.then_some(Order::Tell(progress))
    }
}

#[cfg(test)]
mod tests;
