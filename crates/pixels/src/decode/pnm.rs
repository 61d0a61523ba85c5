//! Decodes PBM, PGM and PPM, binary or plain, with 1 to 16 bits.

use super::convert::{Kind, Raster, unpack};
use super::usize_of;
use crate::error::PixelError;
use crate::probe::{PnmHeader, pnm_header};

pub(super) fn decode(bytes: &[u8]) -> Result<Raster, PixelError> {
    let header = pnm_header(bytes)?;
    let mut samples = Vec::new();
    let mut add = |sample: u32| header.add(sample, &mut samples);
    if header.is_plain {
        header.plain_samples(bytes, add)?;
    } else {
        let data = header.data(bytes)?;
        match (header.is_bitmap, header.max) {
            (true, _) => samples = unpack(data, usize_of(header.width), 1).iter().map(|bit| 1 - bit).collect(),
            (false, 255) => samples = data.to_vec(),
            (false, 256..) => {
                data.as_chunks::<2>().0.iter().for_each(|[high, low]| add((u32::from(*high) << 8) | u32::from(*low)));
            }
            (false, _) => data.iter().for_each(|byte| add(u32::from(*byte))),
        }
    }
    let kind = match (header.is_bitmap, header.channels) {
        (true, _) => Kind::Bits,
        (false, 3) => Kind::Rgb,
        (false, _) if header.max > 255 => Kind::Gray16,
        (false, _) => Kind::Gray,
    };
    Ok(Raster { kind, samples })
}

impl PnmHeader {
    /// Adds a sample, scaled as in Pillow: gray of more than 8 bits to 16 bits, everything else to 8.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a scaled sample is at most `full`")]
    fn add(&self, sample: u32, samples: &mut Vec<u8>) {
        if self.is_bitmap {
            return samples.push(u8::from(sample == 0));
        }
        let is_deep = self.channels == 1 && self.max > 255;
        let full = if is_deep { 65535.0 } else { 255.0 };
        let scaled = (f64::from(sample) / f64::from(self.max) * full).round_ties_even().min(full) as u16;
        let [low, high] = scaled.to_le_bytes();
        samples.push(low);
        if is_deep {
            samples.push(high);
        }
    }
}
