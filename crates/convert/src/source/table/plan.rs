//! Decides which columns of a table are needed, their roles, and how their values are used. The plan is made once, from the
//! schema and first rows of the first file. All other files must have the same columns.

use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use serde::{Deserialize, Serialize};

use super::features::{Features, pack_metadata};
use super::kind::{Kind, Known, plain_type};
use super::text::is_string;
use packds_format::FieldKind;

use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::source::ListOptions;
use crate::source::found::{check_same_classes, is_made_anew};
use crate::source::roles::{Items, Keys, Part, Roles, find_field, find_image_field};
use crate::source::store::Content;
use crate::source::warning::{Warning, readable};

/// The column of paths in an export of a pack without image files.
const PATH_COLUMN: &str = "path";

/// The hint for files whose columns differ.
const ALIKE_HINT: &str = "pass files with matching columns, or convert each one separately";
/// The columns of a file that are not excluded.
#[derive(Debug, Clone)]
pub(in crate::source) struct Columns {
    /// The indices of the columns in the file, in order.
    pub(in crate::source) places: Vec<usize>,
    /// The schema of these columns.
    pub(in crate::source) schema: Schema,
    /// Whether the file has no other columns.
    pub(in crate::source) are_all: bool,
}

impl Columns {
    /// The columns of the file at `path`, except those that `options` exclude.
    pub(in crate::source) fn of(path: &Path, schema: &Schema, options: &ListOptions) -> Result<Self, ConvertError> {
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

    /// Only the column at this place of the file.
    pub(in crate::source) fn only(path: &Path, schema: &Schema, place: usize) -> Result<Self, ConvertError> {
        let schema = schema.project(&[place]).map_err(|e| ConvertError::malformed(path, "", e.to_string()))?;
        Ok(Self { places: vec![place], schema, are_all: false })
    }
}

/// The purpose of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Use {
    /// Image, label or mask.
    Part(Part),
    /// The samples' paths.
    Path,
    /// An ordinary field.
    Other,
}

/// A column to read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Planned {
    /// The column's index among the columns to read.
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) part: Use,
    pub(super) kind: Kind,
}

impl Planned {
    fn in_place(&self) -> Option<(usize, Option<usize>)> {
        match &self.kind {
            Kind::Items { children, .. } => Some((self.index, children.map(|c| c.0))),
            Kind::Array { .. } => Some((self.index, None)),
            _ => None,
        }
    }
}

/// A column that is read alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::source) struct Column {
    /// The column's index in the file.
    pub(in crate::source) place: usize,
    /// Its index among the columns to read is 0.
    pub(super) planned: Planned,
}

impl Column {
    pub(super) fn of(planned: &Planned, places: &[usize]) -> Option<Self> {
        let place = *places.get(planned.index)?;
        Some(Self { place, planned: Planned { index: 0, ..planned.clone() } })
    }

    /// As [`TablePlan::in_place`].
    pub(in crate::source) fn in_place(&self) -> Option<(usize, Option<usize>)> {
        self.planned.in_place()
    }
}

/// The plan for a table.
#[derive(Debug)]
pub(in crate::source) struct TablePlan {
    pub(super) columns: Vec<Planned>,
    pub(super) metadata: Option<Metadata>,
    /// The class names of the label column.
    pub(super) classes: Vec<String>,
    pub(super) warnings: Vec<Warning>,
    /// Names and types of the columns that are not excluded.
    types: Vec<(String, DataType)>,
}

