//! Finds damage. Every byte of a pack is either covered by a checksum or must be zero.

use crate::checksum::crc32c;
use crate::columns::COLUMN_ALIGN;
use crate::file::{PackFile, section};
use crate::header::HEADER_BYTES;
use crate::le::{self, len_u64};
use crate::trailer::TRAILER_BYTES;
use crate::{ChunkEntry, FormatError};

/// A damaged chunk.
#[derive(Debug)]
pub struct ChunkDamage {
    /// The error, with the chunk, its samples and its location.
    pub error: FormatError,
    /// The samples that fail their own checksums. Empty if samples have no checksums.
    pub bad_samples: Vec<u64>,
}

/// Checks everything except the chunks: the copy of the schema after the header, the columns, every section and all
/// padding. Does not repeat the checks of [`PackFile::open`].
///
/// # Errors
/// The first 100 errors, in file order.
pub(crate) fn check_outside_chunks<D: AsRef<[u8]>>(pack: &PackFile<D>) -> Result<(), Vec<FormatError>> {
    const MAX_ERRORS: usize = 100;
    let mut errors = Vec::new();
    let mut note = |result: Result<(), FormatError>| {
        if errors.len() < MAX_ERRORS {
            errors.extend(result.err());
        }
    };
    let header = pack.header();
    note(check_front_schema(pack));
    note(check_padding(pack, "padding before the body", HEADER_BYTES + header.schema_len, header.data_off));
    if !pack.schema().is_strided() {
        check_between_chunks(pack, &mut note);
    }
    let mut end = pack.chunks.body_end;
    for column in pack.columns() {
        note(check_padding(pack, "padding before a column", end, column.offset));
        let name = pack.schema().fields().get(column.field).map_or("", |f| f.name.as_str());
        note(column.check(pack.bytes_unchecked(), name));
        end = column.offset.saturating_add(column.len);
    }
    debug_assert!(pack.columns().iter().all(|c| c.offset.is_multiple_of(COLUMN_ALIGN)));
    note(check_padding(pack, "padding before the footer", pack.columns_end, pack.trailer().footer_off));
    let mut end = pack.trailer().footer_off + 8 + 32 * len_u64(pack.sections());
    for entry in pack.sections() {
        note(check_padding(pack, "padding before a section", end, entry.offset));
        note(section(pack.bytes_unchecked(), entry).map(|_| ()));
        end = entry.offset + entry.len;
    }
    debug_assert_eq!(end + TRAILER_BYTES, pack.trailer().file_len);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Checks the padding between the chunks of an explicit body, which start at multiples of the alignment.
fn check_between_chunks<D: AsRef<[u8]>>(pack: &PackFile<D>, note: &mut impl FnMut(Result<(), FormatError>)) {
    let mut end = pack.header().data_off;
    for chunk in 0..pack.n_chunks() {
        match pack.chunk_entry(chunk) {
            Ok(ChunkEntry { offset, stored_len, .. }) => {
                note(check_padding(pack, "padding between chunks", end, offset));
                end = offset.saturating_add(stored_len);
            }
            Err(error) => note(Err(error)),
        }
    }
}

fn check_front_schema<D: AsRef<[u8]>>(pack: &PackFile<D>) -> Result<(), FormatError> {
    let header = pack.header();
    let schema = le::slice("schema", pack.bytes_unchecked(), HEADER_BYTES, header.schema_len)?;
    FormatError::check_crc("schema after the header", HEADER_BYTES, header.schema_crc32c, crc32c(schema))
}

fn check_padding<D: AsRef<[u8]>>(
    pack: &PackFile<D>,
    what: &'static str,
    start: u64,
    end: u64,
) -> Result<(), FormatError> {
    let bytes = le::slice(what, pack.bytes_unchecked(), start, end.saturating_sub(start))?;
    le::check_zero(what, bytes, start)
}

/// Verifies a chunk's stored bytes, however they were read, against the chunk's checksum. Also checks the chunk's
/// tables, and that all bytes outside the chunk's parts are zero. Decompresses only if the checksum fails.
///
/// # Errors
/// The damage found. If the chunk's checksum does not match, samples are checked one by one to identify the damaged
/// ones.
pub fn check_file_chunk<D: AsRef<[u8]>>(pack: &PackFile<D>, chunk: u64, bytes: &[u8]) -> Result<(), ChunkDamage> {
    let plain = |error| ChunkDamage { error, bad_samples: Vec::new() };
    let entry = pack.chunk_entry(chunk).map_err(plain)?;
    let found = crc32c(bytes);
    if found == entry.crc32c && len_u64(bytes) == entry.stored_len {
        let view = pack.view_chunk(chunk, bytes).map_err(plain)?;
        return view.check_structure(entry.offset).map_err(plain);
    }
    let error = match pack.compare_chunk(chunk, found) {
        Err(error) => error,
        // The length is wrong, although the checksum matches.
        Ok(()) => FormatError::bad_value("chunk's bytes", entry.offset, entry.stored_len, bytes.len()),
    };
    Err(ChunkDamage { error, bad_samples: pack.bad_samples(chunk, bytes) })
}
