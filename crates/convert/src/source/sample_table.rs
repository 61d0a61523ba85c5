//! Reads a table that has a row for each sample of a pack, and one or several columns of values.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use packds_system::counted;

use super::ListOptions;
use super::column::ColumnValues;
use super::keyed_table::{TABLE_KEYS, columns_of_keys, no_table};
use super::rows::{Cell, RowFile, RowForm, Rows, is_parquet};
use super::table_values::{TableValues, ValueType};
use super::values::{CellKind, KindsSeen, text_of};
use crate::error::{ConvertError, quoted};
use crate::opt::{COLUMN, DTYPE};

/// Some columns of a table, with a row for each sample.
#[derive(Debug)]
pub(crate) struct SampleTable {
    path: PathBuf,
    /// Whether the keys are numbers of samples. Otherwise they are paths.
    pub(crate) by_number: bool,
    /// For each key, its place, such as `line 3`, and the number of its row.
    rows: HashMap<String, (String, usize)>,
    /// The columns besides the key.
    pub(crate) columns: Vec<(String, TableValues)>,
    pub(crate) warnings: Vec<String>,
}

impl SampleTable {
    /// Reads these columns of a CSV, TSV, JSON Lines or Parquet file, or all columns if none are named. Their types are
    /// those of their values, or `given`.
    pub(crate) fn read(path: &Path, wanted: &[String], given: Option<ValueType>) -> Result<Self, ConvertError> {
        let mut table = Self {
            path: path.to_owned(),
            by_number: false,
            rows: HashMap::new(),
            columns: Vec::new(),
            warnings: Vec::new(),
        };
        if is_parquet(path) {
            table.read_parquet(wanted, given)?;
            return Ok(table);
        }
        let form = RowForm::of_source(path).ok_or_else(|| no_table(path, ".csv, .tsv, .jsonl, .parquet or .npy"))?;
        let file = RowFile::new(path, &ListOptions::default().spool_folder().path)?;
        let scan = table.scan(&file, form)?;
        let names = &scan.names;
        let places = table.places(names, scan.key, wanted)?;
        for place in &places {
            let name = names.get(*place).cloned().unwrap_or_default();
            let values = match given {
                Some(given) => Building::Typed(TableValues::of_type(given)),
                None => scan.building(*place, &name, path)?,
            };
            table.columns.push((name, values.read(&file, form, *place)?));
        }
        Ok(table)
    }

    /// Reads the keys, and finds the kinds of values of every column.
    fn scan(&mut self, file: &RowFile, form: RowForm) -> Result<Scan, ConvertError> {
        let mut rows = Rows::open(file, form)?;
        let mut scan = Scan { key: 0, names: Vec::new(), kinds: Vec::new() };
        while rows.advance()? {
            if scan.names.len() != rows.columns.len() {
                scan.names.clone_from(&rows.columns);
                (scan.key, self.by_number) = columns_of_keys(&self.path, &rows.columns)?;
                scan.kinds.resize_with(rows.columns.len(), Kinds::default);
            }
            let key = text_of(rows.cell(scan.key)).into_owned();
            if key.is_empty() {
                return Err(rows.malformed(format!("`{}` has no value", TABLE_KEYS[usize::from(self.by_number)])));
            }
            for (place, kinds) in scan.kinds.iter_mut().enumerate() {
                kinds.observe(rows.cell(place), rows.line);
            }
            self.add_key(key, rows.place()).map_err(|reason| rows.malformed(reason))?;
        }
        if self.rows.is_empty() {
            return Err(rows.malformed("the table has no rows".to_owned()));
        }
        self.warnings.extend(rows.warnings.iter().map(|warning| format!("{}: {warning}", self.path.display())));
        Ok(scan)
    }

    fn add_key(&mut self, key: String, place: String) -> Result<(), String> {
        if let Some((first, _)) = self.rows.get(&key) {
            return Err(format!("'{}' has a row in {first} too", key.escape_debug()));
        }
        let row = self.rows.len();
        self.rows.insert(key, (place, row));
        Ok(())
    }

