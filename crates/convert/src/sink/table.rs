//! Converts batches to Arrow record batches, and fields to columns with metadata. Shared by Parquet and Arrow.
//!
//! `parquet` and `arrow` write the files.

use packds_system::to_usize;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::types::Int64Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeBinaryArray, FixedSizeListArray, PrimitiveArray, RecordBatch,
    StringArray, StructArray, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, OffsetBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use packds_format::{Classes, DType, Role};
use serde_json::{Map, Value, json};

use super::batch::Column;
use super::{Batch, ExportedField, Form, SinkStart};
use crate::dtypes::arrow_type;
use crate::error::ConvertError;
use crate::metadata::METADATA_KEY;
use crate::opt::CHUNK;
use crate::source::PATHS;

#[derive(Debug, Clone)]
enum Values {
    /// Image files. `with_paths` is set for the image field if the pack has paths.
    Files {
        with_paths: bool,
    },
    Bytes,
    Text,
    Number(DType),
    /// Class ids of this type, stored as the 64-bit integers that Hugging Face requires.
    Label(DType),
    /// Arrays of this many `u8` values, stored as bytes.
    FixedBytes(i32),
    /// Arrays of this many values, stored as lists.
    FixedList(DType, i32),
}

#[derive(Debug)]
pub(crate) struct TableLayout {
    /// The columns with their metadata, and the metadata of the table.
    pub(super) schema: SchemaRef,
    /// One entry per exported field, then one for the paths, if there are any.
    columns: Vec<Values>,
    path_column: bool,
    lost: Vec<String>,
    odd_paths: AtomicBool,
}

/// A column of bytes that needs its own Parquet options. The column may be part of a struct, so `parts` is its path in
/// the schema.
#[derive(Debug, Clone)]
pub(crate) struct BytesColumn {
    pub(super) parts: Vec<String>,
    /// Whether the items are image files, which are already compressed.
    pub(super) is_files: bool,
}

