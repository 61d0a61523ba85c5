//! Seekable JPEG: an index beside an untouched file, with which only what a crop shows is decoded.
//!
//! `build_seek_index` walks once through the entropy-coded data and notes, every few MCUs, the bit
//! and the DC predictors there. `Splicer` puts the bits that a crop needs into a small JPEG, for the
//! decoder to decode as it does any other. The pixels are those of the whole file: around the crop
//! lies what their interpolation looks at. Not for decoding, and not for files of several scans.
//!
//! No index is trusted. One that belongs to another image or is damaged gives an error, or wrong
//! pixels of the crop where that cannot be seen; never more work or memory than the file justifies.

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

/// Makes the seek index of a JPEG: about 1 to 2 % of its bytes, in one pass over them.
///
/// None where the file is not of the kind that can be indexed: one baseline scan of one or three
/// components of 8 bits, without restart markers and without damage. Progressive and arithmetic-coded
/// files, CMYK and all that is not a JPEG get none.
#[must_use]
pub fn build_seek_index(jpeg: &[u8]) -> Option<Vec<u8>> {
    let headers = Headers::parse(jpeg)?;
    let data = jpeg.get(headers.scan..)?;
    let data = data.get(..MAX_SCAN_BYTES).unwrap_or(data);
    // A splice must be able to write dummy blocks.
    Dummies::new(&headers)?;
    let grid = Grid::new(&headers);
    let walked = walk::walk(&headers, &grid, data)?;
    index::pack(&headers, &grid, &walked)
}
