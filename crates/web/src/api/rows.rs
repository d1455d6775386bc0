//! Rows of lists, with what they say beside what they are.

use bigfleet_tell::{Shown, feed, group, sentence};
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

/// Puts together what belongs together, in the order of the first of each.
pub(crate) fn groups(decisions: &[(String, Decision)]) -> Vec<Group> {
    let told = |(shard, group): (&str, group::Group<'_>)| Group {
        shard: shard.to_owned(),
        data: Shown::new("Decision", group.first()),
        said: bigfleet_tell::safe(feed::said(&group)),
        why: bigfleet_tell::safe(sentence::why(group.first())),
        withheld: sentence::withheld(group.first()),
        count: group.decisions.len(),
        usd_per_hour: group.decisions.iter().map(|decision| decision.usd_per_hour).sum(),
        machines: group.decisions.iter().take(NAMES).map(|decision| decision.machine.clone()).collect(),
    };
    let rows = decisions.iter().map(|(shard, decision)| (shard.as_str(), decision));
    group::groups_of_many(rows).into_iter().map(told).collect()
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
