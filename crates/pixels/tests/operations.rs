//! Compares the operations at load time with Pillow's bytes, which are written by `tests/pillow/operations.py`.
//!
//! This test needs Python with Pillow 13 and NumPy, like the test `pillow`. `cargo test -p packds-pixels --test
//! operations -- --nocapture` prints what was compared.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test: environment variables select the Python to use, and it fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use packds_pixels::Pixels;
use packds_pixels::ops::{
    Affine, Sampling, Sharpen, adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, autocontrast,
    equalize, invert, posterize, solarize, to_grayscale,
};
use serde_json::Value;

const FILL: [u8; 4] = [10, 200, 77, 0];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cases, and the bytes of their pictures.
fn reference(output: &Path) -> (Value, Vec<u8>) {
    let python = std::env::var_os("PACKDS_PYTHON").map_or_else(|| root().join(".venv/bin/python"), PathBuf::from);
    let hint = "run scripts/setup, which makes .venv with Pillow 13 and NumPy, or set PACKDS_PYTHON";
    let result = Command::new(&python)
        .arg(root().join("tests/pillow/operations.py"))
        .arg(output)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; {hint}", python.display()));
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "operations.py failed; {hint}\n{stderr}");
    let text = std::fs::read_to_string(output.join("cases.json")).unwrap();
    let cases: Value = serde_json::from_str(&text).unwrap();
    let version = cases["pillow"].as_str().unwrap();
    assert!(version.starts_with("13."), "Pillow {version} found, 13 needed; {hint}");
    (cases, std::fs::read(output.join("pixels.raw")).unwrap())
}

fn number(case: &Value, key: &str) -> usize {
    usize::try_from(case[key].as_u64().unwrap()).unwrap()
}

fn mapped(operation: &str, arguments: &[f64], image: Pixels<'_>) -> Vec<u8> {
    let affine = match *arguments {
        [degrees] => Affine::rotation(image.width, image.height, degrees).unwrap(),
        _ => Affine { matrix: arguments.try_into().unwrap(), sampling: Sampling::Nearest, fill: [0; 4] },
    };
    let fill = if operation.ends_with("black") { [0; 4] } else { FILL };
    let mut out = vec![0xAA; image.data.len()];
    let affine = Affine {
        sampling: match operation {
            name if name.contains("bilinear") => Sampling::Bilinear,
            name if name.contains("bicubic") => Sampling::Bicubic,
            _ => Sampling::Nearest,
        },
        fill,
        ..affine
    };
    affine.apply_into(image, &mut out).unwrap();
    out
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "in the reference, factors fit in f32, and thresholds fit in a byte"
)]
fn operated(operation: &str, arguments: &[f64], image: Pixels<'_>) -> Vec<u8> {
    let mut pixels = image.data.to_vec();
    let channels = image.channels;
    let first = arguments.first().copied().unwrap_or_default();
    match operation {
        "brightness" => adjust_brightness(&mut pixels, first as f32),
        "contrast" => adjust_contrast(&mut pixels, channels, first as f32),
        "saturation" => adjust_saturation(&mut pixels, channels, first as f32),
        "hue" => adjust_hue(&mut pixels, channels, first as f32),
        "grayscale" => to_grayscale(&mut pixels, channels),
        "solarize" => solarize(&mut pixels, first as u8),
        "invert" => invert(&mut pixels),
        "posterize" => posterize(&mut pixels, first as u8),
        "autocontrast" => autocontrast(&mut pixels, channels),
        "equalize" => equalize(&mut pixels, channels),
        "sharpness" => Sharpen::new().adjust(&mut pixels, image.width, image.height, channels, first as f32).unwrap(),
        _ => pixels = mapped(operation, arguments, image),
    }
    pixels
}

#[test]
fn operations_give_the_bytes_of_pillow() {
    let output = tempfile::tempdir().unwrap();
    let (cases, raw) = reference(output.path());
    // Number of cases, of compared bytes, and of bytes that differ.
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut failures = Vec::new();
    for case in cases["cases"].as_array().unwrap() {
        let operation = case["operation"].as_str().unwrap();
        let arguments: Vec<f64> =
            case["arguments"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        let (width, height, channels) = (number(case, "width"), number(case, "height"), number(case, "channels"));
        let picture = |key| &raw[number(case, key)..][..width * height * channels];
        let image = Pixels {
            data: picture("source"),
            width: u32::try_from(width).unwrap(),
            height: u32::try_from(height).unwrap(),
            channels: u8::try_from(channels).unwrap(),
        };
        let found = operated(operation, &arguments, image);
        let expected = picture("result");
        let n_different = found.iter().zip(expected).filter(|(a, b)| a != b).count();
        let count = counts.entry(operation.to_owned()).or_default();
        *count = [count[0] + 1, count[1] + found.len(), count[2] + n_different];
        if n_different > 0 {
            failures.push(format!("{n_different} of {}: {case}", found.len()));
        }
    }
    for (name, [n_cases, n_bytes, n_different]) in &counts {
        println!("{name:<20} {n_cases:>5} cases, {n_bytes:>9} bytes, {n_different} differ");
    }
    assert!(counts.len() >= 20, "operations are missing: {counts:?}");
    let n_failures = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{n_failures} failures\n{}", failures.join("\n"));
}
