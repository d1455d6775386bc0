//! Renewing the credit of some needs of a cluster.
//!
//! A need that what it keeps covers takes nothing else, and what it keeps nobody can take from it. So a change reaches other
//! needs of the cluster through what is [loose](super::loose) alone. Where machines of plain needs came or went, or such needs
//! ask for more or less, those needs settle anew what they keep; then the turns are gone through once more, and a need is
//! credited again if it changed, if another one now claims what it claimed, or if it looks at what is loose and something that
//! counts for it is there now and was not, or the other way round. Where more may depend on what changed (gangs, the folding of
//! gangs, other clusters), the whole cluster is walked.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::amounts::is_zero;
use crate::bits::Bits;
use crate::holdings::{DRAINING, Held, Supply};
use crate::intern::NONE;
use crate::needs::{Demand, NeedsTable};
use crate::vocab::Amounts;

use super::cache::{Basis, Cache, Plan};
use super::claimants::Claimants;
use super::credit::{Borrower, Credit};
use super::loose::{Loose, put};
use super::pick::{Keeps, keep, pick, trim_credit};
use super::sources::Sources;

/// Whether so many of a cluster's needs changed that walking all of it is less work.
fn is_most(changed: usize, all: usize) -> bool {
    const FEW: usize = 4;
    changed > FEW && 2 * changed > all
}

/// Whose the machines of each identity of a cluster are, and whether their coming and going concerns plain needs alone.
#[derive(Clone)]
pub(super) struct Owners {
    by_key: Box<[Owner]>,
    /// By row, its turn.
    turn_of: Box<[u32]>,
}

#[derive(Clone, Copy)]
struct Owner {
    key: u32,
    row: u32,
    plain: bool,
}

impl Owners {
    fn new(credit: &Credit) -> Self {
        let mut turn_of = vec![0; credit.rows.len()].into_boxed_slice();
        let mut owners: Vec<Owner> = Vec::new();
        for (turn, row) in (0..).zip(credit.turns.iter().copied()) {
            turn_of[row as usize] = turn;
            let demand = &credit.rows[row as usize];
            owners.push(Owner { key: demand.key, row, plain: demand.same.is_none() });
            // Machines of a gang's own decide whether it is folded at all.
            owners.extend(demand.members.iter().map(|key| Owner { key: *key, row, plain: false }));
        }
        owners.sort_unstable_by_key(|owner| (owner.key, owner.plain));
        owners.dedup_by_key(|owner| owner.key);
        Self { by_key: owners.into(), turn_of }
    }

    /// Whose machines of an identity are, if of anybody's.
    fn of(&self, key: u32) -> Option<Owner> {
        self.by_key.binary_search_by_key(&key, |owner| owner.key).ok().map(|at| self.by_key[at])
    }
}

/// A machine a need may be credited with.
#[derive(Clone, Copy)]
struct Candidate {
    machine: u32,
    class: u32,
    configured: bool,
    /// Of its own machines, the place in the supply; else [`NONE`].
    place: u32,
    /// Its place among what is loose, or [`NONE`].
    loose: u32,
}

/// Some machines in the order a need looks at them.
type Machines = SmallVec<[Candidate; 16]>;

/// Room for what needs keep and pick, used again for the next.
#[derive(Default)]
pub(super) struct Picks {
    /// The turns to be taken again, whatever became of what is loose.
    due: Bits,
    kept: Vec<Candidate>,
    picked: Vec<Candidate>,
}

/// A cluster whose credit is being renewed.
struct Renewal<'a> {
    sources: Sources<'a>,
    supply: &'a Supply,
    owners: &'a Owners,
    rows: Arc<[Arc<Demand>]>,
    credit: &'a mut Credit,
    differing: Differing,
    picks: &'a mut Picks,
}

/// What is loose in other turns than before.
#[derive(Default)]
struct Differing {
    classes: SmallVec<[u32; 8]>,
    shape_bits: u64,
}

impl Differing {
    fn note(&mut self, class: u32, sources: Sources<'_>) {
        if !self.classes.contains(&class) {
            self.classes.push(class);
            self.shape_bits |= sources.classes.shape_bit(class);
        }
    }
}

