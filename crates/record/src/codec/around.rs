//! Surroundings: how providers, sessions and pauses changed.
//!
//! Times lie before the cycle they are recorded with, most of them shortly: they are written as how long before. Ranks
//! rise, so each is written as its distance to the one before it.

use std::sync::Arc;

use bigfleet_shard::{
    Around, ClusterChange, Confirmation, Health, HeldListing, HeldRollup, Link, Listed, OperatorSeen, Pause,
    PauseScope, ProviderSettings, Settings, ShortSince,
};
use serde::{Deserialize, Serialize};

use super::CodecError;
use super::cycle::{kind_number, kind_of};
use super::number::Bits;
use super::pack::Packer;
use super::unpack::Unpacker;

/// Nanoseconds before the cycle.
pub(super) type Ago = i64;

#[derive(Serialize, Deserialize)]
pub(super) struct AroundRow {
    settings: Option<SettingsRow>,
    moves: u32,
    /// Place; listed and fully listed; machines.
    listed: Vec<(u16, Option<Ago>, Option<Ago>, u32)>,
    health: Vec<(u16, HealthRow)>,
    came: Vec<u32>,
    went: Vec<u32>,
    /// Ranks by distance.
    clusters: Vec<(u32, ClusterRow)>,
    /// Ranks by distance; seconds before the cycle.
    reported: Vec<(u32, i64)>,
    pauses: Vec<(u64, Option<PauseRow>)>,
    /// Since when, and since how many cycles.
    short: Vec<(u32, Option<(Ago, u64)>)>,
    owners: Vec<u16>,
}

#[derive(Serialize, Deserialize)]
struct SettingsRow {
    reclaim_fraction: Bits,
    reclaim_window: i64,
    max_actions_per_cycle: u64,
    dry_run: bool,
    max_moves: u64,
    demand_drop: Bits,
    supply_drop: Bits,
    confirmations: u32,
    /// Name, how often listed, when stale.
    providers: Vec<(u32, i64, i64)>,
}

#[derive(Serialize, Deserialize)]
struct HealthRow {
    failures: u32,
    error: u32,
    /// First, last, how many, how many machines.
    held: Option<(Ago, Ago, u32, u64)>,
    supports_delete: bool,
    has_revisions: bool,
    is_stale: bool,
}

#[derive(Serialize, Deserialize)]
enum ClusterRow {
    /// Number, since when, protocol.
    Session(Option<(u64, Ago, u32)>),
    /// Failures, until when, error.
    Operator(u32, Option<Ago>, u32),
    /// First, last, how many.
    Held(Option<(Ago, Ago, u32)>),
    Reclaims(Vec<(Ago, u32)>),
    Changed(Option<Ago>),
}

#[derive(Serialize, Deserialize)]
struct PauseRow {
    cluster: Option<u32>,
    kind: Option<u8>,
    dry_run: bool,
    reason: u32,
    author: u32,
    since: Ago,
    until: Option<Ago>,
}

/// How long before the cycle, and back; any two times go.
pub(super) fn ago(now: i64, unix_nanos: i64) -> Ago {
    now.wrapping_sub(unix_nanos)
}

/// A time that is 0 for never is kept as never.
fn ago_or_never(now: i64, unix_nanos: i64) -> Option<Ago> {
    (unix_nanos != 0).then(|| ago(now, unix_nanos))
}

fn time_or_never(now: i64, before: Option<Ago>) -> i64 {
    before.map_or(0, |before| ago(now, before))
}

fn seconds(unix_nanos: i64) -> i64 {
    unix_nanos.div_euclid(1_000_000_000)
}

pub(super) fn write<'a>(piece: &mut Packer<'a>, around: &'a Around, cycle: u64, now: i64) -> AroundRow {
    let mut rank_before = 0;
    let mut distance = |rank: u32| rank.wrapping_sub(std::mem::replace(&mut rank_before, rank));
    let clusters = around.clusters.iter();
    let clusters =
        clusters.map(|(rank, change)| (distance(*rank), cluster_row(piece, change, now))).collect();
    rank_before = 0;
    let mut distance = |rank: u32| rank.wrapping_sub(std::mem::replace(&mut rank_before, rank));
    let reported = around.reported.iter();
    let reported = reported.map(|(rank, secs)| (distance(*rank), seconds(now).wrapping_sub(*secs))).collect();
    let listed = around.listed.iter().map(|(place, listed)| {
        let Listed { unix_nanos, full_unix_nanos, machines } = *listed;
        (*place, unix_nanos.map(|t| ago(now, t)), full_unix_nanos.map(|t| ago(now, t)), machines)
    });
    let short = around.short.iter().map(|(key, since)| {
        let since = since.map(|since| (ago(now, since.unix_nanos), cycle.wrapping_sub(since.cycle)));
        (piece.key(key), since)
    });
    AroundRow {
        short: short.collect(),
        settings: around.settings.as_ref().map(|settings| settings_row(piece, settings)),
        moves: around.moves,
        listed: listed.collect(),
        health: around.health.iter().map(|(place, h)| (*place, health_row(piece, h, now))).collect(),
        came: around.came.iter().map(|name| piece.string(name)).collect(),
        went: around.went.iter().map(|name| piece.string(name)).collect(),
        clusters,
        reported,
        pauses: around
            .pauses
            .iter()
            .map(|(n, pause)| (*n, pause.as_ref().map(|p| pause_row(piece, p, now))))
            .collect(),
        owners: around.owners.clone(),
    }
}

