//! Assembles chunks from encoded blocks. See docs/reference/format.md, "Body".

use crate::block::{Block, BlockPart};
use crate::checksum::crc32c;
use crate::chunk::{EXPLICIT_PART_ALIGN, PART_ENTRY_BYTES, strided_parts};
use crate::geometry::check_chunk_bytes;
use crate::le::{self, len_u64};
use crate::{Field, FieldKind, FormatError, Schema};
use packds_system::{to_u64, to_usize};

/// Writes a chunk made of `blocks` and returns its length. `write` receives the bytes piece by piece, each piece with
/// its CRC32C.
pub(crate) fn write_chunk(
    schema: &Schema,
    chunk_samples: u32,
    block_samples: u32,
    blocks: &[Block],
    mut write: impl FnMut(&[u8], u32) -> Result<(), FormatError>,
) -> Result<u64, FormatError> {
    if !schema.is_strided() {
        return write_explicit(schema, block_samples, blocks, &mut write);
    }
    let (offsets, chunk_bytes) = strided_parts(schema, chunk_samples)?;
    let several = offsets.len() > 1;
    let mut end = 0;
    for (position, offset) in offsets.iter().enumerate() {
        write_zeros(offset - end, &mut write)?;
        end = *offset;
        for block in blocks {
            let (bytes, crc) = block.payload(position)?;
            write(bytes, crc)?;
            end += len_u64(bytes);
        }
    }
    if several {
        write_zeros(chunk_bytes - end, &mut write)?;
        end = chunk_bytes;
    }
    Ok(end)
}

fn write_explicit(
    schema: &Schema,
    block_samples: u32,
    blocks: &[Block],
    write: &mut impl FnMut(&[u8], u32) -> Result<(), FormatError>,
) -> Result<u64, FormatError> {
    let fields: Vec<&Field> = schema.body().map(|(_, f)| f).collect();
    let mut end = to_u64(fields.len()) * PART_ENTRY_BYTES;
    let mut directory = Vec::new();
    let mut tables = Vec::new();
    for (position, field) in fields.iter().enumerate() {
        let parts = blocks.iter().map(|b| b.part(position)).collect::<Result<Vec<_>, _>>()?;
        let table = part_table(field, &parts);
        let payload: u64 = parts.iter().map(|p| p.payload_len()).sum();
        let offset = le::align_up(end, EXPLICIT_PART_ALIGN).unwrap_or(u64::MAX);
        let len = len_u64(&table) + payload;
        end = offset.saturating_add(len);
        check_chunk_bytes(end)?;
        let coded = !field.codec.is_none();
        let n_blocks = if coded { u32::try_from(blocks.len()).unwrap_or(u32::MAX) } else { 0 };
        directory.extend_from_slice(&offset.to_le_bytes());
        directory.extend_from_slice(&len.to_le_bytes());
        directory.extend_from_slice(&n_blocks.to_le_bytes());
        directory.extend_from_slice(&(if coded { block_samples } else { 0 }).to_le_bytes());
        directory.extend_from_slice(&[field.codec.number(), field.codec.filter().number(), 0, 0, 0, 0, 0, 0]);
        tables.push((offset, table));
    }
    write(&directory, crc32c(&directory))?;
    let mut at = len_u64(&directory);
    for (position, (offset, table)) in tables.iter().enumerate() {
        write_zeros(offset - at, write)?;
        write(table, crc32c(table))?;
        at = offset + len_u64(table);
        for block in blocks {
            let (bytes, crc) = block.payload(position)?;
            write(bytes, crc)?;
            at += len_u64(bytes);
        }
    }
    Ok(end)
}

/// The table at the start of a part: item offsets, or block offsets and decoded lengths. Empty if the part needs no
/// table.
fn part_table(field: &Field, parts: &[&BlockPart]) -> Vec<u8> {
    let mut table = Vec::new();
    if field.codec.is_none() {
        if field.kind != FieldKind::Tensor {
            le::put_ends(&mut table, parts.iter().flat_map(|p| p.item_lens()).copied());
        }
        return table;
    }
    le::put_ends(&mut table, parts.iter().map(|p| p.payload_len()));
    for part in parts {
        table.extend_from_slice(&part.decoded_len().to_le_bytes());
    }
    table
}

fn write_zeros(n: u64, write: &mut impl FnMut(&[u8], u32) -> Result<(), FormatError>) -> Result<(), FormatError> {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = n;
    while left > 0 {
        let now = to_usize(left).min(ZEROS.len());
        let zeros = ZEROS.get(..now).unwrap_or(&ZEROS);
        write(zeros, crc32c(zeros))?;
        left -= to_u64(now);
    }
    Ok(())
}
