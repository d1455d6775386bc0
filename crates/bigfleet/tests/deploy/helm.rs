//! Charts, rendered by Helm itself.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::root;

/// Helm, as `scripts/helm` brings it.
static HELM: LazyLock<PathBuf> = LazyLock::new(|| {
    let brought = Command::new(root().join("scripts/helm")).output().expect("scripts/helm can be run");
    assert!(brought.status.success(), "{}", String::from_utf8_lossy(&brought.stderr));
    PathBuf::from(String::from_utf8(brought.stdout).unwrap().trim())
});

/// Where Helm is.
pub(crate) fn helm() -> &'static Path {
    &HELM
}

/// One of our charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chart {
    ControlPlane,
    Cluster,
}

impl Chart {
    pub(crate) const ALL: [Self; 2] = [Self::ControlPlane, Self::Cluster];

    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::ControlPlane => "deploy/charts/bigfleet",
            Self::Cluster => "deploy/charts/bigfleet-cluster",
        }
    }

    /// A file of it, as data.
    pub(crate) fn file(self, name: &str) -> Value {
        let text = crate::read(&format!("{}/{name}", self.folder()));
        if Path::new(name).extension().is_some_and(|it| it == "json") {
            serde_json::from_str(&text).unwrap()
        } else {
            serde_saphyr::from_str(&text).unwrap()
        }
    }

    /// The least that must be said.
    pub(crate) fn least(self) -> Value {
        match self {
            Self::ControlPlane => {
                json!({"shard": {"providers": [{"name": "metal", "url": "https://metal.internal:9000"}]}})
            }
            Self::Cluster => {
                json!({"cluster": {"name": "shop"}, "shard": {"url": "https://fleet.internal:7780"}})
            }
        }
    }

    /// With values, one over the other, for a server of this version: the text, or what Helm says against it.
    pub(crate) fn text(self, values: &[&Value], version: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut helm = Command::new(&*HELM);
        helm.args(["template", "bigfleet"]).arg(root().join(self.folder()));
        helm.args(["--namespace", "bigfleet-system", "--kube-version", version]);
        for (number, values) in values.iter().enumerate() {
            let file = folder.path().join(format!("{number}.json"));
            std::fs::write(&file, values.to_string()).unwrap();
            helm.arg("--values").arg(file);
        }
        // Neither settings nor plugins of whoever runs this.
        for name in ["HELM_CONFIG_HOME", "HELM_CACHE_HOME", "HELM_DATA_HOME"] {
            helm.env(name, folder.path());
        }
        let done = helm.output().expect("helm can be run");
        if done.status.success() {
            return Ok(String::from_utf8(done.stdout).unwrap());
        }
        Err(String::from_utf8_lossy(&done.stderr).into_owned())
    }

    /// The objects, for a present server.
    pub(crate) fn objects(self, values: &[&Value]) -> Vec<Value> {
        self.objects_for(values, "1.33")
    }

    /// The objects, for a server of this version.
    pub(crate) fn objects_for(self, values: &[&Value], version: &str) -> Vec<Value> {
        objects(&self.text(values, version).unwrap_or_else(|error| panic!("{self:?}: {error}")))
    }
}

/// The objects in a text of several.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let documents = text.split("\n---\n").map(|one| one.trim_start_matches("---\n"));
    let read = |one: &str| serde_saphyr::from_str(one).unwrap_or_else(|error| panic!("{error}:\n{one}"));
    let has_something = |one: &&str| one.lines().any(|line| !line.is_empty() && !line.starts_with('#'));
    documents.filter(has_something).map(read).collect()
}

/// A container that runs our program.
#[derive(Clone, Debug)]
pub(crate) struct Container {
    /// What its pod's owner is called.
    pub(crate) of: String,
    pub(crate) args: Vec<String>,
    pub(crate) spec: Value,
    pub(crate) pod: Value,
}

/// All containers of some objects, with the pod's name where an argument says so.
pub(crate) fn containers(objects: &[Value]) -> Vec<Container> {
    let mut found = Vec::new();
    for object in objects {
        let of = object["metadata"]["name"].as_str().unwrap().to_owned();
        let pod = object["spec"]["template"]["spec"].clone();
        for spec in pod["containers"].as_array().into_iter().flatten() {
            let args = spec["args"].as_array().unwrap().iter();
            let args = args.map(|arg| arg.as_str().unwrap().replace("$(POD_NAME)", &format!("{of}-0")));
            found.push(Container {
                of: of.clone(),
                args: args.collect(),
                spec: spec.clone(),
                pod: pod.clone(),
            });
        }
    }
    found
}

/// One value over another, as Helm does it: maps are merged, everything else is replaced.
pub(crate) fn merged(below: &Value, above: &Value) -> Value {
    let (Value::Object(below), Value::Object(above)) = (below, above) else { return above.clone() };
    let mut all = below.clone();
    for (key, value) in above {
        let value = all.get(key).map_or_else(|| value.clone(), |old| merged(old, value));
        all.insert(key.clone(), value);
    }
    Value::Object(all)
}