fn settings_row<'a>(piece: &mut Packer<'a>, settings: &'a Settings) -> SettingsRow {
    SettingsRow {
        reclaim_fraction: settings.reclaim_fraction.into(),
        reclaim_window: settings.reclaim_window_nanos,
        max_actions_per_cycle: settings.max_actions_per_cycle,
        dry_run: settings.dry_run,
        max_moves: settings.max_moves,
        demand_drop: settings.demand_drop.into(),
        supply_drop: settings.supply_drop.into(),
        confirmations: settings.confirmations,
        providers: settings
            .providers
            .iter()
            .map(|p| (piece.string(&p.name), p.list_every_nanos, p.stale_after_nanos))
            .collect(),
    }
}

fn health_row<'a>(piece: &mut Packer<'a>, health: &'a Health, now: i64) -> HealthRow {
    HealthRow {
        failures: health.failures,
        error: piece.string(&health.error),
        held: health.held.map(|held| {
            let Confirmation { first_unix_nanos, last_unix_nanos, seen } = held.confirmation;
            (ago(now, first_unix_nanos), ago(now, last_unix_nanos), seen, held.missing as u64)
        }),
        supports_delete: health.supports_delete,
        has_revisions: health.has_revisions,
        is_stale: health.is_stale,
    }
}

fn cluster_row<'a>(piece: &mut Packer<'a>, change: &'a ClusterChange, now: i64) -> ClusterRow {
    match change {
        ClusterChange::Session(link) => ClusterRow::Session(
            link.as_ref().map(|l| (l.number, ago(now, l.since_unix_nanos), piece.string(&l.protocol))),
        ),
        ClusterChange::Operator(operator) => ClusterRow::Operator(
            operator.failures,
            ago_or_never(now, operator.backoff_until_unix_nanos),
            piece.string(&operator.error),
        ),
        ClusterChange::Held(held) => ClusterRow::Held(
            held.as_ref().map(|h| (ago(now, h.first_unix_nanos), ago(now, h.last_unix_nanos), h.seen)),
        ),
        ClusterChange::Reclaims(times) => {
            ClusterRow::Reclaims(times.iter().map(|(at, count)| (ago(now, *at), *count)).collect())
        }
        ClusterChange::Changed(unix_nanos) => ClusterRow::Changed(ago_or_never(now, *unix_nanos)),
    }
}

fn pause_row<'a>(piece: &mut Packer<'a>, pause: &'a Pause, now: i64) -> PauseRow {
    PauseRow {
        cluster: pause.scope.cluster.as_deref().map(|cluster| piece.string(cluster)),
        kind: pause.scope.kind.map(kind_number),
        dry_run: pause.dry_run,
        reason: piece.string(&pause.reason),
        author: piece.string(&pause.author),
        since: ago(now, pause.since_unix_nanos),
        until: pause.until_unix_nanos.map(|until| ago(now, until)),
    }
}

