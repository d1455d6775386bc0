//! Facts: one entry of the store each.
//!
//! The key begins with a letter for the kind of fact, so that one table holds them all and a kind this build does not
//! know is noticed.

use std::sync::Arc;

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::need::{Need, NeedKey};
use bigfleet_model::resource::{ResourceError, ResourceName, ResourceVec};
use bigfleet_model::stamp::Assignment;
use bigfleet_shard::{
    Fact, HeldRollup, LettingGo, Loss, LossMemo, MachineMemo, Mode, ModeOrder, Named, Pause, PauseScope,
    Proposal, Quota, ShortSince,
};
use serde::{Deserialize, Serialize};

use super::cycle::{kind_number, kind_of};
use super::number::Bits;
use super::pack::Packer;
use super::rows::NeedRow;
use super::unpack::Unpacker;
use super::{CodecError, VERSION, versioned};

/// A fact as the store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which thing it is about.
    pub key: Vec<u8>,
    /// What is known of it; `None` forgets it.
    pub value: Option<Vec<u8>>,
}

const CYCLE: u8 = b'c';
const DEMAND: u8 = b'd';
const HELD: u8 = b'h';
const RECLAIMS: u8 = b'r';
const MACHINE: u8 = b'm';
const SHORTFALL: u8 = b's';
const PAUSE: u8 = b'p';
const LOSS: u8 = b'l';
const BOUGHT: u8 = b'b';
const MODE: u8 = b'o';
const PROPOSAL: u8 = b'a';
const TERM: u8 = b't';
const DOMAIN: u8 = b'w';
const NAMED: u8 = b'n';
const QUOTAS: u8 = b'q';

/// First report, last confirmation, how many.
type HeldRow = (i64, i64, u32);
/// When, in which cycle.
type ShortRow = (i64, u64);

#[derive(Serialize, Deserialize)]
struct AssignedRow<'a> {
    cluster: &'a str,
    priority: i32,
    interruption: Bits,
    reclamation: Bits,
    fingerprint: &'a str,
    group: &'a str,
}

#[derive(Serialize, Deserialize)]
struct MemoRow<'a> {
    idle_since: Option<i64>,
    #[serde(borrow)]
    creating_for: Option<AssignedRow<'a>>,
    #[serde(borrow)]
    draining_for: Option<(&'a str, &'a str, &'a str)>,
    /// Kind, instruction, until when, priority.
    letting_go: Option<(u8, u64, i64, i32)>,
    failed_tries: u32,
    since: Option<i64>,
}

#[derive(Serialize, Deserialize)]
struct PauseRow<'a> {
    #[serde(borrow)]
    cluster: Option<&'a str>,
    kind: Option<u8>,
    dry_run: bool,
    reason: &'a str,
    author: &'a str,
    since: i64,
    until: Option<i64>,
}

/// Mode, reason, author, since when.
type ModeRow<'a> = (u8, &'a str, &'a str, i64);

#[derive(Serialize, Deserialize)]
struct ProposalRow<'a> {
    id: u32,
    kind: u8,
    #[serde(borrow)]
    cluster: Option<&'a str>,
    #[serde(borrow)]
    need: Option<(&'a str, &'a str, &'a str)>,
    usd_per_hour: Bits,
    cycle: u64,
    since: i64,
    until: i64,
    #[serde(borrow)]
    approved: Option<(&'a str, i64)>,
    begun: bool,
}

#[derive(Serialize, Deserialize)]
struct LossRow<'a> {
    cluster: &'a str,
    provider: &'a str,
    /// Fingerprint and group of the need that counted on it, which is of the same cluster.
    #[serde(borrow)]
    need: Option<(&'a str, &'a str)>,
    #[serde(borrow)]
    amount: Vec<(&'a str, u64)>,
    usd_per_hour: Bits,
}

#[derive(Serialize, Deserialize)]
struct NamedRow<'a> {
    is_ours: bool,
    #[serde(borrow)]
    domain: Option<(&'a str, &'a str)>,
}

#[derive(Serialize, Deserialize)]
struct QuotaRow<'a> {
    provider: &'a str,
    instance_type: &'a str,
    zone: &'a str,
    capacity_type: Option<i32>,
    machines: u32,
}

fn write(row: &impl Serialize) -> Vec<u8> {
    postcard::to_extend(row, vec![VERSION]).expect("writing to memory does not fail")
}

fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8], what: &'static str) -> Result<T, CodecError> {
    let (row, rest) = postcard::take_from_bytes(versioned(bytes, VERSION)?.1)
        .map_err(|error| CodecError::form(what, error))?;
    if rest.is_empty() {
        return Ok(row);
    }
    Err(CodecError::form(what, format_args!("{} bytes are left over", rest.len())))
}

