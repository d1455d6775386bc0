//! Bugs on purpose, in our own logic, to test the tester.
//!
//! The simulator must find each of them by the invariant meant for it. They exist only in builds with the feature `planted`,
//! which nothing but tests asks for: without it [`Config::has`] is the constant `false`, and the compiler leaves them out.

use crate::config::Config;

/// A bug in the shard's own logic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// What is on order is not written down, and bought again after a restart.
    OnOrderForgotten,
    /// A machine too long in transition still counts as supply.
    OverdueCounted,
    /// A listing that was begun before an answer undoes it.
    OlderListingAdopted,
    /// Idle machines are given back after half their hold.
    IdleHoldHalved,
    /// A drain that was announced to its cluster is not written down.
    DrainForgotten,
    /// A pause is not written down.
    PauseForgotten,
    /// A cluster counts as heard although it has not reported in this life.
    GateOpen,
    /// A machine that is Failed when it is met is not taken in.
    FailedUnmet,
    /// A machine that no longer counts is still on the record.
    RemovalUnrecorded,
    /// Whoever waits in line is called, however many calls are under way.
    PlacesUnbounded,
    /// A machine that drains is not taken off the bill.
    BillLeaks,
    /// A listing that loses most machines is believed at once.
    ListingGuardOff,
    /// Suspicious listings confirm one another whatever they miss.
    ListsUncompared,
    /// Machines lost to a suspicious listing are replaced at once.
    PurchaseRailOff,
    /// "Not found" in answer to a move is taken for a loss.
    DeniedIsLost,
    /// A drain begins when half of its grace is over.
    GraceHalved,
    /// A refused roll-up is accepted when it is repeated.
    RefusedRepeated,
    /// A listing is never too old to take things away by.
    StaleTaken,
    /// Calls to providers carry the same number again and again.
    SequenceStands,
    /// Recent reclaims are not written down.
    ReclaimsForgotten,
    /// A held roll-up replaces the demand all the same.
    HeldTaken,
    /// A cluster is not told that a machine failed.
    FailureUntold,
    /// A flight that ends keeps its place on the books.
    PlaceKept,
    /// A provider whose listing failed is not listed again.
    ListTimerLost,
    /// Since when a machine idles is forgotten when binding it comes to nothing.
    IdleSinceLost,
    /// An order that is undone is a case nobody thought of.
    PanicsOnUndoing,
    /// A parked gang acts when it only may look.
    ParkedActs,
    /// Whatever was proposed counts as approved.
    ProposalsApproved,
    /// An order about a mode is not written down.
    ModeForgotten,
    /// A domain is let go of while something is under way in it.
    LetGoAmid,
    /// Instructions of a coordinator that was deposed are carried out.
    TermIgnored,
    /// Machines are given away although a need that is as important is short.
    GivesWhileShort,
    /// Slots beyond a quota are shown.
    QuotaForgotten,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::OnOrderForgotten,
        Self::OverdueCounted,
        Self::OlderListingAdopted,
        Self::IdleHoldHalved,
        Self::DrainForgotten,
        Self::PauseForgotten,
        Self::GateOpen,
        Self::FailedUnmet,
        Self::RemovalUnrecorded,
        Self::PlacesUnbounded,
        Self::BillLeaks,
        Self::ListingGuardOff,
        Self::ListsUncompared,
        Self::PurchaseRailOff,
        Self::DeniedIsLost,
        Self::GraceHalved,
        Self::RefusedRepeated,
        Self::StaleTaken,
        Self::SequenceStands,
        Self::ReclaimsForgotten,
        Self::HeldTaken,
        Self::FailureUntold,
        Self::PlaceKept,
        Self::ListTimerLost,
        Self::IdleSinceLost,
        Self::PanicsOnUndoing,
        Self::ParkedActs,
        Self::ProposalsApproved,
        Self::ModeForgotten,
    ];
}

impl Config {
    /// Whether a bug was planted.
    pub(crate) fn has(&self, bug: Bug) -> bool {
        cfg!(feature = "planted") && self.planted == Some(bug)
    }
}
