//! Exact histograms of pixel values, from which the mean, the standard deviation and the extremes of a dataset are
//! computed.

/// The count of each of the 256 values in each channel.
///
/// Integer counts do not depend on the order of addition, so the statistics are the same however the work is split
/// among threads.
///
/// Methods with a `channel` panic if the channel does not exist.
///
/// ```
/// use packds_pixels::Histogram;
/// let mut histogram = Histogram::new(1);
/// histogram.add(&[0, 0, 100, 100]);
/// assert_eq!((histogram.mean(0), histogram.std(0)), (50.0, 50.0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<[u64; 256]>,
}

/// Number of bytes that are counted in the 32-bit tables before their counts are moved to the 64-bit totals. It is far
/// below 2^32.
const FLUSH: usize = 1 << 30;
/// Maximum number of pixels of [`Histogram::of_counts`].
const MAX_PIXELS: u64 = 1 << 48;
/// Number of tables that neighbouring pixels use in turn. With a single table, runs of equal pixels would wait for each
/// other's increments.
const TURNS: usize = 4;

impl Histogram {
    /// An empty histogram for pixels with this many channels.
    #[must_use]
    pub fn new(channels: usize) -> Self {
        Self { counts: vec![[0; 256]; channels.max(1)] }
    }

    /// A histogram with these counts for each channel. `None` if there are no channels, or more pixels than statistics
    /// can be computed for.
    #[must_use]
    pub fn of_counts(counts: Vec<[u64; 256]>) -> Option<Self> {
        let sum = |counts: &[u64; 256]| counts.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
        let fits = |counts: &[u64; 256]| sum(counts).is_some_and(|n| n <= MAX_PIXELS);
        (!counts.is_empty() && counts.iter().all(fits)).then_some(Self { counts })
    }

    /// Number of channels.
    #[must_use]
    pub fn channels(&self) -> usize {
        self.counts.len()
    }

    /// Counts the interleaved pixels `hwc`. Bytes after the last whole pixel are ignored.
    pub fn add(&mut self, hwc: &[u8]) {
        let channels = self.channels();
        for part in hwc.chunks(FLUSH / channels * channels) {
            match channels {
                1 => self.add_part::<1>(part),
                3 => self.add_part::<3>(part),
                _ => self.add_any(part),
            }
        }
    }

    fn add_part<const CHANNELS: usize>(&mut self, part: &[u8]) {
        for (sums, counts) in self.counts.iter_mut().zip(&counts::<CHANNELS>(part)) {
            for (sum, &count) in sums.iter_mut().zip(counts) {
                *sum += u64::from(count);
            }
        }
    }

    fn add_any(&mut self, part: &[u8]) {
        for pixel in part.chunks_exact(self.channels()) {
            for (counts, &value) in self.counts.iter_mut().zip(pixel) {
                counts[usize::from(value)] += 1;
            }
        }
    }

    /// Adds the counts of `other`, which should have the same number of channels. Extra channels are ignored.
    pub fn merge(&mut self, other: &Self) {
        for (sums, counts) in self.counts.iter_mut().zip(&other.counts) {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum = sum.saturating_add(*count);
            }
        }
    }

    /// The count of each value in a channel.
    #[must_use]
    pub fn counts(&self, channel: usize) -> &[u64; 256] {
        &self.counts[channel]
    }

    /// Number of pixels.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts[0].iter().sum()
    }

    /// Mean of a channel, 0 to 255. 0 if nothing was counted.
    #[must_use]
    pub fn mean(&self, channel: usize) -> f64 {
        let (count, sum, _) = self.moments(channel);
        if count == 0 { 0.0 } else { float(sum) / float(count) }
    }

    /// Population standard deviation of a channel, 0 to 255.
    #[must_use]
    pub fn std(&self, channel: usize) -> f64 {
        let (count, sum, squares) = self.moments(channel);
        // count * squares - sum^2, computed in integers to avoid cancellation.
        let numerator = count.saturating_mul(squares).saturating_sub(sum.saturating_mul(sum));
        if count == 0 { 0.0 } else { float(numerator).sqrt() / float(count) }
    }

    /// Mean of a channel, on a scale of 0 to 1.
    #[must_use]
    pub fn mean_scaled(&self, channel: usize) -> f64 {
        self.mean(channel) / 255.0
    }

    /// Standard deviation of a channel, on a scale of 0 to 1.
    #[must_use]
    pub fn std_scaled(&self, channel: usize) -> f64 {
        self.std(channel) / 255.0
    }

    /// Smallest value of a channel. 0 if nothing was counted.
    #[must_use]
    pub fn min(&self, channel: usize) -> f64 {
        (0..=255).find(|&value| self.occurs(channel, value)).unwrap_or(0).into()
    }

    /// Largest value of a channel. 0 if nothing was counted.
    #[must_use]
    pub fn max(&self, channel: usize) -> f64 {
        (0..=255).rfind(|&value| self.occurs(channel, value)).unwrap_or(0).into()
    }

    fn occurs(&self, channel: usize, value: u8) -> bool {
        self.counts[channel][usize::from(value)] > 0
    }

    /// The number of values, their sum, and the sum of their squares.
    fn moments(&self, channel: usize) -> (u128, u128, u128) {
        let values = (0_u128..).zip(self.counts[channel]);
        values.fold((0, 0, 0), |(count, sum, squares), (value, n)| {
            let n = u128::from(n);
            (count + n, sum + n * value, squares + n * value * value)
        })
    }
}

