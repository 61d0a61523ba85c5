//! Finds the tensors in the values of a pickle, with their names and locations.

use std::path::Path;
use std::sync::Arc;

use packds_format::DType;

use super::super::arrays::{ArraySet, Described, StoredArray};
use super::super::npy::Elements;
use super::super::per_file::PerFile;
use super::super::pickle::{Id, Node, Tree, numpy_array};
use super::super::roles::{CLASS_LIST_NAMES, is_image_name};
use super::super::split::is_split_name;
use super::super::spool::SpoolFolder;
use super::super::store::{ArrayType, OpenFile};
use super::lists::Listed;
use super::storages::Storages;
use crate::dtypes::of_torch_storage;
use crate::error::{ConvertError, quoted};
use crate::metadata::METADATA_KEY;

/// Names for the first tensors of a tuple.
const PLACES: [&str; 2] = ["image", "label"];

/// The hint if no single tensor contains all samples.
const HINT: &str = "save one tensor of all images (torch.stack), or a dictionary of tensors";

/// The key for the class ids by class name, as in torchvision's datasets.
const CLASS_IDS: &str = "class_to_idx";

/// Maximum number of tensors in a tuple.
const MAX_PLACES: usize = 64;

/// Maximum nesting of dictionaries, and maximum total number of entries.
const MAX_DEPTH: usize = 16;
const MAX_ENTRIES: usize = 1 << 16;

/// The storage of a tensor.
pub(super) struct Storage<'a> {
    /// The element type. `None` for untyped storages.
    pub(super) dtype: Option<DType>,
    pub(super) key: &'a str,
}

/// The storage that a persistent id `('storage', type, key, location, n)` refers to.
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
    let root = inner(tree, tree.root);
    if taker.take("image", root)? {
        return Ok(());
    }
    if let Some(entries) = tree.entries(root) {
        return taker.entries("", entries, 0);
    }
    match tree.items(root).filter(|items| items.len() <= MAX_PLACES) {
        Some(items) => taker.places("", items),
        None => {
            let reason =
                format!("expected a tensor, or a dictionary, tuple or list of tensors, found {}", tree.kind(root));
            Err(ConvertError::unsupported(&file.path, "", reason, HINT))
        }
    }
}

/// Refuses a list that contains the images themselves: its first image would be mistaken for all images.
fn refuse_samples(arrays: &[StoredArray], path: &Path) -> Result<(), ConvertError> {
    let [first, others @ ..] = arrays else {
        return Ok(());
    };
    // Images of different sizes have three dimensions each; labels have one.
    let are_planes = |other: &StoredArray| first.item.len() == 2 && other.item.len() == 2;
    let has_same_shape = |other: &StoredArray| other.rows() == first.rows() && other.item == first.item;
    let is_like_first =
        |other: &StoredArray| other.elements == first.elements && (has_same_shape(other) || are_planes(other));
    // Two tensors of the same shape may be images and masks. If there are three or more, one has the labels, which do
    // not have the shape of the images.
    if others.len() < PLACES.len() || !others.iter().all(is_like_first) {
        return Ok(());
    }
    let n = arrays.len();
    let (shape, hint) = match others.iter().all(has_same_shape) {
        true => ("the same shape", HINT),
        false => (
            "three dimensions and several sizes",
            "save a list of dictionaries: torch.save([{\"image\": image, \"label\": label} for ...], \"x.pt\")",
        ),
    };
    let reason = format!("found {n} tensors of {shape}, which look like one sample each");
    Err(ConvertError::unsupported(path, "", reason, hint))
}

