//! Compares the operations at load time with torchvision's results in `fixtures/torchvision/`, which were written by
//! `fixtures/make/make_torchvision.py`.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test: it fails by panicking")]

use packds_pixels::ops::{
    Affine, Blur, Sampling, adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, erase, invert, solarize,
    to_grayscale,
};
use packds_pixels::{Area, Pixels};
use serde_json::Value;

/// torchvision sums the square kernel in another order, so a value close to a half may be rounded differently.
const BLUR_TOLERANCE: u8 = 1;

fn fixture() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/torchvision/operations.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

fn numbers(value: &Value, key: &str) -> Vec<f64> {
    let of = |value: &Value| value.as_f64().unwrap();
    list(value, key).iter().map(of).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = value["pixels"].as_str().unwrap();
    (0..digits.len() / 2).map(|index| u8::from_str_radix(&digits[2 * index..][..2], 16).unwrap()).collect()
}

fn number(value: &Value, key: &str) -> u32 {
    u32::try_from(value[key].as_u64().unwrap()).unwrap()
}

fn map(arguments: &[f64], width: u32, height: u32) -> Affine {
    match *arguments {
        [degrees] => Affine::rotation(width, height, degrees),
        [degrees, x, y, scale, shear_x, shear_y] => {
            Affine::new(width, height, degrees, (x, y), scale, (shear_x, shear_y))
        }
        _ => panic!("{arguments:?}"),
    }
    .unwrap()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "in the fixture, factors fit in f32, and sizes and thresholds fit in a byte"
)]
fn operated(operation: &str, arguments: &[f64], image: Pixels<'_>) -> Vec<u8> {
    let (width, height, channels) = (image.width, image.height, image.channels);
    let mut pixels = image.data.to_vec();
    let first = arguments.first().copied().unwrap_or_default();
    match operation {
        "brightness" => adjust_brightness(&mut pixels, first as f32),
        "contrast" => adjust_contrast(&mut pixels, channels, first as f32),
        "saturation" => adjust_saturation(&mut pixels, channels, first as f32),
        "hue" => adjust_hue(&mut pixels, channels, first as f32),
        "grayscale" => to_grayscale(&mut pixels, channels),
        "solarize" => solarize(&mut pixels, first as u8),
        "invert" => invert(&mut pixels),
        "blur" => {
            Blur::new().gaussian(&mut pixels, width, height, channels, first as u32, arguments[1] as f32).unwrap()
        }
        "erase" => {
            let side = |index: usize| arguments[index] as u32;
            let area = Area { x: side(0), y: side(1), width: side(2), height: side(3) };
            erase(&mut pixels, width, channels, area, [arguments[4] as u8; 4]);
        }
        _ => {
            let sampling = if operation.ends_with("bilinear") { Sampling::Bilinear } else { Sampling::Nearest };
            let map = map(arguments, width, height);
            Affine { sampling, ..map }.apply_into(image, &mut pixels).unwrap();
        }
    }
    pixels
}

#[test]
fn operations_give_the_bytes_of_torchvision() {
    let mut n_cases = 0;
    for picture in list(&fixture(), "images") {
        let data = bytes(picture);
        let image = Pixels {
            data: &data,
            width: number(picture, "width"),
            height: number(picture, "height"),
            channels: u8::try_from(number(picture, "channels")).unwrap(),
        };
        for case in list(picture, "cases") {
            let operation = case["operation"].as_str().unwrap();
            let found = operated(operation, &numbers(case, "arguments"), image);
            let wanted = bytes(case);
            assert_eq!(found.len(), wanted.len());
            let difference = found.iter().zip(&wanted).map(|(a, b)| a.abs_diff(*b)).max();
            let tolerance = if operation == "blur" { BLUR_TOLERANCE } else { 0 };
            assert!(difference.unwrap() <= tolerance, "{difference:?}: {case}");
            n_cases += 1;
        }
    }
    assert_eq!(n_cases, 138);
}

#[test]
fn matrices_are_those_of_torchvision() {
    let fixture = fixture();
    let matrices = list(&fixture, "matrices");
    assert_eq!(matrices.len(), 8);
    for case in matrices {
        let found = map(&numbers(case, "arguments"), 13, 12).matrix;
        // The last bits of sines depend on the C library.
        for (found, wanted) in found.iter().zip(numbers(case, "matrix")) {
            assert!((found - wanted).abs() <= 1e-14, "{found}: {case}");
        }
    }
}
