//! Decides which field of a source is the image, the label, the mask or the path, with one rule for all formats.
//!
//! The caller's keys come first, then the field's role in the exported pack, then the common names. `manifest` decides for manifests,
//! because their columns hold paths and cells.

use std::collections::BTreeSet;
use std::path::Path;

use packds_format::Role;
use serde::{Deserialize, Serialize};

use super::ListOptions;
use super::label_fields::one_hot_classes;
use super::store::{ArrayType, Content, PixelShape};
use super::warning::Warning;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::opt::{IMAGE_KEY, LABEL_KEY, MASK_KEY};

/// Common names of the image field, used if the caller gives no key. Earlier names take precedence; case is ignored.
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
/// Common names of the label field, used if the caller gives no key. Earlier names take precedence; case is ignored.
pub const LABEL_NAMES: [&str; 14] = [
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
/// Other common names of a manifest's label column. Using one of them causes a warning.
const LABEL_COLUMN_NAMES: [&str; 11] = [
    "classid",
    "diagnosis",
    "dx",
    "breed",
    "species",
    "emotion",
    "finding labels",
    "finding_labels",
    "class_name",
    "label_name",
    "category_name",
];
/// Last words in the names of a manifest's label column.
const LABEL_WORDS: [&str; 4] = ["label", "labels", "class", "category"];
/// Common names of the mask field.
pub(super) const MASK_NAMES: [&str; 8] =
    ["mask", "masks", "mask_path", "segmentation", "annotation", "seg", "gt", "segmentation_mask"];
/// Common names of a manifest's mask column. Other names may mean labels.
pub(super) const MASK_PATH_NAMES: [&str; 5] = ["mask", "masks", "mask_path", "segmentation", "annotation"];
/// Common names of a manifest's column of image paths.
pub(super) const IMAGE_PATH_NAMES: [&str; 26] = [
    "path",
    "image",
    "image_path",
    "file",
    "file_name",
    "filename",
    "file_path",
    "filepath",
    "filepaths",
    "filenames",
    "images",
    "img",
    "img_path",
    "img_name",
    "image_file",
    "image_name",
    "image_filename",
    "img_filename",
    "image_id",
    "imageid",
    "image index",
    "image_index",
    "img_id",
    "id_code",
    "isic_id",
    "id",
];
/// Common names of a manifest's split column.
pub(super) const SPLIT_COLUMN_NAMES: [&str; 10] =
    ["split", "subset", "partition", "set", "usage", "fold", "phase", "data set", "dataset", "data_set"];
/// The name of a column with true for each row of the validation split.
pub(super) const VALID_COLUMN_NAME: &str = "is_valid";
/// Common names of a caption column.
const CAPTION_NAMES: [&str; 6] = ["caption", "captions", "comment", "text", "description", "prompt"];
/// Common names of other strings and measurements. Like captions, they are never read as labels, even if a manifest has no other column.
const OTHER_NAMES: [&str; 9] = ["title", "url", "age", "score", "count", "width", "height", "size", "year"];
/// Common names, other than `labels`, of a manifest's column with several labels for each image.
pub(super) const TAG_NAMES: [&str; 6] = ["tags", "tag", "categories", "attributes", "attribute_ids", "classes"];
/// The name given to strings that are not labels.
pub(super) const TEXT_NAME: &str = "text";
/// The name of a list of labels.
pub(super) const LABEL_LIST_NAME: &str = "labels";
/// Common names of the field with the samples' paths.
const PATH_NAMES: [&str; 5] = ["path", "paths", "filename", "filenames", "file_name"];
/// Common names of a list of class names.
pub(super) const CLASS_LIST_NAMES: [&str; 4] = ["classes", "class_names", "label_names", "list_classes"];

/// Whether this is a common name for a label field.
pub(super) fn is_label_name(name: &str) -> bool {
    LABEL_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a manifest's column with this name may hold labels, as `diagnosis` and `image_label` do.
pub(super) fn is_label_column_name(name: &str) -> bool {
    let last = name.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let is_one = |known: &&str, name: &str| known.eq_ignore_ascii_case(name);
    LABEL_COLUMN_NAMES.iter().any(|known| is_one(known, name)) || LABEL_WORDS.iter().any(|known| is_one(known, last))
}

/// Whether this is a common name for a manifest's column that does not hold labels.
pub(super) fn is_column_name(name: &str) -> bool {
    let mut known = IMAGE_PATH_NAMES.iter().chain(&MASK_PATH_NAMES).chain(&SPLIT_COLUMN_NAMES);
    known.any(|known| known.eq_ignore_ascii_case(name)) || is_other_name(name)
}

/// Whether this is a common name for a caption column.
pub(super) fn is_caption_name(name: &str) -> bool {
    CAPTION_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether this is a common name for captions, other strings or measurements.
pub(super) fn is_other_name(name: &str) -> bool {
    is_caption_name(name) || OTHER_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether this is a common name for a mask field.
pub(super) fn is_mask_name(name: &str) -> bool {
    MASK_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether this is a common name for an image field.
pub(super) fn is_image_name(name: &str) -> bool {
    IMAGE_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether this is a common name for a field with the samples' paths.
pub(super) fn is_path_name(name: &str) -> bool {
    PATH_NAMES.contains(&name)
}

/// Whether strings can be the samples' paths: all are different and stay within a folder.
pub(super) fn are_paths<'a>(texts: impl Iterator<Item = &'a str>) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    let mut seen = BTreeSet::new();
    texts.into_iter().all(|path| path.split('/').all(is_part) && seen.insert(path))
}

/// Minimum number of samples. Fewer say nothing about the strings of a larger dataset.
const MIN_TEXTS: u64 = 5;

/// Whether strings called labels are texts, such as the words in the images: more than half of them are different.
pub(super) fn are_texts(n_different: u64, n_samples: u64) -> bool {
    n_samples >= MIN_TEXTS && 2 * n_different > n_samples
}

/// The role of a source field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Part {
    Image,
    Label,
    Mask,
}

/// The fields that the caller chose.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keys<'a> {
    pub(super) image: Option<&'a str>,
    pub(super) label: Option<&'a str>,
    pub(super) mask: Option<&'a str>,
}

impl<'a> Keys<'a> {
    pub(super) fn of(options: &'a ListOptions) -> Self {
        Self {
            image: options.image_key.as_deref(),
            label: options.label_key.as_deref(),
            mask: options.mask_key.as_deref(),
        }
    }

    pub(super) fn of_part(&self, part: Part) -> Option<&'a str> {
        match part {
            Part::Image => self.image,
            Part::Label => self.label,
            Part::Mask => self.mask,
        }
    }

    /// Whether the caller assigned a role to this field. Such a field has no other role.
    pub(super) fn has(&self, name: &str) -> bool {
        [self.image, self.label, self.mask].contains(&Some(name))
    }
}

/// The index in `names` of the field with a role. A field named by `keys` comes first. Next comes the field that had
/// this role in the exported pack, and then the field with the first of the common names. `None` if nothing matches and
/// no key was given.
pub(super) fn find_field(
    source: &Path,
    names: &[String],
    part: Part,
    keys: Keys<'_>,
    metadata: Option<&Metadata>,
) -> Result<Option<usize>, ConvertError> {
    if let Some(key) = keys.of_part(part) {
        let found = names.iter().position(|name| name == key);
        return found.map(Some).ok_or_else(|| ConvertError::KeyMissing {
            path: source.to_owned(),
            wanted: format!("'{key}'"),
            found: names.to_vec(),
        });
    }
    let (customary, role): (&[&str], Role) = match part {
        Part::Image => (&IMAGE_NAMES, Role::Image),
        Part::Label => (&LABEL_NAMES, Role::Label),
        Part::Mask => (&MASK_NAMES, Role::Mask),
    };
    let field = |name: &String| metadata.and_then(|metadata| metadata.field(name));
    let had_role = |name: &String| field(name).is_some_and(|field| field.role == Some(role));
    let restored = names.iter().position(|name| had_role(name) && !keys.has(name));
    // A field without this role in the exported pack does not get it by name. Image fields are an exception: they may have no role there.
    let was_other = |name: &String| field(name).is_some_and(|field| field.role.is_some() || part != Part::Image);
    let is_free = |name: &String| !keys.has(name) && !was_other(name);
    let named = |word: &&str| {
        let is = |name: &String| name.eq_ignore_ascii_case(word) && is_free(name);
        names.iter().position(is)
    };
    Ok(restored.or_else(|| customary.iter().find_map(named)))
}

/// Like [`find_field`] for the images, which are required.
pub(super) fn find_image_field(
    source: &Path,
    names: &[String],
    keys: Keys<'_>,
    metadata: Option<&Metadata>,
) -> Result<usize, ConvertError> {
    if names.is_empty() {
        return Err(no_samples(source));
    }
    let found = find_field(source, names, Part::Image, keys, metadata)?;
    if let (None, Some(error)) = (found, pixel_columns(source, names)) {
        return Err(error);
    }
    found.ok_or_else(|| ConvertError::KeyMissing {
        path: source.to_owned(),
        wanted: format!("of images ({})", IMAGE_NAMES.join(", ")),
        found: names.iter().filter(|name| !keys.has(name)).cloned().collect(),
    })
}

/// The error for a table with one column per pixel, if the columns are named by numbers. Its hint is a line of Python
/// that reshapes them.
fn pixel_columns(source: &Path, names: &[String]) -> Option<ConvertError> {
    const MIN_PIXELS: usize = 64;
    // Known shapes that are not square, as in Bengali.AI.
    const SHAPES: [(usize, [usize; 2]); 1] = [(137 * 236, [137, 236])];
    let numbers: BTreeSet<usize> = names.iter().filter_map(|name| name.parse().ok()).collect();
    let n = numbers.len();
    let first = *numbers.first()?;
    if n < MIN_PIXELS || first > 1 || numbers.last().copied() != Some(first + n - 1) {
        return None;
    }
    let known = SHAPES.iter().find(|(count, _)| *count == n).map(|(_, [h, w])| format!("{h}, {w}"));
    let side = n.isqrt();
    let shape = known.or_else(|| (side * side == n).then(|| format!("{side}, {side}")));
    let shape = shape.unwrap_or_else(|| "HEIGHT, WIDTH".to_owned());
    let reason = format!("it has {n} columns '{first}' to '{}', which look like one pixel each", first + n - 1);
    let hint = format!(
        "join them in Python: t = pandas.read_parquet('x.parquet'); p = [str(i) for i in range({first}, {})]; numpy.savez('x.npz', images=t[p].to_numpy('uint8').reshape(-1, {shape}), **{{k: numpy.array(t[k].tolist()) for k in t.columns.drop(p)}})",
        first + n
    );
    Some(ConvertError::unsupported(source, "", reason, hint))
}

/// The error for a source without samples.
pub(super) fn no_samples(source: &Path) -> ConvertError {
    let hint = "pass a source that contains samples; nothing was written";
    ConvertError::contradictory(source, "", "it contains no samples", hint)
}

/// Advice if the images are strings or single numbers.
fn image_hint() -> String {
    format!(
        "choose another field with {IMAGE_KEY}; to convert a table of paths, save it as a manifest (.csv); to convert pixels stored as text, save them as arrays"
    )
}

/// The fields with a role, by index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Roles<'a> {
    pub(super) image: usize,
    pub(super) label: Option<usize>,
    pub(super) mask: Option<usize>,
    keys: Keys<'a>,
}

