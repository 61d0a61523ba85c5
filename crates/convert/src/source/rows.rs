//! Reads a manifest row by row. CSV, lines of text, JSON Lines and JSON share one cell type.
//!
//! `manifest` interprets the cells.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    fs::File,
    io::{self, BufRead, BufReader, Read},
    marker::PhantomData,
    path::{Path, PathBuf},
};

use packds_system::{open_regular, to_u64};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::box_fields::BoxFields;
use super::caption_list;
use super::compressed::{self, without_extension};
use super::csv_rows::{CsvRows, MAX_ROW_BYTES, long_row};
use super::encoding::{START_BYTES, Utf16};
use super::json_rows::{JsonRow, JsonRows, entry, json_rows};
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// The syntax of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowForm {
    /// Cells separated by commas, tabs, semicolons or bars, depending on the first line.
    Csv,
    Tab,
    /// Like CSV, or with spaces between the cells, or a list of captions.
    Text,
    JsonLines,
    /// One JSON text for all rows: an array of objects, an object with a label for each path, or another form that `json_rows` knows.
    Json,
}

impl RowForm {
    /// The form indicated by the file's extension, if such files are usually tables.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        match extension(path)?.as_str() {
            "csv" => Some(Self::Csv),
            "tsv" => Some(Self::Tab),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }

    /// The form indicated by the extension of a file that the caller passed as the source.
    pub(super) fn of_source(path: &Path) -> Option<Self> {
        // The rows of a Parquet file are read as JSON Lines.
        let of_parquet = (cfg!(feature = "arrow") && is_parquet(path)).then_some(Self::JsonLines);
        Self::from_path(path).or(of_parquet).or_else(|| match extension(path)?.as_str() {
            "txt" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        })
    }

    /// Whether cells are strings whose types must be inferred.
    pub(super) fn has_text_cells(self) -> bool {
        !matches!(self, Self::JsonLines | Self::Json)
    }

    /// Bytes that may separate cells.
    fn delimiters(self) -> &'static [u8] {
        match self {
            Self::Tab => b"\t",
            Self::Text => b",\t;| ",
            Self::Csv | Self::JsonLines | Self::Json => b",\t;|",
        }
    }
}

/// Whether the file at this path is a Parquet file, by its name.
pub(super) fn is_parquet(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(DataFormat::from_file_name) == Some(DataFormat::Parquet)
}

/// The extension in lower case. An extension of a compression format is removed first.
fn extension(path: &Path) -> Option<String> {
    let (_, extension) = without_extension(path.file_name()?.to_str()?).rsplit_once('.')?;
    Some(extension.to_ascii_lowercase())
}

const OBJECT: &str = "a JSON object";

/// The file of a manifest, unpacked if it is compressed.
pub(super) struct RowFile {
    pub(super) path: PathBuf,
    unpacked: Option<NamedTempFile>,
    /// Maximum number of rows to read. `None` reads all.
    pub(super) first_rows: Option<u64>,
}

impl RowFile {
    /// Opens `path`. If the file is Parquet, compressed or in UTF-16, writes its rows to a temporary file in `folder`, unpacked and
    /// in UTF-8.
    pub(super) fn new(path: &Path, folder: &Path) -> Result<Self, ConvertError> {
        let mut file = Self { path: path.to_owned(), unpacked: None, first_rows: None };
        let new = || NamedTempFile::new_in(folder).map_err(ConvertError::io(folder));
        #[cfg(feature = "arrow")]
        if is_parquet(path) {
            let mut lines = new()?;
            let mut out = io::BufWriter::new(&mut lines);
            super::parquet::write_lines(path, &mut out)?;
            io::Write::flush(&mut out).map_err(ConvertError::io(folder))?;
            drop(out);
            file.unpacked = Some(lines);
            return Ok(file);
        }
        // Copying may fail for either file, but the user knows only `path`, so errors name it.
        if let Some(mut packed) = compressed::open(path).map_err(ConvertError::io(path))? {
            let mut unpacked = new()?;
            io::copy(&mut packed, &mut unpacked).map_err(ConvertError::io(path))?;
            file.unpacked = Some(unpacked);
        }
        if let Some(encoding) = Utf16::of(&file.start(START_BYTES)?) {
            let mut decoded = new()?;
            encoding.decode(file.open()?, &mut decoded).map_err(ConvertError::io(path))?;
            file.unpacked = Some(decoded);
        }
        Ok(file)
    }

    /// The first bytes, at most `n`.
    fn start(&self, n: usize) -> Result<Vec<u8>, ConvertError> {
        let mut start = Vec::new();
        let read = self.open()?.take(to_u64(n)).read_to_end(&mut start);
        read.map(|_| start).map_err(ConvertError::io(&self.path))
    }

