//! Taking in the records of a listing: most are known again at a glance, and of the others it is settled which are news, which
//! come too late, and which contradict one another.

use std::hash::BuildHasher as _;

use bigfleet_model::machine::MachineState;
use bigfleet_model::text::Quoted;

use crate::effect::{Step, Urgency};
use crate::event::{ProviderId, Report, Reports};
use crate::planted::Bug;
use crate::shard::{Map, Shard};
use crate::table::Slot;
use crate::tally::Tally;

/// How many of the machines a listing names twice are told by name.
const NAMED_TWICE_SAID: usize = 3;

/// A digest that only records of one provider can have. 0 stays 0.
fn sealed(digest: u128, ProviderId(id): ProviderId) -> u128 {
    if digest == 0 { 0 } else { (digest ^ u128::from(id) << 112).max(1) }
}

impl Shard {
    /// Takes in records. Most are known again at a glance; the others are gone through a second time, when it is known which
    /// of them name a machine twice.
    pub(crate) fn take_records(
        &mut self,
        id: ProviderId,
        records: &dyn Reports,
        begun: i64,
        now: i64,
        step: &mut Step,
    ) {
        let hasher = foldhash::quality::FixedState::default();
        let mut news: Vec<(usize, u64)> = Vec::new();
        let mut times: Map<u64, u32> = Map::default();
        let mut index = 0;
        records.each(&mut |report| {
            if !self.recognise(id, report, now, step) {
                let hash = hasher.hash_one(report.id());
                *times.entry(hash).or_default() += 1;
                news.push((index, hash));
            }
            index += 1;
        });
        let mut news = news.into_iter().peekable();
        if news.peek().is_none() {
            return;
        }
        index = 0;
        records.each(&mut |report| {
            if let Some((_, hash)) = news.next_if(|(place, _)| *place == index) {
                if times[&hash] > 1 || self.is_named_already(id, report.id()) {
                    self.refuse_both(id, report.id(), step);
                } else {
                    self.take_report(id, report, begun, now, step);
                }
            }
            index += 1;
        });
    }

    /// Whether the listing under way named a machine before. Pieces of different instants may do that: the later word is
    /// the newer one.
    fn is_named_already(&mut self, id: ProviderId, machine: &str) -> bool {
        let provider = &self.providers[id.0 as usize];
        let (generation, is_pieced) = (provider.generation, provider.is_pieced);
        let Some(slot) = self.table.find(machine).filter(|_| !is_pieced) else { return false };
        self.table.row(slot).provider == id && self.table.heard(slot).listing == generation
    }

    /// A listing names one machine twice and says different things of it: nothing of either is taken.
    fn refuse_both(&mut self, id: ProviderId, machine: &str, step: &mut Step) {
        Tally::bump(&mut self.tally.bad_records, "named_twice");
        let provider = &mut self.providers[id.0 as usize];
        let generation = provider.generation;
        provider.named_twice += 1;
        if provider.named_twice <= NAMED_TWICE_SAID {
            let text = format!(
                "provider {}: its listing names machine {} twice; neither is believed, and what was known of it stays",
                provider.name,
                Quoted(machine)
            );
            Self::say(step, Urgency::Warning, "named_twice", text);
        }
        if let Some(slot) = self.table.find(machine).filter(|slot| self.table.row(*slot).provider == id) {
            self.table.unhear(slot);
            self.table.heard(slot).listing = generation;
        }
    }

    /// Whether a record says, byte for byte, what its provider last said of the machine. Nothing needs to be done then,
    /// and nothing but the digest was looked at.
    fn recognise(&mut self, id: ProviderId, report: &dyn Report, now: i64, step: &mut Step) -> bool {
        let digest = sealed(report.digest(), id);
        let provider = &mut self.providers[id.0 as usize];
        if digest == 0 {
            return false;
        }
        let Some(slot) = self.table.recognise(provider.cursor, digest, || report.id()) else { return false };
        provider.cursor = slot.place() + 1;
        let round = provider.generation;
        self.table.heard(slot).listing = round;
        if digest as u8 == round as u8 {
            self.read_again(slot, report, now, step);
        }
        true
    }

