//! How much a reader lets a file ask for.

/// Limits on what a pack may declare before anything of that size is allocated or decompressed.
///
/// The hard limits of the format (docs/reference/format.md, "Limits") hold whatever these say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes one chunk may have, stored or decoded. Default 1 GiB.
    pub chunk_bytes: u64,
    /// The most bytes one JSON section may have. Default 16 MiB.
    pub json_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            chunk_bytes: 1 << 30,
            json_bytes: 16 << 20,
        }
    }
}

/// Samples of a pack: 2^48 - 1 at most.
pub(crate) const MAX_SAMPLES: u64 = (1 << 48) - 1;
/// Samples of a chunk.
pub(crate) const MAX_CHUNK_SAMPLES: u32 = 1 << 20;
/// Stored bytes of a chunk: Linux reads at most 2 GiB - 4 KiB in one call.
pub(crate) const MAX_CHUNK_BYTES: u64 = (2 << 30) - 4096;
/// Bytes of one sample of one field.
pub(crate) const MAX_ITEM_BYTES: u64 = 1 << 40;
/// Fields of a schema.
pub(crate) const MAX_FIELDS: usize = 1024;
/// Dimensions of a tensor.
pub(crate) const MAX_DIMS: usize = 8;
/// Bytes of a field's name.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Bytes of one sample of a column.
pub(crate) const MAX_COLUMN_ITEM_BYTES: u64 = 1024;
/// Sections of a footer.
pub(crate) const MAX_SECTIONS: u32 = 256;
