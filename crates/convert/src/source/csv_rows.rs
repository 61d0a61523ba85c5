//! Reads the rows of a CSV, TSV or text file, and the number of each row's first line. The `manifest` module interprets the cells.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::Path,
};

use csv::{ByteRecord, Position, ReaderBuilder};
use packds_system::to_u64;

use super::candidate::is_image_name;
use super::clips::{column_of_folders, has_counts};
use super::roles::{is_caption_name, is_column_name, is_label_name};
use super::rows::{RowFile, malformed, not_utf8};
use super::table_note::TableNote;
use super::values::CellKind;
use super::warning::Warning;
use crate::error::ConvertError;

/// A CSV file being read. [`CsvRows::advance`] moves it to the next row.
pub(super) struct CsvRows {
    reader: csv::Reader<RowLimit>,
    record: ByteRecord,
    n_columns: usize,
    start: Start,
    /// Whether `record` already holds the first row, read while looking for a header.
    is_read: bool,
    /// Whether the file names its columns.
    pub(super) has_header: bool,
    /// Whether the last column holds captions, which may contain unquoted delimiters.
    has_captions: bool,
    /// Number of rows whose captions contain unquoted delimiters, and the first such caption.
    pub(super) unquoted: (u64, String),
    /// Warnings about the first lines.
    pub(super) warnings: Vec<Warning>,
}

/// Whether a column may contain texts with unquoted delimiters, judged by its name or the last word of its name, as in
/// `productDisplayName`.
fn has_texts(name: &str) -> bool {
    const WORDS: [&str; 5] = ["name", "title", "text", "description", "comment"];
    let start = name.rfind(|c: char| c.is_uppercase() || !c.is_alphanumeric()).unwrap_or(0);
    let last = name[start..].trim_start_matches(|c: char| !c.is_alphanumeric());
    is_caption_name(name) || WORDS.iter().any(|word| word.eq_ignore_ascii_case(last))
}

/// Maximum size of a row, in bytes, so that a file without line feeds cannot exhaust the memory.
pub(super) const MAX_ROW_BYTES: u64 = 64 << 20;
/// Number of bytes to read at the start of a file to detect its delimiter and line endings.
const START_BYTES: u64 = 1 << 16;
/// In a list without a header, a number with at least this many digits is a file name.
const LONG_NUMBER: usize = 5;
/// Maximum number of columns of a row.
const MAX_COLUMNS: usize = 1 << 20;

/// A reader that fails when a row exceeds its size limit.
struct RowLimit {
    file: File,
    left: u64,
}

impl Read for RowLimit {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let n = (&mut self.file).take(self.left).read(out)?;
        self.left -= to_u64(n);
        Ok(n)
    }
}

/// The error about a row that exceeds [`MAX_ROW_BYTES`].
pub(super) fn long_row(path: &Path, line: u64) -> ConvertError {
    malformed(path, line, format!("expected at most {} MiB per row, found more", MAX_ROW_BYTES >> 20))
}

/// Properties detected from the file, such as delimiter and line endings. The parser does not report line endings.
struct Start {
    delimiter: u8,
    /// Whether the first line ends in a carriage return and a line feed. All lines are assumed to end in the same way.
    two_bytes: bool,
    /// The length of a file that does not end in a line feed. `None` for other files.
    open_end: Option<u64>,
    /// Whether the first line contains just the number of rows.
    has_count: bool,
    /// Whether all words after the first form a single label, because the lines have different numbers of words.
    has_rest: bool,
    /// Whether the first line names the delimiter, as in Excel's `sep=;`.
    has_separator: bool,
    /// Whether quotes follow a space, as in `1.png, "Sale, today"`. The parser would treat such quotes as part of the cell.
    has_spaced_quotes: bool,
    /// Whether spaces separate the cells, and a cell begins with a quote that its line does not close, as in `1.png ok "`.
    /// All quotes of such a list are part of its texts.
    has_open_quotes: bool,
}

