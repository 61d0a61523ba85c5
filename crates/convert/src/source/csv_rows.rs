//! The rows of a CSV, TSV or text file, each with its first line number.
//!
//! `manifest` interprets the cells.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use csv::{ByteRecord, Position, ReaderBuilder};
use packds_system::to_u64;

use super::candidate::is_image_name;
use super::rows::{RowFile, malformed};
use crate::error::ConvertError;

/// A CSV file being read. After [`CsvRows::advance`], the current row.
pub(super) struct CsvRows {
    reader: csv::Reader<File>,
    record: ByteRecord,
    n_columns: usize,
    start: Start,
    /// The first row was read in search of a header.
    is_read: bool,
}

/// What the start of a file tells: its delimiter, and its line endings, which the parser does not report.
struct Start {
    delimiter: u8,
    /// The first line ends in a carriage return and a line feed. The others are assumed to do the same.
    two_bytes: bool,
    /// The end of the file, if not a line feed.
    open_end: Option<u64>,
}

impl CsvRows {
    /// Opens a file and reads its header. Also returns the column names. The first line tells which of the delimiters it has.
    pub(super) fn open(file: &RowFile, delimiters: &[u8]) -> Result<(Self, Vec<String>), ConvertError> {
        let mut opened = file.open()?;
        let start = Start::of(&mut opened, delimiters).map_err(ConvertError::io(&file.path))?;
        // Rows of another length are accepted here and later refused with the correct line number.
        let reader = ReaderBuilder::new()
            .delimiter(start.delimiter)
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(1 << 16)
            .from_reader(opened);
        let mut rows = Self { reader, record: ByteRecord::new(), n_columns: 0, start, is_read: false };
        if !rows.read(file)? {
            let reason = "expected a header line with column names".to_owned();
            return Err(malformed(&file.path, 1, reason));
        }
        rows.n_columns = rows.record.len();
        let cells: Vec<String> = (0..rows.n_columns).map(|column| rows.cell(column).trim().to_owned()).collect();
        // A header has no name of a file.
        if let Some(path) = cells.iter().position(|cell| is_image_name(cell.as_bytes())) {
            rows.is_read = true;
            return Ok((rows, names_without_header(cells.len(), path)));
        }
        check_header(&file.path, rows.line(), &cells)?;
        Ok((rows, cells))
    }

    /// Reads the next row; false at the end.
    pub(super) fn advance(&mut self, file: &RowFile) -> Result<bool, ConvertError> {
        let read = std::mem::take(&mut self.is_read) || self.read(file)?;
        let (expected, found) = (self.n_columns, self.record.len());
        if read && found != expected {
            let reason = format!("expected {expected} fields as in the header, found {found}");
            return Err(malformed(&file.path, self.line(), reason));
        }
        Ok(read)
    }

    fn read(&mut self, file: &RowFile) -> Result<bool, ConvertError> {
        let path = &file.path;
        // Other kinds of error come from options that are not used here.
        let read = self
            .reader
            .read_byte_record(&mut self.record)
            .map_err(|error| ConvertError::Io { path: path.clone(), source: error.into() })?;
        let bad = self.record.iter().position(|field| str::from_utf8(field).is_err());
        match bad {
            Some(column) => {
                let reason = format!("the text is not UTF-8 in field {}", column + 1);
                Err(malformed(path, self.line(), reason))
            }
            None => match self.open_quote(file)? {
                Some(line) if read => {
                    let reason = "a quote is not closed".to_owned();
                    Err(malformed(path, line, reason))
                }
                _ => Ok(read),
            },
        }
    }

    /// The first line of the last row if it ends inside quotes. The parser takes everything after an open quote as one field
    /// without an error.
    fn open_quote(&self, file: &RowFile) -> Result<Option<u64>, ConvertError> {
        let io_error = |source| ConvertError::Io { path: file.path.clone(), source };
        let start = self.record.position().map(Position::byte);
        let (Some(start), true) = (start, self.record.as_slice().contains(&b'\n')) else {
            return Ok(None);
        };
        let mut file = file.open()?;
        let len = file.metadata().map_err(io_error)?.len();
        if self.reader.position().byte() < len {
            return Ok(None);
        }
        let (mut before, mut row) = (Vec::new(), Vec::new());
        file.seek(SeekFrom::Start(start)).map_err(io_error)?;
        file.read_to_end(&mut row).map_err(io_error)?;
        // A quote inside quotes is doubled, so closed quotes give an even number.
        if row.iter().filter(|byte| **byte == b'"').count() % 2 == 0 {
            return Ok(None);
        }
        file.rewind().map_err(io_error)?;
        file.take(start).read_to_end(&mut before).map_err(io_error)?;
        let skipped = row.iter().take_while(|byte| byte.is_ascii_whitespace());
        let feeds = before.iter().chain(skipped).filter(|b| **b == b'\n');
        Ok(Some(to_u64(feeds.count()) + 1))
    }

