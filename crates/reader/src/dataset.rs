//! The numbers that a plan needs from a pack.

use packds_format::FieldKind;

use crate::plan::Dataset;
use crate::{Pack, ReadError};

impl Pack {
    /// The properties of this pack that plans need: how it is divided into chunks, the mean size of a chunk (stored or
    /// decompressed, whichever is larger), and the pack's identifier.
    ///
    /// # Errors
    /// [`ReadError::Format`] if the chunk table is damaged.
    pub fn dataset(&self) -> Result<Dataset, ReadError> {
        let bytes = self.stored_chunk_bytes()?.max(self.decoded_chunk_bytes());
        Ok(Dataset::new(self.geometry().merged(), bytes, &self.pack_uuid().0))
    }

    /// Mean size of a chunk in the file, or in the file that merging a set would give.
    fn stored_chunk_bytes(&self) -> Result<u64, ReadError> {
        let (body, _) = self.located(self.body_sizes())?;
        Ok(body.div_ceil(self.geometry().merged().n_chunks().max(1)))
    }

    /// Mean decompressed size of the fixed-size items in a chunk.
    fn decoded_chunk_bytes(&self) -> u64 {
        let fixed = self.schema().body().filter(|(_, f)| f.kind == FieldKind::Tensor);
        let sample = fixed.fold(0_u64, |sum, (_, f)| sum.saturating_add(f.item_bytes().unwrap_or(0)));
        let all = sample.saturating_mul(self.n_samples());
        all.div_ceil(self.geometry().merged().n_chunks().max(1))
    }
}
