//! Finds the members of a zip file: the offset, size and compression of each. Every number is checked against the file before use.
//!
//! `sink::zip_file` writes them. Names are never used as paths here: only `unpacker` does that.

use packds_system::to_u64;
use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crc_fast::{CrcAlgorithm::Crc32IsoHdlc, Digest};

use super::compressed::Compression;
use super::store::OpenFile;
use crate::error::ConvertError;

/// Maximum length of the comment at the end of the file, in bytes.
const MAX_COMMENT: u64 = 1 << 16;
/// Maximum size of the central directory, in bytes.
const MAX_DIRECTORY: u64 = 1 << 30;
/// Bytes unpacked at a time.
const PIECE_BYTES: usize = 1 << 20;
/// A 32-bit size or offset with this value means that a 64-bit field has the actual value.
const LARGE: u64 = 0xffff_ffff;

/// Characters for the bytes 128 to 255 in names that are not UTF-8: IBM's code page 437.
const CODE_PAGE: &str = "ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u{a0}";

/// How a member is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Stored,
    Deflated,
    /// Used only in archives of files. NumPy and PyTorch use the first two methods.
    Stream(Compression),
}

impl Method {
    fn of(number: u16) -> Option<Self> {
        Some(match number {
            0 => Self::Stored,
            8 => Self::Deflated,
            12 => Self::Stream(Compression::Bzip2),
            93 => Self::Stream(Compression::Zstd),
            95 => Self::Stream(Compression::Xz),
            _ => return None,
        })
    }
}

/// A member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ZipEntry {
    pub(super) name: String,
    pub(super) method: Method,
    /// Whether the member is a symbolic link. If so, its bytes are the path of the target.
    pub(super) is_link: bool,
    pub(super) crc: u32,
    /// Start of its bytes in the file.
    pub(super) offset: u64,
    /// Bytes stored in the file.
    pub(super) stored: u64,
    /// Declared unpacked size. It may be false if the member is compressed.
    pub(super) bytes: u64,
}

/// The members of `file`, in the directory's order.
pub(super) fn zip_entries(file: &OpenFile) -> Result<Vec<ZipEntry>, ConvertError> {
    let (offset, bytes) = find_directory(file)?;
    let directory = file.part("", offset, bytes)?;
    let mut rest = Fields { bytes: &directory };
    let mut entries = Vec::new();
    while !rest.bytes.is_empty() {
        let entry = rest.entry(&file.path).ok_or_else(|| damaged(file, offset))??;
        entries.push(locate(file, entry, offset)?);
    }
    check_apart(file, &entries)?;
    Ok(entries)
}

/// Refuses duplicate names and overlapping members. Ordinary programs do not write them, and it would be unclear which
/// member to read.
fn check_apart(file: &OpenFile, entries: &[ZipEntry]) -> Result<(), ConvertError> {
    let wrong = |entry: &ZipEntry, reason: String| {
        let hint = "create the zip file again with unique names";
        ConvertError::contradictory(&file.path, &entry.name, reason, hint)
    };
    let mut names = BTreeSet::new();
    if let Some(again) = entries.iter().find(|entry| !names.insert(&entry.name)) {
        return Err(wrong(again, "two members have this name".to_owned()));
    }
    let mut in_order: Vec<&ZipEntry> = entries.iter().filter(|e| e.stored > 0).collect();
    in_order.sort_by_key(|entry| entry.offset);
    for (entry, next) in in_order.iter().zip(in_order.iter().skip(1)) {
        if entry.offset.saturating_add(entry.stored) > next.offset {
            let reason = format!("its bytes overlap the bytes of the member '{}'", entry.name);
            return Err(wrong(next, reason));
        }
    }
    Ok(())
}

fn damaged(file: &OpenFile, offset: u64) -> ConvertError {
    let place = format!("byte {offset}");
    ConvertError::malformed(&file.path, &place, "the directory of the zip file is damaged")
}

