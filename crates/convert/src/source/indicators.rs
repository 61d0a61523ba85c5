//! Columns of 0 and 1, one per class, such as `healthy,rust,scab`: each row has a 1 in exactly one of them. The same rule applies
//! to one-hot arrays.

use std::collections::BTreeSet;

use super::rows::{Cell, Rows};
use super::values::text_of;
use crate::error::ConvertError;

/// The value of a cell that contains 0 or 1, or 0.0 or 1.0. `None` for other cells.
pub(super) fn indicator(cell: Cell<'_>) -> Option<bool> {
    match text_of(cell).as_ref() {
        "0" | "0.0" => Some(false),
        "1" | "1.0" => Some(true),
        _ => None,
    }
}

/// The column of the current row's class. `None` unless exactly one column has a 1.
pub(super) fn class_of(rows: &Rows<'_>, columns: &[usize]) -> Option<usize> {
    let place = only_one(columns.iter().map(|column| indicator(rows.cell(*column)) == Some(true)))?;
    columns.get(place).copied()
}

/// The index of the only `true`. `None` unless there is exactly one.
pub(super) fn only_one(mut flags: impl Iterator<Item = bool>) -> Option<usize> {
    let place = flags.position(|flag| flag)?;
    (!flags.any(|flag| flag)).then_some(place)
}

/// Whether there are enough rows and different classes to treat columns with a single 1 per row as labels. A few rows may fit by
/// chance.
pub(super) fn is_no_chance(n_seen: usize, n_rows: usize, n_classes: usize) -> bool {
    n_seen > 1 && n_rows >= n_classes
}

/// Whether every row has exactly one class, with several classes in total. Reads all rows.
pub(super) fn are_classes(rows: &mut Rows<'_>, columns: &[usize]) -> Result<bool, ConvertError> {
    let (mut seen, mut n_rows) = (BTreeSet::new(), 0);
    while rows.advance()? {
        let Some(class) = class_of(rows, columns) else { return Ok(false) };
        seen.insert(class);
        n_rows += 1;
    }
    Ok(is_no_chance(seen.len(), n_rows, columns.len()))
}
