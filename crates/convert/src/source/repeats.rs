//! Finds rows of a table that refer to the same image: one row per box, or one per caption.
//!
//! `manifest` reads the rows.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use packds_system::to_u64;
use serde_json::Value;

use super::column::{ColumnValues, SourceColumn};
use super::listing::SourceField;
use super::paths::PathTable;
use super::warning::Warning;
use crate::error::{ConvertError, quoted};
use crate::opt::LEAVE_OUT;

/// Common names of the four columns of a box, in lower case, without spaces or underscores.
const BOXES: [[&str; 4]; 8] = [
    ["xmin", "ymin", "xmax", "ymax"],
    ["x1", "y1", "x2", "y2"],
    ["x0", "y0", "x1", "y1"],
    ["x", "y", "w", "h"],
    ["x", "y", "width", "height"],
    ["left", "top", "right", "bottom"],
    ["left", "top", "width", "height"],
    ["xcenter", "ycenter", "width", "height"],
];
/// Common names of a column with one or more boxes in each cell.
const BOX_CELLS: [&str; 6] = ["bbox", "bboxes", "box", "boxes", "boundingbox", "boundingboxes"];

/// Warns about images in several rows, and about columns of boxes.
///
/// # Errors
/// If a table has both, because each row is then a box, not an image.
pub(super) fn check(
    source: &Path,
    column: &str,
    paths: &PathTable,
    fields: &[&str],
) -> Result<Vec<Warning>, ConvertError> {
    let boxes = box_columns(fields);
    let Some((first, n_images)) = repeated(paths) else {
        return Ok(match boxes.is_empty() {
            true => Vec::new(),
            false => vec![Warning::BoxColumns { fields: boxes }],
        });
    };
    if boxes.is_empty() {
        let (column, n_rows) = (column.to_owned(), to_u64(paths.len()));
        return Ok(vec![Warning::RepeatedImages { column, n_images, n_rows, first }]);
    }
    let n_rows = paths.len();
    let what = if boxes.len() == 1 { "looks like boxes" } else { "look like boxes" };
    let reason = format!(
        "expected one row for each image, found {n_rows} rows for {n_images} images in '{column}'; {} {what}",
        quoted(&boxes)
    );
    let hint = format!(
        "group the boxes of each image into lists (in Python: pandas.read_csv('x.csv').groupby('{column}').agg(list).reset_index().to_json('x.jsonl', orient='records', lines=True)), or leave these columns out with {LEAVE_OUT} to pack each row as an image"
    );
    Err(ConvertError::contradictory(source, "", reason, hint))
}

/// The warning about columns that look like boxes, or whose JSON objects have boxes.
pub(super) fn boxes_in(columns: &[SourceColumn], fields: &[SourceField]) -> Option<Warning> {
    let names = columns.iter().map(|column| column.name.as_str()).chain(fields.iter().map(|field| field.name.as_str()));
    let mut found = box_columns(&names.collect::<Vec<_>>());
    for column in columns {
        let ColumnValues::Json(texts) = &column.values else { continue };
        let first = texts.iter().find(|text| *text != "null").and_then(|text| serde_json::from_str(text).ok());
        let object = match &first {
            Some(Value::Array(items)) => items.first().and_then(Value::as_object),
            value => value.as_ref().and_then(Value::as_object),
        };
        let keys: Vec<&str> = object.into_iter().flat_map(|object| object.keys().map(String::as_str)).collect();
        found.extend(box_columns(&keys).into_iter().map(|key| format!("{}.{key}", column.name)));
    }
    (!found.is_empty()).then_some(Warning::BoxColumns { fields: found })
}

/// The first repeated path, and the number of different paths. `None` if all are different.
fn repeated(paths: &PathTable) -> Option<(Vec<u8>, u64)> {
    let (mut seen, mut first, mut path) = (HashSet::new(), None, Vec::new());
    for idx in 0..paths.len() {
        path.clear();
        paths.path_into(idx, &mut path);
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        if !seen.insert(hasher.finish()) && first.is_none() {
            first = Some(path.clone());
        }
    }
    first.map(|first| (first, to_u64(seen.len())))
}

/// The columns among `names` that look like boxes.
fn box_columns(names: &[&str]) -> Vec<String> {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', ' '], "");
    let find = |wanted: &str| names.iter().find(|name| plain(name).trim_start_matches("bbox") == wanted);
    let four = BOXES.iter().find_map(|four| four.iter().map(|name| find(name)).collect::<Option<Vec<_>>>());
    let cell = || names.iter().filter(|name| BOX_CELLS.contains(&plain(name).as_str())).collect();
    four.unwrap_or_else(cell).into_iter().map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_boxes_are_known_by_their_names() {
        for names in [
            &["width", "xmin", "ymin", "xmax", "ymax"][..],
            &["x1", "y1", "x2", "y2"],
            &["X_min", "Y_min", "X_max", "Y_max"],
            &["bbox_x", "bbox_y", "bbox_w", "bbox_h"],
            &["x", "y", "width", "height"],
        ] {
            assert_eq!(box_columns(names), names[names.len() - 4..], "{names:?}");
        }
        assert_eq!(box_columns(&["width", "bbox"]), ["bbox"]);
        assert!(box_columns(&["x", "y", "width"]).is_empty());
    }
}
