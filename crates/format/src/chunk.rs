//! Chunks: the chunk table and the layout of a chunk. See docs/reference/format.md, "Body".

use packds_system::{counted, to_u64, to_usize};
use std::ops::Range;

use crate::geometry::{Geometry, check_chunk_bytes};
use crate::header::Header;
use crate::le::{self, len_u64};
use crate::limits::Limits;
use crate::{Field, FormatError, Schema};

/// Chunk table kind: chunks are at multiples of the header's chunk stride.
pub const KIND_STRIDED: u32 = 0;
/// Chunk table kind: each entry has the chunk's location.
pub const KIND_EXPLICIT: u32 = 1;
/// Bytes of one entry of an explicit chunk table.
pub const CHUNK_ENTRY_BYTES: u64 = 32;
/// Bytes of one entry of a strided chunk table.
const STRIDED_ENTRY_BYTES: u64 = 4;
/// Bytes of one entry of the part directory of an explicit chunk.
pub const PART_ENTRY_BYTES: u64 = 32;
/// Alignment of each field's part in a strided chunk of several fields.
pub const PART_ALIGN: u64 = 4096;
/// Alignment of each field's part in an explicit chunk.
pub(crate) const EXPLICIT_PART_ALIGN: u64 = 64;
/// Bytes of the chunk table before the entries.
const TABLE_HEAD: u64 = 16;

/// Location and checksum of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Where it starts in the file.
    pub offset: u64,
    /// Its stored length in bytes.
    pub stored_len: u64,
    /// CRC32C of these bytes.
    pub crc32c: u32,
    /// Number of samples in the chunk.
    pub n_samples: u32,
}

/// The offset of each body field's part in a strided chunk, and the chunk's length.
pub(crate) fn strided_parts(schema: &Schema, chunk_samples: u32) -> Result<(Vec<u64>, u64), FormatError> {
    let several = schema.body().count() > 1;
    let mut offsets = Vec::new();
    let mut end = 0_u64;
    for (_, field) in schema.body() {
        offsets.push(end);
        let bytes = field.item_bytes().unwrap_or(u64::MAX).saturating_mul(chunk_samples.into());
        end = end.saturating_add(bytes);
        if several {
            end = le::align_up(end, PART_ALIGN).unwrap_or(u64::MAX);
        }
    }
    check_chunk_bytes(end)?;
    Ok((offsets, end))
}

/// Length of a strided chunk of `n` samples. A last chunk with fewer samples is shorter than the stride only if the
/// body has a single field.
pub(crate) fn strided_len(schema: &Schema, header: &Header, n: u32) -> u64 {
    if schema.body().count() > 1 {
        header.chunk_stride
    } else {
        // At most `chunk_stride`, which has been validated.
        header.sample_stride.saturating_mul(u64::from(n))
    }
}

/// The chunk table of an open pack. Entries are read from the file on demand.
#[derive(Debug, Clone)]
pub(crate) struct ChunkTable {
    explicit: bool,
    entries_off: u64,
    /// Where the last chunk ends.
    pub(crate) body_end: u64,
}

impl ChunkTable {
    /// Parses and validates the table (`section`, at `offset` in the file).
    pub(crate) fn parse(
        section: &[u8],
        offset: u64,
        schema: &Schema,
        header: &Header,
        geometry: &Geometry,
        limits: &Limits,
    ) -> Result<Self, FormatError> {
        let n = geometry.n_chunks();
        let explicit = !schema.is_strided();
        let (entry_bytes, kind) = form_of(explicit);
        FormatError::check_value("number of chunks", offset, n, le::u64_at(section, 0))?;
        let found = le::u32_at(section, 8).map(u64::from);
        FormatError::check_value("chunk entry size", offset + 8, entry_bytes, found)?;
        FormatError::check_value("chunk table kind", offset + 12, kind, le::u32_at(section, 12))?;
        let len = n.checked_mul(entry_bytes).and_then(|bytes| bytes.checked_add(TABLE_HEAD));
        FormatError::check_value("chunk table length", offset, len.unwrap_or(u64::MAX), len_u64(section))?;
        let entries_off = offset + TABLE_HEAD;
        let body_end = if explicit {
            Self::check_explicit(section, entries_off, header, geometry, limits)?
        } else {
            Self::check_strided(schema, header, geometry, limits)?
        };
        Ok(Self { explicit, entries_off, body_end })
    }

