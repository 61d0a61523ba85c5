//! The values of many files that hold one sample each, gathered by name.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use packds_format::Scalar;
use packds_system::{to_u64, to_usize};

use super::{FileContent, FileValue, Format};
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::{LABEL_KEY, LEAVE_OUT};
use crate::sample::SampleError;
use crate::source::ListOptions;
use crate::source::found::{Found, FoundLabels, Names};
use crate::source::gather::{Gathered, Gathering, Item};
use crate::source::listing::{Fault, Faults};
use crate::source::packed::{Packed, Piece};
use crate::source::paths::{FilePath, PathTable, as_path};
use crate::source::per_file;
use crate::source::roles::{Keys, find_image_field, is_label_name};
use crate::source::spool::Spool;
use crate::source::store::{ArrayType, Content, Contents, ItemFiles, OpenFile, Rows, Span, SpanFiles, Store};
use crate::source::swapped::swap;
use crate::source::tally::Tally;
use crate::source::warning::Warning;

/// The values of all files so far.
pub(super) struct Collected<'a> {
    of: Format,
    root: &'a Path,
    paths: &'a PathTable,
    fields: Vec<Gathered>,
    /// The contents of each field in each file.
    contents: Vec<Contents>,
    /// Values that had to be unpacked.
    spool: Option<Spool>,
    /// The numbers in the spool of the arrays with these names.
    unpacked: BTreeMap<String, u32>,
    faults: Faults,
    /// Values that are missing from the first file.
    others: Tally,
    /// The names of values that were excluded.
    left_out: BTreeSet<String>,
}

