//! Files of Riegeli: chunks of records, in blocks of 64 KiB. Every checksum is verified.
//!
//! <https://github.com/google/riegeli/blob/master/doc/riegeli_records_file_format.md> specifies them.

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use brotli_decompressor::Decompressor;
use packds_system::{counted, to_u64};
use snap::raw::{Decoder, decompress_len};

use super::highway::hash;
use crate::error::ConvertError;
use crate::source::protobuf::Message;
use crate::source::store::OpenFile;

/// Bytes of a block, and of the header at its start.
pub(super) const BLOCK: u64 = 1 << 16;
const BLOCK_HEADER: u64 = 24;
const CHUNK_HEADER: u64 = 40;
/// Maximum number of bytes of a chunk, packed or unpacked, because it is unpacked in memory.
const MAX_CHUNK: u64 = 1 << 30;
/// Bytes that the decompressor of Brotli reads at once.
const BUFFER: usize = 1 << 14;

/// The first bytes of every file: the header of the first block, and a chunk without data.
pub(super) const SIGNATURE: [u8; 64] = [
    0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x91, 0xba,
    0xc2, 0x3c, 0x92, 0x87, 0xe1, 0xa9, 0, 0, 0, 0, 0, 0, 0, 0, 0xe1, 0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72, b's',
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// An open file.
pub(super) struct Riegeli {
    path: PathBuf,
    file: OpenFile,
}

/// The records of a chunk.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) values: Vec<u8>,
    /// Where each record is in the values.
    pub(super) ranges: Vec<Range<usize>>,
}

/// The header of a chunk, after its checksum.
struct Header {
    data_bytes: u64,
    data_hash: u64,
    kind: u8,
    n_records: u64,
    values_bytes: u64,
}

impl Header {
    /// Reads the numbers of a header.
    fn of(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |number: usize| words.get(number).map(|word| u64::from_le_bytes(*word));
        let [kind, ..] = *words.get(3)?;
        Some(Self { data_bytes: word(1)?, data_hash: word(2)?, kind, n_records: word(3)? >> 8, values_bytes: word(4)? })
    }
}

impl Riegeli {
    /// Opens a file, and checks its first bytes and its length.
    pub(super) fn open(path: &Path) -> Result<Self, ConvertError> {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let riegeli = Self { path: path.to_owned(), file };
        let n = riegeli.bytes();
        let head = riegeli.bytes_at(0, n.min(to_u64(SIGNATURE.len())))?;
        if head != SIGNATURE {
            return Err(riegeli.wrong("byte 0", "expected the signature of Riegeli, found other bytes"));
        }
        if !n.is_multiple_of(BLOCK) || n < 2 * BLOCK {
            let reason = format!(
                "expected two or more blocks of {BLOCK} bytes, found {n} bytes: the file is cut off, or was not closed by its writer"
            );
            return Err(riegeli.wrong("", &reason));
        }
        Ok(riegeli)
    }

    fn bytes_at(&self, at: u64, n: u64) -> Result<Vec<u8>, ConvertError> {
        self.file.bytes_at(at, n).map_err(|error| self.wrong(&format!("byte {at}"), &error.to_string()))
    }

    /// The size of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.file.bytes
    }

    pub(super) fn wrong(&self, place: &str, reason: &str) -> ConvertError {
        ConvertError::malformed(&self.path, place, reason)
    }

    /// The records of the chunk that begins at `at`.
    pub(super) fn records(&self, at: u64) -> Result<Records, ConvertError> {
        let place = format!("chunk at byte {at}");
        let wrong = |reason: String| self.wrong(&place, &reason);
        if (1..BLOCK_HEADER).contains(&(at % BLOCK)) {
            return Err(wrong("a chunk cannot begin in the header of a block".to_owned()));
        }
        let mut end = at;
        let head = self.read(&mut end, CHUNK_HEADER, &place)?;
        let is_sound = head.split_first_chunk::<8>().is_some_and(|(sum, rest)| u64::from_le_bytes(*sum) == hash(rest));
        let Some(header) = Header::of(&head).filter(|_| is_sound) else {
            return Err(wrong("the checksum of its header is wrong: the file is damaged".to_owned()));
        };
        if header.data_bytes > MAX_CHUNK || header.values_bytes > MAX_CHUNK {
            let found = header.data_bytes.max(header.values_bytes);
            let reason = format!("expected a chunk of at most {MAX_CHUNK} bytes, found {found}");
            let hint = "write the file again with fewer records in a group (group_size:1)";
            return Err(ConvertError::unsupported(&self.path, &place, reason, hint));
        }
        let data = self.read(&mut end, header.data_bytes, &place)?;
        if hash(&data) != header.data_hash {
            return Err(wrong("the checksum of its data is wrong: the file is damaged".to_owned()));
        }
        match header.kind {
            b'r' => Records::of(&data, &header).map_err(wrong),
            b't' => {
                let hint = "write the file again without the option transpose:true";
                Err(ConvertError::unsupported(&self.path, &place, "its records are transposed", hint))
            }
            other => Err(wrong(format!("expected records, found a chunk of type '{}'", other.escape_ascii()))),
        }
    }

    /// Reads `n` bytes from `at` on, without the headers of blocks between them. Moves `at` to their end.
    fn read(&self, at: &mut u64, n: u64, place: &str) -> Result<Vec<u8>, ConvertError> {
        let left = self.bytes().saturating_sub(*at);
        if n > left {
            let reason = format!("expected {n} bytes at byte {at}, found {left}: the file is cut off or damaged");
            return Err(self.wrong(place, &reason));
        }
        let mut out = Vec::new();
        let mut rest = n;
        while rest > 0 {
            if at.is_multiple_of(BLOCK) {
                let header = self.bytes_at(*at, BLOCK_HEADER)?;
                let sum = header.split_first_chunk::<8>();
                if sum.is_none_or(|(sum, rest)| u64::from_le_bytes(*sum) != hash(rest)) {
                    let reason = "the checksum of the header is wrong: the file is damaged";
                    return Err(self.wrong(&format!("block at byte {at}"), reason));
                }
                *at += BLOCK_HEADER;
            }
            let step = rest.min(BLOCK - *at % BLOCK);
            out.extend(self.bytes_at(*at, step)?);
            *at += step;
            rest -= step;
        }
        Ok(out)
    }
}

