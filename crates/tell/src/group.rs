//! Decisions that belong together, in one line: `9 idle bare-metal ($0 more), 5 spot ($0.61/h) for need web of shop`.
//!
//! Groups are made of the rows that lists show, and count every one of them once.

use bigfleet_view::v1::{ActionKind, Decision};

use crate::sentence::is_owned;
use crate::words::{capacity_type, count, hourly, thousands};

/// Decisions of one cycle that do the same for the same.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// All of them, in the order they came.
    pub decisions: Vec<&'a Decision>,
}

/// What makes decisions one group: the same cycle did the same for the same, with the same fate, as often.
fn key(decision: &Decision) -> (u64, i32, i32, &str, &str, u32, u64) {
    let need = decision.need.as_ref().map_or("", |need| need.long_id.as_str());
    let (times, first) = (decision.times.max(1), decision.first_cycle);
    (decision.cycle, decision.kind, decision.fate, &decision.cluster, need, times, first)
}

/// Groups rows, in the order of the first of each.
pub fn groups<'a>(decisions: impl IntoIterator<Item = &'a Decision>) -> Vec<Group<'a>> {
    let groups = groups_of_many(decisions.into_iter().map(|decision| ((), decision)));
    groups.into_iter().map(|((), group)| group).collect()
}

/// Groups rows of several shards, each by its own, in the order of the first of each.
pub fn groups_of_many<'a, S: Copy + Ord>(
    decisions: impl IntoIterator<Item = (S, &'a Decision)>,
) -> Vec<(S, Group<'a>)> {
    let mut groups: Vec<(S, Group<'a>)> = Vec::new();
    let mut places = std::collections::BTreeMap::new();
    for (shard, decision) in decisions {
        let at = *places.entry((shard, key(decision))).or_insert(groups.len());
        match groups.get_mut(at) {
            Some((_, group)) => group.decisions.push(decision),
            None => groups.push((shard, Group { decisions: vec![decision] })),
        }
    }
    groups
}

impl<'a> Group<'a> {
    /// One of them, for what they share.
    pub fn first(&self) -> &'a Decision {
        self.decisions[0]
    }

    /// How its machines are paid for: the sort, how many, and what they cost an hour together; in the order they came.
    pub fn sorts(&self) -> Vec<(i32, u64, f64)> {
        let mut sorts: Vec<(i32, u64, f64)> = Vec::new();
        for decision in &self.decisions {
            match sorts.iter_mut().find(|(sort, ..)| *sort == decision.capacity_type) {
                Some((_, number, usd)) => (*number, *usd) = (*number + 1, *usd + decision.usd_per_hour),
                None => sorts.push((decision.capacity_type, 1, decision.usd_per_hour)),
            }
        }
        sorts
    }

    /// What it is about: `9 idle bare-metal ($0 more), 5 spot ($0.61/h)`.
    pub fn machines(&self) -> String {
        let is_bound = self.first().kind() == ActionKind::Bootstrap;
        let parts = self.sorts().into_iter().map(|(sort, number, usd)| {
            let idle = if is_bound { "idle " } else { "" };
            let name = match sort {
                0 => count(number, "machine"),
                _ => format!("{} {idle}{}", thousands(number), capacity_type(sort)),
            };
            match (is_bound && is_owned(sort), usd > 0.0) {
                (true, _) => format!("{name} ($0 more)"),
                (false, true) => format!("{name} ({})", hourly(usd)),
                (false, false) => name,
            }
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::CapacityType;
    use bigfleet_view::v1::{Fate, NeedRef};

    use super::*;

    fn decided(
        cycle: u64,
        kind: ActionKind,
        machine: &str,
        capacity_type: CapacityType,
        usd: f64,
    ) -> Decision {
        Decision {
            cycle,
            kind: kind.into(),
            machine: machine.into(),
            cluster: "shop".into(),
            fate: Fate::Begun.into(),
            capacity_type: capacity_type.into(),
            usd_per_hour: usd,
            need: Some(NeedRef { id: "77aa".into(), long_id: "77aa88bb".into(), ..NeedRef::default() }),
            ..Decision::default()
        }
    }

    #[test]
    fn groups_count_every_row_once_and_tell_money_by_sort() {
        use ActionKind::{Bootstrap, Provision, Reclaim};
        let rows = vec![
            decided(7, Bootstrap, "m-1", CapacityType::BareMetal, 4.0),
            decided(7, Provision, "s-1", CapacityType::Spot, 0.12),
            decided(7, Bootstrap, "m-2", CapacityType::BareMetal, 4.0),
            decided(7, Provision, "o-1", CapacityType::OnDemand, 0.38),
            decided(7, Provision, "s-2", CapacityType::Spot, 0.12),
            decided(8, Provision, "s-3", CapacityType::Spot, 0.12),
            decided(8, Reclaim, "s-9", CapacityType::Spot, 0.12),
        ];
        let all = groups(&rows);
        let told: Vec<String> = all.iter().map(Group::machines).collect();
        assert_eq!(
            told,
            [
                "2 idle bare-metal ($0 more)",
                "2 spot ($0.24/h), 1 on-demand ($0.38/h)",
                "1 spot ($0.12/h)",
                "1 spot ($0.12/h)"
            ]
        );
        assert_eq!(all.iter().map(|group| group.decisions.len()).sum::<usize>(), rows.len());
    }
}
