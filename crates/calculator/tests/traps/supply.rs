//! Counting supply: what is needed, what is there, and for whom.

use bigfleet_model::label::INSTANCE_TYPE;
use bigfleet_model::machine::{Machine, MachineState};
use bigfleet_model::need::Need;
use bigfleet_model::requirement::Requirement;

use super::build::{
    actions, amounts, assigned, claims, configured, cpu_deficits, decided, idle, need, of_profile, priced,
    profile, reasons, speculative, stamped, typed,
};

fn of_types(types: &[&str], priority: i32, total: &str) -> Need {
    let types = Requirement::is_in(INSTANCE_TYPE, types.iter().copied());
    of_profile("shop", profile(vec![types], priority), total, "1")
}

#[test]
fn machine_count_from_pod_count() {
    // Twenty pods of half a processor are ten processors: three machines of four, neither twenty nor one.
    let free = ["a", "b", "c", "d", "e"].map(|id| idle(id, "4"));
    let answer = decided(free, [need("shop", 10, "10", "500m")]);
    assert_eq!(
        actions(&answer),
        ["Bootstrap a shop need 0", "Bootstrap b shop need 0", "Bootstrap c shop need 0"]
    );
    assert_eq!(cpu_deficits(&answer), [0]);
}

#[test]
fn supply_credited_once_per_fingerprint() {
    // Two profiles overlap in one type, and there is one machine of it. The second need must stay short.
    let first = of_types(&["small", "medium"], 10, "8");
    let second = Need { first_seen_unix_nanos: 2, ..of_types(&["medium", "large"], 10, "8") };
    let shared = || typed(configured("m", "8", "shop"), "medium");
    let answer = decided([shared()], [first.clone(), second.clone()]);
    assert_eq!((claims(&answer), cpu_deficits(&answer)), (vec![("m", 0)], vec![0, 8_000]));
    assert_eq!(reasons(&answer), [(1, "priority_starved".to_owned())]);

    let spare = typed(speculative("s", "8"), "large");
    let answer = decided([shared(), spare], [first, second]);
    assert_eq!(actions(&answer), ["Provision s shop need 1"]);
}

#[test]
fn duplicated_in_values_count_a_machine_twice() {
    let twice = of_types(&["medium", "medium"], 10, "16");
    assert_eq!(twice.profile.fingerprint(), of_types(&["medium"], 10, "16").profile.fingerprint());

    let free = typed(idle("m", "8"), "medium");
    let answer = decided([free], [twice.clone()]);
    assert_eq!(actions(&answer), ["Bootstrap m shop need 0"]);
    assert_eq!(cpu_deficits(&answer), [8_000]);

    let victim = assigned(typed(configured("m", "8", "bank"), "medium"), 0);
    let answer = decided([victim], [twice]);
    assert_eq!(actions(&answer), ["Preempt m bank need 0 in 600s"]);
    assert_eq!(answer.unresolved[0].missing["cpu"], 8_000);
}

#[test]
fn another_clusters_machine_in_flight_credited() {
    let ours = need("shop", 10, "8", "1");
    let creating = |need: &Need| {
        let machine = Machine::new("c", MachineState::Creating);
        stamped(Machine { resources: amounts(&[("cpu", "8")]), ..machine }, need)
    };
    let theirs = need("bank", 10, "8", "1");
    assert_eq!(ours.profile.fingerprint(), theirs.profile.fingerprint());

    let answer = decided([creating(&ours)], [ours.clone()]);
    assert_eq!((claims(&answer), cpu_deficits(&answer)), (vec![("c", 0)], vec![0]));
    let answer = decided([creating(&theirs), speculative("s", "8")], [ours.clone()]);
    assert_eq!(
        (claims(&answer), actions(&answer)),
        (vec![("s", 0)], vec!["Provision s shop need 0".to_owned()])
    );

    let configuring = Machine { state: MachineState::Configuring, ..configured("c", "8", "bank") };
    let answer = decided([stamped(configuring, &ours)], [ours]);
    assert_eq!((claims(&answer), cpu_deficits(&answer)), (vec![], vec![8_000]));
}

#[test]
fn a_machine_that_adds_nothing_taken() {
    // After the first machine only the accelerator is missing; the second has none to give.
    let size = |gpus| amounts(&[("cpu", "8"), ("nvidia.com/gpu", gpus)]);
    let wanted = Need { aggregate: size("1"), ..need("shop", 10, "8", "1") };
    let of_size = |machine: Machine, gpus, price| Machine { resources: size(gpus), ..priced(machine, price) };
    let fleet = |make: fn(&str) -> Machine| {
        [of_size(make("a"), "0", 1.0), of_size(make("b"), "0", 2.0), of_size(make("c"), "1", 3.0)]
    };

    // The cheapest is picked first and adds nothing any more once the accelerator has come with its own processors.
    let answer = decided(fleet(|id| idle(id, "8")), [wanted.clone()]);
    assert_eq!(actions(&answer), ["Bootstrap c shop need 0"]);
    let answer = decided(fleet(|id| configured(id, "8", "shop")), [wanted.clone()]);
    assert_eq!(claims(&answer), [("c", 0)]);
    assert_eq!(actions(&answer), ["Reclaim a shop in 600s", "Reclaim b shop in 600s"]);
    let answer = decided(fleet(|id| configured(id, "8", "bank")), [wanted]);
    let expected = ["Preempt c bank need 0 in 600s", "Reclaim a bank in 600s", "Reclaim b bank in 600s"];
    assert_eq!(actions(&answer), expected);
}

#[test]
fn a_machine_too_small_for_one_pod_counted() {
    // Eight processors in all, but no pod fits on two.
    let answer = decided(["a", "b", "c", "d"].map(|id| idle(id, "2")), [need("shop", 10, "8", "4")]);
    assert_eq!((actions(&answer), cpu_deficits(&answer)), (vec![], vec![8_000]));
    assert_eq!(reasons(&answer), [(0, "no_matching_supply".to_owned())]);
}

#[test]
fn the_release_order_is_not_the_tail_of_the_keep_order() {
    // The cheapest is kept; the rest goes, cheapest first, the dearer to lose first, then by id.
    let penalty = |machine: Machine, dollars| {
        let mut machine = machine;
        machine.assigned.reclamation_penalty_usd = dollars;
        machine
    };
    let fleet = [
        priced(configured("e", "8", "shop"), 2.0),
        priced(configured("d", "8", "shop"), 2.0),
        penalty(priced(configured("z", "8", "shop"), 2.0), 5.0),
        priced(configured("f", "8", "shop"), 1.0),
    ];
    let answer = decided(fleet, [need("shop", 10, "8", "1")]);
    assert_eq!(claims(&answer), [("f", 0)]);
    assert_eq!(
        actions(&answer),
        ["Reclaim z shop in 600s", "Reclaim d shop in 600s", "Reclaim e shop in 600s"]
    );
}
