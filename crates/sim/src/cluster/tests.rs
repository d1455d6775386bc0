//! Clusters on their own: what pods do when nodes come, go and are asked to let go.

use bigfleet_model::machine::{HostRef, MachineState};
use bigfleet_model::need::{Need, aggregate};
use bigfleet_model::{label::Labels, machine::Machine};

use super::*;

fn cluster(work: &str) -> Pods {
    let text = format!(
        r#"{{ "name": "t", "lasts": "1m", "fleet": [], "clusters": [{{ "name": "c", "work": [{work}] }}] }}"#
    );
    let scenario = crate::Scenario::from_json(&text).expect("a good scenario");
    let mut pods = Pods::new(&scenario.clusters[0]);
    for (index, work) in scenario.clusters[0].work.iter().enumerate() {
        pods.scale(index, work.pods.at(0));
    }
    pods
}

fn node(id: &str, cpu: &str, rack: &str, zone: &str) -> Arc<Machine> {
    let mut machine = Machine::new(id, MachineState::Configured);
    machine.host = Some(HostRef::default());
    machine.cluster = "c".into();
    machine.zone = zone.into();
    machine.labels = Labels::new([("rack", rack)]).unwrap();
    machine.resources = ResourceVec::parse([("cpu", cpu)]).unwrap();
    machine.into()
}

#[test]
fn the_roll_up_is_the_sum_of_one_request_per_pod() {
    let pods = cluster(
        r#"{ "name": "w", "pods": 7, "unit": { "cpu": "250m", "memory": "1Gi" } },
           { "name": "g", "pods": 2, "unit": { "cpu": "2" }, "same": "rack", "gang": 3 }"#,
    );
    let mut requests = Vec::new();
    for work in &pods.work {
        let request = Need::of_unit("c", work.profile.clone(), work.unit.clone());
        for _ in 0..work.wanted {
            requests.push(request.clone());
        }
        for gang in work.gangs.keys() {
            let group: Arc<str> = format!("{}/{gang}", work.name).into();
            requests.extend((0..work.gang).map(|_| Need { group: group.clone(), ..request.clone() }));
        }
    }
    assert_eq!(requests.len(), 13);
    assert_eq!(pods.rollup(), aggregate(requests));
}

#[test]
fn pods_fill_nodes_and_wait_for_more() {
    let mut pods = cluster(r#"{ "name": "w", "pods": 10, "unit": { "cpu": "2" } }"#);
    pods.join(node("a", "8", "r1", "z"));
    assert_eq!((pods.schedule(), pods.count()), (4, (10, 6)));
    assert_eq!(pods.schedule(), 0, "nothing changed");
    pods.join(node("b", "16", "r1", "z"));
    assert_eq!((pods.schedule(), pods.count()), (6, (10, 0)));
    pods.scale(0, 3);
    assert_eq!(pods.count(), (3, 0));
    assert_eq!(pods.leave("a"), 3, "the pods of the last node went first");
    assert_eq!((pods.schedule(), pods.count()), (3, (3, 0)));
}

#[test]
fn lost_pods_are_made_again_unless_they_are_bare() {
    let mut pods = cluster(
        r#"{ "name": "w", "pods": 2, "unit": { "cpu": "1" } }, { "name": "b", "pods": 2, "unit": { "cpu": "1" }, "bare": true }"#,
    );
    pods.join(node("a", "4", "r1", "z"));
    assert_eq!(pods.schedule(), 4);
    pods.take_demand_changed();
    assert!(pods.cordon("a") && !pods.cordon("x"));
    assert_eq!(pods.evict("a"), 4);
    assert_eq!((pods.count(), pods.lost), ((2, 2), 4));
    assert!(pods.take_demand_changed(), "bare pods are gone");
    assert_eq!(pods.schedule(), 0, "the node is cordoned");
}

#[test]
fn a_gang_is_in_one_domain_or_waits() {
    let mut pods =
        cluster(r#"{ "name": "g", "pods": 1, "unit": { "cpu": "4" }, "same": "rack", "gang": 3 }"#);
    pods.join(node("a", "8", "r1", "z"));
    pods.join(node("b", "8", "r2", "z"));
    assert_eq!(pods.schedule(), 0, "four places, but not in one rack");
    pods.join(node("c", "8", "r2", "z"));
    assert_eq!((pods.schedule(), pods.count()), (3, (3, 0)));
    assert_eq!(pods.leave("c"), 3, "the job begins again as a whole");
    assert_eq!(pods.count(), (3, 3));
}

#[test]
fn gangs_make_room_for_those_who_have_no_choice() {
    let mut pods = cluster(
        r#"{ "name": "g", "pods": 2, "unit": { "cpu": "1" }, "same": "rack", "gang": 5, "priority": 9 },
           { "name": "w", "pods": 4, "unit": { "cpu": "2" }, "requires": [{ "key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"] }] }"#,
    );
    pods.join(node("a", "8", "r1", "z1"));
    pods.join(node("b", "16", "r2", "z2"));
    assert_eq!((pods.schedule(), pods.count()), (14, (14, 0)), "gangs would choose the smaller node first");
    assert!(pods.nodes["a"].members.is_empty());
}

#[test]
fn a_strict_spread_keeps_domains_even() {
    let mut pods = cluster(
        r#"{ "name": "w", "pods": 9, "unit": { "cpu": "1" }, "spread": { "key": "topology.kubernetes.io/zone", "skew": 1 } }"#,
    );
    pods.join(node("a", "8", "r1", "z1"));
    pods.join(node("b", "2", "r1", "z2"));
    assert_eq!((pods.schedule(), pods.count()), (5, (9, 4)), "three and two");
}

#[test]
fn churn_moves_pods_and_not_their_number() {
    let mut pods = cluster(r#"{ "name": "w", "pods": 4, "unit": { "cpu": "1" } }"#);
    pods.join(node("a", "4", "r1", "z"));
    pods.schedule();
    let before = pods.rollup();
    pods.churn(0, 3);
    assert_eq!((pods.count(), pods.rollup() == before), ((4, 3), true));
    assert_eq!(pods.schedule(), 3);
}

#[test]
fn a_canary_reports_only_what_waits() {
    let mut pods = cluster(r#"{ "name": "w", "pods": 4, "unit": { "cpu": "1" } }"#);
    pods.unmet_only = true;
    assert_eq!(pods.rollup().len(), 1);
    pods.join(node("a", "4", "r1", "z"));
    pods.take_demand_changed();
    pods.schedule();
    assert!(pods.take_demand_changed() && pods.rollup().is_empty());
}
