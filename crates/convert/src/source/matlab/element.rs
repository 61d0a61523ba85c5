//! The elements of a version 5 MAT-file. Each is a variable, compressed or not. Only arrays of numbers are read.
//!
//! The layout is that of MathWorks' "MAT-File Format". Every number is checked before it is used.

use std::io::{self, BufReader, Read};

use flate2::read::ZlibDecoder;
use packds_format::DType;
use packds_system::{to_u64, to_usize};

use crate::error::ConvertError;
use crate::source::store::OpenFile;

/// Bytes of the header of a file.
const HEADER: u64 = 128;
/// Bytes of a tag: the type and the length of what follows.
const TAG: u64 = 8;
/// Maximum number of variables in a file.
const MAX_VARIABLES: usize = 1 << 16;
/// Maximum number of dimensions.
const MAX_DIMENSIONS: usize = 8;
/// Maximum number of bytes in a name.
const MAX_NAME: u32 = 1 << 12;
/// Deflate compresses at most this many bytes to one byte.
const MAX_RATIO: u64 = 1032;
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 17;

/// The types of elements that are variables.
const MATRIX: u32 = 14;
const COMPRESSED: u32 = 15;
/// The flag of complex numbers.
const COMPLEX: u32 = 0x800;

/// A variable, before its numbers are read.
#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) content: Content,
    /// Where the element starts, and its length with the tag.
    place: (u64, u64),
    is_compressed: bool,
}

#[derive(Debug)]
pub(super) enum Content {
    /// Numbers. The first dimension varies fastest.
    Numbers(Numbers),
    /// Anything else. The text says what it is, such as `a struct`.
    Other(&'static str),
}

#[derive(Debug, Clone)]
pub(super) struct Numbers {
    pub(super) dtype: DType,
    pub(super) shape: Vec<u64>,
    /// Bytes of all numbers.
    pub(super) bytes: u64,
}

/// The byte order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    pub(super) is_big: bool,
}

impl Order {
    fn u32(self, bytes: [u8; 4]) -> u32 {
        let n = u32::from_le_bytes(bytes);
        if self.is_big { n.swap_bytes() } else { n }
    }
}

/// The byte order of a version 5 MAT-file that begins with these bytes. `None` if it is not such a file.
pub(super) fn order(head: &[u8]) -> Option<Order> {
    if !head.starts_with(b"MATLAB 5.0 ") {
        return None;
    }
    match head.get(124..128)? {
        b"\0\x01IM" => Some(Order { is_big: false }),
        b"\x01\0MI" => Some(Order { is_big: true }),
        _ => None,
    }
}

/// The variables of a file.
pub(super) fn variables(file: &OpenFile, order: Order) -> Result<Vec<Variable>, ConvertError> {
    let mut found = Vec::new();
    let mut at = HEADER;
    while at.saturating_add(TAG) <= file.bytes {
        let wrong = |reason: String| ConvertError::malformed(&file.path, &format!("byte {at}"), reason);
        let [kind, bytes] = tag(&mut Range::new(file, at, TAG), order).map_err(|e| wrong(e.to_string()))?;
        let end = at.saturating_add(TAG).saturating_add(bytes.into());
        if end > file.bytes {
            return Err(wrong(format!("expected {bytes} bytes of a variable, found {}", file.bytes - at - TAG)));
        }
        if found.len() == MAX_VARIABLES {
            return Err(wrong(format!("there are more than {MAX_VARIABLES} variables")));
        }
        let is_compressed = match kind {
            MATRIX => false,
            COMPRESSED => true,
            kind => return Err(wrong(format!("expected a variable, found an element of type {kind}"))),
        };
        let mut variable =
            Variable { name: String::new(), content: Content::Other(""), place: (at, end - at), is_compressed };
        let mut reader = variable.reader(file);
        (variable.name, variable.content) = header(&mut reader, order).map_err(|e| wrong(e.to_string()))?;
        if let Content::Numbers(numbers) = &variable.content
            && numbers.bytes > u64::from(bytes).saturating_mul(if is_compressed { MAX_RATIO } else { 1 })
        {
            return Err(wrong(format!("{bytes} bytes cannot hold the {} bytes of its array", numbers.bytes)));
        }
        found.push(variable);
        at = end;
    }
    Ok(found)
}

impl Variable {
    /// The unpacked bytes of the variable, with its tag.
    fn reader<'a>(&self, file: &'a OpenFile) -> Box<dyn Read + 'a> {
        let (at, bytes) = self.place;
        match self.is_compressed {
            false => Box::new(BufReader::new(Range::new(file, at, bytes))),
            true => {
                let packed = Range::new(file, at + TAG, bytes - TAG);
                Box::new(ZlibDecoder::new(BufReader::with_capacity(READ_BYTES, packed)))
            }
        }
    }

    /// Opens the variable at the start of its numbers.
    pub(super) fn open<'a>(&self, file: &'a OpenFile, order: Order) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let mut reader = self.reader(file);
        header(&mut reader, order).map_err(|error| self.malformed(file, &error))?;
        Ok(reader)
    }

    pub(super) fn malformed(&self, file: &OpenFile, error: &io::Error) -> ConvertError {
        ConvertError::malformed(&file.path, &self.name, error.to_string())
    }
}

