//! Where all randomness of a plan comes from: keys and a counter-based generator, both pure functions.
//! docs/reference/sampling.md, "Keys and random numbers".

use packds_format::{hash_bytes, mix64};

/// SplitMix64's increment.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// What a key is for, so that no two uses of one seed and epoch share their numbers.
///
/// The numbers are part of docs/reference/sampling.md: changing one changes every order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// The order of the full chunks.
    Chunks = 1,
    /// The place of the short last chunk among them.
    ShortChunk = 2,
    /// The order of all samples.
    Samples = 3,
    /// The order within the group of this lane and number.
    Group = 4,
    /// Whether a sample with a fractional weight occurs once more.
    Occurrence = 5,
    /// Which of two neighbouring levels stands for a weight, where there are too many different ones.
    Rounding = 6,
    /// For augmentation: index is the sample.
    Augment = 7,
}

/// The key of `(seed, epoch, domain, index)`: [`hash_bytes`] of the three numbers as little-endian `u64`.
#[must_use]
pub fn key(seed: u64, epoch: u32, domain: Domain, index: u64) -> u64 {
    let words = [u64::from(epoch), domain as u64, index];
    let mut bytes = [0_u8; 24];
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
    hash_bytes(seed, &bytes)
}

/// Number `index` of the SplitMix64 stream that `key` starts.
#[must_use]
pub const fn random(key: u64, index: u64) -> u64 {
    mix64(key.wrapping_add(index.wrapping_add(1).wrapping_mul(GOLDEN)))
}

/// A random 64-bit number brought below `n`; 0 for `n = 0`. Off from even by at most `n / 2^64`.
#[must_use]
pub fn below(word: u64, n: u64) -> u64 {
    // The product is below n * 2^64, so its upper half is below n.
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}