impl<'a> Roles<'a> {
    /// Finds the fields by keys, by roles in the exported pack, and by names.
    pub(super) fn find(
        source: &Path,
        names: &[String],
        keys: Keys<'a>,
        metadata: Option<&Metadata>,
    ) -> Result<Self, ConvertError> {
        let image = find_image_field(source, names, keys, metadata)?;
        let find = |part| find_field(source, names, part, keys, metadata);
        let (label, mask) = (find(Part::Label)?, find(Part::Mask)?);
        Ok(Self::new(image, label, mask, keys))
    }

    /// Gives each field at most one role: image first, then mask.
    pub(super) fn new(image: usize, label: Option<usize>, mask: Option<usize>, keys: Keys<'a>) -> Self {
        let mask = mask.filter(|mask| *mask != image);
        Self { image, label: label.filter(|label| *label != image && Some(*label) != mask), mask, keys }
    }

    /// The role of the field at this index.
    pub(super) fn of(&self, place: usize) -> Option<Part> {
        match place {
            place if place == self.image => Some(Part::Image),
            place if Some(place) == self.label => Some(Part::Label),
            place if Some(place) == self.mask => Some(Part::Mask),
            _ => None,
        }
    }

    /// Whether the field with this role is required: the images, and fields that the caller chose.
    pub(super) fn is_needed(&self, part: Option<Part>) -> bool {
        part.is_some_and(|part| part == Part::Image || self.keys.of_part(part).is_some())
    }

