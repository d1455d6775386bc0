//! Whether a label selector matches a pod.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

/// As the API server has it: no selector matches nothing, an empty one everything.
pub(super) fn matches(selector: Option<&LabelSelector>, labels: Option<&BTreeMap<String, String>>) -> bool {
    let Some(selector) = selector else { return false };
    let value = |key: &str| labels.and_then(|labels| labels.get(key));
    let equal = selector.match_labels.iter().flatten().all(|(key, wanted)| value(key) == Some(wanted));
    equal
        && selector.match_expressions.iter().flatten().all(|expression| {
            let found = value(&expression.key);
            let listed =
                found.is_some_and(|value| expression.values.iter().flatten().any(|wanted| wanted == value));
            match expression.operator.as_str() {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_match_as_the_server_has_it() {
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        for (json, fits) in [
            (r"{}", true),
            (r#"{"matchLabels": {"app": "web"}}"#, true),
            (r#"{"matchLabels": {"app": "db"}}"#, false),
            (r#"{"matchExpressions": [{"key": "app", "operator": "In", "values": ["db", "web"]}]}"#, true),
            (r#"{"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}"#, false),
            (r#"{"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["web"]}]}"#, true),
            (r#"{"matchExpressions": [{"key": "tier", "operator": "Exists"}]}"#, false),
            (r#"{"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}"#, true),
            (r#"{"matchExpressions": [{"key": "app", "operator": "Like", "values": ["web"]}]}"#, false),
        ] {
            let selector: LabelSelector = serde_json::from_str(json).unwrap();
            assert_eq!(matches(Some(&selector), Some(&labels)), fits, "{json}");
        }
        assert!(!matches(None, Some(&labels)));
        assert!(matches(Some(&LabelSelector::default()), None));
    }
}
