//! Memory of the process as the simulated driver sees it: address ranges and their bytes.

use packds_system::{to_u64, to_usize};
use std::fs;
use std::ops::Range;
use std::ptr;
use std::slice;

pub(super) fn range(start: u64, len: u64) -> Range<u64> {
    start..start.saturating_add(len)
}

pub(super) fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

pub(super) fn address(n: usize) -> u64 {
    to_u64(n)
}

pub(super) fn place(n: u64) -> usize {
    to_usize(n)
}

/// The bytes at an address that the caller of the driver promised to keep.
pub(super) fn bytes_at<'a>(address: u64, len: u64) -> &'a [u8] {
    let from: *const u8 = ptr::with_exposed_provenance(place(address));
    // SAFETY: callers of the driver keep what they queue until it is done, and these bytes are read before that. Only
    // code under test breaks this rule.
    unsafe { slice::from_raw_parts(from, place(len)) }
}

/// Whether the process has mapped the whole range. `true` if this is unknown.
pub(super) fn is_mapped(range: &Range<u64>) -> bool {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return true };
    let mut covered = range.start;
    for line in maps.lines() {
        let ends = line.split(' ').next().and_then(|ends| ends.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).unwrap_or(0);
        let (start, end) = ends.map_or((0, 0), |(a, b)| (number(a), number(b)));
        if start <= covered && covered < end {
            covered = end;
        }
    }
    covered >= range.end
}

pub(super) fn checksum(address: u64, len: u64) -> u64 {
    // FNV-1a.
    let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3);
    bytes_at(address, len).iter().fold(0xCBF2_9CE4_8422_2325, hash)
}

pub(super) fn copy(from: u64, to: u64, len: u64) {
    let source: *const u8 = ptr::with_exposed_provenance(place(from));
    let target: *mut u8 = ptr::with_exposed_provenance_mut(place(to));
    // SAFETY: as in `bytes_at`. Callers also promise that no other code uses the target.
    unsafe { ptr::copy(source, target, place(len)) };
}