    /// The columns to read.
    fn places(&self, names: &[String], key: usize, wanted: &[String]) -> Result<Vec<usize>, ConvertError> {
        let refused = |reason: String, hint: String| Err(ConvertError::contradictory(&self.path, "", reason, hint));
        if let Some(twice) =
            wanted.iter().enumerate().find(|(place, name)| wanted.iter().take(*place).any(|n| n == *name))
        {
            return refused(format!("{COLUMN} names `{}` twice", twice.1), "name each column once".to_owned());
        }
        let others: Vec<usize> = (0..names.len()).filter(|place| *place != key).collect();
        if wanted.is_empty() {
            if others.is_empty() {
                let reason = format!("expected a column besides `{}`", TABLE_KEYS[usize::from(self.by_number)]);
                return refused(reason, "write the values to a column of their own".to_owned());
            }
            return Ok(others);
        }
        let mut places = Vec::new();
        for name in wanted {
            let found = others.iter().find(|place| names.get(**place) == Some(name));
            let Some(found) = found else {
                let others: Vec<String> = others.iter().filter_map(|place| names.get(*place).cloned()).collect();
                return refused(format!("no column `{name}`"), format!("the columns are {}", quoted(&others)));
            };
            places.push(*found);
        }
        Ok(places)
    }

    #[cfg(feature = "arrow")]
    fn read_parquet(&mut self, wanted: &[String], given: Option<ValueType>) -> Result<(), ConvertError> {
        let path = self.path.clone();
        if given.is_some() {
            let hint = format!("write the column with this type, or omit {DTYPE}");
            return Err(ConvertError::options(format!("{DTYPE}: the columns of a Parquet file have types"), hint));
        }
        let names = super::parquet::names(&path)?;
        let (key, by_number) = columns_of_keys(&path, &names)?;
        self.by_number = by_number;
        let places = self.places(&names, key, wanted)?;
        let (keys, n_rows) = super::parquet::column(&path, key)?;
        for row in 0..n_rows {
            let place = format!("row {row}");
            let key = keys.text(row).into_owned();
            let at = place.clone();
            self.add_key(key, place).map_err(|reason| {
                ConvertError::contradictory(&path, &at, reason, "write one row for each sample; nothing was written")
            })?;
        }
        for place in places {
            let name = names.get(place).cloned().unwrap_or_default();
            self.columns.push((name, super::parquet::column(&path, place)?.0));
        }
        Ok(())
    }

    #[cfg(not(feature = "arrow"))]
    fn read_parquet(&mut self, _: &[String], _: Option<ValueType>) -> Result<(), ConvertError> {
        Err(super::keyed_table::no_parquet(&self.path))
    }

    /// The row of each sample.
    ///
    /// # Errors
    /// If a sample has no row, or a row belongs to none of the samples.
    pub(crate) fn rows_of<'a>(&self, keys: impl Iterator<Item = Cow<'a, str>>) -> Result<Vec<usize>, ConvertError> {
        let what = if self.by_number { "number" } else { "path" };
        let mut is_used = vec![false; self.rows.len()];
        let (mut rows, mut missing) = (Vec::new(), (0_u64, None));
        for key in keys {
            match self.rows.get(key.as_ref()) {
                Some((_, row)) => {
                    is_used[*row] = true;
                    rows.push(*row);
                }
                None => {
                    missing.0 += 1;
                    missing.1.get_or_insert_with(|| key.escape_debug().to_string());
                }
            }
        }
        let unused = self.rows.iter().filter(|(_, (_, row))| !is_used[*row]);
        if let Some((key, (place, _))) = unused.min_by_key(|(_, (_, row))| *row) {
            let reason = format!("the pack has no sample with the {what} '{}'", key.escape_debug());
            let hint = "remove this row, or choose another pack; nothing was written";
            return Err(ConvertError::contradictory(&self.path, place, reason, hint));
        }
        if let (n, Some(first)) = missing {
            let of_pack = counted(rows.len() as u64 + n, "sample");
            let reason =
                format!("expected a row for each of {of_pack}, found none for {n}, first for the {what} '{first}'");
            let hint = "add these rows, or copy only the other samples first; nothing was written";
            return Err(ConvertError::contradictory(&self.path, "", reason, hint));
        }
        Ok(rows)
    }
}

