//! Filling a rectangle.

use crate::area::Area;
use crate::decode::usize_of;

/// Fills `area` in an image with `width` columns. Each pixel gets the first `channels` values of `fill`.
///
/// The area is clipped to the image, like torchvision's slices. `channels` is at most 4. Bytes after the last whole
/// row stay unchanged.
pub fn erase(pixels: &mut [u8], width: u32, channels: u8, area: Area, fill: [u8; 4]) {
    let channels = usize::from(channels).min(fill.len());
    let stride = usize_of(width) * channels;
    if stride == 0 {
        return;
    }
    let fill = &fill[..channels];
    let first = usize_of(area.x.min(width)) * channels;
    let end = usize_of(area.x.saturating_add(area.width).min(width)) * channels;
    let rows = pixels.chunks_exact_mut(stride);
    for row in rows.skip(usize_of(area.y)).take(usize_of(area.height)) {
        let row = &mut row[first..end];
        if fill.iter().all(|value| *value == fill[0]) {
            row.fill(fill[0]);
        } else {
            for pixel in row.chunks_exact_mut(channels) {
                pixel.copy_from_slice(fill);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn only_the_area_is_painted(
            (width, height) in (1_u32..9, 1_u32..9),
            (x, y) in (0_u32..10, 0_u32..10),
            (w, h) in (prop_oneof![0_u32..10, Just(u32::MAX)], prop_oneof![0_u32..10, Just(u32::MAX)]),
            channels in prop_oneof![Just(1_u8), Just(3)],
            fill in prop_oneof![Just([1, 2, 3, 4]), Just([9; 4])],
        ) {
            let len = (width * height) as usize * usize::from(channels);
            let mut pixels = vec![200; len];
            let area = Area { x, y, width: w, height: h };
            erase(&mut pixels, width, channels, area, fill);
            for (index, value) in pixels.iter().enumerate() {
                let channel = index % usize::from(channels);
                let pixel = u32::try_from(index / usize::from(channels)).unwrap();
                let (column, row) = (pixel % width, pixel / width);
                let inside = (x..x.saturating_add(w)).contains(&column)
                    && (y..y.saturating_add(h)).contains(&row);
                prop_assert_eq!(*value, if inside { fill[channel] } else { 200 });
            }
        }
    }

    #[test]
    fn pictures_without_columns_are_left_alone() {
        let area = Area { x: 0, y: 0, width: 1, height: 1 };
        let mut pixels = [7; 3];
        erase(&mut pixels, 0, 3, area, [0; 4]);
        erase(&mut pixels, 3, 0, area, [0; 4]);
        assert_eq!(pixels, [7; 3]);
    }
}
