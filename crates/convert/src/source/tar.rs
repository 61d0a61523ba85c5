//! Reads the members of a tar file: names, sizes and offsets. Supports POSIX ustar and pax and GNU long names, plain and
//! compressed.
//!
//! Names are never used as paths here: only `unpacker` does that.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_system::{to_u64, to_usize};

use super::compressed::{self, Unpacked};
use super::store::OpenFile;
use crate::error::ConvertError;

/// Size of the blocks in which headers and data are stored, in bytes.
const BLOCK: u64 = 512;
/// Maximum size of a long name or of a member's pax records, in bytes.
const MAX_EXTENDED: u64 = 1 << 20;
/// Maximum size of the global pax records, in bytes. They may include a pack's metadata.
const MAX_GLOBAL: u64 = 1 << 28;

/// A regular file in a tar file, or another named entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) name: Vec<u8>,
    pub(super) is_file: bool,
    /// The target, if the member is a link.
    pub(super) link: Option<Link>,
    /// Offset of its data in the uncompressed tar file.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The target of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Link {
    /// The name of another member.
    Hard(Vec<u8>),
    /// A path relative to the folder of the link.
    Symbolic(Vec<u8>),
}

impl Member {
    pub(super) fn is_folder(&self) -> bool {
        !self.is_file && self.link.is_none() && self.name.ends_with(b"/")
    }
}

/// The file to read, plain or compressed.
enum Input {
    Plain(Arc<OpenFile>),
    Packed(Unpacked<'static>),
}

/// Reads the members in order.
pub(super) struct TarReader {
    path: PathBuf,
    input: Input,
    /// Bytes read or skipped so far.
    at: u64,
    /// Unread bytes of the previous member, including padding.
    rest: u64,
    /// How many of the unread bytes are padding.
    padding: u64,
    /// The global pax record to keep.
    wanted: &'static str,
    /// The value of that record, if found so far.
    pub(super) global: Option<Vec<u8>>,
    /// Whether the tar file ended after a whole member, without an end marker.
    pub(super) is_open_ended: bool,
}

/// Information about a member from the headers before it.
#[derive(Default)]
struct Extended {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    bytes: Option<u64>,
}

impl TarReader {
    /// Reads an uncompressed tar file. `wanted` is the global pax record to keep.
    pub(super) fn plain(file: Arc<OpenFile>, wanted: &'static str) -> Self {
        Self::of(file.path.clone(), Input::Plain(file), wanted)
    }

    /// Starts at an offset, for a tar file inside another one. Reading stops at the end of the file.
    pub(super) fn starting_at(self, offset: u64) -> Self {
        Self { at: offset, ..self }
    }

    /// Opens a tar file, plain or compressed.
    pub(super) fn open(path: &Path, wanted: &'static str) -> Result<Self, ConvertError> {
        let unpacked = compressed::open(path).map_err(ConvertError::io(path))?;
        let input = match unpacked {
            Some(unpacked) => Input::Packed(unpacked),
            None => Input::Plain(Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?)),
        };
        Ok(Self::of(path.to_owned(), input, wanted))
    }

    fn of(path: PathBuf, input: Input, wanted: &'static str) -> Self {
        Self { path, input, at: 0, rest: 0, padding: 0, wanted, global: None, is_open_ended: false }
    }

    /// Whether the tar file is not compressed.
    pub(super) fn is_plain(&self) -> bool {
        matches!(self.input, Input::Plain(_))
    }

