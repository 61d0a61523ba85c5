//! Parquet: row groups are decoded on all threads, and images are unpacked into a spool in order.
//!
//! `table` decides how the columns are used.

mod columns;
mod expansion;
mod footer;
mod lines;

use packds_system::{to_u64, to_usize};
use std::io::{BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::ParquetError;
use ::parquet::file::reader::{ChunkReader, Length};
use bytes::Bytes;

pub(crate) use self::columns::class_names;
pub(super) use self::columns::{column, names};
pub(super) use self::lines::{names_files, write_lines};
use super::ListOptions;
use super::found::Found;
use super::packed::{self, Packed, Unpack, no_piece};
use super::shards::Shards;
use super::spool::Spool;
use super::store::{OpenFile, ReadAt};
use super::table::{Column, Columns, Gather, MAX_THREADS, Piece, PieceOf, Spot, TablePlan, guarded, no_rows, tasks};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::ordered::{Next, ordered};

/// Approximate bytes of values to decode per task.
const TASK_BYTES: u64 = 32 << 20;
/// Maximum number of rows decoded at a time.
const MAX_BATCH_ROWS: u64 = 1024;
/// Maximum number of rows per task.
const MAX_TASK_ROWS: u64 = 1 << 16;

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut file_bytes = 0_u64;
    for path in &part.files {
        let metadata = std::fs::metadata(path).map_err(ConvertError::io(path))?;
        file_bytes = file_bytes.saturating_add(metadata.len());
    }
    let plan = Arc::new(plan(part, options)?);
    let spool = Spool::create(&options.spool_folder())?;
    let mut gather = Gather::new(&part.root, Arc::clone(&plan), (spool, Packed::Parquet), file_bytes);
    let open = |number, path: &Path| {
        let table = Arc::new(Table { number, ..Table::open(path, options)? });
        plan.check(path, &table.columns.schema)?;
        Ok(table.tasks())
    };
    let jobs = options.jobs.clamp(1, MAX_THREADS);
    ordered(
        jobs,
        jobs.saturating_add(1),
        || (),
        |(), task: Task| {
            let (path, place) = (&task.table.file.path, task.place());
            let pieces = guarded(path, &place, || task.decode(&plan))?;
            Ok((pieces, task))
        },
        tasks(&part.files, open, |tasks| Ok(tasks.next())),
        |decoded: Result<(Vec<(u64, Piece)>, Task), ConvertError>| {
            let (pieces, Task { table, group, .. }) = decoded?;
            let (path, columns) = (&table.file.path, &table.columns);
            for (start, piece) in pieces {
                let of = PieceOf { path, file: table.number, columns, place: to_u64(group), start };
                gather.push(piece, &of)?;
            }
            Ok(Next::Continue)
        },
    )?;
    gather.finish(DataFormat::Parquet, Vec::new())
}

/// Makes the plan from the first file that has rows.
fn plan(part: &Shards, options: &ListOptions) -> Result<TablePlan, ConvertError> {
    for path in &part.files {
        let table = Arc::new(Table::open(path, options)?);
        let mut tasks = table.tasks();
        let Some(mut task) = tasks.next() else {
            continue;
        };
        task.rows = 1;
        return guarded(path, &task.place(), || {
            let first = task.reader()?.next().transpose();
            let first = first.map_err(|e| failed(path, &task.place(), &e.into()))?;
            let first =
                first.ok_or_else(|| ConvertError::malformed(path, &task.place(), "expected rows, found none"))?;
            TablePlan::of(path, &table.columns.schema, &first, options)
        });
    }
    Err(no_rows(&part.root))
}