    /// The belt to the digest's braces: one in 256 of the records that are known again is read all the same, other ones
    /// in each listing. It must say what we hold, as far as its provider has a say in that.
    fn read_again(&mut self, slot: Slot, report: &dyn Report, now: i64, step: &mut Step) {
        let row = self.table.row(slot);
        // An order of ours may lie on top of it; and a record that could not be read has left nothing to compare.
        let (None, Ok(told)) = (&row.flight, report.read()) else { return };
        self.tally.read_again += 1;
        let ours = &row.machine;
        let mut said = told.machine.clone();
        said.idle_since_unix_nanos = ours.idle_since_unix_nanos;
        said.draining_for.clone_from(&ours.draining_for);
        if said.state == MachineState::Creating {
            said.assigned = ours.assigned.clone();
        }
        if said == **ours {
            return;
        }
        self.tally.read_otherwise += 1;
        let text = format!(
            "machine {} looked unchanged in its provider's listing and is not what we hold; it is read anew. Please report this",
            ours.id
        );
        Self::say(step, Urgency::Alarm, "read_otherwise", text);
        let content = report.content().max(1);
        self.table.unhear(slot);
        self.adopt(slot, told.machine, content, now, step);
    }

    fn take_report(&mut self, id: ProviderId, report: &dyn Report, begun: i64, now: i64, step: &mut Step) {
        let generation = self.providers[id.0 as usize].generation;
        let content = report.content().max(1);
        let Some(slot) = self.table.find(report.id()) else {
            match report.read() {
                Ok(told) => {
                    self.tally.bad_stamps += told.bad_stamps as u64;
                    let met = self.meet(id, told.machine, content, now, step);
                    if let Some(slot) = met {
                        self.providers[id.0 as usize].cursor = slot.place() + 1;
                        if self.table.row(slot).flight.is_none() {
                            self.table.heard(slot).digest = sealed(report.digest(), id);
                        }
                    }
                }
                Err(bad) => self.refuse(id, &bad, step),
            }
            return;
        };
        let row = self.table.row_mut(slot);
        if row.provider != id {
            self.tally.claimed_twice += 1;
            let (first, second) =
                (&self.providers[row.provider.0 as usize].name, &self.providers[id.0 as usize].name);
            let text = format!(
                "machine {} is listed by provider {first} and by provider {second}; {first}'s word is taken, and one \
                 of them must give it another id",
                Quoted(report.id())
            );
            Self::say(step, Urgency::Warning, "claimed_twice", text);
            return;
        }
        let is_ours = row.flight.is_some();
        let calling = row.flight.as_ref().is_some_and(|flight| flight.stage.provider_may_know());
        let is_late = row.touched >= begun && !self.config.has(Bug::OlderListingAdopted);
        self.providers[id.0 as usize].cursor = slot.place() + 1;
        let heard = self.table.heard(slot);
        heard.listing = generation;
        if heard.content == content {
            if !is_ours {
                heard.digest = sealed(report.digest(), id);
            }
            return;
        }
        if calling || is_late {
            self.table.unhear(slot);
            self.table.row_mut(slot).missed = true;
            if !calling {
                self.ask(slot, step);
            }
            return;
        }
        heard.digest = sealed(report.digest(), id);
        match report.read() {
            Ok(told) => {
                self.tally.bad_stamps += told.bad_stamps as u64;
                let state = told.machine.state;
                self.adopt(slot, told.machine, content, now, step);
                self.hear_listed(slot, state, now, step);
            }
            Err(bad) => {
                self.table.heard(slot).content = content;
                self.refuse(id, &bad, step);
            }
        }
    }
}
