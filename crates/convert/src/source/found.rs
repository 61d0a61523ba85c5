//! From what the module of a format found to a [`Listing`]: names for the samples, labels as class ids, and what the
//! pack's own metadata adds where the data set was exported from one.

use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Role};

use super::column::{ColumnValues, SourceColumn, TextArena};
use super::listing::{Images, Labels, Listing, Masks, SourceField, SourceKind};
use super::paths::{FileTable, PathTable};
use super::store::Store;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;

/// What the module of a format found in a source.
pub(super) struct Found {
    pub(super) format: DataFormat,
    /// The images. Every field has as many samples.
    pub(super) images: Arc<dyn Store>,
    pub(super) names: Names,
    pub(super) labels: Option<FoundLabels>,
    /// Mask images, which must have the size of their images.
    pub(super) masks: Option<Arc<dyn Store>>,
    /// Everything else of a fixed type, or bytes: numbers, arrays, files.
    pub(super) fields: Vec<SourceField>,
    /// Texts and JSON.
    pub(super) texts: Vec<SourceColumn>,
    /// What the pack said from which this was exported.
    pub(super) metadata: Option<Metadata>,
    pub(super) warnings: Vec<Warning>,
    /// Files or members that are no samples.
    pub(super) ignored: u64,
}

/// What the samples are called in errors, reports and the pack.
pub(super) enum Names {
    /// `FOLDER/0`, `FOLDER/1`, ... : rows of the array of this name.
    Numbered(String),
    /// Paths, with `/` between their parts.
    Paths(Vec<Vec<u8>>),
}

/// The labels as the source has them.
pub(super) struct FoundLabels {
    /// What the source calls them.
    pub(super) name: String,
    pub(super) values: LabelValues,
    /// The name of each class id, where the source gives them.
    pub(super) classes: Vec<String>,
}

/// One label for each sample.
pub(super) enum LabelValues {
    /// Class ids, or other integers.
    Ids(Vec<i64>),
    /// Class names.
    Names(TextArena),
    /// Numbers that are no ids: they become a column of this name.
    Numbers(Vec<f64>),
}

impl Found {
    /// The listing of what was found in `source`.
    pub(super) fn into_listing(self, source: &Path) -> Result<Listing, ConvertError> {
        let n = self.images.len();
        if n == 0 {
            return Err(ConvertError::malformed(
                source,
                "",
                "there are no samples in it",
            ));
        }
        self.check_lengths(source, n)?;
        let mut listing = Listing {
            kind: SourceKind::Container(self.format),
            root: source.to_owned(),
            paths: self.names.table(n),
            bytes: (0..n).map(|idx| self.images.bytes(idx)).collect(),
            labels: Labels::None,
            classes: Vec::new(),
            columns: self.texts,
            masks: self.masks.map(Masks::Stored),
            images: Images::Stored(self.images),
            fields: self.fields,
            metadata: self.metadata,
            warnings: self.warnings,
            ignored: self.ignored,
        };
        if let Some(labels) = self.labels {
            labels.put_into(&mut listing, source)?;
        }
        Ok(listing)
    }

    fn check_lengths(&self, source: &Path, n: usize) -> Result<(), ConvertError> {
        let labels = self.labels.iter().map(|labels| {
            let n = match &labels.values {
                LabelValues::Ids(ids) => ids.len(),
                LabelValues::Names(names) => names.len(),
                LabelValues::Numbers(numbers) => numbers.len(),
            };
            (labels.name.as_str(), n)
        });
        let masks = self.masks.iter().map(|masks| ("mask", masks.len()));
        let fields = self.fields.iter().map(|f| (f.name.as_str(), f.store.len()));
        let texts = self.texts.iter().map(|c| (c.name.as_str(), c.values.len()));
        for (name, found) in labels.chain(masks).chain(fields).chain(texts) {
            if found != n {
                let reason = format!("expected {n} values, one for each image, found {found}");
                return Err(ConvertError::malformed(source, name, reason));
            }
        }
        Ok(())
    }
}

impl Names {
    fn table(self, n: usize) -> PathTable {
        match self {
            Self::Numbered(folder) => {
                let mut table = PathTable::default();
                let folder = table.push_directory(folder.as_bytes());
                (0..n).for_each(|idx| table.push(folder, idx.to_string().as_bytes()));
                table
            }
            Self::Paths(paths) => {
                let mut table = FileTable::default();
                paths.iter().for_each(|path| table.push(path));
                table.paths
            }
        }
    }
}