impl TableLayout {
    /// Chooses the columns. With `as_bytes`, arrays of `u8` become binary columns instead of lists of numbers.
    pub(super) fn of(start: &SinkStart<'_>, as_bytes: bool) -> Result<Self, ConvertError> {
        let exported = start.exported;
        let (mut fields, mut columns, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        let mut features = Map::new();
        let mut files_have_paths = false;
        for field in &exported.fields {
            let name = field.field.name.as_str();
            let with_paths = exported.has_paths && field.field.role == Some(Role::Image);
            let values = values_of(field, with_paths, as_bytes)?;
            files_have_paths |= matches!(values, Values::Files { with_paths: true });
            if field.field.dtype == DType::Bf16 && matches!(field.form, Form::Array(_)) {
                lost.push(format!(
                    "the type of field `{name}`, because Arrow has no bfloat16: its bits are stored as uint16"
                ));
            }
            fields.push(arrow_field(field, &values));
            if let Some(feature) = feature_of(field, &values, &start.metadata.classes) {
                features.insert(name.to_owned(), feature);
            }
            columns.push(values);
        }
        let is_taken = exported.fields.iter().any(|f| f.field.name == PATHS);
        let path_column = exported.has_paths && !files_have_paths && !is_taken;
        if path_column {
            fields.push(Field::new(PATHS, DataType::Utf8, true));
            columns.push(Values::Text);
        } else if exported.has_paths && !files_have_paths {
            lost.push("the samples' paths, because another field is named `path`".to_owned());
        }
        let features = json!({"info": {"features": features}});
        let metadata = HashMap::from([
            ("huggingface".to_owned(), features.to_string()),
            (METADATA_KEY.to_owned(), start.metadata.to_text()),
        ]);
        Ok(Self {
            schema: Arc::new(Schema::new(fields).with_metadata(metadata)),
            columns,
            path_column,
            lost,
            odd_paths: AtomicBool::new(false),
        })
    }

    pub(super) fn bytes_columns(&self) -> Vec<BytesColumn> {
        let fields = self.schema.fields().iter().zip(&self.columns);
        let columns = fields.filter_map(|(field, values)| {
            let name = field.name().clone();
            let (parts, is_files) = match values {
                Values::Files { .. } => (vec![name, "bytes".to_owned()], true),
                Values::Bytes | Values::FixedBytes(_) => (vec![name], false),
                _ => return None,
            };
            Some(BytesColumn { parts, is_files })
        });
        columns.collect()
    }

    pub(super) fn record_batch(&self, batch: Batch) -> Result<RecordBatch, ConvertError> {
        let Batch { n, columns, paths, .. } = batch;
        let paths = self.texts_of(&paths);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (values, column) in self.columns.iter().zip(columns) {
            arrays.push(array(values, column, n, &paths)?);
        }
        if self.path_column {
            arrays.push(Arc::new(StringArray::from(paths)));
        }
        let made = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        made.map_err(unfit)
    }

    fn texts_of(&self, paths: &[Vec<u8>]) -> Vec<String> {
        if paths.iter().any(|path| str::from_utf8(path).is_err()) {
            self.odd_paths.store(true, Ordering::Relaxed);
        }
        paths.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect()
    }

    /// Descriptions of what could not be stored.
    pub(super) fn lost(&self) -> Vec<String> {
        let mut lost = self.lost.clone();
        if self.odd_paths.load(Ordering::Relaxed) {
            lost.push("invalid UTF-8 in paths, which was replaced with U+FFFD".to_owned());
        }
        lost
    }
}

fn values_of(field: &ExportedField, with_paths: bool, as_bytes: bool) -> Result<Values, ConvertError> {
    let array = match &field.form {
        Form::File => return Ok(Values::Files { with_paths }),
        Form::Bytes => return Ok(Values::Bytes),
        Form::Text | Form::Json => return Ok(Values::Text),
        Form::Array(array) => array,
    };
    if array.shape.is_empty() {
        let is_label = field.field.role == Some(Role::Label);
        return Ok(match array.dtype {
            dtype @ (DType::I32 | DType::I64) if is_label => Values::Label(dtype),
            dtype => Values::Number(dtype),
        });
    }
    let n = array.shape.iter().try_fold(1_u64, |n, &d| n.checked_mul(d));
    let n = n.and_then(|n| i32::try_from(n).ok());
    match n {
        Some(n) if n > 0 => Ok(match array.dtype {
            DType::U8 if as_bytes => Values::FixedBytes(n),
            dtype => Values::FixedList(dtype, n),
        }),
        _ => {
            let (name, shape) = (&field.field.name, &array.shape);
            let reason = format!("field `{name}`: arrays of shape {shape:?} do not fit in Arrow's 32-bit list sizes");
            Err(ConvertError::options(reason, "choose another format, such as zarr or hdf5"))
        }
    }
}

/// The struct fields of image files, as defined by Hugging Face.
fn file_fields() -> Fields {
    Fields::from(vec![Field::new("bytes", DataType::Binary, true), Field::new("path", DataType::Utf8, true)])
}

fn item_field(dtype: DType) -> Arc<Field> {
    Arc::new(Field::new("item", arrow_type(dtype), true))
}

fn arrow_field(field: &ExportedField, values: &Values) -> Field {
    let data_type = match values {
        Values::Files { .. } => DataType::Struct(file_fields()),
        Values::Bytes => DataType::Binary,
        Values::Text => DataType::Utf8,
        Values::Label(_) => DataType::Int64,
        Values::Number(dtype) => arrow_type(*dtype),
        Values::FixedBytes(n) => DataType::FixedSizeBinary(*n),
        Values::FixedList(dtype, n) => DataType::FixedSizeList(item_field(*dtype), *n),
    };
    let shape = json!(field.field.shape).to_string();
    let metadata = match values {
        Values::FixedBytes(_) => HashMap::from([("shape".to_owned(), shape), ("dtype".to_owned(), "uint8".to_owned())]),
        // For one dimension, a list suffices. Readers without tensor support can read it too.
        Values::FixedList(..) if field.field.shape.len() == 1 => HashMap::new(),
        // Arrow stores bool as bits, but has no tensors of bits.
        Values::FixedList(DType::Bool, _) => HashMap::from([("shape".to_owned(), shape)]),
        Values::FixedList(..) => HashMap::from([
            ("ARROW:extension:name".to_owned(), "arrow.fixed_shape_tensor".to_owned()),
            ("ARROW:extension:metadata".to_owned(), json!({"shape": field.field.shape}).to_string()),
        ]),
        _ => HashMap::new(),
    };
    Field::new(&field.field.name, data_type, true).with_metadata(metadata)
}

/// The Hugging Face feature of a column. `None` if Hugging Face should infer it from the column's type.
fn feature_of(field: &ExportedField, values: &Values, classes: &[Classes]) -> Option<Value> {
    match values {
        Values::Files { .. } => Some(json!({"_type": "Image"})),
        Values::Label(_) => {
            let name = &field.field.name;
            let classes = classes.iter().find(|classes| classes.field == *name);
            let names = classes.map_or(&[][..], |classes| &classes.names);
            if names.is_empty() {
                Some(json!({"dtype": "int64", "_type": "Value"}))
            } else {
                Some(json!({"names": names, "_type": "ClassLabel"}))
            }
        }
        _ => None,
    }
}

fn array(values: &Values, column: Column, n: usize, paths: &[String]) -> Result<ArrayRef, ConvertError> {
    Ok(match values {
        Values::Files { with_paths } => {
            let bytes: ArrayRef = Arc::new(binary(column)?);
            let path: ArrayRef = if *with_paths {
                Arc::new(StringArray::from_iter_values(paths))
            } else {
                Arc::new(StringArray::new_null(n))
            };
            let made = StructArray::try_new(file_fields(), vec![bytes, path], None);
            Arc::new(made.map_err(unfit)?)
        }
        Values::Bytes => Arc::new(binary(column)?),
        Values::Text => {
            let offsets = offsets(&column)?;
            let made = StringArray::try_new(offsets, Buffer::from_vec(column.bytes), None);
            Arc::new(made.map_err(unfit)?)
        }
        Values::Label(DType::I32) => {
            let (ids, _) = column.bytes.as_chunks::<4>();
            let ids = ids.iter().map(|id| i64::from(i32::from_le_bytes(*id)));
            Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(ids))
        }
        Values::Label(dtype) | Values::Number(dtype) => numbers(*dtype, column.bytes, n)?,
        Values::FixedBytes(width) => {
            let bytes = Buffer::from_vec(column.bytes);
            let made = FixedSizeBinaryArray::try_new(*width, bytes, None);
            Arc::new(made.map_err(unfit)?)
        }
        Values::FixedList(dtype, width) => {
            let each = to_usize(width.max(&0).cast_unsigned());
            let values = numbers(*dtype, column.bytes, n.saturating_mul(each))?;
            let made = FixedSizeListArray::try_new(item_field(*dtype), *width, values, None);
            Arc::new(made.map_err(unfit)?)
        }
    })
}

