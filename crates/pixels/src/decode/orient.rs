//! Rotates stored pixels upright.

use super::usize_of;

/// Where the pixel at column `x` and row `y` of the upright image is in the stored image of `width` x `height`.
pub(super) fn stored(orientation: u8, (x, y): (u32, u32), (width, height): (u32, u32)) -> (u32, u32) {
    match orientation {
        2 => (width - 1 - x, y),
        3 => (width - 1 - x, height - 1 - y),
        4 => (x, height - 1 - y),
        5 => (y, x),
        6 => (y, height - 1 - x),
        7 => (width - 1 - y, height - 1 - x),
        8 => (width - 1 - y, x),
        _ => (x, y),
    }
}

/// Applies the EXIF `orientation` (2 to 8) to an image of `width` x `height`.
pub(super) fn turn(
    pixels: &[u8],
    (width, height): (u32, u32),
    channels: usize,
    orientation: u8,
    upright: &mut Vec<u8>,
) {
    let (out_width, out_height) = if orientation >= 5 { (height, width) } else { (width, height) };
    upright.clear();
    upright.reserve(pixels.len());
    for y in 0..out_height {
        for x in 0..out_width {
            let (column, row) = stored(orientation, (x, y), (width, height));
            let at = (usize_of(row) * usize_of(width) + usize_of(column)) * channels;
            upright.extend_from_slice(&pixels[at..at + channels]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_orientation_puts_the_stored_corner_where_exif_says() {
        let stored = [1, 2, 3, 4, 5, 6];
        let cases: [(u8, [u8; 6]); 8] = [
            (1, [1, 2, 3, 4, 5, 6]),
            (2, [3, 2, 1, 6, 5, 4]),
            (3, [6, 5, 4, 3, 2, 1]),
            (4, [4, 5, 6, 1, 2, 3]),
            (5, [1, 4, 2, 5, 3, 6]),
            (6, [4, 1, 5, 2, 6, 3]),
            (7, [6, 3, 5, 2, 4, 1]),
            (8, [3, 6, 2, 5, 1, 4]),
        ];
        for (orientation, expected) in cases {
            let mut upright = Vec::new();
            turn(&stored, (3, 2), 1, orientation, &mut upright);
            assert_eq!(upright, expected, "orientation {orientation}");
        }
    }
}