impl<'a> Collected<'a> {
    /// Reads all files. A file that cannot be read is a bad sample.
    ///
    /// # Errors
    /// If no file can be read, or the spool cannot be written.
    pub(super) fn of(
        of: Format,
        root: &'a Path,
        paths: &'a PathTable,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let mut all = Self {
            of,
            root,
            paths,
            fields: Vec::new(),
            contents: Vec::new(),
            spool: None,
            unpacked: BTreeMap::new(),
            faults: Faults::new(),
            others: Tally::default(),
            left_out: BTreeSet::new(),
        };
        let mut first_error = None;
        for idx in 0..paths.len() {
            let path = root.join(as_path(&paths.path(idx)));
            match (of.read)(&path, options) {
                Ok(values) => all.add(idx, &path, values, options)?,
                Err(error @ ConvertError::Spool { .. }) => return Err(error),
                Err(error) => {
                    all.faults.insert(idx, Fault::from(error.to_string()));
                    all.fields.iter_mut().for_each(Gathered::push_missing);
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if all.fields.is_empty() => Err(error),
            _ => Ok(all),
        }
    }

    /// Adds the values of file `idx`. The first file decides which values exist.
    fn add(
        &mut self,
        idx: usize,
        path: &Path,
        values: Vec<FileValue>,
        options: &ListOptions,
    ) -> Result<(), ConvertError> {
        let is_first = self.fields.is_empty();
        let (left_out, mut values): (Vec<_>, Vec<_>) =
            values.into_iter().partition(|value| options.is_left_out(&value.name));
        self.left_out.extend(left_out.into_iter().map(|value| value.name));
        let mut fields = std::mem::take(&mut self.fields);
        for (place, field) in fields.iter_mut().enumerate() {
            let pushed = match values.iter().position(|value| value.name == field.name) {
                None => Err("missing from this file".to_owned()),
                Some(found) => {
                    let value = values.swap_remove(found);
                    let item = self.item(path, &value, options)?;
                    self.note(place, idx, &item);
                    field.push(&item)
                }
            };
            if let Err(reason) = pushed {
                field.push_missing();
                let reason = format!("'{}': {reason}", field.name);
                self.faults.entry(idx).or_insert(reason.into());
            }
        }
        for value in values {
            if is_first {
                let item = self.item(path, &value, options)?;
                self.contents.push(Contents::All(Content::Bytes));
                self.note(fields.len(), idx, &item);
                fields.push(Gathered::begin_after(idx, value.name.clone(), &item));
            } else {
                self.others.add(value.name.as_bytes());
            }
        }
        self.fields = fields;
        Ok(())
    }

    /// Records the content of a field in file `idx`.
    fn note(&mut self, place: usize, idx: usize, item: &Item<'_>) {
        if let (Some(contents), Item::Stored(_, content)) = (self.contents.get_mut(place), item) {
            contents.push(idx, content.clone());
        }
    }

    fn item<'v>(&mut self, path: &Path, value: &'v FileValue, options: &ListOptions) -> Result<Item<'v>, ConvertError> {
        let (array, rows, swapped, own_offset) = match &value.content {
            FileContent::Text(text) => return Ok(Item::Text(text)),
            FileContent::LeftOut => return Ok(Item::Text("")),
            FileContent::Array { array, rows, swapped, own_offset } => (array, rows, *swapped, *own_offset),
        };
        let wrong = |error: SampleError| ConvertError::malformed(path, &value.name, error.to_string());
        if array.is_one_number() {
            let bytes = whole_bytes(array, rows, swapped).map_err(wrong)?;
            let number = Scalar::of(array.dtype, &bytes).ok_or_else(|| wrong(SampleError::Missing))?;
            return Ok(number.integer().map_or_else(|| Item::Float(number.nearest_f64()), Item::Int));
        }
        let bytes = array.bytes().unwrap_or(u64::MAX);
        let span = match own_offset.filter(|_| !swapped) {
            Some(offset) => Span { file: ItemFiles::OWN, offset, bytes },
            None => {
                let unpacked = whole_bytes(array, rows, swapped).map_err(wrong)?;
                let spool = match &mut self.spool {
                    Some(spool) => spool,
                    None => self.spool.insert(Spool::create(&options.spool_folder())?),
                };
                let number = self.unpacked.entry(value.name.clone()).or_insert_with(|| {
                    // The file is that of the sample.
                    let (file, format) = (FilePath::default(), self.of.format.name().to_owned());
                    spool.unpacks(Packed::Value { file, format, name: value.name.clone() })
                });
                spool.begin(Piece { packed: *number, ..Piece::default() });
                Span { file: ItemFiles::SPOOL, offset: spool.append(&unpacked)?, bytes }
            }
        };
        Ok(Item::Stored(span, Content::of_array(array.clone())))
    }

    /// Checks that the names to exclude exist. Also excludes the labels from class folders if their name is among these names,
    /// unless a value in the files has that name.
    fn check_left_out(
        &self,
        labels: Option<FoundLabels>,
        options: &ListOptions,
    ) -> Result<Option<FoundLabels>, ConvertError> {
        let names = self.fields.iter().map(|field| &field.name).chain(labels.iter().map(|labels| &labels.name));
        let names: Vec<String> = names.chain(&self.left_out).cloned().collect();
        options.check_left_out(self.root, &names)?;
        let is_own = |labels: &FoundLabels| self.left_out.contains(&labels.name);
        Ok(labels.filter(|labels| is_own(labels) || !options.is_left_out(&labels.name)))
    }

    /// Decides the role of each value. `labels` come from class folders.
    ///
    /// # Errors
    /// If the files contain labels too, and no key says which labels to use.
    pub(super) fn into_found(
        mut self,
        metadata: Option<Metadata>,
        labels: Option<FoundLabels>,
        options: &ListOptions,
    ) -> Result<Found, ConvertError> {
        let labels = self.check_left_out(labels, options)?;
        let others = std::mem::take(&mut self.others);
        let spool = match self.spool {
            Some(spool) => spool.finish(self.root)?,
            None => OpenFile::empty().map_err(ConvertError::io(self.root))?,
        };
        let files = ItemFiles { root: self.root.to_owned(), paths: self.paths.clone(), spool };
        let only = match self.fields.as_slice() {
            [only] => Some(only.name.clone()),
            _ => None,
        };
        // The only array is the image, whatever its name.
        let options = ListOptions { image_key: options.image_key.clone().or(only), ..options.clone() };
        let names: Vec<String> = self.fields.iter().map(|field| field.name.clone()).collect();
        let own_label = names.iter().position(|name| is_label_name(name));
        if let (Some(own), Some(_), None) = (own_label, &labels, &options.label_key) {
            let own = names.get(own).map_or("", String::as_str);
            let reason = "both the files and the class folders have labels";
            let hint =
                format!("ignore the labels in the files with {}, or choose them with {LABEL_KEY}", LEAVE_OUT.with(own));
            return Err(ConvertError::contradictory(self.root, own, reason, hint));
        }
        let mut warnings: Vec<Warning> =
            others.warning(|count, first| Warning::OtherArrays { count, first }).into_iter().collect();
        if options.one_sample_per_file.is_none() {
            let image = find_image_field(self.root, &names, Keys::of(&options), metadata.as_ref())?;
            if let Some(images) = self.contents.get(image) {
                let found = per_file::refuse_many(self.root, self.paths, images)?;
                warnings.extend(found.filter(|_| metadata.is_none()));
            }
        }
        let gathering = Gathering {
            format: self.of.format,
            fields: self.fields,
            names: Names::Paths((0..self.paths.len()).map(|idx| self.paths.path(idx)).collect()),
            files: SpanFiles::PerItem(Arc::new(files)),
            classes: Vec::new(),
            labels,
            metadata,
            warnings,
            ignored: 0,
        };
        let found = gathering.into_found(self.root, &options)?;
        Ok(Found { faults: self.faults, ..found })
    }
}

/// All bytes of an array.
pub(super) fn whole_bytes(array: &ArrayType, rows: &Rows, swapped: bool) -> Result<Vec<u8>, SampleError> {
    let mut bytes = Vec::new();
    for idx in 0..rows.len() {
        rows.append(idx, u64::MAX, &mut bytes)?;
    }
    if swapped {
        swap(&mut bytes, to_usize(array.dtype.size()));
    }
    let expected = array.bytes().unwrap_or(u64::MAX);
    match to_u64(bytes.len()) {
        found if found == expected => Ok(bytes),
        found => Err(SampleError::WrongLength { expected, found }),
    }
}
