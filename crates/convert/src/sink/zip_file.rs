//! Zip files whose member sizes are known before writing: headers, directory and offsets.
//!
//! `source::zip_dir` reads them. Names are written as UTF-8, times are omitted, and 64-bit fields are only used if
//! necessary.

use packds_system::to_u64;

/// Member data starts at a multiple of this, so that arrays can be used in place.
const ALIGNMENT: u64 = 64;
/// Sizes and offsets from this value on require 64 bits.
const LARGE: u64 = 0xffff_ffff;
/// 1 January 1980, midnight: the earliest time that the format can express.
const DATE: u16 = (1 << 5) | 1;
const VERSION: u16 = 45;
const UTF8_NAMES: u16 = 1 << 11;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) crc: u32,
    /// Size of the uncompressed data.
    pub(crate) bytes: u64,
    /// Size of the data in the file. It differs from `bytes` if the member is deflated.
    pub(crate) stored: u64,
    pub(crate) is_deflated: bool,
    /// Offset of the local header.
    pub(crate) header: u64,
}

impl Member {
    /// An uncompressed member with its header at `header`.
    pub(crate) fn stored(name: &str, bytes: u64, header: u64) -> Self {
        Self { name: name.to_owned(), crc: 0, bytes, stored: bytes, is_deflated: false, header }
    }

    pub(crate) fn data(&self) -> u64 {
        let least = self.header + 30 + to_u64(self.name.len()) + self.sizes_bytes() + 4;
        least.next_multiple_of(ALIGNMENT)
    }

    pub(crate) fn end(&self) -> u64 {
        self.data().saturating_add(self.stored)
    }

    /// Whether the sizes use 64-bit fields. They always do for deflated members, because their size is only known at
    /// the end.
    fn is_large(&self) -> bool {
        self.is_deflated || self.bytes >= LARGE
    }

    fn sizes_bytes(&self) -> u64 {
        if self.is_large() { 20 } else { 0 }
    }

    pub(crate) fn local_header(&self) -> Vec<u8> {
        let mut out = b"PK\x03\x04".to_vec();
        self.common(&mut out);
        let start = self.header + 30 + to_u64(self.name.len());
        let extra = self.data().saturating_sub(start);
        // This cannot overflow: the extra field has at most 24 bytes plus the alignment.
        out.extend_from_slice(&u16::try_from(extra).unwrap_or(0).to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        if self.is_large() {
            out.extend_from_slice(&[1, 0, 16, 0]);
            out.extend_from_slice(&self.bytes.to_le_bytes());
            out.extend_from_slice(&self.stored.to_le_bytes());
        }
        let padding = extra.saturating_sub(self.sizes_bytes() + 4);
        // The marker that PyTorch uses for padding.
        out.extend_from_slice(b"FB");
        out.extend_from_slice(&u16::try_from(padding).unwrap_or(0).to_le_bytes());
        out.extend((0..padding).map(|_| b'Z'));
        out
    }

    /// Appends the fields that both kinds of headers have, from the version to the length of the name.
    fn common(&self, out: &mut Vec<u8>) {
        let method: u16 = if self.is_deflated { 8 } else { 0 };
        for field in [VERSION, UTF8_NAMES, method, 0, DATE] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&self.crc.to_le_bytes());
        for size in [self.stored, self.bytes] {
            let short = if self.is_large() { LARGE } else { size };
            out.extend_from_slice(&short_of(short).to_le_bytes());
        }
        let name = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&name.to_le_bytes());
    }

    fn directory_entry(&self, out: &mut Vec<u8>) {
        let mut extra = Vec::new();
        if self.is_large() {
            extra.extend_from_slice(&self.bytes.to_le_bytes());
            extra.extend_from_slice(&self.stored.to_le_bytes());
        }
        if self.header >= LARGE {
            extra.extend_from_slice(&self.header.to_le_bytes());
        }
        out.extend_from_slice(b"PK\x01\x02");
        out.extend_from_slice(&VERSION.to_le_bytes());
        self.common(out);
        let n_extra = u16::try_from(extra.len()).unwrap_or(0);
        let n_extra = if n_extra == 0 { 0 } else { n_extra + 4 };
        for field in [n_extra, 0, 0, 0] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&short_of(self.header).to_le_bytes());
        out.extend_from_slice(self.name.as_bytes());
        if n_extra > 0 {
            out.extend_from_slice(&1_u16.to_le_bytes());
            out.extend_from_slice(&(n_extra - 4).to_le_bytes());
            out.extend_from_slice(&extra);
        }
    }
}

/// Builds the directory of `members`, which starts at `offset`, and the end record that follows it.
pub(crate) fn directory(members: &[Member], offset: u64) -> Vec<u8> {
    let mut out = Vec::new();
    members.iter().for_each(|member| member.directory_entry(&mut out));
    let bytes = to_u64(out.len());
    let n = to_u64(members.len());
    if offset >= LARGE || bytes >= LARGE || n >= 0xffff {
        out.extend_from_slice(b"PK\x06\x06");
        out.extend_from_slice(&44_u64.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&[0; 8]);
        for field in [n, n, bytes, offset] {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.extend_from_slice(b"PK\x06\x07");
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&(offset + bytes).to_le_bytes());
        out.extend_from_slice(&1_u32.to_le_bytes());
    }
    out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    let short_n = u16::try_from(n).unwrap_or(u16::MAX);
    out.extend_from_slice(&short_n.to_le_bytes());
    out.extend_from_slice(&short_n.to_le_bytes());
    out.extend_from_slice(&short_of(bytes).to_le_bytes());
    out.extend_from_slice(&short_of(offset).to_le_bytes());
    out.extend_from_slice(&[0; 2]);
    out
}

fn short_of(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
