//! Counting what a roll-up consists of, before any of it is decoded: two bytes on the wire can become hundreds in memory.

use bigfleet_model::limits::{
    OverLimit, ROLLUP_AMOUNTS, ROLLUP_REQUIREMENTS, ROLLUP_ROWS, ROLLUP_VALUES, ROW_SPREADS, count,
};

use crate::wire::fields;

// ClusterCapacityNeeds
const NEEDS: u32 = 3;
// CapacityNeed
const REQUIREMENTS: u32 = 1;
const AGGREGATE: u32 = 2;
const SPREAD: u32 = 5;
const MIN_UNIT: u32 = 8;
// NodeSelectorRequirement
const VALUES: u32 = 3;

/// The payloads of the delimited fields of a message. Whoever decodes it will say where it is malformed.
fn parts(message: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let whole = fields(message).map_while(Result::ok).filter(|field| field.is_delimited);
    whole.map(|field| (field.number, field.payload(message)))
}

/// Refuses a roll-up that has more of something than is taken. One look at each byte at most, and nothing is set aside.
pub(super) fn check(rollup: &[u8]) -> Result<(), OverLimit> {
    let rows = || parts(rollup).filter(|(number, _)| *number == NEEDS).map(|(_, row)| row);
    count("needs", "rows", rows().count(), ROLLUP_ROWS)?;
    let (mut requirements, mut values, mut amounts) = (0, 0, 0);
    for row in rows() {
        let mut spreads = 0;
        for (number, part) in parts(row) {
            match number {
                REQUIREMENTS => {
                    requirements += 1;
                    values += parts(part).filter(|(number, _)| *number == VALUES).count();
                }
                AGGREGATE | MIN_UNIT => amounts += 1,
                SPREAD => spreads += 1,
                _ => {}
            }
        }
        count("spread", "constraints", spreads, ROW_SPREADS)?;
    }
    count("needs", "requirements in all", requirements, ROLLUP_REQUIREMENTS)?;
    count("needs", "values in all", values, ROLLUP_VALUES)?;
    count("needs", "amounts in all", amounts, ROLLUP_AMOUNTS)
}

#[cfg(test)]
mod tests {
    use bigfleet_proto::v1alpha1::{
        CapacityNeed, ClusterCapacityNeeds, NodeSelectorRequirement, TopologySpread,
    };
    use prost::Message;

    use super::*;

    /// What is said of a roll-up of these rows, and of the same without the last.
    fn refused(mut needs: Vec<CapacityNeed>) -> (String, Result<(), OverLimit>) {
        let mut message = ClusterCapacityNeeds::default();
        message.needs.append(&mut needs);
        let over = check(&message.encode_to_vec()).unwrap_err();
        message.needs.pop();
        (over.to_string(), check(&message.encode_to_vec()))
    }

    #[test]
    fn each_bound_is_counted_where_it_lies() {
        let row = CapacityNeed::default();
        let rows = refused(vec![row.clone(); ROLLUP_ROWS + 1]);
        assert_eq!(rows, ("needs has 50001 rows; at most 50000 are taken".into(), Ok(())));
        let requirement = |values: usize| NodeSelectorRequirement {
            values: vec![String::new(); values],
            ..NodeSelectorRequirement::default()
        };
        let of = |requirements| CapacityNeed { requirements, ..row.clone() };
        let mut needs = vec![of(vec![requirement(0); 1000]); ROLLUP_REQUIREMENTS / 1000];
        needs.push(of(vec![requirement(0)]));
        let over = "needs has 200001 requirements in all; at most 200000 are taken";
        assert_eq!(refused(needs), (over.into(), Ok(())));
        let mut needs = vec![of(vec![requirement(1000)]); ROLLUP_VALUES / 1000];
        needs.push(of(vec![requirement(1)]));
        assert_eq!(
            refused(needs),
            ("needs has 200001 values in all; at most 200000 are taken".into(), Ok(()))
        );
        let amounts = |count: usize| CapacityNeed {
            aggregate_resources: (0..count).map(|name| (name.to_string(), "1".into())).collect(),
            min_unit: [("cpu".to_owned(), "1".to_owned())].into(),
            ..row.clone()
        };
        let mut needs = vec![amounts(199); ROLLUP_AMOUNTS / 200];
        needs.push(amounts(0));
        assert_eq!(
            refused(needs),
            ("needs has 400001 amounts in all; at most 400000 are taken".into(), Ok(()))
        );
        let spread = vec![TopologySpread::default(); ROW_SPREADS + 1];
        let over = "spread has 33 constraints; at most 32 are taken";
        assert_eq!(refused(vec![CapacityNeed { spread, ..row }]), (over.into(), Ok(())));
    }

    #[test]
    fn what_is_malformed_is_left_to_whoever_decodes_it() {
        for bytes in [&[0x1A, 9][..], &[0xFF], &[0x1A, 2, 0x0A, 9], &[]] {
            assert_eq!(check(bytes), Ok(()));
        }
    }
}