    fn check_strided(
        schema: &Schema,
        header: &Header,
        geometry: &Geometry,
        limits: &Limits,
    ) -> Result<u64, FormatError> {
        check_limit(header.chunk_stride, limits)?;
        let Some(last) = geometry.n_chunks().checked_sub(1) else {
            return Ok(header.data_off);
        };
        let last_len = strided_len(schema, header, geometry.samples_in(last));
        let end = last.checked_mul(header.chunk_stride).and_then(|n| n.checked_add(last_len));
        end.and_then(|n| n.checked_add(header.data_off)).ok_or(FormatError::LimitExceeded {
            what: "bytes of the body",
            limit: u64::MAX,
            found: u64::MAX,
        })
    }

    fn check_explicit(
        section: &[u8],
        entries_off: u64,
        header: &Header,
        geometry: &Geometry,
        limits: &Limits,
    ) -> Result<u64, FormatError> {
        let align = 1_u64 << header.align_log2;
        let mut end = header.data_off;
        for (k, bytes) in (0_u64..).zip(section.get(16..).unwrap_or(&[]).chunks_exact(32)) {
            let at = entries_off + k * CHUNK_ENTRY_BYTES;
            let entry = Self::parse_explicit(bytes);
            let expected = le::align_up(end, align).unwrap_or(u64::MAX);
            FormatError::check_value("chunk offset", at, expected, entry.offset)?;
            check_chunk_bytes(entry.stored_len)?;
            check_limit(entry.stored_len, limits)?;
            FormatError::check_value("chunk's samples", at + 20, geometry.samples_in(k), entry.n_samples)?;
            le::check_zero("chunk entry, reserved", bytes.get(24..32).unwrap_or(&[]), at + 24)?;
            end = expected.saturating_add(entry.stored_len);
        }
        Ok(end)
    }

    fn parse_explicit(bytes: &[u8]) -> ChunkEntry {
        ChunkEntry {
            offset: le::u64_at(bytes, 0).unwrap_or(0),
            stored_len: le::u64_at(bytes, 8).unwrap_or(0),
            crc32c: le::u32_at(bytes, 16).unwrap_or(0),
            n_samples: le::u32_at(bytes, 20).unwrap_or(0),
        }
    }

    /// The entry of chunk `k`. Returns an error if there is no such chunk.
    pub(crate) fn entry(
        &self,
        file: &[u8],
        schema: &Schema,
        header: &Header,
        geometry: &Geometry,
        k: u64,
    ) -> Result<ChunkEntry, FormatError> {
        FormatError::check_index("chunk", k, geometry.n_chunks())?;
        // Opening the pack validated the length of the table.
        if self.explicit {
            let at = self.entries_off + k * CHUNK_ENTRY_BYTES;
            return le::slice("chunk entry", file, at, CHUNK_ENTRY_BYTES).map(Self::parse_explicit);
        }
        let at = self.entries_off + k * STRIDED_ENTRY_BYTES;
        let bytes = le::slice("chunk entry", file, at, STRIDED_ENTRY_BYTES)?;
        let n_samples = geometry.samples_in(k);
        Ok(ChunkEntry {
            offset: header.data_off + k * header.chunk_stride,
            stored_len: strided_len(schema, header, n_samples),
            crc32c: le::u32_at(bytes, 0).unwrap_or(0),
            n_samples,
        })
    }
}

fn check_limit(bytes: u64, limits: &Limits) -> Result<(), FormatError> {
    FormatError::check_limit("bytes of a chunk", limits.chunk_bytes, bytes)
}

/// Size of a table entry in bytes, and the kind of the table.
const fn form_of(explicit: bool) -> (u64, u32) {
    if explicit { (CHUNK_ENTRY_BYTES, KIND_EXPLICIT) } else { (STRIDED_ENTRY_BYTES, KIND_STRIDED) }
}

