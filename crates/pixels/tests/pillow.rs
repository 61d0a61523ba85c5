//! Compares every byte with Pillow's pixels, which are written by `tests/pillow/reference.py`.
//!
//! This test needs Python with Pillow 13 and NumPy. `scripts/setup` makes `.venv` with both, or `PACKDS_PYTHON` names
//! another Python. `PACKDS_TEST_IMAGES` may name a folder with more images to compare.
//! `cargo test -p packds-pixels --test pillow -- --nocapture` prints the largest differences.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test: environment variables select the Python and images to use, and it fails by panicking"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use packds_pixels::{
    Area, Color, Crop, CropResize, DecodeOptions, Decoder, Encoded, Geometry, ImageFormat, Orientation, Padding,
    Pixels, Resize, check_structure, padded_crop_into,
};
use serde_json::Value;

/// Maximum difference for lossy WebP, which Pillow decodes with a different library.
const WEBP_TOLERANCE: u8 = 0;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn python() -> PathBuf {
    std::env::var_os("PACKDS_PYTHON").map_or_else(|| root().join(".venv/bin/python"), PathBuf::from)
}

fn reference(output: &Path, folder: Option<&Path>) -> Value {
    let python = python();
    let hint = "run scripts/setup, which makes .venv with Pillow 13 and NumPy, or set PACKDS_PYTHON";
    let mut command = Command::new(&python);
    command.arg(root().join("tests/pillow/reference.py")).arg(output).args(folder);
    let result = command.output().unwrap_or_else(|error| panic!("{}: {error}; {hint}", python.display()));
    let stderr = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "reference.py failed; {hint}\n{stderr}");
    let text = std::fs::read_to_string(output.join("cases.json")).unwrap();
    let cases: Value = serde_json::from_str(&text).unwrap();
    let version = cases["pillow"].as_str().unwrap();
    assert!(version.starts_with("13."), "Pillow {version} found, 13 needed; {hint}");
    cases
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap()
}

fn number(case: &Value, key: &str) -> usize {
    usize::try_from(case[key].as_u64().unwrap()).unwrap()
}

fn geometry(case: &Value) -> Geometry {
    Geometry {
        resize: text(case, "resize").parse().unwrap(),
        crop: text(case, "crop").parse().unwrap(),
        filter: text(case, "filter").parse().unwrap(),
        orientation: match text(case, "orientation") {
            "apply" => Orientation::Apply,
            _ => Orientation::Ignore,
        },
    }
}

/// Compares a case with Pillow's pixels. Returns the largest difference, or an error message.
fn compare(decoder: &mut Decoder, bytes: &[u8], case: &Value, raw: &[u8]) -> Result<u8, String> {
    let geometry = geometry(case);
    let rendered = decoder.render(bytes, &geometry);
    if case["raw"].is_null() {
        return match rendered {
            Ok(_) => Err(format!("Pillow fails: {}", text(case, "error"))),
            Err(_) => Ok(0),
        };
    }
    let image = rendered.map_err(|error| error.to_string())?;
    let size = (number(case, "width"), number(case, "height"));
    if (image.width as usize, image.height as usize) != size {
        return Err(format!("size {}x{}, expected {size:?}", image.width, image.height));
    }
    let mut out = vec![0xAA; image.data.len()];
    decoder.render_into(bytes, &geometry, &mut out).map_err(|error| error.to_string())?;
    if out != image.data {
        return Err("render_into differs from render".to_owned());
    }
    let offset = number(case, "offset");
    let expected = &raw[offset..offset + number(case, "bytes")];
    if expected.len() != image.data.len() {
        return Err(format!("{} bytes, expected {}", image.data.len(), expected.len()));
    }
    Ok(expected.iter().zip(&image.data).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0))
}

