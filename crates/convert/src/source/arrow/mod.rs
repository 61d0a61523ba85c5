//! Arrow IPC files (Feather version 2) and streams. Images are read in place, or unpacked into a spool if the record batches are
//! compressed.
//!
//! `table` decides how the columns are used.

mod body;
mod frames;

use packds_system::to_usize;
use std::collections::{BTreeSet, HashMap};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};
use serde_json::Value;

use self::body::Buffers;
use self::frames::{Frame, Frames};
use super::ListOptions;
use super::found::Found;
use super::packed::{self, Packed, Unpack, no_piece};
use super::shards::Shards;
use super::spool::Spool;
use super::store::OpenFile;
use super::table::{
    Column, Columns, Gather, InFile, MAX_THREADS, Piece, PieceOf, ROWS_A_BYTE, Spot, TablePlan, for_each_text, guarded,
    no_rows, tasks,
};
use super::there::is_there;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};

/// Approximate maximum size of the record batches in memory, in bytes.
const MEMORY_BYTES: u64 = 512 << 20;
/// Hugging Face stores the first file next to the split folders, and the second file next to the files of a split.
const DATASET_DICT: &str = "dataset_dict.json";
const DATASET_STATE: &str = "state.json";
/// Maximum size of each of these files, in bytes.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// The splits of a source: the folders saved by Hugging Face, or the splits in file names.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let listed = source.join(DATASET_DICT);
    if !is_there(&listed)? {
        return Ok(Shards::find(source, DataFormat::Arrow)?.by_split());
    }
    let value = read_json(&listed)?;
    let splits = value.get("splits").and_then(Value::as_array);
    let splits = splits.into_iter().flatten().filter_map(Value::as_str);
    let mut parts = Vec::new();
    for split in splits {
        let is_name = !split.is_empty() && !split.contains('/') && split != "..";
        if !is_name {
            let reason = format!("'{split}' is not a valid folder name");
            return Err(ConvertError::malformed(&listed, "splits", reason));
        }
        let mut part = Shards::find(&source.join(split), DataFormat::Arrow)?;
        part.split = Some(split.to_owned());
        parts.push(part);
    }
    parts.sort_by(|a, b| a.split.cmp(&b.split));
    Ok(parts)
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    check_state(&part.root)?;
    let mut files = Vec::new();
    for path in &part.files {
        files.push(OpenFile::open(path).map_err(ConvertError::io(path))?);
    }
    let file_bytes = files.iter().fold(0, |sum: u64, f| sum.saturating_add(f.bytes));
    let (plan, body_bytes) = plan(part, options)?;
    let plan = Arc::new(plan);
    let spool = Spool::create(&options.spool_folder())?;
    let mut gather = Gather::new(&part.root, Arc::clone(&plan), (spool, Packed::Arrow), file_bytes);
    let most = to_usize(MEMORY_BYTES / body_bytes.max(1));
    let jobs = options.jobs.min(MAX_THREADS).min(most).max(1);
    let open = |number, path: &Path| {
        let table = Table::open(path, number, options)?;
        plan.check(path, &table.columns.schema)?;
        Ok(table)
    };
    ordered(
        jobs,
        jobs.saturating_add(1),
        || (),
        |(), task: Task| {
            let place = place(&task.frame);
            let piece = guarded(&task.file.path, &place, || task.piece(&plan))?;
            Ok((piece, task))
        },
        tasks(&part.files, open, Table::next),
        |decoded: Result<(Piece, Task), ConvertError>| {
            let (piece, Task { file, columns, number, place, .. }) = decoded?;
            gather.push(piece, &PieceOf { path: &file.path, file: number, columns: &columns, place, start: 0 })?;
            Ok(Next::Continue)
        },
    )?;
    gather.finish(DataFormat::Arrow, files)
}

/// The different strings of the label column. `None` if the labels are not strings. Images are not read.
pub(crate) fn class_names(
    part: &Shards,
    options: &ListOptions,
    _field: &str,
) -> Result<Option<BTreeSet<Vec<u8>>>, ConvertError> {
    let (plan, _) = plan(part, options)?;
    let Some(label) = plan.text_label() else { return Ok(None) };
    let mut all = BTreeSet::new();
    for path in &part.files {
        let mut table = Table::open(path, 0, options)?;
        plan.check(path, &table.columns.schema)?;
        while let Some(task) = table.next()? {
            let place = place(&task.frame);
            guarded(path, &place, || {
                let (batch, _) = task.decode(&plan.in_place())?;
                let Some(array) = batch.columns().get(label) else { return Ok(()) };
                let each = |text: Option<&str>| {
                    all.extend(text.map(|text| text.as_bytes().to_vec()));
                    Ok(())
                };
                for_each_text(array, each).map_err(|reason| ConvertError::malformed(path, &place, reason))
            })?;
        }
    }
    Ok(Some(all))
}

