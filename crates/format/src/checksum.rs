//! CRC32C (Castagnoli), the only checksum of the format.
//!
//! It runs at memory speed on x86-64 and ARM. Zarr and object stores use it too. It is linear, so the checksums of
//! parts can be combined into the checksum of the whole. Source: RFC 3720, appendix B.4.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC32C of `bytes` in one call.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    narrow(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes))
}

/// Incremental CRC32C.
pub struct Crc32c(Digest);

impl Crc32c {
    /// The checksum of an empty sequence.
    #[must_use]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Appends `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of all bytes appended.
    #[must_use]
    pub fn value(&self) -> u32 {
        narrow(self.0.finalize())
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

/// The bit-reversed polynomial without its leading term.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// CRC32C of two concatenated byte sequences, computed from the CRC32C of each. `behind_len` is the length of the
/// second.
///
/// Multiplies the first CRC by x^n, where n is the second length in bits, and adds the second CRC. This is the
/// algorithm of zlib's `crc32_combine`. The generic function of `crc-fast` is slower than reading a sample again.
pub(crate) fn combine(front: u32, behind: u32, behind_len: u64) -> u32 {
    let mut shifted = front;
    let mut left = behind_len;
    for power in SQUARES.iter().skip(3) {
        if left == 0 {
            break;
        }
        if left & 1 == 1 {
            shifted = multiply(*power, shifted);
        }
        left >>= 1;
    }
    shifted ^ behind
}

/// x^(2^k) modulo the polynomial of the CRC, for k from 0 to 66. Bit i of a length in bytes needs k = i + 3.
#[expect(clippy::indexing_slicing, reason = "evaluated at compile time, with k below the length")]
const SQUARES: [u32; 67] = {
    let mut table = [1 << 30; 67];
    let mut k = 1;
    while k < table.len() {
        table[k] = multiply(table[k - 1], table[k - 1]);
        k += 1;
    }
    table
};

/// The product of two polynomials modulo the polynomial of the CRC. The highest bit is the constant term.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = if b & 1 == 1 { (b >> 1) ^ POLYNOMIAL } else { b >> 1 };
        bit >>= 1;
    }
    product
}

/// Converts a CRC to 32 bits. `crc-fast` returns every CRC as a `u64`, but this one has 32 bits.
fn narrow(crc: u64) -> u32 {
    u32::try_from(crc & 0xffff_ffff).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_value_is_rfc_3720s() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        let mut pieces = Crc32c::new();
        pieces.update(b"1234");
        pieces.update(b"56789");
        assert_eq!(pieces.value(), 0xe306_9283);
        assert_eq!(combine(crc32c(b"1234"), crc32c(b"56789"), 5), 0xe306_9283);
        assert_eq!(combine(crc32c(b""), crc32c(b"123456789"), 9), 0xe306_9283);
        assert_eq!(combine(crc32c(b"123456789"), crc32c(b""), 0), 0xe306_9283);
    }

    #[test]
    fn checksums_of_parts_combine_at_any_length() {
        let bytes: Vec<u8> = (0..70_000_u64).map(|i| crate::mix64(i).to_le_bytes()[0]).collect();
        for cut in [0, 1, 2, 255, 4096, 65_535, 69_999, 70_000] {
            let (front, behind) = bytes.split_at(cut);
            let len = u64::try_from(behind.len()).unwrap();
            assert_eq!(combine(crc32c(front), crc32c(behind), len), crc32c(&bytes), "{cut}");
        }
        // Beyond 2^32 bytes, the result is compared with that of `crc-fast`.
        let (front, behind, len) = (1, 2, (1 << 40) + 12_345);
        let expected = crc_fast::checksum_combine(CrcAlgorithm::Crc32Iscsi, 1, 2, len);
        assert_eq!(u64::from(combine(front, behind, len)), expected);
    }
}
