//! What somebody who mistyped a name has perhaps meant.

/// The candidate with the fewest letters to change, if it is near enough.
pub(crate) fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let best = candidates.into_iter().map(|name| (distance(typed, name), name)).min()?;
    (best.0 <= 1 + typed.len() / 4).then(|| best.1.into())
}

/// The words that follow a name nobody knows.
pub(crate) fn perhaps(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("; perhaps {name:?}?"))
}

/// How many letters have to be changed, added or left out (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let change = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = ["zone-outage", "api-outage", "throttle"];
        assert_eq!(nearest("zone-outge", names).as_deref(), Some("zone-outage"));
        assert_eq!(nearest("thorttle", names).as_deref(), Some("throttle"));
        assert_eq!(nearest("earthquake", names), None);
        assert_eq!((distance("", "abc"), distance("abc", "abc"), distance("abc", "axc")), (3, 0, 1));
    }
}
