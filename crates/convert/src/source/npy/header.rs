//! The header of NumPy files: element type, order, dimensions and the start of the data.
//!
//! Arrays of pickled objects are refused.

use packds_format::DType;
use packds_system::{to_u64, to_usize};

use crate::dtypes::of_numpy_kind;
use crate::source::arrays::Described;
use crate::source::store::ArrayType;

/// Magic bytes of a file.
pub(in crate::source) const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum size of a header, in bytes. The header of an array of numbers takes about a hundred.
pub(in crate::source) const MAX_HEADER: usize = 1 << 16;
/// Maximum number of dimensions: NumPy's own limit.
const MAX_DIMENSIONS: usize = 64;

/// The element type of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Elements {
    /// Numbers; `swapped` if big-endian.
    Numbers { dtype: DType, swapped: bool },
    /// Zero-padded strings of at most `bytes` bytes: UTF-8, or UTF-32 if `wide`.
    Text { bytes: u64, wide: bool, swapped: bool },
}

impl Elements {
    /// A description for messages.
    pub(in crate::source) fn describe(self) -> String {
        match self {
            Self::Numbers { dtype, .. } => dtype.to_string(),
            Self::Text { bytes, .. } => format!("strings of {bytes} bytes"),
        }
    }

    /// Bytes per element.
    pub(in crate::source) const fn bytes(self) -> u64 {
        match self {
            Self::Numbers { dtype, .. } => dtype.size(),
            Self::Text { bytes, .. } => bytes,
        }
    }
}

/// The content of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) struct NpyHeader {
    pub(in crate::source) elements: Elements,
    pub(in crate::source) shape: Vec<u64>,
    /// Offset of the data in the file.
    pub(in crate::source) data: u64,
    /// Size of the data, in bytes.
    pub(in crate::source) bytes: u64,
}

/// Why a header is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source) enum HeaderError {
    /// The header is damaged, or is not a header.
    Malformed(String),
    /// The header is valid but unsupported: the reason and the hint.
    Unsupported(String, &'static str),
}

impl HeaderError {
    fn found(expected: &str, found: &[u8]) -> Self {
        let found = found.get(..24).unwrap_or(found).escape_ascii();
        Self::Malformed(format!("expected {expected}, found \"{found}\""))
    }

    /// The reason for the error, with its hint if there is one.
    pub(in crate::source) fn into_reason(self) -> String {
        match self {
            Self::Malformed(reason) => reason,
            Self::Unsupported(reason, hint) => format!("{reason} ({hint})"),
        }
    }
}

impl NpyHeader {
    /// Parses the header at the start of `head`, which must contain the whole header.
    pub(in crate::source) fn parse(head: &[u8]) -> Result<Self, HeaderError> {
        let data = header_end(head)?;
        let start = if head.get(6) == Some(&1) { 10 } else { 12 };
        let text = head.get(start..data).unwrap_or_default();
        let words = Literal { rest: text }.header()?;
        let elements = elements(words.descr)?;
        let bytes = words.shape.iter().try_fold(elements.bytes(), |n, d| n.checked_mul(*d));
        let bytes =
            bytes.ok_or_else(|| HeaderError::Malformed(format!("the dimensions {:?} are too large", words.shape)))?;
        // Fortran order and C order are the same if at most one dimension is longer than 1.
        if words.fortran && words.shape.iter().filter(|n| **n != 1).count() > 1 {
            return Err(HeaderError::Unsupported(
                "the array is in Fortran order".to_owned(),
                "save numpy.ascontiguousarray(array)",
            ));
        }
        Ok(Self { elements, shape: words.shape, data: to_u64(data), bytes })
    }

    /// The array `name`. Its data starts at `offset` of a file, and `room` bytes are available from there.
    pub(in crate::source) fn described<'a>(&'a self, name: &'a str, offset: u64, room: u64) -> Described<'a> {
        Described { name, elements: self.elements, shape: &self.shape, offset, room, stride: None }
    }
}

/// The end of the header at the start of `head`.
fn header_end(head: &[u8]) -> Result<usize, HeaderError> {
    if !head.starts_with(MAGIC) {
        return Err(HeaderError::found("NumPy's \"\\x93NUMPY\"", head));
    }
    let (start, len) = match (head.get(6), head.get(8..12)) {
        (Some(1), Some(&[a, b, ..])) => (10, u32::from(u16::from_le_bytes([a, b]))),
        (Some(2 | 3), Some(&[a, b, c, d])) => (12, u32::from_le_bytes([a, b, c, d])),
        (Some(1..=3) | None, _) => return Err(HeaderError::found("a whole header", head)),
        (Some(version), _) => {
            return Err(HeaderError::Unsupported(
                format!("version {version} of the format is not supported"),
                "packds reads versions 1, 2 and 3",
            ));
        }
    };
    let end = to_usize(len).saturating_add(start);
    if end > MAX_HEADER {
        return Err(HeaderError::Malformed(format!("expected a header of at most {MAX_HEADER} bytes, found {len}")));
    }
    if end > head.len() {
        return Err(HeaderError::Malformed(format!("expected a header of {end} bytes, found {}", head.len())));
    }
    Ok(end)
}

