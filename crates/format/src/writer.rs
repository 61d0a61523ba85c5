//! Writes a pack in one sequential pass to any [`std::io::Write`].

use packds_system::{counted, to_u64, to_usize};
use std::io::Write;

use crate::assemble;
use crate::block::Block;
use crate::checksum::{self, crc32c};
use crate::chunk::{self, ChunkEntry};
use crate::columns::{self, COLUMN_ALIGN};
use crate::footer::{self, SECTION_ALIGN, SectionTag};
use crate::geometry::Geometry;
use crate::header::{HEADER_BYTES, Header, MINOR, Uuid};
use crate::le::{self, len_u64};
use crate::limits::Limits;
use crate::trailer::{TRAILER_BYTES, Trailer};
use crate::{Classes, FormatError, Paths, Schema, Stats};

/// The largest single write. For a larger one, Linux 6.18 moves memory to get large free blocks for its page cache. This
/// takes longer than the write.
const LARGEST_WRITE: usize = 128 << 10;

/// Properties of the pack to write.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PackOptions {
    /// The fields of a sample.
    pub schema: Schema,
    /// Samples per chunk. The last chunk may have fewer.
    pub chunk_samples: u32,
    /// Base-2 logarithm of the alignment of the body, 12 (4 KiB, the default) to 21 (2 MiB).
    pub align_log2: u8,
    /// The pack's id.
    pub pack_uuid: Uuid,
    /// The dataset's id.
    pub dataset_uuid: Uuid,
}

impl PackOptions {
    /// Options with the default alignment and all-zero ids.
    #[must_use]
    pub fn new(schema: Schema, chunk_samples: u32) -> Self {
        let none = Uuid::default();
        Self { schema, chunk_samples, align_log2: 12, pack_uuid: none, dataset_uuid: none }
    }

    /// Samples per block: as many as fit in 1 MiB, but at least 1 and at most a chunk. A variable-size item is assumed
    /// to have 64 KiB.
    #[must_use]
    pub fn block_samples(&self) -> u32 {
        const BLOCK_BYTES: u64 = 1 << 20;
        let sample: u64 =
            self.schema.body().map(|(_, f)| f.item_bytes().unwrap_or(64 << 10)).fold(0, u64::saturating_add);
        let fit = u32::try_from((BLOCK_BYTES / sample.max(1)).max(1)).unwrap_or(u32::MAX);
        fit.min(self.chunk_samples)
    }
}

/// Contents of the footer besides the tables.
#[derive(Debug, Default)]
pub struct FooterParts {
    /// Statistics.
    pub stats: Stats,
    /// Class names and counts, one entry per label field.
    pub classes: Vec<Classes>,
    /// Provenance, as the text of a JSON object. Empty if there is none.
    pub provenance: String,
    /// Source paths: none, or one per sample.
    pub paths: Paths,
}

/// Summary of the pack written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriteSummary {
    /// Number of samples.
    pub n_samples: u64,
    /// Number of chunks.
    pub n_chunks: u64,
    /// File length in bytes.
    pub file_len: u64,
    /// CRC32C of the footer.
    pub footer_crc32c: u32,
    /// Bytes from the start of the first chunk to the end of the last.
    pub body_bytes: u64,
    /// Stored size of the largest chunk in bytes.
    pub largest_chunk: u64,
}

impl WriteSummary {
    /// The summary of several files.
    #[must_use]
    pub const fn of_shards(n_samples: u64, n_chunks: u64, file_len: u64) -> Self {
        Self { n_samples, n_chunks, file_len, footer_crc32c: 0, body_bytes: 0, largest_chunk: 0 }
    }
}

/// A chunk of a pack whose body has the same fields, as it is stored.
#[derive(Debug)]
pub struct StoredChunk<'a> {
    /// The stored bytes.
    pub bytes: &'a [u8],
    /// Their CRC32C.
    pub crc32c: u32,
    /// Number of samples.
    pub n_samples: u32,
    /// The items of each column, in the order of the schema.
    pub columns: Vec<Vec<u8>>,
}

