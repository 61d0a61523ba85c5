//! Times two things alternately, so changes in machine speed affect both.

use std::time::Duration;

use serde::Serialize;

/// A result with its limit.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The name of the result.
    pub name: &'static str,
    /// Images per run.
    pub n_samples: usize,
    /// Images per second, or samples per second if packs are read.
    pub images_per_s: f64,
    /// Bytes per second, counting the files' bytes, or the pack's bytes if packs are read.
    pub bytes_per_s: f64,
    /// The limit's name.
    pub limit: &'static str,
    /// The limit in images per second.
    pub limit_images_per_s: f64,
    /// Median over the pairs of (limit's time / our time).
    pub ratio: f64,
    /// The smallest and the largest ratio.
    pub ratio_range: (f64, f64),
    /// Peak resident memory, in bytes.
    pub peak_rss_bytes: u64,
    /// Time of each stage of the median run. Empty if there are no stages.
    pub seconds: serde_json::Map<String, serde_json::Value>,
}

/// Pairs of times: ours and the limit's. The two alternate.
#[derive(Debug, Default)]
pub struct Pairs {
    times: Vec<(f64, f64)>,
}

impl Pairs {
    /// Adds one pair: ours and the limit's.
    pub fn push(&mut self, ours: Duration, limit: Duration) {
        self.times.push((ours.as_secs_f64().max(1e-9), limit.as_secs_f64().max(1e-9)));
    }

    /// Median of our times, in seconds.
    #[must_use]
    pub fn ours(&self) -> f64 {
        median(self.times.iter().map(|(ours, _)| *ours).collect())
    }

    /// Median of the limit's times, in seconds.
    #[must_use]
    pub fn limit(&self) -> f64 {
        median(self.times.iter().map(|(_, limit)| *limit).collect())
    }

    /// Median of the pairs' ratios.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        median(self.ratios())
    }

    /// The smallest and the largest ratio.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let ratios = self.ratios();
        (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max))
    }

    /// Index of the pair in which our time is closest to our median.
    #[must_use]
    pub fn median_run(&self) -> usize {
        let median = self.ours();
        let distance = |i: &usize| (self.times.get(*i).map_or(f64::MAX, |(ours, _)| (ours - median).abs())).to_bits();
        (0..self.times.len()).min_by_key(distance).unwrap_or(0)
    }

    fn ratios(&self) -> Vec<f64> {
        self.times.iter().map(|(ours, limit)| limit / ours).collect()
    }
}

/// The nearest-rank percentile. 0 if there are no values.
pub(crate) fn percentile(mut values: Vec<f64>, percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    let rank = (values.len() * percent.min(100)).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0.0)
}

/// Converts a count to a float, to compute rates and shares.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "rates and shares need few digits")]
pub fn to_f64(n: u64) -> f64 {
    n as f64
}

/// The median. 0 if there are no values.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    match (n % 2, values.get(n / 2)) {
        (1, Some(middle)) => *middle,
        (_, Some(upper)) => f64::midpoint(*upper, values.get(n / 2 - 1).copied().unwrap_or(*upper)),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratio_is_the_median_of_the_pairs() {
        let mut pairs = Pairs::default();
        let ms = Duration::from_millis;
        for (ours, limit) in [(100, 90), (200, 200), (100, 50), (100, 95)] {
            pairs.push(ms(ours), ms(limit));
        }
        assert!((pairs.ratio() - 0.925).abs() < 1e-9);
        assert!((pairs.ours() - 0.1).abs() < 1e-9);
        assert_eq!(pairs.range(), (0.5, 1.0));
        assert_eq!(pairs.median_run(), 0);
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=20).rev().map(f64::from).collect();
        let of = |values: &[f64], percent| percentile(values.to_vec(), percent).to_string();
        let found = [0, 5, 50, 95, 96, 100].map(|percent| of(&values, percent));
        assert_eq!(found, ["1", "1", "10", "19", "20", "20"]);
        assert_eq!((of(&[3.0], 95), of(&[], 95)), ("3".to_owned(), "0".to_owned()));
    }
}
