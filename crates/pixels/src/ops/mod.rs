//! Operations on decoded pixels at load time, with the results of Pillow and torchvision.
//!
//! Every operation works on interleaved bytes `[height, width, channels]` with 1 or 3 channels and keeps the size. The
//! colour operations, `erase`, `Blur` and `Sharpen` work in place. `Affine` writes to another image, and `Emit` makes
//! the floats of a batch in one pass. docs/reference/pixels.md lists what was compared. The caller draws all random
//! numbers and passes the factors.
//!
//! Colour operations accept any `f32` factor. Factors below 0 and above 1 extrapolate and clip, as in Pillow. NaN gives
//! black.

mod adjust;
mod affine;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod blend;
mod blur;
mod emit;
mod erase;
mod gray;
mod hue;
mod invert;
mod planes;
mod posterize;
mod sample;
mod sharpen;
mod spread;
mod whole;

pub use adjust::Adjustment;
pub use affine::{Affine, Sampling};
pub use blend::{adjust_brightness, adjust_contrast, adjust_saturation};
pub use blur::Blur;
pub use emit::Emit;
pub use erase::erase;
pub(crate) use gray::luma;
pub use gray::to_grayscale;
pub use hue::adjust_hue;
pub use invert::{invert, solarize};
pub use posterize::posterize;
pub use sharpen::Sharpen;
pub use spread::{autocontrast, equalize};

/// Calls a loop: the version compiled for AVX2 if the processor has AVX2, otherwise the normal version.
macro_rules! fastest {
    ($name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if let Some(avx2) = $crate::ops::avx2::Avx2::detect() {
                avx2.$name($($argument),*);
            } else {
                $name($($argument),*);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        $name($($argument),*);
    }};
}
use fastest;