/// Refuses columns that lie outside the file. The library would panic on them; the panic would be caught, but it would still
/// print a message.
fn check_places(file: &OpenFile, metadata: &ArrowReaderMetadata) -> Result<(), ConvertError> {
    let groups = metadata.metadata().row_groups().iter().enumerate();
    for (number, group) in groups {
        for column in group.columns() {
            let start = column.dictionary_page_offset();
            let start = start.unwrap_or_else(|| column.data_page_offset());
            let bytes = column.compressed_size();
            let range = u64::try_from(start).ok().zip(u64::try_from(bytes).ok());
            let end = range.and_then(|(start, bytes)| start.checked_add(bytes));
            if end.is_none_or(|end| end > file.bytes) || group.num_rows() < 0 {
                let place = format!("row group {number}, column {}", column.column_path());
                let reason = format!(
                    "expected its pages within the {} bytes of the file, found {bytes} bytes at {start}",
                    file.bytes
                );
                return Err(ConvertError::malformed(&file.path, &place, reason));
            }
        }
    }
    Ok(())
}

/// A file of the source.
struct Table {
    file: Arc<OpenFile>,
    metadata: ArrowReaderMetadata,
    /// The columns to read.
    columns: Columns,
    /// The file's index.
    number: u32,
}

impl Table {
    fn open(path: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        footer::check(&file)?;
        let file = Arc::new(file);
        let metadata = guarded(path, "the footer", || {
            let reader = AnyPlace(Arc::clone(&file));
            let loaded = ArrowReaderMetadata::load(&reader, ArrowReaderOptions::new());
            loaded.map_err(|e| failed(path, "the footer", &e))
        })?;
        check_places(&file, &metadata)?;
        let columns = Columns::of(path, metadata.schema(), options)?;
        Ok(Self { file, metadata, columns, number: 0 })
    }

    /// Reads only the column at this place of the file.
    fn read_only(&mut self, place: usize) -> Result<(), ConvertError> {
        self.columns = Columns::only(&self.file.path, self.metadata.schema(), place)?;
        Ok(())
    }

    /// Splits the rows of the file into tasks of about [`TASK_BYTES`].
    fn tasks(self: &Arc<Self>) -> impl Iterator<Item = Task> + use<> {
        let table = Arc::clone(self);
        let groups = table.metadata.metadata().num_row_groups();
        let mut first_row = 0_u64;
        (0..groups).flat_map(move |group| {
            let described = table.metadata.metadata().row_group(group);
            let rows = described.num_rows().max(0).cast_unsigned();
            let is_read = |root: usize| table.columns.places.contains(&root);
            let row_bytes =
                guarded(&table.file.path, "a dictionary", || Ok(expansion::row_bytes(&table.file, described, is_read)));
            // Damage is reported when the rows are read.
            let row_bytes = row_bytes.unwrap_or(u64::MAX);
            let step = (TASK_BYTES / row_bytes).clamp(1, MAX_TASK_ROWS);
            // Many programs end pages at a multiple of this number of rows, so that pages are unpacked once.
            let step = if step > MAX_BATCH_ROWS { step - step % MAX_BATCH_ROWS } else { step };
            let group_row = first_row;
            first_row = first_row.saturating_add(rows);
            let table = Arc::clone(&table);
            let starts = (0..rows.div_ceil(step)).map(move |n| n.saturating_mul(step));
            starts.map(move |start| Task {
                table: Arc::clone(&table),
                group,
                start,
                rows: step.min(rows - start),
                first_row: group_row.saturating_add(start),
            })
        })
    }
}

/// A range of rows of a row group.
struct Task {
    table: Arc<Table>,
    group: usize,
    /// The index of the first row in the group, and in the file.
    start: u64,
    first_row: u64,
    rows: u64,
}

impl Task {
    fn place(&self) -> String {
        format!("row group {}", self.group)
    }

