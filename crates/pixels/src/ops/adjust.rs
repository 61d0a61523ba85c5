//! Colour operations and their factors, as data.

use super::{adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, solarize, to_grayscale};

/// A colour operation. All of them work on single pixels, except that [`Contrast`](Self::Contrast) also needs the
/// image's mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Adjustment {
    /// [`adjust_brightness`].
    Brightness(f32),
    /// [`adjust_contrast`].
    Contrast(f32),
    /// [`adjust_saturation`].
    Saturation(f32),
    /// [`adjust_hue`].
    Hue(f32),
    /// [`to_grayscale`].
    Grayscale,
    /// [`solarize`].
    Solarize(u8),
}

impl Adjustment {
    /// Applies the operation to an image of 1 or 3 channels.
    pub fn apply(self, pixels: &mut [u8], channels: u8) {
        match self {
            Self::Brightness(factor) => adjust_brightness(pixels, factor),
            Self::Contrast(factor) => adjust_contrast(pixels, channels, factor),
            Self::Saturation(factor) => adjust_saturation(pixels, channels, factor),
            Self::Hue(factor) => adjust_hue(pixels, channels, factor),
            Self::Grayscale => to_grayscale(pixels, channels),
            Self::Solarize(threshold) => solarize(pixels, threshold),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_does_its_operation() {
        let pixels = [200, 30, 90, 17, 255, 0];
        let applied = |adjustment: Adjustment| {
            let mut pixels = pixels;
            adjustment.apply(&mut pixels, 3);
            pixels
        };
        let by = |operation: fn(&mut [u8])| {
            let mut pixels = pixels;
            operation(&mut pixels);
            pixels
        };
        for (found, wanted) in [
            (Adjustment::Brightness(0.5), by(|p| adjust_brightness(p, 0.5))),
            (Adjustment::Contrast(0.5), by(|p| adjust_contrast(p, 3, 0.5))),
            (Adjustment::Saturation(0.5), by(|p| adjust_saturation(p, 3, 0.5))),
            (Adjustment::Hue(0.25), by(|p| adjust_hue(p, 3, 0.25))),
            (Adjustment::Grayscale, by(|p| to_grayscale(p, 3))),
            (Adjustment::Solarize(90), by(|p| solarize(p, 90))),
        ] {
            assert_ne!(wanted, pixels);
            assert_eq!(applied(found), wanted, "{found:?}");
        }
    }
}
