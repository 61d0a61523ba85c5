//! Copying into staging slots past the caches.
//!
//! An ordinary store first reads the line that it will overwrite, and pushes out of the caches what is still wanted
//! there. A batch is larger than the caches and written whole, so both are for nothing: stores that go around the caches
//! leave that traffic out. docs/internals/performance.md has what it gives. (Intel 64 and IA-32 Architectures Optimization Reference
//! Manual, "Non-temporal stores".)

/// Below this many bytes an item is copied the ordinary way: its two ends are most of it.
#[cfg(target_arch = "x86_64")]
const SMALL: usize = 1024;

/// Copies `from` to `to`, which have one length. The bytes are there for other threads after [`fence`] and whatever
/// hands them over.
///
/// # Panics
/// Where the lengths differ.
pub(crate) fn copy_past_caches(to: &mut [u8], from: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    if to.len() >= SMALL && to.len() == from.len() && x86::is_supported() {
        // SAFETY: the processor has AVX, and the lengths are equal.
        unsafe { x86::copy(to, from) };
        return;
    }
    to.copy_from_slice(from);
}

/// Makes what [`copy_past_caches`] wrote visible before anything that this thread does later.
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    x86::fence();
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, _MM_HINT_T0, _mm_prefetch, _mm_sfence, _mm256_loadu_si256, _mm256_stream_si256,
    };

    /// Bytes of a cache line.
    const LINE: usize = 64;
    /// How far ahead of the copy lines are asked for: across the 4 KiB pages at which the hardware's own prefetch stops.
    const AHEAD: usize = 16 * LINE;

    /// Whether `copy` may be called.
    pub(super) fn is_supported() -> bool {
        is_x86_feature_detected!("avx")
    }

    /// Copies whole lines around the caches, and what lies before the first and behind the last as usual.
    ///
    /// # Safety
    /// The processor has AVX, and the slices have one length.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn copy(to: &mut [u8], from: &[u8]) {
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let (to_head, to) = to.split_at_mut(head);
        let (from_head, from) = from.split_at(head);
        to_head.copy_from_slice(from_head);
        let lines = to.len() / LINE;
        let (to_lines, to_tail) = to.split_at_mut(lines * LINE);
        let (from_lines, from_tail) = from.split_at(lines * LINE);
        for (to, from) in to_lines
            .chunks_exact_mut(LINE)
            .zip(from_lines.chunks_exact(LINE))
        {
            let source = from.as_ptr().cast::<__m256i>();
            let target = to.as_mut_ptr().cast::<__m256i>();
            // A hint may name any address: none is accessed.
            _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(AHEAD).cast());
            // SAFETY: the first 32 bytes of a line of 64; any alignment is allowed.
            let low = unsafe { _mm256_loadu_si256(source) };
            // SAFETY: the last 32 bytes of that line.
            let high = unsafe { _mm256_loadu_si256(source.wrapping_add(1)) };
            // SAFETY: the first half of a line that starts at a multiple of 64.
            unsafe { _mm256_stream_si256(target, low) };
            // SAFETY: its second half, at a multiple of 32.
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