    /// The role of a field, after a check of its items. If a field has the role of label or mask only by name and its items do not fit, it
    /// becomes an ordinary field. For labels, this gives a warning, which is removed if the values turn out to be one-hot labels.
    ///
    /// # Errors
    /// If the items do not fit, and the field is the image or was chosen by the caller.
    pub(super) fn fitting(
        &self,
        source: &Path,
        name: &str,
        part: Option<Part>,
        items: &Items,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Part>, ConvertError> {
        let (fits, expected, hint) = match part {
            None => return Ok(None),
            Some(Part::Image) => (items.may_be_images, "image files or arrays of numbers", image_hint()),
            Some(Part::Label) => (
                items.may_be_labels,
                "one number or class name for each image",
                format!("choose another field with {LABEL_KEY}"),
            ),
            Some(Part::Mask) => (
                items.may_be_masks,
                "masks that are image files or two-dimensional arrays",
                format!("choose another field with {MASK_KEY}"),
            ),
        };
        let found = items.found.clone();
        if fits {
            Ok(part)
        } else if self.is_needed(part) && !(part == Some(Part::Label) && items.may_be_one_hot) {
            let (reason, hint) = match items.is_readable {
                true => (format!("expected {expected}, found {found}"), hint),
                false => (found, "write the array again as numbers or variable-length bytes".to_owned()),
            };
            Err(ConvertError::unsupported(source, name, reason, hint))
        } else {
            if part == Some(Part::Label) {
                let field = name.to_owned();
                warnings.push(Warning::NotLabels { field, found });
            }
            Ok(None)
        }
    }
}

/// The properties of a field's items that decide its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Items {
    may_be_images: bool,
    may_be_labels: bool,
    /// Whether the items have the shape of one-hot labels, so the values must decide.
    may_be_one_hot: bool,
    may_be_masks: bool,
    is_readable: bool,
    /// A description of the items, or why they cannot be read.
    found: String,
}

