//! The library of scenarios that come with the simulator.

use crate::scenario::Scenario;

// FILES: the files, by their names.
include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// All scenarios, by name.
pub fn all() -> impl Iterator<Item = Scenario> {
    FILES.iter().map(|(name, text)| match Scenario::from_json(text) {
        Ok(scenario) => scenario,
        Err(problems) => panic!("scenario {name} of the library cannot be used:\n{problems}"),
    })
}

/// The scenario of this name.
pub fn find(name: &str) -> Option<Scenario> {
    let (_, text) = FILES.iter().find(|(file, _)| *file == name)?;
    Scenario::from_json(text).ok()
}

/// The names, in order.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_scenario_under_its_own_name() {
        for (file, text) in FILES {
            let scenario = Scenario::from_json(text).unwrap_or_else(|problems| panic!("{file}: {problems}"));
            assert_eq!(scenario.name, *file);
            assert!(!scenario.note.is_empty(), "{file} says what it is about");
            assert!(!scenario.expect.is_empty(), "{file} expects something");
        }
        assert!(FILES.len() >= 40, "{} scenarios", FILES.len());
    }
}
