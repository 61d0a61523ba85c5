//! A run of pixels, channel by channel.

/// Pixels that the loops over colours take together: many, or the compiler unrolls the loops and finds
/// no vectors in them; few enough for the first cache.
pub(super) const BLOCK: usize = 256;

/// Three planes of a block of colours.
pub(super) type Planes = [[u8; BLOCK]; 3];

/// The colours of a block channel by channel, filled up with black. (These are no closures' business:
/// a closure is compiled apart from the AVX2 function that uses it.)
#[inline(always)]
pub(super) fn split(block: &[[u8; 3]]) -> Planes {
    let mut planes = [[0; BLOCK]; 3];
    let [red, green, blue] = &mut planes;
    for (((pixel, red), green), blue) in block.iter().zip(red).zip(green).zip(blue) {
        [*red, *green, *blue] = *pixel;
    }
    planes
}

/// Puts the channels together again.
#[inline(always)]
pub(super) fn join(planes: &Planes, block: &mut [[u8; 3]]) {
    let [red, green, blue] = planes;
    for (((pixel, red), green), blue) in block.iter_mut().zip(red).zip(green).zip(blue) {
        *pixel = [*red, *green, *blue];
    }
}

/// What `of` makes of every colour.
#[inline(always)]
pub(super) fn mapped(planes: &Planes, of: impl Fn([u8; 3]) -> u8) -> [u8; BLOCK] {
    let [red, green, blue] = planes;
    let mut result = [0; BLOCK];
    for (((value, red), green), blue) in result.iter_mut().zip(red).zip(green).zip(blue) {
        *value = of([*red, *green, *blue]);
    }
    result
}