    /// The next member. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Member>, ConvertError> {
        let mut extended = Extended::default();
        loop {
            self.skip_rest()?;
            let start = self.at;
            let mut header = [0; 512];
            let found = self.read(&mut header)?;
            if found == 0 && start > 0 {
                self.is_open_ended = true;
                return Ok(None);
            }
            if found < header.len() {
                return Err(self.cut_short(start, "a header of 512 bytes, or the end marker"));
            }
            if header.iter().all(|b| *b == 0) {
                return self.check_end().map(|()| None);
            }
            let header = Header::parse(&header).map_err(|reason| self.malformed(start, reason))?;
            let bytes = match header.kind {
                // Links, devices and folders have no data, whatever size they state.
                b'1'..=b'6' => 0,
                _ => extended.bytes.unwrap_or(header.bytes),
            };
            // The data is padded to a whole number of blocks.
            self.rest = bytes
                .checked_next_multiple_of(BLOCK)
                .ok_or_else(|| self.malformed(start, format!("a member of {bytes} bytes is too large")))?;
            self.padding = self.rest - bytes;
            match header.kind {
                b'L' => {
                    extended.name = Some(self.long_name(start, bytes)?);
                }
                b'K' => extended.link = Some(self.long_name(start, bytes)?),
                b'x' => {
                    let records = self.extended(start, bytes, MAX_EXTENDED)?;
                    let read = extended.read(&records);
                    read.map_err(|reason| self.malformed(start, reason))?;
                }
                b'g' => self.global_records(start, bytes)?,
                b'S' => {
                    let hint = "create the tar file without --sparse";
                    return Err(ConvertError::unsupported(
                        &self.path,
                        &self.place(start),
                        "sparse files are not supported",
                        hint,
                    ));
                }
                kind => {
                    let mut name = extended.name.take().unwrap_or(header.name);
                    if kind == b'5' && !name.ends_with(b"/") {
                        name.push(b'/');
                    }
                    let is_folder = name.ends_with(b"/");
                    let target = extended.link.take().unwrap_or(header.link);
                    return Ok(Some(Member {
                        is_file: matches!(kind, b'0' | 0 | b'7') && !is_folder,
                        name,
                        link: match kind {
                            b'1' => Some(Link::Hard(target)),
                            b'2' => Some(Link::Symbolic(target)),
                            _ => None,
                        },
                        offset: self.at,
                        bytes,
                    }));
                }
            }
        }
    }

    /// Appends the remaining data of the last member returned, up to `limit` bytes.
    pub(super) fn data(&mut self, member: &Member, limit: u64, out: &mut Vec<u8>) -> Result<(), ConvertError> {
        let passed = self.at.saturating_sub(member.offset);
        let wanted = member.bytes.saturating_sub(passed).min(limit);
        let before = out.len();
        let wanted_len = to_usize(wanted);
        if let Input::Plain(file) = &self.input
            && self.at.saturating_add(wanted) > file.bytes
        {
            return Err(self.cut_short(self.at, &format!("{wanted} bytes of data")));
        }
        // Grow in steps, so that a false size cannot cause a large allocation.
        const STEP: usize = 1 << 20;
        while out.len() - before < wanted_len {
            let start = out.len();
            let step = (wanted_len - (start - before)).min(STEP);
            out.resize(start + step, 0);
            let found = match out.get_mut(start..) {
                Some(room) => read_input(&mut self.input, self.at, room),
                None => Ok(0),
            };
            let found = found.map_err(|e| self.unreadable(e))?;
            let advanced = to_u64(found);
            self.at = self.at.saturating_add(advanced);
            self.rest = self.rest.saturating_sub(advanced);
            if found < step {
                return Err(self.cut_short(self.at, &format!("{wanted} bytes of data")));
            }
        }
        Ok(())
    }

    /// An error at `offset` of the tar file.
    pub(super) fn malformed(&self, offset: u64, reason: impl Into<String>) -> ConvertError {
        ConvertError::malformed(&self.path, &self.place(offset), reason)
    }

    fn place(&self, offset: u64) -> String {
        match self.input {
            Input::Plain(_) => format!("byte {offset}"),
            Input::Packed(_) => format!("byte {offset} of the unpacked tar file"),
        }
    }

    fn cut_short(&self, offset: u64, expected: &str) -> ConvertError {
        self.malformed(offset, format!("the tar file ends too early: expected {expected}"))
    }

    fn unreadable(&self, error: std::io::Error) -> ConvertError {
        match compressed::is_damage(&error) {
            true => self.malformed(self.at, format!("cannot be unpacked: {error}")),
            false => ConvertError::io(&self.path)(error),
        }
    }

    /// Fills `out`. Reads fewer bytes only at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize, ConvertError> {
        let found = read_input(&mut self.input, self.at, out).map_err(|e| self.unreadable(e))?;
        self.at = self.at.saturating_add(to_u64(found));
        Ok(found)
    }

    fn skip_rest(&mut self) -> Result<(), ConvertError> {
        let (start, rest) = (self.at, std::mem::take(&mut self.rest));
        let end = start.saturating_add(rest);
        // The padding of the last member may be missing.
        let needed = rest.saturating_sub(self.padding);
        match &mut self.input {
            Input::Plain(file) => {
                if start.saturating_add(needed) > file.bytes {
                    return Err(self.cut_short(start, &format!("{needed} bytes of data")));
                }
                self.at = end;
            }
            Input::Packed(input) => {
                let passed = std::io::copy(&mut input.take(rest), &mut std::io::sink());
                let passed = passed.map_err(|e| self.unreadable(e))?;
                self.at = start.saturating_add(passed);
                if passed < needed {
                    return Err(self.cut_short(self.at, &format!("{needed} bytes of data")));
                }
            }
        }
        Ok(())
    }

    /// Reads a compressed file past the tar file's final zeros to its own end, which verifies its checksum.
    fn check_end(&mut self) -> Result<(), ConvertError> {
        // Programs pad by only a few kilobytes. Anything longer is not padding.
        const MAX_FILL: u64 = 1 << 20;
        if let Input::Packed(input) = &mut self.input {
            let filled = std::io::copy(&mut input.take(MAX_FILL), &mut std::io::sink());
            filled.map_err(|e| self.unreadable(e))?;
        }
        Ok(())
    }

    /// Reads the data of a GNU tar header: the name or the link target of the next member, up to the first zero byte.
    fn long_name(&mut self, start: u64, bytes: u64) -> Result<Vec<u8>, ConvertError> {
        let mut name = self.extended(start, bytes, MAX_EXTENDED)?;
        name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
        Ok(name)
    }

    /// Reads the data of a header that describes other members. Refuses more than `most` bytes.
    fn extended(&mut self, start: u64, bytes: u64, most: u64) -> Result<Vec<u8>, ConvertError> {
        if bytes > most {
            let reason = format!("expected a header of at most {most} bytes, found {bytes}");
            return Err(self.malformed(start, reason));
        }
        let mut out = Vec::new();
        let member = Member { name: Vec::new(), is_file: false, link: None, offset: self.at, bytes };
        self.data(&member, u64::MAX, &mut out)?;
        Ok(out)
    }

    fn global_records(&mut self, start: u64, bytes: u64) -> Result<(), ConvertError> {
        let records = self.extended(start, bytes, MAX_GLOBAL)?;
        let wanted = self.wanted.as_bytes();
        let mut found = None;
        let read = pax_records(&records, |key, value| {
            if key == wanted {
                found = Some(value.to_vec());
            }
            Ok(())
        });
        read.map_err(|reason| self.malformed(start, reason))?;
        self.global = found.or(self.global.take());
        Ok(())
    }
}

