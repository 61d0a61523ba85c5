//! Converts, resizes and crops pixels that are already decoded, in the same way as decoded files.

use super::convert::{self, Kind, Raster};
use super::{Decoder, byte_count, resize_zeroed, usize_of};
use crate::area::Pixels;
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::Geometry;
use crate::probe::ImageInfo;

impl Decoder {
    /// Like `render_into`, but for decoded pixels: 1 channel is gray, 3 channels are red, green and blue.
    ///
    /// # Errors
    /// `TooManyPixels`, `NotSingleChannel` for a mask with 3 channels, `WrongBuffer` if `pixels` or `out` do not match
    /// the sizes, or `InvalidArgument` for other numbers of channels. After an error, the contents of `out` are
    /// unspecified.
    pub fn render_pixels_into(
        &mut self,
        pixels: Pixels<'_>,
        geometry: &Geometry,
        out: &mut [u8],
    ) -> Result<(), PixelError> {
        pixels.check()?;
        let (width, height) = (pixels.width, pixels.height);
        self.check_n_pixels(width, height)?;
        let (out_width, out_height) = geometry.output_size(width, height, 1);
        let channels = self.options.color.channels();
        let expected = byte_count(out_width, out_height, channels)?;
        PixelError::check_len(out.len(), expected)?;
        let data = if usize::from(pixels.channels) == channels {
            pixels.data
        } else {
            self.convert_bare(pixels)?;
            &self.pixels
        };
        if geometry.is_identity_for(width, height, 1) {
            out.copy_from_slice(data);
            return Ok(());
        }
        let window = geometry.window(width, height);
        if window.x.len < window.x.out || window.y.len < window.y.out {
            out.fill(0);
        }
        self.resampler.start(width, height, channels, window, geometry.filter);
        let stride = usize_of(width) * channels;
        self.resampler.push(data, 0, stride, out);
        Ok(())
    }

    /// Converts these pixels to the channels of the output and stores them in `self.pixels`.
    fn convert_bare(&mut self, pixels: Pixels<'_>) -> Result<(), PixelError> {
        let kind = match pixels.channels {
            1 => Kind::Gray,
            3 => Kind::Rgb,
            other => return Err(PixelError::argument("channels", "1 or 3", other)),
        };
        let n_bytes = byte_count(pixels.width, pixels.height, self.options.color.channels())?;
        resize_zeroed(&mut self.pixels, n_bytes)?;
        let mut samples = std::mem::take(&mut self.samples);
        samples.clear();
        samples.extend_from_slice(pixels.data);
        let mut raster = Raster { kind, samples };
        // The format is used only in errors about missing samples. Such errors cannot occur here.
        let info = ImageInfo::plain(ImageFormat::Bmp, pixels.width, pixels.height, pixels.channels);
        let converted = convert::convert(&mut raster, &info, self.options.color, &mut self.pixels);
        self.samples = raster.samples;
        converted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Color, Crop, DecodeOptions, Resize, encode_png};

    #[test]
    fn bare_pixels_render_as_their_png_does() {
        let data: Vec<u8> = (0..20 * 14 * 3_u32).map(|i| (i * 37 % 251).to_le_bytes()[0]).collect();
        let crop =
            Geometry { resize: Resize::Short(9), crop: Crop::Center { width: 8, height: 12 }, ..Geometry::default() };
        for (channels, color) in [(3, Color::Rgb), (3, Color::Gray), (1, Color::Rgb), (1, Color::Gray)] {
            let data = &data[..20 * 14 * usize::from(channels)];
            let png = encode_png(20, 14, channels, data).unwrap();
            let options = DecodeOptions { color, ..DecodeOptions::default() };
            let mut decoder = Decoder::new(options);
            for geometry in [Geometry::default(), crop] {
                let expected = decoder.render(&png, &geometry).unwrap();
                let mut out = vec![0; expected.data.len()];
                let pixels = Pixels { data, width: 20, height: 14, channels };
                decoder.render_pixels_into(pixels, &geometry, &mut out).unwrap();
                assert_eq!(out, expected.data, "{channels} {color:?}");
            }
        }
    }

    #[test]
    fn wrong_lengths_channels_and_sizes_are_refused() {
        let mut decoder = Decoder::new(DecodeOptions { max_pixels: 100, ..DecodeOptions::default() });
        let mut render = |data: &[u8], width, channels, out: usize| {
            let pixels = Pixels { data, width, height: 2, channels };
            decoder.render_pixels_into(pixels, &Geometry::default(), &mut vec![0; out])
        };
        assert!(matches!(render(&[0; 11], 2, 3, 12), Err(PixelError::WrongBuffer { .. })));
        assert!(matches!(render(&[0; 12], 2, 3, 11), Err(PixelError::WrongBuffer { .. })));
        assert!(matches!(render(&[0; 16], 2, 4, 12), Err(PixelError::InvalidArgument { .. })));
        assert!(matches!(render(&[0; 600], 100, 3, 600), Err(PixelError::TooManyPixels { .. })));
    }
}
