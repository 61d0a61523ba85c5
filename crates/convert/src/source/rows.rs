//! Reads a manifest row by row. CSV, TSV and JSON Lines share one cell type.
//!
//! `manifest` interprets the cells.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};

use packds_system::open_regular;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::csv_rows::CsvRows;
use crate::error::ConvertError;

/// The syntax of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowForm {
    Comma,
    Tab,
    JsonLines,
}

impl RowForm {
    /// From the file's extension.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "csv" => Some(Self::Comma),
            "tsv" => Some(Self::Tab),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

/// One value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    /// An empty CSV cell, a JSON null or a missing key.
    Missing,
    /// A CSV cell of unknown type.
    Text(&'a str),
    /// A JSON value other than null.
    Json(&'a Value),
}

/// A manifest being read. After [`Rows::advance`], the current row.
pub(super) struct Rows<'a> {
    path: &'a Path,
    form: RowForm,
    /// In order of first appearance. In JSON Lines it grows while reading.
    columns: Vec<String>,
    line: u64,
    reader: Reader,
}

enum Reader {
    Csv(CsvRows),
    Json(JsonReader),
}

struct JsonReader {
    reader: BufReader<File>,
    n_lines: u64,
    text: Vec<u8>,
    column_of: HashMap<String, usize>,
    cells: Vec<Value>,
}

impl<'a> Rows<'a> {
    /// Opens a manifest. Reads and checks the CSV header.
    pub(super) fn open(path: &'a Path, form: RowForm) -> Result<Self, ConvertError> {
        let (reader, columns) = match form {
            RowForm::Comma => {
                let (rows, columns) = CsvRows::open(path, b',')?;
                (Reader::Csv(rows), columns)
            }
            RowForm::Tab => {
                let (rows, columns) = CsvRows::open(path, b'\t')?;
                (Reader::Csv(rows), columns)
            }
            RowForm::JsonLines => (Reader::Json(JsonReader::open(path)?), Vec::new()),
        };
        Ok(Self { path, form, columns, line: 1, reader })
    }

    /// Restarts at the first row. Keeps the columns.
    pub(super) fn reopen(self) -> Result<Self, ConvertError> {
        let mut again = Self::open(self.path, self.form)?;
        if let (Reader::Json(before), Reader::Json(after)) = (self.reader, &mut again.reader) {
            after.column_of = before.column_of;
            after.cells = vec![Value::Null; self.columns.len()];
            again.columns = self.columns;
        }
        Ok(again)
    }

    /// Reads the next row; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ConvertError> {
        match &mut self.reader {
            Reader::Csv(rows) => {
                let read = rows.advance(self.path)?;
                self.line = rows.line();
                Ok(read)
            }
            Reader::Json(reader) => {
                let read = reader.advance(self.path, &mut self.columns)?;
                self.line = reader.n_lines.max(1);
                Ok(read)
            }
        }
    }

    /// The syntax of the manifest.
    pub(super) fn form(&self) -> RowForm {
        self.form
    }

    /// The columns seen so far.
    pub(super) fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The line, counted from 1, on which the current row starts.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    /// The current row's value in a column.
    pub(super) fn cell(&self, column: usize) -> Cell<'_> {
        match &self.reader {
            Reader::Csv(rows) => match rows.cell(column) {
                "" => Cell::Missing,
                text => Cell::Text(text),
            },
            Reader::Json(reader) => match reader.cells.get(column) {
                None | Some(Value::Null) => Cell::Missing,
                Some(value) => Cell::Json(value),
            },
        }
    }

    /// An error about the current row.
    pub(super) fn malformed(&self, reason: String) -> ConvertError {
        malformed(self.path, self.line, reason)
    }

    /// An error about a path of the current row.
    pub(super) fn escapes(&self, file: &str, root: &Path) -> ConvertError {
        ConvertError::ManifestPathEscapes {
            path: self.path.to_owned(),
            line: self.line,
            file: file.to_owned(),
            root: root.to_owned(),
        }
    }
}

impl JsonReader {
    fn open(path: &Path) -> Result<Self, ConvertError> {
        let file = open_regular(path).map_err(|source| ConvertError::Io { path: path.to_owned(), source })?;
        Ok(Self {
            reader: BufReader::with_capacity(1 << 16, file),
            n_lines: 0,
            text: Vec::new(),
            column_of: HashMap::new(),
            cells: Vec::new(),
        })
    }

    fn advance(&mut self, path: &Path, columns: &mut Vec<String>) -> Result<bool, ConvertError> {
        loop {
            self.text.clear();
            let read = self.reader.read_until(b'\n', &mut self.text);
            let len = read.map_err(|source| ConvertError::Io { path: path.to_owned(), source })?;
            if len == 0 {
                return Ok(false);
            }
            self.n_lines += 1;
            if !self.text.trim_ascii().is_empty() {
                break;
            }
        }
        let text = str::from_utf8(&self.text)
            .map_err(|_| malformed(path, self.n_lines, "the text is not UTF-8".to_owned()))?;
        let text = if self.n_lines == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let JsonRow(row) = serde_json::from_str(text).map_err(|error| {
            let reason = error.to_string().replace(" at line 1 column ", " at column ");
            malformed(path, self.n_lines, reason)
        })?;
        self.cells.fill(Value::Null);
        for (name, value) in row {
            let column = match self.column_of.entry(name) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    columns.push(new.key().clone());
                    self.cells.push(Value::Null);
                    *new.insert(columns.len() - 1)
                }
            };
            self.cells[column] = value;
        }
        Ok(true)
    }
}

/// The members of a JSON object in order. Unlike a map, rejects duplicate keys instead of keeping the last.
struct JsonRow(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for JsonRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(JsonRowVisitor)
    }
}

struct JsonRowVisitor;

impl<'de> Visitor<'de> for JsonRowVisitor {
    type Value = JsonRow;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<JsonRow, A::Error> {
        let mut row: Vec<(String, Value)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some((name, value)) = members.next_entry::<String, Value>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("column '{name}' appears twice")));
            }
            row.push((name, value));
        }
        Ok(JsonRow(row))
    }
}

/// An error about a line of the manifest at `path`.
pub(super) fn malformed(path: &Path, line: u64, reason: String) -> ConvertError {
    ConvertError::ManifestMalformed { path: path.to_owned(), line, reason }
}
