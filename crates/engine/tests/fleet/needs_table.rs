//! Roll-ups replace, and what is the same stays the same.

use bigfleet_engine::{Draft, Fleet, Options, Replaced};
use bigfleet_model::need::Need;
use bigfleet_model::resource::ResourceVec;

use super::build::{cpu, decide, everything, fleet_of, gang, idle, need, outcomes, racked};

/// Replaces demand, both ways: made into numbers by the fleet, and beside it. They must agree in all that shows.
fn replace(fleet: &mut Fleet, cluster: &str, rows: &[Need], now: i64) -> Replaced {
    let mut beside = fleet.fork();
    let replaced = fleet.replace(cluster, rows.to_vec(), now).expect("a good roll-up");
    let (adopted, _) = beside.adopt(Draft::new(cluster, rows.to_vec()).expect("a good roll-up"), now);
    assert_eq!(adopted, replaced);
    let mut at_once = fleet.fork();
    assert_eq!(decide(&mut beside), decide(&mut at_once));
    assert_eq!(first_seen(&mut beside), first_seen(&mut at_once));
    let seen = |fleet: &Fleet| fleet.first_seen_unix_nanos(cluster).collect::<Vec<_>>();
    assert_eq!(seen(&beside), seen(fleet));
    replaced
}

/// The priority of every need and when it was first seen, in demand order.
fn first_seen(fleet: &mut Fleet) -> Vec<(i32, i64)> {
    decide(fleet);
    let needs = fleet.outcomes();
    let needs = needs.iter().map(|outcome| &outcome.demand.need);
    needs.map(|need| (need.profile.priority(), need.first_seen_unix_nanos)).collect()
}

#[test]
fn a_roll_up_replaces_and_never_merges() {
    let mut fleet = fleet_of(["a", "b", "c"].map(idle));
    let added = replace(&mut fleet, "shop", &[need("shop", 1, 8), need("shop", 2, 8)], 1);
    assert_eq!(added, Replaced { added: 2, ..Replaced::default() });
    assert_eq!(decide(&mut fleet), ["Bootstrap a shop", "Bootstrap b shop"]);

    let replaced = replace(&mut fleet, "shop", &[need("shop", 2, 8), need("shop", 3, 8)], 2);
    assert_eq!(replaced, Replaced { added: 1, removed: 1, changed: 0, kept: 1 });
    assert_eq!((fleet.need_count(), decide(&mut fleet).len()), (2, 2));

    // Less is less: nothing of the old amount stays.
    let replaced = replace(&mut fleet, "shop", &[need("shop", 2, 1)], 3);
    assert_eq!(replaced, Replaced { added: 0, removed: 1, changed: 1, kept: 0 });
    assert_eq!(decide(&mut fleet), ["Bootstrap a shop"]);
}

#[test]
fn an_empty_roll_up_withdraws_one_clusters_demand() {
    let mut fleet = fleet_of(["a", "b"].map(idle));
    replace(&mut fleet, "shop", &[need("shop", 1, 8)], 1);
    replace(&mut fleet, "bank", &[need("bank", 1, 8)], 1);
    decide(&mut fleet);
    let withdrawn = replace(&mut fleet, "shop", &[], 2);
    assert_eq!(withdrawn, Replaced { removed: 1, ..Replaced::default() });
    assert_eq!((fleet.need_count(), decide(&mut fleet)), (1, vec!["Bootstrap a bank".to_owned()]));
    assert!(replace(&mut fleet, "shop", &[], 3).is_unchanged(), "nothing was left to withdraw");
    assert!(replace(&mut fleet, "new", &[], 3).is_unchanged(), "a cluster that never wanted anything");
}

