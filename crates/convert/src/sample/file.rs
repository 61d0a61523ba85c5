//! Reading a whole file in as few calls and copies as there can be.

use std::io::Read;
use std::path::Path;

use packds_system::open_regular;

use super::SampleError;

/// The longest file that is read: more would not fit a chunk.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Appends a file, or its first `limit` bytes, to the end of `out`: into its spare memory, without a copy in between.
pub(crate) fn append_file(path: &Path, limit: u64, out: &mut Vec<u8>) -> Result<u64, SampleError> {
    let file = open_regular(path)?;
    if limit <= MAX_FILE_BYTES {
        let read = file.take(limit).read_to_end(out)?;
        return Ok(u64::try_from(read).unwrap_or(u64::MAX));
    }
    let len = file.metadata()?.len();
    let mut read = 0_u64;
    // One byte more than the file has, so that the second read finds the end without growing the memory.
    out.reserve(
        usize::try_from(len.min(MAX_FILE_BYTES))
            .unwrap_or(0)
            .saturating_add(1),
    );
    while read.max(len) <= MAX_FILE_BYTES {
        if out.len() == out.capacity() {
            out.reserve(1 << 16);
        }
        match rustix::io::read(&file, rustix::buffer::spare_capacity(out)) {
            Ok(0) => return Ok(read),
            Ok(n) => read += u64::try_from(n).unwrap_or(0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(std::io::Error::from(error).into()),
        }
    }
    Err(SampleError::TooLarge {
        limit: MAX_FILE_BYTES,
        found: read.max(len),
    })
}
