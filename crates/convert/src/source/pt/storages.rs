//! Locates the bytes of tensors: in members of a zip file or, in the old format, one after the other after the pickles.

use std::collections::BTreeMap;

use super::super::pickle::{Node, Tree, read_pickle};
use super::super::store::OpenFile;
use super::super::zip_dir::{Method, ZipEntry, zip_entries};
use crate::error::ConvertError;

/// The pickled magic number at the start of the old format.
const OLD_MAGIC: &[u8] = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";

/// The start of each storage by key, and the number of bytes available from there. In the old format, that is the rest of the
/// file.
pub(super) type Storages = BTreeMap<String, (u64, u64)>;

/// Reads the pickle of a file and locates its storages.
pub(super) fn open(file: &OpenFile) -> Result<(Tree, Storages), ConvertError> {
    let head = file.part("", 0, file.bytes.min(16))?;
    if head.starts_with(b"PK\x03\x04") {
        return open_zip(file);
    }
    if head.starts_with(OLD_MAGIC) {
        return open_old(file);
    }
    let hint = "save tensors with torch.save, or save arrays with numpy.savez and pass the .npz file";
    let reason = "this file was not written by torch.save";
    Err(ConvertError::unsupported(&file.path, "", reason, hint))
}

fn open_zip(file: &OpenFile) -> Result<(Tree, Storages), ConvertError> {
    let entries = zip_entries(file)?;
    let pickle = entries.iter().find_map(|entry| {
        let folder = entry.name.strip_suffix("data.pkl")?;
        (folder.is_empty() || folder.ends_with('/')).then_some((folder, entry))
    });
    let Some((folder, pickle)) = pickle else {
        let reason = "expected a member data.pkl, found none";
        return Err(ConvertError::malformed(&file.path, "", reason));
    };
    let in_folder = |name: &str| {
        let full = format!("{folder}{name}");
        entries.iter().find(move |entry| entry.name == full)
    };
    if in_folder("constants.pkl").is_some() {
        let reason = "this is a TorchScript program instead of saved tensors";
        let hint = "save tensors with torch.save";
        return Err(ConvertError::unsupported(&file.path, "", reason, hint));
    }
    let stored = |entry: &ZipEntry| {
        if entry.method != Method::Stored {
            let (reason, hint) = ("the member is compressed", "save the file again with torch.save");
            return Err(ConvertError::unsupported(&file.path, &entry.name, reason, hint));
        }
        Ok((entry.offset, entry.stored))
    };
    if let Some(order) = in_folder("byteorder") {
        let (offset, bytes) = stored(order)?;
        let text = file.part(&order.name, offset, bytes.min(16))?;
        if text != b"little" {
            let reason = format!("the tensors have {}-endian byte order", text.escape_ascii());
            let hint = "save the tensors again on a little-endian machine";
            return Err(ConvertError::unsupported(&file.path, "", reason, hint));
        }
    }
    let (start, bytes) = stored(pickle)?;
    let tree = read_pickle(file, start, start.saturating_add(bytes))?;
    let data = format!("{folder}data/");
    let mut places = Storages::new();
    for entry in &entries {
        if let Some(key) = entry.name.strip_prefix(&data) {
            places.insert(key.to_owned(), stored(entry)?);
        }
    }
    Ok((tree, places))
}

/// Reads the five pickles of the old format: magic number, version, machine, saved object, storage keys. They are followed by the
/// storages, each preceded by its number of elements.
fn open_old(file: &OpenFile) -> Result<(Tree, Storages), ConvertError> {
    let next = |start: u64| read_pickle(file, start, file.bytes);
    let version = next(next(0)?.end)?;
    if version.int(version.root) != Some(1001) {
        let reason = "expected version 1001 of the legacy format";
        return Err(ConvertError::malformed(&file.path, "", reason));
    }
    let machine = next(version.end)?;
    let little = machine.value(machine.root, "little_endian");
    if little.and_then(|id| machine.int(id)) != Some(1) {
        let hint = "save the tensors again on a little-endian machine";
        let reason = "the tensors have big-endian byte order";
        return Err(ConvertError::unsupported(&file.path, "", reason, hint));
    }
    let tree = next(machine.end)?;
    let keys = next(tree.end)?;
    let sizes = element_sizes(&tree);
    let mut places = Storages::new();
    let mut at = keys.end;
    for key in keys.items(keys.root).unwrap_or_default() {
        let key = keys.text(*key).unwrap_or_default();
        let malformed = |reason| ConvertError::malformed(&file.path, &format!("storage {key}"), reason);
        let n = file.bytes_at(at, 8).map_err(|e| malformed(e.to_string()))?;
        let n = n.first_chunk().map_or(0, |n| u64::from_le_bytes(*n));
        let size = sizes.get(key).copied().unwrap_or(1);
        let bytes = n.checked_mul(size);
        let start = at.saturating_add(8);
        let room = file.bytes.saturating_sub(start);
        let Some(bytes) = bytes.filter(|bytes| *bytes <= room) else {
            return Err(malformed(format!("expected {n} elements of {size} bytes each, found {room} bytes")));
        };
        places.insert(key.to_owned(), (start, bytes));
        at = start.saturating_add(bytes);
    }
    Ok((tree, places))
}

/// Element size of each storage that the pickle mentions.
fn element_sizes(tree: &Tree) -> BTreeMap<String, u64> {
    let storages = tree.nodes.iter().filter_map(|node| match node {
        Node::Persistent(id) => {
            let storage = super::tensors::storage(tree, *id)?;
            Some((storage.key.to_owned(), storage.dtype.map_or(1, |d| d.size())))
        }
        _ => None,
    });
    storages.collect()
}