#[test]
fn first_seen_survives_replacements() {
    let mut fleet = Fleet::default();
    replace(&mut fleet, "shop", &[need("shop", 5, 8)], 10);
    replace(&mut fleet, "shop", &[need("shop", 5, 8), need("shop", 4, 1)], 20);
    assert_eq!(first_seen(&mut fleet), [(5, 10), (4, 20)]);
    // Another amount, and a row that claims another time: the first time stays.
    let later = Need { first_seen_unix_nanos: 25, ..need("shop", 4, 7) };
    replace(&mut fleet, "shop", &[need("shop", 5, 99), later], 30);
    assert_eq!(first_seen(&mut fleet), [(5, 10), (4, 20)]);
}

#[test]
fn first_seen_is_forgotten_with_its_row() {
    let mut fleet = Fleet::default();
    replace(&mut fleet, "shop", &[need("shop", 5, 8), need("shop", 4, 8)], 10);
    replace(&mut fleet, "shop", &[need("shop", 4, 8)], 20);
    replace(&mut fleet, "shop", &[need("shop", 5, 8), need("shop", 4, 8)], 30);
    assert_eq!(first_seen(&mut fleet), [(5, 30), (4, 10)]);
    replace(&mut fleet, "shop", &[], 40);
    replace(&mut fleet, "shop", &[need("shop", 5, 8)], 50);
    assert_eq!(first_seen(&mut fleet), [(5, 50)]);
}

#[test]
fn first_seen_is_kept_per_cluster_profile_and_group() {
    let mut fleet = Fleet::default();
    replace(&mut fleet, "bank", &[need("bank", 5, 8)], 10);
    replace(&mut fleet, "shop", &[need("shop", 5, 8), gang("shop", "g1", 16)], 20);
    replace(&mut fleet, "shop", &[gang("shop", "g1", 16), gang("shop", "g2", 16)], 30);
    assert_eq!(first_seen(&mut fleet), [(10, 20), (10, 30), (5, 10)]);
}

#[test]
fn a_restart_may_bring_the_stamps_along() {
    let mut fleet = Fleet::default();
    let remembered = Need { first_seen_unix_nanos: 3, ..need("shop", 5, 8) };
    replace(&mut fleet, "shop", &[remembered], 40);
    assert_eq!(first_seen(&mut fleet), [(5, 3)]);
}

#[test]
fn the_same_roll_up_again_is_unchanged_and_costs_no_cycle() {
    let mut fleet = fleet_of([racked(idle("a"), "r1")]);
    let rows = [need("shop", 5, 8), need("shop", 4, 8), gang("shop", "g", 16)];
    replace(&mut fleet, "shop", &rows, 10);
    let options = Options::default();
    let decision = fleet.cycle(&options, 1_000);
    let again = replace(&mut fleet, "shop", &rows, 99);
    assert_eq!(again, Replaced { kept: 3, ..Replaced::default() });
    assert!(again.is_unchanged());
    assert!(std::sync::Arc::ptr_eq(&decision, &fleet.cycle(&options, 1_001)), "the last answer stands");
}

#[test]
fn another_spelling_of_the_same_amount_is_no_change() {
    let spelled = |cpu, memory| {
        let unit = ResourceVec::parse([("cpu", cpu), ("memory", memory)]).expect("quantities");
        Need { aggregate: unit.clone(), min_unit: unit, ..need("shop", 1, 1) }
    };
    let mut fleet = Fleet::default();
    replace(&mut fleet, "shop", &[spelled("1", "16Gi")], 1);
    assert!(replace(&mut fleet, "shop", &[spelled("1000m", "17179869184")], 2).is_unchanged());
}