impl Records {
    /// The records of a chunk: a compression, the packed sizes, and the packed values.
    fn of(data: &[u8], header: &Header) -> Result<Self, String> {
        let (compression, rest) = data.split_first().ok_or("expected a compression, found no data")?;
        let (sizes_bytes, rest) = varint(rest)?;
        let (sizes, values) = usize::try_from(sizes_bytes)
            .ok()
            .and_then(|n| rest.split_at_checked(n))
            .ok_or_else(|| format!("expected {sizes_bytes} bytes of sizes, found {}", rest.len()))?;
        let sizes = unpacked(*compression, sizes)?;
        let values = unpacked(*compression, values)?;
        let (mut message, mut ranges, mut end) = (Message::new(&sizes), Vec::new(), 0_usize);
        while let Some(size) = message.next_varint()? {
            let start = end;
            let next = usize::try_from(size).ok().and_then(|size| end.checked_add(size));
            end = next.filter(|end| *end <= values.len()).ok_or_else(|| {
                format!("expected records of {} bytes in all, found a record of {size} bytes", values.len())
            })?;
            ranges.push(start..end);
        }
        let (n, n_bytes) = (to_u64(ranges.len()), to_u64(end));
        if n != header.n_records || n_bytes != header.values_bytes || end != values.len() {
            let Header { n_records, values_bytes, .. } = header;
            let (expected, found) = (counted(*n_records, "record"), counted(n, "record"));
            return Err(format!(
                "expected {expected} of {values_bytes} bytes in all, found {found} of {n_bytes} bytes, and {} bytes of values",
                values.len()
            ));
        }
        Ok(Self { values, ranges })
    }
}

/// A number at the start of bytes, and the bytes after it.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), String> {
    let n = bytes.iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let (number, rest) = bytes.split_at_checked(n).ok_or("a number is truncated")?;
    let number = Message::new(number).next_varint()?.ok_or("a number is missing")?;
    Ok((number, rest))
}

/// Unpacked bytes. Packed ones follow the number of bytes that they have when unpacked.
fn unpacked(compression: u8, bytes: &[u8]) -> Result<Vec<u8>, String> {
    if compression == 0 {
        return Ok(bytes.to_vec());
    }
    let (n, packed) = varint(bytes)?;
    if n > MAX_CHUNK {
        return Err(format!("expected at most {MAX_CHUNK} bytes when unpacked, found {n}"));
    }
    let mut out = Vec::new();
    let failed = |error: std::io::Error| format!("cannot be unpacked: {error}");
    match compression {
        b'b' => read_some(Decompressor::new(packed, BUFFER), n, &mut out).map_err(failed)?,
        b'z' => {
            let decoder = zstd::stream::read::Decoder::with_buffer(packed).map_err(failed)?;
            read_some(decoder, n, &mut out).map_err(failed)?;
        }
        b's' => {
            let expected = decompress_len(packed).map_err(|error| format!("cannot be unpacked: {error}"))?;
            if to_u64(expected) == n {
                out = Decoder::new().decompress_vec(packed).map_err(|error| format!("cannot be unpacked: {error}"))?;
            }
        }
        other => return Err(format!("unknown compression '{}'", other.escape_ascii())),
    }
    match to_u64(out.len()) {
        found if found == n => Ok(out),
        found => {
            let found = if found > n { "more" } else { "fewer" };
            Err(format!("expected {} when unpacked, found {found}", counted(n, "byte")))
        }
    }
}

/// Reads up to one byte more than `n`.
fn read_some(from: impl Read, n: u64, out: &mut Vec<u8>) -> std::io::Result<()> {
    from.take(n + 1).read_to_end(out).map(drop)
}
