//! What a simulated cluster says and does when it is told things.

use bigfleet_model::resource::ResourceVec;
use bigfleet_proto::v1alpha1::BootstrapRequest;

use super::*;
use crate::up::cast;

const SECOND: i64 = 1_000_000_000;

/// A cloud with these machines, each a node of the cluster `batch`.
struct Cloud(Vec<&'static str>);

impl Nodes for Cloud {
    fn of(&self, cluster: &str) -> BTreeSet<String> {
        assert_eq!(cluster, "batch");
        self.0.iter().map(|machine| (*machine).to_owned()).collect()
    }

    fn machine(&self, id: &str) -> Option<Arc<Machine>> {
        let mut node = Machine::new(id, bigfleet_model::machine::MachineState::Configured);
        node.resources = ResourceVec::parse([("cpu", "16"), ("memory", "64Gi")]).unwrap();
        Some(Arc::new(node))
    }
}

fn batch() -> Cluster {
    let part = cast::clusters().pop().unwrap();
    let mut cluster = Cluster::new(part, 42, 0, &BTreeMap::from([("etl".into(), 4), ("filler".into(), 0)]));
    cluster.look(0, &Cloud(vec![]));
    cluster
}

fn told(machine: &str, state: MachineState) -> Heard {
    Heard::NodeStateUpdate(NodeStateUpdate {
        machine_id: machine.into(),
        cluster_id: "batch".into(),
        state: state.into(),
        ..NodeStateUpdate::default()
    })
}

fn reclaim(machine: &str, grace_period_seconds: i64) -> Heard {
    Heard::ReclaimInstruction(ReclaimInstruction {
        instruction_id: "00000000000000aa".into(),
        nodes: vec![machine.into()],
        grace_period_seconds,
        preemptor_priority: 0,
    })
}

fn pods(cluster: &Cluster) -> (u64, u64) {
    let etl = &cluster.work()[0];
    (etl.running_pods, etl.waiting_pods)
}

#[test]
fn pods_run_once_the_node_is_told_joined_and_really_there() {
    let mut cluster = batch();
    assert_eq!(cluster.hear(told("m", MachineState::Configured), 0), None);
    cluster.look(9 * SECOND, &Cloud(vec!["m"]));
    assert_eq!(pods(&cluster), (0, 4), "it joins after ten seconds");
    cluster.look(10 * SECOND, &Cloud(vec![]));
    assert_eq!(pods(&cluster), (0, 4), "Configured on paper alone");
    cluster.look(11 * SECOND, &Cloud(vec!["m"]));
    assert_eq!(pods(&cluster), (4, 0));
    cluster.look(12 * SECOND, &Cloud(vec![]));
    assert_eq!(pods(&cluster), (0, 4), "the host died");
}

#[test]
fn a_reclaimed_machine_is_emptied_and_acknowledged_twice() {
    let mut cluster = batch();
    cluster.hear(told("m", MachineState::Configured), 0);
    cluster.look(10 * SECOND, &Cloud(vec!["m"]));
    let ack = |nodes_started| {
        Saying::ReclaimAck(ReclaimAck { instruction_id: "00000000000000aa".into(), nodes_started })
    };
    assert_eq!(cluster.hear(reclaim("m", 600), 10 * SECOND), Some(ack(1)), "begun");
    cluster.hear(told("m", MachineState::Draining), 10 * SECOND);
    assert_eq!(cluster.next_due(), Some(20 * SECOND), "well within the grace");
    assert_eq!(cluster.look(19 * SECOND, &Cloud(vec!["m"])), []);
    assert_eq!(pods(&cluster), (4, 0), "pods finish");
    assert_eq!(cluster.look(20 * SECOND, &Cloud(vec!["m"])), [ack(1)], "empty");
    assert_eq!(pods(&cluster), (0, 4), "and do not come back to it");
    cluster.look(30 * SECOND, &Cloud(vec!["m"]));
    assert_eq!(pods(&cluster), (0, 4));
    cluster.hear(reclaim("m", 3), 40 * SECOND);
    assert_eq!(cluster.next_due(), Some(43 * SECOND), "a short grace is kept");
}

#[test]
fn a_machine_that_is_lost_is_no_node_any_more() {
    let mut cluster = batch();
    cluster.hear(told("m", MachineState::Configured), 0);
    cluster.look(10 * SECOND, &Cloud(vec!["m"]));
    cluster.hear(told("m", MachineState::Failed), 11 * SECOND);
    cluster.look(12 * SECOND, &Cloud(vec!["m"]));
    assert_eq!(pods(&cluster), (0, 4));
}

#[test]
fn what_a_new_connection_does_not_repeat_is_gone() {
    let mut cluster = batch();
    for machine in ["m", "n"] {
        cluster.hear(told(machine, MachineState::Configured), 0);
    }
    cluster.look(10 * SECOND, &Cloud(vec!["m", "n"]));
    cluster.connected();
    cluster.hear(told("m", MachineState::Configured), 0);
    cluster.look(20 * SECOND, &Cloud(vec!["m", "n"]));
    assert_eq!(cluster.pods.nodes().collect::<Vec<_>>(), ["m"]);
}

#[test]
fn a_bootstrap_request_is_answered_with_its_number() {
    let request = BootstrapRequest { request_id: "00000000000000bb".into(), ..BootstrapRequest::default() };
    let Some(Saying::BootstrapResponse(answer)) = batch().hear(Heard::BootstrapRequest(request), 0) else {
        panic!("an answer")
    };
    assert_eq!((answer.request_id.as_str(), answer.error.as_str()), ("00000000000000bb", ""));
}

#[test]
fn the_roll_up_says_what_is_wanted_whether_it_runs_or_not() {
    let mut cluster = batch();
    let rollup = cluster.rollup(7);
    assert_eq!(
        (rollup.cluster_id.as_str(), rollup.timestamp_unix_nanos, rollup.needs.len()),
        ("batch", 7, 1)
    );
    assert_eq!(rollup.needs[0].aggregate_resources["cpu"], "16");
    assert!(cluster.fix(1, Some(3), 8), "it was fixed at none before");
    assert_eq!(cluster.rollup(8).needs.len(), 2);
    assert_eq!(cluster.find("filer"), Err(vec!["etl".to_owned(), "filler".to_owned()]));
    assert!(cluster.fix(1, None, 9));
    assert_eq!(cluster.work()[1].wanted, 100, "its own curve again");
}
