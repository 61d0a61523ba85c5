//! Files that hold one sample each. Finds the image, label and mask in every file.
//!
//! The formats read the arrays of a file. Folders are listed in the same way as folders of image files.

mod collected;

use std::path::Path;

use self::collected::{Collected, whole_bytes};
use super::ListOptions;
use super::candidate::SampleFiles;
use super::found::{Found, FoundLabels, LabelValues};
use super::image_folder;
use super::listing::{Fault, Labels, Listing, Masks, SourceKind};
use super::paths::{FileTable, PathTable, lossy};
use super::shards::Shards;
use super::split;
use super::store::{ArrayType, Content, Rows};
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::formats::Input;
use crate::metadata::Metadata;
use crate::opt::LEAVE_OUT;
use crate::safe_name::safe_names;

/// Reads the values of a file that holds one sample.
pub(crate) type ReadWhole = fn(&Path, &ListOptions) -> Result<Vec<FileValue>, ConvertError>;

/// A named value in a file.
#[derive(Debug)]
pub(crate) struct FileValue {
    pub(super) name: String,
    pub(super) content: FileContent,
}

/// All bytes of a value that is an array.
pub(super) fn value_bytes(path: &Path, value: &FileValue) -> Result<Vec<u8>, ConvertError> {
    let malformed = |reason: String| ConvertError::malformed(path, &value.name, reason);
    match &value.content {
        FileContent::Array { array, rows, swapped, .. } => {
            whole_bytes(array, rows, *swapped).map_err(|error| malformed(error.to_string()))
        }
        _ => Err(malformed("expected an array".to_owned())),
    }
}

#[derive(Debug)]
pub(super) enum FileContent {
    Text(String),
    /// The value was excluded by the caller, and is not read.
    LeftOut,
    Array {
        array: ArrayType,
        /// The bytes of the array, one row after the other.
        rows: Rows,
        /// Whether the numbers are big-endian.
        swapped: bool,
        /// Offset of the bytes in the sample's own file. `None` if they were unpacked.
        own_offset: Option<u64>,
    },
}

/// A format whose files may hold one sample each.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) format: DataFormat,
    pub(super) read: ReadWhole,
}

impl Format {
    /// The format, if each file of `source` is one sample.
    pub(super) fn meant(
        format: DataFormat,
        read: Option<ReadWhole>,
        source: &Path,
        options: &ListOptions,
    ) -> Result<Option<Self>, ConvertError> {
        let Some(read) = read else { return Ok(None) };
        let this = Self { format, read };
        Ok(this.is_meant(source, options)?.then_some(this))
    }

    /// Whether each file of `source` is one sample. If the caller does not say, this depends on the layout of the folder.
    fn is_meant(self, source: &Path, options: &ListOptions) -> Result<bool, ConvertError> {
        match options.one_sample_per_file {
            Some(is_one) => Ok(is_one),
            None if !source.is_dir() || self.is_sample(source) => Ok(false),
            None if self.format == DataFormat::Npy => super::npy::is_one_per_file(source, options),
            None => Ok(Shards::find(source, self.format).is_err()),
        }
    }

    /// Reads the files that a table lists, if these are arrays.
    ///
    /// # Errors
    /// If both the files and the table have labels.
    pub(super) fn of_table(table: Listing, options: &ListOptions) -> Result<Listing, ConvertError> {
        let there = (0..table.len()).find(|idx| !table.faults.contains_key(idx));
        let name = there.map(|idx| lossy(table.paths.name(idx))).unwrap_or_default();
        let format = DataFormat::from_file_name(&name).filter(|format| format.may_hold_one_sample());
        let input = format.and_then(|format| Some((format, format.entry().input.as_ref()?)));
        let Some((format, Input::Samples { whole: Some(read), .. })) = input else { return Ok(table) };
        let Listing { labels, classes, fields, masks, .. } = table.clone();
        let files = Listing { labels: Labels::None, classes: Vec::new(), fields: Vec::new(), ..table };
        // The other options apply to the table.
        let options = ListOptions { spool: options.spool.clone(), ..ListOptions::default() };
        let mut listing = Self { format, read: *read }.open(files, &options)?;
        if !matches!(labels, Labels::None) {
            if listing.has_labels() || listing.has_label_lists() {
                let reason = "both the files and the table have labels";
                let hint = "remove the column of labels from the table, or the labels from the files";
                return Err(ConvertError::contradictory(&listing.root, "", reason, hint));
            }
            (listing.labels, listing.classes) = (labels, classes);
        }
        if let Some(runs @ Masks::Runs(_)) = masks {
            if listing.masks.is_some() {
                return Err(two_masks(&listing.root, "the table has masks too"));
            }
            // The masks are drawn in the size of the images, so their height and width must be known.
            let is_unclear = |content| matches!(content, Content::Array(array) if array.shape.len() != 2);
            if listing.image_contents().any(is_unclear) {
                let reason = "the table has run-length encoded (RLE) masks, but the height and width of the arrays are unclear, because they have other than two dimensions";
                let hint = format!("leave out the column of masks with {LEAVE_OUT}, or write the masks as arrays too");
                return Err(ConvertError::unsupported(&listing.root, "", reason, hint));
            }
            listing.masks = Some(runs);
        }
        listing.fields.extend(fields);
        listing.kind = SourceKind::Manifest;
        Ok(listing)
    }

    /// Lists a source without a chosen split.
    pub(super) fn list(self, source: &Path, options: &ListOptions) -> Result<Listing, ConvertError> {
        let files = SampleFiles::Of(self.format);
        let folder = match self.is_sample(source) {
            true => one_file(source),
            false => image_folder::list_source(source, options, files)?,
        };
        self.open(folder, options)
    }

