//! The config file: named servers and which of them is meant when none is named.
//!
//! ```toml
//! current = "prod"
//! [contexts.prod]
//! server = "https://shard.example:7780"
//! tls_cert = "me.pem"    # relative to the folder of this file
//! tls_key = "me.key"
//! tls_ca = "ca.pem"
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table, value};

use super::places::Places;
use crate::suggest::did_you_mean;

/// The file as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    current: Option<String>,
    #[serde(default)]
    contexts: BTreeMap<String, Context>,
}

/// One server and how to speak to it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    pub(crate) server: String,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_ca: Option<PathBuf>,
}

impl Config {
    /// The file, or nothing if there is none.
    pub(crate) fn read(places: &Places) -> anyhow::Result<Self> {
        let path = places.config();
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Reads `text`, which stands in `path`.
    pub(crate) fn parse(text: &str, path: &Path) -> anyhow::Result<Self> {
        let mut config: Self = toml_edit::de::from_str(text).with_context(|| {
            format!("{} is not a config file of ours; mend it or move it away", path.display())
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        for context in config.contexts.values_mut() {
            for file in
                [&mut context.tls_cert, &mut context.tls_key, &mut context.tls_ca].into_iter().flatten()
            {
                *file = folder.join(&*file);
            }
        }
        Ok(config)
    }

    /// The context that is meant when none is named.
    pub(crate) fn current(&self) -> Option<&str> {
        self.current.as_deref().filter(|name| !name.is_empty())
    }

    /// All contexts, by name.
    pub(crate) fn contexts(&self) -> &BTreeMap<String, Context> {
        &self.contexts
    }

    /// One context.
    pub(crate) fn context(&self, name: &str) -> anyhow::Result<&Context> {
        let Some(context) = self.contexts.get(name) else {
            let known = self.contexts.keys().map(String::as_str);
            bail!(
                "there is no context {name:?}{}; see `bigfleet context list`, or make it with `bigfleet context set {name} --server HOST:PORT`",
                did_you_mean(name, known)
            );
        };
        Ok(context)
    }
}

/// The file as text, to be changed without losing what people wrote around it.
pub(crate) struct Draft {
    path: PathBuf,
    document: DocumentMut,
}

impl Draft {
    /// The file as it is, checked.
    pub(crate) fn open(places: &Places) -> anyhow::Result<(Self, Config)> {
        let path = places.config().to_owned();
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            other => other.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let config = Config::parse(&text, &path)?;
        let document = text.parse().with_context(|| format!("{} is not TOML", path.display()))?;
        Ok((Self { path, document }, config))
    }

    /// Makes `name` the one that is meant; `None` for none.
    pub(crate) fn choose(&mut self, name: Option<&str>) {
        match name {
            Some(name) => self.document["current"] = value(name),
            None => drop(self.document.remove("current")),
        }
    }

    /// Sets what is given of a context and leaves the rest of it; an empty file name takes the file out.
    pub(crate) fn set(&mut self, name: &str, fields: &[(&str, Option<&str>)]) {
        let contexts = self.document.entry("contexts").or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        });
        if contexts.get(name).is_none() {
            contexts[name] = Item::Table(Table::new());
        }
        for (field, text) in fields {
            match text {
                None => {}
                Some("") => drop(contexts[name].as_table_like_mut().and_then(|table| table.remove(field))),
                Some(text) => contexts[name][field] = value(*text),
            }
        }
    }

    /// Takes a context out.
    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(contexts) = self.document.get_mut("contexts").and_then(Item::as_table_like_mut) {
            contexts.remove(name);
        }
    }

    /// Writes the file, whole or not at all.
    pub(crate) fn save(&self) -> anyhow::Result<()> {
        let text = self.document.to_string();
        Config::parse(&text, &self.path)?;
        let write = || -> io::Result<()> {
            if let Some(folder) = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                fs::create_dir_all(folder)?;
            }
            bigfleet_durable::replace(&self.path, text.as_bytes())
        };
        write().with_context(|| format!("cannot write {}", self.path.display()))
    }
}
