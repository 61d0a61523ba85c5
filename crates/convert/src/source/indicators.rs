//! Columns with 0 and 1, one for each class, such as `healthy,rust,scab`: each row has 1 in exactly one of them.

use std::collections::BTreeSet;

use super::rows::{Cell, Rows};
use super::values::text_of;
use crate::error::ConvertError;

/// The value of a cell with 0 or 1, also written as 0.0 and 1.0.
pub(super) fn indicator(cell: Cell<'_>) -> Option<bool> {
    match text_of(cell).as_ref() {
        "0" | "0.0" => Some(false),
        "1" | "1.0" => Some(true),
        _ => None,
    }
}

/// The column of the current row's class, if exactly one has a 1.
pub(super) fn class_of(rows: &Rows<'_>, columns: &[usize]) -> Option<usize> {
    let mut ones = columns.iter().filter(|column| indicator(rows.cell(**column)) == Some(true));
    ones.next().copied().filter(|_| ones.next().is_none())
}

/// Whether these columns give one class in every row, and several classes in all. Reads all rows.
pub(super) fn are_classes(rows: &mut Rows<'_>, columns: &[usize]) -> Result<bool, ConvertError> {
    let (mut seen, mut n_rows) = (BTreeSet::new(), 0);
    while rows.advance()? {
        let Some(class) = class_of(rows, columns) else { return Ok(false) };
        seen.insert(class);
        n_rows += 1;
    }
    // Few rows may fit by chance.
    Ok(seen.len() > 1 && n_rows >= columns.len())
}
