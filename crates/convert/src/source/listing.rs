//! The samples of a source before any of them is opened for decoding.
//!
//! `image_folder`, `manifest` and the modules of the other formats find them.

use packds_system::to_u64;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use packds_format::{Keypoints, Role};

use super::{
    archive::Unpacked,
    column::{ColumnValues, SourceColumn},
    mask_colors::MaskColors,
    mask_files::MaskFiles,
    members::Members,
    paths::{PathTable, as_path, join_into, lossy},
    run_masks::RunMasks,
    store::{Content, Store},
    tally::Tally,
    warning::Warning,
};
use crate::{
    data_format::DataFormat,
    error::ConvertError,
    metadata::Metadata,
    sample::{MAX_FILE_BYTES, SampleError, append_file},
};

/// The kind of source behind a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A folder of class folders, read like torchvision's `ImageFolder`.
    ImageFolder,
    /// A folder of images without labels.
    FlatFolder,
    /// A folder of images and a folder of masks.
    PairedFolders,
    /// A folder of images and files with their boxes.
    BoxFolder,
    /// A table that lists the images, in a form such as CSV or JSON Lines.
    Manifest,
    /// A file or folder in a format that stores the samples itself.
    Container(DataFormat),
    /// One or more files of a format with one sample per file.
    SampleFiles(DataFormat),
    /// A program that supplied its samples one by one.
    Program,
}

impl SourceKind {
    /// The name of this kind in provenance and reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ImageFolder => "image_folder",
            Self::FlatFolder => "flat_folder",
            Self::PairedFolders => "paired_folders",
            Self::BoxFolder => "box_folder",
            Self::Manifest => "manifest",
            Self::Container(format) | Self::SampleFiles(format) => format.name(),
            Self::Program => "program",
        }
    }
}

impl SourceKind {
    /// What one sample is called in reports.
    pub(super) fn sample(self) -> &'static str {
        match self {
            Self::ImageFolder | Self::FlatFolder | Self::PairedFolders | Self::BoxFolder | Self::SampleFiles(_) => {
                "file"
            }
            Self::Manifest | Self::Program => "row",
            Self::Container(format) => format.entry().sample,
        }
    }
}

impl From<DataFormat> for SourceKind {
    fn from(format: DataFormat) -> Self {
        Self::Container(format)
    }
}

/// One sample of a [`Listing`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample<'a> {
    /// The file's folder relative to the root, in raw bytes with `/` as separator. Empty for the root itself.
    pub directory: &'a [u8],
    /// The file's name in raw bytes.
    pub name: &'a [u8],
    /// The class id or integer label, if the source has one per sample.
    pub label: Option<i64>,
    /// The file's size when listed; 0 for a dangling link.
    pub bytes: u64,
}

impl Sample<'_> {
    /// Appends the path relative to the root to `path`.
    pub fn path_into(&self, path: &mut Vec<u8>) {
        join_into(self.directory, self.name, path);
    }
}

/// All samples of a source in their final order, with labels and columns.
///
/// A sample takes 24 bytes plus its file name, and 8 bytes more in a manifest with labels. Folder names are stored once. Accessors
/// that take an index panic unless it is less than [`Listing::len`].
#[derive(Debug, Clone)]
pub struct Listing {
    pub(super) kind: SourceKind,
    pub(super) root: PathBuf,
    /// The archives that the source was unpacked from, innermost first.
    pub(super) unpacked: Vec<Arc<Unpacked>>,
    /// The root in the temporary folder of the innermost archive.
    pub(super) unpacked_root: Option<PathBuf>,
    /// The files, if they are read from an archive that was not unpacked here.
    pub(super) members: Option<Members>,
    pub(super) paths: PathTable,
    pub(super) bytes: Vec<u64>,
    pub(super) labels: Labels,
    pub(super) classes: Vec<Vec<u8>>,
    /// The class names of boxes.
    pub(super) box_classes: Vec<String>,
    /// The names of the keypoints of boxes.
    pub(super) keypoints: Option<Keypoints>,
    pub(super) columns: Vec<SourceColumn>,
    pub(super) masks: Option<Masks>,
    /// The class numbers of the colours in mask files.
    pub(super) mask_colors: Option<Arc<MaskColors>>,
    pub(super) images: Images,
    pub(super) fields: Vec<SourceField>,
    pub(super) metadata: Option<Metadata>,
    pub(super) faults: Faults,
    pub(super) warnings: Vec<Warning>,
    pub(super) ignored: u64,
    /// For a part of a listing: the numbers of its samples in the whole listing.
    pub(super) numbers: Option<Vec<u64>>,
}

