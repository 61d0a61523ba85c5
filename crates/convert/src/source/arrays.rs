//! Decides which arrays of a file are images, labels and names. Each array has one item per sample. Shared by `.npy`, `.npz`, `.pt`
//! and `.safetensors`.
//!
//! Each format's module finds the arrays.

use packds_system::{to_u64, to_usize};
use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Role};

use super::ListOptions;
use super::beside::pairs;
use super::column::{ColumnValues, SourceColumn, TextArena};
use super::found::{
    Found, FoundLabels, LabelValues, Names, check_same_classes, is_made_anew, other_count, role_of, target,
};
use super::key_split::{self, SplitNames};
use super::listing::SourceField;
use super::npy::Elements;
use super::numbers::{read_ids, read_texts};
use super::per_file::PerFile;
use super::roles::{CLASS_LIST_NAMES, Items, Keys, Part, Roles, are_paths, is_label_name, is_path_name};
use super::several;
use super::shards::Shards;
use super::store::{ArrayType, OpenFile, RowPart, Rows, Store, is_one};
use super::swapped::Swapped;
use super::tally::Tally;
use super::warning::{Warning, readable};
use super::whole::{FileContent, FileValue};
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::metadata::{METADATA_KEY, Metadata};
use crate::opt::LABEL_KEY;

/// An uncompressed array in a file, or split over several files.
#[derive(Debug, Clone)]
pub(super) struct StoredArray {
    pub(super) name: String,
    pub(super) elements: Elements,
    /// Dimensions of an item.
    pub(super) item: Vec<u64>,
    pub(super) parts: Vec<RowPart>,
}

/// An array as described in a file, before validation.
#[derive(Debug, Clone)]
pub(super) struct Described<'a> {
    pub(super) name: &'a str,
    pub(super) elements: Elements,
    /// All dimensions; the first counts samples.
    pub(super) shape: &'a [u64],
    /// Where the array starts in the file.
    pub(super) offset: u64,
    /// Number of bytes available from `offset` on.
    pub(super) room: u64,
    /// Distance between items, in bytes. `None` if they are contiguous.
    pub(super) stride: Option<u64>,
}

impl StoredArray {
    /// Checks that the array fits in the available bytes and in the file. Returns `None` for a single number, an empty array or
    /// items without bytes.
    pub(super) fn new(file: &Arc<OpenFile>, described: &Described<'_>) -> Result<Option<Self>, ConvertError> {
        let wrong = |reason: String| ConvertError::malformed(&file.path, described.name, reason);
        let Some((&n, item)) = described.shape.split_first() else {
            return Ok(None);
        };
        let bytes = item.iter().try_fold(described.elements.bytes(), |n, d| n.checked_mul(*d));
        let bytes = bytes.ok_or_else(|| wrong(format!("the dimensions {item:?} are too large")))?;
        if bytes == 0 || n == 0 {
            return Ok(None);
        }
        let stride = described.stride.unwrap_or(bytes);
        let all = (n - 1).checked_mul(stride).and_then(|b| b.checked_add(bytes));
        let in_file = file.bytes.saturating_sub(described.offset);
        let room = described.room.min(in_file);
        let rows = usize::try_from(n).ok();
        match (all, rows) {
            (Some(all), Some(rows)) if all <= room && stride >= bytes => Ok(Some(Self {
                name: described.name.to_owned(),
                elements: described.elements,
                item: item.to_vec(),
                parts: vec![RowPart { file: Arc::clone(file), offset: described.offset, rows, stride }],
            })),
            _ => {
                let shape = described.shape;
                let expected = all.map_or("more than 2^64".to_owned(), |all| all.to_string());
                Err(wrong(format!("expected {expected} bytes for an array of shape {shape:?}, found {room}")))
            }
        }
    }

    /// Like [`new`](Self::new), but the whole array is one item.
    fn whole(file: &Arc<OpenFile>, described: &Described<'_>) -> Result<Option<Self>, ConvertError> {
        let row = described.shape.iter().skip(1).fold(described.elements.bytes(), |n, d| n.saturating_mul(*d));
        if described.stride.is_some_and(|stride| stride != row) {
            let (reason, hint) = ("the rows of the tensor are not contiguous", "save tensor.contiguous()");
            return Err(ConvertError::unsupported(&file.path, described.name, reason, hint));
        }
        let shape = [&[1], described.shape].concat();
        Self::new(file, &Described { shape: &shape, stride: None, ..*described })
    }

