//! A keyed permutation of `0..n`. Each position is computed without a table. See docs/reference/format.md,
//! "Permutation".
//!
//! It is a balanced Feistel network over the smallest even number of bits that holds `n - 1`, with cycle walking (Black
//! and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The round function is the finalizer of SplitMix64
//! (Steele, Lea and Flood, 2014). Four rounds already give a pseudo-random permutation (Luby and Rackoff, 1988) if the
//! round function is pseudo-random. This one is not, so eight rounds are used.

/// Number of rounds.
const ROUNDS: u64 = 8;
/// The odd constant nearest to 2^64 divided by the golden ratio: the increment of SplitMix64.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of SplitMix64: a bijection of 64-bit numbers in which every input bit affects every output bit.
#[must_use]
pub const fn mix64(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A seeded 64-bit hash of `bytes`, for pseudo-random choices that do not depend on the order of inputs. Do not use it
/// as a checksum.
#[must_use]
pub fn hash_bytes(seed: u64, bytes: &[u8]) -> u64 {
    let start = mix64(seed.wrapping_add(GOLDEN)) ^ crate::le::len_u64(bytes);
    bytes.chunks(8).fold(start, |h, piece| {
        let mut word = [0_u8; 8];
        word.iter_mut().zip(piece).for_each(|(to, from)| *to = *from);
        mix64((h ^ u64::from_le_bytes(word)).wrapping_add(GOLDEN))
    })
}

/// A permutation of `0..n` under a 64-bit key. It takes 24 bytes and needs no table. Computing a position takes about
/// 50 ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Permutation {
    n: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..n` for `key`. `n` is at most 2^62.
    #[must_use]
    pub fn new(n: u64, key: u64) -> Self {
        let n = n.min(1 << 62);
        let bits = u64::BITS - n.saturating_sub(1).leading_zeros();
        Self { n, half_bits: bits.div_ceil(2).max(1), key: mix64(key.wrapping_add(GOLDEN)) }
    }

    /// The size `n`.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.n
    }

    /// Whether `n` is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The number at `position`. Positions beyond the last map to themselves.
    #[must_use]
    pub fn at(&self, position: u64) -> u64 {
        if position >= self.n {
            return position;
        }
        // The network permutes `0..m`, where `m` is a power of four and at most 4n. So on average, it takes at most
        // four steps to get below n again.
        let mut x = position;
        loop {
            x = self.network(x);
            if x < self.n {
                return x;
            }
        }
    }

    fn network(&self, x: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (x >> self.half_bits, x & mask);
        for round in 0..ROUNDS {
            let word = mix64(right ^ self.key.wrapping_add(round.wrapping_mul(GOLDEN)));
            (left, right) = (right, left ^ (word & mask));
        }
        (left << self.half_bits) | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_every_number_once() {
        for n in (0..70).chain([255, 256, 257, 1000, 4096, 4097, 65_537]) {
            let p = Permutation::new(n, 12345);
            let mut seen: Vec<u64> = (0..n).map(|i| p.at(i)).collect();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n), "n = {n}");
        }
    }

    #[test]
    fn large_domains_stay_inside_and_do_not_repeat() {
        let p = Permutation::new((1 << 40) + 1, 7);
        let mut seen: Vec<u64> = (0..10_000).map(|i| p.at(i)).collect();
        assert!(seen.iter().all(|&x| x < p.len()));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 10_000);
    }

    #[test]
    fn positions_are_spread_evenly() {
        // Counts how many of 20,000 keys map position 0 to each of the 16 numbers. The chi-squared test has 15 degrees
        // of freedom, and its critical value at the 0.1 % level is 37.7.
        let mut counts = [0_f64; 16];
        for key in 0..20_000 {
            counts[usize::try_from(Permutation::new(16, key).at(0)).unwrap()] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 1250.0).powi(2) / 1250.0).sum();
        assert!(chi < 37.7, "chi-squared {chi}");
    }
}