fn invalid(reason: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason.into())
}

fn bytes<const N: usize>(reader: &mut dyn Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => invalid("a variable ends inside its header"),
        _ => error,
    })?;
    Ok(bytes)
}

/// A type and a length.
fn tag(reader: &mut dyn Read, order: Order) -> io::Result<[u32; 2]> {
    Ok([order.u32(bytes(reader)?), order.u32(bytes(reader)?)])
}

/// The type and the bytes of a part of a variable. Parts of up to four bytes may be in the tag. Other parts are padded
/// with zeros to a multiple of eight bytes.
///
/// # Errors
/// If the part ends early, or is not in the tag and has more than `most` bytes.
fn part(reader: &mut dyn Read, order: Order, most: u32) -> io::Result<(u32, Vec<u8>)> {
    let kind = order.u32(bytes(reader)?);
    let second: [u8; 4] = bytes(reader)?;
    let len = order.u32(second);
    if kind > 0xffff {
        let data = second.get(..to_usize(kind >> 16));
        let data = data.ok_or_else(|| invalid("a short part has more than 4 bytes"))?;
        return Ok((kind & 0xffff, data.to_vec()));
    }
    if len > most {
        return Err(invalid(format!("expected at most {most} bytes in the header of a variable, found {len}")));
    }
    let mut data = Vec::new();
    reader.take(u64::from(len).next_multiple_of(TAG)).read_to_end(&mut data)?;
    if data.len() < to_usize(len) {
        return Err(invalid("a variable ends inside its header"));
    }
    data.truncate(to_usize(len));
    Ok((kind, data))
}

/// Reads the header of a variable: its name and what it holds. If it holds numbers, the reader is then at their start.
fn header(reader: &mut dyn Read, order: Order) -> io::Result<(String, Content)> {
    let [kind, _] = tag(reader, order)?;
    if kind != MATRIX {
        return Err(invalid(format!("expected a variable, found an element of type {kind}")));
    }
    let (_, flags) = part(reader, order, 8)?;
    let flags = flags.first_chunk().map(|flags| order.u32(*flags));
    let flags = flags.ok_or_else(|| invalid("expected 8 bytes of flags"))?;
    let other = match flags & 0xff {
        1 => Some("a cell array"),
        2 => Some("a struct"),
        3 => Some("an object"),
        4 => Some("a string"),
        5 => Some("a sparse matrix"),
        6..=15 if flags & COMPLEX == 0 => None,
        6..=15 => Some("an array of complex numbers"),
        _ => Some("a function or an object"),
    };
    // Objects of newer classes have no dimensions.
    if flags & 0xff > 15 {
        return Ok((String::new(), Content::Other(other.unwrap_or_default())));
    }
    let (_, dimensions) = part(reader, order, to_u32(4 * MAX_DIMENSIONS))?;
    let shape: Vec<u64> = dimensions.as_chunks::<4>().0.iter().map(|n| u64::from(order.u32(*n))).collect();
    let (_, name) = part(reader, order, MAX_NAME)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    if let Some(other) = other {
        return Ok((name, Content::Other(other)));
    }
    let numbers = numbers(reader, order, shape)?;
    Ok((name, Content::Numbers(numbers)))
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Reads the tag of the numbers. The reader is then at their start, even if they are inside the tag.
fn numbers(reader: &mut dyn Read, order: Order, shape: Vec<u64>) -> io::Result<Numbers> {
    let kind = order.u32(bytes(reader)?);
    let (kind, found) = match kind {
        0..=0xffff => (kind, u64::from(order.u32(bytes(reader)?))),
        _ => (kind & 0xffff, u64::from(kind >> 16)),
    };
    let dtype = match kind {
        1 => DType::I8,
        2 => DType::U8,
        3 => DType::I16,
        4 => DType::U16,
        5 => DType::I32,
        6 => DType::U32,
        7 => DType::F32,
        9 => DType::F64,
        12 => DType::I64,
        13 => DType::U64,
        kind => return Err(invalid(format!("numbers have the unknown type {kind}"))),
    };
    let expected = shape.iter().try_fold(dtype.size(), |n, length| n.checked_mul(*length));
    if shape.len() < 2 || expected != Some(found) {
        return Err(invalid(format!("expected {dtype} numbers for the dimensions {shape:?}, found {found} bytes")));
    }
    Ok(Numbers { dtype, shape, bytes: found })
}

/// A reader of a range of a file.
struct Range<'a> {
    file: &'a OpenFile,
    at: u64,
    left: u64,
}

impl<'a> Range<'a> {
    fn new(file: &'a OpenFile, at: u64, left: u64) -> Self {
        Self { file, at, left }
    }
}

impl Read for Range<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = out.len().min(to_usize(self.left));
        let read =
            std::os::unix::fs::FileExt::read_at(&*self.file.file()?, out.get_mut(..most).unwrap_or_default(), self.at)?;
        (self.at, self.left) = (self.at.saturating_add(to_u64(read)), self.left.saturating_sub(to_u64(read)));
        Ok(read)
    }
}
