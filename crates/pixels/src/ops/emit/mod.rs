//! The final pass over an image: normalizes it and converts it to the batch's type and layout.
//!
//! A byte has 256 values, so tables map each value to its result. The vector loops compute the results instead. They
//! are used only if they match the tables for all 256 bytes of every channel when the `Emit` is created.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::cast::{Layout, check, tables, to_layout_into, write};
use crate::error::PixelError;
use crate::float::FloatType;
use packds_system::counted;

/// Writes images to batches. One `Emit` serves all images.
#[derive(Debug, Clone, PartialEq)]
pub struct Emit {
    channels: usize,
    layout: Layout,
    values: Values,
    #[cfg(target_arch = "x86_64")]
    fast: Option<avx2::Fast>,
}

/// The result for each byte and channel.
#[derive(Debug, Clone, PartialEq)]
enum Values {
    Bytes,
    Halves(Vec<[[u8; 2]; 256]>),
    Singles(Vec<[[u8; 4]; 256]>),
}

impl Emit {
    /// A pass over images with `channels` values per pixel.
    ///
    /// With a float type, every value becomes `(value / 255 - mean) / std` of its channel. `normalize` has means and
    /// deviations on a scale of 0 to 1. Without `normalize`, every value becomes `value / 255`. Without a float type,
    /// bytes are only rearranged to `layout`.
    ///
    /// # Errors
    /// `InvalidArgument` if there are no channels, if a channel does not have a finite mean and a positive finite
    /// deviation, or if `normalize` is given without a float type.
    pub fn new(
        channels: usize,
        normalize: Option<(&[f32], &[f32])>,
        float: Option<FloatType>,
        layout: Layout,
    ) -> Result<Self, PixelError> {
        if channels == 0 {
            return Err(PixelError::argument("channels", "at least 1", "0"));
        }
        let norms = match normalize {
            Some((mean, std)) => norms(channels, mean, std)?,
            None => vec![(0.0, 1.0); channels],
        };
        let of_norms = || norms.iter().copied();
        let values = match float {
            None if normalize.is_some() => {
                return Err(PixelError::argument("normalization", "a float type for the output", "bytes"));
            }
            None => Values::Bytes,
            Some(float) if float.n_bytes() == 2 => Values::Halves(tables(of_norms(), |value| {
                let [low, high, ..] = float.bits(value).to_le_bytes();
                [low, high]
            })),
            Some(float) => Values::Singles(tables(of_norms(), |value| float.bits(value).to_le_bytes())),
        };
        let mut emit = Self {
            channels,
            layout,
            values,
            #[cfg(target_arch = "x86_64")]
            fast: None,
        };
        emit.find_fast(&norms, float);
        Ok(emit)
    }

    /// Size of an output value in bytes.
    #[must_use]
    pub fn value_bytes(&self) -> usize {
        match self.values {
            Values::Bytes => 1,
            Values::Halves(_) => 2,
            Values::Singles(_) => 4,
        }
    }

    /// The bit patterns of the results for each byte, channel by channel. Types with less than 32 bits use the lower
    /// bits. This is for code that computes the same values elsewhere, such as on a GPU.
    #[must_use]
    pub fn table(&self) -> Vec<u32> {
        match &self.values {
            Values::Bytes => (0..self.channels).flat_map(|_| 0..=255).collect(),
            Values::Halves(tables) => tables.iter().flatten().map(|half| u16::from_le_bytes(*half).into()).collect(),
            Values::Singles(tables) => tables.iter().flatten().map(|single| u32::from_le_bytes(*single)).collect(),
        }
    }

    /// Writes the interleaved pixels `hwc` as little-endian values.
    ///
    /// # Errors
    /// `WrongBuffer` if `out` has the wrong length, `InvalidArgument` if `hwc` does not consist of whole pixels.
    pub fn write_into(&self, hwc: &[u8], out: &mut [u8]) -> Result<(), PixelError> {
        check(hwc, self.channels, self.value_bytes(), out)?;
        let n_written = self.write_fast(hwc, out);
        match &self.values {
            Values::Bytes if n_written == 0 => to_layout_into(hwc, self.channels, self.layout, out)?,
            Values::Bytes => {
                let n_pixels = hwc.len() / self.channels;
                for (channel, plane) in out.chunks_exact_mut(n_pixels).enumerate() {
                    let pixels = plane.iter_mut().zip(hwc.chunks_exact(self.channels));
                    pixels.skip(n_written).for_each(|(value, pixel)| *value = pixel[channel]);
                }
            }
            Values::Halves(tables) => write(hwc, tables, self.layout, n_written, out),
            Values::Singles(tables) => write(hwc, tables, self.layout, n_written, out),
        }
        Ok(())
    }