impl CsvRows {
    /// Opens a file and reads its header. Also returns the column names. The first line determines which of `delimiters` is used.
    pub(super) fn open(file: &RowFile, delimiters: &[u8]) -> Result<(Self, Vec<String>), ConvertError> {
        let mut opened = file.open()?;
        let has_spaces = delimiters.contains(&b' ');
        let start = Start::of(&mut opened, delimiters).map_err(ConvertError::io(&file.path))?;
        // Lists with tabs, such as those of text recognition, do not quote their texts.
        let is_list_with_tabs = has_spaces && start.delimiter == b'\t';
        // The parser accepts rows with any number of cells. `advance` refuses wrong rows, and reports their correct
        // line number.
        let reader = ReaderBuilder::new()
            .delimiter(start.delimiter)
            .has_headers(false)
            .flexible(true)
            .quoting(!start.has_spaced_quotes && !start.has_open_quotes && !is_list_with_tabs)
            .buffer_capacity(1 << 16)
            .from_reader(RowLimit { file: opened, left: 0 });
        let mut rows = Self {
            reader,
            record: ByteRecord::new(),
            n_columns: 0,
            start,
            is_read: false,
            has_header: false,
            has_captions: false,
            unquoted: (0, String::new()),
            warnings: Vec::new(),
        };
        rows.skip_notes(file)?;
        let mut cells: Vec<String> = rows.record.iter().map(trimmed).collect();
        let is_image = |cell: &String| is_image_name(cell.as_bytes());
        // The paths in a list may lack extensions. A header contains no slashes.
        let is_path = |cell: &String| has_spaces && cell.contains('/');
        let path = cells.iter().position(is_image).or_else(|| cells.iter().position(is_path));
        let path = path.or_else(|| rows.start.has_rest.then_some(0));
        if let Some(label) = cells.get(1).filter(|_| rows.start.has_rest) {
            rows.warnings.push(Warning::RestOfLine { label: label.clone() });
        }
        // A header contains no file names, and rarely a number. In a list of names, the first line is a single name. Unlike a column
        // name, it usually contains a digit.
        let is_only_name = has_spaces && cells.len() == 1 && cells[0].bytes().any(|byte| byte.is_ascii_digit());
        if path.is_some() || are_data(&cells) || is_only_name {
            if path.is_none() {
                rows.warnings.push(Warning::NoHeader { first: cells.join(" ").chars().take(MAX_SHOWN).collect() });
            }
            // File names may be long numbers, as in `1025794 707-320`. Class ids are short.
            let is_number = |cell: &String| cell.len() >= LONG_NUMBER && cell.bytes().all(|byte| byte.is_ascii_digit());
            let path = path.or_else(|| cells.first().filter(|cell| has_spaces && is_number(cell)).map(|_| 0));
            let path = path.or_else(|| column_of_folders(&file.path, &cells));
            let path = path.or_else(|| cells.iter().position(|cell| CellKind::of_text(cell) == CellKind::Text));
            rows.n_columns = cells.len();
            rows.is_read = true;
            // Several columns of images, such as those of three cameras, are not labels.
            let has_images = cells.len() > 2 && cells.get(1).is_some_and(is_image);
            let second = if has_images { "column_2" } else { second_name(&file.path) };
            if path == Some(0)
                && rows.start.delimiter == b' '
                && let Some((warning, names)) = counted_folders(file, &cells)
            {
                rows.warnings.push(warning);
                return Ok((rows, names));
            }
            let names = names_without_header(cells.len(), path, second);
            if let ([_, _, .., last], Some(label)) = (names.as_slice(), names.iter().position(|name| name == LABEL)) {
                let label = cells.get(label).cloned().unwrap_or_default();
                rows.warnings.push(Warning::SecondColumn { label, last: last.clone() });
            }
            return Ok((rows, names));
        }
        check_header(&file.path, rows.line(), &cells)?;
        rows.has_header = true;
        rows.has_captions = matches!(cells.as_slice(), [_, .., last] if has_texts(last));
        rows.is_read = rows.read(file)?;
        // A header may lack a name for the first column if that column contains the files.
        let first = rows.record.get(0).unwrap_or_default();
        let lacks_path = !rows.has_captions && !cells.iter().any(|cell| cell == PATH);
        if rows.record.len() == cells.len() + 1 && is_image_name(first) && lacks_path {
            rows.warnings.push(Warning::NoPathName { first: first.to_vec() });
            cells.insert(0, PATH.to_owned());
        }
        rows.n_columns = cells.len();
        Ok((rows, cells))
    }

