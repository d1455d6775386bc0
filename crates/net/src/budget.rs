//! How many bytes of messages may be in flight: of a connection, of an identity, of everybody.

use std::sync::{Arc, Mutex, MutexGuard};

use thiserror::Error;
use tonic::Status;

use crate::connection::{Cut, Peer};
use crate::identity::Role;

/// How many bytes of unfinished and unread messages may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Of one connection.
    pub connection_bytes: usize,
    /// Of one identity, over all its connections. Callers without a certificate have none.
    pub identity_bytes: usize,
    /// Of everybody.
    pub all_bytes: usize,
}

impl Default for InFlight {
    /// Room for the largest roll-up of a few clusters at once, and for a million ordinary rows.
    fn default() -> Self {
        Self { connection_bytes: 96 << 20, identity_bytes: 128 << 20, all_bytes: 512 << 20 }
    }
}

impl InFlight {
    /// A call that holds no more than this is served although large ones have taken their share: a quarter is kept for such.
    pub(crate) fn small_bytes(self) -> usize {
        self.all_bytes / 512
    }
}

/// More than may be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{whose} may have {most} bytes of messages in flight; send less at once, or try again later")]
pub struct OverBudget {
    whose: &'static str,
    most: usize,
}

impl From<OverBudget> for Status {
    fn from(over: OverBudget) -> Self {
        Self::resource_exhausted(over.to_string())
    }
}

/// Counts bytes in flight.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    most: InFlight,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Only those that hold something.
    identities: std::collections::BTreeMap<Role, usize>,
}

impl Budget {
    /// One that allows this much.
    pub fn new(most: InFlight) -> Self {
        Self(Arc::new(Counts { most, taken: Mutex::default() }))
    }

    /// How many bytes are in flight.
    pub fn in_flight(&self) -> usize {
        self.taken().all
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.0.taken.lock().expect("no holder panics")
    }
}

/// The budget as one caller sees it: found among a request's extensions.
#[derive(Clone, Debug)]
pub struct Purse {
    budget: Budget,
    role: Option<Role>,
    /// Knows what its connection holds.
    connection: Cut,
}

impl Purse {
    pub(crate) fn new(budget: &Budget, peer: Option<&Peer>) -> Self {
        let role = peer.and_then(|peer| peer.role.clone()).and_then(Result::ok);
        let connection = peer.map(|peer| peer.cut.clone()).unwrap_or_default();
        Self { budget: budget.clone(), role, connection }
    }

    /// A lease on nothing yet.
    pub fn lease(&self) -> Lease {
        Lease { purse: self.clone(), bytes: 0 }
    }
}

/// So many bytes of the budget, given back when it is dropped.
#[derive(Debug)]
pub struct Lease {
    purse: Purse,
    bytes: usize,
}

impl Lease {
    /// Takes more.
    pub fn grow(&mut self, bytes: usize) -> Result<(), OverBudget> {
        let Purse { budget, role, connection } = &self.purse;
        let most = budget.0.most;
        let mut taken = budget.taken();
        let mut connection = connection.state();
        let of_role = role.as_ref().map_or(0, |role| taken.identities.get(role).copied().unwrap_or(0));
        let is_small = self.bytes + bytes <= most.small_bytes();
        let all = if is_small { most.all_bytes } else { most.all_bytes / 4 * 3 };
        for (whose, held, most) in [
            ("a connection", connection.in_flight, most.connection_bytes),
            ("an identity", of_role, most.identity_bytes),
            ("all callers together", taken.all, all),
        ] {
            if held.saturating_add(bytes) > most {
                return Err(OverBudget { whose, most });
            }
        }
        if let Some(role) = role {
            *taken.identities.entry(role.clone()).or_default() += bytes;
        }
        connection.in_flight += bytes;
        taken.all += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives some back.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        let mut taken = self.purse.budget.taken();
        taken.all -= bytes;
        self.purse.connection.state().in_flight -= bytes;
        if let Some(role) = &self.purse.role
            && let Some(held) = taken.identities.get_mut(role)
        {
            *held -= bytes;
            if *held == 0 {
                taken.identities.remove(role);
            }
        }
        self.bytes -= bytes;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: InFlight = InFlight { connection_bytes: 3000, identity_bytes: 2500, all_bytes: 4096 };

    #[test]
    fn large_callers_leave_room_for_small_ones() {
        let budget = Budget::new(MOST);
        let purse = |role: Option<Role>| Purse { budget: budget.clone(), role, connection: Cut::default() };
        let shop = purse(Some(Role::Cluster("shop".into())));
        let mut lease = shop.lease();
        lease.grow(2500).unwrap();
        let again = Purse { connection: Cut::default(), ..shop.clone() };
        assert_eq!(again.lease().grow(1).unwrap_err().whose, "an identity");
        let mut other = purse(None).lease();
        other.grow(500).unwrap();
        assert_eq!(
            purse(None).lease().grow(600).unwrap_err(),
            OverBudget { whose: "all callers together", most: 3072 }
        );
        let mut small = purse(None).lease();
        small.grow(MOST.small_bytes()).unwrap();
        assert!(small.grow(600).is_err());
        drop(lease);
        assert_eq!(budget.in_flight(), 500 + MOST.small_bytes());
        again.lease().grow(2500).unwrap();
        assert!(budget.taken().identities.is_empty());
    }
}
