//! Values of the charts: each changes something, and what is no value is refused.

use serde_json::{Map, Value, json};

use crate::helm::{Chart, merged};

/// Ways to use a chart in which, together, every value means something.
pub(crate) fn bases(chart: Chart) -> Vec<Value> {
    let least = chart.least();
    let watched = json!({"serviceMonitor": {"enabled": true}});
    let peer = json!([{"podSelector": {"matchLabels": {"a": "b"}}}]);
    let guarded = json!({"scrapers": peer, "egress": [{"to": peer}]});
    match chart {
        Chart::ControlPlane => {
            let everything = json!({
                "tls": {"mode": "certManager"},
                "coordinator": {
                    "enabled": true, "replicas": 3,
                    "etcd": {"endpoints": ["https://etcd-0:2379", "https://etcd-1:2379"], "tlsSecret": "etcd"},
                },
                "web": {"enabled": true},
                "monitoring": merged(&watched, &json!({"rules": {"enabled": true}, "dashboards": {"enabled": true}})),
                "shards": [{"name": "a", "domains": ["zone=a"]}, {"name": "b", "domains": ["zone=b"]}],
            });
            let on_files = json!({
                "coordinator": {"enabled": true}, "web": {"enabled": true},
                "networkPolicy": merged(&guarded, &json!({"callers": peer})),
            });
            let elsewhere = json!({"shard": {"coordinatorUrl": "https://coordinator.internal:7790"}});
            let plain = json!({"tls": {"mode": "none"}, "coordinator": {"enabled": true}});
            let all = [json!({}), everything, on_files, elsewhere, plain];
            all.iter().map(|more| merged(&least, more)).collect()
        }
        Chart::Cluster => {
            let everything = json!({
                "tls": {"mode": "certManager"}, "monitoring": watched, "networkPolicy": guarded,
                "podController": {"machineTaints": ["a=b:NoSchedule@pool=c"], "nodeLabels": ["os=linux"]},
            });
            let plain = json!({"tls": {"mode": "none"}, "shard": {"url": "http://fleet.internal:7780"}});
            [json!({}), everything, plain].iter().map(|more| merged(&least, more)).collect()
        }
    }
}

/// Takes away the flags that are there from the start.
pub(crate) fn without_flags(chart: Chart) -> Value {
    let values = chart.file("values.yaml");
    let programs = values.as_object().unwrap().iter().filter(|(_, of)| of["flags"].is_object());
    let none = |of: &Value| -> Map<String, Value> {
        of["flags"].as_object().unwrap().keys().map(|name| (name.clone(), Value::Null)).collect()
    };
    Value::Object(programs.map(|(name, of)| (name.clone(), json!({"flags": none(of)}))).collect())
}

/// Every place that holds a value: neither a map with something in it, nor flags, which are tried elsewhere.
fn leaves(value: &Value, path: &mut Vec<String>, to: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, below) in map.iter().filter(|(key, _)| *key != "flags") {
                path.push(key.clone());
                leaves(below, path, to);
                path.pop();
            }
        }
        _ => to.push((path.clone(), value.clone())),
    }
}

/// Another value for a place.
fn other(path: &[String], value: &Value) -> Value {
    let place = path.join(".");
    let last = path.last().unwrap().as_str();
    let peers = json!([{"podSelector": {"matchLabels": {"changed": "yes"}}}]);
    match (last, value) {
        ("mode", _) => json!("certManager"),
        ("pullPolicy", _) => json!("Always"),
        ("role", _) => json!("admin"),
        ("type", _) => json!("LoadBalancer"),
        ("digest", _) => json!(format!("sha256:{}", "a".repeat(64))),
        ("coordinatorUrl", _) => json!("https://changed:1"),
        ("url", _) => json!("https://changed:2"),
        ("advertise", _) => json!("changed:3"),
        ("providers", _) => json!([{"name": "changed", "url": "https://changed:4"}]),
        ("domains" | "nodeLabels", _) => json!(["changed=yes"]),
        ("machineTaints", _) => json!(["changed:NoSchedule@changed"]),
        ("dnsNames" | "schedulers" | "endpoints", _) => json!(["changed"]),
        ("accessModes", _) => json!(["ReadWriteOncePod"]),
        ("callers" | "scrapers", _) => peers,
        ("egress", _) => json!([{"to": peers}]),
        ("pullSecrets", _) => json!([{"name": "changed"}]),
        ("tolerations", _) => json!([{"key": "changed", "operator": "Exists"}]),
        ("topologySpreadConstraints", _) => {
            json!([{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}])
        }
        ("duration" | "renewBefore" | "interval" | "scrapeTimeout", _) => json!("77s"),
        (_, Value::Bool(is_on)) => json!(!is_on),
        (_, Value::Number(number)) => json!(number.as_u64().unwrap() + 1),
        (_, Value::String(_)) => json!("changed"),
        (_, Value::Object(map)) if map.is_empty() => json!({"changed": "yes"}),
        _ => panic!("say what another value for {place} is"),
    }
}

