//! Reads a pack file. Only this module turns untrusted bytes into a [`PackFile`].

use packds_system::{counted, to_u64};
use std::borrow::Cow;
use std::ops::Range;

use crate::checked::Checked;
use crate::checksum::crc32c;
use crate::chunk::{ChunkTable, ChunkView};
use crate::columns::{self, ColumnEntry, ColumnView};
use crate::filter::ItemShape;
use crate::footer::{self, SectionEntry, SectionTag};
use crate::geometry::Geometry;
use crate::header::{HEADER_BYTES, Header};
use crate::le::{self, len_u64};
use crate::limits::Limits;
use crate::trailer::{TRAILER_BYTES, Trailer};
use crate::{ChunkEntry, Classes, Coding, Field, FieldKind, FormatError, PartEntry, Role, Schema, Stats, Store, paths};

/// An open pack file. Its header, schema and tables are validated, but its chunks have not been read.
///
/// Opening reads the header, the footer's tables and the trailer. It verifies the chunk table, which takes 4 or 32
/// bytes per chunk. Opening a pack with millions of samples takes milliseconds. Columns, paths and chunks are verified
/// on first use. [`check_chunk`](crate::check_chunk) and [`check_outside_chunks`](crate::check_outside_chunks) verify
/// them in advance. Functions without `_unchecked` in their names return only verified data, or data from bytes that
/// the caller passed.
#[derive(Debug)]
pub struct PackFile<D> {
    data: D,
    header: Header,
    trailer: Trailer,
    schema: Schema,
    geometry: Geometry,
    sections: Vec<SectionEntry>,
    pub(crate) chunks: ChunkTable,
    columns: Vec<ColumnEntry>,
    /// Where the last column ends.
    pub(crate) columns_end: u64,
    limits: Limits,
    pub(crate) checked: Checked,
}

impl<D: AsRef<[u8]>> PackFile<D> {
    /// Opens a pack with the default [`Limits`].
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong and where.
    pub fn open(data: D) -> Result<Self, FormatError> {
        Self::open_with(data, Limits::default())
    }

    /// Opens a pack.
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong and where.
    pub fn open_with(data: D, limits: Limits) -> Result<Self, FormatError> {
        let file = data.as_ref();
        let file_len = len_u64(file);
        let header = Header::parse(file, file_len)?;
        let short = || FormatError::TooShort { expected: HEADER_BYTES + TRAILER_BYTES, found: file_len };
        let tail = file.last_chunk::<64>().filter(|_| file_len >= HEADER_BYTES + TRAILER_BYTES).ok_or_else(short)?;
        let trailer = Trailer::parse(tail, file_len)?;
        if trailer.pack_uuid != header.pack_uuid {
            let (expected, found) = (header.pack_uuid.to_string(), trailer.pack_uuid.to_string());
            return Err(FormatError::UuidMismatch { expected, found });
        }
        let geometry = Geometry::new(trailer.n_samples, header.chunk_samples)?;
        let sections = footer::parse(file, &trailer)?;
        let schema_entry = find(&sections, SectionTag::SCHEMA)?;
        if (schema_entry.len, schema_entry.crc32c) != (header.schema_len, header.schema_crc32c) {
            let copy = |len, crc: u32| format!("{} with CRC32C {crc:#010x}", counted(len, "byte"));
            let expected = copy(header.schema_len, header.schema_crc32c);
            let found = copy(schema_entry.len, schema_entry.crc32c);
            return Err(FormatError::bad_value("schema in the footer", schema_entry.offset, expected, found));
        }
        let schema = Schema::from_json(json_section(file, schema_entry, "schema", &limits)?)?;
        header.check_against(&schema)?;
        let entry = find(&sections, SectionTag::CHUNKS)?;
        let table = section(file, entry)?;
        let chunks = ChunkTable::parse(table, entry.offset, &schema, &header, &geometry, &limits)?;
        let entry = find(&sections, SectionTag::COLUMNS)?;
        let (columns, columns_end) =
            columns::parse_directory(section(file, entry)?, entry.offset, &schema, trailer.n_samples, chunks.body_end)?;
        // The footer follows the last column.
        let footer_off = le::align_up(columns_end, footer::SECTION_ALIGN).unwrap_or(u64::MAX);
        let at = file_len - TRAILER_BYTES + 8;
        FormatError::check_value("footer offset", at, footer_off, trailer.footer_off)?;
        Ok(Self {
            header,
            trailer,
            schema,
            geometry,
            sections,
            chunks,
            columns,
            columns_end,
            limits,
            checked: Checked::default(),
            data,
        })
    }

    /// The data that the pack was opened from.
    pub fn data(&self) -> &D {
        &self.data
    }

