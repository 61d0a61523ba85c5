//! Reads a whole file with few calls and few copies.

use std::io::Read;
use std::path::Path;

use packds_system::{open_regular, to_u64, to_usize};

use super::SampleError;

/// Maximum size of a file in bytes. A larger file would not fit in a chunk.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Appends a file, or its first `limit` bytes, to `out`. A whole file is read directly into the spare capacity of
/// `out`.
pub(crate) fn append_file(path: &Path, limit: u64, out: &mut Vec<u8>) -> Result<u64, SampleError> {
    let file = open_regular(path)?;
    if limit <= MAX_FILE_BYTES {
        let read = file.take(limit).read_to_end(out)?;
        return Ok(to_u64(read));
    }
    let len = file.metadata()?.len();
    let mut read = 0_u64;
    // Reserve one byte more than the size of the file, so that the second read reaches the end without a reallocation.
    out.reserve(to_usize(len.min(MAX_FILE_BYTES)).saturating_add(1));
    while read.max(len) <= MAX_FILE_BYTES {
        if out.len() == out.capacity() {
            out.reserve(1 << 16);
        }
        match rustix::io::read(&file, rustix::buffer::spare_capacity(out)) {
            Ok(0) => return Ok(read),
            Ok(n) => read += to_u64(n),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    Err(SampleError::TooLarge { limit: MAX_FILE_BYTES, found: read.max(len) })
}
