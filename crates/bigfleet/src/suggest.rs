//! What somebody who mistyped a name has perhaps meant.

/// ` (did you mean x?)`, or nothing if nothing comes near.
pub(crate) fn did_you_mean<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let distance = |name: &str| strsim::osa_distance(&typed.to_lowercase(), &name.to_lowercase());
    let nearest = known.into_iter().map(|name| (distance(name), name)).min();
    match nearest {
        Some((distance, name)) if distance <= 1 + typed.len() / 4 => format!(" (did you mean {name}?)"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let known = ["prod", "staging", "laboratory"];
        assert_eq!(did_you_mean("prdo", known), " (did you mean prod?)");
        assert_eq!(did_you_mean("Labratory", known), " (did you mean laboratory?)");
        assert_eq!(did_you_mean("mars", known), "");
        assert_eq!(did_you_mean("x", []), "");
    }
}
