//! What is taken, what is refused, and with which words.

use super::*;

fn expression(key: &str, operator: &str, values: &[&str]) -> Expression {
    Expression {
        key: key.into(),
        operator: operator.into(),
        values: values.iter().map(ToString::to_string).collect(),
    }
}

fn asked() -> Asked {
    Asked {
        namespace: "shop".into(),
        requirements: vec![expression("zone", "In", &["b", "a"])],
        resources: vec![("cpu".into(), "500m".into()), ("memory".into(), "1Gi".into())],
        priority: 7,
        interruption_penalty: Some("3".into()),
        spread: vec![("zone".into(), 1, "DoNotSchedule".into())],
        ..Asked::default()
    }
}

#[test]
fn a_request_becomes_a_profile_and_a_unit() {
    let ask = asked().check().unwrap();
    assert_eq!(ask.profile.fingerprint(), "p=7|ipb=5|rpb=0|reqs=zone:1:a,b;|spr=zone:1:1;");
    assert_eq!(&*ask.group, "");
    assert_eq!(ask.unit, ResourceVec::parse([("cpu", "0.5"), ("memory", "1073741824")]).unwrap());
}

#[test]
fn a_gang_is_named_by_its_selector_and_asks_for_one_domain() {
    let gang = CoLocation {
        topology_key: "rack".into(),
        match_labels: vec![("b".into(), "2".into()), ("a".into(), "1".into())],
        match_expressions: vec![expression("tier", "In", &["y", "x"]), expression("app", "Exists", &[])],
    };
    let ask = Asked { co_location: Some(gang.clone()), ..asked() }.check().unwrap();
    assert_eq!(&*ask.group, "rack\0a=1,b=2,;app Exists ;tier In x,y;\0shop");
    assert_eq!(ask.profile.same().unwrap().key(), "rack");
    let elsewhere = Asked { co_location: Some(gang), namespace: "ml".into(), ..asked() }.check().unwrap();
    assert_ne!(ask.group, elsewhere.group, "a selector sees the pods of its own namespace");
}

#[test]
fn absent_and_zero_penalties_stay_apart() {
    let bucket = |text: Option<&str>| penalty("interruptionPenalty", text).unwrap();
    assert_eq!(bucket(None), PenaltyBucket::UNSPECIFIED);
    assert_eq!(bucket(Some("0")), PenaltyBucket::ZERO);
    assert_eq!(bucket(Some("500m")), PenaltyBucket::HALF_DOLLAR);
    assert_eq!(bucket(Some("9e6")), PenaltyBucket::PINNED);
}

#[test]
fn what_is_refused_names_the_field() {
    let long = "x".repeat(LONGEST_TEXT_BYTES + 1);
    let many =
        |count: usize| (0..count).map(|n| expression(&format!("k{n}"), "Exists", &[])).collect::<Vec<_>>();
    let gang = |key: &str| Some(CoLocation { topology_key: key.into(), ..CoLocation::default() });
    let values: Vec<String> = (0..MOST_VALUES).map(|n| format!("{n:0>200}")).collect();
    let wide = Expression { key: "k".into(), operator: "In".into(), values };
    for (bad, field, part) in [
        (Asked { requirements: vec![expression("a", "Gt", &["1"])], ..asked() }, "requirements", "Gt"),
        (Asked { requirements: vec![expression("a", "Same", &[])], ..asked() }, "requirements", "Same"),
        (Asked { requirements: vec![expression("a", &long, &[])], ..asked() }, "requirements", "xxxx"),
        (Asked { requirements: vec![expression("a", "In", &[])], ..asked() }, "requirements", "no values"),
        (
            Asked { requirements: vec![expression("a", "Exists", &["b"])], ..asked() },
            "requirements",
            "lists values",
        ),
        (Asked { requirements: vec![expression("a", "In", &["x|y"])], ..asked() }, "spec", "x|y"),
        (Asked { requirements: vec![expression("", "Exists", &[])], ..asked() }, "spec", "empty key"),
        (
            Asked { requirements: vec![expression(&long, "Exists", &[])], ..asked() },
            "requirements",
            "318 bytes",
        ),
        (Asked { requirements: many(65), ..asked() }, "requirements", "65 entries; at most 64"),
        (Asked { requirements: vec![wide], ..asked() }, "spec", "bytes of text; at most 32768"),
        (Asked { resources: vec![("cpu".into(), "lots".into())], ..asked() }, "resources", "lots"),
        (Asked { resources: vec![("cpu".into(), "-1".into())], ..asked() }, "resources", "-1"),
        (Asked { resources: vec![("cpu".into(), "1e99".into())], ..asked() }, "resources", "1e99"),
        (Asked { interruption_penalty: Some("-2".into()), ..asked() }, "interruptionPenalty", "-2"),
        (Asked { reclamation_penalty: Some("$5".into()), ..asked() }, "reclamationPenalty", "$5"),
        (Asked { spread: vec![("zone".into(), 1, "Maybe".into())], ..asked() }, "topologySpread", "Maybe"),
        (Asked { co_location: gang(""), ..asked() }, "coLocation", "topologyKey is empty"),
    ] {
        let error = bad.check().unwrap_err();
        assert_eq!(error.field(), field, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().len() < 700, "a message for people: {error}");
    }
}
