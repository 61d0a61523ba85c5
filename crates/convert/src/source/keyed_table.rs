//! Reads a table that has a row for each of some samples of a pack.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ListOptions;
use super::rows::{Cell, RowFile, RowForm, Rows, is_parquet};
use super::values::{CellKind, text_of};
use crate::error::ConvertError;

/// The columns that identify a sample: by its path, or by its number in the pack.
pub(super) const TABLE_KEYS: [&str; 2] = ["path", "sample"];

/// The error for a file that is not a table.
pub(super) fn no_table(path: &Path, forms: &str) -> ConvertError {
    let hint = format!("pass a {forms} file");
    ConvertError::contradictory(path, "", "this is not a table with rows of text", hint)
}

/// The error for a Parquet file in a build without Arrow.
#[cfg(not(feature = "arrow"))]
pub(super) fn no_parquet(path: &Path) -> ConvertError {
    ConvertError::FormatLeftOut { path: path.to_owned(), format: crate::data_format::DataFormat::Parquet }
}

/// The column of the key, and whether the keys are numbers of samples.
pub(super) fn columns_of_keys(path: &Path, columns: &[String]) -> Result<(usize, bool), ConvertError> {
    let place = |name: &str| columns.iter().position(|column| column == name);
    let reason = match TABLE_KEYS.map(place) {
        [Some(path), None] => return Ok((path, false)),
        [None, Some(sample)] => return Ok((sample, true)),
        [Some(_), Some(_)] => "expected a column `path` or `sample`, found both",
        [None, None] => "expected a column `path` or `sample`",
    };
    Err(refused(path, columns, reason))
}

fn refused(path: &Path, columns: &[String], reason: &str) -> ConvertError {
    let found: Vec<String> = columns.iter().map(|name| format!("`{name}`")).collect();
    let reason = format!("{reason}; the columns are {}", found.join(", "));
    ConvertError::contradictory(path, "", reason, "write one row with its new value for each sample")
}

/// One value for each of some samples.
#[derive(Debug)]
pub(crate) struct KeyedTable {
    path: PathBuf,
    /// Whether the keys are numbers of samples. Otherwise they are paths.
    pub(crate) by_number: bool,
    /// For each key, the line and the value.
    rows: HashMap<String, (u64, String)>,
    /// What the places of rows are called.
    unit: &'static str,
    pub(crate) warnings: Vec<String>,
}

impl KeyedTable {
    /// Reads a CSV, TSV, JSON Lines or Parquet file. The values are those of the only column besides the key, or of the column
    /// `name`.
    pub(crate) fn read(path: &Path, name: &str) -> Result<Self, ConvertError> {
        let mut table =
            Self { path: path.to_owned(), by_number: false, rows: HashMap::new(), unit: "line", warnings: Vec::new() };
        if is_parquet(path) {
            table.read_parquet(name)?;
            return Ok(table);
        }
        let form = RowForm::of_source(path).ok_or_else(|| no_table(path, ".csv, .tsv, .jsonl or .parquet"))?;
        let file = RowFile::new(path, &ListOptions::default().spool_folder().path)?;
        let mut rows = Rows::open(&file, form)?;
        let mut columns: Option<(usize, usize, usize)> = None;
        while rows.advance()? {
            // Rows of JSON Lines may add columns.
            let n = rows.columns.len();
            let (_, key, value) = match columns {
                Some(found @ (before, ..)) if before == n => found,
                _ => table.columns(&rows.columns, name).map(|(key, value)| (n, key, value))?,
            };
            columns = Some((n, key, value));
            let mut key = text_of(rows.cell(key)).into_owned();
            if table.by_number {
                key = key.trim().to_owned();
            }
            let cell = rows.cell(value);
            let value = text_of(cell).trim().to_owned();
            if matches!(cell, Cell::Json(_)) && CellKind::of(cell) == CellKind::Nested {
                return Err(rows.malformed(format!("expected one class, found {value}")));
            }
            if key.is_empty() || value.is_empty() {
                return Err(rows.malformed("a cell is empty".to_owned()));
            }
            if let Some((line, _)) = table.rows.get(&key) {
                return Err(rows.malformed(format!("'{}' has a row in line {line} too", key.escape_debug())));
            }
            table.rows.insert(key, (rows.line, value));
        }
        if table.rows.is_empty() {
            let hint = "write one row for each sample that changes";
            return Err(ConvertError::contradictory(path, "", "the table has no rows", hint));
        }
        table.warnings.extend(rows.warnings.iter().map(|warning| format!("{}: {warning}", path.display())));
        Ok(table)
    }