fn check(cases: &Value, output: &Path) {
    let mut decoders = [Color::Rgb, Color::Gray, Color::Index]
        .map(|color| Decoder::new(DecodeOptions { color, ..DecodeOptions::default() }));
    let mut worst: BTreeMap<String, (usize, u8)> = BTreeMap::new();
    let mut failures = Vec::new();
    let mut loaded: (String, Vec<u8>, Vec<u8>) = Default::default();
    for case in cases["cases"].as_array().unwrap() {
        let path = text(case, "image");
        if loaded.0 != path {
            loaded = (path.to_owned(), std::fs::read(path).unwrap(), Vec::new());
        }
        if let Some(raw) = case["raw"].as_str()
            && loaded.2.is_empty()
        {
            loaded.2 = std::fs::read(output.join(raw)).unwrap();
        }
        let color = ["rgb", "gray", "index"].iter().position(|name| *name == text(case, "color")).unwrap();
        let format = ImageFormat::sniff(&loaded.1).map_or("none", ImageFormat::name);
        match compare(&mut decoders[color], &loaded.1, case, &loaded.2) {
            Ok(difference) => {
                let filter = if text(case, "resize") == "none" { "none" } else { text(case, "filter") };
                let entry = worst.entry(format!("{format} {filter}")).or_default();
                *entry = (entry.0 + 1, entry.1.max(difference));
                let tolerance = if path.contains("webp-lossy") { WEBP_TOLERANCE } else { 0 };
                if difference > tolerance {
                    failures.push(format!("{path}: differs by {difference}: {case}"));
                }
            }
            Err(what) => failures.push(format!("{path}: {what}: {case}")),
        }
    }
    for (name, (n_cases, difference)) in &worst {
        println!("{name:<16} {n_cases:>6} cases, largest difference {difference}");
    }
    assert!(!worst.is_empty(), "no cases");
    let n_failures = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{n_failures} failures\n{}", failures.join("\n"));
}

/// The numbers in an array of a test case.
fn numbers<const N: usize>(case: &Value, key: &str) -> [i64; N] {
    let list = case[key].as_array().unwrap();
    std::array::from_fn(|index| list[index].as_i64().unwrap())
}

fn flips(case: &Value) -> [bool; 2] {
    [0, 1].map(|index| case["flips"][index].as_bool().unwrap())
}

fn view(case: &Value) -> CropResize {
    let of = |value: i64| u32::try_from(value).unwrap();
    let [x, y, width, height] = numbers(case, "area").map(of);
    let [to_width, to_height] = numbers(case, "size").map(of);
    let [flip_horizontal, flip_vertical] = flips(case);
    CropResize {
        area: Area { x, y, width, height },
        width: to_width,
        height: to_height,
        filter: text(case, "filter").parse().unwrap(),
        flip_horizontal,
        flip_vertical,
    }
}

/// Renders the views one by one and together, and compares both results with Pillow's.
fn check_image_views(path: &str, color: Color, cases: &[&Value], raw: &[u8]) {
    let bytes = std::fs::read(path).unwrap();
    let image = Encoded { bytes: &bytes, seek_index: None };
    let mut decoder =
        Decoder::new(DecodeOptions { color, orientation: Orientation::Apply, ..DecodeOptions::default() });
    let views: Vec<CropResize> = cases.iter().map(|case| view(case)).collect();
    let n_bytes = |view: &CropResize| view.width as usize * view.height as usize * color.channels();
    let mut outs: Vec<Vec<u8>> = views.iter().map(|view| vec![0xAA; n_bytes(view)]).collect();
    for (few, outs) in views.chunks(3).zip(outs.chunks_mut(3)) {
        let mut outs: Vec<&mut [u8]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
        decoder.crop_resize_into(image, few, &mut outs).unwrap();
    }
    for ((case, view), several) in cases.iter().zip(&views).zip(&outs) {
        let mut single = vec![0x55; n_bytes(view)];
        let result = decoder.crop_resize_into(image, &[*view], &mut [&mut single]);
        assert!(result.is_ok(), "{path}: {result:?}: {case}");
        let expected = &raw[number(case, "offset")..][..single.len()];
        assert!(single == expected, "{path}: a view differs: {case}");
        assert!(several == expected, "{path}: a view that was rendered together with others differs: {case}");
    }
}

fn check_views(output: &Path) {
    let listed = std::fs::read_to_string(output.join("views.json")).unwrap();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let raw = std::fs::read(output.join("views.raw")).unwrap();
    let mut images: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for case in listed["views"].as_array().unwrap() {
        let key = (text(case, "image"), text(case, "color"));
        images.entry(key).or_default().push(case);
    }
    for ((path, color), cases) in &images {
        let color = if *color == "gray" { Color::Gray } else { Color::Rgb };
        check_image_views(path, color, cases, &raw);
    }
    let n_views: usize = images.values().map(Vec::len).sum();
    println!("views            {n_views:>6} cases, no difference");
    assert!(n_views > 0, "no views");
    for case in listed["padded"].as_array().unwrap() {
        check_padded(case, &raw);
    }
}

