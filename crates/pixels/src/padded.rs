//! Crops that may extend beyond the image.

use packds_system::to_usize;
use std::ops::Range;

use crate::area::{Pixels, check_out};
use crate::decode::usize_of;
use crate::error::PixelError;

/// Padding outside the image in a padded crop, named as in torchvision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// A constant colour. Images with fewer channels use the first values.
    Constant([u8; 4]),
    /// The nearest pixel of the image.
    Edge,
    /// The image mirrored at its edge pixels, which are not repeated: `d c b | a b c d | c b a`.
    Reflect,
    /// The image mirrored at its edges: `c b a | a b c d | d c b`.
    Symmetric,
}

/// torchvision's `RandomCrop` with padding. Copies a window of `width` x `height` pixels that starts at column `x` and
/// row `y` of the image. The window may extend beyond the image. Flips the window if requested.
///
/// Mirroring repeats if the padding is larger than the image, as in NumPy's `pad`.
///
/// # Errors
/// `WrongBuffer` if the data does not match the image's size, or if `out` does not have `width * height * channels`
/// bytes. `InvalidArgument` if the image or the window is empty, or if there are more than 4 channels.
#[expect(
    clippy::too_many_arguments,
    reason = "the arguments are a window and its options, and a struct would only be used by this call"
)]
pub fn padded_crop_into(
    image: Pixels<'_>,
    x: i64,
    y: i64,
    width: u32,
    height: u32,
    padding: Padding,
    flip_horizontal: bool,
    flip_vertical: bool,
    out: &mut [u8],
) -> Result<(), PixelError> {
    let stride = image.check()?;
    let channels = usize::from(image.channels);
    if channels > 4 {
        return Err(PixelError::argument("channels", "1 to 4", channels));
    }
    check_out(width, height, channels, out.len())?;
    let inside = overlap(x, width, image.width);
    let first = i64::try_from(inside.start).unwrap_or(i64::MAX);
    let crop = Crop {
        data: image.data,
        channels,
        columns: image.width,
        x,
        source: usize_of(source(x.saturating_add(first), image.width, Padding::Edge).unwrap_or(0)),
        inside,
        padding,
    };
    let last = usize_of(height) - 1;
    for (index, line) in out.chunks_exact_mut(usize_of(width) * channels).enumerate() {
        let row = if flip_vertical { last - index } else { index };
        let row = y.saturating_add(i64::try_from(row).unwrap_or(i64::MAX));
        match source(row, image.height, padding) {
            Some(row) => crop.copy_row(usize_of(row) * stride, line),
            None => crop.fill(line),
        }
        if flip_horizontal {
            reverse_pixels(line, channels);
        }
    }
    Ok(())
}

/// The columns of a window, which are the same for all rows.
struct Crop<'a> {
    data: &'a [u8],
    channels: usize,
    columns: u32,
    x: i64,
    /// The columns of the window that are inside the image.
    inside: Range<usize>,
    /// The image's column for the first column of `inside`.
    source: usize,
    padding: Padding,
}

impl Crop<'_> {
    /// Writes a row of the window from the image's row that starts at byte `row`.
    fn copy_row(&self, row: usize, line: &mut [u8]) {
        let channels = self.channels;
        let Range { start, end } = self.inside;
        let bytes = (end - start) * channels;
        let from = &self.data[row + self.source * channels..];
        line[start * channels..end * channels].copy_from_slice(&from[..bytes]);
        let n_columns = line.len() / channels;
        for column in (0..start).chain(end..n_columns) {
            let at = self.x.saturating_add(i64::try_from(column).unwrap_or(i64::MAX));
            let pixel = &mut line[column * channels..][..channels];
            match source(at, self.columns, self.padding) {
                Some(at) => {
                    let at = row + usize_of(at) * channels;
                    pixel.copy_from_slice(&self.data[at..at + channels]);
                }
                None => self.fill(pixel),
            }
        }
    }

    fn fill(&self, line: &mut [u8]) {
        if let Padding::Constant(color) = self.padding {
            for pixel in line.chunks_exact_mut(self.channels) {
                pixel.copy_from_slice(&color[..self.channels]);
            }
        }
    }
}