/// The bytes of the CHUNKS section.
pub(crate) fn table_bytes(entries: &[ChunkEntry], strided: bool) -> Vec<u8> {
    let (entry_bytes, kind) = form_of(!strided);
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&len_u64(entries).to_le_bytes());
    bytes.extend_from_slice(&u32::try_from(entry_bytes).unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&kind.to_le_bytes());
    for entry in entries {
        if !strided {
            bytes.extend_from_slice(&entry.offset.to_le_bytes());
            bytes.extend_from_slice(&entry.stored_len.to_le_bytes());
        }
        bytes.extend_from_slice(&entry.crc32c.to_le_bytes());
        if !strided {
            bytes.extend_from_slice(&entry.n_samples.to_le_bytes());
            bytes.extend_from_slice(&[0; 8]);
        }
    }
    bytes
}

/// Where a field's items are in a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartEntry {
    /// Offset of the part in the chunk.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
    /// Number of compressed blocks. 0 if the part is not compressed.
    pub n_blocks: u32,
    /// Samples per block. The last block may have fewer. 0 if the part is not compressed.
    pub block_samples: u32,
}

/// A chunk's bytes, with validated parts.
#[derive(Debug)]
pub struct ChunkView<'a> {
    schema: &'a Schema,
    chunk: u64,
    first_sample: u64,
    bytes: &'a [u8],
    n_samples: u32,
    parts: Vec<PartEntry>,
    limits: Limits,
}

impl<'a> ChunkView<'a> {
    /// Locates the parts of chunk `chunk` in `bytes`, the whole stored chunk.
    pub(crate) fn parse(
        schema: &'a Schema,
        chunk_samples: u32,
        chunk: u64,
        entry: &ChunkEntry,
        bytes: &'a [u8],
        limits: Limits,
    ) -> Result<Self, FormatError> {
        FormatError::check_value("chunk's bytes", entry.offset, entry.stored_len, len_u64(bytes))?;
        let n_samples = entry.n_samples;
        let parts = if schema.is_strided() {
            let (offsets, _) = strided_parts(schema, chunk_samples)?;
            let lens = schema.body().map(|(_, f)| f.item_bytes().unwrap_or(0) * u64::from(n_samples));
            let part = |(offset, len)| PartEntry { offset, len, n_blocks: 0, block_samples: 0 };
            offsets.into_iter().zip(lens).map(part).collect()
        } else {
            Self::parse_directory(schema, entry, bytes)?
        };
        let first_sample = chunk.saturating_mul(chunk_samples.into());
        Ok(Self { schema, chunk, first_sample, bytes, n_samples, parts, limits })
    }

    fn parse_directory(schema: &Schema, entry: &ChunkEntry, bytes: &[u8]) -> Result<Vec<PartEntry>, FormatError> {
        let n_parts = to_u64(schema.body().count());
        let directory = le::slice("part directory", bytes, 0, n_parts * PART_ENTRY_BYTES)?;
        let mut end = n_parts * PART_ENTRY_BYTES;
        let mut parts = Vec::new();
        for ((i, e), (_, field)) in (0_u64..).zip(directory.chunks_exact(32)).zip(schema.body()) {
            let at = entry.offset.saturating_add(i * PART_ENTRY_BYTES);
            let part = PartEntry {
                offset: le::u64_at(e, 0).unwrap_or(0),
                len: le::u64_at(e, 8).unwrap_or(0),
                n_blocks: le::u32_at(e, 16).unwrap_or(0),
                block_samples: le::u32_at(e, 20).unwrap_or(0),
            };
            let expected = le::align_up(end, EXPLICIT_PART_ALIGN).unwrap_or(u64::MAX);
            FormatError::check_value("part offset", at, expected, part.offset)?;
            let padding = le::slice("padding of a chunk", bytes, end, expected - end)?;
            le::check_zero("padding of a chunk", padding, entry.offset.saturating_add(end))?;
            let stored = le::slice("part", bytes, part.offset, part.len)?;
            end = expected.saturating_add(part.len);
            FormatError::check_value("part's codec", at + 24, field.codec.number(), e.get(24).copied())?;
            FormatError::check_value("part's filter", at + 25, field.codec.filter().number(), e.get(25).copied())?;
            le::check_zero("part entry, reserved", e.get(26..32).unwrap_or(&[]), at + 26)?;
            Self::check_blocks(field, entry, &part, at)?;
            Self::check_ends(field, entry, &part, stored, at)?;
            parts.push(part);
        }
        FormatError::check_value("chunk's bytes", entry.offset, end, len_u64(bytes))?;
        Ok(parts)
    }

