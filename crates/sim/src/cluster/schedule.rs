//! The cluster's scheduler: higher priority first; pods go to nodes bound for their kind of work, then to any that will
//! do. Gangs go to one domain together or wait.
//!
//! Pods that wait although there is room in sum were unlucky with where others went. Then all pods are dealt out anew, in
//! three orders, as a descheduler would in time; the order that serves more pods holds.

use std::collections::BTreeMap;

use bigfleet_model::resource::ResourceVec;

use super::{Node, Pods};

/// How many pods of this size fit.
pub(crate) fn fits(free: &ResourceVec, unit: &ResourceVec) -> u64 {
    unit.iter().filter(|(_, need)| *need > 0).map(|(name, need)| free.get(name) / need).min().unwrap_or(0)
}

/// Who is served first when all pods are dealt out anew; the larger first among equals.
#[derive(Clone, Copy)]
enum Dealing {
    /// Gangs, then those with the fewest nodes to choose from.
    GangsFirst,
    /// Those with the fewest nodes to choose from.
    FewestChoicesFirst,
    /// The same, each on the nodes that the fewest others could use.
    SparingOthers,
}

impl Pods {
    /// Gives waiting pods places, as far as there are any. Returns how many found one.
    pub fn schedule(&mut self) -> u64 {
        if !std::mem::take(&mut self.places_changed) {
            return 0;
        }
        let before = self.count().1;
        if before == 0 {
            return 0;
        }
        let mut order: Vec<usize> = (0..self.work.len()).collect();
        order.sort_by_key(|index| {
            let work = &self.work[*index];
            (std::cmp::Reverse(work.profile.priority()), work.gang == 0, self.choices(*index))
        });
        self.place(&order);
        let mut after = self.count().1;
        if after > 0 && self.has_room() {
            for dealing in [Dealing::GangsFirst, Dealing::FewestChoicesFirst, Dealing::SparingOthers] {
                let dealt = self.dealt_anew(dealing);
                if dealt.waits_by_priority() < self.waits_by_priority() {
                    after = dealt.count().1;
                    *self = dealt;
                }
            }
        }
        let placed = before.saturating_sub(after);
        self.demand_changed |= self.unmet_only && after != before;
        self.touched |= after != before;
        placed
    }

    /// How many nodes a kind of work could use.
    fn choices(&self, index: usize) -> usize {
        let work = &self.work[index];
        let profile = if work.gang > 0 { &work.alone } else { &work.profile };
        self.nodes.values().filter(|node| profile.matches(node.machine.facts())).count()
    }

    fn place(&mut self, order: &[usize]) {
        for index in order.iter().copied() {
            if self.work[index].gang > 0 {
                self.place_gangs(index);
            } else if self.work[index].profile.strict_spread().is_some() {
                self.place_spread(index);
            } else {
                self.place_plain(index);
            }
        }
    }

    /// Whether some kind of work that waits would fit if all free room were in one place.
    fn has_room(&self) -> bool {
        let open = self.nodes.values().filter(|node| !node.cordoned);
        let free = open.fold(ResourceVec::ZERO, |sum, node| sum.add(&node.free));
        self.work.iter().any(|work| {
            let waits = work.waiting > 0 || work.gangs.values().any(Vec::is_empty);
            waits && free.covers(&work.unit.scale(work.gang.max(1)))
        })
    }