/// Samples known to be bad, by index: each lacks a required value such as its label. A placeholder replaces the value,
/// because every field needs an item for each sample.
pub(super) type Faults = BTreeMap<usize, Fault>;

/// What a sample lacks.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    /// The problem as described by the source's reader.
    Said(Arc<str>),
    /// A value that cannot be read.
    Value { reason: Arc<str>, hint: Option<Arc<str>> },
    /// The whole message, in a part of a listing.
    Planned(Arc<str>),
    /// The folder of masks has no mask for the image.
    NoMask {
        masks: Arc<str>,
        /// The line of Python that writes empty masks, if no image of the folder has a mask.
        line: Option<Arc<str>>,
    },
    /// The row of the image has no mask.
    NoMaskCell {
        /// The column of masks.
        column: Arc<str>,
        /// The place of the row in the manifest.
        place: String,
    },
    /// The file that the manifest names on this line is missing, or is not a regular file.
    File {
        manifest: Arc<Path>,
        line: u64,
        is_mask: bool,
        /// Whether the path exists, but is a folder, pipe, socket or device.
        is_there: bool,
        /// Two files whose names differ from this name only in case or Unicode form.
        near: Option<Box<[String; 2]>>,
    },
}

impl Fault {
    /// The fault of a sample with the value that an error is about. `None` if it is not about a value.
    pub(super) fn of_value(error: &ConvertError) -> Option<Self> {
        let (path, place, reason, hint) = match error {
            ConvertError::SourceMalformed { path, place, reason, hint } => (path, place, reason, hint.as_deref()),
            ConvertError::SourceUnsupported { path, place, reason, hint } => (path, place, reason, Some(hint.as_str())),
            _ => return None,
        };
        let file = path.file_name().unwrap_or_default().display();
        let reason = format!("'{place}' in {file}: {reason}").into();
        Some(Self::Value { reason, hint: hint.map(Arc::from) })
    }
}

impl From<Arc<str>> for Fault {
    fn from(reason: Arc<str>) -> Self {
        Self::Said(reason)
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self::Said(reason.into())
    }
}

/// The labels of a [`Listing`].
#[derive(Debug, Clone)]
pub(super) enum Labels {
    None,
    /// One label per directory of the path table.
    ByDirectory(Vec<i64>),
    PerSample(Vec<i64>),
    Lists(LabelLists),
}

/// One list of labels per sample: list `i` is `ids[ends[i - 1]..ends[i]]`.
#[derive(Debug, Clone, Default)]
pub(super) struct LabelLists {
    pub(super) ends: Vec<usize>,
    pub(super) ids: Vec<i64>,
}

/// One mask per sample.
#[derive(Debug, Clone)]
pub(super) enum Masks {
    /// Separate files, usually one for each mask.
    Files(MaskFiles),
    /// The items of a store.
    Stored(Arc<dyn Store>),
    /// Run lengths in a table.
    Runs(RunMasks),
}

/// The location of the images.
#[derive(Debug, Clone)]
pub(super) enum Images {
    /// Separate files, named by the listing's paths.
    Files,
    /// The items of a store.
    Stored(Arc<dyn Store>),
}