impl TablePlan {
    /// Plans the table at `path`. `first` has the columns of `schema` and at least one row.
    pub(in crate::source) fn of(
        path: &Path,
        schema: &Schema,
        first: &RecordBatch,
        options: &ListOptions,
    ) -> Result<Self, ConvertError> {
        let mut warnings = Vec::new();
        let metadata = readable(pack_metadata(schema), &mut warnings);
        let features = Features::of(schema);
        let types = types_of(schema);
        let names: Vec<String> = types.iter().map(|(name, _)| name.clone()).collect();
        let keys = Keys::of(options);
        let roles = find_roles(path, &names, &features, metadata.as_ref(), keys)?;
        let mut columns = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let name = field.name();
            let is_path = name == PATH_COLUMN
                && metadata.as_ref().is_some_and(|m| m.field(name).is_none())
                && *plain_type(field.data_type()) == DataType::Utf8;
            let part = roles.of(index);
            if is_made_anew(name) && part.is_none() && !is_path {
                continue;
            }
            let lacking = || ConvertError::malformed(path, name, "the first rows lack this column");
            let first = first.columns().get(index).ok_or_else(lacking)?;
            let is_picture = matches!(part, Some(Part::Image | Part::Mask));
            let known = metadata.as_ref().and_then(|m| m.field(name));
            let was_tensor = known.is_some_and(|field| field.kind == FieldKind::Tensor);
            let known = Known {
                field,
                first,
                metadata: metadata.as_ref(),
                is_array: is_picture || features.is_array(name) || was_tensor,
                is_picture,
            };
            let kind = match known.kind() {
                Ok(kind) => kind,
                // The column is not needed, so it is left out with a warning.
                Err((reason, _)) if !roles.is_needed(part) => {
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
            let items = items_of(&kind, field.data_type());
            let part = match roles.fitting(path, &name, part, &items, &mut warnings)? {
                Some(part) => Use::Part(part),
                None if is_path => Use::Path,
                None => Use::Other,
            };
            columns.push(Planned { index, name, part, kind });
        }
        let label = columns.iter().find(|column| column.part == Use::Part(Part::Label));
        let classes = label.map_or_else(Vec::new, |column| features.class_names(&column.name));
        let is_kept = |path: &str| columns.iter().any(|column| path.split('.').next() == Some(&column.name));
        let is_lost = |path: &str| is_kept(path) && label.is_none_or(|label| label.name != path);
        let lost = features.all_class_names().into_iter().filter(|(path, names)| is_lost(path) && !names.is_empty());
        warnings.extend(lost.map(|(field, names)| Warning::NamesLeftOut { field, names }));
        Ok(Self { columns, metadata, classes, warnings, types })
    }

    /// The index of the label column, if it has strings.
    pub(in crate::source) fn text_label(&self) -> Option<usize> {
        let is_one = |column: &&Planned| column.part == Use::Part(Part::Label) && matches!(column.kind, Kind::Text);
        self.columns.iter().find(is_one).map(|column| column.index)
    }

    /// The columns whose items are plain bytes in an array. For a struct, also the index of the child that contains the bytes.
    pub(in crate::source) fn in_place(&self) -> Vec<(usize, Option<usize>)> {
        self.columns.iter().filter_map(Planned::in_place).collect()
    }

    /// Refuses a file whose columns differ from those of the first file.
    pub(in crate::source) fn check(&self, path: &Path, schema: &Schema) -> Result<(), ConvertError> {
        let label = self.columns.iter().find(|column| column.part == Use::Part(Part::Label));
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
                return Err(ConvertError::contradictory(path, own_name, reason, ALIKE_HINT));
            }
        }
        Ok(())
    }
}

fn types_of(schema: &Schema) -> Vec<(String, DataType)> {
    let fields = schema.fields().iter();
    fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
}

/// The columns with a role: by keys and names, otherwise by their Hugging Face types.
fn find_roles<'a>(
    path: &Path,
    names: &[String],
    features: &Features,
    metadata: Option<&Metadata>,
    keys: Keys<'a>,
) -> Result<Roles<'a>, ConvertError> {
    let find = |part| find_field(path, names, part, keys, metadata);
    let image = find(Part::Image)?.or_else(|| features.first(names, "Image", keys));
    let image = image.map_or_else(|| find_image_field(path, names, keys, metadata), Ok)?;
    let label = find(Part::Label)?.or_else(|| features.first(names, "ClassLabel", keys));
    Ok(Roles::new(image, label, find(Part::Mask)?, keys))
}

/// The kind of a column's items, which decides its possible roles.
fn items_of(kind: &Kind, data_type: &DataType) -> Items {
    match kind {
        Kind::Number(_) => Items::numbers(),
        Kind::Text if is_string(plain_type(data_type)) => Items::texts(),
        Kind::Items { .. } => Items::pictures(),
        Kind::Array { array, .. } => Items::of_array(array),
        Kind::Text => Items::other(data_type.to_string()),
        Kind::JsonText | Kind::Json => Items::of(&Content::Json),
    }
}