impl Items {
    /// The items of a store.
    pub(super) fn of(content: &Content) -> Self {
        match content {
            Content::Pixels(shape) => Self::of_array(&shape.array()),
            Content::Array(array) => Self::of_array(array),
            Content::File => Self::pictures(),
            Content::Bytes => Self::other("bytes"),
            Content::Text => Self::texts(),
            Content::Json => Self::other("lists or objects"),
            Content::Ragged(_) => Self::other("any number of entries"),
        }
    }

    /// Image files, or pixels of varying size.
    pub(super) fn pictures() -> Self {
        Self { may_be_images: true, may_be_masks: true, ..Self::other("images") }
    }

    /// Arrays of one type. Those with two or more dimensions can be masks.
    pub(super) fn of_array(array: &ArrayType) -> Self {
        let is_mask = array.shape.len() >= 2 || PixelShape::of(array).is_some();
        Self {
            may_be_images: true,
            may_be_labels: array.is_one_number(),
            may_be_one_hot: one_hot_classes(array).is_some(),
            may_be_masks: is_mask && !array.is_one_number(),
            is_readable: true,
            found: match array.shape.as_slice() {
                [] => format!("one {} for each sample", array.dtype),
                shape => format!("{} arrays of shape {shape:?}", array.dtype),
            },
        }
    }

    /// One number per sample.
    pub(super) fn numbers() -> Self {
        Self { may_be_labels: true, ..Self::other("numbers") }
    }

    /// One string per sample.
    pub(super) fn texts() -> Self {
        Self { may_be_labels: true, ..Self::other("strings") }
    }

    /// Anything else, with a description.
    pub(super) fn other(found: impl Into<String>) -> Self {
        Self {
            may_be_images: false,
            may_be_labels: false,
            may_be_one_hot: false,
            may_be_masks: false,
            is_readable: true,
            found: found.into(),
        }
    }

    /// Items that cannot be read, and why.
    #[cfg(any(feature = "hdf5", feature = "zarr"))]
    pub(super) fn unreadable(reason: &str) -> Self {
        Self { is_readable: false, ..Self::other(reason) }
    }
}

#[cfg(test)]
mod tests {
    use packds_format::{DType, Field};

