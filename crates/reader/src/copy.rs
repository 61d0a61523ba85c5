//! Copies into staging slots with stores that bypass the CPU caches.
//!
//! An ordinary store first reads the cache line that it overwrites, and evicts other useful data. A batch is larger
//! than the caches and is written completely, so this traffic is wasted. Non-temporal stores avoid it.
//! docs/internals/performance.md has measurements. Source: Intel 64 and IA-32 Architectures Optimization Reference
//! Manual, "Non-temporal stores".

/// Smaller items are copied with ordinary stores, because most of their bytes are in the unaligned ends.
#[cfg(target_arch = "x86_64")]
const SMALL: usize = 1024;

/// Copies `from` to `to`, which must have the same length. Other threads see the bytes only after a [`fence`] and a
/// synchronized hand-over.
///
/// # Panics
/// If the lengths differ.
pub(crate) fn copy_past_caches(to: &mut [u8], from: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if to.len() >= SMALL && to.len() == from.len() && x86::is_supported() {
        // SAFETY: the processor has AVX, and the lengths are equal.
        unsafe { x86::copy(to, from) };
        return;
    }
    to.copy_from_slice(from);
}

/// Makes the writes of [`copy_past_caches`] visible before anything that this thread does later.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    x86::fence();
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256};

    /// Size of a cache line.
    const LINE: usize = 64;
    /// Prefetch distance. It crosses the 4 KiB page boundaries where the hardware prefetcher stops.
    const AHEAD: usize = 16 * LINE;

    /// Whether `copy` may be called.
    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("avx")
    }

    /// Copies whole cache lines with non-temporal stores, and the rest at both ends as usual.
    ///
    /// # Safety
    /// The processor has AVX, and the slices have the same length.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn copy(to: &mut [u8], from: &[u8]) {
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (to_head, to) = to.split_at_mut(head);
        let (from_head, from) = from.split_at(head);
        to_head.copy_from_slice(from_head);
        let lines = to.len() / LINE;
        let (to_lines, to_tail) = to.split_at_mut(lines * LINE);
        let (from_lines, from_tail) = from.split_at(lines * LINE);
        for (to, from) in to_lines.chunks_exact_mut(LINE).zip(from_lines.chunks_exact(LINE)) {
            let source = from.as_ptr().cast::<__m256i>();
            let target = to.as_mut_ptr().cast::<__m256i>();
            // A prefetch hint may have any address, because it does not access memory.
            _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(AHEAD).cast());
            // SAFETY: these are the first 32 bytes of a line of 64. Any alignment is allowed.
            let low = unsafe { _mm256_loadu_si256(source) };
            // SAFETY: these are the last 32 bytes of that line.
            let high = unsafe { _mm256_loadu_si256(source.wrapping_add(1)) };
            // SAFETY: this is the first half of a line that starts at a multiple of 64.
            unsafe { _mm256_stream_si256(target, low) };
            // SAFETY: this is the second half of that line, at a multiple of 32.
            unsafe { _mm256_stream_si256(target.wrapping_add(1), high) };
        }
        to_tail.copy_from_slice(from_tail);
    }

    pub(super) fn fence() {
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_every_byte_at_every_alignment_and_length() {
        let from: Vec<u8> = (0..5000_u32).map(|i| (i * 7 % 251) as u8).collect();
        for len in [0, 1, 63, 64, 1023, 1024, 1025, 1087, 1088, 3072, 4096] {
            for shift in [0, 1, 31, 32, 63, 64] {
                let mut to = vec![0xAA_u8; 5000];
                copy_past_caches(&mut to[shift..shift + len], &from[3..3 + len]);
                fence();
                assert_eq!(to[shift..shift + len], from[3..3 + len], "{len} {shift}");
                assert!(to[..shift].iter().all(|b| *b == 0xAA));
                assert!(to[shift + len..].iter().all(|b| *b == 0xAA));
            }
        }
    }
}
