//! Drains on a small pretended cluster: each test reads as the orders that come out.

use super::*;

const SECOND: i64 = 1_000_000_000;

#[derive(Default)]
struct Cluster {
    nodes: BTreeMap<String, Node>,
    pods: Vec<(String, Pod)>,
    held: Vec<String>,
}

impl World for Cluster {
    fn node_of(&self, machine: &str) -> Option<Node> {
        self.nodes.get(machine).cloned()
    }

    fn pods_on(&self, node: &str) -> Vec<Pod> {
        self.pods.iter().filter(|(on, _)| on == node).map(|(_, pod)| pod.clone()).collect()
    }

    fn is_held(&self, machine: &str) -> bool {
        self.held.iter().any(|held| held == machine)
    }
}

impl Cluster {
    fn with(machines: &[&str], pods: &[(&str, &str, Carried)]) -> Self {
        let node = |machine: &&str| {
            ((*machine).to_owned(), Node { name: format!("node-{machine}"), is_cordoned: false, mark: None })
        };
        let pod = |(on, name, carried): &(&str, &str, Carried)| (format!("node-{on}"), pod(name, *carried));
        Self {
            nodes: machines.iter().map(node).collect(),
            pods: pods.iter().map(pod).collect(),
            held: Vec::new(),
        }
    }

    /// Carries out what can be: cordons at once, evictions not at all.
    fn obey(&mut self, orders: &[Order]) {
        for order in orders {
            let set = |nodes: &mut BTreeMap<String, Node>, name: &str, mark: Option<Mark>| {
                let node = nodes.values_mut().find(|node| node.name == name).unwrap();
                (node.is_cordoned, node.mark) = (mark.is_some(), mark);
            };
            match order {
                Order::Cordon { node, mark } => set(&mut self.nodes, node, Some(mark.clone())),
                Order::Uncordon { node } => set(&mut self.nodes, node, None),
                _ => {}
            }
        }
    }
}

fn pod(name: &str, carried: Carried) -> Pod {
    Pod {
        namespace: "shop".into(),
        name: name.into(),
        uid: format!("uid-{name}"),
        carried,
        is_terminating: false,
        grace_secs: 30,
    }
}

/// Orders without the progress reports.
fn acts(orders: &[Order]) -> Vec<String> {
    let act = |order: &Order| match order {
        Order::Cordon { node, mark } => Some(format!("cordon {node} for {}", mark.instruction)),
        Order::Uncordon { node } => Some(format!("uncordon {node}")),
        Order::Acknowledge { instruction, nodes_started } => {
            Some(format!("ack {instruction} {nodes_started}"))
        }
        Order::Evict { pod, grace_secs: None, .. } => Some(format!("evict {}", pod.name)),
        Order::Evict { pod, grace_secs: Some(grace), .. } => Some(format!("evict {} in {grace}", pod.name)),
        Order::Tell(_) => None,
    };
    orders.iter().filter_map(act).collect()
}

fn told(orders: &[Order]) -> Vec<(State, usize, usize)> {
    let tell = |order: &Order| match order {
        Order::Tell(progress) => Some((progress.state, progress.pods_left, progress.blocked)),
        _ => None,
    };
    orders.iter().filter_map(tell).collect()
}

/// Steps and carries out.
fn step(drains: &mut Drains, now: i64, cluster: &mut Cluster) -> Vec<String> {
    let orders = drains.step(now, cluster);
    cluster.obey(&orders);
    acts(&orders)
}

#[test]
fn a_node_is_cordoned_acknowledged_emptied_and_done() {
    use Carried::{ByDaemonSet, ByItself, ByNode};
    let mut cluster =
        Cluster::with(&["m"], &[("m", "web", ByItself), ("m", "logs", ByDaemonSet), ("m", "proxy", ByNode)]);
    let mut drains = Drains::default();
    assert!(drains.instruct("i", &["m".into()], 600, 0));
    assert_eq!(step(&mut drains, 0, &mut cluster), ["cordon node-m for i"]);
    assert_eq!(step(&mut drains, 1, &mut cluster), ["evict web", "ack i 1"]);
    assert_eq!(step(&mut drains, 2, &mut cluster), [""; 0], "it was asked");
    drains.evicted("uid-web", Evicted::Accepted, 3);
    assert_eq!(step(&mut drains, 4 * SECOND, &mut cluster), [""; 0], "it ends in its own time");
    cluster.pods.retain(|(_, pod)| pod.name != "web");
    assert_eq!(step(&mut drains, 5 * SECOND, &mut cluster), ["ack i 0"], "daemons and static pods stay");
    assert!(drains.is_empty());
}

