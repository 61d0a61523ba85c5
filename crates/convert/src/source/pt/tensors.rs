//! Finds the tensors in a pickle's values, with their names and locations.

use std::path::Path;
use std::sync::Arc;

use packds_format::DType;

use super::super::arrays::{ArraySet, Described, StoredArray};
use super::super::npy::Elements;
use super::super::per_file::PerFile;
use super::super::pickle::{Id, Node, Tree, numpy_array};
use super::super::roles::is_image_name;
use super::super::spool::SpoolFolder;
use super::super::store::OpenFile;
use super::lists::Listed;
use super::storages::Storages;
use crate::dtypes::of_torch_storage;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;

/// Names for the tensors of a tuple.
const PLACES: [&str; 2] = ["image", "label"];

/// What to do about tensors that do not contain all samples.
const HINT: &str = "save one tensor of all images (torch.stack), or a dictionary of tensors";

/// Maximum nesting of dictionaries, and most entries in total.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 1 << 16;

/// The storage of a tensor.
pub(super) struct Storage<'a> {
    /// None for untyped bytes.
    pub(super) dtype: Option<DType>,
    pub(super) key: &'a str,
}

/// The storage of a persistent ID `('storage', type, key, location, n)`.
pub(super) fn storage(tree: &Tree, name: Id) -> Option<Storage<'_>> {
    let parts = tree.items(name)?;
    let (&[word, class, key], _) = parts.split_first_chunk()?;
    if tree.text(word) != Some("storage") {
        return None;
    }
    let class = tree.global(class)?.rsplit('.').next()?;
    let dtype = match class {
        "UntypedStorage" => None,
        class => Some(of_torch_storage(class)?),
    };
    Some(Storage { dtype, key: tree.text(key)? })
}

/// The dtype of a name such as `torch.uint16`.
fn dtype_of(name: &str) -> Option<DType> {
    DType::from_numpy_name(name.strip_prefix("torch.")?)
}

/// Collects all tensors of the saved object.
pub(super) fn collect(
    tree: &Tree,
    storages: &Storages,
    (file, spool): (&Arc<OpenFile>, &SpoolFolder),
    set: &mut ArraySet,
) -> Result<(), ConvertError> {
    let mut taker = Taker { tree, storages, file, spool, set, entries: 0 };
    let root = taker.inner(tree.root);
    if taker.take("image", root)? {
        return Ok(());
    }
    if let Some(entries) = tree.entries(root) {
        return taker.entries("", entries, 0);
    }
    let items = tree.items(root);
    let Some(items) = items.filter(|items| items.len() <= 64) else {
        let reason = format!("expected a tensor, or a dictionary, tuple or list of tensors, found {}", tree.kind(root));
        return Err(ConvertError::unsupported(&file.path, "", reason, HINT));
    };
    for (place, item) in items.iter().enumerate() {
        let item = taker.inner(*item);
        let name = match PLACES.get(place) {
            Some(name) => (*name).to_owned(),
            None => format!("field_{place}"),
        };
        if !taker.take(&name, item)? && !taker.take_list(&name, item)? {
            taker.set.others.add(name.as_bytes());
        }
    }
    match taker.set.per_file {
        PerFile::Many => refuse_samples(taker.set, &file.path),
        PerFile::One => Ok(()),
    }
}

/// Refuses a list of the images themselves: its first image would be mistaken for all images.
fn refuse_samples(set: &ArraySet, path: &Path) -> Result<(), ConvertError> {
    let [first, others @ ..] = set.arrays.as_slice() else {
        return Ok(());
    };
    let is_like_first = |other: &StoredArray| {
        other.elements == first.elements && other.rows() == first.rows() && other.item == first.item
    };
    // Images and masks may have the same shape; images, labels and a third tensor do not.
    if others.len() < PLACES.len() || !others.iter().all(is_like_first) {
        return Ok(());
    }
    let n = set.arrays.len();
    let reason = format!("{n} tensors of one shape, which look like one sample each");
    Err(ConvertError::unsupported(path, "", reason, HINT))
}

struct Taker<'a> {
    tree: &'a Tree,
    storages: &'a Storages,
    file: &'a Arc<OpenFile>,
    /// The folder for lists.
    spool: &'a SpoolFolder,
    set: &'a mut ArraySet,
    /// Number of dictionary entries examined.
    entries: usize,
}

