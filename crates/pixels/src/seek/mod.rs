//! Seekable JPEG. With an index next to the unchanged file, only the visible part of a crop is decoded.
//!
//! `build_seek_index` walks through the entropy-coded data once. Every few MCUs, it records the bit position and the DC
//! predictors. `Splicer` copies the bits that a crop needs into a small JPEG, which the decoder handles like any other.
//! The pixels are equal to those of the whole file, because the copied area includes the neighbours that interpolation
//! uses. Files with several scans are not supported.
//!
//! Indexes are untrusted. If an index is damaged or belongs to another image, the result is an error. If that cannot be
//! detected, the pixels in the crop are wrong. An index never causes more work or memory than the file justifies.

mod headers;
mod huffman;
mod index;
mod splice;
#[cfg(test)]
mod tests;
mod walk;

use headers::Headers;
use index::{Grid, MAX_SCAN_BYTES};
use splice::Dummies;

pub(crate) use splice::Splicer;

/// Builds the seek index of a JPEG in one pass. Its size is about 1 to 2 % of the file's size.
///
/// `None` if the file cannot be indexed. It must have one baseline scan of one or three 8-bit components, no restart
/// markers and no damage. Progressive, arithmetic-coded and CMYK files cannot be indexed.
#[must_use]
pub fn build_seek_index(jpeg: &[u8]) -> Option<Vec<u8>> {
    let headers = Headers::parse(jpeg)?;
    let data = jpeg.get(headers.scan..)?;
    let data = data.get(..MAX_SCAN_BYTES).unwrap_or(data);
    // There must be space for the codes of dummy blocks.
    Dummies::new(&headers)?;
    let grid = Grid::new(&headers);
    let walked = walk::walk(&headers, &grid, data)?;
    index::pack(&headers, &grid, &walked)
}
