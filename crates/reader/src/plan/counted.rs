//! Computes the design effect from the labels in batches. [`LabelReport::deff`](super::LabelReport::deff) predicts it
//! by a formula.

use packds_system::share;
use std::collections::BTreeMap;

use super::epoch::EpochPlan;

impl EpochPlan {
    /// The variance of label counts in this rank's batches, relative to uniform batches. Up to `n_steps` batches are
    /// used, spread over the epoch. For classes of equal size, the result is the chi-square of the counts divided by
    /// its degrees of freedom. This makes one pass over all labels of the epoch. `None` if there is only one class, one
    /// batch, or one sample per batch.
    pub fn counted_deff(&self, n_steps: u64, label: impl Fn(u64) -> i64) -> Option<f64> {
        let mut totals: BTreeMap<i64, f64> = BTreeMap::new();
        for sample in self.samples() {
            *totals.entry(label(sample)).or_default() += 1.0;
        }
        let expected = agreeing(&totals);
        // The last batch is excluded if it is padded.
        let last = self.batch(self.steps().saturating_sub(1));
        let padded = u64::from(last.into_iter().any(|slot| slot.padding));
        let steps = self.steps() - padded;
        let taken = n_steps.min(steps);
        if steps < 2 || taken == 0 || expected >= 1.0 {
            return None;
        }
        let (mut sum, mut size) = (0.0, 0.0);
        for nth in 0..taken {
            let step = share(steps, nth, taken);
            let mut counts: BTreeMap<i64, f64> = BTreeMap::new();
            for slot in self.batch(step) {
                *counts.entry(label(slot.sample)).or_default() += 1.0;
            }
            size = counts.values().sum();
            sum += agreeing(&counts);
        }
        let excess = sum / taken as f64 - expected;
        (size > 1.0).then(|| 1.0 + (size - 1.0) * excess / (1.0 - expected))
    }
}

/// The proportion of pairs of different samples that have the same label.
fn agreeing(counts: &BTreeMap<i64, f64>) -> f64 {
    let n: f64 = counts.values().sum();
    let pairs: f64 = counts.values().map(|count| count * (count - 1.0)).sum();
    if n > 1.0 { pairs / (n * (n - 1.0)) } else { 1.0 }
}