/// The values found in the header's text.
struct Words<'a> {
    descr: &'a [u8],
    fortran: bool,
    shape: Vec<u64>,
}

/// The header's text: a Python dictionary literal.
struct Literal<'a> {
    rest: &'a [u8],
}

impl<'a> Literal<'a> {
    fn header(mut self) -> Result<Words<'a>, HeaderError> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect(b'{')?;
        while !self.take(b'}') {
            let key = self.string()?;
            self.expect(b':')?;
            match key {
                b"descr" if self.peek() == Some(b'[') => {
                    return Err(HeaderError::Unsupported(
                        "structured arrays are not supported".to_owned(),
                        "save each field as a separate array",
                    ));
                }
                b"descr" => descr = Some(self.string()?),
                b"fortran_order" => fortran = Some(self.boolean()?),
                b"shape" => shape = Some(self.dimensions()?),
                _ => {
                    return Err(HeaderError::found("'descr', 'fortran_order' or 'shape'", key));
                }
            }
            if !self.take(b',') {
                self.expect(b'}')?;
                break;
            }
        }
        match (descr, fortran, shape) {
            (Some(descr), Some(fortran), Some(shape)) => Ok(Words { descr, fortran, shape }),
            _ => Err(HeaderError::Malformed("expected 'descr', 'fortran_order' and 'shape' in the header".to_owned())),
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_ascii_start();
        self.rest.first().copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        found
    }

    fn expect(&mut self, byte: u8) -> Result<(), HeaderError> {
        if self.take(byte) {
            return Ok(());
        }
        let expected = format!("`{}` in the header", char::from(byte));
        Err(HeaderError::found(&expected, self.rest))
    }

    fn string(&mut self) -> Result<&'a [u8], HeaderError> {
        let quote = self.peek().filter(|b| matches!(b, b'\'' | b'"'));
        let quote = quote.ok_or_else(|| HeaderError::found("a string in quotes", self.rest))?;
        self.take(quote);
        let end = self.rest.iter().position(|b| *b == quote);
        let end = end.ok_or_else(|| HeaderError::found("the end of a string", self.rest))?;
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        self.take(quote);
        Ok(text)
    }

    fn boolean(&mut self) -> Result<bool, HeaderError> {
        self.peek();
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(HeaderError::found("True or False", self.rest))
    }

    fn dimensions(&mut self) -> Result<Vec<u64>, HeaderError> {
        let mut shape = Vec::new();
        self.expect(b'(')?;
        while !self.take(b')') {
            self.peek();
            let digits = self.rest.iter().take_while(|b| b.is_ascii_digit()).count();
            let (digits, rest) = self.rest.split_at(digits);
            let number = str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
            let number = number.ok_or_else(|| HeaderError::found("a dimension below 2^64", self.rest))?;
            // Python 2 adds this suffix to long integers.
            self.rest = rest.strip_prefix(b"L").unwrap_or(rest);
            shape.push(number);
            if shape.len() > MAX_DIMENSIONS {
                return Err(HeaderError::Malformed(format!(
                    "expected at most {MAX_DIMENSIONS} dimensions, found more"
                )));
            }
            if !self.take(b',') {
                self.expect(b')')?;
                break;
            }
        }
        Ok(shape)
    }
}

/// Parses a type string such as `<f4`.
pub(in crate::source) fn elements(descr: &[u8]) -> Result<Elements, HeaderError> {
    let shown = descr.escape_ascii();
    let unsupported = |what: &str, hint| {
        let reason = format!("elements of type '{shown}' are not supported{what}");
        Err(HeaderError::Unsupported(reason, hint))
    };
    let (order, kind) = match descr {
        [order @ (b'<' | b'>' | b'|' | b'='), kind @ ..] => (*order, kind),
        kind => (b'|', kind),
    };
    let Some((letter, digits)) = kind.split_first() else {
        return Err(HeaderError::found("an element type", descr));
    };
    let size: Option<u64> = str::from_utf8(digits).ok().and_then(|d| d.parse().ok());
    if let Some(dtype) = of_numpy_kind(kind) {
        return Ok(Elements::Numbers { dtype, swapped: order == b'>' && dtype.size() > 1 });
    }
    match (letter, size) {
        (b'S' | b'a', Some(bytes)) => Ok(Elements::Text { bytes, wide: false, swapped: false }),
        (b'U', Some(chars)) => {
            let bytes = chars.checked_mul(4);
            let bytes = bytes.ok_or_else(|| HeaderError::found("an element type", descr))?;
            Ok(Elements::Text { bytes, wide: true, swapped: order == b'>' })
        }
        (b'O', _) => unsupported(
            ", because reading Python objects could run arbitrary code",
            "save an array of numbers, or of fixed-width strings",
        ),
        (b'c' | b'V' | b'M' | b'm' | b'f' | b'i' | b'u', _) => {
            unsupported("", "save the array as bool, an integer type, float16, float32 or float64")
        }
        _ => Err(HeaderError::found("an element type", descr)),
    }
}

