//! What things are called in sentences.

use std::collections::BTreeMap;

use bigfleet_proto::v1alpha1::NodeSelectorRequirement;
use bigfleet_proto::v1alpha1::node_selector_requirement::Operator;
use bigfleet_view::v1::{NeedRef, ResourceUse};

/// `77aa88bb`, or `train-7 (77aa88bb)` for a gang.
pub fn need(need: &NeedRef) -> String {
    if need.group.is_empty() { need.id.clone() } else { format!("{} ({})", need.group, need.id) }
}

/// The same with its cluster: `need 77aa88bb of shop`, `gang train-7 of ml (77aa88bb)`.
pub fn need_long(need: &NeedRef) -> String {
    if need.group.is_empty() {
        format!("need {} of {}", need.id, need.cluster)
    } else {
        format!("gang {} of {} ({})", need.group, need.cluster, need.id)
    }
}

/// The best known resources come first.
fn rank(name: &str) -> u8 {
    match name {
        "cpu" => 0,
        "memory" => 1,
        name if name.contains("gpu") => 2,
        _ => 3,
    }
}

/// `7.5 cpu, 16Gi memory`; the best known resources first.
pub fn amounts(amounts: &BTreeMap<String, String>) -> String {
    let mut known: Vec<(&String, &String)> = amounts.iter().collect();
    known.sort_by_key(|(name, _)| rank(name));
    known
        .iter()
        .map(|(name, amount)| format!("{} {name}", quantity(name, amount)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// `72 of 96 cpu (75 %), 96Gi of 384Gi memory (25 %)`: what is asked for of what is provided. What is not asked for is left
/// out.
pub fn used(lines: &[ResourceUse]) -> String {
    let mut asked: Vec<&ResourceUse> = lines.iter().filter(|line| line.asked > 0.0).collect();
    asked.sort_by_key(|line| rank(&line.resource));
    let one = |line: &&ResourceUse| {
        let name = &line.resource;
        let amount = |amount: f64| {
            if amount.fract() == 0.0 {
                quantity(name, &format!("{amount:.0}"))
            } else {
                format!("{amount:.1}")
            }
        };
        let share = share(line).map(|share| format!(" ({share})")).unwrap_or_default();
        format!("{} of {} {name}{share}", amount(line.asked), amount(line.provided))
    };
    asked.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// `cpu 75 %`: of the resource that is used most; nothing where nothing is provided.
pub fn used_most(lines: &[ResourceUse]) -> String {
    let known = lines.iter().filter(|line| line.provided > 0.0 && line.asked > 0.0);
    let most = known.max_by(|a, b| (a.asked / a.provided).total_cmp(&(b.asked / b.provided)));
    most.and_then(|line| Some(format!("{} {}", line.resource, share(line)?))).unwrap_or_default()
}

fn share(line: &ResourceUse) -> Option<String> {
    let share = line.asked / line.provided;
    (line.provided > 0.0 && share.is_finite()).then(|| format!("{:.0} %", share * 100.0))
}

/// `24Gi` for 25769803776 bytes, `24.3` for 24320m. What is neither stays as it is.
fn quantity(name: &str, amount: &str) -> String {
    const UNITS: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let thousandths = amount.strip_suffix('m').and_then(|number| number.parse::<u64>().ok());
    if let Some(thousandths) = thousandths.filter(|amount| *amount >= 1000) {
        let text = format!("{:.1}", thousandths as f64 / 1000.0);
        return text.strip_suffix(".0").unwrap_or(&text).to_owned();
    }
    let is_bytes = name == "memory" || name.contains("storage") || name.starts_with("hugepages-");
    let bytes = amount.parse::<u64>().ok().filter(|bytes| is_bytes && *bytes >= 1024);
    let Some(bytes) = bytes else { return amount.to_owned() };
    let power = bytes.ilog2() / 10;
    let unit = UNITS[power as usize - 1];
    let whole = bytes >> (10 * power);
    if whole << (10 * power) == bytes {
        return format!("{whole}{unit}");
    }
    format!("{:.1}{unit}", bytes as f64 / (1_u64 << (10 * power)) as f64)
}

/// `zone in a, b`, `rack the same for all`.
pub fn requirement(requirement: &NodeSelectorRequirement) -> String {
    let (key, values) = (&requirement.key, requirement.values.join(", "));
    match requirement.operator() {
        Operator::In => format!("{key} in {values}"),
        Operator::NotIn => format!("{key} not in {values}"),
        Operator::Exists => format!("{key} is there"),
        Operator::DoesNotExist => format!("{key} is not there"),
        Operator::Same if values.is_empty() => format!("{key} the same for all"),
        Operator::Same => format!("{key} the same for all, of {values}"),
        Operator::Unspecified => key.clone(),
    }
}

/// `a`, `a and b`, `a, b and 3 more`.
pub fn one_of(names: &[String], most: usize) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        names if names.len() <= most => {
            let (last, first) = names.split_last().expect("there are several");
            format!("{} and {last}", first.join(", "))
        }
        names => {
            format!("{} and {} more", names[..most].join(", "), super::thousands((names.len() - most) as u64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_end_before_they_bore() {
        let names: Vec<String> = ["a", "b", "c", "d"].map(Into::into).into();
        assert_eq!((one_of(&names[..1], 3), one_of(&names[..2], 3)), ("a".into(), "a and b".into()));
        assert_eq!(
            (one_of(&names, 4), one_of(&names, 2)),
            ("a, b, c and d".into(), "a, b and 2 more".into())
        );
    }

    #[test]
    fn amounts_begin_with_what_everybody_knows() {
        let known = [("disk", "1"), ("memory", "16Gi"), ("nvidia.com/gpu", "8"), ("cpu", "7500m")];
        let known = known.map(|(name, amount)| (name.to_owned(), amount.to_owned())).into();
        assert_eq!(amounts(&known), "7.5 cpu, 16Gi memory, 8 nvidia.com/gpu, 1 disk");
    }

    #[test]
    fn thousandths_are_told_as_people_count() {
        for (amount, text) in
            [("24320m", "24.3"), ("7500m", "7.5"), ("2000m", "2"), ("250m", "250m"), ("8", "8")]
        {
            assert_eq!(quantity("cpu", amount), text);
        }
    }

    #[test]
    fn bytes_are_told_in_units_people_use() {
        for (amount, text) in [
            ("25769803776", "24Gi"),
            ("309237645312", "288Gi"),
            ("1174833987584", "1.1Ti"),
            ("512", "512"),
            ("1024", "1Ki"),
            ("18446744073709551615", "16.0Ei"),
            ("16Gi", "16Gi"),
        ] {
            assert_eq!(quantity("memory", amount), text);
        }
        assert_eq!(quantity("example.org/tokens", "4096"), "4096");
    }

    #[test]
    fn what_is_used_is_told_of_what_is_provided() {
        let line = |resource: &str, asked, provided| ResourceUse {
            resource: resource.into(),
            asked,
            provided,
            idle: 0.0,
        };
        let gi = f64::from(1 << 30);
        let lines = [line("memory", 96.0 * gi, 384.0 * gi), line("cpu", 7.5, 10.0), line("pods", 0.0, 110.0)];
        assert_eq!(used(&lines), "7.5 of 10 cpu (75 %), 96Gi of 384Gi memory (25 %)");
        assert_eq!(used_most(&lines), "cpu 75 %");
        assert_eq!(used(&[line("cpu", 4.0, 0.0)]), "4 of 0 cpu");
        assert_eq!(used_most(&[line("cpu", 4.0, 0.0)]), "");
        assert_eq!((used(&[]), used_most(&[])), (String::new(), String::new()));
    }
}