/// A fact as an entry.
pub fn encode_fact(fact: &Fact) -> Entry {
    let named = |kind: u8, name: &str| [&[kind], name.as_bytes()].concat();
    let (key, value) = match fact {
        Fact::Cycle(cycle) => (vec![CYCLE], Some(write(cycle))),
        Fact::Demand(cluster, rows) => (named(DEMAND, cluster), rows.as_deref().map(write_demand)),
        Fact::Held(cluster, held) => {
            let row = |h: &HeldRollup| -> HeldRow { (h.first_unix_nanos, h.last_unix_nanos, h.seen) };
            (named(HELD, cluster), held.as_ref().map(|held| write(&row(held))))
        }
        Fact::Reclaims(cluster, times) => (named(RECLAIMS, cluster), times.as_ref().map(write)),
        Fact::Machine(id, memo) => (named(MACHINE, id), memo.as_ref().map(|memo| write(&memo_row(memo)))),
        Fact::Shortfall(key, since) => {
            let NeedKey { cluster, fingerprint, group } = key;
            let key = postcard::to_extend(&(&**cluster, &**fingerprint, &**group), vec![SHORTFALL]);
            let row = |s: &ShortSince| -> ShortRow { (s.unix_nanos, s.cycle) };
            (key.expect("writing to memory does not fail"), since.as_ref().map(|since| write(&row(since))))
        }
        Fact::Pause(number, pause) => {
            let key = [&[PAUSE][..], &number.to_be_bytes()].concat();
            (key, pause.as_ref().map(|pause| write(&pause_row(pause))))
        }
        Fact::Mode(scope, order) => {
            let scope = (scope.cluster.as_deref(), scope.kind.map(kind_number));
            let key = postcard::to_extend(&scope, vec![MODE]).expect("writing to memory does not fail");
            (key, order.as_ref().map(|order| write(&mode_row(order))))
        }
        Fact::Proposal(id, proposal) => {
            (named(PROPOSAL, id), proposal.as_ref().map(|proposal| write(&proposal_row(proposal))))
        }
        Fact::Loss(id, loss) => (named(LOSS, id), loss.as_ref().map(|memo| write(&loss_row(memo)))),
        Fact::Bought(cluster, times) => (named(BOUGHT, cluster), times.as_ref().map(write)),
        Fact::Term(term) => (vec![TERM], Some(write(term))),
        Fact::Domain(key, value, is_ours) => {
            let key = postcard::to_extend(&(&**key, &**value), vec![DOMAIN]);
            (key.expect("writing to memory does not fail"), is_ours.then(|| write(&())))
        }
        Fact::Named(id, whose) => (named(NAMED, id), whose.as_ref().map(|whose| write(&named_row(whose)))),
        Fact::Quotas(quotas) => {
            let rows: Vec<QuotaRow> = quotas.iter().map(quota_row).collect();
            (vec![QUOTAS], Some(write(&rows)))
        }
    };
    Entry { key, value }
}

/// A fact from its entry.
pub fn decode_fact(key: &[u8], value: &[u8]) -> Result<Fact, CodecError> {
    let what = "a fact";
    let Some((kind, name)) = key.split_first() else {
        return Err(CodecError::form(what, "its key is empty"));
    };
    let text = || str::from_utf8(name).map_err(|error| CodecError::form("a name", error));
    Ok(match *kind {
        CYCLE if name.is_empty() => Fact::Cycle(read(value, "a count of cycles")?),
        DEMAND => Fact::Demand(text()?.into(), Some(read_demand(value)?)),
        HELD => {
            let (first_unix_nanos, last_unix_nanos, seen): HeldRow = read(value, "a held roll-up")?;
            Fact::Held(text()?.into(), Some(HeldRollup { first_unix_nanos, last_unix_nanos, seen }))
        }
        RECLAIMS => Fact::Reclaims(text()?.into(), Some(read(value, "reclaims")?)),
        MACHINE => Fact::Machine(text()?.into(), Some(read_memo(&read(value, "a machine's memo")?)?)),
        SHORTFALL => {
            let key: (&str, &str, &str) =
                postcard::from_bytes(name).map_err(|error| CodecError::form("a need's key", error))?;
            let (unix_nanos, cycle): ShortRow = read(value, "a shortfall")?;
            Fact::Shortfall(need_key(key), Some(ShortSince { unix_nanos, cycle }))
        }
        PAUSE => {
            let number =
                name.try_into().map_err(|_| CodecError::form("a pause", "its key is not a number"))?;
            Fact::Pause(u64::from_be_bytes(number), Some(read_pause(&read(value, "a pause")?)?))
        }
        MODE => {
            let (cluster, kind): (Option<&str>, Option<u8>) =
                postcard::from_bytes(name).map_err(|error| CodecError::form("a mode's scope", error))?;
            let scope = PauseScope { cluster: cluster.map(Arc::from), kind: kind.map(kind_of).transpose()? };
            Fact::Mode(scope, Some(read_mode(read(value, "a mode")?)?))
        }
        PROPOSAL => Fact::Proposal(text()?.into(), Some(read_proposal(&read(value, "a proposal")?)?)),
        LOSS => Fact::Loss(text()?.into(), Some(read_loss(&read(value, "a loss")?)?)),
        BOUGHT => Fact::Bought(text()?.into(), Some(read(value, "purchases")?)),
        TERM if name.is_empty() => Fact::Term(read(value, "a term")?),
        DOMAIN => {
            let (key, of): (&str, &str) =
                postcard::from_bytes(name).map_err(|error| CodecError::form("a domain", error))?;
            read::<()>(value, "a domain")?;
            Fact::Domain(key.into(), of.into(), true)
        }
        NAMED => Fact::Named(text()?.into(), Some(read_named(&read(value, "whose a machine is")?))),
        QUOTAS if name.is_empty() => {
            let rows: Vec<QuotaRow> = read(value, "quotas")?;
            Fact::Quotas(rows.iter().map(read_quota).collect::<Result<_, _>>()?)
        }
        other => return Err(CodecError::form(what, format_args!("kind {:?} is unknown", char::from(other)))),
    })
}