/// The array type of a `.npy` file of `len` bytes and the start of its data. The data must be little-endian and in C order. `head`
/// contains the file's first [`MAX_HEADER`] bytes.
///
/// # Errors
/// The reason, in words, if the file is not an array, is truncated, or cannot be read in place.
pub(in crate::source) fn npy_head(head: &[u8], len: u64) -> Result<(ArrayType, u64), String> {
    let header = NpyHeader::parse(head).map_err(HeaderError::into_reason)?;
    let dtype = match header.elements {
        Elements::Numbers { dtype, swapped: false } => dtype,
        Elements::Numbers { .. } => return Err("the array is big-endian".to_owned()),
        Elements::Text { .. } => return Err("it is an array of strings".to_owned()),
    };
    let found = len.saturating_sub(header.data);
    if found != header.bytes {
        let expected = header.bytes;
        return Err(format!("expected {expected} bytes of data, found {found}"));
    }
    let shape = header.shape;
    Ok((ArrayType { dtype, shape }, header.data))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn npy(text: &str) -> Vec<u8> {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        file.extend_from_slice(&u16::try_from(text.len()).unwrap().to_le_bytes());
        file.extend_from_slice(text.as_bytes());
        file
    }

    fn reason(text: &str) -> String {
        NpyHeader::parse(&npy(text)).unwrap_err().into_reason()
    }

    #[test]
    fn headers_of_all_versions_say_type_shape_and_start() {
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3L), }  \n";
        let header = NpyHeader::parse(&npy(text)).unwrap();
        assert_eq!((header.shape.as_slice(), header.bytes), (&[2, 3][..], 24));
        assert_eq!(header.data, 10 + text.len() as u64);
        for version in [2, 3] {
            let mut file = b"\x93NUMPY".to_vec();
            file.extend_from_slice(&[version, 0]);
            file.extend_from_slice(&u32::try_from(text.len()).unwrap().to_le_bytes());
            file.extend_from_slice(text.as_bytes());
            let header = NpyHeader::parse(&file).unwrap();
            assert_eq!(header.data, 12 + text.len() as u64);
        }
        let scalar = "{'shape': (), 'fortran_order': True, 'descr': '|b1'}";
        let header = NpyHeader::parse(&npy(scalar)).unwrap();
        assert_eq!((header.shape.len(), header.bytes), (0, 1));
    }

    #[test]
    fn what_is_not_for_us_is_named() {
        let array = |descr: &str, fortran: &str, shape: &str| {
            reason(&format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}"))
        };
        assert!(array("'|O'", "False", "(3,)").contains("Python objects"));
        assert!(array("[('a', '<f4')]", "False", "(3,)").contains("structured"));
        assert!(array("'<c16'", "False", "(3,)").contains("'<c16'"));
        assert!(array("'<f4'", "True", "(3, 4)").contains("Fortran"));
        let huge = "(1152921504606846976, 1152921504606846976)";
        assert!(array("'<f4'", "False", huge).contains("too large"));
        assert!(array("'<f4'", "False", "(-1,)").contains("a dimension"));
        assert!(array("'<f4'", "Maybe", "(1,)").contains("True or False"));
        assert!(reason("{}").contains("expected 'descr'"));
        assert!(reason("{'descr': '<f4").contains("the end of a string"));
        let order = "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 1)}";
        NpyHeader::parse(&npy(order)).unwrap();
    }

    #[test]
    fn a_file_in_a_container_must_be_whole_and_as_it_is_handed_out() {
        let text = "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}";
        let mut file = npy(text);
        assert!(npy_head(&file, file.len() as u64).unwrap_err().contains("found 0"));
        file.extend_from_slice(&[0; 4]);
        let (array, data) = npy_head(&file, file.len() as u64).unwrap();
        assert_eq!((array.dtype, array.shape), (DType::U16, vec![2]));
        assert_eq!(data, file.len() as u64 - 4);
        let big = String::from_utf8_lossy(&file[10..]).replace('<', ">");
        assert!(npy_head(&npy(&big), 200).unwrap_err().contains("big-endian"));
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }");
        let mut state = 1_u64;
        for round in 0..20_000_u64 {
            let mut bytes = file.clone();
            for _ in 0..=round % 3 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(round);
                let at = usize::try_from(state >> 33).unwrap() % bytes.len();
                bytes[at] = state.to_le_bytes()[2];
            }
            bytes.truncate(usize::try_from(state >> 20).unwrap() % (2 * bytes.len()));
            let _ = NpyHeader::parse(&bytes);
        }
    }
}