    /// Reads the first row, skipping comments and a line with the number of rows.
    fn skip_notes(&mut self, file: &RowFile) -> Result<(), ConvertError> {
        let mut skipped = 0;
        if self.start.has_separator {
            self.read(file)?;
        }
        loop {
            if !self.read(file)? {
                let reason = "expected a header line with column names".to_owned();
                return Err(malformed(&file.path, 1, reason));
            }
            let is_count = self.start.has_count && self.record.len() == 1;
            if !is_count && self.record.get(0).is_none_or(|cell| !cell.starts_with(b"#") || is_image_name(cell)) {
                break;
            }
            skipped += 1;
            self.start.has_count &= !is_count;
        }
        if skipped > 0 {
            self.warnings.push(Warning::LinesSkipped { count: skipped });
        }
        match self.record.len() {
            0..=MAX_COLUMNS => Ok(()),
            n => Err(malformed(&file.path, self.line(), format!("expected at most {MAX_COLUMNS} columns, found {n}"))),
        }
    }

    /// Advances to the next row. Returns false at the end.
    pub(super) fn advance(&mut self, file: &RowFile) -> Result<bool, ConvertError> {
        let read = std::mem::take(&mut self.is_read) || self.read(file)?;
        if read && self.has_captions && self.record.len() > self.n_columns {
            self.join_caption();
        }
        let (expected, found) = (self.n_columns, self.record.len());
        if read && found != expected {
            let reason = format!("expected {expected} fields, found {found}");
            return Err(malformed(&file.path, self.line(), reason));
        }
        Ok(read)
    }

    /// Joins the last column's cell and all cells after it into one cell.
    fn join_caption(&mut self) {
        let mut cells: Vec<Vec<u8>> = self.record.iter().take(self.n_columns - 1).map(<[u8]>::to_vec).collect();
        let caption: Vec<&[u8]> = self.record.iter().skip(self.n_columns - 1).collect();
        cells.push(caption.join(&self.start.delimiter));
        let position = self.record.position().cloned();
        self.record = cells.into();
        self.record.set_position(position);
        let (count, first) = &mut self.unquoted;
        if *count == 0 {
            *first = self.record.iter().next_back().map(trimmed).unwrap_or_default();
        }
        *count += 1;
    }

    fn read(&mut self, file: &RowFile) -> Result<bool, ConvertError> {
        let path = &file.path;
        let mut read = self.read_record(path)?;
        if let Some(joined) = self.start.joined_quotes(&self.record) {
            let position = self.record.position().cloned();
            self.record = joined;
            self.record.set_position(position);
        }
        // Consecutive spaces are one separator.
        while read && self.start.delimiter == b' ' {
            let mut full: ByteRecord = self.record.iter().filter(|cell| !cell.is_empty()).collect();
            if self.start.has_rest && full.len() > 2 {
                let rest: Vec<&[u8]> = full.iter().skip(1).collect();
                full = ByteRecord::from(vec![full[0].to_vec(), rest.join(&b' ')]);
            }
            let position = self.record.position().cloned();
            self.record = full;
            self.record.set_position(position);
            if !self.record.is_empty() {
                break;
            }
            read = self.read_record(path)?;
        }
        let bad = self.record.iter().position(|field| str::from_utf8(field).is_err());
        match bad {
            Some(column) => Err(not_utf8(path, self.line(), &format!("the text in field {}", column + 1))),
            None => match self.open_quote(file)? {
                Some(line) if read => {
                    let reason = "a quote is not closed".to_owned();
                    Err(malformed(path, line, reason))
                }
                _ => Ok(read),
            },
        }
    }