    fn check_blocks(field: &Field, entry: &ChunkEntry, part: &PartEntry, at: u64) -> Result<(), FormatError> {
        let wrong = |expected: &str, found: u32| {
            Err(FormatError::bad_value("part's samples per block", at + 20, expected, found))
        };
        let expected = match (field.codec.is_none(), part.block_samples) {
            (true, 0) => 0,
            (true, n) => return wrong("0", n),
            (false, 0) => return wrong("at least 1", 0),
            (false, n) => entry.n_samples.div_ceil(n),
        };
        FormatError::check_value("part's blocks", at + 16, expected, part.n_blocks)
    }

    /// The number of offsets in a part's table, not counting the first: one for each item or block. `None` if the part
    /// has no table.
    fn n_ends(field: &Field, part: &PartEntry, n_samples: u32) -> Option<u64> {
        match (field.codec.is_none(), field.item_bytes()) {
            (true, Some(_)) => None,
            (true, None) => Some(n_samples.into()),
            (false, _) => Some(part.n_blocks.into()),
        }
    }

    /// Checks that fixed-size items fill a part (`bytes`) exactly, or that the part's table starts at 0 and ends at the
    /// length of the payload.
    fn check_ends(
        field: &Field,
        entry: &ChunkEntry,
        part: &PartEntry,
        bytes: &[u8],
        at: u64,
    ) -> Result<(), FormatError> {
        let Some(n) = Self::n_ends(field, part, entry.n_samples) else {
            let expected = field.item_bytes().unwrap_or(0).saturating_mul(entry.n_samples.into());
            return FormatError::check_value("part's bytes", at.saturating_add(8), expected, part.len);
        };
        let table_len = if field.codec.is_none() { (n + 1) * 8 } else { (2 * n + 1) * 8 };
        let table = le::slice("part's table", bytes, 0, table_len)?;
        let payload_len = part.len.saturating_sub(table_len);
        for (i, expected) in [(0, 0), (n, payload_len)] {
            let at = entry.offset.saturating_add(part.offset).saturating_add(i * 8);
            let found = le::u64_at(table, to_usize(i * 8));
            FormatError::check_value("end of a part's table", at, expected, found)?;
        }
        Ok(())
    }

    /// Checks what a checksum cannot detect: that the offsets in each table ascend, and that padding is zero.
    pub(crate) fn check_structure(&self, chunk_offset: u64) -> Result<(), FormatError> {
        let directory =
            if self.schema.is_strided() { 0 } else { PART_ENTRY_BYTES.saturating_mul(len_u64(&self.parts)) };
        let mut end = directory;
        for (part, (_, field)) in self.parts.iter().zip(self.schema.body()) {
            self.check_gap(end, part.offset, chunk_offset)?;
            end = part.offset.saturating_add(part.len);
            let Some(n) = Self::n_ends(field, part, self.n_samples) else { continue };
            let table = le::slice("part's table", self.bytes, part.offset, (n + 1) * 8)?;
            let mut last = 0;
            for (i, bytes) in (0_u64..).zip(table.chunks_exact(8)) {
                let found = le::u64_at(bytes, 0).unwrap_or(0);
                if found < last {
                    let at = chunk_offset.saturating_add(part.offset).saturating_add(i * 8);
                    return Err(FormatError::bad_value("part's table", at, format!("at least {last}"), found));
                }
                last = found;
            }
        }
        self.check_gap(end, len_u64(self.bytes), chunk_offset)
    }

