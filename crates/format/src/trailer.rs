//! The trailer: the last 64 bytes. A file without a trailer is incomplete. See docs/reference/format.md, "Trailer".

use crate::checksum::Crc32c;
use crate::header::Uuid;
use crate::{FormatError, le};

/// The last eight bytes of every pack.
pub const END_MAGIC: [u8; 8] = [0x89, b'P', b'K', b'E', b'N', b'D', 0x0d, 0x0a];
/// Length of the trailer.
pub const TRAILER_BYTES: u64 = 64;
/// The trailer's fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trailer {
    /// Length of the file.
    pub file_len: u64,
    /// Where the footer starts.
    pub footer_off: u64,
    /// Length of the footer, which precedes the trailer.
    pub footer_len: u64,
    /// Number of samples.
    pub n_samples: u64,
    /// The pack's id, as in the header.
    pub pack_uuid: Uuid,
    /// CRC32C of the footer's section table.
    pub footer_crc32c: u32,
}

impl Trailer {
    /// The 64 bytes in the file.
    pub(crate) fn to_bytes(&self) -> [u8; 64] {
        let mut bytes = [0; 64];
        le::put(&mut bytes, 0, &self.file_len.to_le_bytes());
        le::put(&mut bytes, 8, &self.footer_off.to_le_bytes());
        le::put(&mut bytes, 16, &self.footer_len.to_le_bytes());
        le::put(&mut bytes, 24, &self.n_samples.to_le_bytes());
        le::put(&mut bytes, 32, &self.pack_uuid.0);
        le::put(&mut bytes, 48, &self.footer_crc32c.to_le_bytes());
        le::put(&mut bytes, 56, &END_MAGIC);
        let crc = checksum(&bytes);
        le::put(&mut bytes, 52, &crc.to_le_bytes());
        bytes
    }

    /// Parses the last 64 bytes of a file of `file_len` bytes.
    pub(crate) fn parse(bytes: &[u8; 64], file_len: u64) -> Result<Self, FormatError> {
        let offset = file_len.saturating_sub(TRAILER_BYTES);
        let found = le::array_at::<8>(bytes, 56).unwrap_or_default();
        if found != END_MAGIC {
            return Err(FormatError::NoTrailer { offset, expected: END_MAGIC, found });
        }
        let u64_at = |at| le::u64_at(bytes, at).unwrap_or(0);
        let u32_at = |at| le::u32_at(bytes, at).unwrap_or(0);
        FormatError::check_crc("trailer", offset, u32_at(52), checksum(bytes))?;
        let trailer = Self {
            file_len: u64_at(0),
            footer_off: u64_at(8),
            footer_len: u64_at(16),
            n_samples: u64_at(24),
            pack_uuid: Uuid(le::array_at(bytes, 32).unwrap_or_default()),
            footer_crc32c: u32_at(48),
        };
        if trailer.file_len != file_len {
            return Err(FormatError::WrongLength { expected: trailer.file_len, found: file_len });
        }
        let end = trailer.footer_off.checked_add(trailer.footer_len);
        if end != Some(offset) {
            return Err(FormatError::bad_value(
                "footer length",
                offset + 16,
                offset.saturating_sub(trailer.footer_off),
                trailer.footer_len,
            ));
        }
        Ok(trailer)
    }
}

/// CRC32C of the trailer, excluding the checksum itself.
fn checksum(bytes: &[u8; 64]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(bytes.get(..52).unwrap_or(&[]));
    crc.update(bytes.get(56..).unwrap_or(&[]));
    crc.value()
}