    fn read_record(&mut self, path: &Path) -> Result<bool, ConvertError> {
        self.reader.get_mut().left = MAX_ROW_BYTES;
        let line = self.reader.position().line();
        // Other kinds of parser errors cannot occur with the options used here.
        self.reader.read_byte_record(&mut self.record).map_err(|error| match self.reader.get_ref().left {
            0 => long_row(path, line),
            _ => ConvertError::Io { path: path.to_owned(), source: error.into() },
        })
    }

    /// The first line of the last row if one of its quotes is not closed. The parser reads everything after an unclosed quote as
    /// one field, without an error.
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
        // Quotes inside a quoted cell are doubled, so the number of quotes is even if all are closed.
        if row.iter().filter(|byte| **byte == b'"').count() % 2 == 0 {
            return Ok(None);
        }
        file.rewind().map_err(io_error)?;
        file.take(start).read_to_end(&mut before).map_err(io_error)?;
        let skipped = row.iter().take_while(|byte| byte.is_ascii_whitespace());
        let feeds = before.iter().chain(skipped).filter(|b| **b == b'\n');
        Ok(Some(to_u64(feeds.count()) + 1))
    }

    /// Whether commas separate the cells.
    pub(super) fn has_commas(&self) -> bool {
        self.start.delimiter == b','
    }

    /// The line, counted from 1, on which the current row starts. At the end of the file, the line after the last one.
    ///
    /// The parser counts line feeds, but its position for a row is before any skipped empty lines. The line is therefore derived
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

    /// The cell of the current row in a column; empty if missing.
    pub(super) fn cell(&self, column: usize) -> &str {
        // `read` has checked that every field is UTF-8.
        self.record.get(column).and_then(|field| str::from_utf8(field).ok()).unwrap_or_default()
    }
}

impl Start {
    fn of(file: &mut File, delimiters: &[u8]) -> io::Result<Self> {
        let mut first_bytes = Vec::new();
        BufReader::new(&mut *file).take(START_BYTES).read_to_end(&mut first_bytes)?;
        if to_u64(first_bytes.len()) == START_BYTES {
            // The last line may be incomplete.
            let end = first_bytes.iter().rposition(|byte| *byte == b'\n').unwrap_or(first_bytes.len());
            first_bytes.truncate(end);
        }
        let feed = first_bytes.iter().position(|byte| *byte == b'\n');
        let before = feed.and_then(|feed| feed.checked_sub(1)).map(|before| first_bytes[before]);
        let is_text = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
        let mut lines = first_bytes.split(|byte| *byte == b'\n').filter(is_text);
        let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let has_count = first.trim_ascii().iter().all(u8::is_ascii_digit)
            && second.trim_ascii().iter().any(|byte| delimiters.contains(byte));
        let named = named_separator(first);
        let delimiter = named.unwrap_or_else(|| delimiter_of(if has_count { second } else { first }, delimiters));
        let has_rest = delimiter == b' ' && has_rest(first, lines.chain([second]));
        let has_spaced_quotes = delimiter != b' ' && has_spaced_quotes(file, delimiter)?;
        let has_open_quotes = delimiter == b' ' && has_open_quotes(file)?;
        let len = file.seek(SeekFrom::End(0))?;
        let mut last = [0];
        if len > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        file.rewind()?;
        Ok(Self {
            delimiter,
            two_bytes: before == Some(b'\r'),
            open_end: (last != *b"\n").then_some(len),
            has_count,
            has_rest,
            has_separator: named.is_some(),
            has_spaced_quotes,
            has_open_quotes,
        })
    }

    /// Number of line feeds before `here` that the parser has consumed to end the current row. It consumes the second byte of a
    /// two-byte line ending only with the next row.
    fn counted(&self, here: &Position) -> u64 {
        u64::from(!self.two_bytes && self.open_end != Some(here.byte()))
    }
}

/// Whether each line is a path and a label of one or more words, as in `0034309 A320 family`. False if all lines have the same
/// number of words, or if a file name may contain spaces.
fn has_rest<'a>(first: &'a [u8], others: impl Iterator<Item = &'a [u8]>) -> bool {
    let is_path = |word: &[u8]| is_image_name(word) || word.iter().all(u8::is_ascii_digit);
    let mut counts = HashSet::new();
    let are_labels = [first].into_iter().chain(others.filter(|line| !line.is_empty())).all(|line| {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let has_path = words.next().is_some_and(is_path);
        let rest: Vec<&[u8]> = words.collect();
        counts.insert(rest.len());
        has_path && !rest.into_iter().any(is_image_name)
    });
    are_labels && counts.len() > 1 && !counts.contains(&0)
}

