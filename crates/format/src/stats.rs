//! Statistics in the footer. See docs/reference/format.md, "Statistics".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The STATS section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Pixel statistics, by image field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, FieldStats>,
    /// Label statistics, by label field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, LabelStats>,
    /// Item sizes of variable-size fields, by field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, SizeStats>,
    /// Statistics of seek indexes, by the field that stores the indexes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seek: BTreeMap<String, SeekStats>,
}

/// Statistics of an image field's `u8` pixels, after resize and crop, before normalization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldStats {
    /// Number of pixels in each channel's histogram.
    pub n_pixels: u64,
    /// Mean of each channel, on a scale of 0 to 1.
    pub mean: Vec<f64>,
    /// Population standard deviation of each channel, on a scale of 0 to 1.
    pub std: Vec<f64>,
    /// Smallest value of each channel, 0 to 255.
    pub min: Vec<u8>,
    /// Largest value of each channel, 0 to 255.
    pub max: Vec<u8>,
    /// Count of each of the 256 values, for each channel.
    pub histogram: Vec<Vec<u64>>,
}

/// How the labels of a field are ordered in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelStats {
    /// Intra-chunk correlation of the label. `None` if undefined. See [`label_icc`].
    pub icc: Option<f64>,
}

impl LabelStats {
    /// Maximum correlation at which a file is considered shuffled.
    pub const SHUFFLED_ICC: f64 = 0.05;
}

/// Sizes of a field's stored items, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeStats {
    /// Size of the smallest item.
    pub min: u64,
    /// Mean size.
    pub mean: f64,
    /// Size of the largest item.
    pub max: u64,
    /// Total size of all items.
    pub total: u64,
}

/// Number and size of an image field's seek indexes, and the size of its images.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekStats {
    /// Number of images with an index.
    pub n_indexed: u64,
    /// Total size of all indexes.
    pub bytes: u64,
    /// Total size of all images, with or without an index.
    pub image_bytes: u64,
}

/// Class names and counts of one label field. The CLASSES section is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Classes {
    /// The label field.
    pub field: String,
    /// The name of each class id.
    pub names: Vec<String>,
    /// Number of samples of each class id.
    pub counts: Vec<u64>,
}

/// Intra-chunk correlation of class labels, for chunks of `chunk_samples` samples: how much more likely two samples are
/// to have equal labels if they are in the same chunk. It is about 0 for a random order, and 1 if each chunk has a
/// single class.
///
/// The value is `(w - t) / (1 - t)`. Here `w` is the fraction of equal labels among all pairs of samples in the same
/// chunk, and `t` is the fraction of equal labels among all pairs. This is the one-way ANOVA intraclass correlation of
/// the class indicators, pooled over classes. The result is `None` if all labels are equal, or if no chunk has two
/// samples.
#[must_use]
pub fn label_icc(labels: impl Iterator<Item = i64>, chunk_samples: u32) -> Option<f64> {
    let mut all: BTreeMap<i64, u64> = BTreeMap::new();
    let (mut equal_within, mut pairs_within, mut n) = (0_u128, 0_u128, 0_u64);
    let mut chunk: BTreeMap<i64, u64> = BTreeMap::new();
    let pairs = |n: u64| u128::from(n) * u128::from(n.saturating_sub(1));
    let mut close = |chunk: &mut BTreeMap<i64, u64>| {
        equal_within += chunk.values().map(|&c| pairs(c)).sum::<u128>();
        pairs_within += pairs(chunk.values().sum());
        chunk.clear();
    };
    for label in labels {
        *all.entry(label).or_default() += 1;
        *chunk.entry(label).or_default() += 1;
        n += 1;
        if n.is_multiple_of(chunk_samples.into()) {
            close(&mut chunk);
        }
    }
    close(&mut chunk);
    let equal_all: u128 = all.values().map(|&c| pairs(c)).sum();
    if pairs_within == 0 || equal_all == pairs(n) {
        return None;
    }
    let within = ratio(equal_within, pairs_within);
    let total = ratio(equal_all, pairs(n));
    Some((within - total) / (1.0 - total))
}

/// A ratio of counts. Counts above 2^53 are rounded, but this error is negligible in a statistic.
#[expect(clippy::cast_precision_loss, reason = "a ratio does not need more than 53 bits")]
fn ratio(part: u128, whole: u128) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_sorted_labels_have_icc_1_and_interleaved_ones_less_than_0() {
        let sorted = (0..10).flat_map(|class| std::iter::repeat_n(class, 64));
        assert_eq!(label_icc(sorted, 64), Some(1.0));
        let dealt = (0..640).map(|i| i % 10);
        assert!(label_icc(dealt, 64).unwrap().abs() < 0.02);
    }

    #[test]
    fn icc_is_none_where_it_means_nothing() {
        assert_eq!(label_icc([3; 100].into_iter(), 10), None);
        assert_eq!(label_icc(0..100, 1), None);
        assert_eq!(label_icc(std::iter::empty(), 64), None);
    }
}
