//! Reads the items of a chunk in order, decompressing every block only once.
//!
//! For random access, use [`PackFile::item`], which decompresses a block for each item.

use packds_system::to_u64;
use std::cell::RefCell;

use crate::chunk::ChunkView;
use crate::file::PackFile;
use crate::filter::ItemShape;
use crate::le;
use crate::{Field, FormatError};

/// Access to the items of a chunk in any order. Sample order is fastest.
pub(crate) struct ChunkItems<'a, D> {
    pack: &'a PackFile<D>,
    view: ChunkView<'a>,
    first_sample: u64,
    /// The last decompressed block of each body field.
    blocks: Vec<DecodedBlock>,
    pixels: Vec<u8>,
    lines: Vec<u8>,
}

/// A decompressed block. Pixel filters are not undone.
#[derive(Default)]
struct DecodedBlock {
    /// The block's number, and its number of samples. The outer `None` means that no block was decompressed yet. The
    /// number of samples is `None` if decompression failed.
    number: Option<(u32, Option<u32>)>,
    bytes: Vec<u8>,
}

impl<'a, D: AsRef<[u8]>> ChunkItems<'a, D> {
    /// The items of chunk `chunk`, whose stored bytes are `bytes`.
    pub(crate) fn new(pack: &'a PackFile<D>, chunk: u64, bytes: &'a [u8]) -> Result<Self, FormatError> {
        let view = pack.view_chunk(chunk, bytes)?;
        let blocks = view.parts().iter().map(|_| DecodedBlock::default());
        Ok(Self {
            pack,
            blocks: blocks.collect(),
            view,
            first_sample: pack.geometry().first_sample(chunk),
            pixels: Vec::new(),
            lines: Vec::new(),
        })
    }

    /// Item `index` of the chunk, for the field at `position` among the body fields.
    pub(crate) fn item(&mut self, position: usize, index: u32) -> Result<&[u8], FormatError> {
        let out = || FormatError::OutOfRange { what: "body field", index: to_u64(position), len: to_u64(usize::MAX) };
        let (_, field) = self.pack.schema().body().nth(position).ok_or_else(out)?;
        let Some((number, within)) = self.view.block_of(position, index) else {
            return self.view.stored_item(position, index);
        };
        let block = self.blocks.get_mut(position).ok_or_else(out)?;
        if block.number.is_none_or(|(last, _)| last != number) {
            block.number = Some((number, None));
            let n = self.view.decode_block(position, number, &mut block.bytes)?;
            block.number = Some((number, Some(n)));
        }
        let Some((_, Some(n))) = block.number else {
            // The reason was reported with an earlier sample of the same block.
            return Err(self.view.bad_block(field, number, "decompressing it already failed".to_owned()));
        };
        let item = self.view.checked_item(field, &block.bytes, index, (n, within))?;
        let sample = self.first_sample.saturating_add(u64::from(index));
        let is_filtered = self.pack.undo_filter(field, sample, item, &mut self.pixels, &mut self.lines)?;
        Ok(if is_filtered { &self.pixels } else { item })
    }
}

thread_local! {
    /// A decompressed block, and one row of each plane. Each thread reuses this memory, because allocating it takes as
    /// long as decompressing.
    static UNDOING: RefCell<(Vec<u8>, Vec<u8>)> = RefCell::default();
}

/// The items of one decompressed block. The memory can be reused.
#[derive(Debug, Default)]
pub struct BlockItems {
    bytes: Vec<u8>,
    /// The end of each item in the decompressed bytes.
    ends: Vec<usize>,
}

impl BlockItems {
    /// Copies a block's decompressed items, which together have at most `most` bytes. Undoes the pixel filter of each
    /// item that has a shape.
    fn fill<'a>(
        &mut self,
        field: &Field,
        items: impl Iterator<Item = Result<(&'a [u8], Option<ItemShape>), FormatError>>,
        most: usize,
        lines: &mut Vec<u8>,
    ) -> Result<(), FormatError> {
        self.ends.clear();
        // The old contents need not be cleared, because they are overwritten.
        self.bytes.resize(most, 0);
        let mut start = 0_usize;
        for item in items {
            let (item, shape) = item?;
            let end = start.saturating_add(item.len());
            let to = self.bytes.get_mut(start..end).unwrap_or_default();
            match shape {
                None if to.len() == item.len() => to.copy_from_slice(item),
                None => {}
                Some(shape) => field.codec.filter().undo(item, shape, to, lines),
            }
            self.ends.push(end);
            start = end;
        }
        Ok(())
    }