    fn reader(&self) -> Result<ParquetRecordBatchReader, ConvertError> {
        let (file, metadata) = (Arc::clone(&self.table.file), self.table.metadata.clone());
        let columns = &self.table.columns;
        let mask = match columns.are_all {
            true => ProjectionMask::all(),
            false => ProjectionMask::roots(metadata.parquet_schema(), columns.places.iter().copied()),
        };
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(AnyPlace(file), metadata)
            .with_projection(mask)
            .with_row_groups(vec![self.group])
            .with_offset(to_usize(self.start))
            .with_limit(to_usize(self.rows))
            .with_batch_size(to_usize(self.rows.min(MAX_BATCH_ROWS)))
            .build();
        reader.map_err(|e| failed(&self.table.file.path, &self.place(), &e))
    }

    /// The pieces, each with its first row in the group.
    fn decode(&self, plan: &TablePlan) -> Result<Vec<(u64, Piece)>, ConvertError> {
        let path = &self.table.file.path;
        let (mut pieces, mut rows) = (Vec::new(), 0_u64);
        for batch in self.reader()? {
            let batch = batch.map_err(|e| failed(path, &self.place(), &e.into()))?;
            let spot = Spot { path, first_row: self.first_row.saturating_add(rows), in_file: None };
            pieces.push((self.start.saturating_add(rows), Piece::of(plan, &batch, &spot)?));
            let n = to_u64(batch.num_rows());
            rows = rows.saturating_add(n);
        }
        if rows == self.rows {
            return Ok(pieces);
        }
        let reason = format!("expected {} rows, found {rows}", self.rows);
        Err(ConvertError::malformed(path, &self.place(), reason))
    }
}

/// A column of a file, whose rows another process unpacks.
struct ColumnPieces {
    table: Arc<Table>,
    column: Column,
}

/// Opens a column of a file to unpack some of its rows.
pub(super) fn column_pieces(path: &Path, column: &Column) -> Result<Arc<dyn Unpack>, ConvertError> {
    let mut table = Table::open(path, &ListOptions::default())?;
    table.read_only(column.place)?;
    Ok(Arc::new(ColumnPieces { table: Arc::new(table), column: column.clone() }))
}

impl Unpack for ColumnPieces {
    fn read<'a>(&'a self, piece: &packed::Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let (path, group) = (&self.table.file.path, to_usize(piece.place));
        let rows = self.table.metadata.metadata().row_groups().get(group).map(|group| group.num_rows());
        let rows = rows.and_then(|rows| u64::try_from(rows).ok());
        let end = piece.start.checked_add(piece.rows).filter(|end| rows.is_some_and(|rows| *end <= rows));
        let (start, rows) = (piece.start, end.ok_or_else(|| no_piece(path, piece))? - piece.start);
        let task = Task { table: Arc::clone(&self.table), group, start, first_row: 0, rows };
        let mut bytes = Vec::new();
        guarded(path, &task.place(), || {
            for batch in task.reader()? {
                let batch = batch.map_err(|e| failed(path, &task.place(), &e.into()))?;
                let spot = Spot { path, first_row: start, in_file: None };
                bytes.extend_from_slice(&self.column.unpacked(&batch, &spot)?);
            }
            Ok(())
        })?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// A file that several threads read at different offsets.
struct AnyPlace(Arc<OpenFile>);

impl Length for AnyPlace {
    fn len(&self) -> u64 {
        self.0.bytes
    }
}

impl ChunkReader for AnyPlace {
    type T = BufReader<ReadAt<Arc<OpenFile>>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(ReadAt::new(Arc::clone(&self.0), start)))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.0.bytes_at(start, u64::try_from(length)?);
        bytes.map(Bytes::from).map_err(|e| ParquetError::EOF(e.to_string()))
    }
}

/// The error for a failure of the library. Distinguishes undamaged files with an unsupported codec from damaged files.
fn failed(path: &Path, place: &str, error: &ParquetError) -> ConvertError {
    let reason = error.to_string();
    let is_left_out = reason.contains("Disabled feature") || matches!(error, ParquetError::NYI(_));
    if is_left_out {
        let hint = "write it with zstd, snappy, lz4, gzip or no compression";
        ConvertError::unsupported(path, place, reason, hint)
    } else {
        ConvertError::malformed(path, place, reason)
    }
}
