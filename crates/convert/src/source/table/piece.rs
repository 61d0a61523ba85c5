//! A record batch split into columns on any thread: bytes to spool, locations of items to read in place, numbers and strings.
//!
//! `gather` joins the pieces.

use packds_system::to_u64;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use super::kind::{Kind, is_null_at};
use super::nested::{Levels, numbers};
use super::plan::{Column, Planned, TablePlan, Use};
use super::text::{for_each_text, json_of};
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;
use crate::source::column::TextArena;
use crate::source::roles::Part;

/// The location of a batch in a source.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct Spot<'a> {
    pub(in crate::source) path: &'a Path,
    /// The index of the batch's first row in the file.
    pub(in crate::source) first_row: u64,
    /// The bytes of the file that contain the batch's arrays. `None` if the arrays cannot be read in place.
    pub(in crate::source) in_file: Option<InFile<'a>>,
}

/// Bytes in memory that equal the bytes of the file from `offset` on.
#[derive(Debug, Clone, Copy)]
pub(in crate::source) struct InFile<'a> {
    pub(in crate::source) bytes: &'a [u8],
    pub(in crate::source) offset: u64,
}

impl InFile<'_> {
    /// The file offset of `item`. `None` if `item` is a copy and not a slice of these bytes.
    fn locate(&self, item: &[u8]) -> Option<u64> {
        let start = item.as_ptr().addr();
        let start = start.checked_sub(self.bytes.as_ptr().addr())?;
        let end = start.checked_add(item.len())?;
        let start = u64::try_from(start).ok()?;
        (end <= self.bytes.len()).then(|| self.offset.checked_add(start))?
    }
}

impl Spot<'_> {
    fn place(&self, row: usize, column: &str) -> String {
        let row = self.first_row.saturating_add(to_u64(row));
        format!("row {row}, column `{column}`")
    }

    fn malformed(&self, row: usize, column: &str, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(self.path, &self.place(row, column), reason)
    }
}

/// The columns of a batch.
#[derive(Debug)]
pub(in crate::source) struct Piece {
    pub(super) rows: usize,
    pub(super) columns: Vec<ColumnPiece>,
    /// Rows without a required value, each with the name of that value.
    pub(super) faults: Vec<(usize, Arc<str>)>,
}

/// The values of a column of a batch.
#[derive(Debug)]
pub(super) enum ColumnPiece {
    Items(ItemsPiece),
    /// Concatenated numbers, and the rows that are null.
    Numbers {
        bytes: Vec<u8>,
        nulls: Vec<usize>,
    },
    Texts(TextArena),
}

/// Items of a column of a batch.
#[derive(Debug, Default)]
pub(super) struct ItemsPiece {
    /// Concatenated bytes to spool.
    pub(super) bytes: Vec<u8>,
    pub(super) items: Vec<PieceItem>,
    /// The items' own paths; empty if they have none.
    pub(super) paths: TextArena,
    /// Rows with a path but without bytes.
    pub(super) only_paths: Vec<usize>,
}

/// An item of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceItem {
    /// The item's file offset. `None` if its bytes are in the piece.
    pub(super) in_file: Option<u64>,
    pub(super) bytes: u64,
}

impl ItemsPiece {
    fn push(&mut self, item: &[u8], spot: &Spot<'_>) {
        let in_file = spot.in_file.and_then(|bytes| bytes.locate(item));
        if in_file.is_none() {
            self.bytes.extend_from_slice(item);
        }
        self.items.push(PieceItem { in_file, bytes: to_u64(item.len()) });
    }
}

impl Piece {
    /// Splits a batch into the columns that `plan` needs, in the order of the plan.
    pub(in crate::source) fn of(plan: &TablePlan, batch: &RecordBatch, spot: &Spot<'_>) -> Result<Self, ConvertError> {
        let mut columns = Vec::with_capacity(plan.columns.len());
        let mut faults = Vec::new();
        for planned in &plan.columns {
            let Some(array) = batch.columns().get(planned.index) else {
                let reason = "a batch lacks this column";
                return Err(ConvertError::malformed(spot.path, &planned.name, reason));
            };
            columns.push(column(planned, array, spot, &mut faults)?);
        }
        let rows = batch.num_rows();
        Ok(Self { rows, columns, faults })
    }
}

