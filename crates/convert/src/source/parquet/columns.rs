//! Reads single columns of a Parquet file into memory.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::{Table, failed};
use crate::dtypes::of_arrow_type;
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::column::TextArena;
use crate::source::shards::Shards;
use crate::source::store::ArrayType;
use crate::source::table::{
    Levels, for_each_text, guarded, is_null_at, is_scalar, json_of, json_refusal, leaf_of, numbers, plain_type,
    shape_of,
};
use crate::source::table_values::TableValues;

/// The different strings of a field of all files. `None` if a value is null, or the values are not strings.
pub(crate) fn class_names(
    part: &Shards,
    _options: &ListOptions,
    field: &str,
) -> Result<Option<BTreeSet<Vec<u8>>>, ConvertError> {
    let mut all = BTreeSet::new();
    for path in &part.files {
        let Some(place) = names(path)?.iter().position(|name| name == field) else { return Ok(None) };
        let (TableValues::Text(texts), _) = column(path, place)? else { return Ok(None) };
        all.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
    }
    Ok(Some(all))
}

/// The names of the columns.
pub(in crate::source) fn names(path: &Path) -> Result<Vec<String>, ConvertError> {
    let table = Table::open(path, &ListOptions::default())?;
    Ok(table.columns.schema.fields().iter().map(|field| field.name().clone()).collect())
}

/// The values of the column at this place. No value may be null. Also returns the number of rows.
pub(in crate::source) fn column(path: &Path, place: usize) -> Result<(TableValues, usize), ConvertError> {
    let mut table = Table::open(path, &ListOptions::default())?;
    table.read_only(place)?;
    let name = table.columns.schema.fields().first().map_or_else(String::new, |field| field.name().clone());
    let (mut values, mut n_rows) = (None, 0_usize);
    for task in Arc::new(table).tasks() {
        guarded(path, &task.place(), || {
            for batch in task.reader()? {
                let batch = batch.map_err(|e| failed(path, &task.place(), &e.into()))?;
                let Some(array) = batch.columns().first() else { continue };
                let refused = |row: usize, reason: String| {
                    let hint = "write a value to each row, or choose other columns; nothing was written";
                    let place = format!("row {}", n_rows.saturating_add(row));
                    ConvertError::contradictory(path, &place, format!("`{name}`: {reason}"), hint)
                };
                if let Some(row) = (0..array.len()).find(|row| is_null_at(array.as_ref(), *row)) {
                    return Err(refused(row, "there is no value".to_owned()));
                }
                let of_type = || new(array).map_err(|reason| refused(0, reason));
                let values = match &mut values {
                    Some(values) => values,
                    None => values.insert(of_type()?),
                };
                add(values, array).map_err(|(row, reason)| refused(row, reason))?;
                n_rows = n_rows.saturating_add(array.len());
            }
            Ok(())
        })?;
    }
    match values {
        Some(values) => Ok((values, n_rows)),
        None => Err(ConvertError::malformed(path, "", "the table has no rows")),
    }
}

/// An empty column for values like the first one of `array`.
fn new(array: &ArrayRef) -> Result<TableValues, String> {
    let numbers = |dtype, shape| Ok(TableValues::Numbers(ArrayType { dtype, shape }, Vec::new()));
    let data_type = array.data_type();
    if let Some(dtype) = of_arrow_type(data_type) {
        return numbers(dtype, Vec::new());
    }
    if is_scalar(plain_type(data_type)) {
        return Ok(TableValues::Text(TextArena::default()));
    }
    if let (DataType::FixedSizeList(..), Some(dtype)) = (data_type, leaf_of(data_type)) {
        return numbers(dtype, shape_of(array.as_ref())?);
    }
    match json_refusal(data_type, 0) {
        None => Ok(TableValues::Json(TextArena::default())),
        Some(reason) => Err(reason),
    }
}

/// Adds the values of a batch. The error has the row.
fn add(values: &mut TableValues, array: &ArrayRef) -> Result<(), (usize, String)> {
    let any = |reason| (0, reason);
    match values {
        TableValues::Numbers(of, bytes) if of.shape.is_empty() => {
            let (numbers, _) = numbers(array.as_ref()).map_err(any)?;
            bytes.extend_from_slice(numbers.as_slice());
        }
        TableValues::Numbers(of, bytes) => {
            let levels = Levels::of(array.as_ref()).map_err(any)?;
            for row in 0..array.len() {
                bytes.extend_from_slice(levels.row(row, &of.shape).map_err(|reason| (row, reason))?);
            }
        }
        TableValues::Text(texts) => {
            let each = |text: Option<&str>| {
                texts.push(text.unwrap_or_default());
                Ok(())
            };
            for_each_text(array, each).map_err(any)?;
        }
        TableValues::Json(texts) => {
            for row in 0..array.len() {
                let value = json_of(array.as_ref(), row).map_err(|reason| (row, reason))?;
                texts.push(&value.to_string());
            }
        }
    }
    Ok(())
}