    /// Selects the fastest loop that matches the tables for all bytes.
    #[cfg(target_arch = "x86_64")]
    fn find_fast(&mut self, norms: &[(f32, f32)], float: Option<FloatType>) {
        // Repeat the first pixels at the end, because vector loops leave the end to other loops.
        let every_byte: Vec<u8> =
            (0..=255).chain(0..64).flat_map(|value| std::iter::repeat_n(value, self.channels)).collect();
        let mut wanted = vec![0; every_byte.len() * self.value_bytes()];
        if self.write_into(&every_byte, &mut wanted).is_err() {
            return;
        }
        let mut found = vec![0; wanted.len()];
        for fast in avx2::Fast::candidates(norms, float, self.layout) {
            self.fast = Some(fast);
            if self.write_into(&every_byte, &mut found).is_ok() && found == wanted {
                return;
            }
        }
        self.fast = None;
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn find_fast(&mut self, _norms: &[(f32, f32)], _float: Option<FloatType>) {}

    /// Writes pixels with the fast loop. Returns the number of pixels written, counted from the start.
    #[cfg(target_arch = "x86_64")]
    fn write_fast(&self, hwc: &[u8], out: &mut [u8]) -> usize {
        self.fast.as_ref().map_or(0, |fast| fast.write(hwc, out))
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn write_fast(&self, _hwc: &[u8], _out: &mut [u8]) -> usize {
        0
    }
}

fn norms(channels: usize, mean: &[f32], std: &[f32]) -> Result<Vec<(f32, f32)>, PixelError> {
    let right = mean.len() == channels
        && std.len() == channels
        && mean.iter().all(|mean| mean.is_finite())
        && std.iter().all(|std| std.is_finite() && *std > 0.0);
    if right {
        return Ok(mean.iter().copied().zip(std.iter().copied()).collect());
    }
    Err(PixelError::argument(
        "normalization",
        "a finite mean and a deviation above 0 for each channel",
        format!("{mean:?} and {std:?} for {}", counted(channels, "channel")),
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYOUTS: [Layout; 2] = [Layout::Hwc, Layout::Chw];

    /// Computes `(value / 255 - mean) / std` one value at a time.
    fn computed(pixels: &[u8], mean: &[f32], std: &[f32], ty: FloatType, layout: Layout) -> Vec<u8> {
        let n = mean.len();
        let value = |at: usize| {
            let (byte, channel) = (f32::from(pixels[at]), at % n);
            ty.bits((byte / 255.0 - mean[channel]) / std[channel]).to_le_bytes()
        };
        let places: Vec<usize> = match layout {
            Layout::Hwc => (0..pixels.len()).collect(),
            Layout::Chw => (0..n).flat_map(|first| (first..pixels.len()).step_by(n)).collect(),
        };
        places.into_iter().flat_map(|at| value(at).into_iter().take(ty.n_bytes())).collect()
    }

    fn assert_is_computed(pixels: &[u8], mean: &[f32], std: &[f32]) {
        let channels = mean.len();
        for ty in FloatType::ALL {
            for layout in LAYOUTS {
                let wanted = computed(pixels, mean, std, ty, layout);
                let emit = Emit::new(channels, Some((mean, std)), Some(ty), layout).unwrap();
                let mut found = vec![0xAA; wanted.len()];
                emit.write_into(pixels, &mut found).unwrap();
                assert_eq!(found, wanted, "{ty:?} {layout:?} {mean:?} {std:?}");
            }
        }
    }

    #[test]
    fn the_usual_normalizations_are_exact() {
        let pixels: Vec<u8> = (0..=255).flat_map(|v| [v, 255 - v, v ^ 85]).collect();
        assert_is_computed(&pixels, &[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]);
        assert_is_computed(&pixels, &[0.4914, 0.4822, 0.4465], &[0.247, 0.2435, 0.2616]);
        assert_is_computed(&pixels, &[0.5; 3], &[0.5; 3]);
        assert_is_computed(&pixels, &[0.1307], &[0.3081]);
        assert_is_computed(&pixels, &[0.0; 2], &[1.0; 2]);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_usual_normalizations_are_vectorized() {
        let norms: [(&[f32], &[f32]); 3] =
            [(&[0.485, 0.456, 0.406], &[0.229, 0.224, 0.225]), (&[0.5; 3], &[0.5; 3]), (&[0.1307], &[0.3081])];
        for (mean, std) in norms {
            for ty in FloatType::ALL {
                for layout in LAYOUTS {
                    let emit = Emit::new(mean.len(), Some((mean, std)), Some(ty), layout).unwrap();
                    let has_loops = !avx2::Fast::candidates(&[(0.0, 1.0)], Some(ty), layout).is_empty();
                    assert_eq!(emit.fast.is_some(), has_loops, "{mean:?} {ty:?} {layout}");
                }
            }
        }
    }

    #[test]
    fn without_normalization_floats_are_0_to_1() {
        let emit = Emit::new(1, None, Some(FloatType::F32), Layout::Chw).unwrap();
        let mut out = [0; 12];
        emit.write_into(&[0, 51, 255], &mut out).unwrap();
        let wanted = [0.0_f32, 0.2, 1.0].map(f32::to_le_bytes);
        assert_eq!(out.as_chunks::<4>().0, wanted);
    }

    #[test]
    fn arguments_that_make_no_sense_are_errors() {
        let fails = |channels, normalize, float| {
            let error = Emit::new(channels, normalize, float, Layout::Hwc).unwrap_err();
            error.to_string()
        };
        let half = Some(FloatType::F16);
        assert!(fails(0, None, half).contains("invalid channels"));
        assert!(fails(3, Some((&[0.0; 3], &[1.0; 2])), half).contains("for 3 channels"));
        assert!(fails(1, Some((&[f32::NAN], &[1.0])), half).contains("finite mean"));
        assert!(fails(1, Some((&[0.0], &[0.0])), half).contains("above 0"));
        assert!(fails(1, Some((&[0.0], &[-1.0])), half).contains("above 0"));
        assert!(fails(1, Some((&[0.0], &[f32::INFINITY])), half).contains("above 0"));
        assert!(fails(1, Some((&[0.0], &[1.0])), None).contains("a float type"));
    }

    #[test]
    fn buffers_that_do_not_fit_are_errors() {
        let emit = Emit::new(3, None, Some(FloatType::F16), Layout::Hwc).unwrap();
        let error = emit.write_into(&[0; 6], &mut [0; 11]).unwrap_err();
        let wanted = PixelError::WrongBuffer { expected: 12, found: 11 };
        assert_eq!(error, wanted);
        assert!(emit.write_into(&[0; 5], &mut [0; 10]).is_err());
        assert!(emit.write_into(&[], &mut []).is_ok());
    }

    proptest! {
        #[test]
        fn floats_are_exact(
            pixels in prop::collection::vec(any::<u8>(), 0..400),
            channels in 1_usize..5,
            mean in prop::collection::vec(prop_oneof![-1.0_f32..2.0, Just(0.0)], 4),
            std in prop::collection::vec(prop_oneof![1e-3_f32..2.0, Just(1e-30), Just(1e30)], 4),
        ) {
            let pixels = &pixels[..pixels.len() / channels * channels];
            assert_is_computed(pixels, &mean[..channels], &std[..channels]);
        }

        #[test]
        fn the_table_has_the_bits_that_are_written(
            pixels in prop::collection::vec(any::<u8>(), 0..60),
            channels in 1_usize..4,
            mean in prop::collection::vec(-1.0_f32..2.0, 3),
            std in prop::collection::vec(1e-3_f32..2.0, 3),
            ty in prop_oneof![Just(None), (0..3_usize).prop_map(|i| Some(FloatType::ALL[i]))],
        ) {
            let pixels = &pixels[..pixels.len() / channels * channels];
            let norm = ty.map(|_| (&mean[..channels], &std[..channels]));
            let emit = Emit::new(channels, norm, ty, Layout::Hwc).unwrap();
            let mut written = vec![0; pixels.len() * emit.value_bytes()];
            emit.write_into(pixels, &mut written).unwrap();
            let table = emit.table();
            prop_assert_eq!(table.len(), 256 * channels);
            for (at, value) in written.chunks_exact(emit.value_bytes()).enumerate() {
                let entry = table[at % channels * 256 + usize::from(pixels[at])].to_le_bytes();
                prop_assert_eq!(value, &entry[..value.len()]);
                prop_assert!(entry[value.len()..].iter().all(|byte| *byte == 0));
            }
        }

        #[test]
        fn bytes_equal_to_layout_into(
            pixels in prop::collection::vec(any::<u8>(), 0..400),
            channels in 1_usize..5,
        ) {
            let pixels = &pixels[..pixels.len() / channels * channels];
            for layout in LAYOUTS {
                let (mut found, mut wanted) = (pixels.to_vec(), pixels.to_vec());
                to_layout_into(pixels, channels, layout, &mut wanted).unwrap();
                let emit = Emit::new(channels, None, None, layout).unwrap();
                emit.write_into(pixels, &mut found).unwrap();
                prop_assert_eq!(found, wanted);
            }
        }
    }
}