impl Column {
    /// The bytes of the column of a batch that cannot be read in place.
    pub(in crate::source) fn unpacked(&self, batch: &RecordBatch, spot: &Spot<'_>) -> Result<Vec<u8>, ConvertError> {
        let array = batch.columns().first();
        match array.map(|array| column(&self.planned, array, spot, &mut Vec::new())).transpose()? {
            Some(ColumnPiece::Items(items)) => Ok(items.bytes),
            _ => Err(spot.malformed(0, &self.planned.name, "expected bytes or arrays")),
        }
    }
}

fn column(
    planned: &Planned,
    array: &ArrayRef,
    spot: &Spot<'_>,
    faults: &mut Vec<(usize, Arc<str>)>,
) -> Result<ColumnPiece, ConvertError> {
    let name = &planned.name;
    let failed = |reason: String| spot.malformed(0, name, reason);
    let array = plain(array).map_err(failed)?;
    if planned.needs_values() {
        let reason: Arc<str> = format!("column `{name}`: {}", planned.null_reason()).into();
        let nulls = (0..array.len()).filter(|row| is_null_at(array.as_ref(), *row));
        faults.extend(nulls.map(|row| (row, Arc::clone(&reason))));
    }
    match &planned.kind {
        Kind::Items { children, .. } => {
            let piece = items(planned, *children, &array, spot)?;
            let reason: Arc<str> = format!("column `{name}`: {ONLY_PATH}").into();
            let rows = piece.only_paths.iter();
            faults.extend(rows.map(|row| (*row, Arc::clone(&reason))));
            Ok(ColumnPiece::Items(piece))
        }
        Kind::Array { array: array_type, stored } => {
            // The numbers in a null row may be null too.
            let levels = Levels::of(array.as_ref()).map_err(|reason| {
                let null = (0..array.len()).find(|row| is_null_at(array.as_ref(), *row));
                null.map_or(failed(reason), |row| spot.malformed(row, name, planned.null_reason()))
            })?;
            let mut piece = ItemsPiece::default();
            for row in 0..array.len() {
                if is_null_at(array.as_ref(), row) {
                    piece.push(&[], spot);
                    continue;
                }
                let item = levels.row(row, stored);
                let item = item.map_err(|reason| spot.malformed(row, name, reason))?;
                let expected = array_type.bytes().unwrap_or(u64::MAX);
                if u64::try_from(item.len()) != Ok(expected) {
                    let found = item.len();
                    let reason = format!("expected {expected} bytes, found {found}");
                    return Err(spot.malformed(row, name, reason));
                }
                piece.push(item, spot);
            }
            Ok(ColumnPiece::Items(piece))
        }
        Kind::Number(_) => {
            let (buffer, _) = numbers(array.as_ref()).map_err(failed)?;
            let nulls = (0..array.len()).filter(|row| is_null_at(array.as_ref(), *row));
            Ok(ColumnPiece::Numbers { bytes: buffer.to_vec(), nulls: nulls.collect() })
        }
        Kind::Text | Kind::JsonText | Kind::Json => texts(planned, &array, spot),
    }
}

fn texts(planned: &Planned, array: &ArrayRef, spot: &Spot<'_>) -> Result<ColumnPiece, ConvertError> {
    let mut texts = TextArena::default();
    let room = Room::of(planned, array);
    let failed = |reason: String| spot.malformed(0, &planned.name, reason);
    if planned.kind == Kind::Json {
        for row in 0..array.len() {
            let json = json_of(array.as_ref(), row);
            let json = json.map_err(|reason| spot.malformed(row, &planned.name, reason))?;
            texts.push(&json.to_string());
            room.check(texts.n_bytes()).map_err(|reason| spot.malformed(row, &planned.name, reason))?;
        }
    } else {
        let missing = match planned.kind {
            Kind::JsonText => "null",
            _ => "",
        };
        let pushed = for_each_text(array, |text| {
            let text = text.unwrap_or(missing);
            if planned.part != Use::Other && text.len() > MAX_NAME {
                return Err(format!("expected names of at most {MAX_NAME} bytes, found {}", text.len()));
            }
            texts.push(text);
            room.check(texts.n_bytes())
        });
        pushed.map_err(failed)?;
    }
    Ok(ColumnPiece::Texts(texts))
}

/// Limits the expanded size of a column of a batch. Values that many rows share expand to more bytes than are stored.
struct Room<'a> {
    column: &'a str,
    most: usize,
}

impl<'a> Room<'a> {
    fn of(planned: &'a Planned, array: &ArrayRef) -> Self {
        let held = array.get_array_memory_size();
        Self { column: &planned.name, most: MAX_SHARED.saturating_add(held.saturating_mul(16)) }
    }