/// Writes a pack sequentially. Bytes that have been written never change. The pack is valid once its trailer is
/// written.
///
/// Memory use: one chunk of blocks, and data for the footer (4 or 32 bytes per chunk, the columns, the compressed
/// paths).
#[derive(Debug)]
pub struct PackWriter<W> {
    target: W,
    options: PackOptions,
    header: Header,
    block_samples: u32,
    /// Bytes written so far.
    position: u64,
    /// The blocks of the current chunk.
    open: Vec<Block>,
    open_samples: u32,
    /// Written blocks with memory that can be reused.
    spent: Vec<Block>,
    chunks: Vec<ChunkEntry>,
    n_samples: u64,
    columns: Vec<Vec<u8>>,
    schema_json: Vec<u8>,
}

impl<W: Write> PackWriter<W> {
    /// Writes header and schema.
    ///
    /// # Errors
    /// [`FormatError::BadValue`] or [`FormatError::LimitExceeded`] for invalid options, [`FormatError::Io`].
    pub fn new(mut target: W, options: PackOptions) -> Result<Self, FormatError> {
        Geometry::new(0, options.chunk_samples)?;
        if !(12..=21).contains(&options.align_log2) {
            return Err(FormatError::bad_value("alignment", 32, "2^12 to 2^21", options.align_log2));
        }
        let schema_json = options.schema.to_json()?;
        let schema_len = len_u64(&schema_json);
        let limit = Limits::default().json_bytes;
        FormatError::check_limit("schema", limit, schema_len)?;
        let (sample_stride, chunk_stride) = Header::strides_of(&options.schema, options.chunk_samples)?;
        let data_off = Header::data_off_of(schema_len, options.align_log2);
        let header = Header {
            minor: MINOR,
            required_features: Header::features_of(&options.schema),
            ignorable_features: 0,
            align_log2: options.align_log2,
            chunk_samples: options.chunk_samples,
            pack_uuid: options.pack_uuid,
            dataset_uuid: options.dataset_uuid,
            schema_len,
            data_off: data_off.unwrap_or(u64::MAX),
            sample_stride,
            chunk_stride,
            schema_crc32c: crc32c(&schema_json),
        };
        let columns = options.schema.columns().map(|_| Vec::new()).collect();
        target.write_all(&header.to_bytes())?;
        target.write_all(&schema_json)?;
        let mut writer = Self {
            target,
            block_samples: options.block_samples(),
            options,
            position: HEADER_BYTES + schema_len,
            open: Vec::new(),
            open_samples: 0,
            spent: Vec::new(),
            chunks: Vec::new(),
            n_samples: 0,
            columns,
            schema_json,
            header,
        };
        writer.pad_to(1 << writer.header.align_log2)?;
        Ok(writer)
    }

    /// The schema.
    #[must_use]
    pub fn schema(&self) -> &Schema {
        &self.options.schema
    }

    /// The number of samples that the next block must have, unless it is the pack's last block. All blocks of a chunk
    /// have the same number of samples, except that the last may have fewer.
    #[must_use]
    pub fn next_block_samples(&self) -> u32 {
        self.block_samples.min(self.options.chunk_samples - self.open_samples)
    }

    /// How many more samples fit in the next block if it already has `n_samples`.
    #[must_use]
    pub fn block_room(&self, n_samples: u32) -> u32 {
        self.next_block_samples().saturating_sub(n_samples)
    }

    /// Bytes written so far.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Appends a block. Once a chunk is full, it is written.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the block has more than [`next_block_samples`](Self::next_block_samples) samples,
    /// has another schema, or follows a block that is not full. [`FormatError::LimitExceeded`] if a chunk exceeds 2
    /// GiB. [`FormatError::Io`].
    pub fn append(&mut self, block: Block) -> Result<(), FormatError> {
        let n = block.n_samples;
        if n == 0 {
            return Ok(());
        }
        if !block.is_of(&self.options.schema) {
            return Err(FormatError::WrongUse("block was made for a different schema".to_owned()));
        }
        if self.open.last().is_some_and(|b| b.n_samples < self.block_samples) {
            let full = counted(self.block_samples, "sample");
            return Err(FormatError::WrongUse(format!("a block with fewer than {full} must be the last of its chunk")));
        }
        self.check_not_ended()?;
        let most = self.next_block_samples();
        if n > most {
            let most = counted(most, "sample");
            return Err(FormatError::WrongUse(format!("expected a block with at most {most}, found {n}")));
        }
        for (column, bytes) in self.columns.iter_mut().zip(&block.columns) {
            column.extend_from_slice(bytes);
        }
        self.open_samples += n;
        self.n_samples += u64::from(n);
        self.open.push(block);
        if self.open_samples == self.options.chunk_samples { self.write_chunk() } else { Ok(()) }
    }

