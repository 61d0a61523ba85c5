//! The two passes with AVX2. The sums have the same terms as in the plain code, but in a different order.
//!
//! A weight of 23 bits does not fit in the 16-bit multiplier of AVX2, so it is split as `high * 2^11 + low`. Both parts
//! fit. Two taps are multiplied and added by one instruction, and the parts are recombined in 32 bits. Integer addition
//! does not round, so the result is equal to that of the plain code.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi128_si64, _mm_loadl_epi64, _mm_loadu_si128, _mm_unpacklo_epi64, _mm256_add_epi32,
    _mm256_castsi256_si128, _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_hadd_epi32, _mm256_loadu_si256,
    _mm256_madd_epi16, _mm256_packs_epi32, _mm256_packus_epi16, _mm256_set_m128i, _mm256_set1_epi32, _mm256_setr_epi8,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi32, _mm256_srai_epi32, _mm256_storeu_si256,
    _mm256_unpackhi_epi8, _mm256_unpacklo_epi8,
};

use super::kernel::{Horizontal, Ring};
use super::taps::{PRECISION, SPLIT, Taps};
use super::{SLACK, scalar};

const HALF: i32 = 1 << (PRECISION - 1);
const SHIFT: i32 = PRECISION as i32;
const SPLIT_SHIFT: i32 = SPLIT as i32;
/// Number of rows that the horizontal pass processes together.
const ROWS: usize = 4;
/// Number of bytes that the vertical pass processes together.
const COLUMNS: usize = 32;

/// Proof that this processor has AVX2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// See `Kernel::horizontal`. Every weight of the job must fit in 16 bits (`Taps::fits_i16`).
    pub(super) fn horizontal(self, job: &Horizontal<'_>, blocks: &mut dyn Iterator<Item = &mut [u8]>) {
        let width = job.taps.start.len() * job.channels;
        let mut row = job.first;
        let end = job.first + job.n_rows;
        while row < end {
            if end - row < ROWS {
                if let Some(out) = blocks.next() {
                    let src = job.ring.row(row);
                    scalar::horizontal(src, job.offset, job.channels, job.taps, &mut out[..width]);
                }
                row += 1;
                continue;
            }
            let rows = [0, 1, 2, 3].map(|index| job.ring.row(row + index));
            let (Some(a), Some(b), Some(c), Some(d)) = (blocks.next(), blocks.next(), blocks.next(), blocks.next())
            else {
                return;
            };
            let out = [&mut a[..width], &mut b[..width], &mut c[..width], &mut d[..width]];
            check_reach(&rows, job);
            if job.channels == 3 {
                // SAFETY: `self` exists only if the processor has AVX2, and `check_reach` passed,
                // so the taps stay within the rows.
                unsafe { horizontal_rgb(rows, job.offset, job.taps, out) }
            } else {
                // SAFETY: as above, except that this function checks its loads itself.
                unsafe { horizontal_gray(rows, job.offset, job.taps, out) }
            }
            row += ROWS;
        }
    }

    /// See `Kernel::vertical`. Every weight must fit in 16 bits (`Taps::fits_i16`).
    pub(super) fn vertical(self, ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
        if dst.len() < COLUMNS {
            scalar::vertical(ring, taps, index, dst);
            return;
        }
        // SAFETY: `self` exists only if the processor has AVX2.
        unsafe { vertical_row(ring, taps, index, dst) }
    }
}

/// Checks the conditions of `load_16` and `load_pair`, once for all loads of a block of rows. No tap may be before the
/// row's first column. Loads past the last tap must stay within the row's slack. Every group of taps must have weights.
fn check_reach(rows: &[&[u8]; ROWS], job: &Horizontal<'_>) {
    let (taps, n_outputs) = (job.taps, job.taps.start.len());
    let source = &taps.source;
    assert!(source.start >= job.offset, "taps before the first column");
    let reach = (source.end - job.offset) * job.channels + SLACK;
    assert!(rows.iter().all(|row| row.len() >= reach), "rows without slack");
    assert!(taps.len.len() == n_outputs && taps.longest <= taps.stride, "taps without weights");
    let n_pairs = n_outputs * taps.stride / 2;
    assert!(taps.high.len() == n_pairs && taps.low.len() == n_pairs, "weights missing");
}

/// Sixteen bytes of a row.
///
/// # Safety
/// - `at + 16 <= row.len()`
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load_16(row: &[u8], at: usize) -> __m128i {
    debug_assert!(at + 16 <= row.len());
    // SAFETY: the address is within the row, as the caller guarantees.
    let start = unsafe { row.as_ptr().add(at) };
    // SAFETY: 16 readable bytes start there, and the load needs no alignment.
    unsafe { _mm_loadu_si128(start.cast()) }
}

/// A value of a table.
///
/// # Safety
/// - `at < table.len()`
#[inline]
unsafe fn entry<T: Copy>(table: &[T], at: usize) -> T {
    debug_assert!(at < table.len());
    // SAFETY: guaranteed by the caller.
    unsafe { *table.get_unchecked(at) }
}