/// The offset and the size of the directory.
fn find_directory(file: &OpenFile) -> Result<(u64, u64), ConvertError> {
    let cut = || {
        let reason = "expected the directory of a zip file at the end, found none";
        ConvertError::malformed(&file.path, "", reason)
    };
    let tail_bytes = file.bytes.min(MAX_COMMENT + 22);
    let tail_offset = file.bytes - tail_bytes;
    let tail = file.part("", tail_offset, tail_bytes)?;
    let at = tail.windows(4).rposition(|four| four == b"PK\x05\x06");
    let at = at.ok_or_else(cut)?;
    let end = tail_offset + to_u64(at);
    let mut record = Fields { bytes: tail.get(at + 12..).unwrap_or_default() };
    let (bytes, offset) = record.u32().zip(record.u32()).ok_or_else(cut)?;
    let (mut bytes, mut offset) = (u64::from(bytes), u64::from(offset));
    if bytes == LARGE || offset == LARGE {
        (bytes, offset) = large_directory(file, end).ok_or_else(cut)?;
    }
    if bytes > MAX_DIRECTORY {
        let reason = format!("expected a directory of at most {MAX_DIRECTORY} bytes, found {bytes}");
        return Err(ConvertError::malformed(&file.path, "", reason));
    }
    match offset.checked_add(bytes) {
        Some(last) if last <= end => Ok((offset, bytes)),
        _ => Err(damaged(file, offset)),
    }
}

/// The size and the offset of the directory according to the 64-bit records before the end record at `end`.
fn large_directory(file: &OpenFile, end: u64) -> Option<(u64, u64)> {
    let locator = file.bytes_at(end.checked_sub(20)?, 20).ok()?;
    let mut locator = Fields { bytes: &locator };
    if locator.take(4)? != b"PK\x06\x07" {
        return None;
    }
    locator.u32()?;
    let record = file.bytes_at(locator.u64()?, 56).ok()?;
    let mut record = Fields { bytes: &record };
    if record.take(4)? != b"PK\x06\x06" {
        return None;
    }
    record.take(36)?;
    Some((record.u64()?, record.u64()?))
}

/// Finds the start of an entry's bytes, after its local header. The length of that header is stored only in the header itself.
fn locate(file: &OpenFile, entry: ZipEntry, directory: u64) -> Result<ZipEntry, ConvertError> {
    let wrong = |reason: &str| ConvertError::malformed(&file.path, &entry.name, reason);
    let header = file.part("", entry.offset, 30)?;
    let mut fields = Fields { bytes: &header };
    if fields.take(4) != Some(b"PK\x03\x04") {
        return Err(wrong("the directory of the zip file does not point to a member"));
    }
    fields.take(22);
    let lengths = fields.u16().zip(fields.u16());
    let (name, extra) = lengths.ok_or_else(|| wrong("the member's header is truncated"))?;
    let offset = entry.offset + 30 + u64::from(name) + u64::from(extra);
    let end = offset.checked_add(entry.stored);
    if end.is_none_or(|end| end > directory) {
        let (stored, room) = (entry.stored, directory.saturating_sub(offset));
        return Err(wrong(&format!("expected {stored} bytes, found {room}")));
    }
    Ok(ZipEntry { offset, ..entry })
}

