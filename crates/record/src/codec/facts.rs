//! What machines were when they were decided on, beside the decisions: prices move, and a decision is read with its own.

use bigfleet_model::capacity::CapacityType;
use bigfleet_model::machine::Machine;
use bigfleet_shard::{MachineFacts, Ordered};
use serde::{Deserialize, Serialize};

use super::CodecError;
use super::number::Bits;
use super::pack::Packer;
use super::unpack::Unpacker;
use crate::recorded::Decided;

#[derive(Serialize, Deserialize)]
struct FactsRow {
    instance_type: u32,
    zone: u32,
    capacity_type: u8,
    price: Bits,
    probability: Bits,
}

/// Of one decision: the machine, the runner-up, and whether nobody looked for one.
type Row = (Option<FactsRow>, Option<FactsRow>, bool);

pub(super) fn write<'a>(piece: &mut Packer<'a>, actions: &'a [Ordered]) {
    let rows: Vec<Row> = actions
        .iter()
        .map(|ordered| {
            let machine = ordered.machine.as_deref().map(|machine| of_machine(piece, machine));
            let next = ordered.runner_up.as_deref().map(|next| of_facts(piece, next));
            (machine, next, ordered.why.as_ref().is_some_and(|why| why.brief))
        })
        .collect();
    piece.push(&rows);
}

fn of_machine<'a>(piece: &mut Packer<'a>, machine: &'a Machine) -> FactsRow {
    FactsRow {
        instance_type: piece.string(&machine.instance_type),
        zone: piece.string(&machine.zone),
        capacity_type: machine.capacity_type as u8,
        price: machine.price_usd_per_hour.into(),
        probability: machine.interruption_probability.into(),
    }
}

fn of_facts<'a>(piece: &mut Packer<'a>, facts: &'a MachineFacts) -> FactsRow {
    FactsRow {
        instance_type: piece.string(&facts.instance_type),
        zone: piece.string(&facts.zone),
        capacity_type: facts.capacity_type as u8,
        price: facts.price_usd_per_hour.into(),
        probability: facts.interruption_probability.into(),
    }
}

/// Reads them into the decisions of the same record, in its order.
pub(super) fn read(piece: &mut Unpacker<'_>, decided: &mut [Decided]) -> Result<(), CodecError> {
    if piece.version < 4 {
        return Ok(());
    }
    let rows: Vec<Row> = piece.take("facts")?;
    if rows.len() != decided.len() {
        let reason = format_args!("{} for {} decisions", rows.len(), decided.len()).to_string();
        return Err(CodecError::value("facts", reason));
    }
    for ((machine, next, brief), decided) in rows.into_iter().zip(decided) {
        decided.facts = machine.map(|row| facts(piece, &row)).transpose()?;
        decided.runner_up = next.map(|row| facts(piece, &row)).transpose()?;
        if let Some(why) = &mut decided.why {
            why.brief = brief;
        }
    }
    Ok(())
}

fn facts(piece: &Unpacker<'_>, row: &FactsRow) -> Result<MachineFacts, CodecError> {
    let number = i32::from(row.capacity_type);
    let capacity_type = CapacityType::from_wire(number)
        .ok_or_else(|| CodecError::value("capacity type", format_args!("number {number} is unknown")))?;
    let (price, probability) = (f64::from(row.price), f64::from(row.probability));
    if !(price.is_finite() && price >= 0.0 && (0.0..=1.0).contains(&probability)) {
        return Err(CodecError::value("facts", "a price is from zero up and a probability up to one"));
    }
    Ok(MachineFacts {
        instance_type: piece.text(row.instance_type)?.into(),
        zone: piece.text(row.zone)?.into(),
        capacity_type,
        price_usd_per_hour: price,
        interruption_probability: probability,
    })
}