    /// Number of items.
    pub(super) fn rows(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// Whether an item is a single number or text.
    pub(super) fn is_scalar(&self) -> bool {
        is_one(&self.item)
    }

    /// A store of the items. `None` if they are strings.
    pub(super) fn store(&self) -> Option<Arc<dyn Store>> {
        let Elements::Numbers { dtype, swapped } = self.elements else {
            return None;
        };
        let rows: Arc<dyn Store> =
            Arc::new(Rows { parts: self.parts.clone(), array: ArrayType { dtype, shape: self.item.clone() } });
        Some(if swapped {
            let element = to_usize(dtype.size());
            Arc::new(Swapped { store: rows, element })
        } else {
            rows
        })
    }

    /// The kind of the items, which determines the array's possible roles.
    fn kind(&self) -> Items {
        match self.elements {
            Elements::Text { .. } if self.is_scalar() => Items::texts(),
            Elements::Text { .. } => Items::other("arrays of strings"),
            Elements::Numbers { dtype, .. } => Items::of_array(&ArrayType { dtype, shape: self.item.clone() }),
        }
    }

    /// Returns the array as a field with this name.
    fn field(&self, name: &str, role: Option<Role>) -> Option<SourceField> {
        Some(SourceField { name: name.to_owned(), store: self.store()?, role })
    }
}

/// The arrays of a file.
#[derive(Debug)]
pub(super) struct ArraySet {
    pub(super) format: DataFormat,
    /// The prefix of numbered sample names, as in `DATASET/0`. Not used if an array contains the names.
    pub(super) dataset: String,
    pub(super) arrays: Vec<StoredArray>,
    /// Class names, if the format stores them.
    pub(super) classes: Vec<String>,
    pub(super) metadata: Option<Metadata>,
    pub(super) warnings: Vec<Warning>,
    /// Contents of the file that are not arrays with one item per sample.
    pub(super) others: Tally,
    /// Arrays that were excluded and therefore not read.
    pub(super) left_out: Vec<String>,
    /// Whether the file has only one label, as a file with one sample does.
    has_single_label: bool,
    /// How many samples the file holds.
    pub(super) per_file: PerFile,
}

impl ArraySet {
    /// Returns an empty set. Samples are named after the file.
    pub(super) fn new(format: DataFormat, file: &Path, per_file: PerFile) -> Self {
        let stem = file.file_stem().unwrap_or_default();
        Self {
            format,
            dataset: stem.to_string_lossy().into_owned(),
            arrays: Vec::new(),
            classes: Vec::new(),
            metadata: None,
            warnings: Vec::new(),
            others: Tally::default(),
            left_out: Vec::new(),
            has_single_label: false,
            per_file,
        }
    }

    /// Adds the described array if it has items.
    pub(super) fn push(&mut self, file: &Arc<OpenFile>, described: &Described<'_>) -> Result<(), ConvertError> {
        let array = match self.per_file {
            PerFile::Many => StoredArray::new(file, described)?,
            PerFile::One => StoredArray::whole(file, described)?,
        };
        match array {
            Some(array) => self.arrays.push(array),
            None => {
                self.has_single_label |= described.shape.is_empty() && is_label_name(described.name);
                self.others.add(described.name.as_bytes());
            }
        }
        Ok(())
    }

    /// Parses the metadata text of an exported pack. Invalid metadata causes only a warning.
    pub(super) fn take_metadata(&mut self, text: &str) {
        let read = readable(Some(Metadata::parse(text)), &mut self.warnings);
        self.metadata = read.or(self.metadata.take());
    }

    /// Converts the arrays of a file with one sample to values.
    pub(super) fn into_values(self, file: &Arc<OpenFile>) -> Result<Vec<FileValue>, ConvertError> {
        let value = |array: StoredArray| {
            let content = match array.elements {
                Elements::Text { .. } => {
                    read_texts(&array)?.iter().next().map(|text| FileContent::Text(text.to_owned()))
                }
                Elements::Numbers { dtype, swapped } => {
                    let of_file = |part: &&RowPart| Arc::ptr_eq(&part.file, file);
                    let own_offset = array.parts.first().filter(of_file).map(|part| part.offset);
                    let whole = ArrayType { dtype, shape: array.item };
                    let rows = Rows { parts: array.parts, array: whole.clone() };
                    Some(FileContent::Array { array: whole, rows, swapped, own_offset })
                }
            };
            Ok(content.map(|content| FileValue { name: array.name, content }))
        };
        let left_out = self.left_out.into_iter().map(|name| Ok(FileValue { name, content: FileContent::LeftOut }));
        self.arrays.into_iter().filter_map(|array| value(array).transpose()).chain(left_out).collect()
    }

