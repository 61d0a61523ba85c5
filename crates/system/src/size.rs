//! Sizes in memory and in files. packds runs only on 64-bit systems, so `usize` and `u64` convert without loss.

use std::time::Duration;

const _: () =
    assert!(usize::BITS == u64::BITS, "packds needs a 64-bit system: files are mapped and counted in 64 bits");

/// Converts a size in memory to a size in a file.
pub const fn to_u64(n: usize) -> u64 {
    n as u64
}

/// Converts a size in a file to a size in memory. The result can still be larger than the available memory.
pub fn to_usize(n: impl Into<u64>) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "both have 64 bits, as asserted above")]
    let n = n.into() as usize;
    n
}

/// `n * part / whole` without overflow. `part` must not exceed `whole`.
pub fn share(n: u64, part: u64, whole: u64) -> u64 {
    let share = u128::from(n) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(share).unwrap_or(n)
}

/// A duration in nanoseconds, clamped to 64 bits (584 years).
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_do_not_overflow() {
        assert_eq!(share(10, 1, 3), 3);
        assert_eq!(share(u64::MAX, u64::MAX - 1, u64::MAX), u64::MAX - 1);
        assert_eq!(share(u64::MAX, 7, 7), u64::MAX);
    }

    #[test]
    fn long_times_are_the_longest() {
        assert_eq!(nanos(Duration::from_micros(3)), 3000);
        assert_eq!(nanos(Duration::MAX), u64::MAX);
    }
}
