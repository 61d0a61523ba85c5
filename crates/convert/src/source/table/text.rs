//! Converts the values of a column to text: strings unchanged, dates and decimals as Arrow prints them, lists and structs as
//! JSON.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Fields};
use serde_json::{Map, Number, Value};

use super::kind::is_null_at;

/// Maximum nesting of lists and structs converted to JSON.
const MAX_LEVELS: usize = 32;

/// Whether values of a type have a common text form.
pub(in crate::source) fn is_scalar(data_type: &DataType) -> bool {
    is_string(data_type) || data_type.is_temporal() || data_type.is_decimal() || matches!(data_type, DataType::Null)
}

pub(super) fn is_string(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Why values of a type cannot be converted to JSON. `None` if they can.
pub(in crate::source) fn json_refusal(data_type: &DataType, level: usize) -> Option<String> {
    if level > MAX_LEVELS {
        return Some(format!("lists and structs are nested more than {MAX_LEVELS} levels deep"));
    }
    match data_type {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            json_refusal(field.data_type(), level + 1)
        }
        DataType::Struct(fields) => fields_refusal(fields, level),
        DataType::Dictionary(_, values) => json_refusal(values, level + 1),
        leaf if is_scalar(leaf) || leaf.is_numeric() || *leaf == DataType::Boolean => None,
        other => Some(format!("a pack cannot store {other}")),
    }
}

fn fields_refusal(fields: &Fields, level: usize) -> Option<String> {
    let mut refusals = fields.iter().map(|field| json_refusal(field.data_type(), level + 1));
    refusals.find_map(|refusal| refusal)
}

/// Calls `each` with the text of every row in order; `None` for a null.
pub(in crate::source) fn for_each_text(
    array: &ArrayRef,
    mut each: impl FnMut(Option<&str>) -> Result<(), String>,
) -> Result<(), String> {
    match array.data_type() {
        DataType::Null => (0..array.len()).try_for_each(|_| each(None)),
        DataType::Utf8 => array.as_string::<i32>().iter().try_for_each(each),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().try_for_each(each),
        DataType::Utf8View => array.as_string_view().iter().try_for_each(each),
        _ => {
            let options = FormatOptions::default();
            let array = in_utc(array)?;
            let formatter = ArrayFormatter::try_new(array.as_ref(), &options);
            let formatter = formatter.map_err(|e| e.to_string())?;
            (0..array.len()).try_for_each(|row| {
                if is_null_at(array.as_ref(), row) {
                    return each(None);
                }
                let text = formatter.value(row).try_to_string();
                each(Some(&text.map_err(|e| e.to_string())?))
            })
        }
    }
}

/// Changes the time zone to UTC, in which times are stored. Arrow cannot look up named zones.
fn in_utc(array: &ArrayRef) -> Result<ArrayRef, String> {
    match array.data_type() {
        DataType::Timestamp(unit, Some(_)) => {
            let utc = DataType::Timestamp(*unit, Some("+00:00".into()));
            arrow_cast::cast(array, &utc).map_err(|e| e.to_string())
        }
        _ => Ok(Arc::clone(array)),
    }
}

/// The JSON of a row.
pub(in crate::source) fn json_of(array: &dyn Array, row: usize) -> Result<Value, String> {
    if is_null_at(array, row) {
        return Ok(Value::Null);
    }
    match array.data_type() {
        DataType::List(_) => list_json::<i32>(array, row),
        DataType::LargeList(_) => list_json::<i64>(array, row),
        DataType::FixedSizeList(..) => {
            let values = array.as_fixed_size_list().value(row);
            all_json(values.as_ref())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let mut object = Map::new();
            for (field, column) in fields.iter().zip(columns) {
                object.insert(field.name().clone(), json_of(column.as_ref(), row)?);
            }
            Ok(Value::Object(object))
        }
        DataType::Boolean => Ok(Value::Bool(array.as_boolean().value(row))),
        _ => leaf_json(array, row),
    }
}

fn list_json<O: OffsetSizeTrait>(array: &dyn Array, row: usize) -> Result<Value, String> {
    all_json(array.as_list::<O>().value(row).as_ref())
}

fn all_json(values: &dyn Array) -> Result<Value, String> {
    let values = (0..values.len()).map(|row| json_of(values, row));
    values.collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// A number as Arrow prints it, which JSON can parse. Numbers that JSON cannot represent, such as NaN, become null.
fn leaf_json(array: &dyn Array, row: usize) -> Result<Value, String> {
    let options = FormatOptions::default();
    let value = in_utc(&array.slice(row, 1))?;
    let formatter = ArrayFormatter::try_new(value.as_ref(), &options).map_err(|e| e.to_string())?;
    let text = formatter.value(0).try_to_string();
    let text = text.map_err(|e| e.to_string())?;
    let is_number = array.data_type().is_numeric() && !array.data_type().is_decimal();
    if is_number {
        let number = serde_json::from_str::<Number>(&text);
        return Ok(number.map_or(Value::Null, Value::Number));
    }
    Ok(Value::String(text))
}
