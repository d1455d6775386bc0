//! The demand against the simplest thing that could be right: add up everything, every time.

use bigfleet_model::need::aggregate;
use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn asked(priority: i32, cpu: &str, memory: &str) -> Asked {
    let resources = vec![("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), memory.to_owned())];
    Asked { resources, priority, ..Asked::default() }
}

#[derive(Clone, Debug)]
enum Act {
    Put(u8, i32, u8, u8),
    Bad(u8),
    Remove(u8),
    Retain(u8),
    Aside(u8, bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0..12_u8, 0..3_i32, 1..5_u8, 1..4_u8).prop_map(|(name, priority, cpu, memory)| Act::Put(name, priority, cpu, memory)),
        1 => (0..12_u8).prop_map(Act::Bad),
        2 => (0..12_u8).prop_map(Act::Remove),
        1 => (0..12_u8).prop_map(Act::Retain),
        2 => (0..12_u8, any::<bool>()).prop_map(|(name, aside)| Act::Aside(name, aside)),
    ]
}

proptest! {
    #[test]
    fn rows_are_what_adding_everything_up_gives(acts in vec(act(), 0..80)) {
        let mut demand = Demand::new("shop");
        let mut plain: BTreeMap<u8, Option<(Asked, bool)>> = BTreeMap::new();
        for act in acts {
            match act {
                Act::Put(name, priority, cpu, memory) => {
                    let asked = asked(priority, &cpu.to_string(), &format!("{memory}Gi"));
                    demand.put(&name.to_string(), &asked).unwrap();
                    let aside = matches!(plain.get(&name), Some(Some((_, true))));
                    plain.insert(name, Some((asked, aside)));
                }
                Act::Bad(name) => {
                    demand.put(&name.to_string(), &asked(0, "?", "1")).unwrap_err();
                    plain.insert(name, None);
                }
                Act::Remove(name) => {
                    let was_there = plain.remove(&name).is_some();
                    prop_assert_eq!(demand.remove(&name.to_string()), was_there);
                }
                Act::Aside(name, is_aside) => {
                    demand.set_aside(&name.to_string(), is_aside);
                    if let Some(Some((_, aside))) = plain.get_mut(&name) {
                        *aside = is_aside;
                    }
                }
                Act::Retain(below) => {
                    plain.retain(|name, _| *name < below);
                    demand.retain(|name| name.parse::<u8>().unwrap() < below);
                }
            }
            prop_assert_eq!(demand.aside(), plain.values().flatten().filter(|(_, aside)| *aside).count());
            let units = plain.values().flatten().filter(|(_, aside)| !aside).map(|(asked, _)| {
                let ask = asked.check().unwrap();
                Need { group: ask.group, ..Need::of_unit("shop", ask.profile.into(), ask.unit) }
            });
            prop_assert_eq!(demand.rollup(|_| None), aggregate(units));
            prop_assert_eq!(demand.bad(), plain.values().filter(|asked| asked.is_none()).count());
            prop_assert_eq!(demand.len(), plain.len());
        }
    }
}

#[test]
fn a_row_counts_its_units_and_takes_an_extra() {
    let mut demand = Demand::new("shop");
    let row = demand.put("a", &asked(1, "2", "1Gi")).unwrap();
    assert_eq!(
        demand.put("b", &asked(1, "2000m", "1024Mi")).unwrap(),
        row,
        "the same amount, spelled otherwise"
    );
    demand.put("c", &asked(1, "1", "4Gi")).unwrap();
    let unit = ResourceVec::parse([("cpu", "2"), ("memory", "1Gi")]).unwrap();
    assert_eq!((demand.count_of(row, &unit), demand.find("a")), (2, Some((row, &unit))));
    let extra = ResourceVec::parse([("cpu", "3")]).unwrap();
    let rows = demand.rollup(|asked| (asked == row).then(|| extra.clone()));
    assert_eq!(rows[0].aggregate, ResourceVec::parse([("cpu", "8"), ("memory", "6Gi")]).unwrap());
    assert_eq!(rows[0].min_unit, ResourceVec::parse([("cpu", "2"), ("memory", "4Gi")]).unwrap());
    assert_eq!(demand.asked(row), ResourceVec::parse([("cpu", "5"), ("memory", "6Gi")]).ok());
}

#[test]
fn the_revision_changes_with_the_demand_and_only_then() {
    let mut demand = Demand::new("shop");
    demand.put("a", &asked(1, "2", "1Gi")).unwrap();
    let before = demand.revision();
    demand.put("a", &asked(1, "2", "1024Mi")).unwrap();
    demand.put("bad", &asked(1, "?", "1")).unwrap_err();
    assert!(demand.remove("bad"));
    assert_eq!(demand.revision(), before);
    demand.put("a", &asked(1, "3", "1Gi")).unwrap();
    assert_ne!(demand.revision(), before);
}

#[test]
fn ten_thousand_hostile_requests_leave_the_good_one_alone() {
    let mut demand = Demand::new("shop");
    let row = demand.put("good", &asked(1, "2", "1Gi")).unwrap();
    for number in 0..10_000 {
        let bad = match number % 3 {
            0 => asked(1, "1e400", "1Gi"),
            1 => Asked { resources: vec![("x".repeat(100_000), "1".into())], ..Asked::default() },
            _ => asked(1, "2", "-1"),
        };
        demand.put(&format!("bad-{number}"), &bad).unwrap_err();
    }
    assert_eq!((demand.bad(), demand.rollup(|_| None).len()), (10_000, 1));
    assert_eq!(demand.find("good").map(|(found, _)| found), Some(row));
}