    #[cfg(feature = "arrow")]
    fn read_parquet(&mut self, name: &str) -> Result<(), ConvertError> {
        let path = self.path.clone();
        let (key, value) = self.columns(&super::parquet::names(&path)?, name)?;
        let (keys, n) = super::parquet::column(&path, key)?;
        let (values, _) = super::parquet::column(&path, value)?;
        self.unit = "row";
        for (row, place) in (0..n).zip(0_u64..) {
            let (key, value) = (keys.text(row).into_owned(), values.text(row).into_owned());
            let malformed = |reason: String| {
                let hint = "write one row with its new value for each sample";
                ConvertError::contradictory(&path, &format!("row {row}"), reason, hint)
            };
            if key.is_empty() || value.is_empty() {
                return Err(malformed("a value is empty".to_owned()));
            }
            if let Some((first, _)) = self.rows.get(&key) {
                return Err(malformed(format!("'{}' has row {first} too", key.escape_debug())));
            }
            self.rows.insert(key, (place, value));
        }
        Ok(())
    }

    #[cfg(not(feature = "arrow"))]
    fn read_parquet(&mut self, _: &str) -> Result<(), ConvertError> {
        Err(no_parquet(&self.path))
    }

    /// The columns of the key and of the value.
    fn columns(&mut self, columns: &[String], name: &str) -> Result<(usize, usize), ConvertError> {
        let key;
        (key, self.by_number) = columns_of_keys(&self.path, columns)?;
        let value = match (columns.iter().position(|column| column == name), columns.len()) {
            (Some(value), _) => value,
            (None, 2) => 1 - key,
            (None, _) => return Err(refused(&self.path, columns, &format!("expected a column `{name}`"))),
        };
        Ok((key, value))
    }

    /// Each value, and the first line with it, in the order of the lines.
    pub(crate) fn values(&self) -> Vec<(u64, &str)> {
        let mut first: HashMap<&str, u64> = HashMap::new();
        for (line, value) in self.rows.values() {
            first.entry(value).and_modify(|first| *first = (*first).min(*line)).or_insert(*line);
        }
        let mut values: Vec<(u64, &str)> = first.into_iter().map(|(value, line)| (line, value)).collect();
        values.sort_unstable();
        values
    }

    /// An error about a line.
    pub(crate) fn wrong(&self, line: u64, reason: impl Into<String>, hint: &str) -> ConvertError {
        ConvertError::contradictory(&self.path, &format!("{} {line}", self.unit), reason, hint)
    }

    /// Takes the rows of these samples. `None` for a sample without a row. Several samples may have one path.
    ///
    /// # Errors
    /// If a row belongs to none of the samples.
    pub(crate) fn of_samples<'a>(
        &self,
        keys: impl Iterator<Item = std::borrow::Cow<'a, str>>,
    ) -> Result<Vec<Option<&str>>, ConvertError> {
        let mut unused: HashMap<&str, u64> = self.rows.iter().map(|(key, (line, _))| (key.as_str(), *line)).collect();
        let mut values = Vec::new();
        for key in keys {
            unused.remove(key.as_ref());
            values.push(self.rows.get(key.as_ref()).map(|(_, value)| value.as_str()));
        }
        match unused.into_iter().min_by_key(|(key, line)| (*line, *key)) {
            None => Ok(values),
            Some((key, line)) => {
                let what = if self.by_number { "number" } else { "path" };
                let reason = format!("the pack has no sample with the {what} '{}'", key.escape_debug());
                Err(self.wrong(line, reason, "remove this row, or choose another pack; nothing was written"))
            }
        }
    }
}

/// What a value says about a class that the pack does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClassWord {
    /// Its id.
    Id(i64),
    Name,
    /// Neither: a negative or fractional number, or true or false.
    Neither,
}

impl ClassWord {
    pub(crate) fn of(value: &str) -> Self {
        match CellKind::of_text(value) {
            CellKind::Integer(id) if id >= 0 => Self::Id(id),
            CellKind::Text => Self::Name,
            _ => Self::Neither,
        }
    }
}