    fn check(&self, bytes: usize) -> Result<(), String> {
        if bytes <= self.most {
            return Ok(());
        }
        let (most, column) = (self.most, self.column);
        Err(format!("one batch takes more than {most} bytes; {} excludes the column", LEAVE_OUT.with(column)))
    }
}

fn items(
    planned: &Planned,
    children: Option<(usize, Option<usize>)>,
    array: &ArrayRef,
    spot: &Spot<'_>,
) -> Result<ItemsPiece, ConvertError> {
    let name = &planned.name;
    let room = Room::of(planned, array);
    let mut piece = ItemsPiece::default();
    let (bytes, paths) = match children {
        None => (array.clone(), None),
        Some((bytes, path)) => {
            let columns = array.as_struct().columns();
            let path = path.and_then(|path| columns.get(path));
            let bytes = columns.get(bytes);
            let bytes = bytes.ok_or_else(|| spot.malformed(0, name, "the struct has no field `bytes`"))?;
            (bytes.clone(), path)
        }
    };
    for row in 0..array.len() {
        // The bytes stored for a null are not a value, even if they look like one.
        let is_null = is_null_at(array.as_ref(), row);
        let missing = is_null || is_null_at(bytes.as_ref(), row);
        let has_path = paths.is_some_and(|paths| !is_null_at(paths.as_ref(), row));
        if missing && !is_null && has_path {
            piece.only_paths.push(row);
        }
        let item = if missing { Some(&[][..]) } else { binary_item(bytes.as_ref(), row) };
        let item = item.ok_or_else(|| spot.malformed(row, name, "expected bytes"))?;
        piece.push(item, spot);
        room.check(piece.bytes.len()).map_err(|reason| spot.malformed(row, name, reason))?;
    }
    if let Some(paths) = paths.filter(|_| planned.part == Use::Part(Part::Image)) {
        let pushed = for_each_text(paths, |path| {
            // All paths stay in memory, so implausibly long ones are dropped.
            let path = path.filter(|path| path.len() <= MAX_NAME);
            piece.paths.push(path.unwrap_or_default());
            Ok(())
        });
        pushed.map_err(|reason| spot.malformed(0, name, reason))?;
    }
    Ok(piece)
}

/// Maximum size of a path or a class name, in bytes.
const MAX_NAME: usize = 1 << 12;
/// Maximum expanded size of the values that rows of a batch share, in bytes. Otherwise a few bytes of a file could expand without
/// limit.
const MAX_SHARED: usize = 1 << 28;

/// Why a row with a path but without bytes is bad.
const ONLY_PATH: &str = "the file's path is stored, but not its bytes";

/// The error for a column in which all rows have paths but no bytes.
pub(super) fn no_bytes(source: &Path, planned: &Planned) -> ConvertError {
    let hint = "save the dataset with its files embedded, as `push_to_hub` does, or convert the files themselves with a manifest";
    ConvertError::unsupported(source, &format!("column `{}`", planned.name), ONLY_PATH, hint)
}

/// Replaces the keys of a dictionary column with their values.
fn plain(array: &ArrayRef) -> Result<ArrayRef, String> {
    match array.data_type() {
        DataType::Dictionary(_, values) => {
            // With views, rows share a value without copying it.
            let plain = match values.as_ref() {
                DataType::Utf8 => &DataType::Utf8View,
                DataType::Binary => &DataType::BinaryView,
                other => other,
            };
            arrow_cast::cast(array, plain).map_err(|e| e.to_string())
        }
        _ => Ok(array.clone()),
    }
}

/// The bytes of row `row`. `None` if the column is not binary or the row does not exist.
pub(super) fn binary_item(array: &dyn Array, row: usize) -> Option<&[u8]> {
    if row >= array.len() || is_null_at(array, row) {
        return None;
    }
    match array.data_type() {
        DataType::Binary => Some(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Some(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => Some(array.as_binary_view().value(row)),
        _ => None,
    }
}

impl Planned {
    /// Whether a sample without a value is bad.
    fn needs_values(&self) -> bool {
        match self.part {
            Use::Part(_) => true,
            Use::Path | Use::Other => matches!(self.kind, Kind::Array { .. }),
        }
    }

    fn null_reason(&self) -> &'static str {
        match self.part {
            Use::Part(Part::Image) => "the image is missing (null)",
            Use::Part(Part::Mask) => "the mask is missing (null)",
            Use::Part(Part::Label) => "the label is missing (null)",
            Use::Path | Use::Other => "the array is missing (null)",
        }
    }
}