#[test]
fn rows_may_come_in_any_order_and_in_pieces() {
    let rows = [need("shop", 1, 8), need("shop", 2, 8), need("shop", 3, 16), gang("shop", "g", 16)];
    let machines = || (0..9).map(|n| racked(idle(&format!("m{n}")), "r1"));
    let mut fleet = fleet_of(machines());
    replace(&mut fleet, "shop", &rows, 5);
    let expected = everything(&mut fleet);

    let mut backwards = rows.clone();
    backwards.reverse();
    assert!(replace(&mut fleet, "shop", &backwards, 6).is_unchanged());

    // The third row in two pieces: amounts add up, and the piece is the larger of the two.
    let mut pieces = backwards.to_vec();
    pieces.retain(|row| row.profile.priority() != 3);
    pieces.push(need("shop", 3, 10));
    pieces.insert(0, need("shop", 3, 6));
    assert!(replace(&mut fleet, "shop", &pieces, 7).is_unchanged());
    assert_eq!(everything(&mut fleet), expected);

    let mut other = fleet_of(machines());
    replace(&mut other, "shop", &pieces, 5);
    assert_eq!(everything(&mut other), expected);
    let coarse = Need { min_unit: cpu(4), ..need("shop", 3, 6) };
    pieces[0] = coarse;
    assert_eq!(replace(&mut other, "shop", &pieces, 8).changed, 1, "a larger piece is a change");
}

#[test]
fn the_order_clusters_report_in_does_not_matter() {
    let decide_in = |clusters: &[&str]| {
        let mut fleet = fleet_of(["a", "b"].map(idle));
        for cluster in clusters {
            replace(&mut fleet, cluster, &[need(cluster, 1, 8)], 1);
        }
        decide(&mut fleet);
        outcomes(&fleet)
    };
    assert_eq!(decide_in(&["shop", "bank", "attic"]), decide_in(&["attic", "shop", "bank"]));
}

#[test]
fn a_gang_is_parked_and_let_go_again() {
    // Two machines of three: short, and held back from the second machine while it is parked.
    let mut fleet = fleet_of([racked(idle("a"), "r1"), racked(idle("b"), "r1")]);
    let row = gang("shop", "g", 24);
    replace(&mut fleet, "shop", std::slice::from_ref(&row), 1);
    let taken = ["Bootstrap a shop", "Bootstrap b shop"];
    assert_eq!(decide(&mut fleet), taken);
    assert!(fleet.set_parked(&row.key(), true));
    assert!(!fleet.set_parked(&row.key(), true), "it is parked already");
    assert_eq!(decide(&mut fleet), [""; 0]);
    assert_eq!(first_seen(&mut fleet), [(10, 1)], "it has still waited since then");
    assert!(fleet.set_parked(&row.key(), false));
    assert_eq!(decide(&mut fleet), taken);
}

#[test]
fn only_a_gang_that_is_there_can_be_parked() {
    let mut fleet = fleet_of([idle("a")]);
    let plain = need("shop", 1, 8);
    replace(&mut fleet, "shop", std::slice::from_ref(&plain), 1);
    let before = everything(&mut fleet);
    let strangers = [plain.key(), gang("shop", "g", 24).key(), gang("nobody", "g", 24).key()];
    for key in strangers {
        assert!(!fleet.set_parked(&key, true), "{key:?}");
    }
    assert_eq!(everything(&mut fleet), before);
}

#[test]
fn a_draft_says_which_gangs_are_parked_and_hands_back_what_it_replaced() {
    let mut fleet = Fleet::default();
    let gang = gang("shop", "g", 8);
    replace(&mut fleet, "shop", &[gang.clone(), need("shop", 1, 8)], 1);
    let mut draft = Draft::new("shop", vec![gang.clone(), need("shop", 1, 8)]).unwrap();
    assert!(!draft.park(need("shop", 1, 8).profile.fingerprint(), ""), "it is no gang");
    assert!(!draft.park(gang.profile.fingerprint(), "other"));
    assert!(draft.park(gang.profile.fingerprint(), &gang.group));
    let (replaced, _) = fleet.adopt(draft, 2);
    assert_eq!(replaced, Replaced { changed: 1, kept: 1, ..Replaced::default() });
    assert!(fleet.need(&gang.key()).unwrap().need.parked);
    let bad = Draft::new("shop", vec![need("bank", 1, 8)]).unwrap_err().to_string();
    assert!(bad.contains("belongs to \"bank\""), "{bad}");
}
