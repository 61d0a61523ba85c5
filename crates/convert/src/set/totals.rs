//! The statistics of a set after a shard was added. They are computed from the statistics of both.

use std::collections::BTreeMap;

use packds_format::{Classes, LabelStats, Manifest, SeekStats, ShardEntry, SizeStats, Stats};

use crate::edit::pixels_of_all;

/// Adds a shard to its set, and its statistics and classes to those of the set.
pub(crate) fn add(
    manifest: &mut Manifest,
    entry: ShardEntry,
    classes: &[Classes],
    stats: &Stats,
    warnings: &mut Vec<String>,
) {
    if manifest.shards.is_empty() {
        manifest.stats = stats.clone();
        manifest.classes = classes.to_vec();
        manifest.shards.push(entry);
        return;
    }
    let lens: Vec<u64> = manifest.shards.iter().map(|shard| shard.n_samples).collect();
    let before = std::mem::take(&mut manifest.stats);
    let both = [before, stats.clone()];
    let [before, _] = &both;
    let mut sum = Stats::default();
    for field in before.fields.keys() {
        match pixels_of_all(&both, field) {
            Some(pixels) => drop(sum.fields.insert(field.clone(), pixels)),
            None => warnings.push(format!(
                "the set has no statistics of the pixels of `{field}` any more, because the new pack has none"
            )),
        }
    }
    for (field, one) in &before.sizes {
        let other = stats.sizes.get(field);
        sum.sizes.insert(field.clone(), other.map_or_else(|| one.clone(), |other| sizes(one, other)));
    }
    for (field, one) in &before.seek {
        let other = stats.seek.get(field).copied().unwrap_or_default();
        let seek = SeekStats {
            n_indexed: one.n_indexed + other.n_indexed,
            bytes: one.bytes + other.bytes,
            image_bytes: one.image_bytes + other.image_bytes,
        };
        sum.seek.insert(field.clone(), seek);
    }
    let chunk_samples = u64::from(manifest.chunk_samples);
    for (field, one) in &before.labels {
        let other = stats.labels.get(field).and_then(|label| label.icc);
        let old = counts_of(&manifest.classes, field);
        let new = counts_of(classes, field);
        let of_set = Labels { icc: one.icc, counts: old, pairs: pairs_in_chunks(lens.iter().copied(), chunk_samples) };
        let pairs = pairs_in_chunks([entry.n_samples].into_iter(), chunk_samples);
        let of_shard = Labels { icc: other, counts: new, pairs };
        sum.labels.insert(field.clone(), LabelStats { icc: joined_icc(&of_set, &of_shard) });
    }
    manifest.stats = sum;
    add_counts(&mut manifest.classes, classes);
    manifest.shards.push(entry);
}

fn counts_of<'a>(classes: &'a [Classes], field: &str) -> &'a [u64] {
    classes.iter().find(|classes| classes.field == field).map_or(&[], |classes| &classes.counts)
}

/// Adds up the samples of each class. New classes follow those of the set.
fn add_counts(all: &mut [Classes], new: &[Classes]) {
    let new: BTreeMap<&str, &Classes> = new.iter().map(|classes| (classes.field.as_str(), classes)).collect();
    for classes in all {
        let Some(other) = new.get(classes.field.as_str()) else { continue };
        let more = other.names.get(classes.names.len()..).unwrap_or_default();
        classes.names.extend_from_slice(more);
        classes.counts.resize(classes.names.len(), 0);
        for (count, more) in classes.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }
}

fn sizes(one: &SizeStats, other: &SizeStats) -> SizeStats {
    let n = |sizes: &SizeStats| if sizes.mean > 0.0 { to_f64(sizes.total) / sizes.mean } else { 0.0 };
    let total = one.total + other.total;
    let all = n(one) + n(other);
    SizeStats {
        min: one.min.min(other.min),
        mean: if all > 0.0 { to_f64(total) / all } else { 0.0 },
        max: one.max.max(other.max),
        total,
    }
}

/// A number for statistics.
#[expect(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
fn to_f64(n: u64) -> f64 {
    n as f64
}

/// The labels of some samples.
struct Labels<'a> {
    icc: Option<f64>,
    /// Number of samples of each class.
    counts: &'a [u64],
    /// Number of ordered pairs of samples in the same chunk.
    pairs: f64,
}

impl Labels<'_> {
    /// The fraction of equal labels among all pairs, and among pairs in the same chunk. `None` if unknown.
    fn fractions(&self) -> Option<(f64, f64)> {
        let all = equal(self.counts.iter().copied())?;
        match self.icc {
            Some(icc) => Some((all, icc * (1.0 - all) + all)),
            None if all >= 1.0 => Some((1.0, 1.0)),
            None => None,
        }
    }
}

/// The fraction of equal pairs among all pairs of samples in classes of these sizes.
fn equal(counts: impl Iterator<Item = u64> + Clone) -> Option<f64> {
    let n: f64 = counts.clone().map(to_f64).sum();
    let same: f64 = counts.map(|n| to_f64(n) * (to_f64(n) - 1.0)).sum();
    (n > 1.0).then(|| same / (n * (n - 1.0)))
}

fn pairs_in_chunks(lens: impl Iterator<Item = u64>, chunk_samples: u64) -> f64 {
    let pairs = |n: u64| to_f64(n) * (to_f64(n) - 1.0);
    lens.map(|n| {
        let rest = n % chunk_samples;
        to_f64(n / chunk_samples) * pairs(chunk_samples) + if rest > 0 { pairs(rest) } else { 0.0 }
    })
    .sum()
}

/// The intra-chunk correlation of both together. See [`packds_format::label_icc`].
fn joined_icc(one: &Labels<'_>, other: &Labels<'_>) -> Option<f64> {
    let ((_, of_one), (_, of_other)) = (one.fractions()?, other.fractions()?);
    let pairs = one.pairs + other.pairs;
    let n = one.counts.len().max(other.counts.len());
    let count = |counts: &[u64], id: usize| counts.get(id).copied().unwrap_or(0);
    let all = equal((0..n).map(|id| count(one.counts, id) + count(other.counts, id)))?;
    if pairs <= 0.0 || all >= 1.0 {
        return None;
    }
    let within = (of_one * one.pairs + of_other * other.pairs) / pairs;
    Some((within - all) / (1.0 - all))
}

#[cfg(test)]
mod tests {
    use packds_format::label_icc;

    use super::*;

    #[test]
    fn the_correlation_of_two_parts_is_that_of_all_labels() {
        let (one, other): (Vec<i64>, Vec<i64>) =
            ((0..640).map(|i| i / 100 % 4).collect(), (0..128).map(|i| i % 5).collect());
        let counts = |labels: &[i64]| -> Vec<u64> {
            (0..5).map(|id| labels.iter().map(|label| u64::from(*label == id)).sum()).collect()
        };
        let (a, b) = (counts(&one), counts(&other));
        let of = |labels: &[i64]| label_icc(labels.iter().copied(), 64);
        let pairs = |labels: &[i64]| pairs_in_chunks([u64::try_from(labels.len()).unwrap()].into_iter(), 64);
        let found = joined_icc(
            &Labels { icc: of(&one), counts: &a, pairs: pairs(&one) },
            &Labels { icc: of(&other), counts: &b, pairs: pairs(&other) },
        );
        let expected = of(&[one, other].concat()).unwrap();
        assert!((found.unwrap() - expected).abs() < 1e-12, "{found:?} {expected}");
    }
}
