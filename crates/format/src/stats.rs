//! What the footer says about the data: exact counts and what follows from them. docs/reference/format.md, "Statistics".

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The STATS section.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// Pixel statistics by the name of the image field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub fields: BTreeMap<String, FieldStats>,
    /// Label statistics by the name of the label field.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, LabelStats>,
    /// Sizes of the items of variable-size fields.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sizes: BTreeMap<String, SizeStats>,
    /// Seek indexes by the name of the field that holds them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seek: BTreeMap<String, SeekStats>,
}

/// Statistics of the `u8` pixels of an image field after resize and crop, before normalization.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FieldStats {
    /// How many pixels each channel's histogram counts.
    pub n_pixels: u64,
    /// Mean of each channel, scaled to 0..1.
    pub mean: Vec<f64>,
    /// Population standard deviation of each channel, scaled to 0..1.
    pub std: Vec<f64>,
    /// Smallest value of each channel, 0 to 255.
    pub min: Vec<u8>,
    /// Largest value of each channel, 0 to 255.
    pub max: Vec<u8>,
    /// How often each of the 256 values occurs, for each channel.
    pub histogram: Vec<Vec<u64>>,
}

/// How the labels lie in the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabelStats {
    /// Intra-chunk correlation of the label, see [`label_icc`]; none where it is not defined.
    pub icc: Option<f64>,
}

impl LabelStats {
    /// Correlations up to this are those of a shuffled file.
    pub const SHUFFLED_ICC: f64 = 0.05;
}

/// Sizes of the stored items of a field, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeStats {
    /// The smallest item.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The largest item.
    pub max: u64,
    /// All items together.
    pub total: u64,
}

/// The seek indexes of an image field's items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeekStats {
    /// Samples whose image has an index.
    pub n_indexed: u64,
    /// Bytes of all indexes together.
    pub bytes: u64,
    /// Bytes of all images together, those without an index as well.
    pub image_bytes: u64,
}

/// Class names and counts of one label field; the CLASSES section is a list of these.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Classes {
    /// The label field.
    pub field: String,
    /// The name of each class id.
    pub names: Vec<String>,
    /// How many samples each class id has.
    pub counts: Vec<u64>,
}

/// Intra-chunk correlation of class labels that lie in chunks of `chunk_samples`: by how much likelier two different
/// samples of one chunk share a label than two samples of the whole set, on a scale where 0 is a random order and 1
/// is one class a chunk.
///
/// `(w - t) / (1 - t)` with `w` the share of equal pairs within chunks and `t` the share of equal pairs overall: the
/// one-way ANOVA intraclass correlation of the class indicators, pooled over classes. Not defined, hence none, for one
/// class only or for chunks of one sample.
#[must_use]
pub fn label_icc(labels: impl Iterator<Item = i64>, chunk_samples: u32) -> Option<f64> {
    let mut all: BTreeMap<i64, u64> = BTreeMap::new();
    let (mut equal_within, mut pairs_within, mut n) = (0_u128, 0_u128, 0_u64);
    let mut chunk: BTreeMap<i64, u64> = BTreeMap::new();
    let mut in_chunk = 0_u64;
    let pairs = |n: u64| u128::from(n) * u128::from(n.saturating_sub(1));
    let mut close = |chunk: &mut BTreeMap<i64, u64>, in_chunk: &mut u64| {
        equal_within += chunk.values().map(|&c| pairs(c)).sum::<u128>();
        pairs_within += pairs(*in_chunk);
        chunk.clear();
        *in_chunk = 0;
    };
    for label in labels {
        *all.entry(label).or_default() += 1;
        *chunk.entry(label).or_default() += 1;
        n += 1;
        in_chunk += 1;
        if in_chunk == u64::from(chunk_samples) {
            close(&mut chunk, &mut in_chunk);
        }
    }
    close(&mut chunk, &mut in_chunk);
    let equal_all: u128 = all.values().map(|&c| pairs(c)).sum();
    if pairs_within == 0 || equal_all == pairs(n) {
        return None;
    }
    let within = ratio(equal_within, pairs_within);
    let total = ratio(equal_all, pairs(n));
    Some((within - total) / (1.0 - total))
}

/// A quotient of counts; counts beyond 2^53 lose digits that a statistic does not need.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than 53 bits"
)]
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
