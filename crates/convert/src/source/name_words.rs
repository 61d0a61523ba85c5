//! Finds words in the names of unlabelled images that may be the labels, as in `cat.0.jpg`.

use std::collections::BTreeSet;

use super::listing::{Labels, Listing, SourceKind};
use super::paths::stem;
use super::warning::Warning;

/// Minimum number of images. With fewer, equal words may be chance.
const MIN_IMAGES: usize = 4;

/// The warning about unlabelled or single-class images whose names seem to contain labels: several leading numbers, or leading words that recur
/// twice or more on average.
pub(super) fn find(listing: &Listing) -> Option<Warning> {
    let is_flat = listing.kind() == SourceKind::FlatFolder && matches!(listing.labels, Labels::None);
    let is_flat = is_flat || listing.has_one_folder();
    let is_told = |warning: &Warning| {
        matches!(warning, Warning::MarkedNames { .. } | Warning::SameStems { .. } | Warning::FewMasks { .. })
    };
    let has_other_marks = listing.warnings.iter().any(is_told);
    if !is_flat || has_other_marks || listing.masks.is_some() || listing.len() < MIN_IMAGES {
        return None;
    }
    if (0..listing.len()).all(|idx| has_numbers(listing.paths.name(idx))) {
        let image = listing.paths.name(0);
        return Some(Warning::LabelsInNames { word: first_word(image)?.to_vec(), image: image.to_vec() });
    }
    let mut words = BTreeSet::new();
    for idx in 0..listing.len() {
        words.insert(first_word(listing.paths.name(idx))?);
        if 2 * words.len() > listing.len() {
            return None;
        }
    }
    let image = listing.paths.name(0);
    let word = first_word(image)?.to_vec();
    (words.len() > 1).then(|| Warning::LabelsInNames { word, image: image.to_vec() })
}

/// Whether a name begins with three short numbers, as in `25_0_2_20170116.jpg`, where they are age, gender and race.
fn has_numbers(name: &[u8]) -> bool {
    let mut parts = stem(name).split(|byte| matches!(byte, b'_' | b'-'));
    let is_number = |part: &[u8]| (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    (0..3).all(|_| parts.next().is_some_and(is_number)) && parts.next().is_some()
}

/// The part of a name before its first separator.
fn first_word(name: &[u8]) -> Option<&[u8]> {
    let stem = stem(name);
    let end = stem.iter().position(|byte| matches!(byte, b'.' | b'_' | b'-' | b' '))?;
    Some(&stem[..end])
}