fn binary(column: Column) -> Result<BinaryArray, ConvertError> {
    let offsets = offsets(&column)?;
    let made = BinaryArray::try_new(offsets, Buffer::from_vec(column.bytes), None);
    made.map_err(unfit)
}

fn offsets(column: &Column) -> Result<OffsetBuffer<i32>, ConvertError> {
    let mut offsets = vec![0_i32];
    for &end in &column.ends {
        let end = i32::try_from(end).map_err(|_| {
            let reason = "one field's items in a batch exceed 2 GiB, the limit of Arrow's 32-bit offsets";
            unfit(reason)
        })?;
        offsets.push(end);
    }
    Ok(OffsetBuffer::new(offsets.into()))
}

fn unfit(reason: impl Display) -> ConvertError {
    ConvertError::options(reason.to_string(), format!("choose fewer samples with {CHUNK}"))
}

/// An array of `n` numbers from little-endian bytes, which is also the byte order in memory.
fn numbers(dtype: DType, bytes: Vec<u8>, n: usize) -> Result<ArrayRef, ConvertError> {
    if dtype == DType::Bool {
        let values = BooleanBuffer::from_iter(bytes.iter().map(|byte| *byte != 0));
        return Ok(Arc::new(BooleanArray::new(values, None)));
    }
    let data = ArrayData::builder(arrow_type(dtype)).len(n).add_buffer(Buffer::from_vec(bytes));
    let data = data.align_buffers(true).build();
    data.map(make_array).map_err(unfit)
}
