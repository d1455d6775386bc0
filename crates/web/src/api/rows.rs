//! Rows of lists, with what they say beside what they are.

use bigfleet_tell::{Shown, feed, sentence};
use bigfleet_view::v1::Decision;
use serde::Serialize;

/// Names of machines that are told of one group.
const NAMES: usize = 50;

/// One decision and its sentences.
#[derive(Serialize)]
pub(crate) struct DecisionRow {
    pub(crate) shard: String,
    data: Shown,
    said: String,
    why: String,
    withheld: bool,
}

impl DecisionRow {
    pub(crate) fn new(shard: &str, decision: &Decision) -> Self {
        Self {
            shard: shard.to_owned(),
            data: Shown::new("Decision", decision),
            said: bigfleet_tell::safe(sentence::action(decision)),
            why: bigfleet_tell::safe(sentence::why(decision)),
            withheld: sentence::withheld(decision),
        }
    }
}

/// Decisions that are one piece of news.
#[derive(Serialize)]
pub(crate) struct Group {
    shard: String,
    /// The first of them.
    data: Shown,
    said: String,
    why: String,
    withheld: bool,
    count: usize,
    usd_per_hour: f64,
    machines: Vec<String>,
}

/// Puts together what belongs together, in the order of the first of each. Decisions of one cycle come together.
pub(crate) fn groups(decisions: &[(String, Decision)]) -> Vec<Group> {
    let mut found: Vec<(&str, Vec<Decision>)> = Vec::new();
    let mut first_of_cycle = 0;
    for (shard, decision) in decisions {
        let is_new_cycle =
            found.last().is_some_and(|(of, group)| *of != shard || group[0].cycle != decision.cycle);
        if is_new_cycle {
            first_of_cycle = found.len();
        }
        let same =
            found[first_of_cycle..].iter_mut().find(|(_, group)| feed::belong_together(&group[0], decision));
        match same {
            Some((_, group)) => group.push(decision.clone()),
            None => found.push((shard, vec![decision.clone()])),
        }
    }
    let group = |(shard, group): (&str, Vec<Decision>)| Group {
        shard: shard.to_owned(),
        data: Shown::new("Decision", &group[0]),
        said: bigfleet_tell::safe(feed::said(&group)),
        why: bigfleet_tell::safe(sentence::why(&group[0])),
        withheld: sentence::withheld(&group[0]),
        count: group.len(),
        usd_per_hour: group.iter().map(|decision| decision.usd_per_hour).sum(),
        machines: group.iter().take(NAMES).map(|decision| decision.machine.clone()).collect(),
    };
    found.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cycle_and_need_is_one_piece_of_news_and_no_decision_is_lost() {
        let decision = |cycle, kind, machine: &str| {
            ("up".to_owned(), Decision { cycle, kind, machine: machine.into(), ..Decision::default() })
        };
        let all = [decision(1, 2, "a"), decision(1, 4, "b"), decision(1, 2, "c"), decision(2, 2, "d")];
        let groups = groups(&all);
        assert_eq!(groups.iter().map(|group| group.count).collect::<Vec<_>>(), [2, 1, 1]);
        assert_eq!(groups[0].machines, ["a", "c"]);
        assert_eq!(groups.iter().map(|group| group.count).sum::<usize>(), all.len());
    }
}
