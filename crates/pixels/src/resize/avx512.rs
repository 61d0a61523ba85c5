//! The two passes with AVX-512, VBMI and VNNI. The sums have the same terms as in the plain code, but in a different
//! order.
//!
//! In the horizontal pass, `vpermb` gathers four source bytes for each of 16 output bytes. Channels, scale and flip
//! only change the table of positions (`lanes`). `vpdpbusd` multiplies these bytes with weights, which are split into
//! three byte-sized digits, and adds the products. In the vertical pass, pairs of rows are multiplied as in `avx2`,
//! with twice as many columns at a time. All sums wrap in 32 bits, as in the plain code.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_dpbusd_epi32, _mm512_dpwssd_epi32, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
    _mm512_packs_epi32, _mm512_packus_epi16, _mm512_permutexvar_epi8, _mm512_permutexvar_epi32, _mm512_set1_epi32,
    _mm512_setr_epi32, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_srai_epi32, _mm512_storeu_si512,
    _mm512_unpackhi_epi8, _mm512_unpacklo_epi8,
};

use super::kernel::{Horizontal, Ring};
use super::lanes::{LANES, Lanes, REACH, Step};
use super::taps::{PRECISION, SPLIT, Taps};

const SHIFT: u32 = PRECISION;
const DIGIT: u32 = 8;
/// Half an output level, for rounding: in units of the highest digit, and in units of the weights' high parts.
const HALF_DIGIT: i32 = 1 << (PRECISION - 1 - 2 * DIGIT);
const HALF_HIGH: i32 = 1 << (PRECISION - 1 - SPLIT);
/// Number of rows that the horizontal pass processes together.
const ROWS: usize = 4;
/// Number of bytes that are written together.
const COLUMNS: usize = 64;

/// Proof that this processor has the instructions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    pub(super) fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vnni");
        all.then_some(Self(()))
    }

    /// See `Kernel::horizontal`. `lanes` must belong to the job's taps.
    pub(super) fn horizontal(self, job: &Horizontal<'_>, lanes: &Lanes, dst: &mut dyn Iterator<Item = &mut [u8]>) {
        let width = job.taps.start.len() * job.channels;
        let last = job.n_rows - 1;
        for first in (0..job.n_rows).step_by(ROWS) {
            // If the last block is incomplete, its last row is computed several times, and the copies are discarded.
            let row = |index: usize| job.ring.row(job.first + (first + index).min(last));
            let rows = [row(0), row(1), row(2), row(3)];
            let mut out: [&mut [u8]; ROWS] = [&mut [], &mut [], &mut [], &mut []];
            for (out, _) in out.iter_mut().zip(first..job.n_rows) {
                if let Some(line) = dst.next() {
                    *out = &mut line[..width];
                }
            }
            let complete = rows.iter().all(|row| row.len() >= lanes.reach);
            assert!(complete, "rows shorter than the table's reach");
            // SAFETY: `self` exists only if the processor has the instructions, and every row has
            // the bytes that the table reaches.
            unsafe { horizontal_rows(rows, lanes, &mut out) }
        }
    }

    /// See `Kernel::vertical`. Every weight must fit in 16 bits (`Taps::fits_i16`), and `dst` must
    /// have at least `MIN_COLUMNS` bytes.
    pub(super) fn vertical(self, ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
        // SAFETY: `self` exists only if the processor has the instructions.
        unsafe { vertical_row(ring, taps, index, dst) }
    }

    /// Minimum number of bytes in a row. `avx2` processes shorter rows.
    pub(super) const MIN_COLUMNS: usize = COLUMNS;
}

