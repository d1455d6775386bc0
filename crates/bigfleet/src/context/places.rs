//! Where this user's files lie, by the rules of the XDG base directories.

use std::path::{Path, PathBuf};

/// The files, found from the environment once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    config: PathBuf,
    runtime: PathBuf,
}

impl Places {
    /// As the environment of this process says.
    pub(crate) fn of_this_user() -> Self {
        Self::from(|name| std::env::var_os(name).map(PathBuf::from))
    }

    /// As `variable` says. Empty variables count as unset, relative ones are ignored, as the rules have it.
    fn from(variable: impl Fn(&str) -> Option<PathBuf>) -> Self {
        let folder = |name: &str| variable(name).filter(|path| path.is_absolute());
        let home = folder("HOME").unwrap_or_else(|| PathBuf::from("/"));
        let config = variable("BIGFLEET_CONFIG").filter(|path| !path.as_os_str().is_empty());
        let config = config.unwrap_or_else(|| {
            folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("bigfleet/config.toml")
        });
        let runtime = folder("XDG_RUNTIME_DIR")
            .or_else(|| folder("XDG_STATE_HOME"))
            .unwrap_or_else(|| home.join(".local/state"));
        Self { config, runtime: runtime.join("bigfleet") }
    }

    /// The config file.
    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// The file by which a running `bigfleet up` is found.
    pub(crate) fn up(&self) -> PathBuf {
        self.runtime.join("up.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(variables: &[(&str, &str)]) -> (String, String) {
        let find = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| PathBuf::from(*value))
        };
        let places = Places::from(find);
        (places.config().display().to_string(), places.up().display().to_string())
    }

    #[test]
    fn each_variable_has_its_say() {
        let own = |config: &str, up: &str| (config.to_owned(), up.to_owned());
        let home = ("HOME", "/home/me");
        assert_eq!(
            places(&[home]),
            own("/home/me/.config/bigfleet/config.toml", "/home/me/.local/state/bigfleet/up.json")
        );
        assert_eq!(
            places(&[home, ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "/s")]),
            own("/c/bigfleet/config.toml", "/s/bigfleet/up.json")
        );
        assert_eq!(
            places(&[home, ("XDG_STATE_HOME", "/s"), ("XDG_RUNTIME_DIR", "/run/user/1")]),
            own("/home/me/.config/bigfleet/config.toml", "/run/user/1/bigfleet/up.json")
        );
        assert_eq!(places(&[home, ("BIGFLEET_CONFIG", "mine.toml")]).0, "mine.toml", "relative is as meant");
        assert_eq!(places(&[home, ("BIGFLEET_CONFIG", "")]).0, "/home/me/.config/bigfleet/config.toml");
        assert_eq!(places(&[home, ("XDG_CONFIG_HOME", "c")]).0, "/home/me/.config/bigfleet/config.toml");
    }
}
