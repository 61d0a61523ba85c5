//! The two passes in plain Rust. They are the reference for the vector code, and the fallback without it.

use super::kernel::Ring;
use super::taps::{PRECISION, Taps};

const HALF: i32 = 1 << (PRECISION - 1);

#[expect(clippy::cast_sign_loss, reason = "clamped to a byte first")]
fn clip(sum: i32) -> u8 {
    (sum >> PRECISION).clamp(0, 255) as u8
}

/// Resizes one row horizontally. `src` starts at source column `offset`.
pub(super) fn horizontal(src: &[u8], offset: usize, channels: usize, taps: &Taps, dst: &mut [u8]) {
    let runs = taps.start.iter().zip(&taps.len).zip(taps.weights.chunks_exact(taps.stride));
    for (((start, len), weights), out) in runs.zip(dst.chunks_exact_mut(channels)) {
        let run = &src[(start - offset) * channels..][..len * channels];
        for (channel, value) in out.iter_mut().enumerate() {
            let mut sum = HALF;
            for (pixel, &weight) in run.chunks_exact(channels).zip(weights) {
                sum = sum.wrapping_add(i32::from(pixel[channel]).wrapping_mul(weight));
            }
            *value = clip(sum);
        }
    }
}

/// Computes one row of the vertical pass: output `index` of `taps`, from the rows of the ring.
pub(super) fn vertical(ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
    let weights = &taps.weights[index * taps.stride..][..taps.len[index]];
    for (column, value) in dst.iter_mut().enumerate() {
        let mut sum = HALF;
        for (tap, &weight) in weights.iter().enumerate() {
            let source = i32::from(ring.row(taps.start[index] + tap)[column]);
            sum = sum.wrapping_add(source.wrapping_mul(weight));
        }
        *value = clip(sum);
    }
}
