//! Gangs: one domain each, chosen once, and no more machines than they fill.

use bigfleet_model::need::Need;
use bigfleet_scenario::Answer;

use super::build::{
    actions, claims, configured, cpu_deficits, decided, gang, idle, need, priced, racked, speculative,
    stamped,
};

fn domain(answer: &Answer) -> Option<&str> {
    answer.domains[0].value.as_deref()
}

#[test]
fn domain_chosen_separately_for_credit_and_acquisition() {
    // One machine is bound in r1, where the rest is dear; r2 is idle, empty and cheap.
    let wanted = gang("g", &[], 10, "24", "8");
    let bound = racked(configured("a", "8", "shop"), "r1");
    let dear = ["b", "c"].map(|id| racked(priced(speculative(id, "8"), 9.0), "r1"));
    let cheap = ["x", "y", "z"].map(|id| racked(idle(id, "8"), "r2"));
    let machines = [bound.clone()].into_iter().chain(dear).chain(cheap.clone());
    let answer = decided(machines, [wanted.clone()]);
    assert_eq!(domain(&answer), Some("r1"));
    assert_eq!(actions(&answer), ["Provision b shop need 0", "Provision c shop need 0"]);

    // Without the dear ones r1 can never hold the gang: everything is in r2, and nothing stays in r1.
    let answer = decided([bound].into_iter().chain(cheap), [wanted]);
    assert_eq!(domain(&answer), Some("r2"));
    assert_eq!(claims(&answer), [("x", 0), ("y", 0), ("z", 0)]);
    let expected = [
        "Bootstrap x shop need 0",
        "Bootstrap y shop need 0",
        "Bootstrap z shop need 0",
        "Reclaim a shop in 600s",
    ];
    assert_eq!(actions(&answer), expected);
}

#[test]
fn a_served_gang_moves_because_a_fresh_domain_ranks_well() {
    let served = gang("g", &[], 10, "16", "8");
    let bound = ["m", "n"].map(|id| stamped(priced(racked(configured(id, "8", "shop"), "r5"), 9.0), &served));
    let fresh = ["a", "b"].map(|id| racked(idle(id, "8"), "r1"));
    let roomy = ["c", "d", "e", "f"].map(|id| racked(speculative(id, "8"), "r2"));
    let answer = decided(bound.into_iter().chain(fresh).chain(roomy), [served]);
    assert_eq!(domain(&answer), Some("r5"));
    assert_eq!((actions(&answer), cpu_deficits(&answer)), (vec![], vec![0]));
}

#[test]
fn gangs_of_one_size_swap_their_domains() {
    // Both racks would do for both gangs; what each is stamped with decides.
    let gangs = ["g1", "g2"].map(|group| gang(group, &[], 10, "16", "8"));
    let of = |id, rack, served: &Need| stamped(racked(configured(id, "8", "shop"), rack), served);
    let machines = [
        of("a", "r1", &gangs[1]),
        of("b", "r1", &gangs[1]),
        of("c", "r2", &gangs[0]),
        of("d", "r2", &gangs[0]),
    ];
    let answer = decided(machines, gangs);
    assert_eq!(claims(&answer), [("a", 1), ("b", 1), ("c", 0), ("d", 0)]);
    assert_eq!(actions(&answer), [""; 0]);
}

#[test]
fn sub_machine_gangs_claim_whole_machines() {
    // Twelve gangs of four pods, ten pods a machine, six machines: everybody is served, and one is left.
    let gangs = || (0..12).map(|n| gang(&format!("g{n:02}"), &[], 10, "4", "1"));
    let ids = ["a", "b", "c", "d", "e", "f"];
    let answer = decided(ids.map(|id| racked(idle(id, "10"), "r1")), gangs());
    let expected = ["a", "b", "c", "d", "e"].map(|id| format!("Bootstrap {id} shop need 0"));
    assert_eq!(actions(&answer), expected);
    assert_eq!((cpu_deficits(&answer), answer.unresolved.len()), (vec![0], 0));

    // The same once they are bound: nothing is bought beside them.
    let bound = ids.map(|id| racked(configured(id, "10", "shop"), "r1"));
    let answer = decided(bound.into_iter().chain([racked(speculative("s", "10"), "r1")]), gangs());
    assert_eq!(actions(&answer), ["Reclaim f shop in 600s"]);
    assert_eq!((cpu_deficits(&answer), answer.unresolved.len()), (vec![0], 0));
}

#[test]
fn folded_needs_lose_their_place_in_the_order() {
    // The gang folds into a plain need. It is more important and was seen later; the machine is its.
    let important = Need { first_seen_unix_nanos: 9, ..gang("g", &[], 1_000, "8", "8") };
    let machine = || racked(configured("m", "8", "shop"), "r1");
    let answer = decided([machine()], [need("shop", 10, "8", "8"), important]);
    let first = &answer.normalized_needs[0];
    assert_eq!((&*first.group, first.first_seen, &first.fingerprint[..6]), ("", 9, "p=1000"));
    assert_eq!((claims(&answer), cpu_deficits(&answer)), (vec![("m", 0)], vec![0, 8_000]));

    // At one priority the place follows from the gang that has waited longest.
    let old = Need { first_seen_unix_nanos: 2, ..gang("g2", &[], 10, "8", "8") };
    let young = Need { first_seen_unix_nanos: 9, ..gang("g1", &[], 10, "8", "8") };
    let between = Need { first_seen_unix_nanos: 5, ..need("shop", 10, "8", "8") };
    let answer = decided([machine()], [between, young, old]);
    let places: Vec<i64> = answer.normalized_needs.iter().map(|need| need.first_seen).collect();
    assert_eq!((places, claims(&answer)), (vec![2, 5], vec![("m", 0)]));
    assert_eq!(cpu_deficits(&answer), [8_000, 8_000]);
}

#[test]
fn folding_loses_the_value_list_of_same() {
    let picky = gang("g", &["r2", "r3"], 10, "8", "8");
    let machines = [
        racked(idle("a", "8"), "r1"),
        racked(priced(idle("b", "8"), 9.0), "r2"),
        racked(idle("c", "8"), "r4"),
    ];
    let answer = decided(machines, [picky]);
    assert_eq!(actions(&answer), ["Bootstrap b shop need 0"]);
    assert!(answer.normalized_needs[0].fingerprint.contains("reqs=example.org/rack:1:r2,r3;"));
    assert_eq!(answer.domains, []);
}

#[test]
fn a_folded_gang_stays_parked() {
    let parked = Need { parked: true, ..gang("g", &[], 10, "8", "8") };
    let answer = decided([racked(idle("a", "8"), "r1")], [parked.clone()]);
    assert_eq!(actions(&answer), ["Bootstrap a shop need 0"]);

    // One that spans machines does stay parked, and its machines stay with it.
    let parked = Need { aggregate: super::build::cpu("16"), ..parked };
    let machines = [racked(configured("a", "8", "shop"), "r1"), racked(idle("b", "8"), "r1")];
    let answer = decided(machines, [parked]);
    assert_eq!((actions(&answer), claims(&answer)), (vec![], vec![("a", 0)]));
}