/// The class names in a dictionary: a list of names, or the id of each name.
pub(super) fn class_names(tree: &Tree, key: &str, value: Id) -> Option<Vec<String>> {
    if CLASS_LIST_NAMES.contains(&key) {
        let text = |id: &Id| tree.text(*id).map(str::to_owned);
        return tree.items(value)?.iter().map(text).collect();
    }
    if key != CLASS_IDS {
        return None;
    }
    let id_of = |(name, id): &(Id, Id)| Some((tree.int(*id)?, tree.text(*name)?.to_owned()));
    let mut names: Vec<(i64, String)> = tree.entries(value)?.iter().map(id_of).collect::<Option<_>>()?;
    names.sort_unstable();
    let is_complete = names.iter().zip(0..).all(|((id, _), expected)| *id == expected);
    is_complete.then(|| names.into_iter().map(|(_, name)| name).collect())
}

/// Adds class names. All files with class names must have the same ones. Errors name the file and the place.
pub(super) fn add_classes(
    known: &mut Vec<String>,
    found: Vec<String>,
    (path, place): (&Path, &str),
) -> Result<(), ConvertError> {
    if known.is_empty() {
        *known = found;
    } else if *known != found {
        let reason = format!("expected the same class names as before ({}), found {}", quoted(known), quoted(&found));
        let hint = "save the class names once, or the same ones everywhere";
        return Err(ConvertError::contradictory(path, place, reason, hint));
    }
    Ok(())
}

struct Taker<'a> {
    tree: &'a Tree,
    storages: &'a Storages,
    file: &'a Arc<OpenFile>,
    /// The folder in which lists are unpacked.
    spool: &'a SpoolFolder,
    set: &'a mut ArraySet,
    /// Number of dictionary entries examined so far.
    entries: usize,
}