pub(super) fn read(
    piece: &mut Unpacker<'_>,
    row: AroundRow,
    cycle: u64,
    now: i64,
) -> Result<Around, CodecError> {
    let mut rank = 0_u32;
    let mut clusters = Vec::with_capacity(row.clusters.len());
    for (distance, change) in row.clusters {
        rank = rank.wrapping_add(distance);
        clusters.push((rank, read_cluster(piece, change, now)?));
    }
    rank = 0;
    let reported = row.reported.into_iter().map(|(distance, before)| {
        rank = rank.wrapping_add(distance);
        (rank, seconds(now).wrapping_sub(before))
    });
    let listed = row.listed.into_iter().map(|(place, listed, full, machines)| {
        let (unix_nanos, full_unix_nanos) = (listed.map(|t| ago(now, t)), full.map(|t| ago(now, t)));
        (place, Listed { unix_nanos, full_unix_nanos, machines })
    });
    let mut short = Vec::with_capacity(row.short.len());
    for (key, since) in row.short {
        let since = since.map(|(before, cycles)| ShortSince {
            unix_nanos: ago(now, before),
            cycle: cycle.wrapping_sub(cycles),
        });
        short.push((piece.key(key)?.clone(), since));
    }
    Ok(Around {
        reported: reported.collect(),
        listed: listed.collect(),
        clusters,
        short,
        settings: row.settings.map(|row| read_settings(piece, row)).transpose()?.map(Box::new),
        health: row
            .health
            .into_iter()
            .map(|(place, row)| Ok((place, read_health(piece, &row, now)?)))
            .collect::<Result<_, CodecError>>()?,
        came: row.came.into_iter().map(|name| piece.shared(name)).collect::<Result<_, _>>()?,
        went: row.went.into_iter().map(|name| piece.shared(name)).collect::<Result<_, _>>()?,
        pauses: row
            .pauses
            .into_iter()
            .map(|(number, row)| Ok((number, row.map(|row| read_pause(piece, &row, now)).transpose()?)))
            .collect::<Result<_, CodecError>>()?,
        owners: row.owners,
        moves: row.moves,
        purchases: None,
    })
}

fn read_settings(piece: &mut Unpacker<'_>, row: SettingsRow) -> Result<Settings, CodecError> {
    let mut providers = Vec::with_capacity(row.providers.len());
    for (name, list_every_nanos, stale_after_nanos) in row.providers {
        providers.push(ProviderSettings { name: piece.shared(name)?, list_every_nanos, stale_after_nanos });
    }
    Ok(Settings {
        reclaim_fraction: row.reclaim_fraction.into(),
        reclaim_window_nanos: row.reclaim_window,
        max_actions_per_cycle: row.max_actions_per_cycle,
        dry_run: row.dry_run,
        max_moves: row.max_moves,
        demand_drop: row.demand_drop.into(),
        supply_drop: row.supply_drop.into(),
        confirmations: row.confirmations,
        // Newer records say so beside this.
        purchase_fraction: 0.0,
        purchase_window_nanos: 0,
        purchase_usd_per_hour: 0.0,
        providers,
    })
}

fn read_health(piece: &Unpacker<'_>, row: &HealthRow, now: i64) -> Result<Health, CodecError> {
    let held = row.held.map(|(first, last, seen, missing)| HeldListing {
        confirmation: Confirmation {
            first_unix_nanos: ago(now, first),
            last_unix_nanos: ago(now, last),
            seen,
        },
        missing: missing as usize,
    });
    Ok(Health {
        failures: row.failures,
        error: piece.text(row.error)?.into(),
        held,
        supports_delete: row.supports_delete,
        has_revisions: row.has_revisions,
        is_stale: row.is_stale,
    })
}

fn read_cluster(piece: &Unpacker<'_>, row: ClusterRow, now: i64) -> Result<ClusterChange, CodecError> {
    Ok(match row {
        ClusterRow::Session(None) => ClusterChange::Session(None),
        ClusterRow::Session(Some((number, since, protocol))) => ClusterChange::Session(Some(Link {
            number,
            since_unix_nanos: ago(now, since),
            protocol: piece.text(protocol)?.into(),
        })),
        ClusterRow::Operator(failures, until, error) => ClusterChange::Operator(OperatorSeen {
            failures,
            backoff_until_unix_nanos: time_or_never(now, until),
            error: piece.text(error)?.into(),
        }),
        ClusterRow::Held(held) => ClusterChange::Held(held.map(|(first, last, seen)| HeldRollup {
            first_unix_nanos: ago(now, first),
            last_unix_nanos: ago(now, last),
            seen,
        })),
        ClusterRow::Reclaims(times) => {
            ClusterChange::Reclaims(times.into_iter().map(|(at, count)| (ago(now, at), count)).collect())
        }
        ClusterRow::Changed(at) => ClusterChange::Changed(time_or_never(now, at)),
    })
}

fn read_pause(piece: &Unpacker<'_>, row: &PauseRow, now: i64) -> Result<Pause, CodecError> {
    Ok(Pause {
        scope: PauseScope {
            cluster: row.cluster.map(|cluster| piece.text(cluster).map(Arc::from)).transpose()?,
            kind: row.kind.map(kind_of).transpose()?,
        },
        dry_run: row.dry_run,
        reason: piece.text(row.reason)?.into(),
        author: piece.text(row.author)?.into(),
        since_unix_nanos: ago(now, row.since),
        until_unix_nanos: row.until.map(|until| ago(now, until)),
    })
}
