//! JSON files next to images, such as `x.json` or `x.jpg.json` next to `x.jpg`, as download tools write them. Their values become
//! columns.
//!
//! `captions` reads the text files next to images.

use std::path::PathBuf;

use packds_system::to_u64;
use serde_json::{Map, Value};

use super::captions::{MAX_FIRST, are_nearly_all, short_file};
use super::column::SourceColumn;
use super::found::rename_taken;
use super::listing::Listing;
use super::paths::{as_path, stem};
use super::roles::is_label_name;
use super::rows::Cell;
use super::unread::take_others;
use super::values::KindsSeen;
use super::warning::Warning;
use crate::error::ConvertError;

/// Maximum number of keys. If there are more, the files are not per-image metadata.
const MAX_KEYS: usize = 256;

/// Adds a column for each key in the JSON files next to the images, if nearly every image has a JSON object.
pub(super) fn add(listing: &mut Listing) -> Result<(), ConvertError> {
    let n_first = listing.len().min(MAX_FIRST);
    let n_there = (0..n_first).filter(|idx| path_of(listing, *idx).is_some()).count();
    if !are_nearly_all(n_there, n_first) {
        return Ok(());
    }
    let Keys { keys, n_objects, n_files, first } = Keys::of(listing)?;
    take_others(&mut listing.warnings, "json", n_files, |_| true);
    if keys.is_empty() || keys.len() > MAX_KEYS || !are_nearly_all(n_objects, listing.len()) {
        listing.warnings.push(Warning::JsonUnread { count: n_files, first });
        return Ok(());
    }
    let is_taken = |name: &String| listing.columns.iter().any(|column| column.name == *name);
    let (taken, keys): (Vec<Key>, Vec<Key>) = keys.into_iter().partition(|key| is_taken(&key.name));
    let column = |key: &Key| SourceColumn { name: key.name.clone(), values: key.kinds.column_as(None) };
    let mut columns: Vec<SourceColumn> = keys.iter().map(column).collect();
    for idx in 0..listing.len() {
        let object = object_of(listing, idx)?.unwrap_or_default();
        for column in &mut columns {
            let cell = object.get(&column.name).map_or(Cell::Missing, Cell::Json);
            if !column.values.push(cell) {
                let reason = "the .json files next to the images changed while they were read";
                return Err(ConvertError::malformed(&listing.file_path(idx), "", reason));
            }
        }
    }
    let fields: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let is_unlabelled = !listing.has_labels() && !listing.has_label_lists();
    let label = fields.iter().find(|name| is_unlabelled && is_label_name(name)).cloned();
    let missing = to_u64(listing.len() - n_objects);
    listing.columns.extend(columns);
    listing.ignored = listing.ignored.saturating_sub(n_files);
    listing.warnings.push(Warning::JsonFields { fields, label, missing });
    let reason = "the .txt files next to the images already give this field".to_owned();
    let left_out = taken.into_iter().map(|key| Warning::LeftOut { field: key.name, reason: reason.clone() });
    listing.warnings.extend(left_out);
    rename_taken(listing);
    Ok(())
}

/// A key and the kinds of its values.
struct Key {
    name: String,
    kinds: KindsSeen,
    /// Number of values.
    n: usize,
}

/// The keys of all objects.
struct Keys {
    keys: Vec<Key>,
    n_objects: usize,
    n_files: u64,
    /// The first file.
    first: Vec<u8>,
}

impl Keys {
    /// Reads the objects of all images. Stops counting keys if there are too many.
    fn of(listing: &Listing) -> Result<Self, ConvertError> {
        let mut found = Self { keys: Vec::new(), n_objects: 0, n_files: 0, first: Vec::new() };
        for idx in 0..listing.len() {
            let Some(path) = path_of(listing, idx) else { continue };
            if found.n_files == 0 {
                let path = path.strip_prefix(listing.root()).unwrap_or(&path);
                found.first = path.as_os_str().as_encoded_bytes().to_vec();
            }
            found.n_files += 1;
            let Some(object) = object_of(listing, idx)? else { continue };
            found.n_objects += 1;
            for (name, value) in object.iter().filter(|(name, _)| !name.is_empty()) {
                let n = found.keys.len();
                let place = found.keys.iter().position(|key| key.name == *name).unwrap_or(n);
                if place == n && n <= MAX_KEYS {
                    found.keys.push(Key { name: name.clone(), kinds: KindsSeen::default(), n: 0 });
                }
                if let Some(key) = found.keys.get_mut(place) {
                    key.kinds.observe(Cell::Json(value));
                    key.n += 1;
                }
            }
        }
        for key in found.keys.iter_mut().filter(|key| key.n < listing.len()) {
            key.kinds.observe(Cell::Missing);
        }
        Ok(found)
    }
}

/// The JSON file of an image.
fn path_of(listing: &Listing, idx: usize) -> Option<PathBuf> {
    let (path, name) = (listing.file_path(idx), listing.paths.name(idx));
    let beside = |name: &[u8]| path.with_file_name(as_path(&[name, b".json"].concat()));
    [beside(stem(name)), beside(name)].into_iter().find(|path| path.is_file())
}

/// The object in the JSON file of an image. `None` if the file does not exist or does not hold an object.
fn object_of(listing: &Listing, idx: usize) -> Result<Option<Map<String, Value>>, ConvertError> {
    let Some(path) = path_of(listing, idx) else { return Ok(None) };
    Ok(short_file(&path)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}
