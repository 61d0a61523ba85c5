//! Some samples of a listing as a document, so that another process can convert them without listing the source.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use packds_format::{Keypoints, Role};
use packds_system::to_u64;
use serde::{Deserialize, Serialize};

use super::column::{ColumnValues, SourceColumn};
use super::listing::{Fault, Images, LabelLists, Labels, Listing, Masks, SourceField, SourceKind};
use super::mask_colors::MaskColors;
use super::mask_files::MaskFiles;
use super::members::PartMembers;
use super::packed::Again;
use super::paths::{FilePath, FileTable, as_path, lossy};
use super::portable::Portable;
use super::run_masks::{MaskOrder, RunMasks};
use super::store::Store;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::{LEAVE_OUT, SHARDS};

/// What all samples of a listing share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Shared {
    root: FilePath,
    /// The source itself, if it is a file, such as a manifest.
    source: Option<(FilePath, Stamp)>,
    classes: Vec<String>,
    #[serde(default)]
    box_classes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keypoints: Option<Keypoints>,
    mask_colors: Option<MaskColors>,
    metadata: Option<Metadata>,
    ignored: u64,
}

/// Some samples of a listing. Every list has one entry per sample.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Part {
    /// The numbers of the samples in the whole listing.
    numbers: Vec<u64>,
    paths: Vec<FilePath>,
    bytes: Vec<u64>,
    labels: PartLabels,
    columns: Vec<(String, PartColumn)>,
    masks: PartMasks,
    images: PartImages,
    fields: Vec<(String, Option<Role>, Portable)>,
    /// The files, if they are in an archive.
    members: Option<PartMembers>,
    /// The samples known to be bad, by their place in this list, and why.
    faults: BTreeMap<usize, String>,
    /// The files of stored items. A file that is missing has no stamp.
    files: Vec<(FilePath, Option<Stamp>)>,
}

