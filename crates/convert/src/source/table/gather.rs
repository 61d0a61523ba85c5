//! Joins pieces of batches in order. Items go into a spool or are read in place from the files; everything else stays in memory.

use packds_system::{to_u64, to_usize};
use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Scalar};

use super::kind::Kind;
use super::piece::{ColumnPiece, ItemsPiece, Piece, no_bytes};
use super::plan::{Column, Columns, Planned, TablePlan, Use};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::source::column::{ColumnValues, SourceColumn, TextArena};
use crate::source::found::{Found, FoundLabels, LabelValues, Names, role_of};
use crate::source::listing::{Faults, SourceField};
use crate::source::packed::{self, Packed};
use crate::source::paths::FilePath;
use crate::source::roles::{Part, are_paths};
use crate::source::spool::Spool;
use crate::source::store::{Content, Contents, Numbers, OpenFile, Span, SpanFiles, Spans, Store};

/// Maximum number of rows per byte of the files. A few bytes can state billions of rows, and each row costs memory here.
pub(in crate::source) const ROWS_A_BYTE: u64 = 16;

/// Joins pieces.
pub(in crate::source) struct Gather {
    root: std::path::PathBuf,
    plan: Arc<TablePlan>,
    /// Items that are not read in place are written here.
    spool: Spool,
    /// How a column is unpacked.
    packed: fn(FilePath, Column) -> Packed,
    /// For each column, the number of the last file, and the number of the column of that file in the spool.
    unpacked: Vec<Option<(u32, u32)>>,
    columns: Vec<Gathered>,
    rows: u64,
    max_rows: u64,
    faults: Faults,
}

/// The values of a column so far.
enum Gathered {
    Items {
        spans: Vec<Span>,
        paths: TextArena,
        /// Number of rows with a path but without bytes.
        only_paths: usize,
    },
    Numbers {
        bytes: Vec<u8>,
        nulls: Vec<usize>,
    },
    Texts(TextArena),
    /// The locations of strings that are too large to keep in memory.
    LongTexts(Vec<Span>),
}

/// Where a piece comes from.
pub(in crate::source) struct PieceOf<'a> {
    pub(in crate::source) path: &'a Path,
    /// The number of the file.
    pub(in crate::source) file: u32,
    /// The columns that were read.
    pub(in crate::source) columns: &'a Columns,
    /// The row group or the record batch.
    pub(in crate::source) place: u64,
    /// The first row in it.
    pub(in crate::source) start: u64,
}

/// Maximum total size of a column's long strings in memory, in bytes.
const TEXTS_BYTES: usize = 64 << 20;
/// Minimum average size of long strings, in bytes. Shorter strings may be class ids or names.
const LONG_TEXT: usize = 1 << 10;

/// Placeholder for the spool's file index until that is known.
const SPOOLED: u32 = u32::MAX;

impl Gather {
    /// Creates an empty gathering. `file_bytes` is the total size of all files.
    pub(in crate::source) fn new(
        root: &Path,
        plan: Arc<TablePlan>,
        (spool, packed): (Spool, fn(FilePath, Column) -> Packed),
        file_bytes: u64,
    ) -> Self {
        let gathered = plan.columns.iter().map(|planned| match &planned.kind {
            Kind::Items { .. } | Kind::Array { .. } => {
                Gathered::Items { spans: Vec::new(), paths: TextArena::default(), only_paths: 0 }
            }
            Kind::Number(_) => Gathered::Numbers { bytes: Vec::new(), nulls: Vec::new() },
            Kind::Text | Kind::JsonText | Kind::Json => Gathered::Texts(TextArena::default()),
        });
        let columns = gathered.collect();
        Self {
            root: root.to_owned(),
            unpacked: vec![None; plan.columns.len()],
            plan,
            spool,
            packed,
            columns,
            rows: 0,
            faults: Faults::new(),
            max_rows: file_bytes.saturating_mul(ROWS_A_BYTE),
        }
    }