    /// The line, counted from 1, on which the current row starts. At the end, the line after the last.
    ///
    /// The parser counts line feeds, and its position for a row precedes any skipped empty lines. The line is therefore derived
    /// from the end of the row.
    pub(super) fn line(&self) -> u64 {
        let here = self.reader.position();
        if self.record.is_empty() {
            return here.line();
        }
        let inside = self.record.as_slice().iter().filter(|byte| **byte == b'\n').count();
        let inside = to_u64(inside);
        here.line().saturating_sub(inside + self.start.counted(here)).max(1)
    }

    /// The current row's text in a column; empty if missing.
    pub(super) fn cell(&self, column: usize) -> &str {
        // `read` has checked that every field is UTF-8.
        self.record.get(column).and_then(|field| str::from_utf8(field).ok()).unwrap_or_default()
    }
}

impl Start {
    fn of(file: &mut File, delimiters: &[u8]) -> io::Result<Self> {
        let mut first_bytes = Vec::new();
        BufReader::new(&mut *file).take(1 << 16).read_to_end(&mut first_bytes)?;
        let feed = first_bytes.iter().position(|byte| *byte == b'\n');
        let before = feed.and_then(|feed| feed.checked_sub(1)).map(|before| first_bytes[before]);
        let delimiter =
            delimiter_of(first_bytes.get(..feed.unwrap_or(first_bytes.len())).unwrap_or_default(), delimiters);
        let len = file.seek(SeekFrom::End(0))?;
        let mut last = [0];
        if len > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        file.rewind()?;
        Ok(Self { delimiter, two_bytes: before == Some(b'\r'), open_end: (last != *b"\n").then_some(len) })
    }

    /// Number of line feeds that the parser has consumed as row ends before `here`. Of a two-byte line ending, it consumes the
    /// second byte only with the next row.
    fn counted(&self, here: &Position) -> u64 {
        u64::from(!self.two_bytes && self.open_end != Some(here.byte()))
    }
}

/// The delimiter that a line has most of outside quotes; the first if it has none.
fn delimiter_of(line: &[u8], delimiters: &[u8]) -> u8 {
    let count = |delimiter: u8| {
        let mut is_quoted = false;
        let is_free = |byte: &&u8| {
            is_quoted ^= **byte == b'"';
            !is_quoted && **byte == delimiter
        };
        line.trim_ascii().iter().filter(is_free).count()
    };
    // Spaces count only without any other: they may be part of the cells.
    let others = delimiters.iter().copied().filter(|delimiter| *delimiter != b' ');
    let best = others.rev().max_by_key(|delimiter| count(*delimiter));
    match best {
        Some(best) if count(best) > 0 || !delimiters.contains(&b' ') => best,
        _ => b' ',
    }
}

/// The names of columns of a file without a header, whose paths are in this column.
fn names_without_header(n: usize, path: usize) -> Vec<String> {
    let name = |column: usize| match column {
        _ if column == path => "path".to_owned(),
        1 if path == 0 => "label".to_owned(),
        _ => format!("column_{}", column + 1),
    };
    (0..n).map(name).collect()
}

/// Checks the column names. The first may be empty: pandas writes such an index column.
fn check_header(path: &Path, line: u64, names: &[String]) -> Result<(), ConvertError> {
    let mut seen = HashSet::new();
    for (number, name) in (1..).zip(names) {
        if name.is_empty() && number > 1 {
            return Err(malformed(path, line, format!("column {number} has no name")));
        }
        if !seen.insert(name) {
            return Err(malformed(
                path,
                line,
                format!("column '{name}' appears twice: the first line names the columns"),
            ));
        }
    }
    Ok(())
}