    fn check_gap(&self, start: u64, end: u64, chunk_offset: u64) -> Result<(), FormatError> {
        let what = "padding of a chunk";
        let gap = le::slice(what, self.bytes, start, end.saturating_sub(start))?;
        le::check_zero(what, gap, chunk_offset.saturating_add(start))
    }

    /// Number of samples in the chunk.
    #[must_use]
    pub fn n_samples(&self) -> u32 {
        self.n_samples
    }

    /// The location of each body field's part, in schema order.
    #[must_use]
    pub fn parts(&self) -> &[PartEntry] {
        &self.parts
    }

    /// The body field at `position` among the body fields, its part's entry, and the part's bytes.
    fn part(&self, position: usize) -> Result<(&'a Field, PartEntry, &'a [u8]), FormatError> {
        let out = || FormatError::OutOfRange { what: "body field", index: to_u64(position), len: len_u64(&self.parts) };
        let part = *self.parts.get(position).ok_or_else(out)?;
        let (_, field) = self.schema.body().nth(position).ok_or_else(out)?;
        Ok((field, part, le::slice("part", self.bytes, part.offset, part.len)?))
    }

    /// The stored item of sample `index`. `position` is the position of an uncompressed field among the body fields.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::OutOfBounds`], or [`FormatError::WrongUse`] for a compressed field.
    pub fn stored_item(&self, position: usize, index: u32) -> Result<&'a [u8], FormatError> {
        self.check_index(index)?;
        let (field, _, bytes) = self.part(position)?;
        if !field.codec.is_none() {
            return Err(FormatError::WrongUse(format!("field `{}` is compressed: read it block by block", field.name)));
        }
        self.checked_item(field, bytes, index, (self.n_samples, index))
    }

    /// The item of sample `index` from `bytes`, a part or a decompressed block. In `bytes`, it is item `within` of `n`.
    /// Pixel filters are not undone.
    pub(crate) fn checked_item<'b>(
        &self,
        field: &Field,
        bytes: &'b [u8],
        index: u32,
        (n, within): (u32, u32),
    ) -> Result<&'b [u8], FormatError> {
        let range = self.item_range(field, bytes, index, (n, within))?;
        le::slice("item", bytes, range.start, range.end - range.start)
    }

    /// The location of an item, as for [`checked_item`](Self::checked_item).
    fn item_range(
        &self,
        field: &Field,
        bytes: &[u8],
        index: u32,
        (n, within): (u32, u32),
    ) -> Result<Range<u64>, FormatError> {
        let range = item_range(field, bytes, n, within)?;
        field.check_entries(range.end - range.start).map_err(|reason| FormatError::BadItem {
            chunk: self.chunk,
            sample: self.first_sample.saturating_add(index.into()),
            field: field.name.clone(),
            reason,
        })?;
        Ok(range)
    }

    /// The block of a compressed body field that contains sample `index`, and the sample's index in the block. `None`
    /// if the field is not compressed.
    #[must_use]
    pub fn block_of(&self, position: usize, index: u32) -> Option<(u32, u32)> {
        let block_samples = self.parts.get(position)?.block_samples;
        Some((index.checked_div(block_samples)?, index.checked_rem(block_samples)?))
    }

    /// Decompresses block `block` of a compressed body field into `out`. Returns the block's number of samples. `out`
    /// then holds the concatenated items of a tensor, or an item table and the items. Pixel filters are not undone.
    pub(crate) fn decode_block(&self, position: usize, block: u32, out: &mut Vec<u8>) -> Result<u32, FormatError> {
        let (field, part, bytes) = self.part(position)?;
        let bad = |reason| self.bad_block(field, block, reason);
        let (range, decoded) = self.block_frame(position, block)?;
        let frame = le::slice("block", bytes, range.start, range.end - range.start)?;
        let samples = part.block_samples.min(self.n_samples.saturating_sub(block.saturating_mul(part.block_samples)));
        if let Some(item) = field.item_bytes() {
            let expected = item.saturating_mul(u64::from(samples));
            if decoded != expected {
                return Err(bad(format!("expected {}, but the block table says {decoded}", counted(expected, "byte"))));
            }
        }
        FormatError::check_limit("bytes of a block", self.limits.chunk_bytes, decoded)?;
        if len_u64(frame) == decoded {
            // A block is stored uncompressed if compression would not shrink it.
            out.clear();
            out.extend_from_slice(frame);
        } else {
            field.codec.decompress(frame, decoded, out).map_err(bad)?;
        }
        Ok(samples)
    }

    /// Where item `index` of a body field is in the chunk: the range of the stored item, or of the compressed block
    /// that contains it.
    ///
    /// # Errors
    /// As for [`stored_item`](Self::stored_item), or an error in the table of blocks.
    pub fn item_place(&self, position: usize, index: u32) -> Result<Range<u64>, FormatError> {
        let (field, part, bytes) = self.part(position)?;
        self.check_index(index)?;
        let within = match self.block_of(position, index) {
            Some((block, _)) => self.block_frame(position, block)?.0,
            None => self.item_range(field, bytes, index, (self.n_samples, index))?,
        };
        Ok(part.offset.saturating_add(within.start)..part.offset.saturating_add(within.end))
    }

    /// The location of a compressed block in its part, and its decoded length according to the part's table.
    fn block_frame(&self, position: usize, block: u32) -> Result<(Range<u64>, u64), FormatError> {
        let (field, part, bytes) = self.part(position)?;
        FormatError::check_index("block", block.into(), part.n_blocks.into())?;
        let n = u64::from(part.n_blocks);
        let table_len = (2 * n + 1) * 8;
        let table = le::slice("block table", bytes, 0, table_len)?;
        let Range { start, end } = ends_at(table, block);
        let lens_at = to_usize((n + 1 + u64::from(block)) * 8);
        let decoded = le::u64_at(table, lens_at).unwrap_or(u64::MAX);
        let payload_len = part.len - table_len;
        let is_last = u64::from(block) + 1 == n;
        if start > end || (block == 0 && start != 0) || (is_last && end != payload_len) {
            let reason = format!("stored bytes {start}..{end} of {payload_len} are out of order");
            return Err(self.bad_block(field, block, reason));
        }
        let place = table_len.saturating_add(start)..table_len.saturating_add(end);
        Ok((place, decoded))
    }

    pub(crate) fn bad_block(&self, field: &Field, block: u32, reason: String) -> FormatError {
        FormatError::BadBlock { chunk: self.chunk, field: field.name.clone(), block, reason }
    }

    fn check_index(&self, index: u32) -> Result<(), FormatError> {
        FormatError::check_index("sample of the chunk", index.into(), self.n_samples.into())
    }
}

/// The location of item `index` in `bytes`. A table of `n + 1` offsets precedes variable-size items.
fn item_range(field: &Field, bytes: &[u8], n: u32, index: u32) -> Result<Range<u64>, FormatError> {
    if let Some(size) = field.item_bytes() {
        let start = size.saturating_mul(index.into());
        return Ok(start..start.saturating_add(size));
    }
    let table_len = (u64::from(n) + 1) * 8;
    let table = le::slice("item table", bytes, 0, table_len)?;
    let payload_len = len_u64(bytes) - table_len;
    let Range { start, end } = ends_at(table, index);
    if start > end || end > payload_len || (index == 0 && start != 0) || (index + 1 == n && end != payload_len) {
        return Err(FormatError::OutOfBounds {
            what: "item of variable size",
            offset: start,
            size: end.saturating_sub(start),
            len: payload_len,
        });
    }
    Ok(table_len + start..table_len + end)
}

/// The start and end of item or block `index`, from a table of offsets.
fn ends_at(table: &[u8], index: u32) -> Range<u64> {
    let at = to_usize(index).saturating_mul(8);
    let end = |at| le::u64_at(table, at).unwrap_or(u64::MAX);
    end(at)..end(at.saturating_add(8))
}
