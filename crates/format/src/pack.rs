//! A pack: one file, or a set of files that reads as one.

use packds_system::{to_u64, to_usize};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use crate::columns::ColumnView;
use crate::file::PackFile;
use crate::geometry::PackGeometry;
use crate::items::BlockItems;
use crate::manifest::{Manifest, ShardEntry};
use crate::verify::ChunkDamage;
use crate::{
    ChunkEntry, ChunkView, Classes, Coding, FormatError, Limits, PartEntry, Schema, Stats, Uuid, check_file_chunk,
};

/// Distance between the offsets of two shards, rounded up to this many bytes: a huge page. Code that reads in pages or
/// pieces never needs two shards for one of them.
pub const SHARD_ALIGN: u64 = 2 << 20;

/// An open pack: a file, or a set of files (its shards).
///
/// Samples, chunks and offsets of a set are numbered across its shards, in the order of the manifest. The offsets of a
/// shard begin at a multiple of [`SHARD_ALIGN`]. Errors about a shard name it, and use the shard's own numbers.
///
/// A file is validated when it is opened: header, schema and tables. A shard is opened and validated when its first
/// sample, chunk or value is requested. Columns, paths and chunks are verified on first use.
/// [`check_chunk`](crate::check_chunk) and [`check_outside_chunks`](crate::check_outside_chunks) verify them in advance.
/// Functions without `_unchecked` in their names return only verified data, or data from bytes that the caller passed.
#[derive(Debug)]
pub struct Pack<D> {
    files: Files<D>,
    geometry: PackGeometry,
}

#[derive(Debug)]
enum Files<D> {
    One(Box<PackFile<D>>),
    Set(Box<Set<D>>),
}

/// Opens the bytes of a shard, given its number and its entry.
pub(crate) type OpenShard<D> = dyn Fn(usize, &ShardEntry) -> Result<D, FormatError> + Send + Sync;

struct Set<D> {
    manifest: Manifest,
    /// Each shard, once it was used.
    shards: Box<[OnceLock<PackFile<D>>]>,
    /// Where the offsets of each shard begin, and where those of the last one end.
    offsets: Box<[u64]>,
    open: Box<OpenShard<D>>,
    limits: Limits,
}

impl<D> std::fmt::Debug for Set<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Set").field("manifest", &self.manifest.pack_uuid).finish_non_exhaustive()
    }
}

/// One file of a pack, and what must be added to its numbers.
#[derive(Debug)]
pub struct Part<'a, D> {
    /// The file.
    pub file: &'a PackFile<D>,
    /// The number of the file in its set.
    pub number: usize,
    /// The number of its first sample.
    pub first_sample: u64,
    /// The number of its first chunk.
    pub first_chunk: u64,
    /// Where its offsets begin.
    pub offset: u64,
    /// The path of a shard in the folder of its set.
    shard: Option<&'a str>,
}

impl<D> Clone for Part<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D> Copy for Part<'_, D> {}

impl<D> Part<'_, D> {
    /// The path of a shard in the folder of its set. `None` for a pack of one file.
    pub fn shard(&self) -> Option<&str> {
        self.shard
    }

    /// Names the shard in an error.
    fn named<T>(&self, result: Result<T, FormatError>) -> Result<T, FormatError> {
        result.map_err(|error| named(self.shard, error))
    }

    fn entry(&self, entry: ChunkEntry) -> ChunkEntry {
        ChunkEntry { offset: entry.offset.saturating_add(self.offset), ..entry }
    }
}

fn named(shard: Option<&str>, error: FormatError) -> FormatError {
    match (shard, error) {
        (None, error) | (_, error @ FormatError::Shard { .. }) => error,
        (Some(shard), error) => FormatError::Shard { shard: shard.to_owned(), source: Box::new(error) },
    }
}

impl<D: AsRef<[u8]>> Pack<D> {
    /// Opens a pack file with the default [`Limits`].
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong and where.
    pub fn open(data: D) -> Result<Self, FormatError> {
        Self::open_with(data, Limits::default())
    }