/// Sixty-four bytes of a row.
///
/// # Safety
/// - `at + 64 <= row.len()`
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_within(row: &[u8], at: usize) -> __m512i {
    debug_assert!(at + COLUMNS <= row.len());
    // SAFETY: the address is within the row, as the caller guarantees.
    let start = unsafe { row.as_ptr().add(at) };
    // SAFETY: 64 readable bytes start there, and the load needs no alignment.
    unsafe { _mm512_loadu_si512(start.cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn load_64(bytes: &[u8], at: usize) -> __m512i {
    let chunk = &bytes[at..at + COLUMNS];
    // SAFETY: `chunk` has 64 readable bytes.
    unsafe { load_within(chunk, 0) }
}

/// Loads one of the arrays of a `Step`.
#[inline]
#[target_feature(enable = "avx512f")]
fn load_part(part: &[u8; REACH]) -> __m512i {
    // SAFETY: the part has 64 readable bytes.
    unsafe { load_within(part, 0) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store_64(bytes: &mut [u8], at: usize, value: __m512i) {
    let chunk = &mut bytes[at..at + COLUMNS];
    // SAFETY: `chunk` has 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(chunk.as_mut_ptr().cast(), value) }
}

/// Fills `rest` with the first bytes of `value`, at most 64.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn store_rest(rest: &mut [u8], value: __m512i) {
    if rest.len() >= COLUMNS {
        store_64(rest, 0, value);
        return;
    }
    let mask = (1_u64 << rest.len()) - 1;
    // SAFETY: the mask restricts the store to the bytes of `rest`.
    unsafe { _mm512_mask_storeu_epi8(rest.as_mut_ptr().cast(), mask, value) }
}

/// The values of 16 output bytes in each of four rows, shifted down to whole levels, but not yet clamped.
///
/// # Safety
/// - Every row has `lanes.reach` bytes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn values(rows: &[&[u8]; ROWS], steps: &[Step]) -> [__m512i; ROWS] {
    let zero = _mm512_setzero_si512();
    let half = _mm512_set1_epi32(HALF_DIGIT);
    let mut sums = [[half, zero, zero]; ROWS];
    for step in steps {
        let from = load_part(&step.from);
        let digits = [&step.high, &step.middle, &step.low].map(|part| load_part(part));
        for (row, sums) in rows.iter().zip(&mut sums) {
            // SAFETY: no step reads beyond the reach of its table (`Lanes::compute`).
            let source = unsafe { load_within(row, step.base) };
            let taps = _mm512_permutexvar_epi8(from, source);
            for (sum, digits) in sums.iter_mut().zip(digits) {
                *sum = _mm512_dpbusd_epi32(*sum, taps, digits);
            }
        }
    }
    sums.map(|[high, middle, low]| {
        let upper = _mm512_add_epi32(_mm512_slli_epi32::<DIGIT>(high), middle);
        let sum = _mm512_add_epi32(_mm512_slli_epi32::<DIGIT>(upper), low);
        _mm512_srai_epi32::<SHIFT>(sum)
    })
}

/// Resizes four rows into four outputs. The outputs have the same length or are empty.
///
/// # Safety
/// - Every row has `lanes.reach` bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vnni")]
unsafe fn horizontal_rows(rows: [&[u8]; ROWS], lanes: &Lanes, out: &mut [&mut [u8]; ROWS]) {
    // Packing works within quarters of a register. This permutation puts the groups of four bytes in order.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let per_block = lanes.n_groups * (COLUMNS / LANES);
    for (block, steps) in lanes.steps.chunks_exact(per_block).enumerate() {
        let mut quarters = steps.chunks_exact(lanes.n_groups);
        let mut next = || {
            // SAFETY: the caller guarantees the rows' lengths.
            unsafe { values(&rows, quarters.next().unwrap_or_default()) }
        };
        let (a, b, c, d) = (next(), next(), next(), next());
        for (row, out) in out.iter_mut().enumerate() {
            let left = _mm512_packs_epi32(a[row], b[row]);
            let right = _mm512_packs_epi32(c[row], d[row]);
            let bytes = _mm512_packus_epi16(left, right);
            if let Some(rest) = out.get_mut(block * COLUMNS..) {
                store_rest(rest, _mm512_permutexvar_epi32(order, bytes));
            }
        }
    }
}

/// Computes one row of the vertical pass, 64 bytes at a time. The last step overlaps the previous one, so that it ends
/// at the edge.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn vertical_row(ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
    let n_pairs = taps.len[index].div_ceil(2);
    let first = index * (taps.stride / 2);
    let high = &taps.high[first..first + n_pairs];
    let low = &taps.low[first..first + n_pairs];
    let zero = _mm512_setzero_si512();
    let half = _mm512_set1_epi32(HALF_HIGH);
    let last = dst.len() - COLUMNS;
    let mut column = 0;
    loop {
        let mut sums = [(half, zero); 4];
        let mut slot = ring.slot_of(taps.start[index]);
        for (&high, &low) in high.iter().zip(low) {
            // The partner of an odd last tap has weight zero, so any row will do.
            let above = load_64(ring.slot(slot), column);
            slot = ring.next_slot(slot);
            let below = load_64(ring.slot(slot), column);
            slot = ring.next_slot(slot);
            let (high, low) = (_mm512_set1_epi32(high), _mm512_set1_epi32(low));
            let left = _mm512_unpacklo_epi8(above, below);
            let right = _mm512_unpackhi_epi8(above, below);
            let pixels = [
                _mm512_unpacklo_epi8(left, zero),
                _mm512_unpackhi_epi8(left, zero),
                _mm512_unpacklo_epi8(right, zero),
                _mm512_unpackhi_epi8(right, zero),
            ];
            for (sum, pixels) in sums.iter_mut().zip(pixels) {
                sum.0 = _mm512_dpwssd_epi32(sum.0, pixels, high);
                sum.1 = _mm512_dpwssd_epi32(sum.1, pixels, low);
            }
        }
        let [a, b, c, d] = sums.map(|(high, low)| {
            let sum = _mm512_add_epi32(_mm512_slli_epi32::<SPLIT>(high), low);
            _mm512_srai_epi32::<SHIFT>(sum)
        });
        let left = _mm512_packs_epi32(a, b);
        let right = _mm512_packs_epi32(c, d);
        store_64(dst, column, _mm512_packus_epi16(left, right));
        if column == last {
            return;
        }
        column = (column + COLUMNS).min(last);
    }
}
