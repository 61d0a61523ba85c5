//! Labels in the lists that divide images with masks: `Abyssinian_1 1 1 1`, as in Oxford-IIIT Pet.

use std::collections::{BTreeMap, BTreeSet};

use super::super::column::{ColumnValues, SourceColumn};
use super::super::listing::{Labels, Listing};
use super::super::paths::{lossy, stem};
use super::super::table_note::TableNote;

/// Gives images with masks the numbers after their names in lists: the first number is the label, the others become fields. If each
/// label belongs to one word in the names of the files, this word is the class name, and the ids count from 0. Returns the note about
/// the labels. `None` if a listed image lacks a number, or if the images already have labels or other fields.
pub(super) fn add(listing: &mut Listing, numbers: &BTreeMap<usize, Vec<i64>>) -> Option<TableNote> {
    let n_columns = numbers.values().next()?.len();
    let are_even = n_columns > 0 && numbers.values().all(|own| own.len() == n_columns);
    let labels: BTreeSet<i64> = numbers.values().filter_map(|own| own.first().copied()).collect();
    let is_free = !listing.has_labels() && !listing.has_label_lists() && listing.columns.is_empty();
    if listing.masks.is_none() || !is_free || !are_even || labels.len() < 2 || labels.first().is_none_or(|id| *id < 0) {
        return None;
    }
    let (first, own) = numbers.first_key_value()?;
    let (image, number) = (lossy(&listing.paths.path(*first)), own[0]);
    let classes = classes(listing, numbers);
    let id_of: BTreeMap<i64, i64> = labels.iter().copied().zip(0..).collect();
    let id = |number: i64| if classes.is_empty() { Some(number) } else { id_of.get(&number).copied() };
    // Images in no list are not packed, so their values do not matter.
    let value = |idx: usize, column: usize| numbers.get(&idx).map_or(0, |own| own[column]);
    let ids: Vec<i64> = (0..listing.len()).map(|idx| id(value(idx, 0)).unwrap_or(0)).collect();
    for column in 1..n_columns {
        let values = ColumnValues::I64((0..listing.len()).map(|idx| value(idx, column)).collect());
        listing.columns.push(SourceColumn { name: format!("column_{}", column + 2), values });
    }
    let class = id(number).and_then(|id| classes.get(usize::try_from(id).ok()?)).map(|class| lossy(class));
    (listing.labels, listing.classes) = (Labels::PerSample(ids), classes);
    let fields = listing.columns.iter().map(|column| column.name.clone()).collect();
    Some(TableNote::ListLabels { image, number, class, fields })
}

/// The word before the number in the names of the images of each label, in the order of the labels. Empty if a label has no word or
/// several, or if two labels have the same.
fn classes(listing: &Listing, numbers: &BTreeMap<usize, Vec<i64>>) -> Vec<Vec<u8>> {
    let mut word_of: BTreeMap<i64, &[u8]> = BTreeMap::new();
    for (idx, own) in numbers {
        let word = word_before_number(stem(listing.paths.name(*idx)));
        if word.is_empty() || word_of.insert(own[0], word).is_some_and(|other| other != word) {
            return Vec::new();
        }
    }
    let different: BTreeSet<&&[u8]> = word_of.values().collect();
    if different.len() < word_of.len() { Vec::new() } else { word_of.into_values().map(<[u8]>::to_vec).collect() }
}

/// The name without the number at its end; empty if there is none.
fn word_before_number(name: &[u8]) -> &[u8] {
    let digits = name.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let word = &name[..name.len() - digits];
    let end = word.iter().rposition(|byte| !matches!(byte, b'_' | b'-' | b' ' | b'.')).map_or(0, |last| last + 1);
    if digits == 0 { b"" } else { &word[..end] }
}
