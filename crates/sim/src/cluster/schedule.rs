//! The cluster's scheduler: higher priority first, the least served first; pods go to nodes bound for their kind of
//! work, then to any that will do. Gangs go to one domain together or wait.

use std::collections::BTreeMap;

use bigfleet_model::resource::ResourceVec;

use super::{Node, Pods};

/// How many pods of this size fit.
fn fits(free: &ResourceVec, unit: &ResourceVec) -> u64 {
    unit.iter().filter(|(_, need)| *need > 0).map(|(name, need)| free.get(name) / need).min().unwrap_or(0)
}

impl Pods {
    /// Gives waiting pods places, as far as there are any. Returns how many found one.
    pub fn schedule(&mut self) -> u64 {
        if !std::mem::take(&mut self.places_changed) {
            return 0;
        }
        let choices = |index: usize| {
            let profile = &self.work[index].profile;
            self.nodes.values().filter(|node| profile.matches(node.machine.facts())).count()
        };
        let mut order: Vec<(std::cmp::Reverse<i32>, bool, usize, usize)> = (0..self.work.len())
            .filter(|index| self.work[*index].waiting > 0 || self.work[*index].gang > 0)
            .map(|index| {
                let work = &self.work[index];
                (std::cmp::Reverse(work.profile.priority()), work.gang == 0, choices(index), index)
            })
            .collect();
        order.sort_unstable();
        let mut placed = 0;
        for (_, _, _, index) in order {
            placed += if self.work[index].gang > 0 {
                self.place_gangs(index)
            } else if self.work[index].profile.strict_spread().is_some() {
                self.place_spread(index)
            } else {
                self.place_plain(index)
            };
        }
        self.demand_changed |= self.unmet_only && placed > 0;
        self.touched |= placed > 0;
        placed
    }

    fn place_plain(&mut self, index: usize) -> u64 {
        let work = &mut self.work[index];
        let before = work.waiting;
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
        before - work.waiting
    }

    fn place_spread(&mut self, index: usize) -> u64 {
        let work = &mut self.work[index];
        let spread = work.profile.strict_spread().expect("asked before").clone();
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for node in self.nodes.values().filter(|node| work.profile.matches(node.machine.facts())) {
            let Some(domain) = node.machine.facts().value(&spread.key) else { continue };
            *counts.entry(domain.into()).or_default() += node.pods.get(&index).copied().unwrap_or(0);
        }
        let before = work.waiting;
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
        before - work.waiting
    }

    fn place_gangs(&mut self, index: usize) -> u64 {
        let work = &mut self.work[index];
        let waiting: Vec<u64> =
            work.gangs.iter().filter(|(_, places)| places.is_empty()).map(|(gang, _)| *gang).collect();
        if waiting.is_empty() {
            return 0;
        }
        let key = work.profile.same().expect("gangs have a label in common").key().to_string();
        let mut rooms: BTreeMap<String, Vec<(Box<str>, u64)>> = BTreeMap::new();
        for node in self.nodes.values() {
            let room = fits(&node.free, &work.unit);
            if node.cordoned || room == 0 || !work.profile.matches(node.machine.facts()) {
                continue;
            }
            let domain = node.machine.facts().value(&key).unwrap_or_default();
            rooms.entry(domain.into()).or_default().push((node.machine.id.clone(), room));
        }
        let mut placed = 0;
        for gang in waiting {
            let total = |nodes: &Vec<(Box<str>, u64)>| nodes.iter().map(|(_, room)| *room).sum::<u64>();
            // The domain with the least room to spare, so that large gangs find theirs.
            let best = rooms
                .iter()
                .filter(|(_, nodes)| total(nodes) >= work.gang)
                .min_by_key(|(_, nodes)| total(nodes));
            let Some(domain) = best.map(|(domain, _)| domain.clone()) else { break };
            let nodes = rooms.get_mut(&domain).expect("just found");
            let mut left = work.gang;
            let mut places = Vec::new();
            // A node that holds the whole gang beats several.
            nodes.sort_by_key(|(id, room)| {
                (if *room >= work.gang { *room } else { u64::MAX - *room }, id.clone())
            });
            for (id, room) in nodes.iter_mut() {
                let members = left.min(*room);
                if members == 0 {
                    continue;
                }
                *room -= members;
                left -= members;
                let node = self.nodes.get_mut(id).expect("rooms are of nodes");
                node.free = node.free.saturating_sub(&work.unit.scale(members));
                node.members.insert((index, gang), members);
                places.push((id.clone(), members));
            }
            placed += work.gang;
            work.gangs.insert(gang, places);
        }
        placed
    }
}

fn put(node: &mut Node, index: usize, pods: u64, unit: &ResourceVec) {
    node.free = node.free.saturating_sub(&unit.scale(pods));
    *node.pods.entry(index).or_default() += pods;
}