impl Start {
    /// Joins the cells of each quoted text that follows a space. `None` if there are no such quotes.
    fn joined_quotes(&self, record: &ByteRecord) -> Option<ByteRecord> {
        let is_open = |cell: &[u8]| cell.starts_with(b" \"");
        if !self.has_spaced_quotes || !record.iter().any(is_open) {
            return None;
        }
        let mut cells: Vec<Vec<u8>> = Vec::new();
        let mut is_inside = false;
        for cell in record {
            match cells.last_mut().filter(|_| is_inside) {
                Some(last) => {
                    last.push(self.delimiter);
                    last.extend_from_slice(cell);
                }
                None => cells.push(if is_open(cell) { cell[1..].to_vec() } else { cell.to_vec() }),
            }
            is_inside |= is_open(cell);
            if let Some(last) = cells.last_mut().filter(|last| is_inside && last.len() > 1)
                && last.trim_ascii_end().ends_with(b"\"")
                && !last.trim_ascii_end().ends_with(b"\\\"")
            {
                let end = last.trim_ascii_end().len() - 1;
                *last = unescaped(&last[1..end]);
                is_inside = false;
            }
        }
        (!is_inside).then(|| cells.into())
    }
}

/// A quoted text without the backslashes before its inner quotes.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let is_escape = |at: usize| text[at..].starts_with(b"\\\"");
    (0..text.len()).filter(|at| !is_escape(*at)).map(|at| text[at]).collect()
}

/// Whether quotes follow a delimiter and a space. The first part of the file with quoted cells decides.
fn has_spaced_quotes(file: &mut File, delimiter: u8) -> io::Result<bool> {
    file.rewind()?;
    // The first cell of the file is treated as if it followed a line end.
    let mut part = vec![b'\n'];
    loop {
        let n = file.take(START_BYTES).read_to_end(&mut part)?;
        match are_spaced_quotes(&part, delimiter) {
            None if n > 0 => drop(part.drain(..part.len().saturating_sub(2))),
            found => return Ok(found == Some(true)),
        }
    }
}

/// Whether a cell begins with a quote that its line does not close. Spaces separate the cells.
fn has_open_quotes(file: &mut File) -> io::Result<bool> {
    file.rewind()?;
    let (mut is_inside, mut before) = (false, b'\n');
    for byte in BufReader::new(file).bytes() {
        let byte = byte?;
        match byte {
            b'\n' if is_inside => return Ok(true),
            b'"' => is_inside = !is_inside && before.is_ascii_whitespace(),
            _ => {}
        }
        before = byte;
    }
    Ok(is_inside)
}

/// Whether quoted cells begin with a space before the quote, as in `a, "b"`, and none begin directly with a quote. `None`
/// if no cell is quoted.
fn are_spaced_quotes(bytes: &[u8], delimiter: u8) -> Option<bool> {
    if !bytes.contains(&b'"') {
        return None;
    }
    let starts_cell = |triple: &[u8]| {
        // A closing quote after a delimiter, as in `"Sale,"`, may be followed by a line end.
        let is_end = matches!(triple[2], b'\n' | b'\r' | b'"');
        matches!(triple[0], b'\n') && triple[1] == b'"' || triple[0] == delimiter && triple[1] == b'"' && !is_end
    };
    match bytes.windows(3).any(starts_cell) {
        true => Some(false),
        false => bytes.windows(3).any(|triple| triple == [delimiter, b' ', b'"']).then_some(true),
    }
}

