//! Which columns of a table are needed, which part each plays and what its values become. Decided once, from the first
//! file's schema and first rows; every other file must have the same columns.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};

use super::features::{Features, pack_metadata};
use super::kind::{Kind, Known, plain_type};
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::source::ListOptions;
use crate::source::found::{
    Keys, Part, check_same_classes, find_field, find_image_field, is_made_anew,
};
use crate::source::store::Content;
use crate::source::warning::Warning;

/// The column of paths that an exported pack has where its images are no files.
const PATH_COLUMN: &str = "path";

/// What to do about files of other columns.
const ALIKE_HINT: &str = "name files whose columns are alike, or convert each by itself";
/// The columns of a file that are to be packed.
#[derive(Debug, Clone)]
pub(in crate::source) struct Columns {
    /// Their places in the file, in order.
    pub(in crate::source) places: Vec<usize>,
    /// Their schema.
    pub(in crate::source) schema: Schema,
    /// Whether they are all that the file has.
    pub(in crate::source) are_all: bool,
}

impl Columns {
    /// Those of the file at `path` that `options` do not leave out.
    pub(in crate::source) fn of(
        path: &Path,
        schema: &Schema,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let names = schema.fields().iter().map(|field| field.name().clone());
        let names: Vec<String> = names.collect();
        options.check_left_out(path, &names)?;
        let kept = names.iter().enumerate();
        let kept = kept.filter(|(_, name)| !options.is_left_out(name));
        let places: Vec<usize> = kept.map(|(place, _)| place).collect();
        let projected = schema.project(&places);
        Ok(Self {
            are_all: places.len() == names.len(),
            schema: projected.map_err(|e| ConvertError::malformed(path, "", e.to_string()))?,
            places,
        })
    }
}

/// The part that a column plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Image,
    Label,
    Mask,
    /// The samples' paths.
    Path,
    Other,
}

/// A column that is needed.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    /// Its place among the columns that are read.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) part: Use,
    pub(super) kind: Kind,
}

/// What becomes of a table.
#[derive(Debug)]
pub(in crate::source) struct TablePlan {
    pub(super) columns: Vec<Planned>,
    pub(super) metadata: Option<Metadata>,
    /// The class names of the label column.
    pub(super) classes: Vec<String>,
    pub(super) warnings: Vec<Warning>,
    /// Names and types of the columns that are to be packed.
    types: Vec<(String, DataType)>,
}

impl TablePlan {
    /// Decides for the table at `path`, of which `first` has the columns of `schema` and at least one row.
    pub(in crate::source) fn of(
        path: &Path,
        schema: &Schema,
        first: &RecordBatch,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let mut warnings = Vec::new();
        let metadata = metadata_of(schema, &mut warnings);
        let features = Features::of(schema);
        let types = types_of(schema);
        let names: Vec<String> = types.iter().map(|(name, _)| name.clone()).collect();
        let parts = Parts::find(path, &names, &features, options)?;
        let mut columns = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            let is_path = name == PATH_COLUMN
                && metadata.as_ref().is_some_and(|m| m.field(name).is_none())
                && *plain_type(field.data_type()) == DataType::Utf8;
            let part = match parts.of(index) {
                Use::Other if is_path => Use::Path,
                part => part,
            };
            if is_made_anew(name) && part == Use::Other {
                continue;
            }
            let first = first.columns().get(index);
            let first = first.ok_or_else(|| {
                ConvertError::malformed(path, name, "the first rows lack this column")
            })?;
            let is_picture = matches!(part, Use::Image | Use::Mask);
            let was_tensor = metadata.as_ref().and_then(|m| m.field(name));
            let was_tensor =
                was_tensor.is_some_and(|field| field.kind == packds_format::FieldKind::Tensor);
            let known = Known {
                field,
                first,
                metadata: metadata.as_ref(),
                is_array: is_picture || features.is_array(name) || was_tensor,
                is_picture,
            };
            let kind = match known.kind() {
                Ok(kind) => kind,
                // Nobody asked for it.
                Err((reason, _)) if !parts.is_needed(part) => {
                    warnings.push(Warning::LeftOut {
                        field: name.clone(),
                        reason: format!("{}: {reason}", field.data_type()),
                    });
                    continue;
                }
                Err((reason, hint)) => {
                    let place = format!("column `{name}`");
                    return Err(ConvertError::unsupported(path, &place, reason, hint));
                }
            };
            let name = name.clone();
            let part = fitting(path, &name, part, &kind, field.data_type(), &parts)?;
            columns.push(Planned {
                index,
                name,
                part,
                kind,
            });
        }
        let label = columns.iter().find(|column| column.part == Use::Label);
        let classes = label.map_or_else(Vec::new, |column| features.class_names(&column.name));
        Ok(Self {
            columns,
            metadata,
            classes,
            warnings,
            types,
        })
    }

    /// The columns whose items are bytes as they lie in an array, and for structs the child that holds them.
    pub(in crate::source) fn in_place(&self) -> Vec<(usize, Option<usize>)> {
        let columns = self.columns.iter();
        let places = columns.filter_map(|planned| match &planned.kind {
            Kind::Items { children, .. } => Some((planned.index, children.map(|c| c.0))),
            Kind::Array { .. } => Some((planned.index, None)),
            _ => None,
        });
        places.collect()
    }

    /// Refuses a file of the same set with other columns.
    pub(in crate::source) fn check(
        &self,
        path: &Path,
        schema: &Schema,
    ) -> Result<(), ConvertError> {
        let label = self.columns.iter().find(|column| column.part == Use::Label);
        if let Some(label) = label {
            let classes = Features::of(schema).class_names(&label.name);
            check_same_classes(path, &self.classes, &classes)?;
        }
        let types = types_of(schema);
        if types.len() != self.types.len() {
            let (expected, found) = (self.types.len(), types.len());
            let reason = format!("expected {expected} columns as in the first file, found {found}");
            return Err(ConvertError::contradictory(path, "", reason, ALIKE_HINT));
        }
        for ((name, data_type), (own_name, own_type)) in self.types.iter().zip(&types) {
            if name != own_name || !data_type.equals_datatype(own_type) {
                let reason = format!(
                    "expected column `{name}` of {data_type} as in the first file, found `{own_name}` of {own_type}"
                );
                return Err(ConvertError::contradictory(
                    path, own_name, reason, ALIKE_HINT,
                ));
            }
        }
        Ok(())
    }
}

