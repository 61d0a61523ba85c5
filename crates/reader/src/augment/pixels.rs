//! Crop and resize of pictures, by whole decodes.

use packds_pixels::{Area, Decoder, Filter, Image, PixelError, Pixels, resize};

/// Crop, then resize, then flip: what one view shows of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CropResize {
    pub(super) area: Area,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) filter: Filter,
    pub(super) flip_horizontal: bool,
    pub(super) flip_vertical: bool,
}

/// An encoded image, with its seek index where there is one.
#[derive(Debug, Clone, Copy)]
pub struct Encoded<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// What tells where the rows of a JPEG begin.
    pub seek_index: Option<&'a [u8]>,
}

/// What lies outside the picture in a padded crop, with torchvision's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Padding {
    /// One colour; a picture of fewer channels uses the first of them.
    Constant([u8; 4]),
    /// The nearest pixel of the picture.
    Edge,
    /// The picture mirrored at its edge pixels, which are not repeated: `d c b | a b c d | c b a`.
    Reflect,
    /// The picture mirrored at its edges: `c b a | a b c d | d c b`.
    Symmetric,
}

/// Shows views of raw pictures.
#[derive(Debug, Default)]
pub(super) struct Resizer;

impl Resizer {
    pub(super) fn new() -> Self {
        Self
    }

    #[expect(
        clippy::unused_self,
        clippy::needless_pass_by_ref_mut,
        reason = "it will keep its tables"
    )]
    pub(super) fn crop_resize_into(
        &mut self,
        image: Pixels<'_>,
        view: &CropResize,
        out: &mut [u8],
    ) -> Result<(), PixelError> {
        let area = view.area;
        let channels = usize::from(image.channels);
        let mut data = vec![0; index(area.width) * index(area.height) * channels];
        let (x, y) = (i64::from(area.x), i64::from(area.y));
        padded_crop_into(
            image,
            x,
            y,
            area.width,
            area.height,
            Padding::Edge,
            false,
            false,
            &mut data,
        )?;
        let part = Image {
            width: area.width,
            height: area.height,
            channels: image.channels,
            data,
        };
        let resized = resize(&part, view.width, view.height, view.filter)?;
        let image = Pixels {
            data: &resized.data,
            width: view.width,
            height: view.height,
            channels: image.channels,
        };
        padded_crop_into(
            image,
            0,
            0,
            view.width,
            view.height,
            Padding::Edge,
            view.flip_horizontal,
            view.flip_vertical,
            out,
        )
    }
}

pub(super) fn decode_crop_resize_into(
    decoder: &mut Decoder,
    image: Encoded<'_>,
    views: &[CropResize],
    outs: &mut [&mut [u8]],
) -> Result<(), PixelError> {
    let (info, data) = decoder.decode_full(image.bytes)?;
    let channels = data.len() / (index(info.width) * index(info.height));
    let image = Pixels {
        data,
        width: info.width,
        height: info.height,
        channels: u8::try_from(channels).unwrap_or(3),
    };
    let mut resizer = Resizer::new();
    views
        .iter()
        .zip(outs)
        .try_for_each(|(view, out)| resizer.crop_resize_into(image, view, out))
}

fn index(value: u32) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[expect(clippy::too_many_arguments, reason = "a window and how it is shown")]
pub(super) fn padded_crop_into(
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
    let channels = usize::from(image.channels);
    let at = |place: i64, side: u32| -> Option<usize> {
        let side = i64::from(side);
        if (0..side).contains(&place) {
            return usize::try_from(place).ok();
        }
        let mirrored = |period: i64, repeat: i64| {
            let place = place.rem_euclid(period.max(1));
            if place < side {
                place
            } else {
                period - repeat - place
            }
        };
        let inside = match padding {
            Padding::Constant(_) => return None,
            Padding::Edge => place.clamp(0, side - 1),
            Padding::Reflect => mirrored(2 * (side - 1), 0),
            Padding::Symmetric => mirrored(2 * side, 1),
        };
        usize::try_from(inside).ok()
    };
    let fill = if let Padding::Constant(fill) = padding {
        fill
    } else {
        [0; 4]
    };
    for (row, line) in (0..i64::from(height)).zip(out.chunks_exact_mut(index(width) * channels)) {
        let row = if flip_vertical {
            i64::from(height) - 1 - row
        } else {
            row
        };
        for (column, pixel) in (0..i64::from(width)).zip(line.chunks_exact_mut(channels)) {
            let column = if flip_horizontal {
                i64::from(width) - 1 - column
            } else {
                column
            };
            match (at(x + column, image.width), at(y + row, image.height)) {
                (Some(column), Some(row)) => {
                    let from = (row * index(image.width) + column) * channels;
                    pixel.copy_from_slice(&image.data[from..from + channels]);
                }
                _ => pixel.copy_from_slice(&fill[..channels]),
            }
        }
    }
    Ok(())
}