impl Taker<'_> {
    /// The tensors of a dataset, the tensor of a parameter, or the value itself.
    fn inner(&self, id: Id) -> Id {
        match self.tree.made(id) {
            Some(("torch.utils.data.dataset.TensorDataset", _, Some(state))) => {
                self.tree.value(state, "tensors").unwrap_or(id)
            }
            Some(("torch._utils._rebuild_parameter", [tensor, ..], _)) => *tensor,
            _ => id,
        }
    }

    /// Collects a dictionary. Its names are prefixed with `prefix`, which ends in a dot.
    fn entries(&mut self, prefix: &str, entries: &[(Id, Id)], depth: usize) -> Result<(), ConvertError> {
        // Several dictionaries may contain the same one, and one may contain itself.
        self.entries = self.entries.saturating_add(entries.len());
        if depth > MAX_DEPTH || self.entries > MAX_ENTRIES {
            let reason =
                format!("dictionaries nested more than {MAX_DEPTH} deep, or with more than {MAX_ENTRIES} entries");
            return Err(ConvertError::unsupported(&self.file.path, prefix, reason, HINT));
        }
        for (key, value) in entries {
            match self.tree.text(*key) {
                Some(name) => self.entry(format!("{prefix}{name}"), *value, depth)?,
                None => self.set.others.add(b"an entry with a key that is not text"),
            }
        }
        Ok(())
    }

    /// Collects the value of one dictionary entry.
    fn entry(&mut self, name: String, value: Id, depth: usize) -> Result<(), ConvertError> {
        let value = self.inner(value);
        if self.take(&name, value)? {
            return Ok(());
        }
        if let Some(entries) = self.tree.entries(value) {
            return self.entries(&format!("{name}."), entries, depth + 1);
        }
        let texts = self.tree.items(value).and_then(|items| {
            let text = |id: &Id| self.tree.text(*id).map(str::to_owned);
            items.iter().map(text).collect::<Option<Vec<_>>>()
        });
        match (name.as_str(), self.tree.text(value), texts) {
            (METADATA_KEY, Some(text), _) => self.set.take_metadata(text),
            ("classes" | "class_names", _, Some(texts)) => self.set.classes = texts,
            _ if self.take_list(&name, value)? => {}
            _ => self.set.others.add(name.as_bytes()),
        }
        Ok(())
    }

    /// Adds a list of numbers or texts as an array. False if the value is not one.
    fn take_list(&mut self, name: &str, id: Id) -> Result<bool, ConvertError> {
        if is_image_name(name) && !matches!(numpy_array(self.tree, id), Ok(None)) {
            let (reason, hint) = ("expected a tensor, found a NumPy array", "save tensors: torch.from_numpy(array)");
            return Err(ConvertError::unsupported(&self.file.path, name, reason, hint));
        }
        let items = match self.tree.items(id) {
            Some(items) => items,
            // The label of a file with one sample.
            None if self.set.per_file == PerFile::One => std::slice::from_ref(&id),
            None => return Ok(false),
        };
        if is_image_name(name) && items.first().is_some_and(|id| self.is_tensor(*id)) {
            let reason = format!("expected a tensor of all images, found a list of {}", items.len());
            return Err(ConvertError::unsupported(&self.file.path, name, reason, HINT));
        }
        let Some(list) = Listed::of(self.tree, items) else {
            return Ok(false);
        };
        let places = (self.file.path.as_path(), self.spool);
        list.unpack(name, places, |file, described| self.set.push(file, described))?;
        Ok(true)
    }

    fn is_tensor(&self, id: Id) -> bool {
        let made = self.tree.made(self.inner(id));
        made.is_some_and(|(callable, ..)| callable.starts_with("torch._utils._rebuild_tensor"))
    }

    /// Adds a tensor. False if the value is not one.
    fn take(&mut self, name: &str, id: Id) -> Result<bool, ConvertError> {
        let Some((callable, args, _)) = self.tree.made(id) else {
            return Ok(false);
        };
        let version = callable.strip_prefix("torch._utils._rebuild_tensor");
        let Some(version @ ("" | "_v2" | "_v3")) = version else {
            return Ok(false);
        };
        let malformed = |what: &str| ConvertError::malformed(&self.file.path, name, format!("expected {what}"));
        let Some((&[place, offset, size, stride], rest)) = args.split_first_chunk() else {
            return Err(malformed("a tensor's storage, offset, size and stride"));
        };
        let storage = match self.tree.get(place) {
            Node::Persistent(id) => storage(self.tree, *id),
            _ => None,
        };
        let storage = storage.ok_or_else(|| malformed("a storage of a known type"))?;
        let dtype = match version {
            "_v3" => rest.get(2).and_then(|id| dtype_of(self.tree.global(*id)?)),
            _ => storage.dtype,
        };
        let dtype = dtype.ok_or_else(|| malformed("a known type of numbers"))?;
        let offset = self.tree.int(offset).and_then(|n| u64::try_from(n).ok());
        let offset = offset.and_then(|n| n.checked_mul(dtype.size()));
        let (shape, stride) = (self.tree.sizes(size), self.tree.sizes(stride));
        let (Some(offset), Some(shape), Some(stride)) = (offset, shape, stride) else {
            return Err(malformed("an offset, sizes and strides"));
        };
        let Some(&(start, bytes)) = self.storages.get(storage.key) else {
            return Err(malformed(&format!("the storage {}", storage.key)));
        };
        let row = row_stride(&shape, &stride).ok_or_else(|| {
            let reason = format!("a tensor of {shape:?} with the strides {stride:?}");
            let hint = "save tensor.contiguous()";
            ConvertError::unsupported(&self.file.path, name, reason, hint)
        })?;
        let described = Described {
            name,
            elements: Elements::Numbers { dtype, swapped: false },
            shape: &shape,
            offset: start.saturating_add(offset),
            room: bytes.saturating_sub(offset),
            stride: row.map(|row| row.saturating_mul(dtype.size())),
        };
        self.set.push(self.file, &described)?;
        Ok(true)
    }
}

/// Elements between row starts, for a tensor with rows in C order. `Some(None)` if there is only one row.
///
/// None if rows are in another order or overlap.
fn row_stride(shape: &[u64], stride: &[u64]) -> Option<Option<u64>> {
    if shape.len() != stride.len() {
        return None;
    }
    let mut expected = 1_u64;
    for (n, stride) in shape.iter().zip(stride).skip(1).rev() {
        // A stride along a dimension of length 1 is unused.
        if *n > 1 && *stride != expected {
            return None;
        }
        expected = expected.checked_mul(*n)?;
    }
    match (shape.first(), stride.first()) {
        (Some(n), Some(stride)) if *n > 1 => (*stride >= expected).then_some(Some(*stride)),
        _ => Some(None),
    }
}