impl FoundLabels {
    fn put_into(self, listing: &mut Listing, source: &Path) -> Result<(), ConvertError> {
        match self.values {
            LabelValues::Ids(ids) => {
                let known = listing.metadata.as_ref();
                let known = known.map_or(&[][..], |m| m.class_names("label"));
                let classes = if self.classes.is_empty() {
                    known
                } else {
                    &self.classes
                };
                let largest = ids.iter().max().copied().unwrap_or(0);
                let names = i64::try_from(classes.len()).unwrap_or(i64::MAX);
                let wrong = ids.iter().find(|id| **id < 0).copied().unwrap_or(largest);
                if !classes.is_empty() && (wrong < 0 || wrong >= names) {
                    let reason =
                        format!("there are {names} class names, found the class id {wrong}");
                    return Err(ConvertError::malformed(source, &self.name, reason));
                }
                listing.classes = classes.iter().map(|c| c.clone().into_bytes()).collect();
                listing.labels = Labels::PerSample(ids);
            }
            LabelValues::Names(names) => {
                let mut classes: Vec<&str> = names.iter().collect();
                classes.sort_unstable();
                classes.dedup();
                let id = |name: &str| classes.binary_search(&name).unwrap_or_default();
                let ids = names
                    .iter()
                    .map(|name| i64::try_from(id(name)).unwrap_or(-1));
                listing.labels = Labels::PerSample(ids.collect());
                listing.classes = classes.iter().map(|c| c.as_bytes().to_vec()).collect();
            }
            LabelValues::Numbers(values) => {
                // `label` is the name of class ids: numbers to be predicted need another.
                let name = match self.name.as_str() {
                    "label" => "target".to_owned(),
                    _ => self.name,
                };
                let values = ColumnValues::F64(values);
                listing.columns.push(SourceColumn { name, values });
            }
        }
        Ok(())
    }
}

/// The words that name the field of images, where the caller names none; earlier ones win, upper and lower case are the
/// same.
const IMAGE_NAMES: [&str; 16] = [
    "image",
    "images",
    "img",
    "imgs",
    "pixels",
    "pixel_values",
    "x",
    "x_train",
    "x_test",
    "data",
    "features",
    "inputs",
    "input",
    "jpg",
    "png",
    "arr_0",
];
/// Those of labels.
const LABEL_NAMES: [&str; 14] = [
    "label",
    "labels",
    "class",
    "cls",
    "target",
    "targets",
    "y",
    "y_train",
    "y_test",
    "fine_label",
    "fine_labels",
    "category",
    "class_id",
    "arr_1",
];
/// Those of masks.
const MASK_NAMES: [&str; 4] = ["mask", "masks", "segmentation", "annotation"];

/// What part a field of a source plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Image,
    Label,
    Mask,
}

/// The place in `names` of the field that plays a part: the one that `key` names, else the one with the most customary
/// name. None, without an error, if nobody named one and none is customary.
pub(super) fn find_field(
    source: &Path,
    names: &[String],
    part: Part,
    key: Option<&str>,
) -> Result<Option<usize>, ConvertError> {
    if let Some(key) = key {
        let found = names.iter().position(|name| name == key);
        return found.map(Some).ok_or_else(|| ConvertError::KeyMissing {
            path: source.to_owned(),
            wanted: format!("'{key}'"),
            found: names.to_vec(),
        });
    }
    let known: &[&str] = match part {
        Part::Image => &IMAGE_NAMES,
        Part::Label => &LABEL_NAMES,
        Part::Mask => &MASK_NAMES,
    };
    let place = |known: &&str| names.iter().position(|n| n.eq_ignore_ascii_case(known));
    Ok(known.iter().find_map(place))
}

/// As [`find_field`], where there must be one.
pub(super) fn find_image_field(
    source: &Path,
    names: &[String],
    key: Option<&str>,
) -> Result<usize, ConvertError> {
    let found = find_field(source, names, Part::Image, key)?;
    found.ok_or_else(|| ConvertError::KeyMissing {
        path: source.to_owned(),
        wanted: format!("of images ({})", IMAGE_NAMES.join(", ")),
        found: names.to_vec(),
    })
}

/// Whether a field of this name is made anew by every conversion, so that what an exported one says is left out.
pub(super) fn is_made_anew(name: &str) -> bool {
    matches!(
        name,
        "source_id" | "source_width" | "source_height" | "sample_crc32c"
    )
}

/// The role that a field has in the pack from which it was exported.
pub(super) fn role_of(metadata: Option<&Metadata>, name: &str) -> Option<Role> {
    metadata.and_then(|m| m.field(name)).and_then(|f| f.role)
}

/// Whether labels can be of this type; floats are labels only where all are whole numbers.
pub(super) fn is_integer(dtype: DType) -> bool {
    !matches!(dtype, DType::F16 | DType::Bf16 | DType::F32 | DType::F64)
}
