//! The few things people may tell a shard: hold still, and go on.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_shard::{Pause, PauseScope, Shard, Step};
use tonic::Status;

use crate::convert::{kind_from, pause as pause_view};
use crate::names::find_cluster;
use crate::service::View;
use crate::shards::Shards;
use crate::v1;

/// The longest reason and author kept.
const MOST_TEXT: usize = 1000;

pub(crate) fn scope(cluster: &str, kind: i32) -> Result<PauseScope, Status> {
    let cluster = (!cluster.is_empty()).then(|| cluster.into());
    Ok(PauseScope { cluster, kind: kind_from(kind)? })
}

/// Whoever says so, with the role they are known by.
pub(crate) fn author(named: &str, role: &str) -> String {
    match (named.trim(), role) {
        ("", "") => "unknown".to_owned(),
        ("", role) => role.to_owned(),
        (author, "") => author.to_owned(),
        (author, role) => format!("{author} ({role})"),
    }
}

/// Refuses texts that are too long.
pub(crate) fn check_texts(reason: &str, author: &str) -> Result<(), Status> {
    if reason.len() > MOST_TEXT || author.len() > MOST_TEXT {
        return Err(Status::invalid_argument(format!("reason and author may have {MOST_TEXT} bytes each")));
    }
    Ok(())
}

/// Clusters whose losses are not believed.
fn doubted(shard: &Shard) -> BTreeSet<Arc<str>> {
    shard.suspicious_losses().map(|(cluster, ..)| cluster.clone()).collect()
}

impl<S: Shards> View<S> {
    pub(crate) async fn pause(
        &self,
        request: v1::PauseRequest,
        role: &str,
    ) -> Result<v1::PauseAnswer, Status> {
        self.needs_life("a pause")?;
        if request.for_nanos < 0 {
            return Err(Status::invalid_argument("a pause cannot end before it begins; give a time to come"));
        }
        check_texts(&request.reason, &request.author)?;
        let scope = scope(&request.cluster, request.kind)?;
        let author = author(&request.author, role);
        let order = move |shard: &mut Shard, now: i64, step: &mut Step| {
            if let Some(cluster) = &scope.cluster {
                // A pause of a cluster nobody knows would hold nothing, and whoever asked would not notice.
                find_cluster(cluster, shard.clusters().keys().map(|name| &**name))?;
            }
            let until = (request.for_nanos > 0).then(|| now.saturating_add(request.for_nanos));
            let pause = Pause {
                scope,
                dry_run: request.dry_run,
                reason: request.reason.trim().into(),
                author: author.into(),
                since_unix_nanos: now,
                until_unix_nanos: until,
            };
            let number = shard.pause(pause.clone(), now, step);
            let number = number.map_err(|error| Status::invalid_argument(error.to_string()))?;
            Ok(v1::PauseAnswer { pause: Some(pause_view(number, &pause)) })
        };
        self.shards.command(order).await?
    }

    pub(crate) async fn resume(&self, request: v1::ResumeRequest) -> Result<v1::ResumeAnswer, Status> {
        let asked = scope(&request.cluster, request.kind)?;
        let order = move |shard: &mut Shard, now: i64, step: &mut Step| {
            let before = shard.pauses().clone();
            let doubted = doubted(shard);
            let scopes: Vec<PauseScope> = if request.everything {
                before.values().map(|pause| pause.scope.clone()).collect()
            } else if request.number > 0 {
                let found = before.get(&request.number);
                let pause = found.ok_or_else(|| {
                    Status::not_found(format!(
                        "there is no pause {}; `bigfleet get rails` shows those in force",
                        request.number
                    ))
                })?;
                let same = before.values().filter(|other| other.scope == pause.scope).count();
                if same > 1 {
                    return Err(Status::failed_precondition(format!(
                        "{same} pauses have the scope of pause {}; resume by scope to end all of them",
                        request.number
                    )));
                }
                vec![pause.scope.clone()]
            } else {
                vec![asked]
            };
            for scope in &scopes {
                let ended = shard.resume(scope, now, step);
                if let (Err(error), false) = (ended, request.everything) {
                    return Err(Status::not_found(error.to_string()));
                }
            }
            let left = shard.pauses();
            let ended = before.iter().filter(|(number, _)| !left.contains_key(number));
            let ended = ended.map(|(number, pause)| pause_view(*number, pause)).collect();
            let still = self::doubted(shard);
            let released = doubted.difference(&still).map(ToString::to_string).collect();
            Ok(v1::ResumeAnswer { ended, released })
        };
        self.shards.command(order).await?
    }
}
