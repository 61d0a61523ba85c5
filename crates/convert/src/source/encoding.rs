//! Tables in UTF-16, as saved by Excel as "Unicode text". The `rows` module reads them as UTF-8.

use std::io::{self, Read, Write};

use packds_system::to_u64;

/// Number of bytes at the start of a text file that identify its encoding.
pub(super) const START_BYTES: usize = 4;
/// Number of bytes to read at a time; must be even.
const PIECE_BYTES: usize = 1 << 16;

/// Byte order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Utf16 {
    Little,
    Big,
}

impl Utf16 {
    /// Detects UTF-16 by the first bytes of a file: a byte order mark, or two characters that each have one zero byte. Other text
    /// does not contain zero bytes.
    pub(super) fn of(start: &[u8]) -> Option<Self> {
        match *start {
            [0xff, 0xfe, ..] => Some(Self::Little),
            [0xfe, 0xff, ..] => Some(Self::Big),
            [one, 0, other, 0, ..] if one != 0 && other != 0 => Some(Self::Little),
            [0, one, 0, other, ..] if one != 0 && other != 0 => Some(Self::Big),
            _ => None,
        }
    }

    /// Converts text from UTF-16 to UTF-8.
    pub(super) fn decode(self, mut from: impl Read, mut to: impl Write) -> io::Result<()> {
        let wrong =
            || io::Error::new(io::ErrorKind::InvalidData, "the text is not UTF-16, although it starts like UTF-16");
        let (mut bytes, mut high) = (Vec::with_capacity(PIECE_BYTES), None);
        loop {
            bytes.clear();
            let n = from.by_ref().take(to_u64(PIECE_BYTES)).read_to_end(&mut bytes)?;
            let (pairs, []) = bytes.as_chunks::<2>() else { return Err(wrong()) };
            let units = pairs.iter().map(|pair| match self {
                Self::Little => u16::from_le_bytes(*pair),
                Self::Big => u16::from_le_bytes(*pair).swap_bytes(),
            });
            let mut units: Vec<u16> = high.take().into_iter().chain(units).collect();
            // The second half of a surrogate pair may be in the next piece.
            if n > 0 {
                high = units.pop_if(|last| (0xd800..0xdc00).contains(last));
            }
            to.write_all(String::from_utf16(&units).map_err(|_| wrong())?.as_bytes())?;
            if n == 0 {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_utf_16_is_read_across_pieces() {
        // The leading text shifts the surrogate pairs, so that some lie across the end of a piece.
        let text = format!("path\n{}", "\u{1f600}".repeat(PIECE_BYTES));
        for (order, to_bytes) in
            [(Utf16::Little, u16::to_le_bytes as fn(u16) -> [u8; 2]), (Utf16::Big, u16::to_be_bytes)]
        {
            let bytes: Vec<u8> = text.encode_utf16().flat_map(to_bytes).collect();
            assert_eq!(Utf16::of(&bytes), Some(order));
            let mut decoded = Vec::new();
            order.decode(bytes.as_slice(), &mut decoded).unwrap();
            assert!(decoded == text.as_bytes());
            assert!(order.decode(&bytes[..bytes.len() - 2], io::sink()).is_err());
            assert!(order.decode(&bytes[..bytes.len() - 1], io::sink()).is_err());
        }
        assert_eq!(Utf16::of(b"path"), None);
    }
}
