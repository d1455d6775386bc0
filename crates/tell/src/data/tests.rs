//! Messages as data: names, times, enumerations, defaults, choices.

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_view::v1;
use serde_json::json;

use super::*;

fn data(shown: &Shown) -> serde_json::Value {
    serde_json::to_value(shown).unwrap()
}

#[test]
fn every_message_of_the_view_can_be_walked() {
    let shown = Shown::new("PlanAnswer", &v1::PlanAnswer::default());
    assert_eq!(
        data(&shown),
        json!({
            "as_of": null, "actions": [], "totals": [], "usd_per_hour_before": 0.0, "usd_per_hour_after": 0.0,
            "unmet_before": 0, "unmet_after": 0,
        })
    );
    assert!(SCHEMA.fields(SCHEMA.shape("Need")).iter().any(|field| field.name == "first_seen"));
}

#[test]
fn values_are_shown_for_readers() {
    let machine = v1::Machine {
        id: "m-1".into(),
        state: MachineState::Configured.into(),
        capacity_type: CapacityType::OnDemand.into(),
        usd_per_hour: 0.121,
        labels: [("a".to_owned(), "b".to_owned()), ("rack".to_owned(), "r1".to_owned())].into(),
        bound_for: Some(v1::NeedRef { id: "77aa88bb".into(), ..v1::NeedRef::default() }),
        bound_priority: -5,
        state_since_unix_nanos: 1_700_000_000_500_000_000,
        interruption_penalty_usd: f64::INFINITY,
        ..v1::Machine::default()
    };
    let shown = data(&Shown::new("Machine", &machine).simulated(true));
    assert_eq!(shown["state"], "configured");
    assert_eq!(shown["capacity_type"], "on_demand");
    assert_eq!(shown["usd_per_hour"], 0.121);
    assert_eq!(shown["labels"], json!({"a": "b", "rack": "r1"}));
    assert_eq!(shown["bound_for"]["id"], "77aa88bb");
    assert_eq!(shown["bound_priority"], -5);
    assert_eq!(shown["state_since"], "2023-11-14T22:13:20.5Z");
    assert_eq!(shown["idle_since"], json!(null), "a time that is not there");
    assert_eq!(shown["interruption_penalty_usd"], "infinite");
    assert_eq!(shown["draining_for"], json!(null), "a message that is not there");
    assert_eq!(shown["simulated"], true);
}

#[test]
fn of_a_choice_only_the_chosen_is_there_and_repeated_numbers_unpack() {
    let remedy = v1::Remedy { acquires: 3, preempts: 0, change: Some(v1::remedy::Change::Priority(900)) };
    assert_eq!(data(&Shown::new("Remedy", &remedy)), json!({"priority": 900, "acquires": 3, "preempts": 0}));
    let request = v1::PlanRequest { kinds: vec![4, 99], ..v1::PlanRequest::default() };
    assert_eq!(
        data(&Shown::new("PlanRequest", &request))["kinds"],
        json!(["reclaim", 99]),
        "99 is from a newer server"
    );
}

#[test]
fn a_span_is_in_seconds() {
    let story = v1::MachineExplanation { hold_nanos: 1_500_000_000, ..v1::MachineExplanation::default() };
    assert_eq!(data(&Shown::new("MachineExplanation", &story))["hold_secs"], 1.5);
}

#[test]
fn no_two_fields_of_a_message_share_a_name() {
    let as_of = v1::AsOf { cycle: 7, cycle_unix_nanos: 1_700_000_000_000_000_000, ..v1::AsOf::default() };
    let text = serde_json::to_string(&Shown::new("AsOf", &as_of)).unwrap();
    assert!(text.contains("\"cycle\":7,\"cycle_time\":\"2023-11-14T22:13:20Z\""), "{text}");
    for shape in 0..SCHEMA.len() {
        let names: Vec<&str> = SCHEMA.fields(shape).iter().map(|field| field.name.as_str()).collect();
        let distinct: std::collections::BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(names.len(), distinct.len(), "{names:?}");
    }
}
