//! Phase 1: one walk. What needs keep is settled, then they take their turns in precedence order.

use bigfleet_model::machine::MachineState;
use bigfleet_scenario::answer::Amounts;

use crate::amounts::{contributes, less};
use crate::bargain;
use crate::cycle::Cycle;
use crate::domain;
use crate::matching::strict_spread;
use crate::order;
use crate::pick::{trimmed, until_covered};
use crate::spread::Tally;

/// Lets every need credit, acquire and take over.
pub(crate) fn walk(cycle: &mut Cycle<'_>) {
    let turns = cycle.turns();
    for pair in turns.windows(2) {
        let decided = order::precedence(&cycle.rows[pair[0]], &cycle.rows[pair[1]]).0;
        cycle.met.note(format_args!("precedence order: {decided}"));
    }
    for need in &turns {
        for machine in keeps(cycle, *need) {
            cycle.kept_by[machine] = Some(*need);
        }
    }
    for need in turns {
        if cycle.rows[need].same_key().is_some() {
            cycle.rows[need].domain = domain::choose(cycle, need);
        }
        credit(cycle, need);
        gain(cycle, need);
        for keeper in &mut cycle.kept_by {
            if *keeper == Some(need) {
                *keeper = None;
            }
        }
    }
}

/// What a need keeps of its own bound machines that no need before it keeps: as much as it would be credited
/// with. A gang keeps all.
fn keeps(cycle: &Cycle<'_>, need: usize) -> Vec<usize> {
    let is_open = |machine: &usize| cycle.is_own(*machine, need) && cycle.kept_by[*machine].is_none();
    let own: Vec<usize> = cycle.bound(need).into_iter().filter(is_open).collect();
    let kept = if cycle.rows[need].same_key().is_some() {
        cycle.met.note_if(own.len() > 1, "keep: a gang keeps all");
        own
    } else {
        let kept = served_by(cycle, need, &own, "keep");
        cycle.met.note_if(kept.len() < own.len(), "keep: surplus is free");
        kept
    };
    for machine in &kept {
        let (row, machine) = (&cycle.rows[need], &cycle.machines[*machine]);
        cycle.met.note(format_args!("keep: {}", machine.state));
        let by_member = row.is_folded() && *machine.assigned.fingerprint != *row.need.profile.fingerprint();
        cycle.met.note_if(by_member, "keep: by the stamp of a folded gang");
    }
    kept
}

/// Step 1: its own bound machines, whoever keeps them; then bound machines that no need keeps.
fn credit(cycle: &mut Cycle<'_>, need: usize) {
    let within_reach =
        |machine: &usize| cycle.is_unclaimed(*machine) && cycle.in_chosen_domain(*machine, need);
    let bound: Vec<usize> = cycle.bound(need).into_iter().filter(within_reach).collect();
    let (own, others): (Vec<usize>, Vec<usize>) = bound.into_iter().partition(|m| cycle.is_own(*m, need));
    let unkept = others.into_iter().filter(|machine| cycle.kept_by[*machine].is_none());
    let list: Vec<usize> = own.into_iter().chain(unkept).collect();
    let picks = served_by(cycle, need, &list, "credit");
    for machine in &picks {
        let whose = match (cycle.is_own(*machine, need), cycle.kept_by[*machine]) {
            (true, Some(keeper)) if keeper != need => "own, kept by another",
            (true, Some(_)) => "own, kept",
            (true, None) => "own, not kept",
            (false, _) => "nobody keeps it",
        };
        cycle.met.note(format_args!("credit: {whose}, {}", cycle.machines[*machine].state));
    }
    cycle.claim(&picks, need);
    cycle.rows[need].credited = picks;
}

/// What serves the whole demand of a need from a list of bound machines: trimmed if all of it is Configured
/// and no strict spread asks for evenness.
fn served_by(cycle: &Cycle<'_>, need: usize, list: &[usize], step: &str) -> Vec<usize> {
    let row = &cycle.rows[need];
    let picks = until_covered(cycle, list, &row.aggregate);
    let all_stand = picks.iter().all(|m| cycle.machines[*m].state == MachineState::Configured);
    let is_strict = strict_spread(&row.need.profile).is_some();
    let necessary = trimmed(cycle, picks.clone(), &row.aggregate);
    if necessary.len() < picks.len() {
        let fate = match (is_strict, all_stand) {
            (true, _) => "spared by the spread",
            (false, false) => "spared while part is coming",
            (false, true) => "given back",
        };
        cycle.met.note(format_args!("{step}: superfluous, {fate}"));
    }
    if all_stand && !is_strict { necessary } else { picks }
}

