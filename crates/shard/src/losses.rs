//! The purchase rail's books: machines that clusters lost to listings that are hard to believe.
//!
//! A provider's word is adopted, whatever it says: a bound machine that is Failed, gone or somebody else's is lost supply
//! at once, and its cluster is told. But replacing costs money, and a listing that is wrong for half a minute must not spend
//! the quota. So where a cluster, or the whole fleet, loses more than a share of what it is bound to within a short time,
//! what it lost is written down here, and what would replace it is bought at a bounded pace until further full listings
//! agree, or the machines are back, or somebody who knows better lets go.
//!
//! This part knows machines, clusters and time. It decides nothing: [`crate::rails`] asks it, reconciling feeds it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bigfleet_engine::Demand;
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::ResourceVec;

use crate::config::{GuardConfig, RailConfig};
use crate::confirmation::{self, Confirmation};
use crate::event::ProviderId;
use crate::money::Bill;

/// A bound machine that was lost by its provider's word.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The need that counted on it; none if no need did.
    pub need: Option<NeedKey>,
    /// What that need lost with it.
    pub amount: ResourceVec,
    /// What it costs an hour.
    pub usd_per_hour: f64,
}

impl Loss {
    /// The loss of a machine that provides so much, and the need that claimed it last.
    pub(crate) fn of(claimed: Option<&Demand>, provides: &ResourceVec, usd_per_hour: f64) -> Self {
        let Some(demand) = claimed else {
            return Self { need: None, amount: ResourceVec::ZERO, usd_per_hour };
        };
        // A need misses of a machine what it asks for, and nothing else.
        let asked = provides.iter().filter(|(name, _)| demand.need.aggregate.get(name) > 0);
        let amount = ResourceVec::new(asked.map(|(name, amount)| (name.clone(), amount)));
        Self { need: Some(demand.need.key()), amount: amount.unwrap_or_default(), usd_per_hour }
    }
}

/// What one cluster lost by the word of one provider, while that is not believed.
#[derive(Clone, Debug)]
pub struct Account {
    /// Since when.
    pub since_unix_nanos: i64,
    /// How many full listings agree on it.
    pub confirmation: Option<Confirmation>,
    /// The machines.
    pub lost: BTreeMap<Box<str>, Loss>,
    /// How many they were at most: the pace does not slow down as they come back.
    pub most: usize,
    /// Those the last listing that counted showed as lost.
    agreed: BTreeSet<Box<str>>,
}

impl Account {
    fn open(now: i64) -> Self {
        Self {
            since_unix_nanos: now,
            confirmation: None,
            lost: BTreeMap::new(),
            most: 0,
            agreed: BTreeSet::new(),
        }
    }

    fn add(&mut self, id: Box<str>, loss: Loss) {
        self.lost.insert(id, loss);
        self.most = self.most.max(self.lost.len());
    }

    /// What the machines cost an hour.
    pub fn usd_per_hour(&self) -> f64 {
        self.lost.values().fold(0.0, |sum, loss| sum + loss.usd_per_hour)
    }
}

/// Losses of one cluster that are too few to be suspicious so far.
#[derive(Debug, Default)]
struct Recent {
    losses: VecDeque<(i64, ProviderId, Box<str>, Loss)>,
    usd_per_hour: f64,
}

impl Recent {
    fn bill(&self) -> (usize, f64) {
        (self.losses.len(), self.usd_per_hour)
    }

    fn forget_before(&mut self, since: i64) {
        let before = self.losses.len();
        while self.losses.pop_front_if(|(at, ..)| *at <= since).is_some() {}
        if self.losses.len() < before {
            self.usd_per_hour = self.losses.iter().map(|(.., loss)| loss.usd_per_hour).sum();
        }
    }
}

/// Whose account it is.
pub(crate) type Of = (Arc<str>, ProviderId);

/// All losses that are not believed.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    recent: BTreeMap<Arc<str>, Recent>,
    /// What is recent in all, and perhaps a little that no longer is.
    recent_bill: (usize, f64),
    accounts: BTreeMap<Of, Account>,
    /// When and how many replacements were bought for each cluster, within the window.
    bought: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
    /// Machines that were bought as replacements, and for which need.
    replacements: BTreeMap<Box<str>, NeedKey>,
}

/// What became of an account when a listing was held against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Enough listings agree that so many are gone.
    Believed(usize),
    /// Enough listings agree that all are back.
    Returned,
}

/// Whether a loss is more than this share of what there was.
fn is_suspicious(guard: &GuardConfig, lost: (usize, f64), left: Bill) -> bool {
    let machines = lost.0 + left.machines as usize;
    let usd = lost.1 + left.usd_per_hour();
    machines >= guard.supply_floor
        && (lost.0 as f64 > guard.supply_drop * machines as f64 || lost.1 > guard.supply_drop * usd)
}