    /// Appends a chunk of another pack with its checksum. Its bytes are those that the blocks of the same samples would
    /// give.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the last chunk is not full, or if the chunk or its columns have another size than
    /// the schema says. [`FormatError::Io`].
    #[doc(hidden)]
    pub fn append_chunk(&mut self, chunk: &StoredChunk<'_>) -> Result<(), FormatError> {
        self.check_not_ended()?;
        let (n, stored_len) = (u64::from(chunk.n_samples), len_u64(chunk.bytes));
        let item_bytes = self.options.schema.columns().map(|(_, field)| field.item_bytes());
        let are_columns = item_bytes.eq(chunk.columns.iter().map(|items| len_u64(items).checked_div(n)))
            && chunk.columns.iter().all(|items| len_u64(items).checked_rem(n) == Some(0));
        let is_full = chunk.n_samples == self.options.chunk_samples;
        let is_strided = self.options.schema.is_strided() && is_full;
        if self.open_samples > 0
            || chunk.n_samples > self.options.chunk_samples
            || !are_columns
            || (is_strided && stored_len != self.header.chunk_stride)
        {
            return Err(FormatError::WrongUse("a stored chunk must have the division of this pack".to_owned()));
        }
        if !self.options.schema.is_strided() {
            self.pad_to(1 << self.header.align_log2)?;
        }
        for (column, items) in self.columns.iter_mut().zip(&chunk.columns) {
            column.extend_from_slice(items);
        }
        let entry = ChunkEntry { offset: self.position, stored_len, crc32c: chunk.crc32c, n_samples: chunk.n_samples };
        self.write(chunk.bytes)?;
        self.chunks.push(entry);
        self.n_samples += n;
        Ok(())
    }

    /// Only the last chunk may be shorter than the others.
    fn check_not_ended(&self) -> Result<(), FormatError> {
        if self.chunks.last().is_some_and(|last| last.n_samples < self.options.chunk_samples) {
            return Err(FormatError::WrongUse("a chunk that is not full must be the last".to_owned()));
        }
        Ok(())
    }

    /// A written block for [`BlockBuilder::recycle`](crate::BlockBuilder::recycle), if there is one.
    pub fn reclaim(&mut self) -> Option<Block> {
        self.spent.pop()
    }

    fn write_chunk(&mut self) -> Result<(), FormatError> {
        if !self.options.schema.is_strided() {
            self.pad_to(1 << self.header.align_log2)?;
        }
        let blocks = std::mem::take(&mut self.open);
        let mut crc = crc32c(&[]);
        let target = &mut self.target;
        let schema = &self.options.schema;
        let stored_len =
            assemble::write_chunk(schema, self.options.chunk_samples, self.block_samples, &blocks, |bytes, piece| {
                crc = checksum::combine(crc, piece, len_u64(bytes));
                write_all(target, bytes)
            })?;
        self.chunks.push(ChunkEntry { offset: self.position, stored_len, crc32c: crc, n_samples: self.open_samples });
        self.position += stored_len;
        self.open_samples = 0;
        self.spent.extend(blocks);
        Ok(())
    }