#[test]
fn a_machine_without_a_node_is_done_at_once() {
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    let orders = drains.step(0, &Cluster::default());
    assert_eq!((acts(&orders), told(&orders)), (vec!["ack i 0".to_owned()], vec![(State::NotFound, 0, 0)]));
    assert!(drains.is_empty());
}

#[test]
fn a_budget_is_waited_for_and_visible() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    step(&mut drains, 0, &mut cluster);
    assert_eq!(step(&mut drains, 0, &mut cluster), ["evict web", "ack i 1"]);
    drains.evicted("uid-web", Evicted::Blocked("the budget is used up".into()), 0);
    let orders = drains.step(1, &cluster);
    assert_eq!((acts(&orders), told(&orders)), (vec![], vec![(State::Evicting, 1, 1)]));
    assert_eq!(drains.next_due(), Some(SECOND), "and again later");
    assert_eq!(drains.step(2, &cluster), [], "told once");
    let mut now = SECOND;
    let mut tries = 0;
    while now < 120 * SECOND {
        if acts(&drains.step(now, &cluster)) == ["evict web"] {
            tries += 1;
            drains.evicted("uid-web", Evicted::Blocked("the budget is used up".into()), now);
        }
        now += SECOND / 2;
    }
    assert_eq!(tries, 10, "after 1, 2, 4, 8 and then every 15 s");
}

#[test]
fn when_the_grace_is_over_the_rest_is_left_to_the_machine() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 20, 0);
    step(&mut drains, 0, &mut cluster);
    assert_eq!(
        step(&mut drains, 0, &mut cluster),
        ["evict web in 20", "ack i 1"],
        "its own 30 s would be too long"
    );
    drains.evicted("uid-web", Evicted::Blocked("no".into()), 0);
    let orders = drains.step(20 * SECOND, &cluster);
    assert_eq!((acts(&orders), told(&orders)), (vec!["ack i 0".to_owned()], vec![(State::GraceOver, 1, 1)]));
}

#[test]
fn a_restart_goes_on_without_acknowledging_again() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut before = Drains::default();
    before.instruct("i", &["m".into()], 600, 0);
    step(&mut before, 0, &mut cluster);
    step(&mut before, 0, &mut cluster);
    let mark = cluster.nodes["m"].mark.clone().unwrap();
    assert_eq!(mark.until_unix_nanos, 600 * SECOND);
    let mut after = Drains::default();
    after.resume(&mark);
    after.instruct("i", &["m".into()], 590, 10 * SECOND);
    assert_eq!(step(&mut after, 10 * SECOND, &mut cluster), ["evict web"], "a second one would mean done");
    cluster.pods.clear();
    assert_eq!(step(&mut after, 11 * SECOND, &mut cluster), ["ack i 0"]);
}