/// The delimiter named by a line such as `sep=;`, which Excel understands.
fn named_separator(line: &[u8]) -> Option<u8> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    let named = line.trim_ascii();
    let named = named.strip_prefix(b"\"").unwrap_or(named).strip_prefix(b"sep=")?;
    match named.strip_suffix(b"\"").unwrap_or(named) {
        // A tab at the end of the line was trimmed.
        [] => Some(b'\t'),
        [separator] => Some(*separator),
        _ => None,
    }
}

/// The delimiter that occurs most often in a line, outside quotes. If none occurs, the first one.
fn delimiter_of(line: &[u8], delimiters: &[u8]) -> u8 {
    let count = |delimiter: u8| {
        let mut is_quoted = false;
        let is_free = |byte: &&u8| {
            is_quoted ^= **byte == b'"';
            !is_quoted && **byte == delimiter
        };
        line.trim_ascii().iter().filter(is_free).count()
    };
    // Spaces separate cells only if there is no other delimiter, because they may be part of the cells.
    let others = delimiters.iter().copied().filter(|delimiter| *delimiter != b' ');
    let best = others.rev().max_by_key(|delimiter| count(*delimiter));
    match best {
        Some(best) if count(best) > 0 || !delimiters.contains(&b' ') => best,
        _ => b' ',
    }
}

/// The name given to a column of paths that has none.
pub(super) const PATH: &str = "path";
/// The name of the second column of a file without a header.
const LABEL: &str = "label";
/// Maximum number of characters of a line to show in a message.
const MAX_SHOWN: usize = 60;

fn trimmed(cell: &[u8]) -> String {
    // `read` has checked that every field is UTF-8.
    str::from_utf8(cell).unwrap_or_default().trim().to_owned()
}

/// Whether the first row is data rather than a header: some cells are numbers, and none is a common column name. Consecutive numbers
/// are column names, as written by pandas.
fn are_data(cells: &[String]) -> bool {
    let numbers: Vec<i64> = cells.iter().filter_map(|cell| cell.parse().ok()).collect();
    let are_names = numbers.len() > 1 && numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let is_number = |cell: &String| {
        let are_digits = !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
        are_digits || matches!(CellKind::of_text(cell), CellKind::Integer(_) | CellKind::Float(_))
    };
    let is_name = |cell: &String| cell.is_empty() || is_label_name(cell) || is_column_name(cell);
    cells.iter().any(is_number) && !are_names && !cells.iter().any(is_name)
}

/// The name for the second column of a file without a header. `list_eval_partition.txt` contains splits instead of labels.
fn second_name(path: &Path) -> &'static str {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().to_ascii_lowercase());
    if stem.is_some_and(|stem| stem.contains("partition")) { "partition" } else { LABEL }
}

/// The column names of a list of folders with the number of their images and their label, and the warning about them.
fn counted_folders(file: &RowFile, cells: &[String]) -> Option<(Warning, Vec<String>)> {
    let [_, count, label] = cells else { return None };
    let note = TableNote::FolderCounts { count: count.clone(), label: label.clone() };
    let names = [PATH, "column_2", LABEL].map(str::to_owned).to_vec();
    has_counts(&file.path).then_some((Warning::Table(note), names))
}

/// The column names for a file without a header. `path` is the column of paths, and `second` names the column after it.
fn names_without_header(n: usize, path: Option<usize>, second: &str) -> Vec<String> {
    let name = |column: usize| match column {
        _ if Some(column) == path => PATH.to_owned(),
        1 if path == Some(0) => second.to_owned(),
        _ => format!("column_{}", column + 1),
    };
    (0..n).map(name).collect()
}

/// Checks the column names. The first may be empty, as in the index column that pandas writes.
fn check_header(path: &Path, line: u64, names: &[String]) -> Result<(), ConvertError> {
    let mut seen = HashSet::new();
    for (number, name) in (1..).zip(names) {
        // The last name may be empty if each line ends with a comma. `manifest` checks that its column is empty.
        if name.is_empty() && number > 1 && number < names.len() {
            return Err(malformed(path, line, format!("column {number} has no name")));
        }
        if !seen.insert(name) && !name.is_empty() {
            return Err(malformed(
                path,
                line,
                format!("column '{name}' appears twice: the first line is read as column names"),
            ));
        }
    }
    Ok(())
}
