//! Cycles: their inputs, their decisions, and the options they ran with.
//!
//! Options are a piece of their own. They name every cluster that has reported and hardly ever change, so a tape holds
//! them once and lets records point at them.

use std::collections::BTreeSet;
use std::sync::Arc;

use bigfleet_engine::{ActionExplanation, ActionKind, Options, Ready, Rule, RunnerUp};
use bigfleet_model::cost::VictimWeights;
use bigfleet_model::release::ReleasePolicy;
use bigfleet_shard::{Around, CycleRecord, Fate, Input, Ordered, Reasons};

use super::around::AroundRow;
use super::pack::Packer;
use super::rows::{CycleRow, DecidedRow, InputRow, OptionsRow, WhyRow};
use super::unpack::{Unpacker, state};
use super::{CodecError, RECORD_VERSION, VERSION, around, facts, purchases, versioned};
use crate::recorded::{Decided, NeedName, Recorded};

const KINDS: [ActionKind; 5] = [
    ActionKind::Bootstrap,
    ActionKind::Provision,
    ActionKind::Preempt,
    ActionKind::Reclaim,
    ActionKind::Delete,
];

const RULES: [Rule; 8] = [
    Rule::CheapestIdle,
    Rule::LeastEffectiveCost,
    Rule::BestVictim,
    Rule::Unclaimed,
    Rule::HoldOver,
    Rule::PaidFor,
    Rule::Bargain,
    Rule::UnclaimedVictim,
];

const FATES: [Fate; 15] = [
    Fate::Begun,
    Fate::Paused,
    Fate::DryRun,
    Fate::Capped,
    Fate::OverBound,
    Fate::NoPlace,
    Fate::StaleInventory,
    Fate::OperatorBackoff,
    Fate::Busy,
    Fate::Regretted,
    Fate::TakenBack,
    Fate::LossUnconfirmed,
    Fate::OnlyLooks,
    Fate::Observed,
    Fate::AwaitsApproval,
];

/// The number of a value on disk: its place in a list that only ever grows at its end.
fn number_of<T: PartialEq>(list: &[T], value: &T) -> u8 {
    list.iter().position(|known| known == value).expect("the list names every value") as u8
}

fn value_of<T: Copy>(list: &[T], what: &'static str, number: u8) -> Result<T, CodecError> {
    list.get(number as usize)
        .copied()
        .ok_or_else(|| CodecError::value(what, format_args!("number {number} is unknown")))
}

pub(super) fn kind_number(kind: ActionKind) -> u8 {
    number_of(&KINDS, &kind)
}

pub(super) fn kind_of(number: u8) -> Result<ActionKind, CodecError> {
    value_of(&KINDS, "action", number)
}

/// A cycle without its options.
pub fn encode_record(record: &CycleRecord) -> Vec<u8> {
    let mut piece = Packer::default();
    let inputs: &[Input] = record.full.as_deref().map_or(&record.inputs, Vec::as_slice);
    piece.push(&CycleRow {
        cycle: record.cycle,
        epoch: record.epoch,
        now: record.now_unix_nanos,
        reasons: reasons_number(record.reasons),
        is_full: record.full.is_some(),
        inputs: inputs.len() as u32,
        decided: record.actions.len() as u32,
        decided_in_all: record.decided,
        digest: record.digest,
        usd_per_hour: record.usd_per_hour.into(),
        short_needs: record.short_needs,
    });
    for input in inputs {
        let row = input_row(&mut piece, input);
        piece.push(&row);
    }
    for ordered in &record.actions {
        let row = decided_row(&mut piece, ordered);
        piece.push(&row);
    }
    let (cycle, now) = (record.cycle, record.now_unix_nanos);
    let row = record.around.as_ref().map(|around| around::write(&mut piece, around, cycle, now));
    piece.push(&row);
    piece.push(&record.edition);
    piece.push(&bargains(record.actions.iter().map(|ordered| ordered.why.as_ref())));
    facts::write(&mut piece, &record.actions);
    purchases::write(&mut piece, record.around.as_ref(), now);
    piece.push(&approvals(&record.actions));
    piece.finish(RECORD_VERSION)
}

/// A cycle from its bytes, with the options it ran with.
pub fn decode_record(bytes: &[u8], options: Options) -> Result<Recorded, CodecError> {
    let mut piece = Unpacker::open(bytes, RECORD_VERSION)?;
    let head: CycleRow = piece.take("a cycle")?;
    let inputs = (0..head.inputs).map(|_| read_input(&mut piece)).collect::<Result<Vec<_>, _>>()?;
    let mut decided = (0..head.decided).map(|_| read_decided(&mut piece)).collect::<Result<Vec<_>, _>>()?;
    let mut around = read_around(&mut piece, &head)?;
    let edition = read_edition(&mut piece)?;
    read_bargains(&mut piece, &mut decided)?;
    facts::read(&mut piece, &mut decided)?;
    purchases::read(&mut piece, around.as_mut(), head.now)?;
    read_approvals(&mut piece, &mut decided)?;
    piece.finish()?;
    let (full, inputs) = if head.is_full { (Some(inputs), Vec::new()) } else { (None, inputs) };
    Ok(Recorded {
        cycle: head.cycle,
        epoch: head.epoch,
        edition,
        now_unix_nanos: head.now,
        reasons: reasons_of(head.reasons)?,
        full,
        inputs,
        options,
        decided,
        decided_in_all: head.decided_in_all,
        digest: head.digest,
        usd_per_hour: head.usd_per_hour.into(),
        short_needs: head.short_needs,
        around,
    })
}