/// Steps 2 and 3: acquire the first free machine in bargain order as long as one helps and may be taken; when
/// none does, take over the first bound machine that a need after it keeps. A machine taken over may let a
/// free one in under a strict spread, so both are asked for every pick.
fn gain(cycle: &mut Cycle<'_>, need: usize) {
    if cycle.rows[need].missing.is_empty() {
        return;
    }
    let here = |machine: &usize| cycle.in_chosen_domain(*machine, need);
    let free: Vec<usize> = cycle.free(need).into_iter().filter(here).collect();
    let acquirable = if cycle.rows[need].need.parked { Vec::new() } else { free.clone() };
    let is_kept = |machine: &usize| cycle.is_unclaimed(*machine) && cycle.kept_by[*machine].is_some();
    let kept: Vec<usize> = cycle.bound(need).into_iter().filter(is_kept).filter(here).collect();

    let row = &cycle.rows[need];
    let mut tally = strict_spread(&row.need.profile).map(|strict| {
        let counted = row.held().chain(cycle.draining_for(need));
        Tally::new(cycle, strict, counted, free.iter().chain(&kept).copied())
    });
    let is_strict = tally.is_some();
    let mut missing: Amounts = row.missing.clone();
    let mut picks: Vec<usize> = Vec::new();
    loop {
        let may_take = |machine: &usize| {
            !picks.contains(machine)
                && contributes(&cycle.provides[*machine], &missing)
                && tally.as_ref().is_none_or(|tally| tally.admits(cycle, *machine))
        };
        let open: Vec<usize> = acquirable.iter().copied().filter(may_take).collect();
        let next =
            bargain::first(cycle, need, &open, &missing).or_else(|| kept.iter().copied().find(may_take));
        let Some(machine) = next else { break };
        note_gain(cycle, need, &picks, machine);
        missing = less(&missing, &cycle.provides[machine]);
        picks.push(machine);
        if let Some(tally) = &mut tally {
            tally.take(cycle, machine);
        }
    }
    let refused = acquirable
        .iter()
        .chain(&kept)
        .any(|machine| !picks.contains(machine) && contributes(&cycle.provides[*machine], &missing));
    cycle.met.note_if(refused, "spread: keeps a machine out");
    let necessary = trimmed(cycle, picks.clone(), &row.missing);
    for machine in picks.iter().filter(|machine| !necessary.contains(machine)) {
        let fate = if is_strict { "spared by the spread" } else { "given back" };
        let state = cycle.machines[*machine].state;
        cycle.met.note(format_args!("gain: superfluous, {fate}, {state}"));
    }
    let picks = if is_strict { picks } else { necessary };
    cycle.claim(&picks, need);
    cycle.rows[need].gained = picks;
    cycle.rows[need].free_at_turn = free;
}

/// Notes what kind of pick this is.
fn note_gain(cycle: &Cycle<'_>, need: usize, before: &[usize], machine: usize) {
    use MachineState::{Idle, Speculative};
    let is_free = |machine: usize| matches!(cycle.machines[machine].state, Idle | Speculative);
    let row = &cycle.rows[need];
    let who = match (row.same_key().is_some(), strict_spread(&row.need.profile).is_some()) {
        (true, _) if row.need.parked => "a parked gang",
        (true, _) => "a gang",
        (false, true) => "a spread",
        (false, false) if row.is_folded() => "a folded need",
        (false, false) => "a plain need",
    };
    let step = if is_free(machine) { "acquire" } else { "take over" };
    cycle.met.note(format_args!("{step}: {}, {who}", cycle.machines[machine].state));
    let after_taking_over = before.last().is_some_and(|last| !is_free(*last));
    cycle.met.note_if(is_free(machine) && after_taking_over, "acquire: let in by what was taken over");
    let after_acquiring = before.last().is_some_and(|last| is_free(*last));
    cycle.met.note_if(!is_free(machine) && after_acquiring, "take over: what acquiring left missing");
    let beside = who == "a spread" && !cycle.draining_for(need).is_empty();
    cycle.met.note_if(beside, "spread: beside what drains for it");
}
