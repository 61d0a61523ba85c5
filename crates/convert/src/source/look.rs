//! A look into the header of an image file, where names alone do not tell what a folder holds.

use std::io::Read;
use std::path::Path;

use packds_pixels::probe;
use packds_system::open_regular;

/// Enough bytes for most headers.
const HEAD_BYTES: u64 = 64 << 10;
/// Equal names of fewer files than this are no evidence.
pub(super) const MIN_FILES: usize = 3;
/// Number of pairs of files with equal names to look into.
pub(super) const MAX_LOOKED: usize = 4;

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) size: (u32, u32),
    /// It may be a mask: it has a palette, or one channel of at most 8 bits.
    pub(super) is_mask: bool,
}

/// Looks into an image file. None if the header cannot be read.
pub(super) fn look_at(path: &Path) -> Option<Look> {
    let mut head = Vec::new();
    open_regular(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let info = probe(&head).ok()?;
    Some(Look { size: (info.width, info.height), is_mask: (info.palette || info.channels == 1) && info.bit_depth <= 8 })
}
