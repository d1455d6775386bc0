//! What a cluster reports: one request per pod, merged by the same primitive every operator uses.

use bigfleet_model::need::{Need, aggregate};

use super::Pods;

impl Pods {
    /// The whole demand. All wanted pods count, whether they have a place or not: machines that serve them are credited
    /// by the shard.
    pub fn rollup(&self) -> Vec<Need> {
        let mut rows = Vec::new();
        for work in &self.work {
            if let Some(asked) = &work.asked {
                rows.push(asked.clone());
                continue;
            }
            // Like pods ask for the same, so the sum of their requests is one request times their number.
            let request = Need::of_unit(self.name.clone(), work.profile.clone(), work.unit.clone());
            let pods = if self.unmet_only { work.waiting } else { work.wanted };
            if pods > 0 {
                rows.push(request.clone().times(pods));
            }
            for (gang, places) in &work.gangs {
                if self.unmet_only && !places.is_empty() {
                    continue;
                }
                let group = format!("{}/{gang}", work.name).into();
                rows.push(Need { group, ..request.clone().times(work.gang) });
            }
        }
        aggregate(rows)
    }

    /// Each kind of work: its name, the pods wanted, and of these, the pods that wait.
    pub fn work(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.work.iter().map(|work| {
            let waiting = work.gangs.values().filter(|places| places.is_empty()).count() as u64;
            let gangs = work.gangs.len() as u64;
            (work.name.as_str(), work.wanted + work.gang * gangs, work.waiting + work.gang * waiting)
        })
    }

    /// Whether the roll-up may differ from the last time this was asked.
    pub fn take_demand_changed(&mut self) -> bool {
        std::mem::take(&mut self.demand_changed)
    }
}