/// Consecutive little-endian fields. `None` at the end.
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(n)?;
        self.bytes = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2)?.try_into().ok().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    /// An entry of the directory, with the offset of its local header. `None` if truncated.
    fn entry(&mut self, path: &Path) -> Option<Result<ZipEntry, ConvertError>> {
        if self.take(4)? != b"PK\x01\x02" {
            return None;
        }
        let made_by = self.u16()?;
        self.take(2)?;
        let (flags, method) = (self.u16()?, self.u16()?);
        self.take(4)?;
        let crc = self.u32()?;
        let (stored, bytes) = (self.u32()?, self.u32()?);
        let (name, extra, comment) = (self.u16()?, self.u16()?, self.u16()?);
        self.take(4)?;
        let (attributes, offset) = (self.u32()?, self.u32()?);
        let name = text_of(self.take(name.into())?);
        let mut extra = Fields { bytes: self.take(extra.into())? };
        self.take(comment.into())?;
        let mut wide = [u64::from(bytes), u64::from(stored), u64::from(offset)];
        if wide.contains(&LARGE) {
            let mut sizes = extra.sizes()?;
            for field in wide.iter_mut().filter(|field| **field == LARGE) {
                *field = sizes.u64()?;
            }
        }
        let [bytes, stored, offset] = wide;
        let unsupported = |reason: &str, hint| Some(Err(ConvertError::unsupported(path, &name, reason, hint)));
        if flags & 1 != 0 {
            return unsupported("the member is encrypted", "create it again without a password");
        }
        let Some(method) = Method::of(method) else {
            let reason = format!("it is compressed with method {method}, which is not supported");
            return unsupported(&reason, "create the zip file again with the usual compression (deflate)");
        };
        // If the creator is Unix (3), the upper half of the attributes holds the file mode.
        let is_link = made_by >> 8 == 3 && attributes >> 28 == 0o12;
        Some(Ok(ZipEntry { name, method, is_link, crc, offset, stored, bytes }))
    }

    /// The extra field with 64-bit sizes.
    fn sizes(&mut self) -> Option<Fields<'a>> {
        loop {
            let (kind, len) = (self.u16()?, self.u16()?);
            let bytes = self.take(len.into())?;
            if kind == 1 {
                return Some(Fields { bytes });
            }
        }
    }
}

/// The name of a member as text. Python decodes names that are not UTF-8 in the same way.
fn text_of(name: &[u8]) -> String {
    let of_code_page = |byte: &u8| match byte.checked_sub(128) {
        None => char::from(*byte),
        Some(place) => CODE_PAGE.chars().nth(place.into()).unwrap_or(char::REPLACEMENT_CHARACTER),
    };
    String::from_utf8(name.to_vec()).unwrap_or_else(|_| name.iter().map(of_code_page).collect())
}

/// The unpacked bytes of a member, read as needed.
pub(super) fn unpack<'a>(file: &'a OpenFile, entry: &ZipEntry) -> Result<Box<dyn Read + 'a>, ConvertError> {
    let mut raw = file.file().map_err(ConvertError::io(&file.path))?;
    // Only one member is unpacked at a time, so nothing else uses the file's position.
    raw.seek(SeekFrom::Start(entry.offset)).map_err(ConvertError::io(&file.path))?;
    let stored = raw.take(entry.stored);
    Ok(match entry.method {
        Method::Stored => Box::new(stored),
        Method::Deflated => Box::new(flate2::read::DeflateDecoder::new(stored)),
        Method::Stream(compression) => {
            compression.unpack(BufReader::new(stored)).map_err(|error| damaged_member(file, entry, &error))?
        }
    })
}

/// Passes all bytes of a member to `take` piece by piece, and verifies their number and checksum.
pub(super) fn pieces(
    file: &OpenFile,
    entry: &ZipEntry,
    expected: u64,
    mut take: impl FnMut(&[u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    // Reads at most one byte more than expected, to detect a member that is too long without reading all of it.
    let mut source = unpack(file, entry)?.take(expected.saturating_add(1));
    let mut piece = vec![0; PIECE_BYTES];
    let (mut found, mut digest) = (0_u64, Digest::new(Crc32IsoHdlc));
    loop {
        let n = source.read(&mut piece).map_err(|error| damaged_member(file, entry, &error))?;
        let bytes = piece.get(..n).unwrap_or_default();
        found = found.saturating_add(to_u64(n));
        if n == 0 || found > expected {
            break;
        }
        digest.update(bytes);
        take(bytes)?;
    }
    if found != expected {
        let more = if found > expected { "more" } else { "fewer" };
        let reason = format!("expected {expected} bytes when unpacked, found {more}");
        return Err(ConvertError::malformed(&file.path, &entry.name, reason));
    }
    if digest.finalize() != u64::from(entry.crc) {
        let reason = format!("expected the checksum {:08x}, found {:08x}", entry.crc, digest.finalize());
        return Err(ConvertError::malformed(&file.path, &entry.name, reason));
    }
    Ok(())
}

pub(super) fn damaged_member(file: &OpenFile, entry: &ZipEntry, error: &io::Error) -> ConvertError {
    ConvertError::malformed(&file.path, &entry.name, format!("cannot be unpacked: {error}"))
}