    /// Opens a pack file.
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong and where.
    pub fn open_with(data: D, limits: Limits) -> Result<Self, FormatError> {
        let file = PackFile::open_with(data, limits)?;
        Ok(Self { geometry: PackGeometry::of_file(*file.geometry()), files: Files::One(Box::new(file)) })
    }

    /// Opens a set. No shard is opened yet. `open` returns the bytes of a shard when it is first used.
    ///
    /// # Errors
    /// [`FormatError::BadManifest`] if the values of the manifest contradict each other.
    pub fn open_set(
        manifest: Manifest,
        limits: Limits,
        open: impl Fn(usize, &ShardEntry) -> Result<D, FormatError> + Send + Sync + 'static,
    ) -> Result<Self, FormatError> {
        let geometry = manifest.checked()?;
        let mut offsets = vec![0_u64];
        for shard in &manifest.shards {
            let next = shard.bytes.div_ceil(SHARD_ALIGN).saturating_mul(SHARD_ALIGN);
            let end = offsets.last().copied().unwrap_or(0).saturating_add(next);
            FormatError::check_limit("bytes of a set", u64::MAX / 2, end)?;
            offsets.push(end);
        }
        let shards = manifest.shards.iter().map(|_| OnceLock::new()).collect();
        let set = Set { shards, offsets: offsets.into(), open: Box::new(open), limits, manifest };
        Ok(Self { geometry, files: Files::Set(Box::new(set)) })
    }

