//! Joins the tables of a folder that each have one row for each image.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use super::ListOptions;
use super::column::{ColumnValues, SourceColumn};
use super::folder_tables::{self, MAX_TABLES};
use super::listing::{Images, Listing};
use super::roles::SPLIT_COLUMN_NAMES;
use super::split::lists::Division;
use super::table_note::TableNote;
use super::warning::Warning;
use crate::error::ConvertError;

/// The splits that the numbers from 0 stand for.
const SPLITS: [&str; 3] = ["train", "val", "test"];

/// The listing of the first table that has a row for each of `n` images, joined with the other such tables. Also
/// returns the paths of the joined tables. `None` if there are fewer than two such tables.
///
/// # Errors
/// If a label column is chosen, and no table with this column has a row for each image: the first error of these
/// tables.
pub(super) fn all(
    tables: &[PathBuf],
    n: usize,
    options: &ListOptions,
) -> Option<Result<(Listing, Vec<PathBuf>), ConvertError>> {
    let own = ListOptions { leave_out: Vec::new(), ..options.clone() };
    let mut wrong = None;
    for table in tables.iter().take(MAX_TABLES) {
        let listing = match folder_tables::list(table, &own)? {
            Ok(listing) => listing,
            Err(ConvertError::KeyMissing { .. }) => continue,
            Err(error) => {
                wrong.get_or_insert(error);
                continue;
            }
        };
        if listing.len() != n || !is_complete(&listing) {
            continue;
        }
        let (mut listing, mut read) = (listing, vec![table.clone()]);
        join(&mut listing, &mut read, tables, options);
        let has = |name: &String| listing.columns.iter().any(|column| column.name == *name);
        if read.len() < 2 || !options.leave_out.iter().all(has) {
            return None;
        }
        listing.columns.retain(|column| !options.is_left_out(&column.name));
        return Some(Ok((listing, read)));
    }
    wrong.filter(|_| options.label_key.is_some() && tables.len() > 1).map(Err)
}

/// Adds the columns of other tables to the listing of the first table in `read`, and the joined tables to `read`. A
/// table is joined if it has one row for each image, no labels, no masks, and no column whose name the listing already
/// uses for other values.
pub(super) fn join(listing: &mut Listing, read: &mut Vec<PathBuf>, tables: &[PathBuf], options: &ListOptions) {
    let is_left_out = |column: &SourceColumn| options.is_left_out(&column.name);
    let options = &ListOptions { label_key: None, leave_out: Vec::new(), ..options.clone() };
    let name = |table: &PathBuf| table.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
    let names = |listing: &Listing| listing.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
    let mut joined = vec![(read.first().map(name).unwrap_or_default(), names(listing))];
    for table in tables.iter().take(MAX_TABLES) {
        if read.contains(table) {
            continue;
        }
        let Some(other) = folder_tables::list_whole(table, options).filter(is_complete) else { continue };
        let has_labels = other.has_labels() || other.has_label_lists() || other.has_masks();
        let Some(places) = places(listing, &other).filter(|_| !has_labels) else { continue };
        let column =
            |column: &SourceColumn| SourceColumn { name: column.name.clone(), values: column.values.picked(&places) };
        // A column with the same values, such as the ids, is only a repetition.
        let new = other.columns.iter().map(column).filter(|column| !listing.columns.contains(column));
        let new: Vec<SourceColumn> = new.collect();
        let is_named = |column: &SourceColumn| listing.columns.iter().any(|own| own.name == column.name);
        if new.is_empty() || new.iter().any(is_named) {
            continue;
        }
        joined.push((name(table), new.iter().map(|column| column.name.clone()).collect()));
        read.push(table.clone());
        listing.columns.extend(new);
        let has_labels = listing.has_labels() || listing.has_label_lists();
        let is_new = |warning: &&Warning| match warning {
            Warning::NoLabels { .. } => !has_labels,
            Warning::FilesLocated { .. } | Warning::NearNames { .. } => false,
            _ => true,
        };
        let new: Vec<Warning> = other.warnings.iter().filter(is_new).cloned().collect();
        listing.warnings.extend(new);
    }
    if joined.len() > 1 {
        let find = |is_one: &dyn Fn(&SourceColumn) -> bool| {
            listing
                .columns
                .iter()
                .find(|column| is_one(column) && !is_left_out(column))
                .map(|column| column.name.clone())
        };
        let (signs, splits) = (find(&are_signs), find(&are_splits));
        listing.warnings.push(Warning::Table(TableNote::Joined { tables: joined, signs, splits, are_read: false }));
    }
}

/// The splits of a joined table, such as `list_eval_partition.csv` of CelebA: the numbers 0, 1 and 2 in its column mean train, val
/// and test. `None` if the listing has no such column, or if one of these numbers does not occur.
pub(super) fn division(listing: &mut Listing) -> Option<Division> {
    let note = listing.warnings.iter_mut().find_map(|warning| match warning {
        Warning::Table(TableNote::Joined { splits: Some(splits), are_read, .. }) => Some((splits, are_read)),
        _ => None,
    });
    let (name, are_read) = note?;
    let column = listing.columns.iter().position(|column| column.name == *name)?;
    let ColumnValues::I64(numbers) = &listing.columns[column].values else { return None };
    let mut splits: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (idx, number) in numbers.iter().enumerate() {
        let split = SPLITS.get(usize::try_from(*number).ok()?)?;
        splits.entry((*split).to_owned()).or_default().push(idx);
    }
    if splits.len() < SPLITS.len() {
        return None;
    }
    *are_read = true;
    listing.columns.remove(column);
    Some(Division::new(splits))
}

/// Whether all images of a table are files that exist, and each of its columns is a `SourceColumn`, which can be
/// joined.
fn is_complete(listing: &Listing) -> bool {
    matches!(listing.images, Images::Files) && listing.faults.is_empty() && listing.fields.is_empty()
}

/// For each image of `listing`, its position in `other`. `None` unless both have the same images, each exactly once.
fn places(listing: &Listing, other: &Listing) -> Option<Vec<usize>> {
    if listing.root() != other.root() || listing.len() != other.len() {
        return None;
    }
    let place: HashMap<Vec<u8>, usize> = (0..other.len()).map(|idx| (other.paths.path(idx), idx)).collect();
    let places: Vec<usize> =
        (0..listing.len()).map(|idx| place.get(&listing.paths.path(idx)).copied()).collect::<Option<_>>()?;
    (places.iter().collect::<HashSet<_>>().len() == other.len()).then_some(places)
}

/// Whether a column has only the values -1 and 1.
fn are_signs(column: &SourceColumn) -> bool {
    let ColumnValues::I64(values) = &column.values else { return false };
    values.contains(&-1) && values.iter().all(|value| value.abs() == 1)
}

/// Whether a column has a name used for splits and only the values 0, 1 and 2.
fn are_splits(column: &SourceColumn) -> bool {
    let ColumnValues::I64(values) = &column.values else { return false };
    let is_named = SPLIT_COLUMN_NAMES.iter().any(|name| name.eq_ignore_ascii_case(&column.name));
    is_named && values.contains(&1) && values.iter().all(|value| (0..3).contains(value))
}
