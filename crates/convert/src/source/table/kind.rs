//! Decides how the values of a column are used, based on its type, its metadata and its first values.
//!
//! `plan` assigns the roles of columns.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use packds_format::{DType, FieldKind};
use packds_pixels::ImageFormat;
use serde::{Deserialize, Serialize};

use super::features::declared_shape;
use super::nested::{leaf_of, shape_of};
use super::text;
use crate::dtypes::of_arrow_type;
use crate::metadata::Metadata;
use crate::opt::{IMAGE_KEY, LABEL_KEY, LEAVE_OUT, MASK_KEY};
use crate::source::store::{ArrayType, Content};

/// How the values of a column are used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Kind {
    /// Bytes of any length, or files.
    Items {
        content: Content,
        /// The indices of the struct's children with the bytes and the path.
        children: Option<(usize, Option<usize>)>,
    },
    /// Arrays of one type, in nested lists. `stored` has the lengths of the lists from the outside in.
    Array {
        array: ArrayType,
        stored: Vec<u64>,
    },
    /// A number or boolean.
    Number(DType),
    Text,
    /// Text that is already JSON.
    JsonText,
    /// Lists and structs, converted to JSON.
    Json,
}

/// Why a column cannot be used: the reason and the hint.
pub(super) type Refusal = (String, String);

fn other_column() -> String {
    format!("choose another column with {IMAGE_KEY}, {LABEL_KEY} or {MASK_KEY}, or leave this one out with {LEAVE_OUT}")
}

/// What is known about a column besides its type.
pub(super) struct Known<'a> {
    pub(super) field: &'a Field,
    /// The values of the first batch.
    pub(super) first: &'a ArrayRef,
    pub(super) metadata: Option<&'a Metadata>,
    /// Whether the column is the image or mask column, or is declared to contain arrays.
    pub(super) is_array: bool,
    pub(super) is_picture: bool,
}

impl Known<'_> {
    /// Decides how the values are used.
    pub(super) fn kind(&self) -> Result<Kind, Refusal> {
        let data_type = plain_type(self.field.data_type());
        if let Some(dtype) = of_arrow_type(data_type) {
            return Ok(Kind::Number(self.as_in_pack(dtype, &[])));
        }
        match data_type {
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView => Ok(self.items(self.first, None)),
            DataType::Struct(fields) => {
                let place = |name: &str| fields.iter().position(|field| field.name() == name);
                let bytes = place("bytes").filter(|idx| {
                    let field = fields.get(*idx);
                    field.is_some_and(|field| is_binary(field.data_type()))
                });
                match bytes {
                    Some(bytes) => {
                        let first = self.first.as_any();
                        let first = first.downcast_ref::<arrow_array::StructArray>();
                        let first = first.and_then(|array| array.columns().get(bytes));
                        let children = Some((bytes, place("path")));
                        Ok(self.items(first.unwrap_or(self.first), children))
                    }
                    None => self.json(data_type),
                }
            }
            DataType::FixedSizeBinary(_) | DataType::FixedSizeList(..) => self.array(),
            DataType::List(_) | DataType::LargeList(_) if self.is_array => self.array(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
                let known = self.metadata.and_then(|m| m.field(self.field.name()));
                let is_json = known.is_some_and(|field| field.kind == FieldKind::Json);
                Ok(if is_json { Kind::JsonText } else { Kind::Text })
            }
            other if text::is_scalar(other) => Ok(Kind::Text),
            other => self.json(other),
        }
    }

    fn json(&self, data_type: &DataType) -> Result<Kind, Refusal> {
        match text::json_refusal(data_type, 0) {
            None => Ok(Kind::Json),
            Some(reason) => Err((reason, other_column())),
        }
    }

    /// Arrays if the pack had arrays and the first value has their size. Otherwise files for image columns, and bytes for others.
    fn items(&self, first: &ArrayRef, children: Option<(usize, Option<usize>)>) -> Kind {
        let first = super::piece::binary_item(first.as_ref(), 0).unwrap_or_default();
        let is_file = ImageFormat::sniff(first).is_some();
        let known = self.metadata.and_then(|m| m.field(self.field.name()));
        let array = known.filter(|f| f.kind == FieldKind::Tensor).map(|field| {
            let (dtype, shape) = (field.dtype, field.shape.clone());
            ArrayType { dtype, shape }
        });
        let len = u64::try_from(first.len()).ok();
        let array = array.filter(|array| !is_file && array.bytes() == len);
        let content = match array {
            Some(array) => Content::of_array(array),
            None if self.is_picture => Content::File,
            None => Content::Bytes,
        };
        Kind::Items { content, children }
    }

    fn array(&self) -> Result<Kind, Refusal> {
        let refused = |reason: String| (reason, other_column());
        let Some(leaf) = leaf_of(self.field.data_type()) else {
            return if self.is_picture {
                let reason = format!("expected bytes or numbers, found {}", self.field.data_type());
                Err(refused(reason))
            } else {
                self.json(self.field.data_type())
            };
        };
        let stored = shape_of(self.first.as_ref()).map_err(refused)?;
        let known = self.metadata.and_then(|m| m.field(self.field.name()));
        let known = known.filter(|field| field.kind == FieldKind::Tensor);
        let array = |dtype, shape| ArrayType { dtype, shape };
        let same_bytes = |a: &ArrayType, b: &ArrayType| a.bytes() == b.bytes();
        let plain = array(leaf, stored.clone());
        let array = match declared_shape(self.field) {
            Some(Err(reason)) => {
                return Err((reason, "write the arrays in C order, with a shape".to_owned()));
            }
            Some(Ok(shape)) => {
                let declared = array(leaf, shape);
                if !same_bytes(&declared, &plain) {
                    let (declared, stored) = (declared.shape, plain.shape);
                    let reason = format!("its declared shape is {declared:?}, but its values have shape {stored:?}");
                    return Err(refused(reason));
                }
                declared
            }
            // A binary column has neither element type nor shape.
            None => match known.map(|field| array(field.dtype, field.shape.clone())) {
                Some(known) if plain.shape.len() == 1 && same_bytes(&known, &plain) => known,
                _ => plain,
            },
        };
        let dtype = self.as_in_pack(array.dtype, &array.shape);
        match array.bytes() {
            Some(bytes) if bytes > 0 => Ok(Kind::Array { array: ArrayType { dtype, ..array }, stored }),
            _ => {
                let shape = &array.shape;
                let reason = format!("arrays of shape {shape:?} are empty or too large");
                Err((reason, other_column()))
            }
        }
    }

    /// The type that the pack had, if the table has no equivalent.
    fn as_in_pack(&self, dtype: DType, shape: &[u64]) -> DType {
        let shape = shape.to_vec();
        let name = self.field.name();
        self.metadata.map_or(dtype, |metadata| metadata.restored(name, &ArrayType { dtype, shape }).dtype)
    }
}

/// The type of a dictionary's values. Other types are returned unchanged.
pub(in crate::source) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

fn is_binary(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Whether the value of this row is null.
pub(in crate::source) fn is_null_at(array: &dyn Array, row: usize) -> bool {
    array.nulls().is_some_and(|nulls| nulls.is_null(row))
}
