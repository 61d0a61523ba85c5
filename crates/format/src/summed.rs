//! Compares what the manifest of a set says about all samples with what its shards say.

use crate::file::PackFile;
use crate::manifest::Manifest;
use crate::stats::{FieldStats, SizeStats};
use crate::{Classes, FormatError, Stats};

/// Larger differences between means, on a scale of 0 to 1, are not due to rounding.
const ROUNDING: f64 = 1e-6;

/// What differs. Sums are compared only if all shards could be opened. Damage of a shard is reported elsewhere.
pub(crate) fn check<D: AsRef<[u8]>>(manifest: &Manifest, files: &[(&str, &PackFile<D>)]) -> Vec<FormatError> {
    let classes = files.iter().map(|(shard, file)| Some((*shard, file.classes().ok()?)));
    let classes: Vec<(&str, Vec<Classes>)> = classes.flatten().collect();
    let mut reasons: Vec<String> =
        classes.iter().filter_map(|(shard, own)| other_names(manifest, shard, own)).collect();
    let is_complete = |n: usize| n == manifest.shards.len();
    if is_complete(classes.len()) && reasons.is_empty() {
        reasons.extend(manifest.classes.iter().filter_map(|of_set| other_count(of_set, &classes)));
    }
    let stats: Vec<Stats> = files.iter().filter_map(|(_, file)| file.stats().ok()).collect();
    if is_complete(stats.len()) {
        reasons.extend(other_stats(&manifest.stats, &stats));
    }
    reasons.into_iter().map(|reason| FormatError::BadManifest { reason }).collect()
}

/// The classes of each shard are the first classes of the set.
fn other_names(manifest: &Manifest, shard: &str, own: &[Classes]) -> Option<String> {
    own.iter().find_map(|own| {
        let field = &own.field;
        let Some(of_set) = manifest.classes.iter().find(|of_set| of_set.field == *field) else {
            return Some(format!("expected the classes of `{field}`, as in the shard '{shard}', found none"));
        };
        let place = own.names.iter().enumerate().find(|(place, name)| of_set.names.get(*place) != Some(name));
        place.map(|(place, name)| {
            let found = of_set.names.get(place).map_or_else(|| "none".to_owned(), |name| quoted(name));
            format!("class {place} of `{field}`: expected {}, as in the shard '{shard}', found {found}", quoted(name))
        })
    })
}

/// Adds up the counts, if all shards have them.
fn other_count(of_set: &Classes, shards: &[(&str, Vec<Classes>)]) -> Option<String> {
    let mut sums = vec![0_u64; of_set.names.len()];
    for (_, classes) in shards {
        let own = classes.iter().find(|own| own.field == of_set.field)?;
        for (sum, count) in sums.iter_mut().zip(&own.counts) {
            *sum = sum.saturating_add(*count);
        }
    }
    let counts = of_set.counts.iter().zip(&sums).zip(&of_set.names);
    let mut other = counts.filter(|((found, expected), _)| found != expected);
    other.next().map(|((found, expected), name)| {
        let field = &of_set.field;
        format!("samples of {} in `{field}`: expected {expected}, as in the shards, found {found}", quoted(name))
    })
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.escape_debug())
}

/// Compares the statistics that all shards have.
fn other_stats(of_set: &Stats, shards: &[Stats]) -> Vec<String> {
    let mut reasons = Vec::new();
    let names = shards.first().map(|first| (first.fields.keys(), first.sizes.keys()));
    let (pixels, sizes) = names.map_or((None, None), |(pixels, sizes)| (Some(pixels), Some(sizes)));
    for field in pixels.into_iter().flatten() {
        let Some(own) = shards.iter().map(|stats| stats.fields.get(field)).collect::<Option<Vec<_>>>() else {
            continue;
        };
        reasons.extend(match of_set.fields.get(field) {
            None => Some(format!("expected statistics of the pixels of `{field}`, as in the shards, found none")),
            Some(found) => other_pixels(field, found, &own),
        });
    }
    for field in sizes.into_iter().flatten() {
        let Some(own) = shards.iter().map(|stats| stats.sizes.get(field)).collect::<Option<Vec<_>>>() else { continue };
        let expected = own.iter().fold(0_u64, |sum, sizes| sum.saturating_add(sizes.total));
        let found = of_set.sizes.get(field).map_or(0, |sizes: &SizeStats| sizes.total);
        if found != expected {
            reasons.push(format!("bytes of `{field}`: expected {expected}, as in the shards, found {found}"));
        }
    }
    reasons
}

/// Compares only with numbers that follow from the histograms of the shards, because sets are counted from these.
fn other_pixels(field: &str, found: &FieldStats, own: &[&FieldStats]) -> Option<String> {
    let is_counted = |stats: &&FieldStats| {
        let sum = |counts: &Vec<u64>| counts.iter().fold(0_u64, |sum, count| sum.saturating_add(*count));
        stats.histogram.iter().all(|counts| sum(counts) == stats.n_pixels)
    };
    if !own.iter().all(is_counted) {
        return None;
    }
    let n_pixels = own.iter().fold(0_u64, |sum, stats| sum.saturating_add(stats.n_pixels));
    if found.n_pixels != n_pixels {
        let found = found.n_pixels;
        return Some(format!("pixels of `{field}`: expected {n_pixels}, as in the shards, found {found}"));
    }
    if n_pixels == 0 {
        return None;
    }
    let n_channels = own.iter().map(|stats| stats.mean.len()).max().unwrap_or(0);
    (0..n_channels).find_map(|channel| {
        let at = |values: &[f64]| values.get(channel).copied().unwrap_or(f64::NAN);
        let mean = mean_of(own, |stats| at(&stats.mean));
        let square = mean_of(own, |stats| at(&stats.std).powi(2) + at(&stats.mean).powi(2));
        let std = (square - mean * mean).max(0.0).sqrt();
        let differs = [("mean", mean, at(&found.mean)), ("std", std, at(&found.std))];
        // A missing number differs too.
        let is_other = |expected: f64, found: f64| {
            let by = (expected - found).abs();
            by.is_nan() || by > tolerance(expected)
        };
        let other = differs.into_iter().find(|(_, expected, found)| is_other(*expected, *found));
        other.map(|(what, expected, found)| {
            format!("{what} of channel {channel} of `{field}`: expected {expected}, as in the shards, found {found}")
        })
    })
}

/// The square root in a standard deviation makes the rounding of small values larger.
fn tolerance(expected: f64) -> f64 {
    ROUNDING.max(1e-14 / expected.abs().max(1e-9))
}

#[expect(clippy::cast_precision_loss, reason = "a statistic needs no more than 53 bits")]
fn mean_of(own: &[&FieldStats], value: impl Fn(&FieldStats) -> f64) -> f64 {
    let n: f64 = own.iter().map(|stats| stats.n_pixels as f64).sum();
    own.iter().map(|stats| stats.n_pixels as f64 * value(stats)).sum::<f64>() / n
}
