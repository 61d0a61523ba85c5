//! The footer: a section table and the sections. See docs/reference/format.md, "Footer".

use crate::checksum::crc32c;
use crate::limits::MAX_SECTIONS;
use crate::trailer::Trailer;
use crate::{FormatError, le};

/// Alignment of sections.
pub const SECTION_ALIGN: u64 = 64;
/// Bytes of one entry of the section table.
pub const SECTION_ENTRY_BYTES: u64 = 32;
/// Section flag: a reader that does not know the tag must reject the pack.
pub const SECTION_MUST_UNDERSTAND: u32 = 1;
/// Bytes of the section table before its entries.
const TABLE_HEAD: u64 = 8;

/// A section's four-letter type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SectionTag(pub [u8; 4]);

impl SectionTag {
    /// The schema, as JSON.
    pub const SCHEMA: Self = Self(*b"SCHM");
    /// The chunk table.
    pub const CHUNKS: Self = Self(*b"CHNK");
    /// The column directory.
    pub const COLUMNS: Self = Self(*b"COLS");
    /// Statistics, as JSON.
    pub const STATS: Self = Self(*b"STAT");
    /// Class names and counts, as JSON.
    pub const CLASSES: Self = Self(*b"CLAS");
    /// Provenance, as JSON.
    pub const PROVENANCE: Self = Self(*b"PROV");
    /// Each sample's source path, compressed.
    pub const PATHS: Self = Self(*b"PATH");

    const KNOWN: [Self; 7] =
        [Self::SCHEMA, Self::CHUNKS, Self::COLUMNS, Self::STATS, Self::CLASSES, Self::PROVENANCE, Self::PATHS];

    /// Whether readers require the section.
    const fn is_required(self) -> bool {
        matches!(&self.0, b"SCHM" | b"CHNK" | b"COLS")
    }
}

impl std::fmt::Display for SectionTag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.0.escape_ascii())
    }
}

/// An entry of the section table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionEntry {
    /// What the section contains.
    pub tag: SectionTag,
    /// If bit 0 is set, a reader that does not know the section must refuse the pack.
    pub flags: u32,
    /// Where it starts in the file.
    pub offset: u64,
    /// Its length.
    pub len: u64,
    /// CRC32C of its bytes.
    pub crc32c: u32,
}

/// Lays out a footer at `footer_off` (a multiple of 64). Returns its bytes and its table's checksum.
pub(crate) fn to_bytes(footer_off: u64, sections: &[(SectionTag, Vec<u8>)]) -> Result<(Vec<u8>, u32), FormatError> {
    let too_long = || FormatError::WrongUse("footer is longer than 2^64 bytes".to_owned());
    let n = u32::try_from(sections.len()).map_err(|_| too_long())?;
    let table_len = TABLE_HEAD + SECTION_ENTRY_BYTES * u64::from(n);
    let mut table = Vec::new();
    table.extend_from_slice(&n.to_le_bytes());
    table.extend_from_slice(&0_u32.to_le_bytes());
    let mut end = footer_off.checked_add(table_len).ok_or_else(too_long)?;
    let mut body = Vec::new();
    for (tag, bytes) in sections {
        let offset = le::align_up(end, SECTION_ALIGN).ok_or_else(too_long)?;
        let flags = if tag.is_required() { SECTION_MUST_UNDERSTAND } else { 0 };
        table.extend_from_slice(&tag.0);
        table.extend_from_slice(&flags.to_le_bytes());
        table.extend_from_slice(&offset.to_le_bytes());
        table.extend_from_slice(&le::len_u64(bytes).to_le_bytes());
        table.extend_from_slice(&crc32c(bytes).to_le_bytes());
        table.extend_from_slice(&0_u32.to_le_bytes());
        body.extend((end..offset).map(|_| 0_u8));
        body.extend_from_slice(bytes);
        end = offset.checked_add(le::len_u64(bytes)).ok_or_else(too_long)?;
    }
    let crc = crc32c(&table);
    table.append(&mut body);
    Ok((table, crc))
}

