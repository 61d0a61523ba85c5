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

/// Parses a size in bytes: a whole number, optionally with a unit as in `4GiB` or `500 MB`.
///
/// # Errors
/// What was expected.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KIB", 1 << 10),
        ("MIB", 1 << 20),
        ("GIB", 1 << 30),
        ("TIB", 1 << 40),
    ];
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_uppercase();
    let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
    let number = digits.parse::<u64>().ok();
    number
        .zip(unit)
        .and_then(|(number, (_, bytes))| number.checked_mul(bytes))
        .ok_or_else(|| "expected a number of bytes, such as 4294967296 or 4GiB".to_owned())
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

    #[test]
    fn bytes_are_read_with_and_without_a_unit() {
        for (text, bytes) in
            [("0", 0), ("123", 123), ("4GiB", 4 << 30), ("4 gib", 4 << 30), ("2MB", 2_000_000), ("1KiB", 1024)]
        {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "GiB", "-1", "1.5GiB", "4 parsecs", "99999999999999TiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }
}
