//! Parquet files whose rows name image files, such as `metadata.parquet`. They are read as JSON Lines.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use serde_json::Value;

use super::{Table, failed};
use crate::error::ConvertError;
use crate::source::ListOptions;
use crate::source::candidate::is_image_name;
use crate::source::table::{guarded, json_of, json_refusal};

/// Whether the rows name image files: no column has bytes, and a text of the first row has the extension of an image.
pub(in crate::source) fn names_files(path: &Path) -> bool {
    let first = || {
        let table = Arc::new(Table::open(path, &ListOptions::default()).ok()?);
        let fields = table.columns.schema.fields();
        if fields.iter().any(|field| json_refusal(field.data_type(), 0).is_some()) {
            return None;
        }
        let mut task = table.tasks().next()?;
        task.rows = 1;
        let row = guarded(path, &task.place(), || {
            let first = task.reader()?.next().transpose().map_err(|e| failed(path, &task.place(), &e.into()))?;
            first.map_or(Ok(Vec::new()), |first| row(&first, 0).map_err(|e| ConvertError::malformed(path, "row 0", e)))
        });
        Some(row.ok()?.iter().any(|(_, value)| value.as_str().is_some_and(|text| is_image_name(text.as_bytes()))))
    };
    first().unwrap_or(false)
}

/// Writes each row as a JSON object on a line.
///
/// # Errors
/// If the file is damaged, or if a column has values that JSON cannot represent, such as bytes.
pub(in crate::source) fn write_lines(path: &Path, out: &mut impl Write) -> Result<(), ConvertError> {
    let table = Arc::new(Table::open(path, &ListOptions::default())?);
    for field in table.columns.schema.fields() {
        if let Some(reason) = json_refusal(field.data_type(), 0) {
            let hint = "write a table of paths, labels and other values, without the bytes of files";
            return Err(ConvertError::unsupported(path, field.name(), reason, hint));
        }
    }
    for task in table.tasks() {
        guarded(path, &task.place(), || {
            for batch in task.reader()? {
                let batch = batch.map_err(|e| failed(path, &task.place(), &e.into()))?;
                for number in 0..batch.num_rows() {
                    let row = row(&batch, number).map_err(|e| ConvertError::malformed(path, &task.place(), e))?;
                    write_row(&row, out).map_err(ConvertError::io(path))?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The names and the values of a row, in the order of the columns.
fn row(batch: &RecordBatch, number: usize) -> Result<Vec<(String, Value)>, String> {
    let schema = batch.schema();
    let cells = schema.fields().iter().zip(batch.columns());
    cells.map(|(field, column)| Ok((field.name().clone(), json_of(column.as_ref(), number)?))).collect()
}

fn write_row(row: &[(String, Value)], out: &mut impl Write) -> std::io::Result<()> {
    let mut separator = "{";
    for (name, value) in row {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, name)?;
        out.write_all(b":")?;
        serde_json::to_writer(&mut *out, value)?;
        separator = ",";
    }
    out.write_all(b"}\n")
}
