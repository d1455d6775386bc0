//! Who is asked for apart, for how long, and that it ends.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::ask::{Asked, CoLocation};

fn asked(cpu: u64, memory: u64) -> Asked {
    let resources = vec![("cpu".to_owned(), cpu.to_string()), ("memory".to_owned(), format!("{memory}Gi"))];
    Asked { resources, priority: 7, ..Asked::default() }
}

fn size(cpu: u64, memory: u64) -> ResourceVec {
    ResourceVec::parse([("cpu", cpu.to_string()), ("memory", format!("{memory}Gi"))]).unwrap()
}

/// Fingerprint, sum of cpus and largest piece of each row, as a shard is told.
fn told(demand: &mut Demand) -> Vec<(String, u64, ResourceVec)> {
    let cpu = bigfleet_model::resource::ResourceName::CPU;
    let needs = demand.rollup(|_| None);
    needs
        .into_iter()
        .map(|need| {
            (need.profile.fingerprint().to_owned(), need.aggregate.get(&cpu) / 1000, need.min_unit.clone())
        })
        .collect()
}

#[test]
fn one_pod_that_nothing_holds_keeps_nobody_waiting() {
    let mut demand = Demand::new("shop");
    let row = demand.put("small-1", &asked(2, 4)).unwrap();
    demand.put("small-2", &asked(3, 4)).unwrap();
    demand.put("giant", &asked(1000, 4)).unwrap();
    assert_eq!(told(&mut demand).len(), 1);
    let before = demand.revision();
    assert!(demand.set_apart(row, &[size(8, 32), size(4, 64)]));
    assert_ne!(demand.revision(), before, "it is told soon");
    let rows = told(&mut demand);
    assert_eq!(
        rows,
        [
            ("p=7|ipb=0|rpb=0|reqs=bigfleet.lucy.sh/apart:2:1;|spr=".into(), 1000, size(1000, 4)),
            ("p=7|ipb=0|rpb=0|reqs=|spr=".into(), 5, size(3, 4)),
        ]
    );
    assert_eq!(demand.find("small-1").unwrap().0, row, "those that stay keep their row");

    // Whoever comes later is where its like is; whoever is seen again stays where it is.
    demand.put("giant-2", &asked(1000, 8)).unwrap();
    demand.put("giant", &asked(1000, 4)).unwrap();
    demand.put("small-3", &asked(8, 1)).unwrap();
    assert_eq!(told(&mut demand).iter().map(|row| row.1).collect::<Vec<_>>(), [2000, 13]);

    // The last of them has gone: the row is whole again.
    demand.remove("giant");
    demand.remove("giant-2");
    demand.put("larger", &asked(9, 1)).unwrap();
    assert_eq!(told(&mut demand).iter().map(|row| row.1).collect::<Vec<_>>(), [22]);
}

#[test]
fn pieces_that_no_machine_holds_together_part() {
    let mut demand = Demand::new("shop");
    let row = demand.put("processors", &asked(32, 1)).unwrap();
    demand.put("memory", &asked(1, 256)).unwrap();
    demand.put("memory-2", &asked(2, 200)).unwrap();
    // Machines for either, none for the largest of both.
    assert!(demand.set_apart(row, &[size(36, 72), size(4, 256)]));
    assert_eq!(
        told(&mut demand).into_iter().map(|row| row.2).collect::<Vec<_>>(),
        [size(32, 1), size(2, 256)],
        "the machines that hold most of them decide who stays"
    );
}

#[test]
fn what_belongs_together_stays_together() {
    let mut demand = Demand::new("shop");
    let gang = Some(CoLocation { topology_key: "rack".into(), ..CoLocation::default() });
    let row = demand.put("a", &Asked { co_location: gang.clone(), ..asked(2, 4) }).unwrap();
    demand.put("b", &Asked { co_location: gang, ..asked(1000, 4) }).unwrap();
    assert!(!demand.set_apart(row, &[size(8, 8)]));
    let spread = vec![("zone".to_owned(), 1, "DoNotSchedule".to_owned())];
    let row = demand.put("c", &Asked { spread: spread.clone(), ..asked(2, 4) }).unwrap();
    demand.put("d", &Asked { spread, ..asked(1000, 4) }).unwrap();
    assert!(!demand.set_apart(row, &[size(8, 8)]));
}

#[test]
fn a_row_that_gains_nothing_stays_as_it_is() {
    let mut demand = Demand::new("shop");
    let row = demand.put("a", &asked(4, 4)).unwrap();
    demand.put("b", &asked(5, 4)).unwrap();
    assert!(!demand.set_apart(row, &[]), "nothing is known");
    assert!(!demand.set_apart(row, &[size(1, 1)]), "nobody fits there");
    assert!(!demand.set_apart(row, &[size(8, 8)]), "all of them fit");
    assert_eq!(told(&mut demand).len(), 1);
}

proptest! {
    /// Whatever a shard says, again and again: nothing is lost, nothing is told twice, and it ends.
    #[test]
    fn setting_apart_loses_nothing_and_ends(
        pods in vec((1..64_u64, 1..64_u64), 1..24),
        sizes in vec((1..64_u64, 1..64_u64), 1..6),
    ) {
        let mut demand = Demand::new("shop");
        for (number, (cpu, memory)) in pods.iter().enumerate() {
            demand.put(&number.to_string(), &asked(*cpu, *memory)).unwrap();
        }
        let sizes: Vec<ResourceVec> = sizes.into_iter().map(|(cpu, memory)| size(cpu, memory)).collect();
        let mut rounds = 0;
        loop {
            let rows: Vec<RowId> = demand.rows().collect();
            let changed = rows.into_iter().filter(|row| demand.set_apart(*row, &sizes)).count();
            prop_assert_eq!(demand.asked_in_all(), pods.iter().map(|pod| pod.0).sum::<u64>());
            if changed == 0 {
                break;
            }
            rounds += 1;
            prop_assert!(rounds <= MOST_LEVELS + 1);
        }
        // A row that is left mixes nobody who fits a machine with somebody who fits none, up to the last level.
        for row in demand.rows().collect::<Vec<_>>() {
            let held = &demand.rows[&row];
            if held.level < MOST_LEVELS {
                let holds_all = |size: &ResourceVec| {
                    held.units.keys().all(|unit| size.covers(demand.units.get(*unit)))
                };
                let holds_one = |size: &ResourceVec| {
                    held.units.keys().any(|unit| size.covers(demand.units.get(*unit)))
                };
                prop_assert!(sizes.iter().any(holds_all) || !sizes.iter().any(holds_one));
            }
        }
        for number in 0..pods.len() {
            demand.remove(&number.to_string());
        }
        prop_assert!(demand.ceilings.is_empty() && demand.rows.is_empty());
    }
}

impl Demand {
    /// All cpus asked for.
    fn asked_in_all(&mut self) -> u64 {
        told(self).into_iter().map(|row| row.1).sum()
    }
}
