//! Reads the metadata of a table's schema: Hugging Face's features, the canonical tensor extension and the pack's own text.
//!
//! `kind` decides how the columns are used.

use arrow_schema::{Field, Schema};
use serde_json::{Map, Value};

use crate::metadata::{METADATA_KEY, Metadata};
use crate::source::roles::Keys;

/// The key of Hugging Face's metadata.
const HUGGING_FACE_KEY: &str = "huggingface";
/// The metadata keys of extension types, and the name of the type of fixed-shape tensors.
const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_TEXT: &str = "ARROW:extension:metadata";
const TENSOR_EXTENSION: &str = "arrow.fixed_shape_tensor";
/// The key for the shape of arrays in fixed-size binary columns.
pub(super) const SHAPE_KEY: &str = "shape";

/// Hugging Face's features by column.
#[derive(Debug, Default)]
pub(super) struct Features {
    features: Map<String, Value>,
}

impl Features {
    /// The features of a schema. Empty if they are missing or unreadable.
    pub(super) fn of(schema: &Schema) -> Self {
        let text = schema.metadata().get(HUGGING_FACE_KEY);
        let value = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let features = value.as_ref().and_then(|v| v.pointer("/info/features"));
        Self { features: features.and_then(Value::as_object).cloned().unwrap_or_default() }
    }

    fn type_of(&self, column: &str) -> &str {
        let feature = self.features.get(column).and_then(|f| f.get("_type"));
        feature.and_then(Value::as_str).unwrap_or_default()
    }

    /// The first column in `names` with this feature type.
    pub(super) fn first(&self, names: &[String], of_type: &str, keys: Keys<'_>) -> Option<usize> {
        let is = |name: &String| self.type_of(name) == of_type && !keys.has(name);
        names.iter().position(is)
    }

    /// The class names of a column.
    pub(super) fn class_names(&self, column: &str) -> Vec<String> {
        let names = self.features.get(column).and_then(|f| f.get("names"));
        let names = names.and_then(Value::as_array).into_iter().flatten();
        names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// The class names of all columns and of the values inside them, such as those of `objects.category`.
    pub(super) fn all_class_names(&self) -> Vec<(String, Vec<String>)> {
        let mut found = Vec::new();
        self.features.iter().for_each(|(column, feature)| add_class_names(column, feature, &mut found));
        found
    }

    /// Whether a column contains fixed-shape arrays.
    pub(super) fn is_array(&self, column: &str) -> bool {
        matches!(self.type_of(column), "Array2D" | "Array3D" | "Array4D" | "Array5D")
    }
}

/// Adds the class names of a feature and of the features inside it.
fn add_class_names(path: &str, feature: &Value, found: &mut Vec<(String, Vec<String>)>) {
    if feature.get("_type").and_then(Value::as_str) == Some("ClassLabel") {
        let names = feature.get("names").and_then(Value::as_array).into_iter().flatten();
        found.push((path.to_owned(), names.filter_map(|name| name.as_str().map(str::to_owned)).collect()));
        return;
    }
    // A list states the type of its items in `feature`, or is a JSON list with that type as its only item.
    match feature {
        Value::Object(features) => features.iter().for_each(|(name, inner)| match name.as_str() {
            "feature" => add_class_names(path, inner, found),
            name => add_class_names(&format!("{path}.{name}"), inner, found),
        }),
        Value::Array(features) => features.iter().for_each(|inner| add_class_names(path, inner, found)),
        _ => {}
    }
}

/// The pack's metadata. An error describes why it cannot be read.
pub(super) fn pack_metadata(schema: &Schema) -> Option<Result<Metadata, String>> {
    let text = schema.metadata().get(METADATA_KEY)?;
    Some(Metadata::parse(text))
}

/// The shape in a field's own metadata. `None` if it is not there. An error describes why it is invalid.
pub(super) fn declared_shape(field: &Field) -> Option<Result<Vec<u64>, String>> {
    let metadata = field.metadata();
    if metadata.get(EXTENSION_NAME).map(String::as_str) == Some(TENSOR_EXTENSION) {
        let text = metadata.get(EXTENSION_TEXT).map_or("", String::as_str);
        return Some(tensor_shape(text));
    }
    let text = metadata.get(SHAPE_KEY)?;
    let shape = serde_json::from_str(text);
    Some(shape.map_err(|_| format!("expected a shape such as [32,32,3], found {text:?}")))
}

fn tensor_shape(text: &str) -> Result<Vec<u64>, String> {
    let wrong = || format!("expected the metadata of a fixed_shape_tensor, found {text:?}");
    let value: Value = serde_json::from_str(text).map_err(|_| wrong())?;
    let numbers = |key: &str| -> Option<Vec<u64>> {
        let list = value.get(key)?.as_array()?;
        list.iter().map(Value::as_u64).collect()
    };
    let shape = numbers("shape").ok_or_else(wrong)?;
    let as_stored = match value.get("permutation") {
        None | Some(Value::Null) => true,
        Some(_) => {
            let order = numbers("permutation").ok_or_else(wrong)?;
            (0_u64..).zip(&order).all(|(place, axis)| place == *axis)
        }
    };
    if as_stored {
        Ok(shape)
    } else {
        Err("the tensor's dimensions are stored in another order (permutation)".to_owned())
    }
}
