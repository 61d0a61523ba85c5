//! A gzip stream in which parts can be compressed independently, on several threads.
//!
//! Each part ends with zlib's sync flush, which ends it at a byte boundary and marks no block as the last. The parts
//! can therefore be concatenated into one gzip member. This matters because stream readers such as Python's `tarfile`
//! do not accept a second member.

use packds_system::{to_u64, to_usize};
use std::io::{self, Write};

use crc_fast::{CrcAlgorithm::Crc32IsoHdlc, checksum, checksum_combine};
use flate2::{Compress, Compression, FlushCompress};

/// The gzip header: the magic number, the method deflate, and neutral values for flags, time, level and system, so that
/// the output does not depend on the machine.
const HEAD: [u8; 10] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255];
/// Number of bytes by which the output buffer grows.
const ROOM: usize = 64 << 10;
/// An empty block that is marked as the last.
const LAST_BLOCK: [u8; 2] = [3, 0];

pub(crate) struct GzipPart {
    packed: Vec<u8>,
    /// Checksum of the uncompressed bytes.
    checksum: u64,
    bytes: u64,
}

impl GzipPart {
    /// Compresses one part. The same bytes and level always give the same result.
    pub(super) fn new(bytes: &[u8], level: u32) -> io::Result<Self> {
        let mut compress = Compress::new(Compression::new(level), false);
        let mut packed = Vec::with_capacity(bytes.len() / 2 + ROOM);
        let mut rest = bytes;
        // The part is complete once no input is left and the output did not fill the buffer. Until then, zlib requires
        // further calls with the same flush.
        while !rest.is_empty() || packed.len() == packed.capacity() || packed.is_empty() {
            packed.reserve(ROOM);
            let before = compress.total_in();
            compress.compress_vec(rest, &mut packed, FlushCompress::Sync)?;
            let read = to_usize(compress.total_in() - before);
            rest = rest.get(read..).unwrap_or_default();
        }
        Ok(Self { packed, checksum: checksum(Crc32IsoHdlc, bytes), bytes: to_u64(bytes.len()) })
    }
}

pub(crate) struct GzipStream<W> {
    out: W,
    checksum: u64,
    bytes: u64,
}

impl<W: Write> GzipStream<W> {
    pub(super) fn begin(mut out: W) -> io::Result<Self> {
        out.write_all(&HEAD)?;
        Ok(Self { out, checksum: checksum(Crc32IsoHdlc, &[]), bytes: 0 })
    }

    pub(super) fn append(&mut self, part: &GzipPart) -> io::Result<()> {
        self.checksum = checksum_combine(Crc32IsoHdlc, self.checksum, part.checksum, part.bytes);
        self.bytes = self.bytes.wrapping_add(part.bytes);
        self.out.write_all(&part.packed)
    }

    /// Ends the stream. The underlying writer must still be flushed.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&LAST_BLOCK)?;
        // Both numbers are stored modulo 2^32, in little-endian order.
        for number in [self.checksum, self.bytes] {
            let [a, b, c, d, ..] = number.to_le_bytes();
            self.out.write_all(&[a, b, c, d])?;
        }
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    #[test]
    fn parts_are_one_member_whatever_is_in_them() {
        let random: Vec<u8> = (0..100_000_u64).map(|n| packds_format::mix64(n).to_le_bytes()[0]).collect();
        let parts: [&[u8]; 5] = [b"first", &[], &random, &[0; 70_000], b"last"];
        for level in [0, 1, 6, 9] {
            for n in 0..=parts.len() {
                let mut stream = GzipStream::begin(Vec::new()).unwrap();
                for part in &parts[..n] {
                    stream.append(&GzipPart::new(part, level).unwrap()).unwrap();
                }
                let file = stream.finish().unwrap();
                let mut found = Vec::new();
                // Reads one member and checks its trailer.
                let mut decoder = GzDecoder::new(file.as_slice());
                let read = decoder.read_to_end(&mut found);
                assert!(read.is_ok(), "level {level}, {n} parts: {read:?}");
                assert_eq!(found, parts[..n].concat());
                assert!(decoder.into_inner().is_empty());
            }
        }
    }
}