    /// Writes the rest of the body, the columns, the footer and the trailer. Returns the target, which is not synced to
    /// disk.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if there are paths but not one per sample. [`FormatError::BadJson`] if statistics
    /// contain NaN or infinity, or if the provenance is not a JSON object. [`FormatError::LimitExceeded`] if a section
    /// or a chunk is too large. [`FormatError::Io`].
    pub fn finish(mut self, parts: FooterParts) -> Result<(W, WriteSummary), FormatError> {
        if !parts.paths.is_empty() && parts.paths.len() != self.n_samples {
            let (n, found) = (self.n_samples, parts.paths.len());
            return Err(FormatError::WrongUse(format!(
                "expected {}, one per sample, found {found}",
                counted(n, "path")
            )));
        }
        if self.open_samples > 0 {
            self.write_chunk()?;
        }
        let n_chunks = len_u64(&self.chunks);
        let body_end = self.chunks.last().map_or(self.header.data_off, |last| last.offset + last.stored_len);
        let largest_chunk = self.chunks.iter().map(|chunk| chunk.stored_len).max().unwrap_or(0);
        let mut placed = Vec::new();
        let columns = std::mem::take(&mut self.columns);
        let numbers: Vec<usize> = self.options.schema.columns().map(|(number, _)| number).collect();
        for (number, bytes) in numbers.into_iter().zip(columns) {
            self.pad_to(COLUMN_ALIGN)?;
            let offset = self.position;
            self.write(&bytes)?;
            placed.push((number, offset, bytes));
        }
        self.pad_to(SECTION_ALIGN)?;
        let sections = self.sections(parts, &placed)?;
        let footer_off = self.position;
        let (bytes, footer_crc32c) = footer::to_bytes(footer_off, &sections)?;
        self.write(&bytes)?;
        let file_len = self.position + TRAILER_BYTES;
        let trailer = Trailer {
            file_len,
            footer_off,
            footer_len: len_u64(&bytes),
            n_samples: self.n_samples,
            pack_uuid: self.header.pack_uuid,
            footer_crc32c,
        };
        self.write(&trailer.to_bytes())?;
        self.target.flush()?;
        let body_bytes = body_end - self.header.data_off;
        let summary =
            WriteSummary { n_samples: self.n_samples, n_chunks, file_len, footer_crc32c, body_bytes, largest_chunk };
        Ok((self.target, summary))
    }

    fn sections(
        &mut self,
        parts: FooterParts,
        columns: &[(usize, u64, Vec<u8>)],
    ) -> Result<Vec<(SectionTag, Vec<u8>)>, FormatError> {
        let json = |what, value: Result<Vec<u8>, serde_json::Error>| {
            let bytes = value.map_err(FormatError::json(what))?;
            // Do not write anything that readers reject by default.
            FormatError::check_limit(what, Limits::default().json_bytes, len_u64(&bytes)).map(|()| bytes)
        };
        let strided = self.options.schema.is_strided();
        // JSON turns NaN and infinity into null, which readers reject. Report such values now.
        let stats = json("statistics", serde_json::to_vec(&parts.stats))?;
        serde_json::from_slice::<Stats>(&stats).map_err(FormatError::json("statistics"))?;
        let provenance = match parts.provenance.as_str() {
            "" => Ok(b"{}".to_vec()),
            text => serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text)
                .and_then(|object| serde_json::to_vec(&object)),
        };
        let mut sections = vec![
            (SectionTag::SCHEMA, std::mem::take(&mut self.schema_json)),
            (SectionTag::CHUNKS, chunk::table_bytes(&self.chunks, strided)),
            (SectionTag::COLUMNS, columns::directory_bytes(columns)),
            (SectionTag::STATS, stats),
            (SectionTag::CLASSES, json("classes", serde_json::to_vec(&parts.classes))?),
            (SectionTag::PROVENANCE, json("provenance", provenance)?),
        ];
        if !parts.paths.is_empty() {
            sections.push((SectionTag::PATHS, parts.paths.finish()?));
        }
        Ok(sections)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), FormatError> {
        write_all(&mut self.target, bytes)?;
        self.position += to_u64(bytes.len());
        Ok(())
    }

    fn pad_to(&mut self, align: u64) -> Result<(), FormatError> {
        let end = le::align_up(self.position, align).unwrap_or(u64::MAX);
        let zeros = vec![0; to_usize(end - self.position)];
        self.write(&zeros)
    }
}

fn write_all<W: Write>(target: &mut W, bytes: &[u8]) -> Result<(), FormatError> {
    bytes.chunks(LARGEST_WRITE).try_for_each(|piece| target.write_all(piece)).map_err(FormatError::from)
}