    /// Lists one split.
    pub(super) fn list_split(self, source: &Path, split: &str, options: &ListOptions) -> Result<Listing, ConvertError> {
        self.open(split::list_one(source, split, options, SampleFiles::Of(self.format))?, options)
    }

    /// Lists every split.
    pub(super) fn list_splits(
        self,
        source: &Path,
        options: &ListOptions,
    ) -> Result<Vec<(String, Listing)>, ConvertError> {
        let splits = split::list_all(source, options, SampleFiles::Of(self.format))?;
        splits.into_iter().map(|(name, folder)| Ok((name, self.open(folder, options)?))).collect()
    }

    fn is_sample(self, source: &Path) -> bool {
        let name = source.file_name().map_or(&b""[..], |name| name.as_encoded_bytes());
        // A folder with a marker file is one store, whatever its name.
        let has_marker =
            || self.format.entry().markers.iter().any(|marker| source.join(marker).symlink_metadata().is_ok());
        source.is_file() || SampleFiles::Of(self.format).is_named(name) || has_marker()
    }

    /// Reads the files of a folder's listing.
    fn open(self, folder: Listing, options: &ListOptions) -> Result<Listing, ConvertError> {
        let root = folder.root.clone();
        let mut found = Collected::of(self, &root, &folder.paths, options)?.into_found(
            folder.metadata.clone(),
            class_labels(&folder),
            options,
        )?;
        if let Some(Masks::Files(files)) = &folder.masks {
            self.take_masks(&mut found, &root, &files.paths, options)?;
            let fault = |idx| (idx, Fault::from("it has no mask, and only image files get masks of zeros".to_owned()));
            found.faults.extend(files.blank().map(fault));
        }
        found.texts.extend(folder.columns);
        found.faults.extend(folder.faults);
        let warnings = folder.warnings.into_iter().filter(|warning| !matches!(warning, Warning::BlankMasks { .. }));
        found.warnings.splice(0..0, warnings);
        found.ignored += folder.ignored;
        found.kind = SourceKind::SampleFiles(self.format);
        found.take_label_field(&root, options.label_key.as_deref())?;
        found.into_listing(&root)
    }

    /// Adds the masks from a separate folder.
    fn take_masks(
        self,
        found: &mut Found,
        root: &Path,
        paths: &PathTable,
        options: &ListOptions,
    ) -> Result<(), ConvertError> {
        if found.masks.is_some() {
            return Err(two_masks(root, "there is also a mask folder"));
        }
        let of_masks = ListOptions { spool: options.spool.clone(), ..ListOptions::default() };
        let masks = Collected::of(self, root, paths, &of_masks)?.into_found(None, None, &of_masks)?;
        found.masks = Some(masks.images);
        for (idx, fault) in masks.faults {
            found.faults.entry(idx).or_insert(fault);
        }
        Ok(())
    }
}

/// The error about arrays with masks that have other masks too.
fn two_masks(root: &Path, others: &str) -> ConvertError {
    let hint = format!("ignore the masks in the files with {LEAVE_OUT}");
    ConvertError::contradictory(root, "", format!("the image files have masks, but {others}"), hint)
}

/// The listing of a single file.
fn one_file(source: &Path) -> Listing {
    let (root, name) = (source.parent().unwrap_or(Path::new("")), source.file_name().unwrap_or_default());
    let root = if root.as_os_str().is_empty() { Path::new(".") } else { root };
    let mut table = FileTable::default();
    table.push(name.as_encoded_bytes());
    let bytes = std::fs::metadata(source).map_or(0, |metadata| metadata.len());
    Listing::of_files(SourceKind::FlatFolder, root, table.paths, vec![bytes])
}

/// The labels from class folders. If a pack was exported into the folder, its class ids are restored.
fn class_labels(folder: &Listing) -> Option<FoundLabels> {
    let ids = (0..folder.len()).map(|idx| folder.label(idx)).collect::<Option<Vec<i64>>>()?;
    let classes: Vec<String> = folder.classes.iter().map(|name| lossy(name)).collect();
    let known = folder.metadata.as_ref().map_or(&[][..], |metadata| metadata.class_names("label"));
    let of_known = safe_names(known.iter().map(String::as_bytes));
    let place = |name: &String| of_known.iter().position(|known| known == name).and_then(|id| i64::try_from(id).ok());
    let restored = |ids_of: Vec<i64>| {
        let id = |id: &i64| usize::try_from(*id).ok().and_then(|id| ids_of.get(id).copied());
        ids.iter().map(id).collect::<Option<Vec<i64>>>()
    };
    let (ids, classes) = if let Some(ids_of) = classes.iter().map(place).collect::<Option<Vec<i64>>>() {
        (restored(ids_of)?, known.to_vec())
    } else if let Some(ids_of) = numbered(&classes, folder.metadata.as_ref()) {
        (restored(ids_of)?, Vec::new())
    } else {
        (ids, classes)
    };
    Some(FoundLabels { name: "label".to_owned(), values: LabelValues::Ids(ids), classes })
}

/// The class ids, if the folders are named after ids because the pack had no class names.
fn numbered(classes: &[String], metadata: Option<&Metadata>) -> Option<Vec<i64>> {
    let label = metadata?.field("label")?;
    label.role.filter(|role| *role == packds_format::Role::Label)?;
    classes.iter().map(|name| name.parse().ok()).collect()
}