/// A value at a place, with nothing around it.
fn at(path: &[String], value: Value) -> Value {
    path.iter().rev().fold(value, |value, key| json!({key: value}))
}

#[test]
fn every_value_changes_something() {
    for chart in Chart::ALL {
        let bases = bases(chart);
        let before: Vec<String> = bases.iter().map(|base| chart.text(&[base], "1.33").unwrap()).collect();
        let mut values = chart.file("values.yaml");
        let shards = values.as_object_mut().unwrap().remove("shards");
        let mut places = Vec::new();
        leaves(&values, &mut Vec::new(), &mut places);
        let mut changes: Vec<(String, Value)> =
            places.iter().map(|(path, value)| (path.join("."), at(path, other(path, value)))).collect();
        // A list is replaced as a whole: each field of a shard is tried on the first of two.
        let mut fields = Vec::new();
        if let Some(shards) = shards {
            leaves(&shards[0], &mut Vec::new(), &mut fields);
            let second = json!({"name": "b", "domains": ["zone=b"]});
            for (path, value) in &fields {
                let first =
                    merged(&json!({"name": "a", "domains": ["zone=a"]}), &at(path, other(path, value)));
                changes.push((format!("shards[0].{}", path.join(".")), json!({"shards": [first, second]})));
            }
        }
        assert!(changes.len() > 40, "{chart:?} has more values than that");
        let two =
            json!({"shards": [{"name": "a", "domains": ["zone=a"]}, {"name": "b", "domains": ["zone=b"]}]});
        for (name, change) in changes {
            let has_changed = bases.iter().zip(&before).any(|(base, before)| {
                let of_shards = name.starts_with("shards[0]");
                let before =
                    if of_shards { chart.text(&[base, &two], "1.33").unwrap() } else { before.clone() };
                // Some settings exclude others; that is no effect.
                chart.text(&[base, &change], "1.33").is_ok_and(|after| after != before)
            });
            assert!(has_changed, "{chart:?}: {name} changes nothing");
        }
    }
}

#[test]
fn the_schema_and_the_values_have_the_same_places() {
    fn compare(place: &str, schema: &Value, value: &Value) {
        if schema["properties"].is_null() || place.rsplit_once('.').is_some_and(|(_, last)| last == "flags") {
            return;
        }
        assert_eq!(schema["additionalProperties"], json!(false), "{place} takes anything");
        let (known, there) = (schema["properties"].as_object().unwrap(), value.as_object().unwrap());
        for name in known.keys().filter(|name| *name != "global") {
            assert!(there.contains_key(name), "{place}.{name} is in the schema and not in the values");
        }
        for (name, value) in there {
            let schema = known.get(name).unwrap_or_else(|| panic!("{place}.{name} is not in the schema"));
            compare(&format!("{place}.{name}"), schema, value);
            if name == "shards" {
                compare(&format!("{place}.{name}[]"), &schema["items"], &value[0]);
            }
        }
    }
    for chart in Chart::ALL {
        compare("", &chart.file("values.schema.json"), &chart.file("values.yaml"));
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_words() {
    let refused = |chart: Chart, values: Value, part: &str| {
        let said = chart.text(&[&chart.least(), &values], "1.33").expect_err(part);
        assert!(said.contains(part), "{said}");
    };
    let control = |values: Value, part: &str| refused(Chart::ControlPlane, values, part);
    control(json!({"shard": {"flag": {}}}), "flag");
    control(json!({"shard": {"flags": {"tack": "10s"}}}), "tack");
    control(json!({"shard": {"flags": {"log": "loud"}}}), "log");
    control(json!({"shards": [{"name": "Not A Name"}]}), "name");
    control(json!({"shards": []}), "shards");
    control(json!({"shard": {"providers": []}}), "has no provider");
    control(json!({"shards": [{"name": "a"}, {"name": "b"}]}), "has no domains");
    control(json!({"coordinator": {"enabled": true, "replicas": 2}}), "needs coordinator.etcd.endpoints");
    control(json!({"web": {"enabled": true}, "tls": {"mode": "none"}}), "over TLS alone");
    refused(Chart::Cluster, json!({"cluster": {"name": ""}}), "cluster.name must be given");
    refused(Chart::Cluster, json!({"shard": {"url": ""}}), "shard.url must be given");
    refused(Chart::Cluster, json!({"shard": {"url": "http://a:1"}}), "is not https");
}
