//! A shard looks around: how its surroundings differ from what its tape last said.

use std::sync::Arc;

use crate::cluster::Cluster;
use crate::effect::Step;
use crate::event::ProviderId;
use crate::memory::Fact;
use crate::shard::Shard;
use crate::tape::Input;
use crate::tape::around::{
    Around, ClusterChange, ClusterSeen, Health, Link, Listed, LossSeen, MOST_TEXT_BYTES, OperatorSeen,
    ProviderSettings, Purchases, Settings, Surroundings, seconds,
};

/// What changed, and whether anybody would call it news: a listing or a report that says what the last one said is none.
pub(crate) struct Look {
    pub(crate) around: Around,
    pub(crate) is_news: bool,
}

/// The beginning of a text that somebody else wrote.
fn clipped(text: &str) -> &str {
    &text[..text.floor_char_boundary(MOST_TEXT_BYTES)]
}

impl Shard {
    /// Compares with what the tape last said; `full` is the whole input if that is recorded instead of `inputs`.
    ///
    /// What comes of it must be recorded if there are any inputs: they are taken for said.
    pub(crate) fn look_around(&mut self, inputs: &[Input], full: Option<&[Input]>, now: i64) -> Look {
        let mut said = std::mem::take(&mut self.journal.said);
        if full.is_some() {
            said = Surroundings::default();
        }
        said.take_inputs(full.unwrap_or(inputs));
        let mut look = Look {
            around: Around {
                settings: full.map(|_| Box::new(self.settings())),
                moves: self.moves.calling() as u32,
                owners: self.owners(inputs, full.is_some()),
                ..Around::default()
            },
            is_news: full.is_some(),
        };
        self.look_at_providers(&said, now, &mut look);
        self.look_at_clusters(&said, &mut look);
        self.look_at_pauses(&said, &mut look);
        let purchases = self.purchases(now);
        if purchases != said.purchases {
            look.is_news = true;
            look.around.purchases = Some(purchases);
        }
        self.journal.said = said;
        look
    }

    /// Since when needs are short: what the ledger found new, from `facts_before` on, or all of it.
    pub(crate) fn look_at_ledger(&self, around: &mut Around, step: &Step, facts_before: usize) {
        around.short = if around.settings.is_some() {
            self.ledger.iter().map(|(key, short)| (key.clone(), Some(short.since))).collect()
        } else {
            let of_shortfall = |fact: &Fact| match fact {
                Fact::Shortfall(key, since) => Some((key.clone(), *since)),
                _ => None,
            };
            step.facts[facts_before..].iter().filter_map(of_shortfall).collect()
        };
    }

    /// What it was told at its start, as far as people ask for it.
    pub fn settings(&self) -> Settings {
        let config = &self.config;
        let providers = config.providers.iter().map(|provider| ProviderSettings {
            name: provider.name.clone(),
            list_every_nanos: provider.list_every,
            stale_after_nanos: provider.stale_after,
        });
        Settings {
            reclaim_fraction: config.rails.reclaim_fraction,
            reclaim_window_nanos: config.rails.reclaim_window,
            max_actions_per_cycle: config.rails.max_actions_per_cycle as u64,
            dry_run: config.rails.dry_run,
            max_moves: config.limits.flights as u64,
            demand_drop: config.guard.demand_drop,
            supply_drop: config.guard.supply_drop,
            confirmations: config.guard.confirmations,
            purchase_fraction: config.rails.purchase_fraction,
            purchase_window_nanos: config.rails.purchase_window,
            purchase_usd_per_hour: config.rails.purchase_usd_per_hour,
            providers: providers.collect(),
        }
    }

    /// Whose the observed machines are, if that is a question. One that is gone meanwhile is anybody's.
    fn owners(&self, inputs: &[Input], is_full: bool) -> Vec<u16> {
        if self.providers.len() < 2 {
            return Vec::new();
        }
        if is_full {
            // In the order of the whole input.
            return self.table.iter().filter(|(_, row)| row.shown).map(|(_, row)| row.provider.0).collect();
        }
        let owner = |input: &Input| match input {
            Input::Observe(machine) => {
                let slot = self.table.find(&machine.id);
                Some(slot.map_or(0, |slot| self.table.row(slot).provider.0))
            }
            _ => None,
        };
        inputs.iter().filter_map(owner).collect()
    }

