//! The column that divides the rows of a table into splits: a column with a name such as `split`, or a column of true and false
//! named `is_valid`, as in the tables of fastai.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::super::column_roles::find_known;
use super::super::column_scan::ColumnScan;
use super::super::roles::{SPLIT_COLUMN_NAMES, VALID_COLUMN_NAME};
use super::super::rows::Rows;
use super::super::values::text_of;

/// The splits of rows with true and with false in the column `is_valid`.
const FLAG_SPLITS: [(&str, &str); 2] = [("true", "valid"), ("false", "train")];

/// A column of splits.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct SplitColumn {
    pub(in crate::source) column: usize,
    /// Whether the cells are true or false.
    pub(in crate::source) is_flag: bool,
}

impl SplitColumn {
    /// Whether a column with this name may be one of splits.
    pub(in crate::source) fn is_named(name: &str) -> bool {
        let mut known = SPLIT_COLUMN_NAMES.iter().chain([&VALID_COLUMN_NAME]);
        known.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Finds the column among those of a table.
    pub(in crate::source) fn find(names: &[String], scans: &[ColumnScan]) -> Option<Self> {
        let has_values = |column: &usize| scans[*column].values.is_some();
        if let Some(column) = find_known(names, &SPLIT_COLUMN_NAMES) {
            return Some(Self { column, is_flag: false }).filter(|found| has_values(&found.column));
        }
        let column = find_known(names, &[VALID_COLUMN_NAME]).filter(has_values)?;
        let are_flags = scans[column].values.as_ref()?.iter().all(|value| split_of_flag(value).is_some());
        are_flags.then_some(Self { column, is_flag: true })
    }

    /// The splits among the cells of the column.
    pub(in crate::source) fn splits(self, scans: &[ColumnScan]) -> Option<BTreeSet<String>> {
        let values = scans[self.column].values.as_ref()?;
        Some(values.iter().map(|value| self.split_of(Cow::Borrowed(value)).into_owned()).collect())
    }

    /// The split of the current row.
    pub(in crate::source) fn split<'a>(self, rows: &'a Rows<'_>) -> Cow<'a, str> {
        self.split_of(text_of(rows.cell(self.column)))
    }

    fn split_of(self, cell: Cow<'_, str>) -> Cow<'_, str> {
        match split_of_flag(&cell).filter(|_| self.is_flag) {
            Some(split) => Cow::Borrowed(split),
            None => cell,
        }
    }
}

fn split_of_flag(cell: &str) -> Option<&'static str> {
    FLAG_SPLITS.iter().find(|(flag, _)| cell.eq_ignore_ascii_case(flag)).map(|(_, split)| *split)
}