fn read_around(piece: &mut Unpacker<'_>, head: &CycleRow) -> Result<Option<Around>, CodecError> {
    if piece.version == 1 {
        return Ok(None);
    }
    let row: Option<AroundRow> = piece.take("surroundings")?;
    row.map(|row| around::read(piece, row, head.cycle, head.now)).transpose()
}

/// What the bargains of a cycle's acquisitions were: by place among the decisions, the share of the demand the machine
/// adds, how many resources are demanded, and for the runner-up its share and whether it was given back.
type Bargains = Vec<(u32, f64, u32, Option<(f64, bool)>)>;

fn bargains<'a>(whys: impl Iterator<Item = Option<&'a ActionExplanation>>) -> Bargains {
    let whys = (0..).zip(whys);
    whys.filter_map(|(place, why)| {
        let why = why?;
        let next = why.runner_up.as_ref().and_then(|next| Some((next.share?, next.given_back)));
        Some((place, why.share?, why.resources as u32, next))
    })
    .collect()
}

fn read_bargains(piece: &mut Unpacker<'_>, decided: &mut [Decided]) -> Result<(), CodecError> {
    if piece.version < 3 {
        return Ok(());
    }
    let rows: Bargains = piece.take("bargains")?;
    for (place, share, resources, next) in rows {
        let why = decided.get_mut(place as usize).and_then(|decided| decided.why.as_mut());
        let why =
            why.ok_or_else(|| CodecError::value("bargain", format_args!("decision {place} has no reason")))?;
        if !(share.is_finite() && share > 0.0) {
            return Err(CodecError::value("bargain", "a share is above zero"));
        }
        (why.share, why.resources) = (Some(share), resources as usize);
        if let (Some((share, given_back)), Some(runner_up)) = (next, &mut why.runner_up) {
            (runner_up.share, runner_up.given_back) = (Some(share), given_back);
        }
    }
    Ok(())
}

/// Who approved which decision, by its place.
type Approvals<'a> = Vec<(u32, &'a str)>;

fn approvals(actions: &[Ordered]) -> Approvals<'_> {
    let places = (0..).zip(actions);
    places.filter_map(|(place, ordered)| Some((place, ordered.approved_by.as_deref()?))).collect()
}

fn read_approvals(piece: &mut Unpacker<'_>, decided: &mut [Decided]) -> Result<(), CodecError> {
    if piece.version < 5 {
        return Ok(());
    }
    let rows: Approvals<'_> = piece.take("approvals")?;
    for (place, author) in rows {
        let decided = decided.get_mut(place as usize);
        let decided = decided
            .ok_or_else(|| CodecError::value("approval", format_args!("there is no decision {place}")))?;
        decided.approved_by = Some(author.into());
    }
    Ok(())
}

/// Records that name no edition are of the first: there was no other when they were written.
fn read_edition(piece: &mut Unpacker<'_>) -> Result<u32, CodecError> {
    if piece.version < 3 {
        return Ok(1);
    }
    match piece.take("an edition")? {
        0 => Err(CodecError::value("edition", "0 is none")),
        edition => Ok(edition),
    }
}

fn input_row<'a>(piece: &mut Packer<'a>, input: &'a Input) -> InputRow<'a> {
    match input {
        Input::Observe(machine) => InputRow::Observe(piece.machine(machine)),
        Input::Remove(id) => InputRow::Remove(id),
        Input::Replace { cluster, needs, at_unix_nanos } => InputRow::Replace {
            cluster: piece.string(cluster),
            at: *at_unix_nanos,
            needs: needs.iter().map(|need| piece.need(need)).collect(),
        },
        Input::Park { key, parked } => InputRow::Park { key: piece.key(key), parked: *parked },
    }
}

fn read_input(piece: &mut Unpacker<'_>) -> Result<Input, CodecError> {
    Ok(match piece.take("an input")? {
        InputRow::Observe(row) => Input::Observe(Arc::new(piece.machine(&row)?)),
        InputRow::Remove(id) => Input::Remove(id.into()),
        InputRow::Replace { cluster, at, needs } => Input::Replace {
            cluster: piece.shared(cluster)?,
            needs: needs.iter().map(|row| piece.need(row)).collect::<Result<_, _>>()?,
            at_unix_nanos: at,
        },
        InputRow::Park { key, parked } => Input::Park { key: piece.key(key)?.clone(), parked },
    })
}