/// What is known about the columns after reading the table once.
struct Scan {
    key: usize,
    names: Vec<String>,
    kinds: Vec<Kinds>,
}

/// The kinds of values of a column, and the first line of each kind.
#[derive(Default)]
struct Kinds {
    seen: KindsSeen,
    first: [Option<(u64, String)>; KINDS.len()],
}

/// Kinds that are never mixed in one column.
const KINDS: [&str; 4] = ["a number", "true or false", "a text", "a list or an object"];

impl Kinds {
    fn observe(&mut self, cell: Cell<'_>, line: u64) {
        self.seen.observe(cell);
        let kind = match CellKind::of(cell) {
            CellKind::Missing => return,
            CellKind::Integer(_) | CellKind::Float(_) => 0,
            CellKind::Bool(_) => 1,
            CellKind::Text => 2,
            CellKind::Nested => 3,
        };
        self.first[kind].get_or_insert_with(|| (line, text_of(cell).into_owned()));
    }
}

impl Scan {
    /// An empty column for all cells of this column. Fails if their kinds differ.
    fn building(&self, place: usize, name: &str, path: &Path) -> Result<Building, ConvertError> {
        let Some(kinds) = self.kinds.get(place) else {
            return Ok(Building::Typed(TableValues::of_type(ValueType::Text)));
        };
        let mut found: Vec<_> =
            kinds.first.iter().zip(KINDS).filter_map(|(first, kind)| Some((first.as_ref()?, kind))).collect();
        found.sort_by_key(|((line, _), _)| *line);
        if let [((first, _), expected), ((line, text), _), ..] = found.as_slice() {
            let reason = format!("`{name}`: expected {expected}, as in line {first}, found '{}'", text.escape_debug());
            let hint = format!("correct this line, or store texts with {}", DTYPE.with("string"));
            return Err(ConvertError::contradictory(path, &format!("line {line}"), reason, hint));
        }
        if found.is_empty() {
            let hint = "write a value to each row, or leave the column out; nothing was written";
            return Err(ConvertError::contradictory(path, "", format!("`{name}` has no values"), hint));
        }
        let column = kinds.seen.column_as(None);
        if matches!(column, ColumnValues::Text(_)) && kinds.first[0].is_some() {
            let reason =
                format!("`{name}`: some whole numbers are too large to be kept next to numbers with a fraction");
            let hint = format!("choose a type with {} or {}", DTYPE.with("f64"), DTYPE.with("string"));
            return Err(ConvertError::contradictory(path, "", reason, hint));
        }
        Ok(Building::Guessed(column))
    }
}

/// The values of a column while they are read.
enum Building {
    Guessed(ColumnValues),
    Typed(TableValues),
}

impl Building {
    fn read(mut self, file: &RowFile, form: RowForm, place: usize) -> Result<TableValues, ConvertError> {
        let mut rows = Rows::open(file, form)?;
        while rows.advance()? {
            let cell = rows.cell(place);
            let name = rows.columns.get(place).map_or("", String::as_str);
            let is_number = match &self {
                Self::Guessed(values) => !matches!(values, ColumnValues::Text(_) | ColumnValues::Json(_)),
                Self::Typed(values) => matches!(values, TableValues::Numbers(..)),
            };
            if is_number && matches!(cell, Cell::Missing) {
                let hint =
                    format!("write a number (nan if it is unknown), or store texts with {}", DTYPE.with("string"));
                let reason = format!("`{name}` has no value");
                return Err(ConvertError::contradictory(&file.path, &rows.place(), reason, hint));
            }
            let pushed = match &mut self {
                Self::Guessed(values) => {
                    values.push(cell).then_some(()).ok_or_else(|| "the table was changed meanwhile".to_owned())
                }
                Self::Typed(values) => values.push(cell),
            };
            pushed.map_err(|reason| rows.malformed(format!("`{name}`: {reason}")))?;
        }
        Ok(match self {
            Self::Guessed(values) => values.into(),
            Self::Typed(values) => values,
        })
    }
}