    /// The manifest of a set. `None` for a file.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.files {
            Files::One(_) => None,
            Files::Set(set) => Some(&set.manifest),
        }
    }

    /// The file, unless the pack is a set.
    pub fn one(&self) -> Option<&PackFile<D>> {
        match &self.files {
            Files::One(file) => Some(file),
            Files::Set(_) => None,
        }
    }

    /// Number of files: 1, or the number of shards of a set.
    pub fn n_files(&self) -> usize {
        self.manifest().map_or(1, |manifest| manifest.shards.len())
    }

    /// A file of the pack by its number. Opens a shard if it was not used before.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::Shard`] if the shard cannot be opened or differs from the manifest.
    pub fn part(&self, number: usize) -> Result<Part<'_, D>, FormatError> {
        match &self.files {
            Files::One(file) => {
                FormatError::check_index("file", to_u64(number), 1)?;
                Ok(Part { file, number: 0, first_sample: 0, first_chunk: 0, offset: 0, shard: None })
            }
            Files::Set(set) => set.part(number, &self.geometry),
        }
    }

    /// All files, in order. Opens every shard.
    pub fn parts(&self) -> impl Iterator<Item = Result<Part<'_, D>, FormatError>> {
        (0..self.n_files()).map(|number| self.part(number))
    }

    /// The number of the file with a chunk. Opens no file.
    pub fn file_of_chunk(&self, chunk: u64) -> usize {
        self.geometry.shard_of(|start| start.chunk <= chunk).map_or(0, |(number, _)| number)
    }

    /// The files in which `has` finds a sample, given the numbers of each file's samples. Opens only these.
    fn parts_with(&self, has: impl Fn(Range<u64>) -> bool) -> impl Iterator<Item = Result<Part<'_, D>, FormatError>> {
        let samples = move |number| {
            let start = |number| self.geometry.start_of(number).map_or_else(|| self.n_samples(), |start| start.sample);
            if self.one().is_some() { 0..self.n_samples() } else { start(number)..start(number + 1) }
        };
        (0..self.n_files()).filter(move |number| has(samples(*number))).map(|number| self.part(number))
    }

    /// The file with a sample, and the number of the sample in it.
    #[inline]
    fn of_sample(&self, sample: u64) -> Result<(Part<'_, D>, u64), FormatError> {
        let Some((shard, start)) = self.geometry.shard_of(|start| start.sample <= sample) else {
            return Ok((self.part(0)?, sample));
        };
        self.check_sample_id(sample)?;
        Ok((self.part(shard)?, sample - start.sample))
    }

    /// The file with a chunk, and the number of the chunk in it.
    ///
    /// # Errors
    /// As for [`part`](Self::part).
    #[inline]
    pub fn of_chunk(&self, chunk: u64) -> Result<(Part<'_, D>, u64), FormatError> {
        let Some((shard, start)) = self.geometry.shard_of(|start| start.chunk <= chunk) else {
            return Ok((self.part(0)?, chunk));
        };
        FormatError::check_index("chunk", chunk, self.n_chunks())?;
        Ok((self.part(shard)?, chunk - start.chunk))
    }

    /// The number of the file with the byte at `offset`, and where the offsets of the file begin and end. `None` beyond
    /// the last file.
    pub fn file_at(&self, offset: u64) -> Option<(usize, Range<u64>)> {
        match &self.files {
            Files::One(file) => {
                let all = 0..file.trailer().file_len;
                all.contains(&offset).then_some((0, all))
            }
            Files::Set(set) => {
                let number = set.offsets.partition_point(|start| *start <= offset).checked_sub(1)?;
                let start = *set.offsets.get(number)?;
                let end = start.saturating_add(set.manifest.shards.get(number)?.bytes);
                Some((number, start..end))
            }
        }
    }

    /// Where the offsets of each file begin.
    pub fn file_offsets(&self) -> Vec<u64> {
        match &self.files {
            Files::One(_) => vec![0],
            Files::Set(set) => set.offsets.iter().take(self.n_files()).copied().collect(),
        }
    }

    /// The file with these bytes, and their place in it, not verified. `None` if they are not all in one file.
    ///
    /// # Errors
    /// As for [`part`](Self::part).
    pub fn place_unchecked(&self, range: &Range<u64>) -> Result<Option<(&D, Range<usize>)>, FormatError> {
        let Some((number, all)) = self.file_at(range.start).filter(|(_, all)| range.end <= all.end) else {
            return Ok(None);
        };
        let file = self.part(number)?.file;
        Ok(Some((file.data(), to_usize(range.start - all.start)..to_usize(range.end - all.start))))
    }

    /// The size of all bodies, and the stored size of the largest chunk, in bytes.
    ///
    /// # Errors
    /// An error if a chunk's entry is malformed.
    pub fn body_sizes(&self) -> Result<(u64, u64), FormatError> {
        match &self.files {
            Files::One(file) => file.body_sizes(),
            Files::Set(set) => Ok(set.manifest.shards.iter().fold((0_u64, 0), |(body, largest), shard| {
                (body.saturating_add(shard.body_bytes), shard.largest_chunk.max(largest))
            })),
        }
    }

    /// Size of all files in bytes.
    pub fn file_len(&self) -> u64 {
        match &self.files {
            Files::One(file) => file.trailer().file_len,
            Files::Set(set) => set.manifest.shards.iter().fold(0, |sum, shard| sum.saturating_add(shard.bytes)),
        }
    }

    /// One past the last offset.
    pub fn end_offset(&self) -> u64 {
        match &self.files {
            Files::One(file) => file.trailer().file_len,
            Files::Set(set) => set.offsets.last().copied().unwrap_or(0),
        }
    }

    /// The id of the file, or of this version of the set.
    pub fn pack_uuid(&self) -> Uuid {
        match &self.files {
            Files::One(file) => file.header().pack_uuid,
            Files::Set(set) => set.manifest.pack_uuid,
        }
    }

    /// The id of the dataset that the pack belongs to.
    pub fn dataset_uuid(&self) -> Uuid {
        match &self.files {
            Files::One(file) => file.header().dataset_uuid,
            Files::Set(set) => set.manifest.dataset_uuid,
        }
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        match &self.files {
            Files::One(file) => file.schema(),
            Files::Set(set) => &set.manifest.schema,
        }
    }

    /// The division into chunks.
    pub fn geometry(&self) -> &PackGeometry {
        &self.geometry
    }

    /// Number of samples.
    pub fn n_samples(&self) -> u64 {
        self.geometry.n_samples()
    }

    /// Number of chunks.
    pub fn n_chunks(&self) -> u64 {
        self.geometry.n_chunks()
    }

    /// Location and checksum of a chunk.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn chunk_entry(&self, chunk: u64) -> Result<ChunkEntry, FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.chunk_entry(own)).map(|entry| part.entry(entry))
    }

    /// The stored bytes of a chunk, not verified.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn chunk_bytes_unchecked(&self, chunk: u64) -> Result<&[u8], FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.chunk_bytes_unchecked(own))
    }

    /// The stored bytes of a chunk, verified on first use.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`] beyond the last chunk, [`FormatError::ChunkChecksum`].
    pub fn chunk_bytes(&self, chunk: u64) -> Result<&[u8], FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.chunk_bytes(own))
    }

    /// Verifies stored bytes against the checksum of their chunk.
    ///
    /// # Errors
    /// [`FormatError::ChunkChecksum`] if they differ, [`FormatError::OutOfRange`] beyond the last chunk.
    pub fn compare_chunk(&self, chunk: u64, found: u32) -> Result<(), FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.compare_chunk(own, found))
    }

    /// Locates the parts of a chunk in its stored bytes, however they were read.
    ///
    /// # Errors
    /// The [`FormatError`] says what is wrong with the chunk.
    pub fn view_chunk<'a>(&'a self, chunk: u64, bytes: &'a [u8]) -> Result<ChunkView<'a>, FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.view_chunk(own, bytes))
    }

    /// The decoded item of one sample and field. On first use, it is verified against the checksum of its column, of
    /// the sample (if samples have checksums and are not compressed), or else of the chunk.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`], [`FormatError::SampleChecksum`],
    /// [`FormatError::ChunkChecksum`], or an error for malformed bytes.
    pub fn item(&self, field: usize, sample: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.item(field, own))
    }

    /// Like [`item`](Self::item), but verifies only columns, and no body items.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`] for a damaged column, or an error for malformed bytes.
    pub fn item_unchecked(&self, field: usize, sample: u64) -> Result<Cow<'_, [u8]>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.item_unchecked(field, own))
    }

    /// One sample's items of all body fields, in schema order. Otherwise like [`item`](Self::item).
    ///
    /// # Errors
    /// As for [`item`](Self::item).
    pub fn body_items(&self, sample: u64) -> Result<Vec<Cow<'_, [u8]>>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.body_items(own))
    }

    /// Verifies one sample's body items against the sample's checksum, even if they were verified before. If samples
    /// have no checksums, verifies the sample's chunk on first use.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::SampleChecksum`], [`FormatError::ChunkChecksum`], or an error for
    /// malformed bytes.
    pub fn check_sample(&self, sample: u64) -> Result<(), FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.check_sample(own))
    }

    /// The location of a sample: for each body field, its stored item or the compressed block that contains the item.
    /// The tables used for this are not verified.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], or an error if the chunk's tables are malformed.
    pub fn sample_places(&self, sample: u64) -> Result<Vec<Range<u64>>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        let moved = |place: Range<u64>| place.start.saturating_add(part.offset)..place.end.saturating_add(part.offset);
        let places = part.named(part.file.sample_places(own))?;
        Ok(places.into_iter().map(moved).collect())
    }

    /// The coding of one sample's item of an image field. `None` for other fields.
    ///
    /// # Errors
    /// As for [`item`](Self::item), for the `coding` column.
    pub fn coding(&self, field: &str, sample: u64) -> Result<Option<Coding>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.coding(field, own))
    }

    /// The `(height, width, channels)` of one sample's item of an image field, from its columns or the schema.
    ///
    /// # Errors
    /// As for [`item`](Self::item), for these columns.
    pub fn item_shape(&self, field: &str, sample: u64) -> Result<Option<(u64, u64, u64)>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.item_shape(field, own))
    }

    /// The location of each body field's part in the first chunk of a strided body. It is the same in all chunks,
    /// except that parts of the last chunk of a file may be shorter. `None` if the body is explicit, or if there are no
    /// chunks.
    ///
    /// # Errors
    /// An error if the first chunk's entry is malformed.
    pub fn strided_parts(&self) -> Result<Option<Vec<PartEntry>>, FormatError> {
        if !self.schema().is_strided() {
            return Ok(None);
        }
        let part = self.part(0)?;
        part.named(part.file.strided_parts())
    }

    /// The location of each body field's part in a chunk. The chunk's tables are not verified.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], or an error if the chunk's tables are malformed.
    pub fn chunk_parts(&self, chunk: u64) -> Result<Vec<PartEntry>, FormatError> {
        let view = self.view_chunk(chunk, self.chunk_bytes_unchecked(chunk)?)?;
        Ok(view.parts().to_vec())
    }

    /// The values of the column with this field number in the schema. The first use verifies the whole column, in every
    /// file.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not a column, [`FormatError::ChecksumMismatch`].
    pub fn column(&self, field: usize) -> Result<ColumnView<'_>, FormatError> {
        self.column_with(field, |_| true)
    }

    /// Like [`column`](Self::column), but opens and verifies only files in which `has` finds a sample, given the numbers
    /// of each file's samples. The values of other files are missing.
    ///
    /// # Errors
    /// As for [`column`](Self::column).
    pub fn column_with(&self, field: usize, has: impl Fn(Range<u64>) -> bool) -> Result<ColumnView<'_>, FormatError> {
        if let Some(file) = self.one() {
            return file.column(field);
        }
        let mut parts = Vec::new();
        for part in self.parts_with(has) {
            let part = part?;
            parts.push((part.first_sample, part.named(part.file.column(field))?));
        }
        match ColumnView::joined(&parts) {
            Some(joined) => Ok(joined),
            None => self.part(0)?.file.column(field),
        }
    }

    /// The statistics.
    ///
    /// # Errors
    /// [`FormatError::ChecksumMismatch`], [`FormatError::BadJson`], [`FormatError::LimitExceeded`].
    pub fn stats(&self) -> Result<Stats, FormatError> {
        match &self.files {
            Files::One(file) => file.stats(),
            Files::Set(set) => Ok(set.manifest.stats.clone()),
        }
    }

    /// Class names and counts of each label field.
    ///
    /// # Errors
    /// As for [`stats`](Self::stats).
    pub fn classes(&self) -> Result<Vec<Classes>, FormatError> {
        match &self.files {
            Files::One(file) => file.classes(),
            Files::Set(set) => Ok(set.manifest.classes.clone()),
        }
    }

    /// The provenance, as the text of a JSON object: the source of the pack, and the options used.
    ///
    /// # Errors
    /// As for [`stats`](Self::stats).
    pub fn provenance(&self) -> Result<String, FormatError> {
        match &self.files {
            Files::One(file) => file.provenance(),
            Files::Set(set) => Ok(serde_json::Value::Object(set.manifest.provenance.clone()).to_string()),
        }
    }

    /// Whether the pack stores the paths of its samples.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        match &self.files {
            Files::One(file) => file.has_paths(),
            Files::Set(set) => set.manifest.has_paths,
        }
    }

    /// One sample's source path. `None` if the pack has no paths. Decompresses a group of 4096 paths. The first use
    /// verifies all paths of the sample's file.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChecksumMismatch`], [`FormatError::BadPaths`].
    pub fn path(&self, sample: u64) -> Result<Option<Vec<u8>>, FormatError> {
        let (part, own) = self.of_sample(sample)?;
        part.named(part.file.path(own))
    }

    /// Calls `each` for every sample's path, in order, until it returns an error. Does nothing if there are no paths.
    ///
    /// # Errors
    /// [`FormatError::ChecksumMismatch`], [`FormatError::BadPaths`], or the error that `each` returns.
    pub fn for_each_path<E: From<FormatError>>(&self, each: impl FnMut(u64, &[u8]) -> Result<(), E>) -> Result<(), E> {
        self.for_each_path_with(|_| true, each)
    }

    /// Like [`for_each_path`](Self::for_each_path), but only for files in which `has` finds a sample, given the numbers
    /// of each file's samples.
    ///
    /// # Errors
    /// As for [`for_each_path`](Self::for_each_path).
    pub fn for_each_path_with<E: From<FormatError>>(
        &self,
        has: impl Fn(Range<u64>) -> bool,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if let Some(file) = self.one() {
            return file.for_each_path(each);
        }
        for part in self.parts_with(has) {
            let part = part?;
            let of_shard = part.file.for_each_path(|sample, path| {
                each(part.first_sample.saturating_add(sample), path).map_err(Stop::Caller)
            });
            of_shard.map_err(|stop| stop.named(part.shard))?;
        }
        Ok(())
    }

    /// Calls `each` with every decoded item of a body field in a chunk, and its sample number, in order. `bytes` is the
    /// whole stored chunk, however it was read. Decompresses each block only once, so prefer this to
    /// [`item`](Self::item) for whole chunks.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if the field is not in the body, an error for malformed bytes, or the error that
    /// `each` returns.
    pub fn for_each_item<E: From<FormatError>>(
        &self,
        field: usize,
        chunk: u64,
        bytes: &[u8],
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (part, own) = self.of_chunk(chunk)?;
        let done = part.file.for_each_item(field, own, bytes, |sample, item| {
            each(part.first_sample.saturating_add(sample), item).map_err(Stop::Caller)
        });
        done.map_err(|stop| stop.named(part.shard))
    }

    /// Calls `each` with the number and the decoded item of each of these samples, in the given order. Ascending order
    /// is fastest. The field may be in the body or a column. In compressed chunks, only the necessary blocks are
    /// decompressed. Chunks and columns are verified on first use.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], [`FormatError::ChunkChecksum`], [`FormatError::ChecksumMismatch`], an error for
    /// malformed bytes, or the error that `each` returns.
    pub fn for_each_item_in<E: From<FormatError>>(
        &self,
        field: usize,
        samples: impl IntoIterator<Item = u64>,
        mut each: impl FnMut(u64, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut samples = samples.into_iter().peekable();
        while let Some(first) = samples.peek() {
            let (part, _) = self.of_sample(*first)?;
            let end = part.first_sample.saturating_add(part.file.n_samples());
            let is_last = self.one().is_some();
            let own = std::iter::from_fn(|| {
                let in_part = |sample: &u64| is_last || (part.first_sample..end).contains(sample);
                samples.next_if(in_part).map(|sample| sample - part.first_sample)
            });
            let done = part.file.for_each_item_in(field, own, |sample, item| {
                each(part.first_sample.saturating_add(sample), item).map_err(Stop::Caller)
            });
            done.map_err(|stop| stop.named(part.shard))?;
        }
        Ok(())
    }

    /// Decodes block `block` of a compressed field into `items`, reusing its memory. `position` is the position of the
    /// field among the body fields. `bytes` is the whole stored chunk, however it was read.
    ///
    /// # Errors
    /// [`FormatError::OutOfRange`], or an error for malformed bytes. After an error, the contents of `items` are
    /// unspecified.
    pub fn block_items(
        &self,
        position: usize,
        chunk: u64,
        bytes: &[u8],
        block: u32,
        items: &mut BlockItems,
    ) -> Result<(), FormatError> {
        let (part, own) = self.of_chunk(chunk)?;
        part.named(part.file.block_items(position, own, bytes, block, items))
    }

    fn check_sample_id(&self, sample: u64) -> Result<(), FormatError> {
        FormatError::check_index("sample", sample, self.n_samples())
    }
}