/// The count of each value in each of `CHANNELS` channels, for fewer than 2^32 pixels. Bytes after the last whole pixel
/// are ignored.
pub(crate) fn counts<const CHANNELS: usize>(hwc: &[u8]) -> [[u32; 256]; CHANNELS] {
    let mut tables = [[[0_u32; 256]; CHANNELS]; TURNS];
    let (pixels, _) = hwc.as_chunks::<CHANNELS>();
    let (groups, rest) = pixels.as_chunks::<TURNS>();
    for group in groups {
        for (table, pixel) in tables.iter_mut().zip(group) {
            for (counts, &value) in table.iter_mut().zip(pixel) {
                counts[usize::from(value)] += 1;
            }
        }
    }
    for pixel in rest {
        for (counts, &value) in tables[0].iter_mut().zip(pixel) {
            counts[usize::from(value)] += 1;
        }
    }
    let [mut sums, others @ ..] = tables;
    for other in &others {
        let pairs = sums.as_flattened_mut().iter_mut().zip(other.as_flattened());
        for (sum, count) in pairs {
            *sum += count;
        }
    }
    sums
}

#[expect(clippy::cast_precision_loss, reason = "an exact integer is rounded only once")]
fn float(value: u128) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_has_zero_statistics() {
        let histogram = Histogram::new(3);
        assert_eq!((histogram.count(), histogram.mean(2), histogram.std(2)), (0, 0.0, 0.0));
        assert_eq!((histogram.min(0), histogram.max(0)), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn counts_equal_counting_one_by_one(data in proptest::collection::vec(any::<u8>(), 0..500), channels in 1_usize..5) {
            let mut histogram = Histogram::new(channels);
            histogram.add(&data);
            let whole = data.len() / channels * channels;
            for channel in 0..channels {
                let mut counts = [0; 256];
                data[..whole].iter().skip(channel).step_by(channels).for_each(|&v| counts[usize::from(v)] += 1);
                prop_assert_eq!(histogram.counts(channel), &counts);
            }
        }

        #[test]
        fn merging_parts_equals_counting_the_whole(data in proptest::collection::vec(any::<u8>(), 3..300), cut in 0_usize..100) {
            let cut = (cut * 3).min(data.len() / 3 * 3);
            let mut whole = Histogram::new(3);
            whole.add(&data);
            let (mut first, mut second) = (Histogram::new(3), Histogram::new(3));
            first.add(&data[..cut]);
            second.add(&data[cut..]);
            first.merge(&second);
            prop_assert_eq!(whole, first);
        }

        #[test]
        fn statistics_equal_the_two_pass_formulas(data in proptest::collection::vec(any::<u8>(), 1..300)) {
            let mut histogram = Histogram::new(1);
            histogram.add(&data);
            let n = f64::from(u32::try_from(data.len()).unwrap());
            let mean = data.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let variance = data.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            prop_assert!((histogram.mean(0) - mean).abs() < 1e-9);
            prop_assert!((histogram.std(0) - variance.sqrt()).abs() < 1e-9);
            prop_assert!((histogram.std_scaled(0) - variance.sqrt() / 255.0).abs() < 1e-9);
            let (min, max) = (*data.iter().min().unwrap(), *data.iter().max().unwrap());
            prop_assert!((histogram.min(0) - f64::from(min)).abs() < 1e-9);
            prop_assert!((histogram.max(0) - f64::from(max)).abs() < 1e-9);
        }
    }
}
