//! Resource limits of a reader.

/// Limits on the sizes that a pack declares. They are checked before anything of that size is allocated or
/// decompressed.
///
/// The limits of the format itself (docs/reference/format.md, "Limits") always apply too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of a chunk, stored or decoded. Default: 1 GiB.
    pub chunk_bytes: u64,
    /// Maximum size of a JSON section. Default: 16 MiB.
    pub json_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes: 1 << 30, json_bytes: 16 << 20 }
    }
}

/// Maximum number of samples in a pack: 2^48 - 1.
pub(crate) const MAX_SAMPLES: u64 = (1 << 48) - 1;
/// Maximum number of samples in a chunk.
pub(crate) const MAX_CHUNK_SAMPLES: u32 = 1 << 20;
/// Maximum stored size of a chunk: Linux reads at most 2 GiB - 4 KiB per call.
pub(crate) const MAX_CHUNK_BYTES: u64 = (2 << 30) - 4096;
/// Maximum size of one item.
pub(crate) const MAX_ITEM_BYTES: u64 = 1 << 40;
/// Maximum number of fields.
pub(crate) const MAX_FIELDS: usize = 1024;
/// Maximum number of dimensions of a tensor.
pub(crate) const MAX_DIMS: usize = 8;
/// Maximum length of a field name.
pub(crate) const MAX_NAME_BYTES: usize = 255;
/// Maximum size of an item of a column.
pub(crate) const MAX_COLUMN_ITEM_BYTES: u64 = 1024;
/// Maximum number of sections in a footer.
pub(crate) const MAX_SECTIONS: u32 = 256;
