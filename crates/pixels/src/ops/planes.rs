//! Blocks of pixels in planar order.

/// Pixels per block of the colour loops. Blocks are large enough that the compiler vectorizes instead of unrolling, and
/// small enough for the L1 cache.
pub(super) const BLOCK: usize = 256;

/// The three planes of a block.
pub(super) type Planes = [[u8; BLOCK]; 3];

/// Splits a block into channels, padded with black. Do not use closures here, because they would be compiled outside
/// the AVX2 function that uses them.
#[inline(always)]
pub(super) fn split(block: &[[u8; 3]]) -> Planes {
    let mut planes = [[0; BLOCK]; 3];
    let [red, green, blue] = &mut planes;
    for (((pixel, red), green), blue) in block.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = *pixel;
    }
    planes
}

/// Interleaves the channels again.
#[inline(always)]
pub(super) fn join(planes: &Planes, block: &mut [[u8; 3]]) {
    let [red, green, blue] = planes;
    for (((pixel, red), green), blue) in block.iter_mut().zip(red).zip(green).zip(blue) {
        *pixel = [*red, *green, *blue];
    }
}

/// The result of `of` for every colour.
#[inline(always)]
pub(super) fn mapped(planes: &Planes, of: impl Fn([u8; 3]) -> u8) -> [u8; BLOCK] {
    let [red, green, blue] = planes;
    let mut result = [0; BLOCK];
    for (((value, red), green), blue) in result.iter_mut().zip(red).zip(green).zip(blue) {
        *value = of([*red, *green, *blue]);
    }
    result
}
