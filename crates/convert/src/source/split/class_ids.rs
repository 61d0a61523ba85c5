//! Class ids of one split of a source that do not depend on which split is listed.

use std::collections::BTreeSet;

use super::super::ListOptions;
use super::super::listing::Listing;
use super::super::shards::Shards;
use super::super::table_note::TableNote;
use super::super::warning::Warning;
use super::give_classes;
use crate::formats::ClassNames;

/// Gives the classes of a split, which are the strings of `field`, the ids that they have among the classes of all splits. `others` are
/// the other splits. If their classes cannot be read without all their fields, a warning says so.
pub(in crate::source) fn agree(
    listing: &mut Listing,
    field: &str,
    (others, class_names): (&[&Shards], ClassNames),
    options: &ListOptions,
) {
    let own: BTreeSet<Vec<u8>> = listing.classes.iter().cloned().collect();
    let mut all = own.clone();
    for part in others {
        // Errors in another split are reported when it is converted.
        let Ok(Some(names)) = class_names(part, options, field) else {
            let split = part.split.clone().unwrap_or_default();
            return listing.warnings.push(Warning::Table(TableNote::OwnIds { other: split }));
        };
        all.extend(names);
    }
    let all: Vec<Vec<u8>> = all.into_iter().collect();
    let mut empty = (0_i64..).zip(&all).filter(|(_, class)| !own.contains(*class));
    if let Some((id, first)) = empty.next() {
        let count = 1 + u64::try_from(empty.count()).unwrap_or(u64::MAX);
        listing.warnings.push(Warning::EmptyClasses { count, first: first.clone(), id });
    }
    give_classes(listing, &all);
}