impl<D: AsRef<[u8]>> Set<D> {
    fn part(&self, number: usize, geometry: &PackGeometry) -> Result<Part<'_, D>, FormatError> {
        let out = || FormatError::OutOfRange {
            what: "shard",
            index: to_u64(number),
            len: to_u64(self.manifest.shards.len()),
        };
        let (entry, slot) = self.manifest.shards.get(number).zip(self.shards.get(number)).ok_or_else(out)?;
        let file = match slot.get() {
            Some(file) => file,
            None => {
                let opened = self.opened(number, entry).map_err(|error| named(Some(&entry.path), error))?;
                slot.get_or_init(|| opened)
            }
        };
        let start = geometry.start_of(number).ok_or_else(out)?;
        Ok(Part {
            file,
            number,
            first_sample: start.sample,
            first_chunk: start.chunk,
            offset: self.offsets.get(number).copied().unwrap_or(0),
            shard: Some(&entry.path),
        })
    }

    /// Opens a shard and compares it with its entry.
    fn opened(&self, number: usize, entry: &ShardEntry) -> Result<PackFile<D>, FormatError> {
        let file = PackFile::open_with((self.open)(number, entry)?, self.limits)?;
        let same = |what, expected: String, found: String| {
            let differs = expected != found;
            if differs { Err(FormatError::OtherShard { what, expected, found }) } else { Ok(()) }
        };
        let found = ShardEntry::of(entry.path.clone(), &file)?;
        let (expected, found) = (entry.described(), found.described());
        for ((what, expected), (_, found)) in expected.into_iter().zip(found) {
            same(what, expected, found)?;
        }
        let chunk_samples = file.header().chunk_samples;
        same("samples per chunk", self.manifest.chunk_samples.to_string(), chunk_samples.to_string())?;
        if *file.schema() != self.manifest.schema {
            let json = |schema: &Schema| schema.to_json().map(|json| String::from_utf8_lossy(&json).into_owned());
            same("schema", json(&self.manifest.schema)?, json(file.schema())?)?;
        }
        same("has_paths", self.manifest.has_paths.to_string(), file.has_paths().to_string())?;
        Ok(file)
    }
}

