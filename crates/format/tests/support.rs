//! A second implementation of the layout in docs/reference/format.md, for tests. It locates the parts of files that
//! may be damaged, and corrects checksums so that they do not reveal the damage.
//!
//! Nothing here panics, whatever the bytes. Positions outside the file are ignored.

use std::path::{Path, PathBuf};

use packds_format::crc32c;

/// The folder of the golden packs.
pub(crate) fn golden_folder() -> PathBuf {
    fixtures().join("golden/v1")
}

/// The folder of the malformed packs.
pub(crate) fn malformed_folder() -> PathBuf {
    fixtures().join("malformed")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// A number of `size` bytes at `at`. 0 past the end of the file.
pub(crate) fn get(file: &[u8], at: usize, size: usize) -> u64 {
    let bytes = at.checked_add(size).and_then(|end| file.get(at..end)).unwrap_or(&[]);
    bytes.iter().rev().fold(0, |n, &b| (n << 8) | u64::from(b))
}

/// Writes `bytes` at `at`, up to the end of the file.
pub(crate) fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    if let Some(target) = file.get_mut(at..) {
        target.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }
}

/// Converts a number from the file to an index into it.
pub(crate) fn place(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

fn slice(file: &[u8], at: u64, len: u64) -> &[u8] {
    place(at).checked_add(place(len)).and_then(|end| file.get(place(at)..end)).unwrap_or(&[])
}

/// A section of the footer: the position and contents of its entry.
#[derive(Clone)]
pub(crate) struct Section {
    pub(crate) entry_at: usize,
    pub(crate) tag: [u8; 4],
    pub(crate) offset: u64,
    pub(crate) len: u64,
}

/// The start of the trailer.
pub(crate) fn trailer_at(file: &[u8]) -> usize {
    file.len().saturating_sub(64)
}

/// The sections that are inside the file.
pub(crate) fn sections(file: &[u8]) -> Vec<Section> {
    let footer = place(get(file, trailer_at(file) + 8, 8));
    let n = place(get(file, footer, 4)).min(256);
    let section = |i: usize| {
        let entry_at = footer.saturating_add(8 + 32 * i);
        let mut tag = [0; 4];
        tag.copy_from_slice(file.get(entry_at..entry_at.saturating_add(4)).unwrap_or(&[0; 4]));
        let (offset, len) = (get(file, entry_at + 8, 8), get(file, entry_at + 16, 8));
        Section { entry_at, tag, offset, len }
    };
    if footer >= file.len() { Vec::new() } else { (0..n).map(section).collect() }
}

/// The section with this tag.
pub(crate) fn section(file: &[u8], tag: &[u8; 4]) -> Option<Section> {
    sections(file).into_iter().find(|s| &s.tag == tag)
}

/// Corrects every checksum of the file from the inside out: chunks, columns, sections, header, footer, trailer. Also
/// corrects the trailer's end magic and file length.
pub(crate) fn reseal(file: &mut [u8]) {
    reseal_chunks(file);
    reseal_columns(file);
    reseal_outside(file);
}

/// Corrects the checksums outside the chunk table and the column directory.
pub(crate) fn reseal_outside(file: &mut [u8]) {
    for section in sections(file) {
        let crc = crc32c(slice(file, section.offset, section.len));
        put(file, section.entry_at + 24, &crc.to_le_bytes());
        if &section.tag == b"SCHM" {
            put(file, 112, &crc.to_le_bytes());
            put(file, 80, &section.len.to_le_bytes());
        }
    }
    let front = crc32c(file.get(..4092).unwrap_or(&[]));
    put(file, 4092, &front.to_le_bytes());
    let at = trailer_at(file);
    if file.len() < 64 {
        return;
    }
    let footer = get(file, at + 8, 8);
    let n = get(file, place(footer), 4);
    let table = crc32c(slice(file, footer, n.saturating_mul(32).saturating_add(8)));
    put(file, at + 48, &table.to_le_bytes());
    let len = u64::try_from(file.len()).unwrap_or(0);
    put(file, at, &len.to_le_bytes());
    put(file, at + 56, b"\x89PKEND\r\n");
    let mut sealed = file[at..at + 52].to_vec();
    sealed.extend_from_slice(&file[at + 56..]);
    let crc = crc32c(&sealed);
    put(file, at + 52, &crc.to_le_bytes());
}

/// The positions of chunk `k` and of its checksum.
pub(crate) fn chunk_place(file: &[u8], table: &Section, k: u64) -> (u64, u64, usize) {
    let at = place(table.offset).saturating_add(16);
    if get(file, place(table.offset).saturating_add(12), 4) == 1 {
        let entry = at.saturating_add(place(k.saturating_mul(32)));
        return (get(file, entry, 8), get(file, entry.saturating_add(8), 8), entry.saturating_add(16));
    }
    let (data_off, stride) = (get(file, 88, 8), get(file, 104, 8));
    let (per_chunk, sample) = (get(file, 36, 4), get(file, 96, 8));
    let n_samples = get(file, trailer_at(file) + 24, 8);
    let left = n_samples.saturating_sub(k.saturating_mul(per_chunk)).min(per_chunk);
    // A single field has no padding. Several fields fill the stride.
    let alone = sample.checked_mul(per_chunk) == Some(stride);
    let len = if alone { left.saturating_mul(sample) } else { stride };
    let offset = data_off.saturating_add(k.saturating_mul(stride));
    (offset, len, at.saturating_add(place(k.saturating_mul(4))))
}

fn reseal_chunks(file: &mut [u8]) {
    let Some(table) = section(file, b"CHNK") else {
        return;
    };
    // A mutated table may claim any length, but a file has at most one entry per 4 bytes.
    let most = u64::try_from(file.len() / 4).unwrap_or(0);
    let n = get(file, place(table.offset), 8).min(table.len / 4).min(most);
    for k in 0..n {
        let (offset, len, crc_at) = chunk_place(file, &table, k);
        let crc = crc32c(slice(file, offset, len));
        put(file, crc_at, &crc.to_le_bytes());
    }
}

fn reseal_columns(file: &mut [u8]) {
    const BLOCK: u64 = 1 << 20;
    let Some(directory) = section(file, b"COLS") else {
        return;
    };
    let at = place(directory.offset);
    let n = get(file, at, 4).min(directory.len / 24).min(u64::try_from(file.len() / 24).unwrap_or(0));
    let mut crc_at = at.saturating_add(8 + 24 * place(n));
    for i in 0..place(n) {
        let entry = at.saturating_add(8 + 24 * i);
        let (offset, len) = (get(file, entry.saturating_add(8), 8), get(file, entry.saturating_add(16), 8));
        let (mut done, end) = (0, len.min(u64::try_from(file.len()).unwrap_or(0)));
        while done < end {
            let crc = crc32c(slice(file, offset.saturating_add(done), BLOCK.min(end - done)));
            put(file, crc_at, &crc.to_le_bytes());
            (crc_at, done) = (crc_at.saturating_add(4), done.saturating_add(BLOCK));
        }
    }
}

/// A section for [`rebuild`].
pub(crate) struct Part {
    pub(crate) tag: [u8; 4],
    pub(crate) flags: u32,
    pub(crate) bytes: Vec<u8>,
}

/// The same pack with a new footer and schema copy, after `edit` changed its sections. The checksums of sections,
/// header, footer and trailer are correct.
pub(crate) fn rebuild(file: &[u8], edit: impl FnOnce(&mut Vec<Part>)) -> Vec<u8> {
    let part = |s: &Section| Part {
        tag: s.tag,
        flags: u32::try_from(get(file, s.entry_at + 4, 4)).unwrap_or(0),
        bytes: slice(file, s.offset, s.len).to_vec(),
    };
    let mut parts: Vec<Part> = sections(file).iter().map(part).collect();
    edit(&mut parts);
    let trailer = file[trailer_at(file)..].to_vec();
    let footer_off = place(get(file, trailer_at(file) + 8, 8));
    let mut out = file[..footer_off].to_vec();
    let le = |n: usize| u64::try_from(n).unwrap_or(0).to_le_bytes();
    out.extend_from_slice(&le(parts.len()));
    let mut end = footer_off + 8 + 32 * parts.len();
    for part in &parts {
        let offset = end.next_multiple_of(64);
        end = offset + part.bytes.len();
        out.extend_from_slice(&part.tag);
        out.extend_from_slice(&part.flags.to_le_bytes());
        out.extend_from_slice(&le(offset));
        out.extend_from_slice(&le(part.bytes.len()));
        out.extend_from_slice(&[0; 8]);
    }
    for part in &parts {
        out.resize(out.len().next_multiple_of(64), 0);
        out.extend_from_slice(&part.bytes);
        if &part.tag == b"SCHM" {
            let data_off = place(get(file, 88, 8)).min(footer_off);
            out[4096..data_off].fill(0);
            put(&mut out[..data_off], 4096, &part.bytes);
        }
    }
    let footer_len = out.len() - footer_off;
    out.extend_from_slice(&trailer);
    let at = trailer_at(&out);
    put(&mut out, at + 16, &le(footer_len));
    reseal_outside(&mut out);
    out
}
