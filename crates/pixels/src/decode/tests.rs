//! Properties of the decoder that hold for all formats.

#![cfg(feature = "codecs")]

use super::*;
use crate::geometry::{Crop, Filter, Resize};
use crate::jpeg::encode_jpeg;

fn smooth(width: u32, height: u32) -> Vec<u8> {
    let byte = |value: u32| u8::try_from(value).unwrap();
    let pixel = |x: u32, y: u32| [byte(x / 2), byte(y / 2), byte((x + y) / 4)];
    (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect()
}

#[test]
fn a_decoder_can_be_sent_to_another_thread() {
    let jpeg = encode_jpeg(8, 8, 1, &[9; 64], 90).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    let first = decoder.decode(&jpeg).unwrap();
    let decode = std::thread::spawn(move || decoder.decode(&jpeg).unwrap());
    assert_eq!(decode.join().unwrap(), first);
}

/// The file without its marker segments of this type.
fn without(jpeg: &[u8], marker: u8) -> Vec<u8> {
    let mut bytes = jpeg.to_vec();
    while let Some(at) = bytes.windows(2).position(|pair| pair == [0xFF, marker]) {
        let length = usize::from(u16::from_le_bytes([bytes[at + 3], bytes[at + 2]]));
        bytes.drain(at..at + 2 + length);
    }
    bytes
}

#[test]
fn a_file_without_tables_does_not_get_those_of_the_file_before() {
    let jpeg = encode_jpeg(16, 16, 3, &smooth(16, 16), 90).unwrap();
    let mut decoder = Decoder::new(DecodeOptions::default());
    for marker in [0xDB, 0xC4] {
        let bare = without(&jpeg, marker);
        assert!(bare.len() < jpeg.len());
        let alone = Decoder::new(DecodeOptions::default()).decode(&bare);
        decoder.decode(&jpeg).unwrap();
        let behind = decoder.decode(&bare);
        assert_eq!(behind.is_ok(), alone.is_ok());
        assert_eq!(behind.ok(), alone.ok());
    }
    let error = decoder.decode(&without(&jpeg, 0xDB)).unwrap_err();
    assert!(error.to_string().contains("quantization table"), "{error}");
}

#[test]
fn scaled_decoding_gives_nearly_the_same_pixels() {
    let jpeg = encode_jpeg(400, 300, 3, &smooth(400, 300), 95).unwrap();
    for (side, crop) in [(40, Crop::None), (60, Crop::Center { width: 31, height: 45 }), (150, Crop::None)] {
        let filter = Filter::Bilinear;
        let geometry = Geometry { resize: Resize::Short(side), crop, filter, ..Geometry::default() };
        let exact = Decoder::new(DecodeOptions::default()).render(&jpeg, &geometry).unwrap();
        let options = DecodeOptions { jpeg_scaling: true, ..DecodeOptions::default() };
        let scaled = Decoder::new(options).render(&jpeg, &geometry).unwrap();
        assert_eq!((exact.width, exact.height), (scaled.width, scaled.height));
        let pairs = exact.data.iter().zip(&scaled.data);
        let worst = pairs.map(|(a, b)| a.abs_diff(*b)).max().unwrap();
        assert!(worst <= 8, "short side {side}: differs by {worst}");
    }
}

#[test]
fn encoding_is_deterministic_and_close() {
    let pixels = smooth(70, 50);
    let jpeg = encode_jpeg(70, 50, 3, &pixels, 95).unwrap();
    assert_eq!(jpeg, encode_jpeg(70, 50, 3, &pixels, 95).unwrap());
    let image = Decoder::new(DecodeOptions::default()).decode(&jpeg).unwrap();
    let worst = image.data.iter().zip(&pixels).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(worst <= 8, "differs by {worst}");
    assert!(encode_jpeg(70, 50, 3, &pixels, 0).is_err());
    assert!(encode_jpeg(70, 50, 2, &pixels, 90).is_err());
    assert!(encode_jpeg(70, 49, 3, &pixels, 90).is_err());
}