/// Makes the plan from the first record batch that has rows. Also returns the size of that batch in bytes.
fn plan(part: &Shards, options: &ListOptions) -> Result<(TablePlan, u64), ConvertError> {
    for path in &part.files {
        let mut table = Table::open(path, 0, options)?;
        while let Some(task) = table.next()? {
            if task.rows == 0 {
                continue;
            }
            let plan = guarded(path, &place(&task.frame), || {
                let (first, _) = task.decode(&[])?;
                TablePlan::of(path, &task.columns.schema, &first, options)
            })?;
            return Ok((plan, task.frame.bytes));
        }
    }
    Err(no_rows(&part.root))
}

/// The dictionaries read from a file so far.
type Dictionaries = Arc<HashMap<i64, ArrayRef>>;

/// A file whose batches are read one by one.
struct Table {
    frames: Frames,
    /// The columns to read.
    columns: Arc<Columns>,
    number: u32,
    dictionaries: Dictionaries,
    /// The rows and the record batches read so far.
    rows: u64,
    batches: u64,
}

impl Table {
    fn open(path: &Path, number: u32, options: &ListOptions) -> Result<Self, ConvertError> {
        let frames = Frames::open(path)?;
        let columns = Columns::of(path, &frames.schema, options)?;
        Ok(Self { frames, columns: Arc::new(columns), number, dictionaries: Arc::default(), rows: 0, batches: 0 })
    }

    /// The next record batch. Also reads the dictionaries before it.
    fn next(&mut self) -> Result<Option<Task>, ConvertError> {
        let path = self.frames.file.path.clone();
        while let Some(frame) = self.frames.next()? {
            let place = place(&frame);
            let malformed = |reason: String| ConvertError::malformed(&path, &place, reason);
            let message = root_as_message(&frame.message);
            let message = message.map_err(|e| malformed(e.to_string()))?;
            let rows = match message.header_type() {
                MessageHeader::RecordBatch => message.header_as_record_batch().map(|batch| batch.length()),
                MessageHeader::DictionaryBatch => {
                    guarded(&path, &place, || self.take_dictionary(&frame))?;
                    continue;
                }
                _ => None,
            };
            let rows = rows.and_then(|rows| u64::try_from(rows).ok());
            let most = self.frames.file.bytes.saturating_mul(ROWS_A_BYTE);
            let rows = rows.filter(|rows| *rows <= most).ok_or_else(|| {
                let found = rows.map_or("none".to_owned(), |rows| format!("{rows} rows"));
                malformed(format!("expected a batch of at most {most} rows, found {found}"))
            })?;
            let first_row = self.rows;
            self.rows = self.rows.saturating_add(rows);
            self.batches += 1;
            return Ok(Some(Task {
                file: Arc::clone(&self.frames.file),
                schema: Arc::clone(&self.frames.schema),
                columns: Arc::clone(&self.columns),
                dictionaries: Arc::clone(&self.dictionaries),
                number: self.number,
                place: self.batches - 1,
                frame,
                rows,
                first_row,
            }));
        }
        Ok(None)
    }

    fn take_dictionary(&mut self, frame: &Frame) -> Result<(), ConvertError> {
        let file = &self.frames.file;
        let malformed = |reason: String| ConvertError::malformed(&file.path, &place(frame), reason);
        let message = root_as_message(&frame.message).map_err(|e| malformed(e.to_string()))?;
        let batch = message.header_as_dictionary_batch();
        let batch = batch.ok_or_else(|| malformed("expected a dictionary".to_owned()))?;
        let data = batch.data();
        let data = data.ok_or_else(|| malformed("the dictionary has no values".to_owned()))?;
        let schema = &self.frames.schema;
        let buffers = Buffers::of(&data, frame.bytes).map_err(malformed)?;
        let body = buffers.read(file, frame, schema, &[]).map_err(malformed)?;
        let mut dictionaries = HashMap::clone(&self.dictionaries);
        let read = read_dictionary(&body, batch, schema, &mut dictionaries, &message.version());
        read.map_err(|e| failed(&file.path, &place(frame), &e))?;
        self.dictionaries = Arc::new(dictionaries);
        Ok(())
    }
}

/// A record batch to split into columns.
struct Task {
    file: Arc<OpenFile>,
    schema: SchemaRef,
    columns: Arc<Columns>,
    dictionaries: Dictionaries,
    /// The file's index.
    number: u32,
    /// The index of the batch in the file.
    place: u64,
    frame: Frame,
    rows: u64,
    first_row: u64,
}