fn check_padded(case: &Value, raw: &[u8]) {
    let [height, width, channels] = numbers(case, "shape").map(|value: i64| u32::try_from(value).unwrap());
    let n_bytes = (height * width * channels) as usize;
    let (picture, expected) = raw[number(case, "offset")..][..2 * n_bytes].split_at(n_bytes);
    let image = Pixels { data: picture, width, height, channels: u8::try_from(channels).unwrap() };
    let padding = match text(case, "mode") {
        "constant" => Padding::Constant([1, 11, 21, 31]),
        "edge" => Padding::Edge,
        "reflect" => Padding::Reflect,
        _ => Padding::Symmetric,
    };
    let ([x, y], [flip_x, flip_y]) = (numbers(case, "corner"), flips(case));
    let mut out = vec![0xAA; n_bytes];
    padded_crop_into(image, x, y, width, height, padding, flip_x, flip_y, &mut out).unwrap();
    assert!(out == expected, "a padded crop differs: {case}");
}

/// Centre crops of every width cover every alignment of the crop to the blocks of a JPEG.
fn check_crops(bytes: &[u8], what: &str) {
    for color in [Color::Rgb, Color::Gray] {
        let mut decoder = Decoder::new(DecodeOptions { color, ..DecodeOptions::default() });
        let Ok(whole) = decoder.decode(bytes) else {
            return;
        };
        let channels = color.channels();
        for step in 0..whole.width {
            let (width, height) = (step + 1, step * 7 % whole.height + 1);
            let crop = Crop::Center { width, height };
            let part = decoder.render(bytes, &Geometry { crop, ..Geometry::default() }).unwrap();
            let start = |whole: u32, part: u32| {
                let (half, odd) = ((whole - part) / 2, (whole - part) % 2);
                (half + odd * (half % 2)) as usize
            };
            let (x, y) = (start(whole.width, width), start(whole.height, height));
            let rows = whole.data.chunks_exact(whole.width as usize * channels).skip(y);
            for (row, found) in rows.zip(part.data.chunks_exact(width as usize * channels)) {
                let expected = &row[x * channels..][..width as usize * channels];
                assert!(expected == found, "{what}: crop {width}x{height} differs");
            }
        }
    }
}

/// Decodes copies that are truncated or have a few bytes changed. Nothing may panic.
fn check_damage(bytes: &[u8]) {
    let mut state = 12345_usize;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..24 {
        let mut damaged = bytes.to_vec();
        for _ in 0..=round % 3 {
            // Change headers more often than pixels.
            let reach = if round % 2 == 0 { damaged.len() } else { damaged.len().min(200) };
            let at = random(reach);
            damaged[at] = u8::try_from(random(256)).unwrap();
        }
        if round % 6 == 5 {
            damaged.truncate(random(damaged.len()));
        }
        for color in [Color::Rgb, Color::Index] {
            let options =
                DecodeOptions { color, max_pixels: 1 << 18, jpeg_scaling: round % 4 == 0, ..DecodeOptions::default() };
            let mut decoder = Decoder::new(options);
            let resize = Resize::Short(20);
            let crop = Crop::Center { width: 9, height: 7 };
            let _ = decoder.decode(&damaged);
            let _ = decoder.render(&damaged, &Geometry { resize, crop, ..Geometry::default() });
        }
        let _ = check_structure(&damaged);
    }
}

#[test]
fn odd_images_are_rendered_as_pillow_does() {
    let output = tempfile::tempdir().unwrap();
    let cases = reference(output.path(), None);
    check(&cases, output.path());
    check_views(output.path());
    for entry in std::fs::read_dir(output.path().join("images")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let what = path.display().to_string();
        let is_whole = check_structure(&bytes).is_ok() || what.contains("broken");
        assert!(is_whole, "{what}: a whole file fails the structure check");
        if ImageFormat::sniff(&bytes) == Some(ImageFormat::Jpeg) {
            check_crops(&bytes, &what);
        }
        check_damage(&bytes);
    }
}

#[test]
fn images_of_the_given_folder_are_rendered_as_pillow_does() {
    let Some(folder) = std::env::var_os("PACKDS_TEST_IMAGES") else {
        println!("PACKDS_TEST_IMAGES is not set: no folder of images to compare");
        return;
    };
    let output = tempfile::tempdir().unwrap();
    let cases = reference(output.path(), Some(Path::new(&folder)));
    check(&cases, output.path());
    check_views(output.path());
}
