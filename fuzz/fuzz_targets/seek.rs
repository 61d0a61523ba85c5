//! Crops arbitrary bytes as a JPEG, with arbitrary bytes as its seek index.
//!
//! The input is a JPEG up to its end-of-image marker, then four two-byte numbers (column, row, width and height of the
//! crop), then the index. As the input starts with an image, image files can be seeds.
#![no_main]

use packds_pixels::{Area, CropResize, DecodeOptions, Decoder, Encoded, Filter, build_seek_index};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let end = bytes.windows(2).position(|pair| pair == [0xFF, 0xD9]);
    let (jpeg, rest) = bytes.split_at(end.map_or(bytes.len(), |at| at + 2));
    let (numbers, index) = rest.split_at(rest.len().min(8));
    let number = |at: usize| numbers.get(at).copied().map_or(0, u32::from);
    let side = |at: usize| number(at) | (number(at + 1) << 8);
    let view = CropResize {
        area: Area { x: side(0), y: side(2), width: side(4).max(1), height: side(6).max(1) },
        width: 8,
        height: 8,
        filter: Filter::Bilinear,
        flip_horizontal: false,
        flip_vertical: false,
    };
    let mut decoder =
        Decoder::new(DecodeOptions { max_pixels: 1 << 20, ..DecodeOptions::default() });
    let mut out = [0; 8 * 8 * 3];
    // First with the image's own index, if one can be made, then with the given index.
    let own = build_seek_index(jpeg);
    for seek_index in [own.as_deref(), Some(index)] {
        let image = Encoded { bytes: jpeg, seek_index };
        let shown = decoder.crop_resize_into(image, &[view], &mut [&mut out]);
        if own.is_some() && seek_index == own.as_deref() {
            assert!(
                !matches!(shown, Err(packds_pixels::PixelError::BadSeekIndex { .. })),
                "an index that was just made was rejected"
            );
        }
    }
});
