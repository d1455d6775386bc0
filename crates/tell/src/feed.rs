//! Decisions as they happen: what is new among them, and what belongs together.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bigfleet_view::v1::{ActionKind, Decision, Fate};

use crate::group::Group;
use crate::sentence;
use crate::words::{capacity_type, count, fate, hourly, kind, kind_done, need, thousands};

/// Machines remembered at most; beyond that everything is told again.
const MOST: usize = 100_000;

/// Knows what was told already: what is withheld from a machine is said once, not every cycle.
#[derive(Debug, Default)]
pub struct Fresh {
    withheld: BTreeMap<String, (i32, i32)>,
}

impl Fresh {
    /// Whether a decision says something that was not said before.
    pub fn is_new(&mut self, decision: &Decision) -> bool {
        if decision.fate() == Fate::Begun {
            self.withheld.remove(&decision.machine);
            return true;
        }
        if self.withheld.len() >= MOST {
            self.withheld.clear();
        }
        let what = (decision.kind, decision.fate);
        self.withheld.insert(decision.machine.clone(), what) != Some(what)
    }
}

/// `provisioned 9 on-demand and 5 spot for web (77aa88bb) of shop, $4.56/h`: decisions that belong together in a sentence.
pub fn said(group: &Group<'_>) -> String {
    let first = group.first();
    if group.decisions.len() == 1 {
        return sentence::action(first);
    }
    let mut sorts = group.sorts();
    sorts.sort_by_key(|(sort, ..)| *sort);
    let sorts: Vec<String> = sorts
        .iter()
        .map(|(sort, number, _)| match sort {
            0 => count(*number, "machine"),
            sort => format!("{} {}", thousands(*number), capacity_type(*sort)),
        })
        .collect();
    let sorts = crate::words::one_of(&sorts, 4);
    let withheld = sentence::withheld(first);
    let mut text = if withheld {
        format!("{} of {sorts}", kind(first.kind))
    } else {
        format!("{} {sorts}", kind_done(first.kind))
    };
    match (first.kind(), &first.need) {
        (ActionKind::Bootstrap | ActionKind::Provision, Some(wanted)) => {
            let _ = write!(text, " for {} of {}", need(wanted), wanted.cluster);
        }
        (ActionKind::Preempt, Some(wanted)) => {
            let _ = write!(text, " from {} for {} of {}", first.cluster, need(wanted), wanted.cluster);
        }
        (ActionKind::Reclaim, _) => {
            let _ = write!(text, " from {}", first.cluster);
        }
        _ => {}
    }
    let usd: f64 = group.decisions.iter().map(|decision| decision.usd_per_hour).sum();
    if usd > 0.0 {
        let _ = write!(text, ", {}", hourly(usd));
    }
    if withheld {
        let _ = write!(text, ", withheld: {}{}", fate(first.fate), sentence::again(first));
    }
    text
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::CapacityType;
    use bigfleet_view::v1::NeedRef;

    use super::*;
    use crate::group::groups;

    fn bought(machine: &str, sort: CapacityType, fate: Fate) -> Decision {
        Decision {
            cycle: 7,
            kind: ActionKind::Provision.into(),
            machine: machine.into(),
            cluster: "shop".into(),
            need: Some(NeedRef { id: "77aa".into(), cluster: "shop".into(), ..NeedRef::default() }),
            fate: fate.into(),
            capacity_type: sort.into(),
            usd_per_hour: 0.25,
            ..Decision::default()
        }
    }

    #[test]
    fn what_is_withheld_is_news_once() {
        let mut fresh = Fresh::default();
        let held = bought("a", CapacityType::Spot, Fate::Capped);
        assert!(fresh.is_new(&held) && !fresh.is_new(&held));
        assert!(fresh.is_new(&bought("a", CapacityType::Spot, Fate::Paused)), "for another reason");
        assert!(fresh.is_new(&bought("a", CapacityType::Spot, Fate::Begun)) && fresh.is_new(&held));
    }

    #[test]
    fn a_group_is_told_in_one_sentence() {
        let two =
            [bought("a", CapacityType::Spot, Fate::Begun), bought("b", CapacityType::OnDemand, Fate::Begun)];
        let told = |decisions: &[Decision]| groups(decisions).iter().map(said).collect::<Vec<_>>();
        assert_eq!(told(&two), ["provisioned 1 on-demand and 1 spot for 77aa of shop, $0.50/h"]);
        let held =
            [bought("a", CapacityType::Spot, Fate::Capped), bought("b", CapacityType::Spot, Fate::Capped)];
        assert_eq!(told(&held), ["Provision of 2 spot for 77aa of shop, $0.50/h, withheld: capped"]);
        assert_eq!(told(&[two[0].clone(), held[0].clone()]).len(), 2);
        assert_eq!(told(&two[..1]), [sentence::action(&two[0])]);
        let often = held.map(|one| Decision { times: 12, first_cycle: 3, ..one });
        assert_eq!(
            told(&often),
            ["Provision of 2 spot for 77aa of shop, $0.50/h, withheld: capped 12 times since cycle 3"]
        );
    }
}