    fn look_at_providers(&self, said: &Surroundings, now: i64, look: &mut Look) {
        for (index, provider) in self.providers.iter().enumerate() {
            let place = index as u16;
            let before = said.providers.get(index);
            let listed = Listed {
                unix_nanos: provider.listed_unix_nanos,
                full_unix_nanos: provider.full_listed_unix_nanos,
                machines: provider.machines as u32,
            };
            if before.is_none_or(|before| before.listed != listed) {
                look.is_news |= before.is_none_or(|before| before.listed.unix_nanos.is_none());
                look.around.listed.push((place, listed));
            }
            let error = if provider.failures > 0 { clipped(&provider.last_error) } else { "" };
            let health = Health {
                failures: provider.failures,
                error: error.into(),
                held: provider.held,
                supports_delete: provider.supports_delete,
                has_revisions: provider.has_revisions,
                is_stale: !self.is_fresh(ProviderId(place), now),
            };
            if before.is_none_or(|before| before.health != health) {
                look.is_news = true;
                look.around.health.push((place, health));
            }
        }
    }

    fn look_at_clusters(&self, said: &Surroundings, look: &mut Look) {
        let unknown = ClusterSeen::default();
        let mut known = said.clusters.iter().peekable();
        for (rank, (name, cluster)) in self.clusters.iter().enumerate() {
            while let Some((gone, _)) = known.next_if(|(other, _)| *other < name) {
                look.went(gone);
            }
            let before = known.next_if(|(other, _)| *other == name).map(|(_, before)| before);
            if before.is_none() {
                look.around.came.push(name.clone());
                look.is_news = true;
            }
            look.at_cluster(rank as u32, cluster, before.unwrap_or(&unknown));
        }
        known.for_each(|(gone, _)| look.went(gone));
    }

    /// The books of the purchase rail, as people see them.
    pub fn purchases(&self, now_unix_nanos: i64) -> Purchases {
        let losses = self.suspicious_losses().map(|(cluster, provider, account)| {
            let pace = self.purchase_pace(cluster, now_unix_nanos);
            LossSeen {
                cluster: cluster.clone(),
                provider: provider.0,
                since_unix_nanos: account.since_unix_nanos,
                machines: account.lost.len() as u32,
                usd_per_hour: account.usd_per_hour(),
                seen: account.confirmation.map_or(0, |confirmation| confirmation.seen),
                may_replace: pace.most,
                replaced: pace.used,
            }
        });
        Purchases { losses: losses.collect(), usd_per_hour: self.replacement_usd_per_hour() }
    }

    fn look_at_pauses(&self, said: &Surroundings, look: &mut Look) {
        if self.pauses == said.pauses {
            return;
        }
        look.is_news = true;
        let ended = said.pauses.keys().filter(|number| !self.pauses.contains_key(number));
        let begun = self.pauses.iter().filter(|(number, pause)| said.pauses.get(number) != Some(*pause));
        look.around.pauses =
            ended.map(|n| (*n, None)).chain(begun.map(|(n, pause)| (*n, Some(pause.clone())))).collect();
    }
}

impl Look {
    fn went(&mut self, name: &Arc<str>) {
        self.around.went.push(name.clone());
        self.is_news = true;
    }

    fn at_cluster(&mut self, rank: u32, cluster: &Cluster, before: &ClusterSeen) {
        let mut changed = |change| {
            self.around.clusters.push((rank, change));
            self.is_news = true;
        };
        let link = |link: &Link| (link.number, link.since_unix_nanos);
        let session = cluster.session.map(|session| (session.0, cluster.session_since_unix_nanos));
        let protocol = before.session.as_ref().map(|session| &*session.protocol);
        if before.session.as_ref().map(link) != session
            || session.is_some() && protocol != Some(clipped(&cluster.protocol))
        {
            changed(ClusterChange::Session(session.map(|(number, since_unix_nanos)| Link {
                number,
                since_unix_nanos,
                protocol: clipped(&cluster.protocol).into(),
            })));
        }
        let operator = &before.operator;
        if operator.failures != cluster.operator_failures
            || operator.backoff_until_unix_nanos != cluster.operator_backoff_until_unix_nanos
            || *operator.error != *clipped(&cluster.operator_error)
        {
            changed(ClusterChange::Operator(OperatorSeen {
                failures: cluster.operator_failures,
                backoff_until_unix_nanos: cluster.operator_backoff_until_unix_nanos,
                error: clipped(&cluster.operator_error).into(),
            }));
        }
        if before.held != cluster.held {
            changed(ClusterChange::Held(cluster.held));
        }
        if before.reclaims != cluster.reclaims {
            changed(ClusterChange::Reclaims(cluster.reclaims.clone()));
        }
        if before.changed_unix_nanos != cluster.changed_unix_nanos {
            changed(ClusterChange::Changed(cluster.changed_unix_nanos));
        }
        let reported = seconds(cluster.reported_unix_nanos);
        if seconds(before.reported_unix_nanos) != reported {
            self.is_news |= before.reported_unix_nanos == 0;
            self.around.reported.push((rank, reported));
        }
    }
}