/// Parses and validates the section table. Sections are verified when they are read.
pub(crate) fn parse(file: &[u8], trailer: &Trailer) -> Result<Vec<SectionEntry>, FormatError> {
    let footer = le::slice("footer", file, trailer.footer_off, trailer.footer_len)?;
    let n = le::u32_at(footer, 0).ok_or_else(|| outside(trailer, 0, TABLE_HEAD))?;
    if n > MAX_SECTIONS {
        return Err(FormatError::bad_value("number of sections", trailer.footer_off, "at most 256", n));
    }
    let table_len = TABLE_HEAD + SECTION_ENTRY_BYTES * u64::from(n);
    let table = le::slice("section table", footer, 0, table_len)?;
    FormatError::check_crc("footer", trailer.footer_off, trailer.footer_crc32c, crc32c(table))?;
    le::check_zero("footer, reserved", table.get(4..8).unwrap_or(&[]), trailer.footer_off + 4)?;
    let mut entries: Vec<SectionEntry> = Vec::new();
    let footer_end = trailer.footer_off.saturating_add(trailer.footer_len);
    let mut end = trailer.footer_off.saturating_add(table_len);
    for (i, bytes) in (0_u64..).zip(table.get(8..).unwrap_or(&[]).chunks_exact(32)) {
        let at = trailer.footer_off + TABLE_HEAD + i * SECTION_ENTRY_BYTES;
        let entry = parse_entry(bytes, at)?;
        let expected = le::align_up(end, SECTION_ALIGN).unwrap_or(u64::MAX);
        FormatError::check_value("section offset", at + 8, expected, entry.offset)?;
        end = match entry.offset.checked_add(entry.len) {
            Some(end) if end <= footer_end => end,
            _ => return Err(outside(trailer, entry.offset, entry.len)),
        };
        if entries.iter().any(|e| e.tag == entry.tag) {
            return Err(FormatError::DuplicateSection { tag: entry.tag });
        }
        entries.push(entry);
    }
    FormatError::check_value("footer length", footer_end + 16, end - trailer.footer_off, trailer.footer_len)?;
    for tag in SectionTag::KNOWN.into_iter().filter(|t| t.is_required()) {
        if !entries.iter().any(|e| e.tag == tag) {
            return Err(FormatError::MissingSection { tag });
        }
    }
    Ok(entries)
}

fn parse_entry(bytes: &[u8], at: u64) -> Result<SectionEntry, FormatError> {
    let entry = SectionEntry {
        tag: SectionTag(le::array_at(bytes, 0).unwrap_or_default()),
        flags: le::u32_at(bytes, 4).unwrap_or(0),
        offset: le::u64_at(bytes, 8).unwrap_or(0),
        len: le::u64_at(bytes, 16).unwrap_or(0),
        crc32c: le::u32_at(bytes, 24).unwrap_or(0),
    };
    le::check_zero("section entry, reserved", bytes.get(28..32).unwrap_or(&[]), at + 28)?;
    if entry.flags & !SECTION_MUST_UNDERSTAND != 0 {
        return Err(FormatError::bad_value("section flags", at + 4, "0 or 1", entry.flags));
    }
    let known = SectionTag::KNOWN.contains(&entry.tag);
    if !known && entry.flags & SECTION_MUST_UNDERSTAND != 0 {
        return Err(FormatError::UnknownSection { tag: entry.tag });
    }
    if entry.tag.is_required() && entry.flags != SECTION_MUST_UNDERSTAND {
        return Err(FormatError::bad_value("section flags", at + 4, "1", entry.flags));
    }
    Ok(entry)
}

fn outside(trailer: &Trailer, offset: u64, size: u64) -> FormatError {
    let len = trailer.footer_off.saturating_add(trailer.footer_len);
    FormatError::OutOfBounds { what: "section", offset, size, len }
}