    /// Adds the next piece.
    pub(in crate::source) fn push(&mut self, piece: Piece, of: &PieceOf<'_>) -> Result<(), ConvertError> {
        let before = to_usize(self.rows);
        self.rows = self.rows.saturating_add(to_u64(piece.rows));
        if self.rows > self.max_rows {
            let reason = "it declares more rows than its bytes can hold";
            return Err(ConvertError::malformed(&self.root, "", reason));
        }
        for (row, reason) in piece.faults {
            self.faults.entry(row.saturating_add(before)).or_insert(reason.into());
        }
        let rows = to_u64(piece.rows);
        let columns = self.plan.columns.iter().zip(&mut self.columns).zip(&mut self.unpacked);
        for (((planned, column), unpacked), piece) in columns.zip(piece.columns) {
            match (&mut *column, piece) {
                (Gathered::Items { spans, paths, only_paths }, ColumnPiece::Items(piece)) => {
                    let packed = match *unpacked {
                        Some((file, number)) if file == of.file => Some(number),
                        _ => Column::of(planned, &of.columns.places)
                            .map(|column| self.spool.unpacks((self.packed)(of.path.into(), column))),
                    };
                    *unpacked = packed.map(|number| (of.file, number));
                    let (place, start) = (of.place, of.start);
                    packed.inspect(|packed| self.spool.begin(packed::Piece { packed: *packed, place, start, rows }));
                    push_items(&mut self.spool, spans, &piece, of.file)?;
                    *only_paths += piece.only_paths.len();
                    piece.paths.iter().for_each(|path| paths.push(path));
                }
                (Gathered::Numbers { bytes, nulls }, ColumnPiece::Numbers { bytes: more, nulls: rows }) => {
                    bytes.extend_from_slice(&more);
                    nulls.extend(rows.iter().map(|row| row.saturating_add(before)));
                }
                (Gathered::Texts(texts), ColumnPiece::Texts(more)) => {
                    more.iter().for_each(|text| texts.push(text));
                    if planned.part == Use::Other && is_long(texts) {
                        let mut spans = Vec::new();
                        push_texts(&mut self.spool, &mut spans, texts)?;
                        *column = Gathered::LongTexts(spans);
                    }
                }
                (Gathered::LongTexts(spans), ColumnPiece::Texts(more)) => {
                    push_texts(&mut self.spool, spans, &more)?;
                }
                // Pieces and columns both follow the plan, so they always match.
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the result. Items may be read in place from `files`.
    pub(in crate::source) fn finish(self, format: DataFormat, mut files: Vec<OpenFile>) -> Result<Found, ConvertError> {
        let spool = u32::try_from(files.len()).unwrap_or(SPOOLED);
        files.push(self.spool.finish(&self.root)?);
        let files = SpanFiles::open(files);
        let image = self.plan.columns.iter().find(|c| c.part == Use::Part(Part::Image));
        let names = Names::Numbered(image.map_or_else(String::new, |column| column.name.clone()));
        // The plan has an image column, which replaces this placeholder.
        let images = stored(Vec::new(), &files, spool, Content::Bytes);
        let found = Found {
            metadata: self.plan.metadata.clone(),
            faults: self.faults,
            warnings: self.plan.warnings.clone(),
            ..Found::new(format, images, names)
        };
        let mut parts = FoundParts { classes: &self.plan.classes, found };
        for (planned, gathered) in self.plan.columns.iter().zip(self.columns) {
            parts.add(planned, gathered, &files, spool, &self.root)?;
        }
        Ok(parts.found)
    }
}

fn push_items(spool: &mut Spool, spans: &mut Vec<Span>, piece: &ItemsPiece, file: u32) -> Result<(), ConvertError> {
    let mut offset = spool.append(&piece.bytes)?;
    for item in &piece.items {
        let (file, start) = match item.in_file {
            Some(start) => (file, start),
            None => (SPOOLED, offset),
        };
        if item.in_file.is_none() {
            offset = offset.saturating_add(item.bytes);
        }
        spans.push(Span { file, offset: start, bytes: item.bytes });
    }
    Ok(())
}

fn is_long(texts: &TextArena) -> bool {
    texts.n_bytes() > TEXTS_BYTES && texts.n_bytes() / texts.len().max(1) >= LONG_TEXT
}

fn push_texts(spool: &mut Spool, spans: &mut Vec<Span>, texts: &TextArena) -> Result<(), ConvertError> {
    spool.end();
    for text in texts.iter() {
        spans.push(Span { file: SPOOLED, offset: spool.append(text.as_bytes())?, bytes: to_u64(text.len()) });
    }
    Ok(())
}

/// The result under construction.
struct FoundParts<'a> {
    classes: &'a [String],
    found: Found,
}

impl FoundParts<'_> {
    fn add(
        &mut self,
        planned: &Planned,
        gathered: Gathered,
        files: &SpanFiles,
        spool: u32,
        root: &Path,
    ) -> Result<(), ConvertError> {
        match (gathered, &planned.kind) {
            (Gathered::Items { spans, only_paths, .. }, _) if only_paths > 0 && only_paths == spans.len() => {
                return Err(no_bytes(root, planned));
            }
            (Gathered::Items { spans, paths, .. }, kind) => {
                let content = match kind {
                    Kind::Items { content, .. } => content.clone(),
                    Kind::Array { array, .. } => Content::of_array(array.clone()),
                    _ => Content::Bytes,
                };
                self.use_paths(&paths, spans.len());
                self.put(planned, stored(spans, files, spool, content));
            }
            (Gathered::LongTexts(spans), kind) => {
                let content = match kind {
                    Kind::Text => Content::Text,
                    _ => Content::Json,
                };
                self.put(planned, stored(spans, files, spool, content));
            }
            (Gathered::Numbers { mut bytes, nulls }, Kind::Number(dtype)) => {
                if planned.part == Use::Part(Part::Label) {
                    // The stored value of a null could look like a label, so it becomes 0. The sample is bad anyway.
                    fill(&mut bytes, *dtype, &nulls, &[0; 8]);
                    self.put_labels(planned, label_values(*dtype, bytes));
                } else {
                    self.put_numbers(planned, *dtype, bytes, &nulls);
                }
            }
            (Gathered::Texts(texts), _) if planned.part == Use::Part(Part::Label) => {
                self.put_labels(planned, LabelValues::Names(texts));
            }
            (Gathered::Texts(texts), _) if planned.part == Use::Path => {
                self.use_paths(&texts, texts.len());
            }
            (Gathered::Texts(texts), kind) => {
                let values = match kind {
                    Kind::Text => ColumnValues::Text(texts),
                    _ => ColumnValues::Json(texts),
                };
                self.put_column(planned, values);
            }
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, planned: &Planned, store: Arc<dyn Store>) {
        match planned.part {
            Use::Part(Part::Image) => self.found.images = store,
            Use::Part(Part::Mask) => self.found.masks = Some(store),
            _ => {
                let role = role_of(self.found.metadata.as_ref(), &planned.name);
                self.found.fields.push(SourceField { name: planned.name.clone(), store, role });
            }
        }
    }

    fn put_column(&mut self, planned: &Planned, values: ColumnValues) {
        let name = planned.name.clone();
        self.found.texts.push(SourceColumn { name, values });
    }

    fn put_labels(&mut self, planned: &Planned, values: LabelValues) {
        self.found.labels = Some(FoundLabels { name: planned.name.clone(), values, classes: self.classes.to_vec() });
    }

    /// Adds numbers unchanged, with NaN for nulls. A type without NaN that has nulls is converted by [`with_nulls`].
    fn put_numbers(&mut self, planned: &Planned, dtype: DType, mut bytes: Vec<u8>, nulls: &[usize]) {
        if let Some(nan) = Scalar::Double(f64::NAN).to_bytes(dtype) {
            fill(&mut bytes, dtype, nulls, &nan);
        } else if !nulls.is_empty() {
            return self.put_column(planned, with_nulls(dtype, &bytes, nulls));
        }
        if dtype == DType::Bool {
            let values = bytes.iter().map(|byte| *byte != 0).collect();
            return self.put_column(planned, ColumnValues::Bool(values));
        }
        self.put(planned, Arc::new(Numbers::new(dtype, bytes)));
    }

    /// Uses the samples' own paths if every sample has one and none of them leads outside the folder.
    fn use_paths(&mut self, paths: &TextArena, rows: usize) {
        if paths.len() == rows && are_paths(paths.iter()) {
            let paths = paths.iter().map(|path| path.as_bytes().to_vec());
            self.found.names = Names::Paths(paths.collect());
        }
    }
}

/// The store of items that may be in the spool, whose file index is now known.
fn stored(mut spans: Vec<Span>, files: &SpanFiles, spool: u32, content: Content) -> Arc<dyn Store> {
    let unpacked = spans.iter_mut().filter(|span| span.file == SPOOLED);
    unpacked.for_each(|span| span.file = spool);
    Arc::new(Spans { files: files.clone(), spans, contents: Contents::All(content) })
}

/// Overwrites the numbers of these rows with the first bytes of `value`.
fn fill(bytes: &mut [u8], dtype: DType, rows: &[usize], value: &[u8]) {
    let width = to_usize(dtype.size());
    for &row in rows {
        let start = row.saturating_mul(width);
        let place = bytes.get_mut(start..start.saturating_add(width));
        if let Some((place, value)) = place.zip(value.get(..width)) {
            place.copy_from_slice(value);
        }
    }
}

/// Numbers or booleans with nulls, of a type without NaN. As in manifests, they become floats with NaN if that loses nothing,
/// otherwise text.
fn with_nulls(dtype: DType, bytes: &[u8], nulls: &[usize]) -> ColumnValues {
    let mut nulls = nulls.iter().copied().peekable();
    let rows = Scalar::each(dtype, bytes).enumerate().map(|(row, value)| {
        let is_null = nulls.next_if_eq(&row).is_some();
        (!is_null).then_some(value)
    });
    let values: Vec<Option<Scalar>> = rows.collect();
    let fits = |value: &Scalar| match value {
        Scalar::Unsigned(value) => *value <= Scalar::EXACT_IN_F64,
        other => other.integer().is_some_and(|v| v.unsigned_abs() <= Scalar::EXACT_IN_F64),
    };
    if dtype != DType::Bool && values.iter().flatten().all(fits) {
        let float = |value: &Option<Scalar>| value.map_or(f64::NAN, Scalar::nearest_f64);
        return ColumnValues::F64(values.iter().map(float).collect());
    }
    let mut texts = TextArena::default();
    for value in values {
        match value {
            None => texts.push(""),
            Some(Scalar::Bool(value)) => texts.push(if value { "true" } else { "false" }),
            Some(value) => texts.push(&value.to_string()),
        }
    }
    ColumnValues::Text(texts)
}

/// The labels of a numeric column: class ids if all are whole numbers.
fn label_values(dtype: DType, bytes: Vec<u8>) -> LabelValues {
    match Scalar::each(dtype, &bytes).map(Scalar::class_id).collect() {
        Some(ids) => LabelValues::Ids(ids),
        None => LabelValues::Typed(Arc::new(Numbers::new(dtype, bytes))),
    }
}