#[test]
fn nodes_drain_side_by_side_and_one_instruction_ends_with_its_last() {
    let mut cluster =
        Cluster::with(&["a", "b", "c"], &[("a", "x", Carried::ByItself), ("b", "y", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("both", &["a".into(), "b".into()], 600, 0);
    drains.instruct("other", &["c".into()], 600, 0);
    assert_eq!(
        step(&mut drains, 0, &mut cluster),
        ["cordon node-a for both", "cordon node-b for both", "cordon node-c for other"]
    );
    assert_eq!(
        step(&mut drains, 0, &mut cluster),
        ["evict x", "evict y", "ack both 2", "ack other 1", "ack other 0"]
    );
    cluster.pods.retain(|(_, pod)| pod.name != "x");
    assert_eq!(step(&mut drains, 1, &mut cluster), [""; 0]);
    cluster.pods.clear();
    assert_eq!(step(&mut drains, 2, &mut cluster), ["ack both 0"]);
}

#[test]
fn a_machine_taken_back_is_uncordoned_if_the_cordon_was_ours() {
    let mut cluster = Cluster::with(&["m", "n"], &[("m", "web", Carried::ByItself)]);
    cluster.nodes.get_mut("n").unwrap().is_cordoned = true;
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    step(&mut drains, 0, &mut cluster);
    let orders = drains.take_back("m", 0, &cluster);
    assert_eq!(
        (acts(&orders), told(&orders)),
        (vec!["uncordon node-m".to_owned()], vec![(State::TakenBack, 0, 0)])
    );
    assert_eq!(drains.next_due(), Some(2 * SECOND), "it is looked at again");
    assert_eq!(acts(&drains.step(SECOND, &cluster)), [""; 0]);
    assert_eq!(acts(&drains.step(2 * SECOND, &cluster)), ["uncordon node-m"], "it did not take");
    cluster.obey(&orders);
    assert_eq!(step(&mut drains, 3 * SECOND, &mut cluster), [""; 0]);
    assert!(drains.is_empty());
    assert_eq!(drains.take_back("n", 3 * SECOND, &cluster), [], "somebody else cordoned it");
}

#[test]
fn a_cordon_that_lands_after_its_machine_was_taken_back_is_lifted() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    let cordon = drains.step(0, &cluster);
    assert_eq!(acts(&drains.take_back("m", SECOND, &cluster)), [""; 0], "nothing is there to lift yet");
    assert!(!drains.is_empty());
    assert_eq!(acts(&drains.step(SECOND, &cluster)), [""; 0]);
    cluster.obey(&cordon);
    assert_eq!(step(&mut drains, 2 * SECOND, &mut cluster), ["uncordon node-m"]);
    assert!(!cluster.nodes["m"].is_cordoned);
    assert_eq!(step(&mut drains, 3 * SECOND, &mut cluster), [""; 0]);
    assert_eq!(step(&mut drains, 120 * SECOND, &mut cluster), [""; 0]);
    assert!(drains.is_empty(), "nothing can land any more");
}

#[test]
fn a_machine_that_is_let_go_again_keeps_its_new_cordon() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    let late = drains.step(0, &cluster);
    drains.take_back("m", SECOND, &cluster);
    drains.instruct("j", &["m".into()], 600, 2 * SECOND);
    cluster.obey(&late);
    assert_eq!(step(&mut drains, 2 * SECOND, &mut cluster), ["cordon node-m for j"]);
    assert_eq!(step(&mut drains, 3 * SECOND, &mut cluster), ["evict web", "ack j 1"]);
}

#[test]
fn a_cordon_that_does_not_take_is_ordered_again() {
    let mut drains = Drains::default();
    let cluster = Cluster::with(&["m"], &[]);
    drains.instruct("i", &["m".into()], 600, 0);
    assert_eq!(acts(&drains.step(0, &cluster)), ["cordon node-m for i"]);
    assert_eq!(acts(&drains.step(SECOND, &cluster)), [""; 0]);
    assert_eq!(drains.next_due(), Some(2 * SECOND));
    assert_eq!(acts(&drains.step(2 * SECOND, &cluster)), ["cordon node-m for i"]);
}

#[test]
fn many_pods_are_not_evicted_all_at_once() {
    let pods: Vec<String> = (0..40).map(|n| format!("p{n}")).collect();
    let pods: Vec<(&str, &str, Carried)> =
        pods.iter().map(|name| ("m", &**name, Carried::ByItself)).collect();
    let mut cluster = Cluster::with(&["m"], &pods);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    step(&mut drains, 0, &mut cluster);
    assert_eq!(step(&mut drains, 0, &mut cluster).len(), MOST_UNDER_WAY + 1);
    drains.evicted("uid-p0", Evicted::Accepted, 0);
    assert_eq!(step(&mut drains, 0, &mut cluster).len(), 1, "one is answered, one is asked");
}

#[test]
fn a_machine_whose_pods_have_no_other_place_waits_for_a_word() {
    let mut cluster = Cluster::with(&["m"], &[("m", "web", Carried::ByItself)]);
    let mut drains = Drains::default();
    drains.instruct("i", &["m".into()], 600, 0);
    let orders = drains.step(0, &cluster);
    cluster.obey(&orders);
    cluster.held.push("m".into());
    let orders = drains.step(SECOND, &cluster);
    assert!(orders.contains(&Order::Acknowledge { instruction: "i".into(), nodes_started: 1 }));
    let evicts = |orders: &[Order]| orders.iter().any(|order| matches!(order, Order::Evict { .. }));
    assert!(!evicts(&orders), "it stays for a moment");
    assert_eq!(drains.machines().collect::<Vec<_>>(), ["m"]);
    cluster.held.clear();
    assert!(evicts(&drains.step(2 * SECOND, &cluster)), "no word came");
}