impl Cache {
    /// Reads what renewing some clusters begins with, all together, for the reason that [`touch_all`](crate::needs::touch_all) has.
    pub(super) fn touch(&self, clusters: &[u32], sources: Sources<'_>, needs: &NeedsTable) {
        const LINE: usize = 64;
        let holdings = &sources.index.holdings;
        let plans = || {
            clusters.iter().filter_map(|cluster| Some((*cluster, self.plans[*cluster as usize].as_ref()?)))
        };
        let heads = plans().fold(0, |all, (cluster, plan)| {
            let reported = needs.cluster(cluster).map_or(0, |demand| demand.folds.len());
            all ^ plan.credit.loose.len() ^ holdings.supply(cluster).all().len() ^ reported
        });
        let bodies = plans().fold(0, |all, (cluster, plan)| {
            let held = holdings.supply(cluster).all().iter().step_by(LINE / size_of::<Held>());
            let loose = plan.credit.loose.iter().step_by(LINE / size_of::<Loose>());
            let rows = plan.credit.rows.iter().step_by(LINE / size_of::<usize>());
            all ^ held.fold(0, |all, held| all ^ held.machine as usize)
                ^ loose.fold(0, |all, one| all ^ one.machine as usize)
                ^ rows.fold(0, |all, row| all ^ Arc::as_ptr(row) as usize)
                ^ plan.owners.as_ref().map_or(0, |owners| owners.turn_of.len() ^ owners.by_key.len())
        });
        std::hint::black_box(heads ^ bodies);
    }

    /// Renews the credit of the needs of a cluster that changed or whose own machines came or went, and of those that feel it,
    /// and lists them. False if more may depend on what changed.
    pub(super) fn renew(
        &mut self,
        cluster: u32,
        sources: Sources<'_>,
        needs: &NeedsTable,
        picks: &mut Picks,
        done: &mut Vec<(u32, u32)>,
    ) -> bool {
        let holdings = &sources.index.holdings;
        let Some(plan) = &self.plans[cluster as usize] else { return false };
        let (basis, version) = (self.bases[cluster as usize], needs.version(cluster));
        if self.kinds.shared.contains(cluster)
            || basis.generation != sources.index.generation
            || plan.credit.sharing
        {
            return false;
        }
        let Some(touched) = holdings.touched_since(cluster, basis.supply) else { return false };
        let Some(demand) = needs.cluster(cluster) else { return false };
        let same_folds = || self.fits_free(demand).eq(plan.fits_free.iter().copied());
        let folds_hold = (basis.folds, basis.demand) == (self.folds.revision, version) || same_folds();
        if !folds_hold || !touched.is_empty() && demand.folds.iter().any(|fold| self.folds.asks_supply(*fold))
        {
            return false;
        }
        let following = self.claimants.is_active().then_some(&mut self.claimants);
        let plan = self.plans[cluster as usize].as_mut().expect("it was just there");
        let mut changed = SmallVec::new();
        if basis.demand != version {
            let Some(followed) = plan.follow_demand(&demand.rows) else { return false };
            self.bases[cluster as usize].demand = version;
            changed = followed;
        }
        let owners = plan.owners.get_or_insert_with(|| Owners::new(&plan.credit));
        let mut stale = Stale::default();
        for (_, key) in touched {
            match owners.of(*key) {
                _ if *key == DRAINING => return false,
                None => stale.keys.push(*key),
                Some(owner) if owner.plain => stale.note(owner.row),
                Some(_) => return false,
            }
        }
        changed.iter().for_each(|row| stale.note(*row));
        if is_most(stale.rows.len(), owners.turn_of.len()) {
            return false;
        }

        let supply = holdings.supply(cluster);
        let credit: &mut Credit = Arc::make_mut(&mut plan.credit);
        picks.due.reset(credit.turns.len());
        let differing = Differing::default();
        let rows = credit.rows.clone();
        let mut renewal = Renewal { sources, supply, owners, rows, credit, differing, picks };
        renewal.restock(&stale);
        let before = done.len();
        if !renewal.take_turns(cluster, following, done) {
            done.truncate(before);
            return false;
        }
        credit.list_excess();
        self.kinds.note(cluster, credit);
        let (supply, folds) = (holdings.version(cluster), self.folds.revision);
        self.bases[cluster as usize] = Basis { demand: version, supply, folds, ..basis };
        true
    }
}

impl Plan {
    /// Puts changed rows in the place of those they replace, and lists them. `None` if more changed than what plain needs ask for.
    fn follow_demand(&mut self, reported: &Arc<[Arc<Demand>]>) -> Option<SmallVec<[u32; 4]>> {
        let mut changed = SmallVec::new();
        if self.reported.len() != reported.len() {
            return None;
        }
        let differing = || self.reported.iter().zip(&**reported).filter(|(old, new)| !Arc::ptr_eq(old, new));
        let is_alike = |(old, new): (&Arc<Demand>, &Arc<Demand>)| {
            let first_seen = |demand: &Demand| demand.need.first_seen_unix_nanos;
            old.key == new.key && new.same.is_none() && first_seen(old) == first_seen(new)
        };
        if is_most(differing().count(), reported.len()) || !differing().all(is_alike) {
            return None;
        }
        let mut rows = self.normal.rows.to_vec();
        for (old, new) in differing() {
            let row = rows.iter().position(|row| Arc::ptr_eq(row, old)).expect("a plain need is a row");
            rows[row] = new.clone();
            changed.push(row as u32);
        }
        self.normal.rows = rows.into();
        Arc::make_mut(&mut self.credit).rows = self.normal.rows.clone();
        self.reported = reported.clone();
        Some(changed)
    }
}