fn decided_row<'a>(piece: &mut Packer<'a>, ordered: &'a Ordered) -> DecidedRow<'a> {
    let action = &ordered.action;
    DecidedRow {
        kind: kind_number(action.kind),
        machine: &action.machine,
        cluster: action.cluster.as_deref().map(|cluster| piece.string(cluster)),
        need: action.need.as_deref().map(|demand| {
            let need = &demand.need;
            let key = piece.key_of(&need.cluster, need.profile.fingerprint(), &need.group);
            (key, demand.folded, piece.vector(&need.min_unit))
        }),
        grace_secs: action.grace_secs,
        fate: number_of(&FATES, &ordered.fate),
        why: ordered.why.as_ref().map(|why| WhyRow {
            rule: number_of(&RULES, &why.rule),
            figure: why.figure.into(),
            runner_up: why
                .runner_up
                .as_ref()
                .map(|r| (&*r.machine, r.state.to_wire() as u8, r.figure.into())),
        }),
    }
}

fn read_decided(piece: &mut Unpacker<'_>) -> Result<Decided, CodecError> {
    let row: DecidedRow<'_> = piece.take("a decision")?;
    let need = match row.need {
        Some((key, folded, min_unit)) => {
            Some(NeedName { key: piece.key(key)?.clone(), folded, min_unit: piece.vector(min_unit)?.clone() })
        }
        None => None,
    };
    Ok(Decided {
        kind: kind_of(row.kind)?,
        machine: row.machine.into(),
        cluster: row.cluster.map(|cluster| piece.shared(cluster)).transpose()?,
        need,
        grace_secs: row.grace_secs,
        fate: value_of(&FATES, "fate", row.fate)?,
        why: row.why.as_ref().map(read_why).transpose()?,
        facts: None,
        runner_up: None,
        approved_by: None,
    })
}

fn read_why(row: &WhyRow<'_>) -> Result<ActionExplanation, CodecError> {
    let runner_up = match row.runner_up {
        Some((machine, number, figure)) => {
            let (share, given_back) = (None, false);
            let state = state(number)?;
            Some(RunnerUp { machine: machine.into(), state, figure: figure.into(), share, given_back })
        }
        None => None,
    };
    let rule = value_of(&RULES, "rule", row.rule)?;
    let (share, resources, brief) = (None, 0, false);
    Ok(ActionExplanation { rule, figure: row.figure.into(), share, resources, runner_up, brief })
}

fn reasons_number(reasons: Reasons) -> u8 {
    let Reasons { tick, demand, supply, command, leftover } = reasons;
    [tick, demand, supply, command, leftover]
        .iter()
        .rev()
        .fold(0, |bits, reason| bits << 1 | u8::from(*reason))
}

fn reasons_of(bits: u8) -> Result<Reasons, CodecError> {
    if bits >= 1 << 5 {
        return Err(CodecError::value("reasons", format_args!("bits {bits:#x} are unknown")));
    }
    let [tick, demand, supply, command, leftover] = std::array::from_fn(|bit| bits & 1 << bit != 0);
    Ok(Reasons { tick, demand, supply, command, leftover })
}

/// The options of a cycle.
pub fn encode_options(options: &Options) -> Vec<u8> {
    let Options { release, weights, estimated_drain_nanos, ready } = options;
    let hold = |nanos: Option<std::num::NonZeroU64>| nanos.map_or(0, std::num::NonZeroU64::get);
    let row = OptionsRow {
        holds: (hold(release.on_demand_hold_nanos), hold(release.spot_hold_nanos)),
        weights: [weights.priority, weights.drain_speed, weights.interruption, weights.reclamation]
            .map(Into::into),
        estimated_drain_nanos: *estimated_drain_nanos,
        ready: match ready {
            Ready::All => None,
            Ready::Only(clusters) => Some(clusters.iter().map(|cluster| &**cluster).collect()),
        },
    };
    postcard::to_extend(&row, vec![VERSION]).expect("writing to memory does not fail")
}

/// Options from their bytes.
pub fn decode_options(bytes: &[u8]) -> Result<Options, CodecError> {
    let what = "options";
    let (row, rest) = postcard::take_from_bytes::<OptionsRow<'_>>(versioned(bytes, VERSION)?.1)
        .map_err(|error| CodecError::form(what, error))?;
    if !rest.is_empty() {
        return Err(CodecError::form(what, format_args!("{} bytes are left over", rest.len())));
    }
    let [priority, drain_speed, interruption, reclamation] = row.weights.map(f64::from);
    Ok(Options {
        release: ReleasePolicy::from_nanos(row.holds.0, row.holds.1),
        weights: VictimWeights { priority, drain_speed, interruption, reclamation },
        estimated_drain_nanos: row.estimated_drain_nanos,
        ready: match row.ready {
            None => Ready::All,
            Some(clusters) => {
                Ready::Only(Arc::new(clusters.into_iter().map(Arc::from).collect::<BTreeSet<Arc<str>>>()))
            }
        },
    })
}