/// The positions of a window that are within `0..side`, relative to the window. The window starts at `first` and has
/// `len` positions.
fn overlap(first: i64, len: u32, side: u32) -> Range<usize> {
    let within = |position: i64| to_usize(position.clamp(0, i64::from(len)).cast_unsigned());
    let start = within(first.saturating_neg());
    let end = within(i64::from(side).saturating_sub(first));
    start..end.max(start)
}

/// The source position for `position` on a side of `len`. `None` if the padding is a constant colour at this position.
fn source(position: i64, len: u32, padding: Padding) -> Option<u32> {
    let side = i64::from(len);
    let mirrored = |position: i64, period: i64, last: i64| {
        let rest = position.rem_euclid(period);
        if rest < side { rest } else { last - rest }
    };
    let found = match padding {
        _ if (0..side).contains(&position) => position,
        Padding::Constant(_) => return None,
        Padding::Edge => position.clamp(0, side - 1),
        Padding::Reflect if side == 1 => 0,
        Padding::Reflect => mirrored(position, 2 * side - 2, 2 * side - 2),
        Padding::Symmetric => mirrored(position, 2 * side, 2 * side - 1),
    };
    u32::try_from(found).ok()
}

/// Reverses the pixels of a row.
pub(crate) fn reverse_pixels(row: &mut [u8], channels: usize) {
    if channels == 1 {
        row.reverse();
        return;
    }
    let (left, right) = row.split_at_mut(row.len() / channels / 2 * channels);
    let pairs = left.chunks_exact_mut(channels).zip(right.rchunks_exact_mut(channels));
    for (a, b) in pairs {
        a.swap_with_slice(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row_of(text: &[u8]) -> Pixels<'_> {
        Pixels { data: text, width: u32::try_from(text.len()).unwrap(), height: 1, channels: 1 }
    }

    fn crop_row(text: &str, x: i64, width: u32, padding: Padding, flip: bool) -> String {
        let image = row_of(text.as_bytes());
        let mut out = vec![0; width as usize];
        padded_crop_into(image, x, 0, width, 1, padding, flip, false, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn each_padding_shows_its_own_outside() {
        for (padding, expected, flipped) in [
            (Padding::Constant(*b"-xyz"), "--abcd---", "---dcba--"),
            (Padding::Edge, "aaabcdddd", "ddddcbaaa"),
            (Padding::Reflect, "cbabcdcba", "abcdcbabc"),
            (Padding::Symmetric, "baabcddcb", "bcddcbaab"),
        ] {
            assert_eq!(crop_row("abcd", -2, 9, padding, false), expected);
            assert_eq!(crop_row("abcd", -2, 9, padding, true), flipped);
        }
    }

    #[test]
    fn a_mirrored_picture_repeats_and_one_pixel_is_everywhere() {
        assert_eq!(crop_row("abc", -9, 12, Padding::Reflect, false), "babcbabcbabc");
        assert_eq!(crop_row("abc", -9, 12, Padding::Symmetric, false), "cbaabccbaabc");
        assert_eq!(crop_row("a", -2, 5, Padding::Reflect, false), "aaaaa");
        assert_eq!(crop_row("abc", i64::MAX, 3, Padding::Edge, false), "ccc");
        assert_eq!(crop_row("abc", i64::MIN, 3, Padding::Edge, false), "aaa");
    }

    #[test]
    fn windows_and_pictures_that_do_not_fit_are_rejected() {
        let image = row_of(b"abc");
        let crop =
            |image, width, out: &mut [u8]| padded_crop_into(image, 0, 0, width, 1, Padding::Edge, false, false, out);
        let error = |expected, found| Err(PixelError::WrongBuffer { expected, found });
        assert_eq!(crop(image, 3, &mut [0; 2]), error(3, 2));
        let short = Pixels { width: 4, ..image };
        assert_eq!(crop(short, 3, &mut [0; 3]), error(4, 3));
        let is_argument = |result| matches!(result, Err(PixelError::InvalidArgument { .. }));
        assert!(is_argument(crop(image, 0, &mut [])));
        let empty = Pixels { height: 0, data: b"", ..image };
        assert!(is_argument(crop(empty, 3, &mut [0; 3])));
        let many = Pixels { width: 1, channels: 5, data: b"abcde", ..image };
        assert!(is_argument(crop(many, 1, &mut [0; 5])));
    }
}
