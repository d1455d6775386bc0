//! Questions and their answers: what the view says, and the same in words.

pub(crate) mod command;
pub(crate) mod explain;
pub(crate) mod hello;
pub(crate) mod lists;
pub(crate) mod moment;
pub(crate) mod plan;
pub(crate) mod policy;
pub(crate) mod rows;
pub(crate) mod whatif;

use crate::answer::Refusal;
use crate::query::Query;
use crate::site::Site;
use crate::way::Shard;

/// The shard that is meant: the only one, or the one that is named.
fn shard<'a>(site: &'a Site, query: &Query) -> Result<&'a Shard, Refusal> {
    let named = query.get("shard");
    let name = |at: usize| site.live.name(at);
    match (named, site.shards.len()) {
        (None, 1) => Ok(&site.shards[0]),
        (None, _) => Err(Refusal::bad("say which shard: there are several")),
        (Some(named), count) => (0..count)
            .find(|at| name(*at) == named || site.shards[*at].name == named)
            .map(|at| &site.shards[at])
            .ok_or_else(|| {
                let known = (0..count).map(name).collect::<Vec<_>>().join(", ");
                Refusal::bad(format!(
                    "no shard is called {}; there are {known}",
                    bigfleet_model::text::Quoted(named)
                ))
            }),
    }
}

/// The shards that are meant: all, or the one that is named, each with its name.
fn shards<'a>(site: &'a Site, query: &Query) -> Result<Vec<(String, &'a Shard)>, Refusal> {
    if query.get("shard").is_some() {
        let one = shard(site, query)?;
        return Ok(vec![(query.text("shard"), one)]);
    }
    Ok(site.shards.iter().enumerate().map(|(at, shard)| (site.live.name(at), shard)).collect())
}