    pub(super) fn open(&self) -> Result<File, ConvertError> {
        let path = self.unpacked.as_ref().map_or(self.path.as_path(), NamedTempFile::path);
        open_regular(path).map_err(ConvertError::io(&self.path))
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

/// A manifest being read. [`Rows::advance`] moves it to the next row.
pub(super) struct Rows<'a> {
    pub(super) file: &'a RowFile,
    pub(super) form: RowForm,
    /// The columns seen so far, in order of first appearance. In JSON Lines, more are added while reading.
    pub(super) columns: Vec<String>,
    /// The line, counted from 1, on which the current row starts.
    pub(super) line: u64,
    n_read: u64,
    /// The class names of the labels, if the manifest has them in a separate list.
    pub(super) classes: Vec<String>,
    /// The columns of boxes, if there are any.
    pub(super) boxes: Option<BoxFields>,
    /// Warnings about the first lines.
    pub(super) warnings: Vec<Warning>,
    reader: Reader,
}

enum Reader {
    Csv(CsvRows),
    Json(JsonReader),
}

/// The source of JSON objects.
enum JsonLines {
    /// One on each line.
    File(BufReader<File>),
    /// Taken from one JSON text, each with its line.
    Texts(std::vec::IntoIter<JsonRow>),
}

struct JsonReader {
    lines: JsonLines,
    n_lines: u64,
    text: Vec<u8>,
    column_of: HashMap<String, usize>,
    cells: Vec<Value>,
}

impl<'a> Rows<'a> {
    /// Opens a manifest. Reads and checks the CSV header.
    pub(super) fn open(file: &'a RowFile, form: RowForm) -> Result<Self, ConvertError> {
        let (mut classes, mut boxes) = (Vec::new(), None);
        let form = if form == RowForm::Text && caption_list::is_one(&file.start(caption_list::START_BYTES)?) {
            RowForm::Json
        } else {
            form
        };
        let (reader, columns, warnings) = match form {
            RowForm::JsonLines => (Reader::Json(JsonReader::new(JsonLines::of_file(file)?)), Vec::new(), Vec::new()),
            RowForm::Json => {
                let read = text_rows(file)?;
                (classes, boxes) = (read.classes, read.boxes);
                (Reader::Json(JsonReader::new(JsonLines::Texts(read.rows.into_iter()))), Vec::new(), read.warnings)
            }
            RowForm::Csv | RowForm::Tab | RowForm::Text => {
                let (mut rows, columns) = CsvRows::open(file, form.delimiters())?;
                let warnings = std::mem::take(&mut rows.warnings);
                (Reader::Csv(rows), columns, warnings)
            }
        };
        Ok(Self { file, form, columns, line: 1, n_read: 0, classes, boxes, warnings, reader })
    }

    /// The warning about unquoted captions in the rows that were read.
    pub(super) fn unquoted(&self) -> Option<Warning> {
        let Reader::Csv(CsvRows { unquoted: (count @ 1.., first), .. }) = &self.reader else { return None };
        Some(Warning::UnquotedCaptions { count: *count, first: first.clone() })
    }

    /// Whether the file names its columns.
    pub(super) fn has_header(&self) -> bool {
        !matches!(&self.reader, Reader::Csv(CsvRows { has_header: false, .. }))
    }

    /// Whether commas separate the cells.
    pub(super) fn has_commas(&self) -> bool {
        matches!(&self.reader, Reader::Csv(rows) if rows.has_commas())
    }

    /// Sets the columns that an earlier pass found. Rows of JSON Lines may add others.
    pub(super) fn expect_columns(&mut self, names: &[String]) {
        if let Reader::Json(reader) = &mut self.reader {
            reader.column_of = names.iter().cloned().zip(0..).collect();
            reader.cells = vec![Value::Null; names.len()];
            self.columns = names.to_vec();
        }
    }

    /// Reads the next row; false at the end.
    pub(super) fn advance(&mut self) -> Result<bool, ConvertError> {
        if self.file.first_rows.is_some_and(|n| self.n_read >= n) {
            return Ok(false);
        }
        self.n_read += 1;
        match &mut self.reader {
            Reader::Csv(rows) => {
                let read = rows.advance(self.file)?;
                self.line = rows.line();
                Ok(read)
            }
            Reader::Json(reader) => {
                let read = reader.advance(&self.file.path, &mut self.columns)?;
                self.line = reader.n_lines.max(1);
                Ok(read)
            }
        }
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
        match self.index() {
            Some(_) => {
                let hint = "correct this entry; nothing was written";
                ConvertError::contradictory(&self.file.path, &self.place(), reason, hint)
            }
            None => malformed(&self.file.path, self.line, reason),
        }
    }