    /// The file's bytes, not verified.
    pub fn bytes_unchecked(&self) -> &[u8] {
        self.data.as_ref()
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The trailer.
    pub fn trailer(&self) -> &Trailer {
        &self.trailer
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The division into chunks.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The sections of the footer.
    pub fn sections(&self) -> &[SectionEntry] {
        &self.sections
    }

    /// The location of each column.
    pub fn columns(&self) -> &[ColumnEntry] {
        &self.columns
    }

    /// Number of samples.
    pub fn n_samples(&self) -> u64 {
        self.geometry.n_samples()
    }

    /// Number of chunks.
    pub fn n_chunks(&self) -> u64 {
        self.geometry.n_chunks()
    }

    /// The size of the body, from the start of the first chunk to the end of the last, and the stored size of the
    /// largest chunk, in bytes.
    ///
    /// # Errors
    /// An error if a chunk's entry is malformed.
    pub fn body_sizes(&self) -> Result<(u64, u64), FormatError> {
        let n = self.n_chunks();
        let Some(last) = n.checked_sub(1) else { return Ok((0, 0)) };
        let last = self.chunk_entry(last)?;
        let body = last.offset.saturating_add(last.stored_len).saturating_sub(self.header.data_off);
        // Strided chunks have the same size, except that the last may be smaller.
        let unlike = if self.schema.is_strided() { n.min(1) } else { n };
        let sizes = (0..unlike).map(|chunk| Ok(self.chunk_entry(chunk)?.stored_len));
        let largest = sizes.reduce(|a: Result<u64, FormatError>, b| Ok(a?.max(b?)));
        Ok((body, largest.transpose()?.unwrap_or(0)))
    }

    /// Location and checksum of a chunk.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn chunk_entry(&self, chunk: u64) -> Result<ChunkEntry, FormatError> {
        self.chunks.entry(self.bytes_unchecked(), &self.schema, &self.header, &self.geometry, chunk)
    }

    /// The stored bytes of a chunk, not verified.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn chunk_bytes_unchecked(&self, chunk: u64) -> Result<&[u8], FormatError> {
        let entry = self.chunk_entry(chunk)?;
        le::slice("chunk", self.bytes_unchecked(), entry.offset, entry.stored_len)
    }

    /// Locates the parts of a chunk in its stored bytes, however they were read.
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong with the chunk.
    pub fn view_chunk<'a>(&'a self, chunk: u64, bytes: &'a [u8]) -> Result<ChunkView<'a>, FormatError> {
        let entry = self.chunk_entry(chunk)?;
        ChunkView::parse(&self.schema, self.header.chunk_samples, chunk, &entry, bytes, self.limits)
    }

    /// The decoded item of one sample and field. On first use, it is verified against the checksum of its column, of
    /// the sample (if samples have checksums and are not compressed), or else of the chunk.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`], [`FormatError::SampleChecksum`],
    /// [`FormatError::ChunkChecksum`], or an error for malformed bytes.
    pub fn item(&self, field: usize, sample: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        self.check_sample_id(sample)?;
        let described = self.schema.fields().get(field);
        if described.is_some_and(|field| field.store == Store::Body) {
            self.check_body(sample)?;
        }
        self.item_unchecked(field, sample)
    }

    /// Like [`item`](Self::item), but verifies only columns, and no body items.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`] for a damaged column, or an error for malformed bytes.
    pub fn item_unchecked(&self, field: usize, sample: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        self.check_sample_id(sample)?;
        let out =
            || FormatError::OutOfRange { what: "field", index: to_u64(field), len: len_u64(self.schema.fields()) };
        let described = self.schema.fields().get(field).ok_or_else(out)?;
        if let Some((_, column)) = self.whole_column(field)? {
            let n = described.item_bytes().unwrap_or(0);
            return le::slice("column", column, sample.saturating_mul(n), n).map(Cow::Borrowed);
        }
        let position = self.schema.body().position(|(number, _)| number == field).ok_or_else(out)?;
        let (chunk, index) = self.geometry.locate(sample);
        let view = self.view_chunk(chunk, self.chunk_bytes_unchecked(chunk)?)?;
        match view.block_of(position, index) {
            None => view.stored_item(position, index).map(Cow::Borrowed),
            Some((block, within)) => {
                let (mut decoded, mut pixels) = (Vec::new(), Vec::new());
                let n = view.decode_block(position, block, &mut decoded)?;
                let stored = view.checked_item(described, &decoded, index, (n, within))?;
                let is_filtered = self.undo_filter(described, sample, stored, &mut pixels, &mut Vec::new())?;
                Ok(Cow::Owned(if is_filtered { pixels } else { stored.to_vec() }))
            }
        }
    }