/// Why iterating over a shard stopped. Errors of the caller are not about the shard.
enum Stop<E> {
    Caller(E),
    Shard(FormatError),
}

impl<E> From<FormatError> for Stop<E> {
    fn from(error: FormatError) -> Self {
        Self::Shard(error)
    }
}

impl<E: From<FormatError>> Stop<E> {
    fn named(self, shard: Option<&str>) -> E {
        match self {
            Self::Caller(error) => error,
            Self::Shard(error) => named(shard, error).into(),
        }
    }
}

/// Verifies a chunk's stored bytes, however they were read, against the chunk's checksum. Also checks the chunk's
/// tables, and that all bytes outside the chunk's parts are zero. Decompresses only if the checksum fails.
///
/// # Errors
/// The damage found. If the chunk's checksum does not match, samples are checked one by one to identify the damaged
/// ones.
pub fn check_chunk<D: AsRef<[u8]>>(pack: &Pack<D>, chunk: u64, bytes: &[u8]) -> Result<(), ChunkDamage> {
    let plain = |error| ChunkDamage { error, bad_samples: Vec::new() };
    let (part, own) = pack.of_chunk(chunk).map_err(plain)?;
    check_file_chunk(part.file, own, bytes).map_err(|damage| ChunkDamage {
        error: named(part.shard, damage.error),
        bad_samples: damage.bad_samples.into_iter().map(|sample| sample + part.first_sample).collect(),
    })
}

/// Checks everything in every file except the chunks: the copy of the schema after the header, the columns, every
/// section and all padding. Also compares the classes and statistics of a set with those of its shards. Does not repeat
/// the checks of [`Pack::open`].
///
/// # Errors
/// The first 100 errors of each file, in order.
pub fn check_outside_chunks<D: AsRef<[u8]>>(pack: &Pack<D>) -> Result<(), Vec<FormatError>> {
    let (mut errors, mut files) = (Vec::new(), Vec::new());
    for part in pack.parts() {
        if let Ok(Part { shard: Some(shard), file, .. }) = &part {
            files.push((*shard, *file));
        }
        let found = match part {
            Ok(part) => match crate::verify::check_outside_chunks(part.file) {
                Ok(()) => Vec::new(),
                Err(errors) => errors.into_iter().map(|error| named(part.shard, error)).collect(),
            },
            Err(error) => vec![error],
        };
        errors.extend(found);
    }
    if let Some(manifest) = pack.manifest() {
        errors.extend(crate::summed::check(manifest, &files));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}
