//! Copies whole chunks as they are stored, with their checksums. Each is compared with its checksum first.

use packds_format::{FieldKind, FormatError, Role, StoredChunk};
use packds_system::to_u64;

use super::Taken;
use super::blocks::Copier;
use super::totals::Totals;
use crate::error::ConvertError;

/// A chunk of a pack that becomes a chunk of the new pack.
pub(super) struct WholeChunk {
    /// The index of the pack.
    pack: usize,
    chunk: u64,
    /// The first sample in the pack.
    first: u64,
    n_samples: u64,
}

impl WholeChunk {
    /// The chunk whose samples are these `n` taken ones, if there is one.
    pub(super) fn at<D: AsRef<[u8]>>((pack, taken): (usize, &Taken<'_, D>), number: u64, n: u64) -> Option<Self> {
        let first = taken.sample(number);
        let geometry = taken.pack.geometry();
        if n == 0 || first >= taken.pack.n_samples() {
            return None;
        }
        let (chunk, place) = geometry.locate(first);
        let is_whole = place == 0 && u64::from(geometry.samples_in(chunk)) == n && taken.is_run(number, n);
        is_whole.then_some(Self { pack, chunk, first, n_samples: n })
    }
}

/// For each pack, whether its chunks can be copied as they are: they have the fields and the division of the new pack, and
/// what is counted of their items is known without decoding them.
pub(super) fn packs_with_kept_chunks<D: AsRef<[u8]>>(copier: &Copier<'_, D>, chunk_samples: u32) -> Vec<bool> {
    let has_known_sizes = copier.joined.schema.body().all(|(_, f)| f.codec.is_none() || f.kind == FieldKind::Tensor);
    let is_known = has_known_sizes && !Totals::of(copier).needs_items();
    let packs = copier.taken.iter().enumerate();
    packs
        .map(|(index, taken)| {
            is_known
                && taken.pack.geometry().chunk_samples() == chunk_samples
                && copier.joined.keeps_body(index, taken.pack)
        })
        .collect()
}

impl<D: AsRef<[u8]> + Send + Sync> Copier<'_, D> {
    /// The chunk, the columns of its samples, and what is counted.
    pub(super) fn chunk(&self, whole: &WholeChunk) -> Result<(StoredChunk<'_>, Totals), ConvertError> {
        let unknown =
            || FormatError::OutOfRange { what: "pack", index: to_u64(whole.pack), len: to_u64(self.taken.len()) };
        let taken = self.taken.get(whole.pack).ok_or_else(unknown).map_err(ConvertError::Format)?;
        self.stored(whole, taken).map_err(|error| taken.located(error))
    }

    fn stored<'a>(
        &'a self,
        whole: &WholeChunk,
        taken: &'a Taken<'_, D>,
    ) -> Result<(StoredChunk<'a>, Totals), FormatError> {
        let bytes = taken.pack.chunk_bytes(whole.chunk)?;
        let entry = taken.pack.chunk_entry(whole.chunk)?;
        let view = taken.pack.view_chunk(whole.chunk, bytes)?;
        let fields = self.joined.schema.fields();
        let body: Vec<_> = self.joined.schema.body().enumerate().collect();
        let mut columns: Vec<(usize, Vec<u8>)> =
            self.joined.schema.columns().map(|(number, _)| (number, Vec::new())).collect();
        let mut totals = Totals::of(self);
        for (place, sample) in (0..entry.n_samples).zip(whole.first..whole.first + whole.n_samples) {
            totals.begin((whole.pack, taken.pack), self.joined, sample)?;
            for (number, items) in &mut columns {
                items.extend_from_slice(&self.joined.item((whole.pack, taken.pack), *number, sample)?);
            }
            for (position, (number, field)) in &body {
                let is_checksum = fields.get(*number).is_some_and(|field| field.role == Some(Role::SampleCrc32c));
                let bytes = match field.item_bytes() {
                    Some(bytes) => bytes,
                    None => to_u64(view.stored_item(*position, place)?.len()),
                };
                if !is_checksum {
                    totals.add_size(*number, bytes);
                }
            }
        }
        let columns = columns.into_iter().map(|(_, items)| items).collect();
        Ok((StoredChunk { bytes, crc32c: entry.crc32c, n_samples: entry.n_samples, columns }, totals))
    }
}