/// A source field other than image, mask and label. It becomes a pack field of the same name: arrays of one type, or bytes.
#[derive(Debug, Clone)]
pub(crate) struct SourceField {
    pub(crate) name: String,
    pub(crate) store: Arc<dyn Store>,
    /// Its meaning, if known.
    pub(crate) role: Option<Role>,
}

impl Listing {
    /// A listing of files below `root` with their sizes, and nothing else.
    pub(super) fn of_files(kind: SourceKind, root: &Path, paths: PathTable, bytes: Vec<u64>) -> Self {
        Self {
            kind,
            root: root.to_owned(),
            unpacked: Vec::new(),
            unpacked_root: None,
            members: None,
            paths,
            bytes,
            labels: Labels::None,
            classes: Vec::new(),
            box_classes: Vec::new(),
            keypoints: None,
            columns: Vec::new(),
            masks: None,
            mask_colors: None,
            images: Images::Files,
            fields: Vec::new(),
            metadata: None,
            faults: Faults::new(),
            warnings: Vec::new(),
            ignored: 0,
            numbers: None,
        }
    }

    /// The kind of source.
    pub fn kind(&self) -> SourceKind {
        self.kind
    }

    /// The folder that all paths are relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether the listing is a part of another one.
    pub(crate) fn is_part(&self) -> bool {
        self.numbers.is_some()
    }

    /// The number of a sample in the whole source.
    pub(crate) fn number(&self, idx: usize) -> u64 {
        self.numbers.as_ref().and_then(|numbers| numbers.get(idx).copied()).unwrap_or_else(|| to_u64(idx))
    }

    /// Number of samples; never 0 in a listing returned by [`super::list`].
    pub fn len(&self) -> usize {
        self.paths.len()
    }