fn write_demand(rows: &[Need]) -> Vec<u8> {
    let mut piece = Packer::default();
    piece.push(&(rows.len() as u32));
    for need in rows {
        let row = piece.need(need);
        piece.push(&row);
    }
    piece.finish(VERSION)
}

fn read_demand(bytes: &[u8]) -> Result<Arc<[Need]>, CodecError> {
    let mut piece = Unpacker::open(bytes, VERSION)?;
    let count: u32 = piece.take("a count of needs")?;
    let mut needs = Vec::new();
    for _ in 0..count {
        let row: NeedRow = piece.take("a need")?;
        needs.push(piece.need(&row)?);
    }
    piece.finish()?;
    Ok(needs.into())
}

fn need_key((cluster, fingerprint, group): (&str, &str, &str)) -> NeedKey {
    NeedKey { cluster: cluster.into(), fingerprint: fingerprint.into(), group: group.into() }
}

fn memo_row(memo: &MachineMemo) -> MemoRow<'_> {
    MemoRow {
        idle_since: memo.idle_since,
        creating_for: memo.creating_for.as_ref().map(|a| AssignedRow {
            cluster: &a.cluster,
            priority: a.priority,
            interruption: a.interruption_penalty_usd.into(),
            reclamation: a.reclamation_penalty_usd.into(),
            fingerprint: &a.fingerprint,
            group: &a.group,
        }),
        draining_for: memo.draining_for.as_ref().map(|key| (&*key.cluster, &*key.fingerprint, &*key.group)),
        letting_go: memo
            .letting_go
            .as_ref()
            .map(|l| (kind_number(l.kind), l.instruction, l.until_unix_nanos, l.preemptor_priority)),
        failed_tries: memo.failed_tries,
        since: memo.since,
    }
}

fn read_memo(row: &MemoRow<'_>) -> Result<MachineMemo, CodecError> {
    let letting_go = match row.letting_go {
        Some((kind, instruction, until_unix_nanos, preemptor_priority)) => {
            Some(LettingGo { kind: kind_of(kind)?, instruction, until_unix_nanos, preemptor_priority })
        }
        None => None,
    };
    Ok(MachineMemo {
        idle_since: row.idle_since,
        creating_for: row.creating_for.as_ref().map(|a| Assignment {
            cluster: a.cluster.into(),
            priority: a.priority,
            interruption_penalty_usd: a.interruption.into(),
            reclamation_penalty_usd: a.reclamation.into(),
            fingerprint: a.fingerprint.into(),
            group: a.group.into(),
        }),
        draining_for: row.draining_for.map(need_key),
        letting_go,
        failed_tries: row.failed_tries,
        since: row.since,
    })
}

fn loss_row(memo: &LossMemo) -> LossRow<'_> {
    let LossMemo { cluster, provider, loss } = memo;
    LossRow {
        cluster,
        provider,
        need: loss.need.as_ref().map(|need| (&*need.fingerprint, &*need.group)),
        amount: loss.amount.iter().map(|(name, amount)| (name.as_str(), amount)).collect(),
        usd_per_hour: loss.usd_per_hour.into(),
    }
}

