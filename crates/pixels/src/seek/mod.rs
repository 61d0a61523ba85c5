//! Seekable JPEG: with an index beside the unchanged file, only the visible part of a crop is decoded.
//!
//! `build_seek_index` walks through the entropy-coded data once and records, every few MCUs, the bit
//! position and the DC predictors. `Splicer` copies the bits that a crop needs to a small JPEG, which the
//! decoder handles like any other. The pixels equal those of the whole file: the copied area includes
//! the neighbours that interpolation uses. Files with several scans are not supported.
//!
//! Indexes are untrusted. A damaged index, or one for another image, gives an error, or, if that cannot be detected, wrong
//! pixels in the crop; it never causes more work or memory than the file justifies.

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

/// Builds the seek index of a JPEG: about 1 to 2 % of its size, in one pass.
///
/// `None` if the file cannot be indexed. It must have one baseline scan of one or three 8-bit components, no restart
/// markers and no damage. Progressive and arithmetic-coded files and CMYK cannot be indexed.
#[must_use]
pub fn build_seek_index(jpeg: &[u8]) -> Option<Vec<u8>> {
    let headers = Headers::parse(jpeg)?;
    let data = jpeg.get(headers.scan..)?;
    let data = data.get(..MAX_SCAN_BYTES).unwrap_or(data);
    // A splice must be able to contain dummy blocks.
    Dummies::new(&headers)?;
    let grid = Grid::new(&headers);
    let walked = walk::walk(&headers, &grid, data)?;
    index::pack(&headers, &grid, &walked)
}
