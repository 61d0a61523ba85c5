//! Views have the same pixels as a crop, a resize and a flip one after another. Invalid arguments are rejected.

#![cfg(feature = "codecs")]

use proptest::prelude::*;

use super::*;
use crate::area::{Area, CropResize, Encoded, Pixels};
use crate::geometry::Filter;
use crate::jpeg::encode_jpeg;
use crate::padded::reverse_pixels;
use crate::resize::{Resizer, resize};

fn noise(width: u32, height: u32, channels: u8) -> Image {
    let n_bytes = width * height * u32::from(channels);
    let data = (0..n_bytes).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as u8);
    Image { width, height, channels, data: data.collect() }
}

fn encoded(bytes: &[u8]) -> Encoded<'_> {
    Encoded { bytes, seek_index: None }
}

fn pixels(image: &Image) -> Pixels<'_> {
    Pixels { data: &image.data, width: image.width, height: image.height, channels: image.channels }
}

fn view_of(area: (u32, u32, u32, u32)) -> CropResize {
    let (x, y, width, height) = area;
    let area = Area { x, y, width, height };
    CropResize { area, width: 2, height: 2, filter: Filter::Bilinear, flip_horizontal: false, flip_vertical: false }
}

/// The crop, `resize` and flips of an image in memory, as separate steps.
fn step_by_step(image: &Image, view: &CropResize) -> Vec<u8> {
    let channels = usize::from(image.channels);
    let area = view.area;
    let columns = usize_of(area.x) * channels..usize_of(area.x + area.width) * channels;
    let rows =
        image.data.chunks_exact(usize_of(image.width) * channels).skip(usize_of(area.y)).take(usize_of(area.height));
    let cut = Image {
        width: area.width,
        height: area.height,
        channels: image.channels,
        data: rows.flat_map(|row| row[columns.clone()].to_vec()).collect(),
    };
    let mut sized = resize(&cut, view.width, view.height, view.filter).unwrap();
    let stride = usize_of(view.width) * channels;
    if view.flip_horizontal {
        for row in sized.data.chunks_exact_mut(stride) {
            reverse_pixels(row, channels);
        }
    }
    if view.flip_vertical {
        sized.data = sized.data.rchunks_exact(stride).flatten().copied().collect();
    }
    sized.data
}