fn read_input(input: &mut Input, at: u64, out: &mut [u8]) -> std::io::Result<usize> {
    let mut n = 0;
    while let Some(room) = out.get_mut(n..).filter(|room| !room.is_empty()) {
        let found = match input {
            Input::Plain(file) => {
                let at = at.saturating_add(to_u64(n));
                let left = to_usize(file.bytes.saturating_sub(at)).min(room.len());
                std::os::unix::fs::FileExt::read_at(&*file.file()?, room.get_mut(..left).unwrap_or_default(), at)
            }
            Input::Packed(input) => input.read(room),
        };
        match found {
            Ok(0) => break,
            Ok(found) => n += found,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(n)
}

/// The fields of a header that this module uses.
struct Header {
    name: Vec<u8>,
    link: Vec<u8>,
    bytes: u64,
    kind: u8,
}

impl Header {
    fn parse(block: &[u8; 512]) -> Result<Self, String> {
        let field = |from: usize, len: usize| block.get(from..from + len).unwrap_or_default();
        let text = |from, len| {
            let field = field(from, len);
            field.split(|b| *b == 0).next().unwrap_or_default()
        };
        check_sum(block, number(field(148, 8))?)?;
        let kind = field(156, 1).first().copied().unwrap_or(0);
        let mut name = Vec::new();
        // GNU headers use the prefix field for something else.
        if field(257, 6) == b"ustar\0" && !text(345, 155).is_empty() {
            name.extend_from_slice(text(345, 155));
            name.push(b'/');
        }
        name.extend_from_slice(text(0, 100));
        let bytes = number(field(124, 12)).map_err(|reason| format!("size: {reason}"))?;
        Ok(Self { name, link: text(157, 100).to_vec(), bytes, kind })
    }
}

/// Verifies the sum of all bytes of a header, with the checksum field counted as spaces. Some old programs summed signed bytes.
fn check_sum(block: &[u8; 512], expected: u64) -> Result<(), String> {
    let (mut unsigned, mut signed) = (0_u64, 0_i64);
    for (i, byte) in block.iter().enumerate() {
        let byte = if (148..156).contains(&i) { b' ' } else { *byte };
        unsigned += u64::from(byte);
        signed += i64::from(i8::from_le_bytes([byte]));
    }
    if expected == unsigned || i64::try_from(expected) == Ok(signed) {
        Ok(())
    } else {
        Err(format!(
            "expected a header with the checksum {expected}, found {unsigned}: this is not a tar header, or it is damaged"
        ))
    }
}

/// A number in octal digits or, for large numbers from GNU tar, in binary.
fn number(field: &[u8]) -> Result<u64, String> {
    let wrong = || format!("expected an octal number, found \"{}\"", field.escape_ascii());
    match field {
        [0x80, rest @ ..] => rest.iter().try_fold(0_u64, |n, byte| {
            let high = n.checked_mul(256);
            high.and_then(|n| n.checked_add(u64::from(*byte))).ok_or_else(wrong)
        }),
        _ => {
            let text = field.split(|b| *b == 0).next().unwrap_or_default();
            let digits = text.trim_ascii();
            if digits.is_empty() || !digits.iter().all(|d| (b'0'..=b'7').contains(d)) {
                return Err(wrong());
            }
            // At most 12 digits of 3 bits each.
            Ok(digits.iter().fold(0, |n, d| n * 8 + u64::from(d - b'0')))
        }
    }
}

impl Extended {
    fn read(&mut self, records: &[u8]) -> Result<(), String> {
        pax_records(records, |key, value| {
            match key {
                b"path" => self.name = Some(value.to_vec()),
                b"linkpath" => self.link = Some(value.to_vec()),
                b"size" => {
                    let text = str::from_utf8(value).ok();
                    let bytes = text.and_then(|text| text.parse().ok());
                    self.bytes =
                        Some(bytes.ok_or_else(|| format!("expected a size, found \"{}\"", value.escape_ascii()))?);
                }
                key if key.starts_with(b"GNU.sparse.") => {
                    return Err("sparse files are not supported".to_owned());
                }
                _ => {}
            }
            Ok(())
        })
    }
}

/// Calls `each` with the key and value of each record, `LENGTH KEY=VALUE\n`.
fn pax_records(mut records: &[u8], mut each: impl FnMut(&[u8], &[u8]) -> Result<(), String>) -> Result<(), String> {
    while !records.is_empty() {
        let shown = records.get(..24).unwrap_or(records).escape_ascii();
        let wrong = format!("expected a pax record, found \"{shown}\"");
        let space = records.iter().take(20).position(|b| *b == b' ');
        let len = space
            .and_then(|space| str::from_utf8(records.get(..space)?).ok())
            .and_then(|len| len.parse::<usize>().ok());
        let (Some(space), Some(len)) = (space, len) else {
            return Err(wrong);
        };
        let record = records.get(space + 1..len).and_then(|r| r.strip_suffix(b"\n"));
        let pair = record.and_then(|r| {
            let equals = r.iter().position(|b| *b == b'=')?;
            Some((r.get(..equals)?, r.get(equals + 1..)?))
        });
        let (key, value) = pair.ok_or(wrong)?;
        each(key, value)?;
        records = records.get(len..).unwrap_or_default();
    }
    Ok(())
}
