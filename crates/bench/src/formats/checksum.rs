//! A checksum of all delivered samples that is easy to compute in any language.
//!
//! The pixels of a sample, padded with zeros to a multiple of 8 bytes, are little-endian words `w_j`. Modulo 2^64, `s =
//! sum of w_j * (2 * j + 1)`, `h = (s ^ (label + 1) * 0x9E3779B97F4A7C15) * 0xFF51AFD7ED558CCD`, and the sample's hash
//! is `h ^ (h >> 32)`. The checksum is the sum of all hashes, so it does not depend on the order.

pub(crate) fn of_sample(pixels: &[u8], label: i64) -> u64 {
    let (words, rest) = pixels.as_chunks::<8>();
    let mut factor = 1_u64;
    let mut sum = 0_u64;
    for word in words {
        sum = sum.wrapping_add(u64::from_le_bytes(*word).wrapping_mul(factor));
        factor = factor.wrapping_add(2);
    }
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    sum = sum.wrapping_add(u64::from_le_bytes(last).wrapping_mul(factor));
    let label = label.wrapping_add(1).cast_unsigned();
    let hash = (sum ^ label.wrapping_mul(0x9E37_79B9_7F4A_7C15)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash ^ (hash >> 32)
}

/// The sum of the hashes of a batch's samples, whose pixels are contiguous.
pub(crate) fn of_batch(pixels: &[u8], labels: &[i64]) -> u64 {
    let sample_bytes = pixels.len() / labels.len().max(1);
    let samples = pixels.chunks_exact(sample_bytes.max(1)).zip(labels);
    samples.map(|(pixels, label)| of_sample(pixels, *label)).fold(0, u64::wrapping_add)
}

pub(crate) fn shown(sum: u64) -> String {
    format!("{sum:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes 0, 1, 2, ... of a sample.
    fn ramp(n: u8) -> Vec<u8> {
        (0..n).collect()
    }

    #[test]
    fn hashes_are_those_that_are_written_down() {
        assert_eq!(shown(of_sample(&ramp(13), 3)), "60daa66a6bbd6eb6");
        assert_eq!(shown(of_sample(&ramp(16), 0)), "faac668db4ab60e4");
        assert_eq!(shown(of_sample(&ramp(16), 3)), "1584a16a1ee369b6");
        assert_eq!(shown(of_sample(&[], -1)), "0000000000000000");
        let pixels: Vec<u8> = ramp(12);
        assert_eq!(shown(of_batch(&pixels, &[0, 1, 2])), "9e0023fb41ac1223");
    }

    #[test]
    fn order_does_not_matter_and_labels_and_places_do() {
        let (a, b) = ([1_u8, 2, 3, 4], [5_u8, 6, 7, 8]);
        let both = |x: [u8; 4], y: [u8; 4], labels| of_batch(&[x, y].concat(), labels);
        assert_eq!(both(a, b, &[0, 1]), both(b, a, &[1, 0]));
        assert_ne!(both(a, b, &[0, 1]), both(a, b, &[1, 0]));
        let mut far = [0; 24];
        far[8] = 1;
        let mut farther = [0; 24];
        farther[16] = 1;
        assert_ne!(of_sample(&far, 0), of_sample(&farther, 0));
    }
}
