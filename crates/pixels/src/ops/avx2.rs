//! The plain loops of the operations, compiled again for AVX2.
//!
//! The code and the order of float operations are the same, so the bytes are the same too. The only difference is that
//! the compiler can use wider registers. There are no intrinsics here.

use super::blur::{Kernel, Rows};
use super::sample::{Map, Picture};
use super::{blend, blur, gray, hue, sample, sharpen};

/// Proof that this processor has AVX2.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx2(());

/// Defines a method for each loop. The method calls the loop inside a function that is compiled for AVX2.
macro_rules! compiled {
    ($($module:ident::$name:ident($($argument:ident: $type:ty),*);)*) => {
        impl Avx2 {
            $(pub(super) fn $name(self, $($argument: $type),*) {
                #[target_feature(enable = "avx2")]
                fn inner($($argument: $type),*) {
                    $module::$name($($argument),*);
                }
                // SAFETY: `self` exists only if the processor has AVX2.
                unsafe { inner($($argument),*) }
            })*
        }
    };
}

compiled! {
    blend::blend(pixels: &mut [u8], base: u8, factor: f32);
    blend::saturate(pixels: &mut [u8], factor: f32);
    gray::grayscale(pixels: &mut [u8]);
    gray::luma_sum(pixels: &[[u8; 3]], sum: &mut u64);
    hue::turn_hue(pixels: &mut [u8], turn: u8);
    sample::gray_blocks(picture: &Picture<'_, 1>, map: &Map<1>, out: &mut [[u8; 1]]);
    sample::color_blocks(picture: &Picture<'_, 3>, map: &Map<3>, out: &mut [[u8; 3]]);
    sharpen::sharpen(pixels: &mut [u8], rows: &mut [u8], channels: usize, factor: f32);
    blur::convolve(rows: Rows<'_>, kernel: &Kernel, out: &mut [u8]);
}

impl Avx2 {
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}
