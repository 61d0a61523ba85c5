//! The randomness of a plan: keys and a counter-based generator. Both are pure functions. See
//! docs/reference/sampling.md, "Keys and random numbers".

use packds_format::{hash_bytes, mix64};

/// The increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The purpose of a key. For the same seed and epoch, different purposes never share random numbers.
///
/// The values are part of docs/reference/sampling.md. Changing one changes every order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The order of full chunks.
    Chunks = 1,
    /// The place of the short last chunk.
    ShortChunk = 2,
    /// The order of all samples.
    Samples = 3,
    /// The order of samples in a group. The index is the group's first place on the line.
    Group = 4,
    /// Whether a sample with a fractional weight occurs once more.
    Occurrence = 5,
    /// Which of two adjacent levels replaces a weight, if there are too many different weights.
    Rounding = 6,
    /// Augmentation. The index is the sample.
    Augment = 7,
}

/// The key of `(seed, epoch, domain, index)`: [`hash_bytes`] of the last three numbers as little-endian `u64`, with
/// this seed.
pub fn key(seed: u64, epoch: u32, domain: Domain, index: u64) -> u64 {
    let words = [u64::from(epoch), domain as u64, index];
    let mut bytes = [0_u8; 24];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    hash_bytes(seed, &bytes)
}

/// Number `index` of the SplitMix64 stream for `key`.
pub const fn random(key: u64, index: u64) -> u64 {
    mix64(key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// Maps a random 64-bit number to `0..n`, or to 0 if `n` is 0. The bias is at most `n / 2^64`.
pub fn below(word: u64, n: u64) -> u64 {
    // The product is below n * 2^64, so its upper half is below n.
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}