impl Task {
    /// The batch and its body. In the body, the values of the columns in `in_place` are zero.
    fn decode(&self, in_place: &[(usize, Option<usize>)]) -> Result<(RecordBatch, arrow_buffer::Buffer), ConvertError> {
        let path = self.file.path.as_path();
        let malformed = |reason: String| ConvertError::malformed(path, &place(&self.frame), reason);
        let message = root_as_message(&self.frame.message).map_err(|e| malformed(e.to_string()))?;
        let batch = message.header_as_record_batch();
        let batch = batch.ok_or_else(|| malformed("expected a batch".to_owned()))?;
        let buffers = Buffers::of(&batch, self.frame.bytes).map_err(malformed)?;
        let places = &self.columns.places;
        let in_file = |(column, child): &(usize, Option<usize>)| Some((*places.get(*column)?, *child));
        let in_place: Vec<_> = in_place.iter().filter_map(in_file).collect();
        let body = buffers.read(&self.file, &self.frame, &self.schema, &in_place);
        let body = body.map_err(malformed)?;
        let schema = Arc::clone(&self.schema);
        let version = message.version();
        let columns = (!self.columns.are_all).then_some(places.as_slice());
        let read = read_record_batch(&body, batch, schema, &self.dictionaries, columns, &version);
        let batch = read.map_err(|e| failed(path, &place(&self.frame), &e))?;
        Ok((batch, body))
    }

    fn piece(&self, plan: &TablePlan) -> Result<Piece, ConvertError> {
        let (batch, body) = self.decode(&plan.in_place())?;
        Piece::of(plan, &batch, &self.spot(&body))
    }

    fn spot<'a>(&'a self, body: &'a arrow_buffer::Buffer) -> Spot<'a> {
        let in_file = Some(InFile { bytes: body.as_slice(), offset: self.frame.offset });
        Spot { path: &self.file.path, first_row: self.first_row, in_file }
    }
}

/// A column of a file, whose record batches another process unpacks.
struct ColumnPieces {
    path: PathBuf,
    batches: Vec<Task>,
    column: Column,
}

/// Opens a column of a file to unpack some of its record batches.
pub(super) fn column_pieces(path: &Path, column: &Column) -> Result<Arc<dyn Unpack>, ConvertError> {
    let mut table = Table::open(path, 0, &ListOptions::default())?;
    table.columns = Arc::new(Columns::only(path, &table.frames.schema, column.place)?);
    let mut batches = Vec::new();
    while let Some(task) = table.next()? {
        batches.push(task);
    }
    Ok(Arc::new(ColumnPieces { path: path.to_owned(), batches, column: column.clone() }))
}

impl Unpack for ColumnPieces {
    fn read<'a>(&'a self, piece: &packed::Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let task = self.batches.get(to_usize(piece.place)).ok_or_else(|| no_piece(&self.path, piece))?;
        let bytes = guarded(&self.path, &place(&task.frame), || {
            let (batch, body) = task.decode(self.column.in_place().as_slice())?;
            self.column.unpacked(&batch, &task.spot(&body))
        })?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

fn place(frame: &Frame) -> String {
    format!("the record batch at {}", frame.offset)
}

/// Refuses a Hugging Face dataset whose row order is stored in a separate file.
fn check_state(folder: &Path) -> Result<(), ConvertError> {
    let path = folder.join(DATASET_STATE);
    if !is_there(&path)? {
        return Ok(());
    }
    let state = read_json(&path)?;
    let indices = ["_indices_data_files", "_indices_files"].map(|key| state.get(key));
    let has_indices =
        indices.into_iter().flatten().any(|files| files.as_array().is_some_and(|files| !files.is_empty()));
    if has_indices {
        let reason = "other files define the order of its rows";
        let hint = "save it again after `flatten_indices()`";
        return Err(ConvertError::unsupported(&path, "", reason, hint));
    }
    Ok(())
}

fn read_json(path: &Path) -> Result<Value, ConvertError> {
    let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
    let malformed = |reason: String| ConvertError::malformed(path, "", reason);
    if file.bytes > MAX_JSON_BYTES {
        return Err(malformed(format!("it is too large ({} bytes)", file.bytes)));
    }
    let text = file.part("", 0, file.bytes)?;
    serde_json::from_slice(&text).map_err(|e| malformed(e.to_string()))
}

fn failed(path: &Path, place: &str, error: &ArrowError) -> ConvertError {
    ConvertError::malformed(path, place, error.to_string())
}