    /// Removes excluded arrays.
    pub(super) fn leave_out(&mut self, source: &Path, options: &ListOptions) -> Result<(), ConvertError> {
        let names = self.arrays.iter().map(|array| &array.name);
        let names: Vec<String> = names.chain(&self.left_out).cloned().collect();
        options.check_left_out(source, &names)?;
        self.arrays.retain(|a| !options.is_left_out(&a.name));
        Ok(())
    }

    /// Returns one part for each split in the file names. If the file names mention no split, the splits come from the
    /// names of the arrays that `read` finds in the first file.
    pub(super) fn parts(
        shards: Shards,
        read: impl Fn(&Arc<OpenFile>) -> Result<Self, ConvertError>,
    ) -> Result<Vec<Shards>, ConvertError> {
        Self::parts_by_names(shards, |file| Ok(read(file)?.names().map(str::to_owned).collect()))
    }

    /// Like [`parts`](Self::parts), but `names` only returns the names of the arrays.
    pub(super) fn parts_by_names(
        shards: Shards,
        names: impl Fn(&Arc<OpenFile>) -> Result<Vec<String>, ConvertError>,
    ) -> Result<Vec<Shards>, ConvertError> {
        let parts = shards.by_split();
        let pairs = parts.first().map(|part| pairs(&part.files)).transpose()?;
        let ([whole @ Shards { split: None, .. }], Some(first)) =
            (parts.as_slice(), pairs.as_ref().and_then(|pairs| pairs.first()))
        else {
            return Ok(parts);
        };
        let first = &first.images;
        let file = OpenFile::open(first).map_err(ConvertError::io(first))?;
        let names = names(&Arc::new(file))?;
        Ok(key_split::parts(whole, names.iter().map(String::as_str)))
    }

    /// The names of the arrays, and the metadata key if there is metadata of a pack.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        let text = self.metadata.as_ref().map(|_| METADATA_KEY);
        self.arrays.iter().map(|array| array.name.as_str()).chain(text)
    }

