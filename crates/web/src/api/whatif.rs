//! What if something were different: the engine decides on a changed copy, and the page shows the difference.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_tell::{Shown, words};
use bigfleet_view::v1::{self, edit};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rows::groups;
use super::shard;
use crate::answer::{Answer, Refusal, answer};
use crate::guard::read_body;
use crate::query::Query;
use crate::site::Site;

/// Edits of one question.
const MOST_EDITS: usize = 50;
/// Cycles the copy may settle.
const MOST_CYCLES: u32 = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    edits: Vec<Edit>,
    #[serde(default = "default_cycles")]
    cycles: u32,
    /// Hours ahead in the simulator, so often with other chances; the view bounds both.
    #[serde(default)]
    hours: u32,
    #[serde(default)]
    seeds: u32,
}

fn default_cycles() -> u32 {
    5
}

/// Machines that are meant.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Filter {
    cluster: String,
    states: Vec<String>,
    capacity_types: Vec<String>,
    zones: Vec<String>,
    instance_types: Vec<String>,
    provider: String,
    id_prefix: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, tag = "edit", rename_all = "snake_case")]
enum Edit {
    RemoveNeed {
        need: String,
    },
    ScaleNeed {
        need: String,
        factor: f64,
    },
    SetPriority {
        #[serde(default)]
        need: String,
        #[serde(default)]
        cluster: String,
        priority: i32,
    },
    SetPenalty {
        #[serde(default)]
        need: String,
        #[serde(default)]
        cluster: String,
        interruption_usd: Option<f64>,
        reclamation_usd: Option<f64>,
    },
    AddMachines {
        like: String,
        count: u32,
        usd_per_hour: Option<f64>,
        #[serde(default)]
        zone: String,
    },
    RemoveMachines {
        filter: Filter,
        #[serde(default)]
        count: u32,
    },
    SetPrice {
        filter: Filter,
        usd_per_hour: Option<f64>,
        factor: Option<f64>,
    },
    SetProbability {
        filter: Filter,
        interruption_probability: f64,
    },
}

fn numbers(
    names: &[String],
    prefix: &str,
    from_name: impl Fn(&str) -> Option<i32>,
) -> Result<Vec<i32>, Refusal> {
    let number = |name: &String| {
        let full = format!("{prefix}{}", name.to_ascii_uppercase().replace('-', "_"));
        from_name(&full).ok_or_else(|| Refusal::bad(format!("{name:?} is not known")))
    };
    names.iter().map(number).collect()
}

impl TryFrom<Filter> for v1::MachineFilter {
    type Error = Refusal;

    fn try_from(filter: Filter) -> Result<Self, Refusal> {
        let state = |name: &str| MachineState::from_str_name(name).map(Into::into);
        let capacity = |name: &str| CapacityType::from_str_name(name).map(Into::into);
        Ok(Self {
            cluster: filter.cluster,
            states: numbers(&filter.states, "MACHINE_STATE_", state)?,
            capacity_types: numbers(&filter.capacity_types, "CAPACITY_TYPE_", capacity)?,
            zones: filter.zones,
            instance_types: filter.instance_types,
            provider: filter.provider,
            id_prefix: filter.id_prefix,
            ..Self::default()
        })
    }
}

impl TryFrom<Edit> for v1::Edit {
    type Error = Refusal;

    fn try_from(edit: Edit) -> Result<Self, Refusal> {
        let edit = match edit {
            Edit::RemoveNeed { need } => edit::Edit::RemoveNeed(need),
            Edit::ScaleNeed { need, factor } => edit::Edit::ScaleNeed(v1::ScaleNeed { need, factor }),
            Edit::SetPriority { need, cluster, priority } => {
                edit::Edit::SetPriority(v1::SetPriority { need, cluster, priority })
            }
            Edit::SetPenalty { need, cluster, interruption_usd, reclamation_usd } => {
                edit::Edit::SetPenalty(v1::SetPenalty { need, cluster, interruption_usd, reclamation_usd })
            }
            Edit::AddMachines { like, count, usd_per_hour, zone } => {
                edit::Edit::AddMachines(v1::AddMachines { like, count, usd_per_hour, zone })
            }
            Edit::RemoveMachines { filter, count } => {
                edit::Edit::RemoveMachines(v1::RemoveMachines { filter: Some(filter.try_into()?), count })
            }
            Edit::SetPrice { filter, usd_per_hour, factor } => {
                let price = match (usd_per_hour, factor) {
                    (Some(usd), None) => v1::set_price::Price::UsdPerHour(usd),
                    (None, Some(factor)) => v1::set_price::Price::Factor(factor),
                    _ => return Err(Refusal::bad("set_price: give usd_per_hour or factor, not both")),
                };
                edit::Edit::SetPrice(v1::SetPrice { filter: Some(filter.try_into()?), price: Some(price) })
            }
            Edit::SetProbability { filter, interruption_probability } => {
                let filter = Some(filter.try_into()?);
                edit::Edit::SetProbability(v1::SetProbability { filter, interruption_probability })
            }
        };
        Ok(Self { edit: Some(edit) })
    }
}

/// `/api/whatif`.
pub(crate) async fn what_if(
    State(site): State<Arc<Site>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    let query = Query::read(&uri, &["shard"])?;
    let Question { edits, cycles, hours, seeds } = read_body(body).await?;
    if edits.is_empty() || edits.len() > MOST_EDITS {
        let count = edits.len();
        return Err(Refusal::bad(format!("edits: {count} of them; 1 to {MOST_EDITS} are taken")));
    }
    if cycles == 0 || cycles > MOST_CYCLES {
        return Err(Refusal::bad(format!("cycles: {cycles}; 1 to {MOST_CYCLES} are taken")));
    }
    let edits = edits.into_iter().map(v1::Edit::try_from).collect::<Result<_, _>>()?;
    let seed = 42;
    let request =
        v1::WhatIfRequest { edits, cycles, limit: 300, hours, seeds, seed, ..v1::WhatIfRequest::default() };
    let shard = shard(&site, &query)?;
    let found = shard.client().what_if(request).await.map_err(Refusal::from)?.into_inner();
    let named = |all: &[v1::Decision]| -> Vec<(String, v1::Decision)> {
        all.iter().map(|one| (shard.name.clone(), one.clone())).collect()
    };
    let needs: Vec<Value> = found
        .needs
        .iter()
        .map(|change| {
            json!({
                "data": Shown::new("VerdictChange", change),
                "need": change.need.as_ref().map(|need| bigfleet_tell::safe(words::need_long(need))),
                "before": verdict(change.satisfied_before, change.reason_before),
                "after": verdict(change.satisfied_after, change.reason_after),
            })
        })
        .collect();
    answer(
        &headers,
        &json!({
            "as_of": found.as_of.as_ref().map(|as_of| Shown::new("AsOf", as_of)),
            "before": found.before.as_ref().map(|side| Shown::new("WhatIfSide", side)),
            "after": found.after.as_ref().map(|side| Shown::new("WhatIfSide", side)),
            "only_before": groups(&named(&found.only_before)),
            "only_after": groups(&named(&found.only_after)),
            "needs": needs,
            "edited_machines": found.edited_machines,
            "edited_needs": found.edited_needs,
        }),
    )
}

fn verdict(satisfied: bool, reason: i32) -> String {
    if satisfied { "covered".into() } else { words::reason(reason) }
}