/// A random area of an image, and a size. Equal widths or heights, single pixels and edges occur often.
fn any_view(width: u32, height: u32) -> impl Strategy<Value = CropResize> {
    let side = |side: u32| {
        (0..side, 1..=side, 1_u32..90, 0_u32..6).prop_map(move |(first, len, to, kind)| {
            let len = match kind {
                0 => 1,
                1 => side - first,
                _ => len.min(side - first),
            };
            (first, len, if kind == 2 { len } else { to })
        })
    };
    let filter = proptest::sample::select(Filter::ALL.to_vec());
    (side(width), side(height), filter, any::<(bool, bool)>()).prop_map(
        |((x, w, width), (y, h, height), filter, (flip_horizontal, flip_vertical))| CropResize {
            area: Area { x, y, width: w, height: h },
            width,
            height,
            filter,
            flip_horizontal,
            flip_vertical,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn views_equal_decode_crop_resize_and_flip(
        views in proptest::collection::vec(any_view(71, 53), 1..4),
        gray in any::<bool>(),
    ) {
        let color = if gray { Color::Gray } else { Color::Rgb };
        let mut decoder = Decoder::new(DecodeOptions { color, ..DecodeOptions::default() });
        let source = noise(71, 53, 3);
        let jpeg = encode_jpeg(71, 53, 3, &source.data, 80).unwrap();
        let whole = decoder.decode(&jpeg).unwrap();
        let expected: Vec<_> = views.iter().map(|view| step_by_step(&whole, view)).collect();
        let mut found: Vec<Vec<u8>> = expected.iter().map(|out| vec![0xAA; out.len()]).collect();
        let mut outs: Vec<&mut [u8]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        decoder.crop_resize_into(encoded(&jpeg), &views, &mut outs).unwrap();
        prop_assert_eq!(&found, &expected);
        let mut resizer = Resizer::new();
        for (view, (found, expected)) in views.iter().zip(found.iter_mut().zip(&expected)) {
            found.fill(0x55);
            resizer.crop_resize_into(pixels(&whole), view, found).unwrap();
            prop_assert_eq!(&*found, expected);
        }
    }
}

#[test]
fn views_show_the_stored_picture_or_the_upright_one() {
    let jpeg = std::fs::read("../../fixtures/images/formats/exif_orientation_6.jpg").unwrap();
    for orientation in [Orientation::Ignore, Orientation::Apply] {
        let options = DecodeOptions { orientation, ..DecodeOptions::default() };
        let mut decoder = Decoder::new(options);
        let geometry = Geometry { orientation, ..Geometry::default() };
        let whole = decoder.render(&jpeg, &geometry).unwrap();
        let view = view_of((3, 5, whole.width - 4, whole.height - 7));
        let expected = step_by_step(&whole, &view);
        let mut found = [[0; 12], [1; 12]];
        let [one, two] = &mut found;
        let outs: &mut [&mut [u8]] = &mut [one, two];
        decoder.crop_resize_into(encoded(&jpeg), &[view, view], outs).unwrap();
        assert_eq!(found, [expected.as_slice(); 2], "{orientation:?}");
        decoder.crop_resize_into(encoded(&jpeg), &[view], &mut [&mut found[0]]).unwrap();
        assert_eq!(found[0], expected.as_slice(), "{orientation:?}");
    }
}

#[test]
fn empty_areas_and_areas_outside_are_rejected() {
    let image = noise(8, 6, 3);
    let jpeg = encode_jpeg(8, 6, 3, &image.data, 80).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut out = [0; 12];
    for empty in [(0, 0, 0, 1), (0, 0, 1, 0)] {
        let view = view_of(empty);
        let error = Err(PixelError::EmptyArea { area: view.area });
        let result = decoder.crop_resize_into(encoded(&jpeg), &[view], &mut [&mut out]);
        assert_eq!(result, error);
        let result = Resizer::new().crop_resize_into(pixels(&image), &view, &mut out);
        assert_eq!(result, error);
    }
    for outside in [(8, 0, 1, 1), (0, 5, 1, 2), (3, 0, 6, 1), (2, 0, u32::MAX, 1)] {
        let view = view_of(outside);
        let error = Err(PixelError::AreaOutside { area: view.area, width: 8, height: 6 });
        let result = decoder.crop_resize_into(encoded(&jpeg), &[view], &mut [&mut out]);
        assert_eq!(result, error);
        let result = Resizer::new().crop_resize_into(pixels(&image), &view, &mut out);
        assert_eq!(result, error);
    }
}

#[test]
fn buffers_and_sizes_that_do_not_fit_are_rejected() {
    let image = noise(8, 6, 3);
    let jpeg = encode_jpeg(8, 6, 3, &image.data, 80).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    let view = view_of((0, 0, 8, 6));
    let is_argument = |result| matches!(result, Err(PixelError::InvalidArgument { .. }));
    let wrong = |expected, found| Err(PixelError::WrongBuffer { expected, found });
    let result = decoder.crop_resize_into(encoded(&jpeg), &[view], &mut [&mut [0; 11]]);
    assert_eq!(result, wrong(12, 11));
    assert!(is_argument(decoder.crop_resize_into(encoded(&jpeg), &[view, view], &mut [&mut [0; 12]])));
    let empty = CropResize { width: 0, ..view };
    assert!(is_argument(decoder.crop_resize_into(encoded(&jpeg), &[empty], &mut [&mut []])));
    let mut resizer = Resizer::new();
    let result = resizer.crop_resize_into(pixels(&image), &view, &mut [0; 13]);
    assert_eq!(result, wrong(12, 13));
    let short = Pixels { height: 7, ..pixels(&image) };
    let result = resizer.crop_resize_into(short, &view, &mut [0; 12]);
    assert_eq!(result, wrong(168, 144));
    let pairs = Pixels { width: 12, channels: 2, ..pixels(&image) };
    assert!(is_argument(resizer.crop_resize_into(pairs, &view, &mut [0; 8])));
}

#[test]
fn no_views_need_no_pixels() {
    let jpeg = encode_jpeg(8, 8, 1, &[9; 64], 90).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    assert_eq!(decoder.crop_resize_into(encoded(&jpeg), &[], &mut []), Ok(()));
}
