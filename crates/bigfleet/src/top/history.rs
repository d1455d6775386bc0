//! What the fleet cost, missed and did since the view was opened, in a line.

use std::collections::VecDeque;

use bigfleet_view::v1::{Fate, WatchEvent};

use crate::words::{hourly, short_span, thousands};

/// Cycles kept. Beyond that every second one goes, so that the line always reaches back to its beginning.
const MOST: usize = 480;

/// Signs of a curve.
const SIGNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The length of a curve.
const COLUMNS: usize = 12;

/// What is known of a stretch of cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Past {
    from_unix_nanos: i64,
    usd_per_hour: f64,
    unmet: u32,
    /// Begun.
    actions: u32,
}

/// The past, oldest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct History {
    past: VecDeque<Past>,
    cycle: u64,
    until_unix_nanos: i64,
}

impl History {
    /// Takes in what was watched.
    pub(crate) fn add(&mut self, event: &WatchEvent) {
        let Some(summary) = &event.summary else { return };
        let Some(as_of) = summary.as_of.as_ref().filter(|as_of| as_of.cycle > self.cycle) else { return };
        // The decisions of cycles before the view was opened come with the first event.
        let newer = event.decisions.iter().filter(|decision| decision.cycle > self.cycle);
        let begun = newer.filter(|decision| decision.fate() == Fate::Begun).count();
        let actions = if self.past.is_empty() { 0 } else { begun as u32 };
        self.cycle = as_of.cycle;
        self.until_unix_nanos = as_of.cycle_unix_nanos;
        self.past.push_back(Past {
            from_unix_nanos: as_of.cycle_unix_nanos,
            usd_per_hour: summary.usd_per_hour,
            unmet: summary.unmet,
            actions,
        });
        if self.past.len() > MOST {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let all: Vec<Past> = self.past.drain(..).collect();
        self.past.extend(all.chunks(2).map(together));
    }

    /// `$/h ▁▂▃ $4.56  unmet ▁▁█ 2  actions ▁▃▁ 14`, of how long; nothing before there are two cycles.
    pub(crate) fn line(&self) -> Option<(String, String)> {
        let (first, last) = (self.past.front()?, self.past.back()?);
        if self.past.len() < 2 {
            return None;
        }
        let past: Vec<Past> = self.past.iter().copied().collect();
        let stretches = past.len().min(COLUMNS);
        let stretch = |at: usize| &past[at * past.len() / stretches..(at + 1) * past.len() / stretches];
        let columns: Vec<Past> = (0..stretches).map(|at| together(stretch(at))).collect();
        let curve = |figure: fn(&Past) -> f64| curve(&columns.iter().map(figure).collect::<Vec<_>>());
        let actions: u64 = past.iter().map(|one| u64::from(one.actions)).sum();
        let text = format!(
            "$/h {} {}  unmet {} {}  actions {} {}",
            curve(|past| past.usd_per_hour),
            hourly(last.usd_per_hour),
            curve(|past| past.unmet.into()),
            thousands(last.unmet.into()),
            curve(|past| past.actions.into()),
            thousands(actions),
        );
        Some((short_span(self.until_unix_nanos.saturating_sub(first.from_unix_nanos)), text))
    }
}

/// Several stretches as one: the dearest and the worst of it, and all that was done.
fn together(parts: &[Past]) -> Past {
    parts
        .iter()
        .copied()
        .reduce(|a, b| Past {
            from_unix_nanos: a.from_unix_nanos,
            usd_per_hour: a.usd_per_hour.max(b.usd_per_hour),
            unmet: a.unmet.max(b.unmet),
            actions: a.actions.saturating_add(b.actions),
        })
        .expect("nobody asks for no stretch")
}

/// Figures as signs, from the least to the most there was; flat if nothing moved.
fn curve(figures: &[f64]) -> String {
    let known = || figures.iter().copied().filter(|figure| figure.is_finite());
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max));
    let sign = |figure: &f64| {
        if !figure.is_finite() {
            return '?';
        }
        let share = if most > least { (figure - least) / (most - least) } else { 0.0 };
        SIGNS[((share * 7.0).round() as usize).min(7)]
    };
    figures.iter().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use bigfleet_view::v1::{AsOf, Decision, Summary};

    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn event(cycle: u64, usd_per_hour: f64, unmet: u32, begun: usize) -> WatchEvent {
        let as_of = AsOf { cycle, cycle_unix_nanos: cycle.cast_signed() * 10 * SECOND, ..AsOf::default() };
        let decision = |fate: Fate| Decision { cycle, fate: fate.into(), ..Decision::default() };
        let mut decisions = vec![decision(Fate::Begun); begun];
        decisions.push(decision(Fate::Capped));
        let summary = Summary { as_of: Some(as_of), usd_per_hour, unmet, ..Summary::default() };
        WatchEvent { summary: Some(summary), decisions, skipped: 0 }
    }

    #[test]
    fn a_line_shows_how_it_went_and_how_it_is() {
        let mut history = History::default();
        history.add(&event(1, 1.0, 0, 9));
        assert_eq!(history.line(), None, "one cycle is no history, and what was before is not counted");
        for (cycle, usd, unmet, begun) in [(2, 1.0, 2, 0), (3, 3.0, 1, 4), (4, 2.0, 0, 1)] {
            history.add(&event(cycle, usd, unmet, begun));
            history.add(&event(cycle, 9.0, 9, 9));
        }
        let (span, text) = history.line().unwrap();
        assert_eq!((&*span, &*text), ("30s", "$/h ▁▁█▅ $2.00/h  unmet ▁█▅▁ 0  actions ▁▁█▃ 5"));
    }

    #[test]
    fn it_stays_bounded_and_reaches_back_to_its_beginning() {
        let mut history = History::default();
        for cycle in 1..=5_000 {
            history.add(&event(cycle, f64::NAN, 0, 1));
        }
        assert!(history.past.len() <= MOST);
        let (span, text) = history.line().unwrap();
        assert_eq!(span, "13h");
        assert!(text.ends_with("4,999"), "{text}");
        assert!(text.contains("????????????"), "{text}");
    }
}