#[target_feature(enable = "avx2")]
fn load_8(bytes: &[u8], at: usize) -> __m128i {
    let chunk = &bytes[at..at + 8];
    // SAFETY: `chunk` has 8 readable bytes. The load reads no more and needs no alignment.
    unsafe { _mm_loadl_epi64(chunk.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
fn load_32(bytes: &[u8], at: usize) -> __m256i {
    let chunk = &bytes[at..at + 32];
    // SAFETY: `chunk` has 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) }
}

/// Four pairs of weights, repeated in both halves of the register.
#[target_feature(enable = "avx2")]
fn load_weights(pairs: &[i32], at: usize) -> __m256i {
    let chunk = &pairs[at..at + 4];
    // SAFETY: `chunk` is four `i32`, which are 16 readable bytes, and the load needs no alignment.
    let half = unsafe { _mm_loadu_si128(chunk.as_ptr().cast()) };
    _mm256_set_m128i(half, half)
}

#[target_feature(enable = "avx2")]
fn store_32(bytes: &mut [u8], at: usize, value: __m256i) {
    let chunk = &mut bytes[at..at + 32];
    // SAFETY: `chunk` has 32 writable bytes, and the store needs no alignment.
    unsafe { _mm256_storeu_si256(chunk.as_mut_ptr().cast(), value) }
}

/// `(high << 11) + low`, rounded and shifted down to whole levels, but not yet clamped.
#[target_feature(enable = "avx2")]
fn recombine(high: __m256i, low: __m256i) -> __m256i {
    let sum = _mm256_add_epi32(_mm256_slli_epi32::<SPLIT_SHIFT>(high), low);
    _mm256_srai_epi32::<SHIFT>(_mm256_add_epi32(sum, _mm256_set1_epi32(HALF)))
}

/// The sums of the pixels' products with the high parts and with the low parts of the weights.
#[derive(Clone, Copy)]
struct Sums {
    high: __m256i,
    low: __m256i,
}

impl Sums {
    #[target_feature(enable = "avx2")]
    fn zero() -> Self {
        Self { high: _mm256_setzero_si256(), low: _mm256_setzero_si256() }
    }

    #[target_feature(enable = "avx2")]
    fn add(&mut self, pixels: __m256i, high: __m256i, low: __m256i) {
        self.high = _mm256_add_epi32(self.high, _mm256_madd_epi16(pixels, high));
        self.low = _mm256_add_epi32(self.low, _mm256_madd_epi16(pixels, low));
    }

    #[target_feature(enable = "avx2")]
    fn value(self) -> __m256i {
        recombine(self.high, self.low)
    }
}

/// Resizes RGB rows. Each half of a register holds two taps of one row, as `r r' g g' b b' 0 0`.
///
/// # Safety
/// - `check_reach` passed for these rows, offset and taps.
#[target_feature(enable = "avx2")]
unsafe fn horizontal_rgb(rows: [&[u8]; ROWS], offset: usize, taps: &Taps, out: [&mut [u8]; ROWS]) {
    let even = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, 0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1,
        -1,
    );
    let odd = _mm256_setr_epi8(
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1, 6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1,
        -1, -1,
    );
    let mut pixels = PixelWriter::new(out);
    for (index, (&start, &len)) in taps.start.iter().zip(&taps.len).enumerate() {
        let mut at = (start - offset) * 3;
        let mut pair = index * (taps.stride / 2);
        let (mut first, mut second) = (Sums::zero(), Sums::zero());
        for _ in 0..len.div_ceil(4) {
            // SAFETY: the 16 bytes that start at a tap are within the row and its slack (`check_reach`).
            let load = |row: &[u8]| unsafe { load_16(row, at) };
            let rows_01 = _mm256_set_m128i(load(rows[1]), load(rows[0]));
            let rows_23 = _mm256_set_m128i(load(rows[3]), load(rows[2]));
            for (taps_of, pair) in [(even, pair), (odd, pair + 1)] {
                // SAFETY: every group of four taps has two pairs of weights (`check_reach`).
                let high = _mm256_set1_epi32(unsafe { entry(&taps.high, pair) });
                // SAFETY: as above.
                let low = _mm256_set1_epi32(unsafe { entry(&taps.low, pair) });
                first.add(_mm256_shuffle_epi8(rows_01, taps_of), high, low);
                second.add(_mm256_shuffle_epi8(rows_23, taps_of), high, low);
            }
            at += 12;
            pair += 2;
        }
        let words = _mm256_packs_epi32(first.value(), second.value());
        let bytes = _mm256_packus_epi16(words, words);
        let rows_02 = _mm_cvtsi128_si64(_mm256_castsi256_si128(bytes)).to_le_bytes();
        let rows_13 = _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(bytes)).to_le_bytes();
        let [a, b, c, d, e, f, g, h] = rows_02;
        let [i, j, k, l, m, n, o, p] = rows_13;
        pixels.write([[a, b, c, d], [i, j, k, l], [e, f, g, h], [m, n, o, p]]);
    }
}

/// Writes pixels of three bytes to four rows, as four bytes each. The next pixel overwrites the fourth byte.
struct PixelWriter<'a> {
    rows: [&'a mut [u8]; ROWS],
    at: usize,
    len: usize,
}

impl<'a> PixelWriter<'a> {
    fn new(rows: [&'a mut [u8]; ROWS]) -> Self {
        let len = rows.iter().map(|row| row.len()).min().unwrap_or(0);
        Self { rows, at: 0, len }
    }

    /// Writes the next pixel of each row.
    #[inline]
    fn write(&mut self, pixels: [[u8; 4]; ROWS]) {
        let at = self.at;
        self.at += 3;
        if at + 4 <= self.len {
            for (row, pixel) in self.rows.iter_mut().zip(pixels) {
                // SAFETY: four bytes from `at` are within the shortest row.
                let place = unsafe { row.as_mut_ptr().add(at) };
                // SAFETY: as above. An array of bytes needs no alignment.
                unsafe { place.cast::<[u8; 4]>().write(pixel) };
            }
        } else {
            for (row, pixel) in self.rows.iter_mut().zip(pixels) {
                row[at..at + 3].copy_from_slice(&pixel[..3]);
            }
        }
    }
}

/// The horizontal pass over four gray rows. Each step processes eight pixels of each row, with two rows in one
/// register. The partial sums in a row's lanes are added up at the end.
#[target_feature(enable = "avx2")]
fn horizontal_gray(rows: [&[u8]; ROWS], offset: usize, taps: &Taps, out: [&mut [u8]; ROWS]) {
    let [out_0, out_1, out_2, out_3] = out;
    for (index, (&start, &len)) in taps.start.iter().zip(&taps.len).enumerate() {
        let mut at = start - offset;
        let mut pair = index * (taps.stride / 2);
        let (mut first, mut second) = (Sums::zero(), Sums::zero());
        for _ in 0..len.div_ceil(8) {
            let rows_01 = _mm_unpacklo_epi64(load_8(rows[0], at), load_8(rows[1], at));
            let rows_23 = _mm_unpacklo_epi64(load_8(rows[2], at), load_8(rows[3], at));
            let (high, low) = (load_weights(&taps.high, pair), load_weights(&taps.low, pair));
            first.add(_mm256_cvtepu8_epi16(rows_01), high, low);
            second.add(_mm256_cvtepu8_epi16(rows_23), high, low);
            at += 8;
            pair += 4;
        }
        let high = _mm256_hadd_epi32(first.high, second.high);
        let low = _mm256_hadd_epi32(first.low, second.low);
        let value = recombine(_mm256_hadd_epi32(high, high), _mm256_hadd_epi32(low, low));
        let words = _mm256_packs_epi32(value, value);
        let bytes = _mm256_packus_epi16(words, words);
        let rows_02 = _mm_cvtsi128_si64(_mm256_castsi256_si128(bytes)).to_le_bytes();
        let rows_13 = _mm_cvtsi128_si64(_mm256_extracti128_si256::<1>(bytes)).to_le_bytes();
        out_0[index] = rows_02[0];
        out_1[index] = rows_13[0];
        out_2[index] = rows_02[1];
        out_3[index] = rows_13[1];
    }
}

/// Computes one row of the vertical pass, 32 bytes at a time. The last step overlaps the previous one, so that it ends
/// at the edge.
#[target_feature(enable = "avx2")]
fn vertical_row(ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
    let n_pairs = taps.len[index].div_ceil(2);
    let first = index * (taps.stride / 2);
    let high = &taps.high[first..first + n_pairs];
    let low = &taps.low[first..first + n_pairs];
    let zero = _mm256_setzero_si256();
    let last = dst.len() - COLUMNS;
    let mut column = 0;
    loop {
        let mut sums = [Sums::zero(); 4];
        let mut slot = ring.slot_of(taps.start[index]);
        for (&high, &low) in high.iter().zip(low) {
            // The partner of an odd last tap has weight zero, so any row will do.
            let above = load_32(ring.slot(slot), column);
            slot = ring.next_slot(slot);
            let below = load_32(ring.slot(slot), column);
            slot = ring.next_slot(slot);
            let (high, low) = (_mm256_set1_epi32(high), _mm256_set1_epi32(low));
            let left = _mm256_unpacklo_epi8(above, below);
            let right = _mm256_unpackhi_epi8(above, below);
            sums[0].add(_mm256_unpacklo_epi8(left, zero), high, low);
            sums[1].add(_mm256_unpackhi_epi8(left, zero), high, low);
            sums[2].add(_mm256_unpacklo_epi8(right, zero), high, low);
            sums[3].add(_mm256_unpackhi_epi8(right, zero), high, low);
        }
        let left = _mm256_packs_epi32(sums[0].value(), sums[1].value());
        let right = _mm256_packs_epi32(sums[2].value(), sums[3].value());
        store_32(dst, column, _mm256_packus_epi16(left, right));
        if column == last {
            return;
        }
        column = (column + COLUMNS).min(last);
    }
}