    /// The same cluster with all pods placed anew.
    fn dealt_anew(&self, dealing: Dealing) -> Self {
        let mut dealt = self.clone();
        for node in dealt.nodes.values_mut() {
            if !node.cordoned {
                node.free = node.machine.provides().clone();
                node.pods.clear();
                node.members.clear();
            }
        }
        let on_cordoned = |id: &str| dealt.nodes.get(id).is_some_and(|node| node.cordoned);
        for (index, work) in dealt.work.iter_mut().enumerate() {
            let kept = dealt.nodes.values().filter_map(|node| node.pods.get(&index)).sum::<u64>();
            work.waiting = work.wanted - kept;
            for places in work.gangs.values_mut() {
                if !places.iter().any(|(id, _)| on_cordoned(id)) {
                    places.clear();
                }
            }
        }
        for (index, work) in dealt.work.iter().enumerate() {
            for (gang, places) in &work.gangs {
                for (id, members) in places {
                    if let Some(node) = dealt.nodes.get_mut(id).filter(|node| !node.cordoned) {
                        node.free = node.free.saturating_sub(&work.unit.scale(*members));
                        node.members.insert((index, *gang), *members);
                    }
                }
            }
        }
        let mut order: Vec<usize> = (0..dealt.work.len()).collect();
        order.sort_by(|a, b| {
            let (first, second) = (&dealt.work[*a], &dealt.work[*b]);
            let total = |index: usize| {
                let work = &dealt.work[index];
                work.unit.scale(work.gang.max(1))
            };
            let gangs = || (first.gang == 0).cmp(&(second.gang == 0));
            let choices = || dealt.choices(*a).cmp(&dealt.choices(*b));
            let order = match dealing {
                Dealing::GangsFirst => gangs().then_with(choices),
                Dealing::FewestChoicesFirst | Dealing::SparingOthers => choices().then_with(gangs),
            };
            order.then_with(|| total(*b).cmp_by_name(&total(*a)))
        });
        if matches!(dealing, Dealing::SparingOthers) {
            for index in order.iter().copied().filter(|index| dealt.is_plain(*index)).collect::<Vec<_>>() {
                dealt.place_sparing(index);
            }
        }
        dealt.place(&order);
        dealt
    }

    /// Whether pods of a kind of work come one by one and may go anywhere that will do.
    fn is_plain(&self, index: usize) -> bool {
        self.work[index].gang == 0 && self.work[index].profile.strict_spread().is_none()
    }

    /// Places pods on the nodes first that the fewest other kinds of work could use.
    fn place_sparing(&mut self, index: usize) {
        let wanted = |node: &Node| {
            let could = |work: &&super::Work| work.profile.matches(node.machine.facts());
            self.work.iter().filter(|work| work.wanted > 0 || !work.gangs.is_empty()).filter(could).count()
        };
        let mut nodes: Vec<(usize, Box<str>)> =
            self.nodes.iter().map(|(id, node)| (wanted(node), id.clone())).collect();
        nodes.sort_unstable();
        let work = &mut self.work[index];
        for (_, id) in nodes {
            let node = self.nodes.get_mut(&id).expect("it was there");
            if node.cordoned || !work.profile.matches(node.machine.facts()) {
                continue;
            }
            let pods = fits(&node.free, &work.unit).min(work.waiting);
            if pods > 0 {
                put(node, index, pods, &work.unit);
                work.waiting -= pods;
            }
        }
    }

    fn place_plain(&mut self, index: usize) {
        let work = &mut self.work[index];
        for own in [true, false] {
            for node in self.nodes.values_mut() {
                if work.waiting == 0 {
                    break;
                }
                let bound_for_it = *node.machine.assigned.fingerprint == *work.profile.fingerprint();
                if node.cordoned || bound_for_it != own || !work.profile.matches(node.machine.facts()) {
                    continue;
                }
                let pods = fits(&node.free, &work.unit).min(work.waiting);
                if pods > 0 {
                    put(node, index, pods, &work.unit);
                    work.waiting -= pods;
                }
            }
        }
    }