/// The size of a file, and the time of its last change in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp(u64, i64);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartImages {
    /// One file per sample. A file that is missing has no stamp.
    Files(Vec<Option<Stamp>>),
    Stored(Portable),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartLabels {
    None,
    One(Vec<i64>),
    Lists(Vec<Vec<i64>>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartColumn {
    I64(Vec<i64>),
    /// The bits of each number, because JSON has no NaN.
    F64(Vec<u64>),
    Bool(Vec<bool>),
    Text(Vec<String>),
    Json(Vec<String>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartMasks {
    None,
    /// The mask files of each sample. A sample without files has a mask of zeros.
    Files(Vec<Vec<(FilePath, u64, Option<Stamp>)>>),
    Stored(Portable),
    Runs(String, Vec<Vec<(u8, String)>>),
}

impl Listing {
    /// What all parts of the listing share.
    ///
    /// # Errors
    /// [`ConvertError::SourceUnsupported`] if other processes could not read the samples.
    pub(crate) fn shared(&self, source: &Path) -> Result<Shared, ConvertError> {
        let root = std::path::absolute(&self.root).map_err(ConvertError::io(&self.root))?;
        let absolute = std::path::absolute(source).map_err(ConvertError::io(source))?;
        let stamped = || Ok::<_, ConvertError>((FilePath::from(absolute.as_path()), stamp(&absolute)?));
        Ok(Shared {
            source: source.is_file().then(stamped).transpose()?,
            root: FilePath::from(root.as_path()),
            classes: self.classes.iter().map(|class| lossy(class)).collect(),
            box_classes: self.box_classes().to_vec(),
            keypoints: self.keypoints().cloned(),
            mask_colors: self.mask_colors.as_deref().cloned(),
            metadata: self.metadata.clone(),
            ignored: self.ignored,
        })
    }

    /// The samples at these positions.
    ///
    /// # Errors
    /// As for [`shared`](Self::shared), or if a file was removed meanwhile.
    pub(crate) fn part(&self, places: &[usize]) -> Result<Part, ConvertError> {
        let picked = self.picked(places);
        let all: Vec<usize> = (0..places.len()).collect();
        let mut files = Vec::new();
        let members = picked.part_members()?;
        files.extend(members.iter().flat_map(|members| members.members.files()));
        let mut portable = |store: &Arc<dyn Store>, field: Option<&str>| {
            let items = store.portable(&all).ok_or_else(|| self.not_portable(field))?;
            let own = items.files();
            if let Some(unpacked) = self.unpacked.first().filter(|_| !own.is_empty()) {
                return Err(unpacked.refused("its files contain arrays or tables"));
            }
            files.extend(own);
            Ok::<_, ConvertError>(items)
        };
        let images = match &picked.images {
            Images::Files => PartImages::Files(picked.stamps(all.iter().map(|idx| picked.paths.path(*idx)))?),
            Images::Stored(store) => PartImages::Stored(portable(store, None)?),
        };
        let masks = match &picked.masks {
            None => PartMasks::None,
            Some(Masks::Files(masks)) => picked.mask_stamps(masks)?,
            Some(Masks::Stored(store)) => PartMasks::Stored(portable(store, None)?),
            Some(Masks::Runs(runs)) => {
                PartMasks::Runs(runs.order().name().to_owned(), all.iter().map(|idx| runs.of(*idx)).collect())
            }
        };
        let field = |field: &SourceField| {
            Ok::<_, ConvertError>((field.name.clone(), field.role, portable(&field.store, Some(&field.name))?))
        };
        let fields = picked.fields.iter().map(field).collect::<Result<_, _>>()?;
        files.sort_unstable();
        files.dedup();
        let stamp = |path: PathBuf| Ok::<_, ConvertError>((FilePath::from(path.as_path()), stamp_if_there(&path)?));
        let fault = |idx: &usize| Some((*idx, self.fault(*places.get(*idx)?)?.to_string()));
        Ok(Part {
            numbers: places.iter().map(|place| to_u64(*place)).collect(),
            paths: all.iter().map(|idx| FilePath::from(picked.paths.path(*idx).as_slice())).collect(),
            labels: picked.part_labels(),
            columns: picked.columns.iter().map(|column| (column.name.clone(), (&column.values).into())).collect(),
            masks,
            images,
            fields,
            members,
            faults: picked.faults.keys().filter_map(fault).collect(),
            files: files.into_iter().map(stamp).collect::<Result<_, _>>()?,
            bytes: picked.bytes,
        })
    }

    /// The error about a source whose images and masks, or whose `field`, are not portable.
    fn not_portable(&self, field: Option<&str>) -> ConvertError {
        let what = field.map_or("its samples".to_owned(), |field| format!("the values of '{field}'"));
        let reason = format!("{what} cannot be unpacked one by one, so other machines could not read only their own");
        let on_one = format!("convert it on one machine with `packds convert` and {}", SHARDS.with(64));
        let hint =
            field.map_or(on_one.clone(), |field| format!("{on_one}, or leave them out with {}", LEAVE_OUT.with(field)));
        ConvertError::unsupported(&self.root, "", reason, hint)
    }

    /// The files of samples in an archive.
    fn part_members(&self) -> Result<Option<PartMembers>, ConvertError> {
        let (unpacked, root) = match (self.unpacked.as_slice(), &self.unpacked_root) {
            ([], _) => return Ok(None),
            ([unpacked], Some(root)) => (unpacked, root),
            // The innermost archive comes first.
            ([.., outer], _) => return Err(outer.refused("it contains another archive")),
        };
        let mut paths = BTreeSet::new();
        let is_there = |idx: &usize| !self.faults.contains_key(idx);
        for idx in (0..self.len()).filter(is_there) {
            if matches!(self.images, Images::Files) {
                paths.insert(self.paths.path(idx));
            }
            if let Some(Masks::Files(masks)) = &self.masks {
                paths.extend(masks.of(idx).into_iter().map(|(path, _)| path));
            }
        }
        let (directory, root) = unpacked.directory(root)?;
        directory.part(&root, &paths).map(Some)
    }

    /// The stamps of files of their own. Members of an archive have none, because the archive has one.
    fn stamps(&self, paths: impl Iterator<Item = Vec<u8>>) -> Result<Vec<Option<Stamp>>, ConvertError> {
        let stamp = |path: Vec<u8>| match self.unpacked.is_empty() {
            true => stamp_if_there(&self.root.join(as_path(&path))),
            false => Ok(None),
        };
        paths.map(stamp).collect()
    }

    fn mask_stamps(&self, masks: &MaskFiles) -> Result<PartMasks, ConvertError> {
        let of_sample = |idx: usize| {
            let files = masks.of(idx);
            let stamps = self.stamps(files.iter().map(|(path, _)| path.clone()))?;
            let stamped = |((path, bytes), stamp): ((Vec<u8>, u64), _)| (FilePath::from(path.as_slice()), bytes, stamp);
            Ok::<_, ConvertError>(files.into_iter().zip(stamps).map(stamped).collect())
        };
        Ok(PartMasks::Files((0..self.len()).map(of_sample).collect::<Result<_, _>>()?))
    }

    fn part_labels(&self) -> PartLabels {
        let all = 0..self.len();
        if self.has_labels() {
            PartLabels::One(all.filter_map(|idx| self.label(idx)).collect())
        } else if self.has_label_lists() {
            PartLabels::Lists(all.map(|idx| self.label_list(idx).unwrap_or_default().to_vec()).collect())
        } else {
            PartLabels::None
        }
    }
}

impl Part {
    /// Refuses a source that has changed since it was listed. Names the first changed file.
    ///
    /// # Errors
    /// [`ConvertError::SourceMalformed`] names the file.
    pub(crate) fn check_unchanged(&self, shared: &Shared) -> Result<(), ConvertError> {
        let root = shared.root.as_path();
        let check = |path: &FilePath, listed: &Option<Stamp>| match listed {
            None => Ok(()),
            Some(listed) => check_stamp(&root.join(path.as_path()), *listed),
        };
        shared.source.iter().try_for_each(|(path, listed)| check_stamp(path.as_path(), *listed))?;
        self.files.iter().try_for_each(|(path, listed)| check(path, listed))?;
        if let PartImages::Files(stamps) = &self.images {
            self.paths.iter().zip(stamps).try_for_each(|(path, listed)| check(path, listed))?;
        }
        if let PartMasks::Files(masks) = &self.masks {
            masks.iter().flatten().try_for_each(|(path, _, listed)| check(path, listed))?;
        }
        Ok(())
    }

    /// When the last file of the samples was changed.
    pub(crate) fn last_change(&self) -> SystemTime {
        let images = match &self.images {
            PartImages::Files(stamps) => stamps.as_slice(),
            PartImages::Stored(_) => &[],
        };
        let masks = match &self.masks {
            PartMasks::Files(masks) => masks.as_slice(),
            _ => &[],
        };
        let masks = masks.iter().flatten().map(|(_, _, stamp)| stamp);
        let files = self.files.iter().map(|(_, stamp)| stamp);
        let last = images.iter().chain(masks).chain(files).flatten().map(|Stamp(_, time)| *time).max();
        let since = u64::try_from(last.unwrap_or(0)).unwrap_or(0);
        SystemTime::UNIX_EPOCH + Duration::from_nanos(since)
    }

    /// The listing of these samples. `plan` is the file that contains the part.
    ///
    /// # Errors
    /// If a file of the source cannot be opened or unpacked, or if the lists have different lengths.
    pub(crate) fn into_listing(self, shared: &Shared, plan: &Path, again: &Again<'_>) -> Result<Listing, ConvertError> {
        let n = self.paths.len();
        let same = |what: &str, found: usize| match found == n {
            true => Ok(()),
            false => Err(ConvertError::malformed(plan, what, format!("expected {n} entries, found {found}"))),
        };
        same("numbers", self.numbers.len())?;
        same("bytes", self.bytes.len())?;
        let mut paths = FileTable::default();
        self.paths.iter().for_each(|path| paths.push(path.as_bytes()));
        // The plan lists the samples, as a manifest does.
        let kind = SourceKind::Manifest;
        let mut listing = Listing::of_files(kind, shared.root.as_path(), paths.paths, self.bytes);
        listing.numbers = Some(self.numbers);
        listing.members = self.members.map(|members| members.open(plan, again)).transpose()?;
        listing.box_classes.clone_from(&shared.box_classes);
        listing.keypoints.clone_from(&shared.keypoints);
        listing.classes = shared.classes.iter().map(|class| class.clone().into_bytes()).collect();
        listing.mask_colors = shared.mask_colors.clone().map(Arc::new);
        listing.metadata.clone_from(&shared.metadata);
        listing.ignored = shared.ignored;
        listing.labels = self.labels.into();
        match &listing.labels {
            Labels::PerSample(labels) => same("labels", labels.len())?,
            Labels::Lists(lists) => same("labels", lists.ends.len())?,
            Labels::None | Labels::ByDirectory(_) => {}
        }
        for (name, values) in self.columns {
            let values = ColumnValues::from(values);
            same(&name, values.len())?;
            listing.columns.push(SourceColumn { name, values });
        }
        if let PartImages::Stored(items) = self.images {
            listing.images = Images::Stored(items.open(n, plan, again)?);
        }
        listing.masks = match self.masks {
            PartMasks::None => None,
            PartMasks::Files(masks) => {
                same("masks", masks.len())?;
                Some(Masks::Files(mask_files(&self.paths, masks)))
            }
            PartMasks::Stored(items) => Some(Masks::Stored(items.open(n, plan, again)?)),
            PartMasks::Runs(order, rows) => {
                same("masks", rows.len())?;
                let order: MaskOrder =
                    order.parse().map_err(|error| ConvertError::malformed(plan, "masks", format!("{error}")))?;
                Some(Masks::Runs(RunMasks::new(order, rows)))
            }
        };
        for (name, role, items) in self.fields {
            listing.fields.push(SourceField { name, store: items.open(n, plan, again)?, role });
        }
        let fault = |(idx, reason): (usize, String)| (idx, Fault::Planned(reason.into()));
        listing.faults = self.faults.into_iter().map(fault).collect();
        Ok(listing)
    }
}

/// The mask files of the samples whose images are at `paths`.
fn mask_files(paths: &[FilePath], masks: Vec<Vec<(FilePath, u64, Option<Stamp>)>>) -> MaskFiles {
    let (mut table, mut bytes) = (FileTable::default(), Vec::new());
    for (path, files) in paths.iter().zip(&masks) {
        let first = files.first();
        table.push(first.map_or(path, |(path, ..)| path).as_bytes());
        bytes.push(first.map_or(0, |(_, bytes, _)| *bytes));
    }
    let mut all = MaskFiles::new(table.paths, bytes);
    for (idx, files) in masks.into_iter().enumerate() {
        match files.len() {
            0 => all.set_blank(idx),
            1 => {}
            _ => all.add(idx, files.into_iter().skip(1).map(|(path, bytes, _)| (path.as_bytes().to_vec(), bytes))),
        }
    }
    all
}

/// `None` if the file is missing, or a link leads nowhere. Then the sample is bad.
fn stamp_if_there(path: &Path) -> Result<Option<Stamp>, ConvertError> {
    match stamp(path) {
        Err(ConvertError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn stamp(path: &Path) -> Result<Stamp, ConvertError> {
    let found = std::fs::metadata(path).map_err(ConvertError::io(path))?;
    if !found.is_file() {
        return Err(ConvertError::io(path)(std::io::Error::other("this is no regular file")));
    }
    let seconds = found.mtime().saturating_mul(1_000_000_000);
    Ok(Stamp(found.len(), seconds.saturating_add(found.mtime_nsec())))
}

fn check_stamp(path: &Path, listed: Stamp) -> Result<(), ConvertError> {
    let reason = match stamp(path) {
        Ok(found) if found == listed => return Ok(()),
        Ok(found) if found.0 == listed.0 => "the file was changed after the plan was made".to_owned(),
        Ok(found) => format!("expected {} bytes as in the plan, found {}", listed.0, found.0),
        Err(ConvertError::Io { source, .. }) => format!("the file was there when the plan was made, now: {source}"),
        Err(other) => return Err(other),
    };
    Err(ConvertError::contradictory(path, "", reason, "restore the file, or make a new plan with `packds plan`"))
}

impl From<PartLabels> for Labels {
    fn from(labels: PartLabels) -> Self {
        match labels {
            PartLabels::None => Self::None,
            PartLabels::One(labels) => Self::PerSample(labels),
            PartLabels::Lists(all) => {
                let mut lists = LabelLists::default();
                for labels in all {
                    lists.ids.extend(labels);
                    lists.ends.push(lists.ids.len());
                }
                Self::Lists(lists)
            }
        }
    }
}

impl From<&ColumnValues> for PartColumn {
    fn from(values: &ColumnValues) -> Self {
        let texts = |texts: &super::column::TextArena| texts.iter().map(str::to_owned).collect();
        match values {
            ColumnValues::I64(values) => Self::I64(values.clone()),
            ColumnValues::F64(values) => Self::F64(values.iter().map(|value| value.to_bits()).collect()),
            ColumnValues::Bool(values) => Self::Bool(values.clone()),
            ColumnValues::Text(values) => Self::Text(texts(values)),
            ColumnValues::Json(values) => Self::Json(texts(values)),
        }
    }
}

impl From<PartColumn> for ColumnValues {
    fn from(column: PartColumn) -> Self {
        match column {
            PartColumn::I64(values) => Self::I64(values),
            PartColumn::F64(bits) => Self::F64(bits.into_iter().map(f64::from_bits).collect()),
            PartColumn::Bool(values) => Self::Bool(values),
            PartColumn::Text(values) => Self::Text(values.iter().collect()),
            PartColumn::Json(values) => Self::Json(values.iter().collect()),
        }
    }
}
