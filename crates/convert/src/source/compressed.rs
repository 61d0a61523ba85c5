//! Streams compressed with gzip, xz, bzip2 or zstd, recognized by their first bytes, not by name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use lzma_rust2::XzReader;
use packds_system::open_regular;

/// Bytes to read from the file at a time.
const READ_BYTES: usize = 1 << 17;
/// Number of bytes at the start of a stream that identify its compression.
const MAGIC_BYTES: u64 = 6;
/// Maximum memory for unpacking xz, in KiB. `xz -9` needs 65 MiB.
const MAX_XZ_KIB: u32 = 1 << 20;

/// How a stream is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    Gzip,
    Xz,
    Bzip2,
    Zstd,
}

/// The unpacked bytes of a stream.
pub(super) type Unpacked<'a> = Box<dyn Read + Send + 'a>;

impl Compression {
    /// Recognizes a stream by its first bytes.
    pub(super) fn of(head: &[u8]) -> Option<Self> {
        let known: [(Self, &[u8]); 4] = [
            (Self::Gzip, b"\x1f\x8b"),
            (Self::Xz, b"\xfd7zXZ\0"),
            (Self::Bzip2, b"BZh"),
            (Self::Zstd, b"\x28\xb5\x2f\xfd"),
        ];
        known.into_iter().find(|(_, magic)| head.starts_with(magic)).map(|(compression, _)| compression)
    }

    /// Unpacks a stream, or several concatenated streams.
    pub(super) fn unpack<'a>(self, packed: impl BufRead + Send + 'a) -> io::Result<Unpacked<'a>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(packed)),
            Self::Xz => Box::new(XzReader::new_mem_limit(packed, true, MAX_XZ_KIB)),
            Self::Bzip2 => Box::new(MultiBzDecoder::new(packed)),
            Self::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(packed)?),
        })
    }

    /// The usual file extension.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Xz => ".xz",
            Self::Bzip2 => ".bz2",
            Self::Zstd => ".zst",
        }
    }
}

/// A name without its compression extension, if any.
pub(super) fn without_extension(name: &str) -> &str {
    const ALL: [Compression; 4] = [Compression::Gzip, Compression::Xz, Compression::Bzip2, Compression::Zstd];
    let stem = ALL.into_iter().find_map(|compression| {
        let at = name.len().checked_sub(compression.extension().len())?;
        let (stem, end) = name.split_at_checked(at)?;
        end.eq_ignore_ascii_case(compression.extension()).then_some(stem)
    });
    stem.unwrap_or(name)
}

/// Opens the unpacked bytes of a file. `None` if it is not compressed.
pub(super) fn open(path: &Path) -> io::Result<Option<Unpacked<'static>>> {
    let mut head = Vec::new();
    open_regular(path)?.take(MAGIC_BYTES).read_to_end(&mut head)?;
    let Some(compression) = Compression::of(&head) else { return Ok(None) };
    let file: File = open_regular(path)?;
    compression.unpack(BufReader::with_capacity(READ_BYTES, file)).map(Some)
}

/// The first `n` unpacked bytes of a compressed file: fewer if it is shorter or damaged, and nothing if it is not
/// compressed.
pub(super) fn start(path: &Path, n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    if let Ok(Some(unpacked)) = open(path) {
        // Damage is reported later, when the whole stream is read.
        let _ = unpacked.take(n).read_to_end(&mut out);
    }
    out
}

/// Whether the error is about the compressed data, not about reading the file.
pub(super) fn is_damage(error: &io::Error) -> bool {
    error.raw_os_error().is_none()
}
