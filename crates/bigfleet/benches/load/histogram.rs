//! Reads what Prometheus would read.

use std::fmt;

/// One scrape, line by line.
pub(crate) struct Scrape(Vec<(String, f64)>);

impl Scrape {
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let read = |line: &str| {
            let (series, value) = line.rsplit_once(' ')?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self(lines.filter_map(read).collect())
    }

    /// The sum of all series that begin like this.
    pub(crate) fn sum(&self, prefix: &str) -> f64 {
        self.sum_of(prefix, "")
    }

    /// The sum of all series that begin like this and have that among their labels.
    pub(crate) fn sum_of(&self, prefix: &str, label: &str) -> f64 {
        let wanted = self.0.iter().filter(|(series, _)| series.starts_with(prefix) && series.contains(label));
        wanted.map(|(_, value)| value).sum()
    }

    /// A histogram without labels.
    pub(crate) fn histogram(&self, name: &str) -> Histogram {
        let bucket = |(series, value): &(String, f64)| {
            let labels = series.strip_prefix(name)?.strip_prefix("_bucket{")?;
            let (_, bound) = labels.split_once("le=\"")?;
            let bound = bound.strip_suffix("\"}")?;
            Some((bound.parse().unwrap_or(f64::INFINITY), *value))
        };
        Histogram(self.0.iter().filter_map(bucket).collect())
    }
}

/// Upper bounds and how many lie at or below each.
pub(crate) struct Histogram(Vec<(f64, f64)>);

impl Histogram {
    /// What came since an earlier one.
    pub(crate) fn since(mut self, before: &Self) -> Self {
        for (now, then) in self.0.iter_mut().zip(&before.0) {
            now.1 -= then.1;
        }
        self
    }

    fn count(&self) -> f64 {
        self.0.last().map_or(0.0, |(_, count)| *count)
    }

    /// The upper bound of the bucket that holds this quantile, in milliseconds.
    fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.count();
        self.0.iter().find(|(_, count)| *count >= wanted).map_or(f64::NAN, |(bound, _)| bound * 1e3)
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [half, most, max] = [0.5, 0.99, 1.0].map(|share| self.quantile(share));
        write!(
            f,
            "p50 {half:.2} ms, p99 {most:.2} ms, max {max:.2} ms (upper bounds of buckets), {} times",
            self.count()
        )
    }
}
