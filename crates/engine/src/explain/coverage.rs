//! How far each domain could carry a gang, whoever holds its machines now, and why it was given the one it has.
//!
//! The contest of domains is held again by a cycle on a fork that somebody watches, so it is the engine's own.

use bigfleet_model::machine::MachineState;
use bigfleet_model::need::NeedKey;
use bigfleet_model::resource::MAX_AMOUNT;

use crate::bits::Bits;
use crate::cycle::DomainRule;
use crate::fleet::Fleet;
use crate::index::is_live;
use crate::intern::NONE;
use crate::options::Options;

/// What one domain has for a gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainCoverage {
    /// The value of the `Same` key.
    pub domain: Box<str>,
    /// How many live machines count for the gang.
    pub machines: usize,
    /// How much of the gang they would carry together, in thousandths of what it has least of.
    pub per_mille: u32,
    /// How many of them are free or already the gang's.
    pub reachable_machines: usize,
    /// How much of the gang those would carry.
    pub reachable_per_mille: u32,
}

/// Why a gang was given its domain.
#[derive(Clone, Debug, PartialEq)]
pub struct DomainChoice {
    /// The domain.
    pub domain: Box<str>,
    /// Whether what the gang may count on there covers it.
    pub covers: bool,
    /// What decided.
    pub rule: DomainRule,
    /// What the rule compares: dollars an hour for new money, shares of the demand, or machines.
    pub figure: f64,
    /// The next best domain and its figure, if there was another.
    pub next: Option<(Box<str>, f64)>,
    /// How many resources the gang demands: so much a share of the whole demand would be.
    pub resources: usize,
}

/// What was added up for a domain.
#[derive(Clone)]
struct Sum {
    machines: usize,
    amounts: Vec<u64>,
}

impl Fleet {
    /// How far each domain could carry a gang, the best first: by what is within reach, then by what there is, then
    /// by name. `None` if there is no such need, it is no gang, or nothing was decided since it came.
    pub fn domain_coverage(&self, key: &NeedKey) -> Option<Vec<DomainCoverage>> {
        let seen = self.seen(key)?;
        // A gang that was folded is a plain need to the cycle, and a gang to whoever asks.
        let demand = self.need(key)?;
        let classes = &self.index.classes;
        let same = demand.same?;
        let domain = classes.domains().iter().position(|known| *known == same)?;
        let mut own = Bits::with_bound(self.inventory.bound());
        seen.credited().iter().chain(seen.acquired()).for_each(|machine| {
            own.insert(*machine);
        });
        let wanted: Vec<(usize, u64)> = demand
            .aggregate
            .iter()
            .filter(|(_, amount)| *amount > 0)
            .map(|(dim, amount)| (*dim as usize, *amount))
            .collect();
        let admitted = self.sets.admits(demand.requirements);
        let counting: Bits =
            admitted.iter().filter(|class| classes.covers(*class, &demand.min_unit)).collect();
        let none = Sum { machines: 0, amounts: vec![0; wanted.len()] };
        let mut sums = vec![[none.clone(), none]; classes.domain_len(domain)];
        for (machine, row) in self.inventory.decided_rows().filter(|(_, row)| is_live(row)) {
            let class = classes.of_kind(row.kind);
            if !counting.contains(class) {
                continue;
            }
            let value = classes.domain_of_kind(domain, row.kind);
            if value == NONE {
                continue;
            }
            let free = matches!(row.state, Some(MachineState::Idle | MachineState::Speculative));
            let provides = classes.provides(class);
            let parts = if free || own.contains(machine) { 2 } else { 1 };
            for sum in &mut sums[value as usize][..parts] {
                sum.machines += 1;
                for (total, (dim, _)) in sum.amounts.iter_mut().zip(&wanted) {
                    *total = total.saturating_add(provides[*dim]).min(MAX_AMOUNT);
                }
            }
        }
        let per_mille = |sum: &Sum| {
            let parts = sum.amounts.iter().zip(&wanted);
            let parts = parts.map(|(has, (_, wants))| {
                let part = u128::from(*has) * 1000 / u128::from(*wants);
                part.min(1000) as u32
            });
            parts.min().unwrap_or(1000)
        };
        let named = (0..).zip(&sums).filter(|(_, [all, _])| all.machines > 0);
        let mut domains: Vec<DomainCoverage> = named
            .map(|(value, [all, reachable])| DomainCoverage {
                domain: self.vocab.text(classes.domain_value(domain, value)).into(),
                machines: all.machines,
                per_mille: per_mille(all),
                reachable_machines: reachable.machines,
                reachable_per_mille: per_mille(reachable),
            })
            .collect();
        domains.sort_by(|a, b| {
            let rank = |d: &DomainCoverage| (d.reachable_per_mille, d.per_mille);
            rank(b).cmp(&rank(a)).then_with(|| a.domain.cmp(&b.domain))
        });
        Some(domains)
    }

    /// Why the last cycle gave a gang its domain. `options` and `now` are those of that cycle. `None` if it is no gang or got
    /// no domain, or if its cluster or another has reported since, so that the choice cannot be repeated.
    pub fn explain_domain(
        &self,
        key: &NeedKey,
        options: &Options,
        now_unix_nanos: i64,
    ) -> Option<DomainChoice> {
        let seen = self.seen(key)?;
        let demand = seen.demand();
        let domain = self.index.classes.domain(demand.same?);
        let given = seen.short.and_then(|short| short.domain).or_else(|| seen.credit.domain_of(seen.row))?;
        let name = |value: u32| self.vocab.text(self.index.classes.domain_value(domain, value)).into();
        let contest = self.trials(options, now_unix_nanos).contest(demand);
        let (rule, figure, next) = match contest {
            None => (DomainRule::Home, 0.0, None),
            Some(contest) if contest.chosen == given => (contest.rule, contest.figure, contest.next),
            Some(_) => return None,
        };
        Some(DomainChoice {
            domain: name(given.value),
            covers: given.covers,
            rule,
            figure,
            next: next.map(|(value, figure)| (name(value), figure)),
            resources: demand.aggregate.len(),
        })
    }
}