/// What the pack said that was exported; a warning where that cannot be read.
fn metadata_of(schema: &Schema, warnings: &mut Vec<Warning>) -> Option<Metadata> {
    match pack_metadata(schema)? {
        Ok(metadata) => Some(metadata),
        Err(reason) => {
            warnings.push(Warning::BadMetadata { reason });
            None
        }
    }
}

fn types_of(schema: &Schema) -> Vec<(String, DataType)> {
    let fields = schema.fields().iter();
    fields
        .map(|field| (field.name().clone(), field.data_type().clone()))
        .collect()
}

/// The places of the columns that play a part.
struct Parts {
    image: usize,
    label: Option<usize>,
    mask: Option<usize>,
    /// Whether the caller named the label's and the mask's column.
    named: (bool, bool),
}

impl Parts {
    fn find(
        path: &Path,
        names: &[String],
        features: &Features,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let keys = Keys::of(options);
        let image = match find_field(path, names, Part::Image, keys)? {
            Some(image) => image,
            None => match features.first(names, "Image", keys) {
                Some(image) => image,
                None => find_image_field(path, names, keys)?,
            },
        };
        let others = |place: Option<usize>| place.filter(|place| *place != image);
        let label = find_field(path, names, Part::Label, keys)?;
        let label = label.or_else(|| features.first(names, "ClassLabel", keys));
        let mask = find_field(path, names, Part::Mask, keys)?;
        Ok(Self {
            image,
            label: others(label),
            mask: others(mask),
            named: (options.label_key.is_some(), options.mask_key.is_some()),
        })
    }

    /// Whether there is no pack without the column of this part: the images, and what the caller named.
    fn is_needed(&self, part: Use) -> bool {
        match part {
            Use::Image => true,
            Use::Label => self.named.0,
            Use::Mask => self.named.1,
            Use::Path | Use::Other => false,
        }
    }

    fn of(&self, index: usize) -> Use {
        match index {
            index if index == self.image => Use::Image,
            index if Some(index) == self.label => Use::Label,
            index if Some(index) == self.mask => Use::Mask,
            _ => Use::Other,
        }
    }
}

/// The part that a column can play with such values: what only its name made a label or a mask is a column like others.
fn fitting(
    path: &Path,
    name: &str,
    part: Use,
    kind: &Kind,
    data_type: &DataType,
    parts: &Parts,
) -> Result<Use, ConvertError> {
    let is_label = match kind {
        Kind::Number(_) => true,
        Kind::Text => matches!(
            plain_type(data_type),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        ),
        _ => false,
    };
    let (fits, named) = match part {
        Use::Image => (
            matches!(kind, Kind::Items { .. } | Kind::Array { .. }),
            true,
        ),
        Use::Mask => (
            match kind {
                Kind::Items { .. } => true,
                Kind::Array { array, .. } => {
                    matches!(Content::of_array(array.clone()), Content::Pixels(_))
                }
                _ => false,
            },
            parts.named.1,
        ),
        Use::Label => (is_label, parts.named.0),
        Use::Path | Use::Other => return Ok(part),
    };
    if fits {
        return Ok(part);
    }
    if !named {
        return Ok(Use::Other);
    }
    let (expected, hint) = match part {
        Use::Label => (
            "one number or class name a row",
            "name another column with --label-key",
        ),
        Use::Mask => (
            "image files or arrays of u8",
            "name another column with --mask-key",
        ),
        _ => (
            "image files, or arrays of numbers",
            "name another column with --image-key; a table of paths is converted as a manifest (.csv), and pixels in texts are not read: make arrays of them first",
        ),
    };
    let reason = format!("expected {expected}, found {data_type}");
    Err(ConvertError::unsupported(
        path,
        &format!("column `{name}`"),
        reason,
        hint,
    ))
}