impl Losses {
    /// Takes up what was written down in a life before.
    pub(crate) fn recall(
        losses: impl IntoIterator<Item = (Of, Box<str>, Loss)>,
        bought: BTreeMap<Arc<str>, Vec<(i64, u32)>>,
        now: i64,
    ) -> Self {
        let mut recalled = Self { bought, ..Self::default() };
        for (of, id, loss) in losses {
            recalled.accounts.entry(of).or_insert_with(|| Account::open(now)).add(id, loss);
        }
        recalled
    }

    /// Notes that a cluster lost a machine by its provider's word. `left` is what the cluster still has, `fleet` what all
    /// clusters have. The accounts that were opened, and the machines written down.
    pub(crate) fn note(
        &mut self,
        of: &Of,
        (id, loss): (Box<str>, Loss),
        (left, fleet): (Bill, Bill),
        (guard, rails): (&GuardConfig, &RailConfig),
        now: i64,
    ) -> Noted {
        self.replacements.remove(&id);
        if let Some(account) = self.accounts.get_mut(of) {
            account.add(id.clone(), loss);
            return Noted { opened: Vec::new(), written: vec![id] };
        }
        let since = now - rails.purchase_window;
        let cluster = of.0.clone();
        let recent = self.recent.entry(cluster.clone()).or_default();
        recent.forget_before(since);
        recent.usd_per_hour += loss.usd_per_hour;
        self.recent_bill = (self.recent_bill.0 + 1, self.recent_bill.1 + loss.usd_per_hour);
        recent.losses.push_back((now, of.1, id, loss));
        let mut suspects = Vec::new();
        if is_suspicious(guard, recent.bill(), left) {
            suspects.push(cluster);
        } else if is_suspicious(guard, self.recent_bill, fleet) {
            // Only now is it worth looking through them.
            self.count_recent(since);
            if is_suspicious(guard, self.recent_bill, fleet) {
                suspects.extend(self.recent.keys().cloned());
            }
        }
        let mut noted = Noted::default();
        for cluster in suspects {
            for (_, provider, id, loss) in self.recent.remove(&cluster).unwrap_or_default().losses {
                let of = (cluster.clone(), provider);
                let account = self.accounts.entry(of.clone()).or_insert_with(|| {
                    noted.opened.push(of.clone());
                    Account::open(now)
                });
                account.add(id.clone(), loss);
                noted.written.push(id);
            }
        }
        if !noted.written.is_empty() {
            self.count_recent(since);
        }
        noted
    }

    /// Forgets what is no longer recent, and adds up the rest.
    fn count_recent(&mut self, since: i64) {
        self.recent.retain(|_, recent| {
            recent.forget_before(since);
            !recent.losses.is_empty()
        });
        let bills = self.recent.values().map(Recent::bill);
        self.recent_bill = bills.fold((0, 0.0), |sum, bill| (sum.0 + bill.0, sum.1 + bill.1));
    }