    /// One sample's items of all body fields, in schema order. Otherwise like [`item`](Self::item).
    ///
    /// # Errors
    /// As for [`item`](Self::item).
    pub fn body_items(&self, sample: u64) -> Result<Vec<Cow<'_, [u8]>>, FormatError> {
        let items = self.schema.body().map(|(number, _)| self.item(number, sample));
        items.collect()
    }

    /// The location of a sample in the file: for each body field, its stored item or the compressed block that contains
    /// the item. The tables used for this are not verified.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], or an error if the chunk's tables are malformed.
    pub fn sample_places(&self, sample: u64) -> Result<Vec<Range<u64>>, FormatError> {
        self.check_sample_id(sample)?;
        let (chunk, index) = self.geometry.locate(sample);
        let start = self.chunk_entry(chunk)?.offset;
        let view = self.view_chunk(chunk, self.chunk_bytes_unchecked(chunk)?)?;
        let place = |position| {
            let place = view.item_place(position, index)?;
            Ok(start.saturating_add(place.start)..start.saturating_add(place.end))
        };
        (0..view.parts().len()).map(place).collect()
    }

    /// Undoes the pixel filter of an item and writes the result to `pixels`. Returns false if no filter was applied.
    pub(crate) fn undo_filter(
        &self,
        field: &Field,
        sample: u64,
        stored: &[u8],
        pixels: &mut Vec<u8>,
        lines: &mut Vec<u8>,
    ) -> Result<bool, FormatError> {
        let Some(shape) = self.filtered_shape(field, sample, stored.len())? else { return Ok(false) };
        pixels.resize(stored.len(), 0);
        field.codec.filter().undo(stored, shape, pixels, lines);
        Ok(true)
    }

    /// The shape of this item, if the field's pixel filter was applied to it.
    pub(crate) fn filtered_shape(
        &self,
        field: &Field,
        sample: u64,
        len: usize,
    ) -> Result<Option<ItemShape>, FormatError> {
        if field.codec.filter().is_none() {
            return Ok(None);
        }
        let shape = if field.kind == FieldKind::Tensor {
            field.image_shape()
        } else if self.coding(&field.name, sample)? == Some(Coding::Raw) {
            self.item_shape(&field.name, sample)?
        } else {
            None
        };
        Ok(shape.and_then(|(h, w, c)| ItemShape::new(h, w, c, len)))
    }

    /// The coding of one sample's item of an image field. `None` for other fields.
    ///
    /// # Errors
    /// As for [`item`](Self::item), for the `coding` column.
    pub fn coding(&self, field: &str, sample: u64) -> Result<Option<Coding>, FormatError> {
        let number = self.described(Role::Coding, field, sample)?;
        let number = number.and_then(|number| u8::try_from(number).ok());
        Ok(number.and_then(Coding::from_number))
    }

    /// The `(height, width, channels)` of one sample's item of an image field, from its columns or the schema.
    ///
    /// # Errors
    /// As for [`item`](Self::item), for these columns.
    pub fn item_shape(&self, field: &str, sample: u64) -> Result<Option<(u64, u64, u64)>, FormatError> {
        let described = self.schema.fields().iter().find(|f| f.name == field);
        if described.is_none_or(|f| f.kind == FieldKind::Tensor) {
            return Ok(described.and_then(Field::image_shape));
        }
        let value = |role| self.described(role, field, sample);
        let height = value(Role::Height)?;
        let (width, channels) = (value(Role::Width)?, value(Role::Channels)?);
        Ok(height.zip(width).zip(channels).map(|((h, w), c)| (h, w, c)))
    }

    fn described(&self, role: Role, of: &str, sample: u64) -> Result<Option<u64>, FormatError> {
        let Some((number, _)) = self.schema.by_role(role, Some(of)) else {
            return Ok(None);
        };
        let bytes = self.item(number, sample)?;
        Ok(match bytes.len() {
            1 => bytes.first().map(|v| u64::from(*v)),
            _ => le::u32_at(&bytes, 0).map(u64::from),
        })
    }

    /// The location of each body field's part in the first chunk of a strided body. It is the same in all chunks,
    /// except that parts of the last chunk may be shorter. `None` if the body is explicit, or if there are no chunks.
    ///
    /// # Errors
    /// An error if the first chunk's entry is malformed.
    pub fn strided_parts(&self) -> Result<Option<Vec<PartEntry>>, FormatError> {
        if !self.schema.is_strided() || self.n_chunks() == 0 {
            return Ok(None);
        }
        let view = self.view_chunk(0, self.chunk_bytes_unchecked(0)?)?;
        Ok(Some(view.parts().to_vec()))
    }

    /// The values of the column with this field number in the schema. The first use verifies the whole column.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not a column, [`FormatError::ChecksumMismatch`].
    pub fn column(&self, field: usize) -> Result<ColumnView<'_>, FormatError> {
        let column = self.whole_column(field)?;
        let found = column.zip(self.schema.fields().get(field));
        let Some(((_, bytes), described)) = found else {
            return Err(FormatError::WrongUse(format!("field {field} is not a column")));
        };
        // An item of a column is at most 1024 bytes long.
        let item_bytes = described.item_bytes().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        Ok(ColumnView::new(bytes, item_bytes, described.dtype))
    }

    /// The statistics.
    ///
    /// # Errors
    /// [`FormatError::ChecksumMismatch`], [`FormatError::BadJson`], [`FormatError::LimitExceeded`].
    pub fn stats(&self) -> Result<Stats, FormatError> {
        self.json(SectionTag::STATS, "statistics").map(Option::unwrap_or_default)
    }

    /// Class names and counts of each label field.
    ///
    /// # Errors
    /// As for [`stats`](Self::stats).
    pub fn classes(&self) -> Result<Vec<Classes>, FormatError> {
        self.json(SectionTag::CLASSES, "classes").map(Option::unwrap_or_default)
    }

    /// The provenance, as the text of a JSON object: the source of the pack, and the options used.
    ///
    /// # Errors
    /// As for [`stats`](Self::stats).
    pub fn provenance(&self) -> Result<String, FormatError> {
        let object = self.json(SectionTag::PROVENANCE, "provenance")?;
        Ok(serde_json::Value::Object(object.unwrap_or_default()).to_string())
    }

    fn json<T: serde::de::DeserializeOwned>(
        &self,
        tag: SectionTag,
        what: &'static str,
    ) -> Result<Option<T>, FormatError> {
        let Ok(entry) = find(&self.sections, tag) else { return Ok(None) };
        let bytes = json_section(self.bytes_unchecked(), entry, what, &self.limits)?;
        serde_json::from_slice(bytes).map(Some).map_err(FormatError::json(what))
    }

    /// Whether the pack stores the paths of its samples.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        find(&self.sections, SectionTag::PATHS).is_ok()
    }

    /// One sample's source path. `None` if the pack has no paths. Decompresses a group of 4096 paths. The first use
    /// verifies all paths.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`], [`FormatError::BadPaths`].
    pub fn path(&self, sample: u64) -> Result<Option<Vec<u8>>, FormatError> {
        self.check_sample_id(sample)?;
        let Some(bytes) = self.whole_paths()? else { return Ok(None) };
        let mut group = Vec::new();
        let within = paths::read_group(bytes, self.n_samples(), sample, &mut group)?;
        let n = paths::PATH_GROUP.min(self.n_samples() - (sample - within));
        paths::path_in(&group, sample / paths::PATH_GROUP, n, within).map(|path| Some(path.to_vec()))
    }

    /// Calls `each` for every sample's path, in order, until it returns an error. Does nothing if there are no paths.
    ///
    /// # Errors
    /// [`FormatError::ChecksumMismatch`], [`FormatError::BadPaths`], or the error that `each` returns.
    pub fn for_each_path<E: From<FormatError>>(
        &self,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(bytes) = self.whole_paths()? else { return Ok(()) };
        let mut group = Vec::new();
        let mut first = 0;
        while first < self.n_samples() {
            paths::read_group(bytes, self.n_samples(), first, &mut group)?;
            let n = paths::PATH_GROUP.min(self.n_samples() - first);
            for i in 0..n {
                each(first + i, paths::path_in(&group, first / paths::PATH_GROUP, n, i)?)?;
            }
            first += n;
        }
        Ok(())
    }

    pub(crate) fn check_sample_id(&self, sample: u64) -> Result<(), FormatError> {
        FormatError::check_index("sample", sample, self.n_samples())
    }
}

pub(crate) fn find(sections: &[SectionEntry], tag: SectionTag) -> Result<&SectionEntry, FormatError> {
    sections.iter().find(|s| s.tag == tag).ok_or(FormatError::MissingSection { tag })
}

/// A section's verified bytes.
pub(crate) fn section<'a>(file: &'a [u8], entry: &SectionEntry) -> Result<&'a [u8], FormatError> {
    let bytes = le::slice("section", file, entry.offset, entry.len)?;
    FormatError::check_crc(format_args!("section {}", entry.tag), entry.offset, entry.crc32c, crc32c(bytes))?;
    Ok(bytes)
}

/// A JSON section's verified bytes. Returns an error if they exceed the limit.
fn json_section<'a>(
    file: &'a [u8],
    entry: &SectionEntry,
    what: &'static str,
    limits: &Limits,
) -> Result<&'a [u8], FormatError> {
    FormatError::check_limit(what, limits.json_bytes, entry.len)?;
    section(file, entry)
}