    use super::*;

    #[test]
    fn the_customary_name_that_comes_first_wins_and_a_key_beats_it() {
        let names = ["X", "img", "label"].map(str::to_owned);
        let find = |part, keys| find_field(Path::new("s"), &names, part, keys, None);
        let none = Keys::default();
        let image = |key| Keys { image: Some(key), ..none };
        let label = |key| Keys { label: Some(key), ..none };
        assert_eq!(find(Part::Image, none).unwrap(), Some(1));
        assert_eq!(find(Part::Image, image("X")).unwrap(), Some(0));
        assert_eq!(find(Part::Mask, none).unwrap(), None);
        // A field that the caller chose for one role is not chosen for another.
        assert_eq!(find(Part::Image, label("img")).unwrap(), Some(0));
        assert_eq!(find(Part::Label, image("label")).unwrap(), None);
        let error = find(Part::Label, label("none")).unwrap_err();
        assert_eq!(error.to_string(), "s: no field 'none', found 'X', 'img', 'label'");
        let error = find_image_field(Path::new("s"), &names[2..], none, None).unwrap_err();
        assert!(error.to_string().contains("no field of images"), "{error}");
    }

    fn metadata(fields: &[(&str, Option<Role>)]) -> Metadata {
        let field = |(name, role): &(&str, Option<Role>)| {
            let mut field = Field::column(name, DType::I64, &[]);
            field.role = *role;
            field
        };
        let fields: Vec<Field> = fields.iter().map(field).collect();
        let text = serde_json::json!({"packds": 1, "fields": fields}).to_string();
        Metadata::parse(&text).unwrap()
    }

    #[test]
    fn what_the_exported_pack_said_beats_names() {
        let names = ["target", "id", "image"].map(str::to_owned);
        let find =
            |known: &Metadata, part| find_field(Path::new("s"), &names, part, Keys::default(), Some(known)).unwrap();
        let labelled = metadata(&[("target", None), ("id", Some(Role::Label)), ("image", None)]);
        assert_eq!(find(&labelled, Part::Label), Some(1));
        assert_eq!(find(&labelled, Part::Image), Some(2));
        let without = metadata(&[("target", None), ("id", None), ("image", None)]);
        assert_eq!(find(&without, Part::Label), None);
        // A column added after the export has a name and no role.
        let added = metadata(&[("image", Some(Role::Image))]);
        assert_eq!(find(&added, Part::Label), Some(0));
    }

    #[test]
    fn a_field_that_only_its_name_made_a_label_is_told_and_one_that_was_named_is_refused() {
        let array = |shape: &[u64]| Items::of_array(&ArrayType { dtype: DType::F32, shape: shape.to_vec() });
        let fit = |keys, part, items: &Items| {
            let mut warnings = Vec::new();
            let roles = Roles::new(0, Some(1), Some(2), keys);
            let fit = roles.fitting(Path::new("s"), "f", Some(part), items, &mut warnings);
            (fit.map_err(|error| error.to_string()), warnings.len())
        };
        let none = Keys::default();
        let named = Keys { label: Some("f"), mask: Some("f"), ..none };
        assert_eq!(fit(none, Part::Label, &array(&[1])), (Ok(Some(Part::Label)), 0));
        assert_eq!(fit(none, Part::Label, &array(&[3])), (Ok(None), 1));
        assert_eq!(fit(none, Part::Mask, &Items::texts()), (Ok(None), 0));
        // The values decide whether rows are one-hot.
        assert_eq!(fit(named, Part::Label, &array(&[3])), (Ok(None), 1));
        let (error, _) = fit(named, Part::Label, &array(&[3, 2]));
        assert!(error.unwrap_err().contains("found f32 arrays of shape [3, 2]"));
        assert!(fit(named, Part::Mask, &Items::texts()).0.is_err());
        assert!(fit(none, Part::Image, &Items::texts()).0.is_err());
    }

    #[test]
    fn paths_stay_in_their_folder_and_tell_samples_apart() {
        assert!(are_paths(["a/b.png", "c.png"].into_iter()));
        for wrong in [&["a", "a"][..], &[""], &["../a"], &["/a"], &["a//b"], &["./a"]] {
            assert!(!are_paths(wrong.iter().copied()), "{wrong:?}");
        }
    }
}