    /// True if there are no samples.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sample `idx`. Does not allocate.
    pub fn sample(&self, idx: usize) -> Sample<'_> {
        Sample {
            directory: self.paths.directory(idx),
            name: self.paths.name(idx),
            label: self.label(idx),
            bytes: self.bytes[idx],
        }
    }

    /// Appends the path of sample `idx`, relative to the root, to `path`.
    pub fn path_into(&self, idx: usize, path: &mut Vec<u8>) {
        self.paths.path_into(idx, path);
    }

    /// Keeps an archive's temporary folder until the listing is dropped, and shows paths in the folder as paths in the archive.
    pub(super) fn keep_unpacked(&mut self, unpacked: &Arc<Unpacked>) {
        let named = unpacked.named(&self.root);
        let root = std::mem::replace(&mut self.root, named);
        self.unpacked_root.get_or_insert(root);
        self.unpacked.push(Arc::clone(unpacked));
    }

    /// Appends the file at `path`, or its first `limit` bytes, to `out`. If the source was unpacked, the file is in the
    /// temporary folder.
    fn append_file(&self, path: &[u8], limit: u64, out: &mut Vec<u8>) -> Result<u64, SampleError> {
        match &self.members {
            Some(members) => members.append(path, limit, out),
            None => append_file(&self.unpacked_root.as_ref().unwrap_or(&self.root).join(as_path(path)), limit, out),
        }
    }

    /// Replaces the temporary folder in an error with the path of the archive.
    pub(crate) fn named(&self, error: SampleError) -> SampleError {
        let text = error.to_string();
        let renamed = self.unpacked.iter().fold(text.clone(), |text, unpacked| unpacked.renamed(&text));
        if renamed == text { error } else { SampleError::Source(renamed) }
    }

    /// The full path of sample `idx`: its file, or its name appended to the path of a source that is not a folder. For an archive, no
    /// such file exists.
    pub fn file_path(&self, idx: usize) -> PathBuf {
        self.root.join(as_path(&self.paths.path(idx)))
    }

    /// The folder of the files. `None` if they were unpacked from an archive into a temporary folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.unpacked.is_empty().then_some(self.root.as_path())
    }

    /// The class id or integer label of sample `idx`. `None` if the source has no labels or has lists of labels.
    pub fn label(&self, idx: usize) -> Option<i64> {
        match &self.labels {
            Labels::None | Labels::Lists(_) => None,
            Labels::ByDirectory(labels) => Some(labels[self.paths.directory_idx(idx)]),
            Labels::PerSample(labels) => Some(labels[idx]),
        }
    }

    /// True if each sample has one label.
    pub fn has_labels(&self) -> bool {
        matches!(self.labels, Labels::ByDirectory(_) | Labels::PerSample(_))
    }

    /// Whether the source has only one class folder, which may not be a class.
    pub(super) fn has_one_folder(&self) -> bool {
        matches!(self.kind, SourceKind::ImageFolder | SourceKind::SampleFiles(_)) && self.classes.len() == 1
    }

    /// Whether the source is a folder whose samples consist of images only.
    pub(crate) fn has_only_images(&self) -> bool {
        let has_labels = self.has_labels() || self.has_label_lists();
        self.kind == SourceKind::FlatFolder
            && !has_labels
            && self.masks.is_none()
            && self.columns.is_empty()
            && self.fields.is_empty()
    }

    /// True if each sample has a list of labels.
    pub fn has_label_lists(&self) -> bool {
        matches!(self.labels, Labels::Lists(_))
    }

    /// The labels of sample `idx`, ascending and unique, if the source has lists.
    pub fn label_list(&self, idx: usize) -> Option<&[i64]> {
        let Labels::Lists(lists) = &self.labels else {
            return None;
        };
        let start = if idx == 0 { 0 } else { lists.ends[idx - 1] };
        Some(&lists.ids[start..lists.ends[idx]])
    }

    /// The class names in raw bytes; a class's id is its index. Empty if there are no labels or the labels are unnamed integers.
    pub fn classes(&self) -> &[Vec<u8>] {
        &self.classes
    }

    /// The number of named classes: of the samples, or of the boxes if the samples have no labels.
    pub(crate) fn n_classes(&self) -> usize {
        if self.classes.is_empty() { self.box_classes().len() } else { self.classes.len() }
    }

    /// The class names of boxes.
    pub(crate) fn box_classes(&self) -> &[String] {
        let of_pack = || {
            let metadata = self.metadata.as_ref()?;
            let labels = metadata.fields.iter().find(|field| field.role == Some(Role::BoxLabels))?;
            Some(metadata.class_names(&labels.name))
        };
        if self.box_classes.is_empty() { of_pack().unwrap_or_default() } else { &self.box_classes }
    }

    /// The names of the keypoints of boxes.
    pub(crate) fn keypoints(&self) -> Option<&Keypoints> {
        let fields = self.metadata.iter().flat_map(|metadata| &metadata.fields);
        let mut of_pack = fields.filter_map(|field| field.keypoints.as_ref());
        of_pack.next().or(self.keypoints.as_ref())
    }

    /// The field with the boxes of the images, if they have any.
    pub(crate) fn boxes(&self) -> Option<&SourceField> {
        self.fields.iter().find(|field| field.role == Some(Role::Boxes))
    }

    /// Removes keypoints and polygons if the boxes are left out, without which they mean nothing.
    pub(super) fn drop_outlines_without_boxes(&mut self) {
        if self.boxes().is_none() {
            self.fields.retain(|field| !matches!(field.role, Some(Role::Keypoints | Role::Polygons)));
        }
    }

    /// The width and height that the source says an image with boxes has.
    pub(crate) fn stated_size(&self, idx: usize) -> Option<(u32, u32)> {
        self.boxes().filter(|_| self.metadata.is_none())?;
        let number = |name: &str| match &self.columns.iter().find(|column| column.name == name)?.values {
            ColumnValues::I64(values) => u32::try_from(*values.get(idx)?).ok(),
            _ => None,
        };
        number("width").zip(number("height"))
    }

    /// The additional columns of a manifest, in its order.
    pub fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    /// True if any image is an array of pixels, not a file.
    pub fn has_pixels(&self) -> bool {
        self.image_contents().any(|content| content != Content::File)
    }

    /// True if each sample has a mask.
    pub fn has_masks(&self) -> bool {
        self.masks.is_some()
    }

    /// Appends a path for sample `idx`'s mask, relative to the root, to `path`. This is the mask's first file, or the
    /// image if the mask has no file. If masks are not files, it is the image's path and ` (mask)`. Returns the mask's
    /// size. If the source has no masks, returns `None` and appends nothing.
    pub fn mask_path_into(&self, idx: usize, path: &mut Vec<u8>) -> Option<u64> {
        match self.masks.as_ref()? {
            Masks::Files(files) => {
                files.paths.path_into(idx, path);
                Some(files.bytes(idx))
            }
            Masks::Stored(_) | Masks::Runs(_) => {
                self.path_into(idx, path);
                path.extend_from_slice(b" (mask)");
                Some(self.mask_bytes(idx))
            }
        }
    }

    /// Warns about masks in JPEG files.
    pub(super) fn note_lossy_masks(&mut self) {
        let Some(Masks::Files(MaskFiles { paths, .. })) = &self.masks else { return };
        let mut tally = Tally::default();
        let has_file = |idx: &usize| !self.faults.contains_key(idx) && self.mask_bytes(*idx) > 0;
        for idx in (0..paths.len()).filter(has_file) {
            let name = paths.name(idx).to_ascii_lowercase();
            if name.ends_with(b".jpg") || name.ends_with(b".jpeg") {
                tally.add(&paths.path(idx));
            }
        }
        self.warnings.extend(tally.warning(|count, first| Warning::LossyMasks { count, first }));
    }

    /// Size of sample `idx`'s mask in the source, in bytes; 0 if it has none.
    pub(crate) fn mask_bytes(&self, idx: usize) -> u64 {
        match &self.masks {
            None => 0,
            Some(Masks::Files(files)) => files.bytes(idx),
            Some(Masks::Stored(store)) => store.bytes(idx),
            Some(Masks::Runs(runs)) => runs.bytes(idx),
        }
    }

    /// The paths and sizes of a mask's files, if there are none or several. `None` if there is exactly one, or if masks
    /// are not files.
    pub(crate) fn mask_files(&self, idx: usize) -> Option<Vec<(Vec<u8>, u64)>> {
        let Some(Masks::Files(files)) = &self.masks else { return None };
        Some(files.of(idx)).filter(|files| files.len() != 1)
    }

    /// Appends the image of sample `idx`, at most `limit` bytes, to `out`. Returns its content type.
    pub(crate) fn append_image(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<Content, SampleError> {
        match &self.images {
            Images::Files => self.append_file(&self.paths.path(idx), limit, out).map(|_| Content::File),
            Images::Stored(store) => append_stored(store.as_ref(), idx, limit, out),
        }
    }

    /// Appends the mask of sample `idx` to `out`. `size` is the width and height of the image. `None` if the source has
    /// no masks.
    pub(crate) fn append_mask(
        &self,
        idx: usize,
        size: (u32, u32),
        out: &mut Vec<u8>,
    ) -> Result<Option<Content>, SampleError> {
        match &self.masks {
            None => Ok(None),
            Some(Masks::Files(files)) => {
                let read = |path: &[u8], out: &mut Vec<u8>| self.append_file(path, u64::MAX, out);
                files.append(idx, size, (&read, self.mask_colors.as_deref()), out).map(Some)
            }
            Some(Masks::Stored(store)) => append_stored(store.as_ref(), idx, u64::MAX, out).map(Some),
            Some(Masks::Runs(runs)) => runs.append(idx, size, out).map(Some),
        }
    }

    /// The content type of the image of sample `idx`, without reading it.
    pub(crate) fn image_content(&self, idx: usize) -> Content {
        match &self.images {
            Images::Files => Content::File,
            Images::Stored(store) => store.content(idx),
        }
    }

    /// The content types of the images, or just one if all are the same.
    pub(crate) fn image_contents(&self) -> impl Iterator<Item = Content> {
        let n = match &self.images {
            Images::Files => 1,
            Images::Stored(store) if store.is_uniform() => 1,
            Images::Stored(store) => store.len(),
        };
        (0..n.min(self.len())).map(|idx| self.image_content(idx))
    }

    /// The fields other than image, mask and labels.
    pub(crate) fn fields(&self) -> &[SourceField] {
        &self.fields
    }

    /// Metadata of the pack that the source was exported from, if any.
    pub(crate) fn metadata(&self) -> Option<&Metadata> {
        self.metadata.as_ref()
    }

    /// Why sample `idx` is bad, if known without reading it.
    pub(crate) fn fault(&self, idx: usize) -> Option<SampleError> {
        let (manifest, line, is_mask, is_there, near) = match self.faults.get(&idx)? {
            Fault::Said(reason) => {
                return Some(SampleError::Source(format!("sample {idx}: {reason}")));
            }
            Fault::Value { reason, hint } => {
                let (reason, hint) = (reason.to_string(), hint.as_deref().map(str::to_owned));
                return Some(SampleError::Value { reason, hint });
            }
            Fault::Planned(message) => return Some(SampleError::Source(message.to_string())),
            Fault::NoMask { masks, line } => {
                // For an archive, the line is left out, because it would name the temporary folder.
                let line = line.as_ref().filter(|_| self.unpacked.is_empty()).map(ToString::to_string);
                return Some(SampleError::NoMask { sample: idx, masks: masks.to_string(), line });
            }
            Fault::NoMaskCell { column, place } => {
                let (column, place) = (column.to_string(), place.clone());
                return Some(SampleError::NoMaskCell { sample: idx, column, place });
            }
            Fault::File { manifest, line, is_mask, is_there, near } => {
                let manifest =
                    self.unpacked.iter().fold(manifest.to_path_buf(), |path, unpacked| unpacked.named(&path));
                (manifest, *line, *is_mask, *is_there, near.clone())
            }
        };
        let path = match &self.masks {
            Some(Masks::Files(files)) if is_mask => files.paths.path(idx),
            _ => self.paths.path(idx),
        };
        let file = self.root.join(as_path(&path));
        let no_file = SampleError::NoFile { file, is_there, manifest, line, near };
        Some(match is_mask {
            false => no_file,
            true => SampleError::Mask { mask: lossy(&path), source: Box::new(no_file) },
        })
    }

    /// The samples known to be bad without reading them.
    pub(crate) fn faulty(&self) -> impl Iterator<Item = usize> {
        self.faults.keys().copied()
    }

    /// Warnings about the source.
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Number of files or members in the source that are not samples.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
}

/// Appends an item of a store and checks its length against its type.
pub(crate) fn append_stored(
    store: &dyn Store,
    idx: usize,
    limit: u64,
    out: &mut Vec<u8>,
) -> Result<Content, SampleError> {
    let (content, limit) = (store.content(idx), limit.min(MAX_FILE_BYTES + 1));
    let before = out.len();
    store.append(idx, limit, out)?;
    let found = to_u64(out.len() - before);
    let expected = match &content {
        Content::Pixels(shape) => shape.bytes(),
        Content::Array(array) => array.bytes().unwrap_or(u64::MAX),
        Content::Ragged(entry) => {
            let entry = entry.bytes().unwrap_or(u64::MAX).max(1);
            found.next_multiple_of(entry)
        }
        Content::File | Content::Bytes | Content::Text | Content::Json if found > MAX_FILE_BYTES => {
            let limit = MAX_FILE_BYTES;
            return Err(SampleError::TooLarge { limit, found });
        }
        Content::File | Content::Bytes | Content::Text | Content::Json => found,
    };
    if found == expected.min(limit) { Ok(content) } else { Err(SampleError::WrongLength { expected, found }) }
}
