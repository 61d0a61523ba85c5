//! Helpers for byte slices: little-endian integers, tables of offsets, ranges and padding.

use crate::FormatError;
use packds_system::{to_u64, to_usize};

/// The `N` bytes at `offset`. `None` if they extend beyond the end.
pub(crate) fn array_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    array_at(bytes, offset).map(u16::from_le_bytes)
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    array_at(bytes, offset).map(u32::from_le_bytes)
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    array_at(bytes, offset).map(u64::from_le_bytes)
}

/// Writes `value` at `offset`. The caller guarantees that it fits.
pub(crate) fn put(bytes: &mut [u8], offset: usize, value: &[u8]) {
    if let Some(target) = bytes.get_mut(offset..offset.saturating_add(value.len())) {
        target.copy_from_slice(value);
    }
}

/// Appends a table of offsets for parts with these lengths: 0, then the end of each part.
pub(crate) fn put_ends(out: &mut Vec<u8>, lens: impl Iterator<Item = u64>) {
    let mut end = 0_u64;
    out.extend_from_slice(&end.to_le_bytes());
    for len in lens {
        end += len;
        out.extend_from_slice(&end.to_le_bytes());
    }
}

/// The bytes `offset..offset + size` of `bytes`.
pub(crate) fn slice<'a>(what: &'static str, bytes: &'a [u8], offset: u64, size: u64) -> Result<&'a [u8], FormatError> {
    let found = offset.checked_add(size).and_then(|end| bytes.get(to_usize(offset)..to_usize(end)));
    found.ok_or(FormatError::OutOfBounds { what, offset, size, len: len_u64(bytes) })
}

/// The length of a slice. It always fits in 64 bits.
pub(crate) fn len_u64<T>(items: &[T]) -> u64 {
    to_u64(items.len())
}

/// Rounds `n` up to a multiple of `align`. `align` must not be 0.
pub(crate) fn align_up(n: u64, align: u64) -> Option<u64> {
    n.div_ceil(align).checked_mul(align)
}

/// Checks that all `bytes` (at `offset` in the file) are zero.
pub(crate) fn check_zero(what: &'static str, bytes: &[u8], offset: u64) -> Result<(), FormatError> {
    let Some(at) = bytes.iter().position(|byte| *byte != 0) else { return Ok(()) };
    let found = bytes.get(at).copied().unwrap_or(0);
    Err(FormatError::NotZero { what, offset: offset.saturating_add(to_u64(at)), found })
}