/// Whose machines came or went: identities without an owner, and needs.
#[derive(Default)]
struct Stale {
    keys: SmallVec<[u32; 4]>,
    rows: SmallVec<[u32; 8]>,
}

impl Stale {
    fn note(&mut self, row: u32) {
        if !self.rows.contains(&row) {
            self.rows.push(row);
        }
    }

    fn has(&self, one: &Loose) -> bool {
        if one.owner == NONE { self.keys.contains(&one.key) } else { self.rows.contains(&one.owner) }
    }
}

impl Renewal<'_> {
    /// A need's own machines.
    fn own_of(&self, demand: &Demand) -> Machines {
        let (configured, held) = (self.supply.configured(), self.supply.all());
        let mut own = Machines::new();
        for key in demand.own_keys() {
            self.supply.each_of(key, |place| {
                let Held { machine, kind, .. } = held[place as usize];
                let class = self.sources.classes.of_kind(kind);
                own.push(Candidate { machine, class, configured: place < configured, place, loose: NONE });
            });
        }
        if !demand.members.is_empty() {
            own.sort_unstable_by_key(|one| one.place);
        }
        own
    }

    /// Finds out what a need keeps of its own machines.
    fn keep(&mut self, own: &[Candidate], demand: &Demand) -> Keeps {
        let kept = &mut self.picks.kept;
        kept.clear();
        keep(own.iter().copied(), |one| one.class, |one| one.configured, demand, self.sources, kept)
    }

    /// Settles anew what stale needs keep.
    fn restock(&mut self, stale: &Stale) {
        let Self { credit, differing, .. } = self;
        let due = &mut self.picks.due;
        credit.loose.retain(|one| {
            let stays = !stale.has(one);
            if !stays {
                leave(one, due, differing, self.sources);
            }
            stays
        });
        let bound = self.supply.bound();
        let mut new: SmallVec<[(u32, Loose); 8]> = SmallVec::new();
        for row in stale.rows.iter().copied() {
            let demand = self.rows[row as usize].clone();
            let own = self.own_of(&demand);
            let keeps = self.keep(&own, &demand);
            let turn = self.owners.turn_of[row as usize];
            self.picks.due.insert(turn);
            self.credit.trimming.set(turn, keeps.trimmed);
            let unkept = own.iter().filter(|one| one.place < bound && !one.is_among(&self.picks.kept));
            new.extend(unkept.map(|one| (one.place, one.as_loose(demand.key, row, 0))));
        }
        if !stale.keys.is_empty() {
            let held = (0..bound).zip(self.supply.all());
            let nobodys = held.filter(|(_, held)| stale.keys.contains(&held.key)).map(|(place, held)| {
                let (machine, class) = (held.machine, self.sources.classes.of_kind(held.kind));
                let configured = place < self.supply.configured();
                (
                    place,
                    Loose {
                        machine,
                        class,
                        key: held.key,
                        owner: NONE,
                        from: 0,
                        claimed_in: NONE,
                        configured,
                    },
                )
            });
            new.extend(nobodys);
        }
        self.enter(new);
    }

    /// Takes in what has become loose.
    fn enter(&mut self, mut new: SmallVec<[(u32, Loose); 8]>) {
        if !new.is_empty() {
            new.sort_unstable_by_key(|(place, _)| *place);
            new.iter().for_each(|(_, one)| self.differing.note(one.class, self.sources));
            put(&mut self.credit.loose, &new, self.supply.all());
        }
    }

    /// Goes through all turns and takes those again that may come to something else. False if one of them depends on more than
    /// the cluster.
    fn take_turns(
        &mut self,
        cluster: u32,
        mut following: Option<&mut Claimants>,
        done: &mut Vec<(u32, u32)>,
    ) -> bool {
        let (rows, turns) = (self.rows.clone(), self.credit.turns.clone());
        for (turn, row) in (0..).zip(turns.iter().copied()) {
            let demand = &*rows[row as usize];
            if !self.picks.due.contains(turn) && !self.feels(turn, demand) {
                continue;
            }
            let (claims, missing) = self.take_turn(turn, row, demand);
            if !is_zero(&missing) && demand.spread.is_some() {
                return false;
            }
            if let Some(claimants) = &mut following {
                claimants.leave_row(self.credit, row);
            }
            self.credit.set_claims(row, &claims);
            self.credit.set_missing(row, missing, |row| self.owners.turn_of[row as usize]);
            done.push((cluster, row));
        }
        true
    }

    /// Whether a need that looks at what is loose may find something else there than it did. What it asks for lies elsewhere in
    /// memory, so it is not looked at before it must.
    fn feels(&self, turn: u32, demand: &Demand) -> bool {
        let borrowing = &self.credit.borrowing;
        let Ok(at) = borrowing.binary_search_by_key(&turn, |one| one.turn) else { return false };
        let (sets, classes) = (self.sources.sets, self.sources.classes);
        sets.may_admit(borrowing[at].requirements, self.differing.shape_bits, classes)
            && self.differing.classes.iter().any(|class| self.sources.counts(*class, demand))
    }

    /// Takes the turn of a plain need again. Returns what it claims and what it misses.
    fn take_turn(&mut self, turn: u32, row: u32, demand: &Demand) -> (SmallVec<[u32; 16]>, Amounts) {
        let mut own = self.own_of(demand);
        let keeps = self.keep(&own, demand);
        let Self { credit, differing, sources, picks, .. } = self;
        let Picks { due, kept, picked } = &mut **picks;
        let loose = &mut credit.loose;
        // What it gave up after its turn the last time, and what it took of what is loose.
        loose.retain(|one| {
            let stays = one.from != turn + 1;
            if !stays {
                leave(one, due, differing, *sources);
            }
            stays
        });
        let mut before: SmallVec<[u32; 8]> = SmallVec::new();
        for (at, one) in (0..).zip(loose.iter_mut()) {
            if one.claimed_in == turn {
                one.claimed_in = NONE;
                before.push(at);
            }
            if one.owner == row {
                let own = own.iter_mut().find(|own| own.machine == one.machine);
                own.expect("what is loose of a need's own is its own").loose = at;
            }
        }
        picked.clear();
        let own = own.iter().copied();
        let own = own.filter(|one| one.loose == NONE || loose[one.loose as usize].is_left_in(turn));
        let others = (0..).zip(loose.iter()).filter(|(_, one)| one.owner != row && one.is_left_in(turn));
        let others = others.map(|(at, one)| Candidate {
            machine: one.machine,
            class: one.class,
            configured: one.configured,
            place: NONE,
            loose: at,
        });
        let missing = pick(own.chain(others), |one| one.class, demand, *sources, picked);
        if is_zero(&missing) {
            trim_credit(picked, |one| one.class, |one| one.configured, demand, *sources);
        }
        let keeps_all =
            keeps.covers && picked.iter().map(|one| one.machine).eq(kept.iter().map(|one| one.machine));
        let requirements = demand.requirements;
        match (credit.borrowing.binary_search_by_key(&turn, |one| one.turn), keeps_all) {
            (Ok(at), true) => drop(credit.borrowing.remove(at)),
            (Err(at), false) => credit.borrowing.insert(at, Borrower { turn, requirements }),
            (Ok(_), false) | (Err(_), true) => {}
        }

        // Whoever claimed what this need claims now, and whose it was, may come to something else.
        for at in picked.iter().map(|one| one.loose).filter(|at| *at != NONE) {
            let one = &mut loose[at as usize];
            if one.claimed_in != NONE {
                due.insert(one.claimed_in);
            }
            one.claimed_in = turn;
        }
        let now = |at: u32| loose[at as usize].claimed_in == turn;
        let gone = before.iter().copied().filter(|at| !now(*at));
        let new = picked.iter().map(|one| one.loose).filter(|at| *at != NONE && !before.contains(at));
        for at in gone.chain(new) {
            let Loose { class, owner, .. } = loose[at as usize];
            differing.note(class, *sources);
            if owner != NONE && owner != row {
                let owners_turn = self.owners.turn_of[owner as usize];
                if owners_turn > turn && credit.trimming.contains(owners_turn) {
                    due.insert(owners_turn);
                }
            }
        }
        let bound = self.supply.bound();
        let given_up = kept.iter().filter(|one| one.place < bound && !one.is_among(picked));
        let given_up = given_up.map(|one| {
            let key = self.supply.all()[one.place as usize].key;
            (one.place, one.as_loose(key, row, turn + 1))
        });
        let given_up = given_up.collect();
        let claims = picked.iter().map(|one| one.machine).collect();
        self.enter(given_up);
        (claims, missing)
    }
}

impl Candidate {
    fn is_among(&self, others: &[Self]) -> bool {
        others.iter().any(|other| other.machine == self.machine)
    }

    /// One of a need's own machines that nobody keeps from a turn on.
    fn as_loose(&self, key: u32, owner: u32, from: u32) -> Loose {
        let Self { machine, class, configured, .. } = *self;
        Loose { machine, class, key, owner, from, claimed_in: NONE, configured }
    }
}

/// Takes note that a machine is not loose any more.
fn leave(one: &Loose, due: &mut Bits, differing: &mut Differing, sources: Sources<'_>) {
    differing.note(one.class, sources);
    if one.claimed_in != NONE {
        due.insert(one.claimed_in);
    }
}