    /// Number of items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory allocated for the bytes of the items.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Item `within` of the block. `None` beyond the last item.
    #[must_use]
    pub fn item(&self, within: u32) -> Option<&[u8]> {
        let within = usize::try_from(within).ok()?;
        let start = match within.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.bytes.get(start..*self.ends.get(within)?)
    }
}

impl<D: AsRef<[u8]>> PackFile<D> {
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
        let wrong = || FormatError::WrongUse(format!("field {field} is not in the body"));
        let position = self.schema().body().position(|(number, _)| number == field);
        let position = position.ok_or_else(wrong)?;
        let mut items = ChunkItems::new(self, chunk, bytes)?;
        let first = self.geometry().first_sample(chunk);
        for index in 0..self.geometry().samples_in(chunk) {
            each(first + u64::from(index), items.item(position, index)?)?;
        }
        Ok(())
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
        let mut samples = samples.into_iter();
        let Some(position) = self.schema().body().position(|(number, _)| number == field) else {
            return samples.try_for_each(|sample| each(sample, &self.item(field, sample)?));
        };
        let mut open: Option<(u64, ChunkItems<'_, D>)> = None;
        for sample in samples {
            self.check_sample_id(sample)?;
            let (chunk, index) = self.geometry().locate(sample);
            if open.as_ref().is_none_or(|(number, _)| *number != chunk) {
                open = Some((chunk, ChunkItems::new(self, chunk, self.chunk_bytes(chunk)?)?));
            }
            if let Some((_, items)) = &mut open {
                each(sample, items.item(position, index)?)?;
            }
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
        let view = self.view_chunk(chunk, bytes)?;
        let out = || FormatError::OutOfRange {
            what: "body field",
            index: to_u64(position),
            len: to_u64(self.schema().body().count()),
        };
        let (_, field) = self.schema().body().nth(position).ok_or_else(out)?;
        let block_samples = view.parts().get(position).map_or(0, |p| p.block_samples);
        let first_index = block.saturating_mul(block_samples);
        let first = self.geometry().first_sample(chunk) + u64::from(first_index);
        UNDOING.with_borrow_mut(|(decoded, lines)| {
            let n = view.decode_block(position, block, decoded)?;
            let decoded = &*decoded;
            let each = (0..n).zip(first..).map(|(within, sample)| {
                let item = view.checked_item(field, decoded, first_index.saturating_add(within), (n, within))?;
                Ok((item, self.filtered_shape(field, sample, item.len())?))
            });
            items.fill(field, each, decoded.len(), lines)
        })
    }

    /// The samples of a chunk that do not match their checksums or cannot be decoded. Empty if samples have no
    /// checksums.
    pub(crate) fn bad_samples(&self, chunk: u64, bytes: &[u8]) -> Vec<u64> {
        let Some((column, _)) = self.schema().by_role(crate::Role::SampleCrc32c, None) else {
            return Vec::new();
        };
        let first = self.geometry().first_sample(chunk);
        let n = self.geometry().samples_in(chunk);
        let samples = first..first.saturating_add(u64::from(n));
        let Ok(mut items) = ChunkItems::new(self, chunk, bytes) else {
            return samples.collect();
        };
        let n_fields = self.schema().body().count();
        let mut is_good = |sample: u64, index: u32| {
            let stored = self.item(column, sample)?;
            let mut crc = crate::Crc32c::new();
            for position in 0..n_fields {
                crc.update(items.item(position, index)?);
            }
            Ok::<_, FormatError>(le::u32_at(&stored, 0) == Some(crc.value()))
        };
        let bad = samples.zip(0..n).filter(|&(sample, index)| !is_good(sample, index).unwrap_or(false));
        bad.map(|(sample, _)| sample).collect()
    }
}