    /// The place of the current row: its line, or its index if it starts on the first line of a JSON text.
    pub(super) fn place(&self) -> String {
        self.index().map_or_else(|| format!("line {}", self.line), entry)
    }

    /// The index of the current row if it starts on the first line of a JSON text, which may have all rows on this line.
    fn index(&self) -> Option<u64> {
        let is_json = self.form == RowForm::Json && RowForm::of_source(&self.file.path) == Some(RowForm::Json);
        self.n_read.checked_sub(1).filter(|_| is_json && self.line == 1)
    }

    /// The error for a path in the current row that leads outside the root.
    pub(super) fn escapes(&self, file: &str, root: &Path) -> ConvertError {
        ConvertError::ManifestPathEscapes {
            path: self.file.path.clone(),
            line: self.line,
            file: file.to_owned(),
            root: root.to_owned(),
        }
    }
}

/// The rows of a file that is one JSON text, or a list of captions.
fn text_rows(file: &RowFile) -> Result<JsonRows, ConvertError> {
    let mut bytes = Vec::new();
    file.open()?.read_to_end(&mut bytes).map_err(ConvertError::io(&file.path))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        not_utf8(&file.path, to_u64(line), "the text")
    })?;
    // Other files of this form are lists of captions.
    match RowForm::of_source(&file.path) {
        Some(RowForm::Text) => caption_list::rows(&file.path, &text),
        _ => json_rows(&file.path, &text),
    }
}

impl JsonLines {
    fn of_file(file: &RowFile) -> Result<Self, ConvertError> {
        Ok(Self::File(BufReader::with_capacity(1 << 16, file.open()?)))
    }
}

impl JsonReader {
    fn new(lines: JsonLines) -> Self {
        Self { lines, n_lines: 0, text: Vec::new(), column_of: HashMap::new(), cells: Vec::new() }
    }

    /// Reads the next object into `text`; false at the end.
    fn next_text(&mut self, path: &Path) -> Result<bool, ConvertError> {
        self.text.clear();
        match &mut self.lines {
            JsonLines::Texts(texts) => {
                let Some((line, text)) = texts.next() else { return Ok(false) };
                self.n_lines = line;
                self.text = text.into_bytes();
            }
            JsonLines::File(file) => {
                while self.text.trim_ascii().is_empty() {
                    self.text.clear();
                    let read = file.take(MAX_ROW_BYTES + 1).read_until(b'\n', &mut self.text);
                    if to_u64(self.text.len()) > MAX_ROW_BYTES {
                        return Err(long_row(path, self.n_lines + 1));
                    }
                    if read.map_err(ConvertError::io(path))? == 0 {
                        return Ok(false);
                    }
                    self.n_lines += 1;
                }
            }
        }
        Ok(true)
    }

    fn advance(&mut self, path: &Path, columns: &mut Vec<String>) -> Result<bool, ConvertError> {
        if !self.next_text(path)? {
            return Ok(false);
        }
        let text = str::from_utf8(&self.text).map_err(|_| not_utf8(path, self.n_lines, "the text"))?;
        let text = if self.n_lines == 1 { text.trim_start_matches('\u{feff}') } else { text };
        let row = members::<Value>(serde_json::Deserializer::from_str(text), OBJECT, "column").map_err(|error| {
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

/// The members of a JSON object in order. Unlike a map, rejects duplicate keys instead of keeping the last. `expected` and `key` name
/// the object and its keys in errors.
pub(super) fn members<'de, V: Deserialize<'de>>(
    mut json: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
    expected: &'static str,
    key: &'static str,
) -> serde_json::Result<Vec<(String, V)>> {
    let members = json.deserialize_map(Members { expected, key, values: PhantomData })?;
    json.end()?;
    Ok(members)
}

struct Members<V> {
    expected: &'static str,
    key: &'static str,
    values: PhantomData<V>,
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Members<V> {
    type Value = Vec<(String, V)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.expected)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Vec<(String, V)>, A::Error> {
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        while let Some((name, value)) = members.next_entry::<String, V>()? {
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("{} '{name}' appears twice", self.key)));
            }
            all.push((name, value));
        }
        Ok(all)
    }
}

/// The error about text that is not UTF-8.
pub(super) fn not_utf8(path: &Path, line: u64, what: &str) -> ConvertError {
    let name = path.file_name().unwrap_or_default().display();
    let hint =
        format!("convert it to UTF-8, for example with: iconv -f WINDOWS-1252 -t UTF-8 '{name}' > 'utf8-{name}'");
    ConvertError::contradictory(path, &format!("line {line}"), format!("{what} is not UTF-8"), hint)
}

/// An error about a line of the manifest at `path`.
pub(super) fn malformed(path: &Path, line: u64, reason: String) -> ConvertError {
    ConvertError::ManifestMalformed { path: path.to_owned(), line, reason }
}