    fn place_spread(&mut self, index: usize) {
        let work = &mut self.work[index];
        let spread = work.profile.strict_spread().expect("asked before").clone();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for node in self.nodes.values().filter(|node| work.profile.matches(node.machine.facts())) {
            let Some(domain) = node.machine.facts().value(&spread.key) else { continue };
            *counts.entry(domain.into()).or_default() += node.pods.get(&index).copied().unwrap_or(0);
        }
        'pods: while work.waiting > 0 {
            let least = counts.values().copied().min().unwrap_or(0);
            for node in self.nodes.values_mut() {
                let Some(domain) = node.machine.facts().value(&spread.key).map(String::from) else {
                    continue;
                };
                let ahead = counts.get(&domain).copied().unwrap_or(0).saturating_sub(least);
                let usable = !node.cordoned && work.profile.matches(node.machine.facts());
                if usable && ahead <= spread.headroom() && fits(&node.free, &work.unit) > 0 {
                    put(node, index, 1, &work.unit);
                    work.waiting -= 1;
                    *counts.entry(domain).or_default() += 1;
                    continue 'pods;
                }
            }
            break;
        }
    }

    fn place_gangs(&mut self, index: usize) {
        let work = &mut self.work[index];
        let waiting: Vec<u64> =
            work.gangs.iter().filter(|(_, places)| places.is_empty()).map(|(gang, _)| *gang).collect();
        if waiting.is_empty() {
            return;
        }
        let key = work.profile.same().expect("gangs have a label in common").key().to_string();
        let mut rooms: BTreeMap<String, Vec<Room>> = BTreeMap::new();
        for node in self.nodes.values() {
            let room = fits(&node.free, &work.unit);
            if node.cordoned || room == 0 {
                continue;
            }
            let facts = node.machine.facts();
            // A gang on a single node is together, whatever the node's labels say.
            let domain = if work.profile.matches(facts) {
                facts.value(&key).unwrap_or_default().to_string()
            } else if room >= work.gang && work.alone.matches(facts) {
                format!("node {}", node.machine.id)
            } else {
                continue;
            };
            let bound_for = &node.machine.assigned;
            let ours = *bound_for.fingerprint == *work.profile.fingerprint()
                || *bound_for.fingerprint == *work.alone.fingerprint();
            let bound_for = ours.then(|| bound_for.group.to_string());
            rooms.entry(domain).or_default().push(Room {
                id: node.machine.id.clone(),
                pods: room,
                bound_for,
            });
        }
        for gang in waiting {
            let name = format!("{}/{gang}", work.name);
            let total = |nodes: &[Room]| nodes.iter().map(|node| node.pods).sum::<u64>();
            let own = |nodes: &[Room]| {
                nodes.iter().filter(|node| node.is_for(&name)).map(|node| node.pods).sum::<u64>() >= work.gang
            };
            // The domain that was bound for it, else the one with the least room to spare: large gangs find theirs.
            let fitting = rooms.iter().filter(|(_, nodes)| total(nodes) >= work.gang);
            let best = fitting.min_by_key(|(_, nodes)| (!own(nodes), total(nodes)));
            let Some(domain) = best.map(|(domain, _)| domain.clone()) else { break };
            let nodes = rooms.get_mut(&domain).expect("just found");
            let mut left = work.gang;
            let mut places = Vec::new();
            // A node that holds the whole gang beats several.
            nodes.sort_by_key(|node| {
                let size = if node.pods >= work.gang { node.pods } else { u64::MAX - node.pods };
                (!node.is_for(&name), size, node.id.clone())
            });
            for found in nodes.iter_mut() {
                let members = left.min(found.pods);
                if members == 0 {
                    continue;
                }
                found.pods -= members;
                left -= members;
                let node = self.nodes.get_mut(&found.id).expect("rooms are of nodes");
                node.free = node.free.saturating_sub(&work.unit.scale(members));
                node.members.insert((index, gang), members);
                places.push((found.id.clone(), members));
            }
            work.gangs.insert(gang, places);
        }
    }
}

/// Room for gang members on one node.
struct Room {
    id: Box<str>,
    pods: u64,
    /// If the node was bound for this kind of work: for which gang, or none in particular.
    bound_for: Option<String>,
}

impl Room {
    fn is_for(&self, gang: &str) -> bool {
        self.bound_for.as_deref().is_some_and(|group| group.is_empty() || group == gang)
    }
}

fn put(node: &mut Node, index: usize, pods: u64, unit: &ResourceVec) {
    node.free = node.free.saturating_sub(&unit.scale(pods));
    *node.pods.entry(index).or_default() += pods;
}