    /// Keeps only the arrays of `split`, or those without a split if it is `None`, and removes the split from their names. Returns
    /// `keys` with the new names.
    fn keep_split<'a>(&mut self, split: Option<&str>, keys: Keys<'a>) -> Keys<'a> {
        let names = SplitNames::new(self.names(), split);
        let keys = names.keys(keys);
        self.arrays.retain_mut(|array| {
            let plain = names.plain(&array.name).map(str::to_owned);
            array.name = plain.clone().unwrap_or_default();
            plain.is_some()
        });
        keys
    }

    /// Concatenates the samples of all files of a part. `read` returns the arrays of a file.
    pub(super) fn join(
        part: &Shards,
        options: &ListOptions,
        read: impl Fn(&Arc<OpenFile>) -> Result<Self, ConvertError>,
    ) -> Result<Found, ConvertError> {
        let keep = |mut set: Self| {
            let keys = set.keep_split(part.split.as_deref(), Keys::of(options));
            (set, keys)
        };
        Self::join_split(part, options, |file| read(file).map(keep), &read)
    }

    /// Like [`join`](Self::join), but `read` returns only the arrays of the part's split, with the keys for them. `read_labels`
    /// returns the arrays of a label file.
    pub(super) fn join_split<'a>(
        part: &Shards,
        options: &ListOptions,
        read: impl Fn(&Arc<OpenFile>) -> Result<(Self, Keys<'a>), ConvertError>,
        read_labels: impl Fn(&Arc<OpenFile>) -> Result<Self, ConvertError>,
    ) -> Result<Found, ConvertError> {
        let open = |path: &Path| OpenFile::open(path).map(Arc::new).map_err(ConvertError::io(path));
        let mut all: Option<(Self, Keys<'_>)> = None;
        for pair in pairs(&part.files)? {
            let (mut set, keys) = read(&open(&pair.images)?)?;
            if let Some(labels) = pair.labels {
                set.take_labels(read_labels(&open(&labels)?)?, &labels, (part, keys))?;
            }
            match &mut all {
                None => all = Some((set, keys)),
                Some((all, _)) => all.append(set, &pair.images)?,
            }
        }
        let none = || ConvertError::malformed(&part.root, "", "there are no files");
        let (mut all, keys) = all.ok_or_else(none)?;
        all.leave_out(&part.root, options)?;
        all.into_found(&part.root, keys)
    }

    /// Takes the label array from the label file next to the image file. Does nothing if the caller passed only the
    /// image file and no labels can be taken.
    ///
    /// # Errors
    /// If the caller passed both files, but the label file has no labels. Also if both have labels, because one set
    /// would be lost.
    pub(super) fn take_labels(
        &mut self,
        mut beside: Self,
        file: &Path,
        (part, keys): (&Shards, Keys<'_>),
    ) -> Result<(), ConvertError> {
        let is_label = |array: &StoredArray| match keys.label {
            Some(key) => array.name == key,
            None => is_label_name(&array.name),
        };
        beside.take_class_names()?;
        let labels = match beside.arrays.as_slice() {
            [only] => Some(only),
            arrays => arrays.iter().find(|array| is_label(array)),
        };
        match labels {
            Some(labels) if !self.arrays.iter().any(is_label) => {
                let name = keys.label.unwrap_or("label").to_owned();
                let labels = labels.clone();
                self.arrays.push(StoredArray { name, ..labels });
                if self.classes.is_empty() {
                    self.classes = beside.classes;
                }
                Ok(())
            }
            // The caller named only the image file.
            _ if part.files.len() == 1 => Ok(()),
            found => {
                let names: Vec<String> = beside.arrays.iter().map(|a| a.name.clone()).collect();
                let reason = match found {
                    Some(_) => "expected no separate label file, because the image files have labels".to_owned(),
                    None => format!("expected an array of labels, found {}", quoted(&names)),
                };
                let hint = format!("pass only the image file, or choose the label file with {LABEL_KEY}");
                Err(ConvertError::contradictory(file, "", reason, hint))
            }
        }
    }

    /// The class names that the format stores, or else those of the exported pack.
    fn class_names(&self) -> &[String] {
        match &self.metadata {
            Some(metadata) if self.classes.is_empty() => metadata.class_names("label"),
            _ => &self.classes,
        }
    }

    /// Appends the samples of the next file, which must have the same arrays.
    pub(super) fn append(&mut self, mut other: Self, file: &Path) -> Result<(), ConvertError> {
        self.take_class_names()?;
        other.take_class_names()?;
        check_same_classes(file, self.class_names(), other.class_names())?;
        for array in &mut self.arrays {
            let next = other.arrays.iter().find(|a| a.name == array.name);
            let next = next.filter(|a| a.elements == array.elements && a.item == array.item);
            let Some(next) = next else {
                let reason = format!(
                    "expected {} arrays of shape {:?}, as in the previous files",
                    array.elements.describe(),
                    array.item
                );
                let hint = "pass files with matching arrays, or convert each one separately";
                return Err(ConvertError::contradictory(file, &array.name, reason, hint));
            };
            array.parts.extend(next.parts.iter().cloned());
        }
        let known = |name: &String| self.arrays.iter().any(|a| a.name == *name);
        match other.arrays.iter().find(|a| !known(&a.name)) {
            None => Ok(()),
            Some(new) => Err(ConvertError::malformed(file, &new.name, "the previous files do not have this array")),
        }
    }

    /// The error if every array is an image, or every array is a stack of images.
    fn several(&self, source: &Path) -> Option<ConvertError> {
        let whole = |array: &StoredArray| match array.elements {
            Elements::Numbers { dtype, .. } => {
                let shape = [&[to_u64(array.rows())], array.item.as_slice()].concat();
                Some((array.name.clone(), ArrayType { dtype, shape }))
            }
            Elements::Text { .. } => None,
        };
        several::refusal(source, &self.arrays.iter().map(whole).collect::<Option<Vec<_>>>()?)
    }

    /// Decides the role of each array.
    pub(super) fn into_found(mut self, source: &Path, keys: Keys<'_>) -> Result<Found, ConvertError> {
        self.take_class_names()?;
        self.restore_types();
        let names: Vec<String> = self.arrays.iter().map(|a| a.name.clone()).collect();
        let roles = Roles::find(source, &names, keys, self.metadata.as_ref());
        let roles = roles.map_err(|error| self.several(source).unwrap_or(error))?;
        let mut found = self.sort(source, roles)?;
        self.warnings.extend(self.others.warning(|count, first| Warning::OtherArrays { count, first }));
        match &mut found.labels {
            Some(labels) => labels.classes = self.classes,
            None => found.classes = self.classes,
        }
        let (metadata, warnings, has_single_label) = (self.metadata, self.warnings, self.has_single_label);
        Ok(Found { metadata, warnings, has_single_label, ..found })
    }

    /// Builds the result from the arrays, according to their roles.
    fn sort(&mut self, source: &Path, roles: Roles<'_>) -> Result<Found, ConvertError> {
        let none = || ConvertError::malformed(source, "", "it contains no images");
        let array = self.arrays.get(roles.image).ok_or_else(none)?;
        let part = Some(Part::Image);
        roles.fitting(source, &array.name, part, &array.kind(), &mut self.warnings)?;
        let images = array.store().ok_or_else(none)?;
        let names = Names::Numbered(std::mem::take(&mut self.dataset));
        let mut found =
            Found { are_planes: array.item.len() == 2, ..Found::new(self.format, Arc::clone(&images), names) };
        for (place, array) in self.arrays.iter().enumerate() {
            if place == roles.image || is_made_anew(&array.name) {
                continue;
            }
            let part = roles.of(place);
            if array.rows() != images.len() {
                if part.is_some() {
                    return Err(other_count(source, &array.name, images.as_ref(), array.rows()));
                }
                self.others.add(array.name.as_bytes());
                continue;
            }
            let kind = array.kind();
            match roles.fitting(source, &array.name, part, &kind, &mut self.warnings)? {
                Some(Part::Label) => take_label(&mut found, array, &mut self.warnings)?,
                part => take(&mut found, array, part == Some(Part::Mask), self.metadata.as_ref())?,
            }
        }
        Ok(found)
    }

    /// Removes the array of class names.
    fn take_class_names(&mut self) -> Result<(), ConvertError> {
        let is_classes = |array: &StoredArray| {
            matches!(array.elements, Elements::Text { .. })
                && CLASS_LIST_NAMES.contains(&array.name.as_str())
                && array.is_scalar()
        };
        if let Some(place) = self.arrays.iter().position(is_classes) {
            let array = self.arrays.remove(place);
            self.classes = read_texts(&array)?.iter().map(str::to_owned).collect();
        }
        Ok(())
    }

    /// Restores the element types of the exported pack.
    fn restore_types(&mut self) {
        let Some(metadata) = &self.metadata else {
            return;
        };
        for array in &mut self.arrays {
            if let Elements::Numbers { dtype, swapped } = array.elements {
                let shape = array.item.clone();
                let restored = metadata.restored(&array.name, &ArrayType { dtype, shape });
                array.elements = Elements::Numbers { dtype: restored.dtype, swapped };
            }
        }
    }
}

/// Adds the labels: class ids, names, or numbers that become a field.
fn take_label(found: &mut Found, array: &StoredArray, warnings: &mut Vec<Warning>) -> Result<(), ConvertError> {
    let values = match array.elements {
        Elements::Text { .. } => LabelValues::Names(read_texts(array)?),
        Elements::Numbers { dtype, .. } => match read_ids(array)? {
            Some(ids) => LabelValues::Ids(ids),
            None => {
                warnings.push(Warning::no_ids(&array.name, dtype));
                let name = target(array.name.clone());
                found.fields.extend(array.field(&name, None));
                return Ok(());
            }
        },
    };
    found.labels = Some(FoundLabels::without_classes(&array.name, values));
    Ok(())
}

/// Adds an array that is neither images nor labels.
fn take(found: &mut Found, array: &StoredArray, is_mask: bool, known: Option<&Metadata>) -> Result<(), ConvertError> {
    if is_paths(array, known)
        && let Some(paths) = read_paths(array)?
    {
        found.names = Names::Paths(paths);
    } else if let Some(store) = array.store() {
        if is_mask {
            found.masks = Some(store);
        } else {
            let role = role_of(known, &array.name).filter(|role| *role != Role::Label);
            found.fields.extend(array.field(&array.name, role));
        }
    } else if array.is_scalar() {
        found.texts.push(SourceColumn { name: array.name.clone(), values: ColumnValues::Text(read_texts(array)?) });
    }
    Ok(())
}

/// Whether an array contains the samples' paths, either as strings or as bytes, as in an exported pack.
fn is_paths(array: &StoredArray, known: Option<&Metadata>) -> bool {
    match array.elements {
        Elements::Text { .. } => is_path_name(&array.name) && array.is_scalar(),
        Elements::Numbers { dtype, .. } => {
            dtype == DType::U8
                && array.item.len() == 1
                && array.name == PATHS
                && known.is_some_and(|m| m.field(PATHS).is_none())
        }
    }
}

/// The name of the array in which exports store paths.
pub(crate) const PATHS: &str = "path";

/// The paths. `None` if they are not unique.
fn read_paths(array: &StoredArray) -> Result<Option<Vec<Vec<u8>>>, ConvertError> {
    let mut texts = array.clone();
    if let (Elements::Numbers { .. }, Some(&bytes)) = (array.elements, array.item.first()) {
        texts.elements = Elements::Text { bytes, wide: false, swapped: false };
        texts.item.clear();
    }
    let paths: TextArena = read_texts(&texts)?;
    Ok(are_paths(paths.iter()).then(|| paths.iter().map(|path| path.as_bytes().to_vec()).collect()))
}

#[cfg(test)]
mod tests;