impl Taker<'_> {
    /// Collects a tuple of tensors. Their names are prefixed with `prefix`, which ends in a dot.
    fn places(&mut self, prefix: &str, items: &[Id]) -> Result<(), ConvertError> {
        let before = self.set.arrays.len();
        for (place, item) in items.iter().enumerate() {
            let item = inner(self.tree, *item);
            let name = format!("{prefix}{}", place_name(place));
            if !self.take(&name, item)? && !self.take_list(&name, item)? {
                self.set.others.add(name.as_bytes());
            }
        }
        match self.set.per_file {
            PerFile::Many => refuse_samples(self.set.arrays.get(before..).unwrap_or_default(), &self.file.path),
            PerFile::One => Ok(()),
        }
    }

    /// Collects the tensors of a dictionary. Their names are prefixed with `prefix`, which ends in a dot.
    fn entries(&mut self, prefix: &str, entries: &[(Id, Id)], depth: usize) -> Result<(), ConvertError> {
        // The limit is needed because several dictionaries may contain the same one, and a dictionary may contain itself.
        self.entries = self.entries.saturating_add(entries.len());
        if depth > MAX_DEPTH || self.entries > MAX_ENTRIES {
            let reason =
                format!("expected at most {MAX_ENTRIES} entries in dictionaries nested at most {MAX_DEPTH} deep");
            return Err(ConvertError::unsupported(&self.file.path, prefix, reason, HINT));
        }
        for (key, value) in entries {
            match self.tree.text(*key) {
                Some(name) => self.entry(format!("{prefix}{name}"), *value, depth)?,
                None => self.set.others.add(b"the key of an entry is not text"),
            }
        }
        Ok(())
    }

    /// Collects the value of one dictionary entry.
    fn entry(&mut self, name: String, value: Id, depth: usize) -> Result<(), ConvertError> {
        let value = inner(self.tree, value);
        if self.take(&name, value)? {
            return Ok(());
        }
        let key = name.rsplit('.').next().unwrap_or(&name);
        if let Some(classes) = class_names(self.tree, key, value) {
            return add_classes(&mut self.set.classes, classes, (&self.file.path, &name));
        }
        let pair = self.tree.items(value).filter(|items| (2..=MAX_PLACES).contains(&items.len()));
        let is_set = |items: &&[Id]| is_split_name(key.as_bytes()) && items.iter().any(|id| is_tensor(self.tree, *id));
        if let Some(items) = pair.filter(is_set) {
            return self.places(&format!("{name}."), items);
        }
        if let Some(entries) = self.tree.entries(value) {
            return self.entries(&format!("{name}."), entries, depth + 1);
        }
        match (name.as_str(), self.tree.text(value)) {
            (METADATA_KEY, Some(text)) => self.set.take_metadata(text),
            _ if self.take_list(&name, value)? => {}
            _ => self.set.others.add(name.as_bytes()),
        }
        Ok(())
    }

    /// Adds a list of numbers or strings as an array. False if the value is not such a list.
    fn take_list(&mut self, name: &str, id: Id) -> Result<bool, ConvertError> {
        if is_image_name(name) && !matches!(numpy_array(self.tree, id), Ok(None)) {
            let (reason, hint) = ("expected a tensor, found a NumPy array", "save tensors: torch.from_numpy(array)");
            return Err(ConvertError::unsupported(&self.file.path, name, reason, hint));
        }
        let items = match self.tree.items(id) {
            Some(items) => items,
            // In a file with one sample, the value may be the label.
            None if self.set.per_file == PerFile::One => std::slice::from_ref(&id),
            None => return Ok(false),
        };
        if is_image_name(name) && items.first().is_some_and(|id| is_tensor(self.tree, *id)) {
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

    /// Adds a tensor. False if the value is not a tensor.
    fn take(&mut self, name: &str, id: Id) -> Result<bool, ConvertError> {
        let Some(found) = tensor(self.tree, self.storages, (&self.file.path, name), id)? else {
            return Ok(false);
        };
        let described = Described {
            name,
            elements: Elements::Numbers { dtype: found.array.dtype, swapped: false },
            shape: &found.array.shape,
            offset: found.offset,
            room: found.room,
            stride: found.stride,
        };
        self.set.push(self.file, &described)?;
        Ok(true)
    }
}

/// The name of the tensor at this position in a tuple.
pub(super) fn place_name(place: usize) -> String {
    PLACES.get(place).map_or_else(|| format!("field_{place}"), |name| (*name).to_owned())
}

/// The tensors of a dataset, the tensor of a parameter, or the value itself.
pub(super) fn inner(tree: &Tree, id: Id) -> Id {
    match tree.made(id) {
        Some(("torch.utils.data.dataset.TensorDataset", _, Some(state))) => tree.value(state, "tensors").unwrap_or(id),
        Some(("torch._utils._rebuild_parameter", [tensor, ..], _)) => *tensor,
        _ => id,
    }
}

/// Whether a value is a tensor.
pub(super) fn is_tensor(tree: &Tree, id: Id) -> bool {
    tree.made(inner(tree, id)).is_some_and(|(callable, ..)| callable.starts_with("torch._utils._rebuild_tensor"))
}

/// A tensor whose rows are in C order.
pub(super) struct Tensor {
    pub(super) array: ArrayType,
    /// Offset of the tensor in the file.
    pub(super) offset: u64,
    /// Number of bytes in its storage from there on.
    room: u64,
    /// Distance between the starts of rows, in bytes. `None` if there is only one row.
    stride: Option<u64>,
}

impl Tensor {
    /// The size of the tensor in bytes. Fails unless its bytes are contiguous and within the storage. Errors name the file and
    /// the place.
    pub(super) fn checked_bytes(&self, (path, place): (&Path, &str)) -> Result<u64, ConvertError> {
        let bytes = self.array.bytes().filter(|bytes| *bytes <= self.room);
        let bytes = bytes.ok_or_else(|| {
            let reason = format!(
                "expected a tensor of {} with shape {:?}, found {} bytes",
                self.array.dtype, self.array.shape, self.room
            );
            ConvertError::malformed(path, place, reason)
        })?;
        let rows = self.array.shape.first().copied().unwrap_or(1).max(1);
        match self.stride {
            Some(stride) if stride != bytes / rows => {
                let reason = "the rows of the tensor are not contiguous";
                Err(ConvertError::unsupported(path, place, reason, CONTIGUOUS))
            }
            _ => Ok(bytes),
        }
    }
}

/// The hint for tensors that are not contiguous.
const CONTIGUOUS: &str = "save tensor.contiguous()";

/// Parses a value as a tensor. `None` if it is something else. Errors name the file and the place.
pub(super) fn tensor(
    tree: &Tree,
    storages: &Storages,
    (path, name): (&Path, &str),
    id: Id,
) -> Result<Option<Tensor>, ConvertError> {
    let Some((callable, args, _)) = tree.made(inner(tree, id)) else {
        return Ok(None);
    };
    let version = callable.strip_prefix("torch._utils._rebuild_tensor");
    let Some(version @ ("" | "_v2" | "_v3")) = version else {
        return Ok(None);
    };
    let malformed = |what: &str| ConvertError::malformed(path, name, format!("expected {what}"));
    let Some((&[place, offset, size, stride], rest)) = args.split_first_chunk() else {
        return Err(malformed("a tensor's storage, offset, size and stride"));
    };
    // These arguments follow `requires_grad` and the hooks.
    let (typed, marks) = match version {
        "_v3" => (rest.get(2), rest.get(3)),
        _ => (None, rest.get(2)),
    };
    refuse_marks(tree, (path, name), marks.copied())?;
    let storage = match tree.get(place) {
        Node::Persistent(id) => storage(tree, *id),
        _ => None,
    };
    let storage = storage.ok_or_else(|| malformed("a storage of a known type"))?;
    let dtype = match version {
        "_v3" => typed.and_then(|id| dtype_of(tree.global(*id)?)),
        _ => storage.dtype,
    };
    let dtype = dtype.ok_or_else(|| malformed("a known type of numbers"))?;
    let offset = tree.int(offset).and_then(|n| u64::try_from(n).ok());
    let offset = offset.and_then(|n| n.checked_mul(dtype.size()));
    let (shape, stride) = (tree.sizes(size), tree.sizes(stride));
    let (Some(offset), Some(shape), Some(stride)) = (offset, shape, stride) else {
        return Err(malformed("an offset, sizes and strides"));
    };
    let Some(&(start, bytes)) = storages.get(storage.key) else {
        return Err(malformed(&format!("the storage {}", storage.key)));
    };
    let row = row_stride(&shape, &stride).ok_or_else(|| {
        let reason = format!("strides {stride:?} are not supported for a tensor of shape {shape:?}");
        ConvertError::unsupported(path, name, reason, CONTIGUOUS)
    })?;
    Ok(Some(Tensor {
        array: ArrayType { dtype, shape },
        offset: start.saturating_add(offset),
        room: bytes.saturating_sub(offset),
        stride: row.map(|row| row.saturating_mul(dtype.size())),
    }))
}

/// Refuses a tensor whose stored numbers differ from its values: PyTorch negates or conjugates them on use.
fn refuse_marks(tree: &Tree, (path, name): (&Path, &str), marks: Option<Id>) -> Result<(), ConvertError> {
    let is_set = |mark: &str| marks.and_then(|marks| tree.value(marks, mark)).and_then(|is| tree.int(is)) == Some(1);
    for (mark, reason, hint) in [
        (
            "neg",
            "this tensor is a negated view: the file stores the values before negation",
            "save tensor.resolve_neg()",
        ),
        (
            "conj",
            "this tensor is a conjugate view: the file stores the values before conjugation",
            "save tensor.resolve_conj()",
        ),
    ] {
        if is_set(mark) {
            return Err(ConvertError::unsupported(path, name, reason, hint));
        }
    }
    Ok(())
}

/// Number of elements between row starts, for a tensor with each row in C order. `Some(None)` if there is only one row.
///
/// `None` if rows are not in C order, or overlap.
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
