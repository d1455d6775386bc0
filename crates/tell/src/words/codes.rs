//! The enumerations of the view in words. A number nobody knows is from a newer server, and is shown as that number.

use bigfleet_proto::v1alpha1::{CapacityType, MachineState};
use bigfleet_view::v1::{ActionKind, Fate, Reason};

fn unknown(number: i32) -> String {
    format!("code-{number}")
}

/// `Configured`.
pub fn state(number: i32) -> String {
    let name = match MachineState::try_from(number) {
        Ok(MachineState::Unspecified) => "-",
        Ok(MachineState::Speculative) => "Speculative",
        Ok(MachineState::Creating) => "Creating",
        Ok(MachineState::Idle) => "Idle",
        Ok(MachineState::Configuring) => "Configuring",
        Ok(MachineState::Configured) => "Configured",
        Ok(MachineState::Draining) => "Draining",
        Ok(MachineState::Deleting) => "Deleting",
        Ok(MachineState::Failed) => "Failed",
        Err(_) => return unknown(number),
    };
    name.into()
}

/// `on-demand`.
pub fn capacity_type(number: i32) -> String {
    let name = match CapacityType::try_from(number) {
        Ok(CapacityType::Unspecified) => "-",
        Ok(CapacityType::BareMetal) => "bare-metal",
        Ok(CapacityType::Reserved) => "reserved",
        Ok(CapacityType::OnDemand) => "on-demand",
        Ok(CapacityType::Spot) => "spot",
        Err(_) => return unknown(number),
    };
    name.into()
}

/// `Reclaim`.
pub fn kind(number: i32) -> String {
    let name = match ActionKind::try_from(number) {
        Ok(ActionKind::Unspecified) => "-",
        Ok(ActionKind::Bootstrap) => "Bootstrap",
        Ok(ActionKind::Provision) => "Provision",
        Ok(ActionKind::Preempt) => "Preempt",
        Ok(ActionKind::Reclaim) => "Reclaim",
        Ok(ActionKind::Delete) => "Delete",
        Err(_) => return unknown(number),
    };
    name.into()
}

/// What such an action did to a machine, in the word of its kind: `provisioned`.
pub fn kind_done(number: i32) -> String {
    let name = match ActionKind::try_from(number) {
        Ok(ActionKind::Bootstrap) => "bootstrapped",
        Ok(ActionKind::Provision) => "provisioned",
        Ok(ActionKind::Preempt) => "preempted",
        Ok(ActionKind::Reclaim) => "reclaimed",
        Ok(ActionKind::Delete) => "deleted",
        Ok(ActionKind::Unspecified) => "moved",
        Err(_) => return unknown(number),
    };
    name.into()
}

/// What became of an action, or would.
pub fn fate(number: i32) -> String {
    let name = match Fate::try_from(number) {
        Ok(Fate::Unspecified) => "-",
        Ok(Fate::Begun) => "begun",
        Ok(Fate::Paused) => "paused",
        Ok(Fate::DryRun) => "dry run",
        Ok(Fate::Capped) => "capped",
        Ok(Fate::OverBound) => "over bound",
        Ok(Fate::NoPlace) => "no place",
        Ok(Fate::StaleInventory) => "stale inventory",
        Ok(Fate::OperatorBackoff) => "operator backoff",
        Ok(Fate::Busy) => "busy",
        Ok(Fate::Regretted) => "regretted",
        Ok(Fate::TakenBack) => "taken back",
        Ok(Fate::LossUnconfirmed) => "loss unconfirmed",
        Ok(Fate::OnlyLooks) => "only looks",
        Ok(Fate::Observed) => "observed",
        Ok(Fate::AwaitsApproval) => "awaits approval",
        Err(_) => return unknown(number),
    };
    name.into()
}

/// Why a need is short; empty if it is not.
pub fn reason(number: i32) -> String {
    let name = match Reason::try_from(number) {
        Ok(Reason::Unspecified) => "",
        Ok(Reason::Parked) => "parked",
        Ok(Reason::InFlight) => "on its way",
        Ok(Reason::NoMatchingSupply) => "no matching supply",
        Ok(Reason::TopologyUnsatisfiable) => "no domain fits",
        Ok(Reason::PreemptionExhausted) => "preemption exhausted",
        Ok(Reason::PriorityStarved) => "priority too low",
        Err(_) => return unknown(number),
    };
    name.into()
}