fn read_loss(row: &LossRow<'_>) -> Result<LossMemo, CodecError> {
    let form = |error| CodecError::form("what was lost", error);
    let amounts = row.amount.iter().map(|(name, amount)| Ok((ResourceName::new(name)?, *amount)));
    let amounts: Vec<(ResourceName, u64)> = amounts.collect::<Result<_, ResourceError>>().map_err(form)?;
    let loss = Loss {
        need: row.need.map(|(fingerprint, group)| need_key((row.cluster, fingerprint, group))),
        amount: ResourceVec::new(amounts).map_err(form)?,
        usd_per_hour: row.usd_per_hour.into(),
    };
    Ok(LossMemo { cluster: row.cluster.into(), provider: row.provider.into(), loss })
}

fn named_row(named: &Named) -> NamedRow<'_> {
    match named {
        Named::Ours => NamedRow { is_ours: true, domain: None },
        Named::Theirs(domain) => {
            NamedRow { is_ours: false, domain: domain.as_ref().map(|(key, value)| (&**key, &**value)) }
        }
    }
}

fn read_named(row: &NamedRow<'_>) -> Named {
    if row.is_ours {
        return Named::Ours;
    }
    Named::Theirs(row.domain.map(|(key, value)| (key.into(), value.into())))
}

fn quota_row(quota: &Quota) -> QuotaRow<'_> {
    QuotaRow {
        provider: &quota.provider,
        instance_type: &quota.instance_type,
        zone: &quota.zone,
        capacity_type: quota.capacity_type.map(CapacityType::to_wire),
        machines: quota.machines,
    }
}

fn read_quota(row: &QuotaRow<'_>) -> Result<Quota, CodecError> {
    let kind = |number: i32| {
        CapacityType::from_wire(number)
            .ok_or_else(|| CodecError::form("a quota", format_args!("capacity type {number} is unknown")))
    };
    Ok(Quota {
        provider: row.provider.into(),
        instance_type: row.instance_type.into(),
        zone: row.zone.into(),
        capacity_type: row.capacity_type.map(kind).transpose()?,
        machines: row.machines,
    })
}

fn pause_row(pause: &Pause) -> PauseRow<'_> {
    PauseRow {
        cluster: pause.scope.cluster.as_deref(),
        kind: pause.scope.kind.map(kind_number),
        dry_run: pause.dry_run,
        reason: &pause.reason,
        author: &pause.author,
        since: pause.since_unix_nanos,
        until: pause.until_unix_nanos,
    }
}

fn read_pause(row: &PauseRow<'_>) -> Result<Pause, CodecError> {
    Ok(Pause {
        scope: PauseScope { cluster: row.cluster.map(Arc::from), kind: row.kind.map(kind_of).transpose()? },
        dry_run: row.dry_run,
        reason: row.reason.into(),
        author: row.author.into(),
        since_unix_nanos: row.since,
        until_unix_nanos: row.until,
    })
}

fn mode_row(order: &ModeOrder) -> ModeRow<'_> {
    let mode = Mode::ALL.iter().position(|known| *known == order.mode).expect("the list names every mode");
    (mode as u8, &order.reason, &order.author, order.since_unix_nanos)
}

fn read_mode((number, reason, author, since_unix_nanos): ModeRow<'_>) -> Result<ModeOrder, CodecError> {
    let mode = Mode::ALL.get(usize::from(number)).copied();
    let mode = mode.ok_or_else(|| CodecError::value("mode", format_args!("number {number} is unknown")))?;
    Ok(ModeOrder { mode, reason: reason.into(), author: author.into(), since_unix_nanos })
}

fn proposal_row(proposal: &Proposal) -> ProposalRow<'_> {
    ProposalRow {
        id: proposal.id,
        kind: kind_number(proposal.kind),
        cluster: proposal.cluster.as_deref(),
        need: proposal.need.as_ref().map(|key| (&*key.cluster, &*key.fingerprint, &*key.group)),
        usd_per_hour: proposal.usd_per_hour.into(),
        cycle: proposal.cycle,
        since: proposal.since_unix_nanos,
        until: proposal.until_unix_nanos,
        approved: proposal.approved.as_ref().map(|(author, at)| (&**author, *at)),
        begun: proposal.begun,
    }
}

fn read_proposal(row: &ProposalRow<'_>) -> Result<Proposal, CodecError> {
    Ok(Proposal {
        id: row.id,
        kind: kind_of(row.kind)?,
        cluster: row.cluster.map(Arc::from),
        need: row.need.map(need_key),
        usd_per_hour: row.usd_per_hour.into(),
        cycle: row.cycle,
        since_unix_nanos: row.since,
        until_unix_nanos: row.until,
        approved: row.approved.map(|(author, at)| (author.into(), at)),
        begun: row.begun,
    })
}
