//! How the fleet stood over time, for charts: bounded, and coarser the longer it lasts.

use bigfleet_view::v1::Summary;
use serde::Serialize;

/// Points kept at most. When there are more, neighbours become one.
const MOST: usize = 1440;

/// One moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Point {
    unix_nanos: i64,
    usd_per_hour: f64,
    idle_usd_per_hour: f64,
    unmet: u32,
    short: u32,
    bound: u32,
    /// Actions begun since the point before.
    actions: u32,
    /// Actions withheld by the last cycle.
    withheld: u32,
    /// Of what bound machines provide, how much is asked for; in hundredths. None if nothing is provided.
    cpu: Option<f64>,
    memory: Option<f64>,
}

/// Moments, the oldest first.
#[derive(Clone, Debug)]
pub(crate) struct History {
    points: Vec<Point>,
    /// So many moments are one point now.
    stride: u32,
    /// Moments in the last point.
    filled: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1, filled: 0 }
    }
}

/// The same in columns, as charts want them.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Columns {
    /// Unix seconds.
    time: Vec<f64>,
    usd: Vec<f64>,
    idle_usd: Vec<f64>,
    unmet: Vec<u32>,
    short: Vec<u32>,
    bound: Vec<u32>,
    actions: Vec<u32>,
    withheld: Vec<u32>,
    cpu: Vec<Option<f64>>,
    memory: Vec<Option<f64>>,
}

impl History {
    /// Remembers a moment and how many actions were begun since the one before.
    pub(crate) fn add(&mut self, summary: &Summary, actions: u32) {
        let time = summary.as_of.as_ref().map_or(0, |as_of| as_of.now_unix_nanos);
        if self.points.last().is_some_and(|last| last.unix_nanos >= time) {
            // Several summaries of one instant, or a shard that began anew with an older clock.
            if let Some(last) = self.points.last_mut().filter(|last| last.unix_nanos == time) {
                last.actions += actions;
            } else {
                *self = Self::default();
            }
            return;
        }
        let point = Point {
            unix_nanos: time,
            usd_per_hour: summary.usd_per_hour,
            idle_usd_per_hour: summary.idle_usd_per_hour,
            unmet: summary.unmet,
            short: summary.short,
            bound: summary.lanes.iter().map(|lane| lane.machines).sum(),
            actions,
            withheld: summary.withheld.iter().map(|count| count.actions).sum(),
            cpu: used(summary, "cpu"),
            memory: used(summary, "memory"),
        };
        if let Some(last) = self.points.last_mut().filter(|_| self.filled < self.stride) {
            *last = merged(*last, point);
            self.filled += 1;
        } else {
            self.points.push(point);
            self.filled = 1;
        }
        if self.points.len() > MOST {
            self.points = self
                .points
                .chunks(2)
                .map(|pair| pair.iter().copied().reduce(merged))
                .collect::<Option<_>>()
                .expect("chunks are not empty");
            self.stride *= 2;
            self.filled = self.stride / 2;
        }
    }

    /// In columns.
    pub(crate) fn columns(&self) -> Columns {
        let mut columns = Columns::default();
        for point in &self.points {
            columns.time.push(point.unix_nanos as f64 / 1e9);
            columns.usd.push(point.usd_per_hour);
            columns.idle_usd.push(point.idle_usd_per_hour);
            columns.unmet.push(point.unmet);
            columns.short.push(point.short);
            columns.bound.push(point.bound);
            columns.actions.push(point.actions);
            columns.withheld.push(point.withheld);
            columns.cpu.push(point.cpu);
            columns.memory.push(point.memory);
        }
        columns
    }
}

/// What share of a resource of bound machines is asked for, in hundredths.
fn used(summary: &Summary, resource: &str) -> Option<f64> {
    let line = summary.r#use.iter().find(|line| line.resource == resource && line.provided > 0.0)?;
    Some((1000.0 * line.asked / line.provided).round() / 10.0)
}

/// Two neighbours as one: the later level, but no peak of what is wrong is lost, and actions add up.
fn merged(a: Point, b: Point) -> Point {
    Point {
        unmet: a.unmet.max(b.unmet),
        short: a.short.max(b.short),
        withheld: a.withheld.max(b.withheld),
        actions: a.actions + b.actions,
        ..b
    }
}

#[cfg(test)]
mod tests {
    use bigfleet_view::v1::AsOf;

    use super::*;

    fn summary(second: i64, unmet: u32) -> Summary {
        let as_of = Some(AsOf { now_unix_nanos: second * 1_000_000_000, ..AsOf::default() });
        Summary { as_of, unmet, usd_per_hour: second as f64, ..Summary::default() }
    }

    #[test]
    fn it_stays_small_and_loses_neither_actions_nor_trouble() {
        let mut history = History::default();
        for second in 1..=10_000 {
            history.add(&summary(second, u32::from(second == 5)), 2);
        }
        let columns = history.columns();
        assert!(columns.time.len() <= MOST && columns.time.len() > MOST / 4, "{}", columns.time.len());
        assert_eq!(columns.actions.iter().sum::<u32>(), 20_000);
        assert_eq!(columns.unmet.iter().max(), Some(&1));
        assert!(columns.time.is_sorted() && columns.usd.last() == Some(&10_000.0));
    }

    #[test]
    fn one_instant_is_one_point_and_a_clock_that_went_back_begins_anew() {
        let mut history = History::default();
        for second in [7, 7, 8, 3, 4] {
            history.add(&summary(second, 0), 1);
        }
        assert_eq!(history.columns().time, [4.0]);
    }
}
