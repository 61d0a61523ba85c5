//! The Python version: pickled dictionaries with an array of pixels and lists of labels.

use std::path::Path;
use std::sync::Arc;

use super::super::ListOptions;
use super::super::arrays::{Described, StoredArray};
use super::super::npy::header_error;
use super::super::pickle::{Bytes, Id, NumpyArray, Tree, numpy_array, read_pickle};
use super::super::spool::Spool;
use super::super::store::OpenFile;
use super::super::there::is_there;
use super::{Batches, IMAGE_BYTES, SHAPE, U8};
use crate::error::ConvertError;

/// Bytes of text decoded at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Adds the samples of a file.
pub(super) fn read(file: &Arc<OpenFile>, options: &ListOptions, batches: &mut Batches) -> Result<(), ConvertError> {
    let tree = read_pickle(file, 0, file.bytes)?;
    let missing = |key: &str| {
        let reason = format!("expected a dictionary with `{key}`, found {}", tree.kind(tree.root));
        ConvertError::malformed(&file.path, "", reason)
    };
    let data = tree.value(tree.root, "data").ok_or_else(|| missing("data"))?;
    let array = numpy_array(&tree, data);
    let array = array.map_err(|error| header_error(&file.path, "data", error))?;
    let array = array.filter(|array| array.elements == U8 && matches!(array.shape.as_slice(), [_, IMAGE_BYTES]));
    let array = array.ok_or_else(|| {
        let reason = format!("expected an array of bytes with {IMAGE_BYTES} in each row");
        ConvertError::malformed(&file.path, "data", reason)
    })?;
    let n = array.shape.first().copied().unwrap_or(0);
    let Some(images) = images(file, options, &array, n)? else {
        return Ok(());
    };
    let rows = images.rows();
    let list = |keys: &[&str]| keys.iter().find_map(|key| tree.value(tree.root, key));
    let labels = list(&["labels", "fine_labels"]).ok_or_else(|| missing("labels"))?;
    batches.labels.extend(ids(file, &tree, labels, rows)?);
    if let Some(coarse) = list(&["coarse_labels"]) {
        batches.coarse.extend(ids(file, &tree, coarse, rows)?);
    }
    if let Some(names) = list(&["filenames"]) {
        batches.names.extend(file_names(file, &tree, names, rows)?);
    }
    batches.take_images(images);
    Ok(())
}

/// The labels of a list, one per image.
fn ids(file: &OpenFile, tree: &Tree, list: Id, n: usize) -> Result<Vec<i64>, ConvertError> {
    let hint = "the file needs one label for each image";
    each(tree, list, (n, "labels", "a number"), |id| tree.int(id))
        .map_err(|reason| ConvertError::contradictory(&file.path, "labels", reason, hint))
}

/// Applies `one` to each item of a list of length `n`. The error describes the expected list.
fn each<T>(
    tree: &Tree,
    list: Id,
    (n, all, kind): (usize, &str, &str),
    one: impl Fn(Id) -> Option<T>,
) -> Result<Vec<T>, String> {
    let items = tree.items(list).filter(|items| items.len() == n);
    let items = items.ok_or_else(|| format!("expected a list of {n} {all}, found {}", tree.kind(list)))?;
    let taken = items
        .iter()
        .enumerate()
        .map(|(place, id)| one(*id).ok_or_else(|| format!("item {place}: expected {kind}, found {}", tree.kind(*id))));
    taken.collect()
}

/// The file names of a list, one per image.
fn file_names(file: &OpenFile, tree: &Tree, list: Id, n: usize) -> Result<Vec<Vec<u8>>, ConvertError> {
    let name = |id| Some(tree.text(id)?.as_bytes().to_vec());
    let hint = "the file needs one name for each image, or none";
    each(tree, list, (n, "names", "a string"), name)
        .map_err(|reason| ConvertError::contradictory(&file.path, "filenames", reason, hint))
}

/// The pixels. They are read in place if the pickle contains them as plain bytes.
fn images(
    file: &Arc<OpenFile>,
    options: &ListOptions,
    array: &NumpyArray<'_>,
    n: u64,
) -> Result<Option<StoredArray>, ConvertError> {
    let (place, offset, room) = match (array.bytes, array.is_latin1) {
        (Bytes::Far(offset, bytes), false) => (Arc::clone(file), *offset, *bytes),
        (bytes, is_latin1) => {
            let mut spool = Spool::create(&options.spool_folder())?;
            match (bytes, is_latin1) {
                (Bytes::Here(bytes), false) => {
                    spool.append(bytes)?;
                }
                (Bytes::Here(bytes), true) => {
                    let mut half = None;
                    spool.append(&latin1(bytes, &mut half, file)?)?;
                }
                (Bytes::Far(offset, bytes), _) => {
                    unpack_text(file, (*offset, *bytes), &mut spool)?;
                }
            }
            let spooled = spool.finish(&file.path)?;
            let room = spooled.bytes;
            (Arc::new(spooled), 0, room)
        }
    };
    let [c, h, w] = SHAPE;
    let described = Described { name: "data", elements: U8, shape: &[n, c, h, w], offset, room, stride: None };
    StoredArray::new(&place, &described)
}

fn unpack_text(file: &OpenFile, (mut offset, bytes): (u64, u64), spool: &mut Spool) -> Result<(), ConvertError> {
    let end = offset.saturating_add(bytes);
    let mut half = None;
    while offset < end {
        let n = PIECE_BYTES.min(end - offset);
        let piece = file.part("data", offset, n)?;
        spool.append(&latin1(&piece, &mut half, file)?)?;
        offset += n;
    }
    Ok(())
}

/// Decodes Latin-1 characters to bytes. `half` is the first byte of an incomplete character.
fn latin1(text: &[u8], half: &mut Option<u8>, file: &OpenFile) -> Result<Vec<u8>, ConvertError> {
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        match (half.take(), byte) {
            (None, 0..=0x7f) => out.push(byte),
            (None, 0xc2 | 0xc3) => *half = Some(byte),
            (Some(first), 0x80..=0xbf) => out.push(((first & 3) << 6) | (byte & 0x3f)),
            _ => {
                let reason = "expected only characters below 256 in bytes stored as text";
                return Err(ConvertError::malformed(&file.path, "data", reason));
            }
        }
    }
    Ok(out)
}

/// The list of names under `key`; empty if the file does not exist.
pub(super) fn names(path: &Path, key: &str) -> Result<Vec<String>, ConvertError> {
    if !is_there(path)? {
        return Ok(Vec::new());
    }
    let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
    let tree = read_pickle(&file, 0, file.bytes)?;
    let names = tree.value(tree.root, key).and_then(|id| tree.items(id));
    let names: Option<Vec<String>> = names.and_then(|names| {
        let text = |id: &Id| tree.text(*id).map(str::to_owned);
        names.iter().map(text).collect()
    });
    names.ok_or_else(|| {
        let reason = format!("expected a list of strings under `{key}`");
        ConvertError::malformed(path, "", reason)
    })
}
