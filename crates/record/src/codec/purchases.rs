//! The purchase rail: what it was told at the start, and how its books stood. They lie behind the rest of a record, because
//! records were written for some time without them.

use bigfleet_shard::{Around, LossSeen, Purchases};
use serde::{Deserialize, Serialize};

use super::CodecError;
use super::around::{Ago, ago};
use super::number::Bits;
use super::pack::Packer;
use super::unpack::Unpacker;

#[derive(Serialize, Deserialize)]
struct PurchasesRow {
    /// The share, its window and the bound in dollars; beside the other settings.
    settings: Option<(Bits, i64, Bits)>,
    /// What replacements cost an hour, and the losses; whole, if they changed.
    books: Option<(Bits, Vec<LossRow>)>,
}

#[derive(Serialize, Deserialize)]
struct LossRow {
    cluster: u32,
    provider: u16,
    since: Ago,
    machines: u32,
    usd_per_hour: Bits,
    seen: u32,
    may_replace: u32,
    replaced: u32,
}

pub(super) fn write<'a>(piece: &mut Packer<'a>, around: Option<&'a Around>, now: i64) {
    let settings = around.and_then(|around| around.settings.as_deref()).map(|settings| {
        let window = settings.purchase_window_nanos;
        (settings.purchase_fraction.into(), window, settings.purchase_usd_per_hour.into())
    });
    let books = around.and_then(|around| around.purchases.as_ref()).map(|books| {
        let losses = books.losses.iter().map(|loss| LossRow {
            cluster: piece.string(&loss.cluster),
            provider: loss.provider,
            since: ago(now, loss.since_unix_nanos),
            machines: loss.machines,
            usd_per_hour: loss.usd_per_hour.into(),
            seen: loss.seen,
            may_replace: loss.may_replace,
            replaced: loss.replaced,
        });
        (books.usd_per_hour.into(), losses.collect())
    });
    let is_news = settings.is_some() || books.is_some();
    piece.push(&is_news.then_some(PurchasesRow { settings, books }));
}

/// Reads it into the surroundings of the same record.
pub(super) fn read(
    piece: &mut Unpacker<'_>,
    around: Option<&mut Around>,
    now: i64,
) -> Result<(), CodecError> {
    if piece.version < 5 {
        return Ok(());
    }
    let row: Option<PurchasesRow> = piece.take("the purchase rail")?;
    let Some(PurchasesRow { settings, books }) = row else { return Ok(()) };
    let around = around
        .ok_or_else(|| CodecError::value("purchase rail", "its record says nothing of what was around it"))?;
    if let Some((fraction, window, usd_per_hour)) = settings {
        let settings = around.settings.as_mut().ok_or_else(|| {
            CodecError::value("purchase rail", "its settings come without the settings of the shard")
        })?;
        settings.purchase_fraction = fraction.into();
        settings.purchase_window_nanos = window;
        settings.purchase_usd_per_hour = usd_per_hour.into();
    }
    let Some((usd_per_hour, rows)) = books else { return Ok(()) };
    let mut losses = Vec::with_capacity(rows.len());
    for row in rows {
        losses.push(LossSeen {
            cluster: piece.shared(row.cluster)?,
            provider: row.provider,
            since_unix_nanos: ago(now, row.since),
            machines: row.machines,
            usd_per_hour: row.usd_per_hour.into(),
            seen: row.seen,
            may_replace: row.may_replace,
            replaced: row.replaced,
        });
    }
    around.purchases = Some(Purchases { usd_per_hour: usd_per_hour.into(), losses });
    Ok(())
}
