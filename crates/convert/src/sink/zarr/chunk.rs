//! Builds the chunks of an exported Zarr array on any thread: pads, frames and compresses them. Also writes shards of
//! chunks.
//!
//! The module `array` handles the metadata of the arrays.

use packds_system::to_u64;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use zarrs::array::codec::{BloscCompressor, BloscShuffleMode, blosc_compress_bytes};

use super::array::BLOSC_LEVEL;
use crate::error::ConvertError;
use crate::export::ExportCodec;

/// Encodes variable-length items as in `vlen-utf8` and `vlen-bytes`. Chunks are always full, so empty items are added
/// up to `count`.
pub(super) fn framed<'a>(items: impl Iterator<Item = &'a [u8]>, count: usize) -> Result<Vec<u8>, String> {
    let number = |n: usize| u32::try_from(n).map(u32::to_le_bytes);
    let mut out = number(count).map_err(|e| e.to_string())?.to_vec();
    let mut left = count;
    for item in items.take(count) {
        let len = number(item.len()).map_err(|_| "an item is larger than 4 GiB")?;
        out.extend_from_slice(&len);
        out.extend_from_slice(item);
        left -= 1;
    }
    out.resize(out.len() + left * 4, 0);
    Ok(out)
}

/// Compresses a chunk with elements of `element` bytes.
pub(super) fn packed(bytes: Vec<u8>, codec: ExportCodec, element: usize) -> Result<Vec<u8>, String> {
    match codec {
        ExportCodec::Gzip(level) => {
            let level = flate2::Compression::new(level);
            let mut packing = flate2::write::GzEncoder::new(Vec::new(), level);
            let written = packing.write_all(&bytes).and_then(|()| packing.finish());
            written.map_err(|e| e.to_string())
        }
        // A single call writes the size into the frame, and numcodecs needs that size.
        ExportCodec::Zstd(level) => zstd::bulk::compress(&bytes, level).map_err(|e| e.to_string()),
        ExportCodec::Blosc => {
            let shuffle = match element {
                0 | 1 => BloscShuffleMode::NoShuffle,
                _ => BloscShuffleMode::Shuffle,
            };
            let level = BLOSC_LEVEL.try_into();
            let level = level.map_err(|_| "blosc's level".to_owned())?;
            let packed = blosc_compress_bytes(&bytes, level, shuffle, element, BloscCompressor::LZ4, 0, 1);
            packed.map_err(|e| e.to_string())
        }
        _ => Ok(bytes),
    }
}

#[derive(Debug)]
pub(crate) struct Shards {
    per_shard: usize,
    open: Option<Shard>,
}

#[derive(Debug)]
struct Shard {
    path: PathBuf,
    file: BufWriter<File>,
    end: u64,
    /// Offset and length of each chunk.
    index: Vec<(u64, u64)>,
}

impl Shards {
    pub(super) fn new(per_shard: usize) -> Self {
        Self { per_shard, open: None }
    }

    /// Appends the next chunk. `path` is the path of its shard.
    pub(super) fn append(&mut self, path: &Path, chunk: &[u8]) -> Result<(), ConvertError> {
        if self.open.is_none() {
            let file = File::create(path).map_err(ConvertError::io(path))?;
            self.open = Some(Shard { path: path.to_owned(), file: BufWriter::new(file), end: 0, index: Vec::new() });
        }
        let Some(shard) = &mut self.open else {
            return Ok(());
        };
        let len = to_u64(chunk.len());
        let written = shard.file.write_all(chunk);
        written.map_err(ConvertError::io(&shard.path))?;
        shard.index.push((shard.end, len));
        shard.end += len;
        if shard.index.len() == self.per_shard {
            self.close()?;
        }
        Ok(())
    }

    /// Closes the current shard, and marks missing chunks in its index.
    pub(super) fn close(&mut self) -> Result<(), ConvertError> {
        let Some(mut shard) = self.open.take() else {
            return Ok(());
        };
        shard.index.resize(self.per_shard, (u64::MAX, u64::MAX));
        let mut index = Vec::new();
        for (offset, len) in &shard.index {
            index.extend_from_slice(&offset.to_le_bytes());
            index.extend_from_slice(&len.to_le_bytes());
        }
        let checksum = packds_format::crc32c(&index);
        index.extend_from_slice(&checksum.to_le_bytes());
        let written = shard.file.write_all(&index);
        written.and_then(|()| shard.file.flush()).map_err(ConvertError::io(&shard.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_chunk_is_filled_with_empty_items() {
        let items: [&[u8]; 2] = [b"ab", b""];
        let framed = framed(items.into_iter(), 3).unwrap();
        assert_eq!(framed, b"\x03\0\0\0\x02\0\0\0ab\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn an_unfinished_shard_says_which_chunks_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.0");
        let mut shards = Shards::new(2);
        shards.append(&path, b"abc").unwrap();
        shards.close().unwrap();
        let mut expected = b"abc".to_vec();
        expected.extend([0; 8]);
        expected.extend(3_u64.to_le_bytes());
        expected.extend([0xff; 16]);
        let checksum = packds_format::crc32c(&expected[3..]);
        expected.extend(checksum.to_le_bytes());
        assert_eq!(std::fs::read(&path).unwrap(), expected);
    }
}