    /// Whether something a provider said is not believed.
    pub(crate) fn doubts(&self, provider: ProviderId) -> bool {
        self.accounts.keys().any(|(_, of)| *of == provider)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    pub(crate) fn accounts(&self) -> &BTreeMap<Of, Account> {
        &self.accounts
    }

    /// Holds a full listing of a provider against what it said before. `is_back` says whether a cluster has a machine again
    /// as it was. Machines that were struck out, and accounts that are closed.
    pub(crate) fn compare(
        &mut self,
        provider: ProviderId,
        (guard, rails): (&GuardConfig, &RailConfig),
        now: i64,
        is_back: impl Fn(&str, &str, &Loss) -> bool,
    ) -> (Vec<Box<str>>, Vec<(Of, Verdict)>) {
        let (mut struck, mut closed) = (Vec::new(), Vec::new());
        for (of, account) in self.accounts.iter_mut().filter(|((_, said), _)| *said == provider) {
            let back = account.lost.extract_if(.., |id, loss| is_back(&of.0, id, loss));
            struck.extend(back.map(|(id, _)| id));
            let lost: BTreeSet<Box<str>> = account.lost.keys().cloned().collect();
            let agrees = confirmation::agree(&account.agreed, &lost, guard.supply_drop);
            let confirmed =
                Confirmation::after(account.confirmation.as_ref(), agrees, rails.purchase_window, now);
            if account.confirmation.is_none_or(|before| !agrees || confirmed.seen > before.seen) {
                account.agreed = lost;
            }
            account.confirmation = Some(confirmed);
            if confirmed.seen >= guard.confirmations {
                let verdict = match account.lost.len() {
                    0 => Verdict::Returned,
                    lost => Verdict::Believed(lost),
                };
                closed.push((of.clone(), verdict));
            }
        }
        for (of, _) in &closed {
            struck.extend(self.close(of));
        }
        (struck, closed)
    }

    /// Closes an account; the machines that were in it.
    pub(crate) fn close(&mut self, of: &Of) -> Vec<Box<str>> {
        let account = self.accounts.remove(of);
        if !self.accounts.keys().any(|(cluster, _)| *cluster == of.0) {
            self.replacements.retain(|_, need| need.cluster != of.0);
        }
        account.into_iter().flat_map(|account| account.lost.into_keys()).collect()
    }

    /// Clusters with an account.
    pub(crate) fn clusters(&self) -> BTreeSet<&Arc<str>> {
        self.accounts.keys().map(|(cluster, _)| cluster).collect()
    }

    /// What a cluster lost and nothing replaces yet, by the need that counted on it. `left` says how much of a loss is not
    /// back, `comes` how much a replacement will bring if it is still on its way or there.
    pub(crate) fn outstanding(
        &self,
        cluster: &str,
        left: impl Fn(&str, &Loss) -> ResourceVec,
        comes: impl Fn(&str) -> Option<ResourceVec>,
    ) -> BTreeMap<&NeedKey, ResourceVec> {
        let mut lost: BTreeMap<&NeedKey, ResourceVec> = BTreeMap::new();
        let accounts = self.accounts.iter().filter(|((of, _), _)| **of == *cluster);
        for (id, loss) in accounts.flat_map(|(_, account)| &account.lost) {
            if let Some(need) = &loss.need {
                let sum = lost.entry(need).or_default();
                *sum = sum.add(&left(id, loss));
            }
        }
        for (id, need) in self.replacements.iter().filter(|(_, need)| *need.cluster == *cluster) {
            if let (Some(sum), Some(brings)) = (lost.get_mut(need), comes(id)) {
                *sum = sum.saturating_sub(&brings);
            }
        }
        lost.retain(|_, amount| !amount.is_zero());
        lost
    }

    /// How many replacements may be bought for a cluster now.
    pub(crate) fn pace(&self, cluster: &str, rails: &RailConfig, now: i64) -> Pace {
        let accounts = self.accounts.iter().filter(|((of, _), _)| **of == *cluster);
        let lost: usize = accounts.map(|(_, account)| account.most).sum();
        let since = now - rails.purchase_window;
        let lately = self.bought.get(cluster).into_iter().flatten().filter(|(at, _)| *at > since);
        Pace {
            most: ((rails.purchase_fraction * lost as f64).floor() as u32).max(1),
            used: lately.clone().map(|(_, count)| count).sum(),
            frees_unix_nanos: lately.map(|(at, _)| at + rails.purchase_window).min(),
        }
    }

    /// Machines that were bought as replacements, and for which need.
    pub(crate) fn replacements(&self) -> &BTreeMap<Box<str>, NeedKey> {
        &self.replacements
    }

    /// Notes that replacements were bought. What is to be remembered of it.
    pub(crate) fn buy(
        &mut self,
        cluster: &Arc<str>,
        machines: Vec<(Box<str>, NeedKey)>,
        rails: &RailConfig,
        now: i64,
    ) -> Vec<(i64, u32)> {
        let bought = self.bought.entry(cluster.clone()).or_default();
        bought.retain(|(at, _)| *at > now - rails.purchase_window);
        bought.push((now, machines.len() as u32));
        let kept = bought.clone();
        self.replacements.extend(machines);
        kept
    }

    /// Forgets purchases that no longer slow anything down: those of clusters without an account whose window is over.
    pub(crate) fn forget_purchases(&mut self, rails: &RailConfig, now: i64) -> Vec<Arc<str>> {
        let since = now - rails.purchase_window;
        let accounts = &self.accounts;
        let over = |cluster: &Arc<str>, times: &[(i64, u32)]| {
            let open = accounts.keys().any(|(of, _)| of == cluster);
            !open && times.iter().all(|(at, _)| *at <= since)
        };
        let gone: Vec<Arc<str>> = self
            .bought
            .iter()
            .filter(|(name, times)| over(name, times))
            .map(|(name, _)| name.clone())
            .collect();
        for name in &gone {
            self.bought.remove(name);
        }
        gone
    }
}

/// What came of noting a loss.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    /// Accounts that were opened.
    pub(crate) opened: Vec<Of>,
    /// Machines that were written down.
    pub(crate) written: Vec<Box<str>>,
}

/// How many replacements a cluster may buy within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How many.
    pub most: u32,
    /// How many it bought within the window that ends now.
    pub used: u32,
    /// When the first of those leaves the window.
    pub frees_unix_nanos: Option<i64>,
}
