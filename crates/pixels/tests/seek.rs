//! A view has the same bytes with and without a seek index.
//!
//! This test needs the same Python as `tests/pillow.rs`. `PACKDS_TEST_IMAGES` may name a folder with more images to
//! compare.
#![expect(
    clippy::unwrap_used,
    reason = "a test: environment variables select the Python and images to use, and it fails by panicking"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use packds_pixels::{
    Area, Color, CropResize, DecodeOptions, Decoder, Encoded, Filter, ImageFormat, Orientation, PixelError,
    build_seek_index, encode_jpeg, probe,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pseudorandom numbers, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((u64::from(n) * (self.0 >> 32)) >> 32).unwrap()
    }

    fn view(&mut self, width: u32, height: u32) -> CropResize {
        let side = |random: &mut Self, whole: u32| match random.below(4) {
            0 => 1,
            1 => 1 + random.below(whole.div_ceil(4)),
            _ => 1 + random.below(whole),
        };
        let first = |random: &mut Self, rest: u32| match random.below(4) {
            0 => 0,
            1 => rest,
            _ => random.below(rest + 1),
        };
        let (w, h) = (side(self, width), side(self, height));
        let exact = self.below(2) == 0;
        CropResize {
            area: Area { x: first(self, width - w), y: first(self, height - h), width: w, height: h },
            width: if exact { w } else { 1 + self.below(40) },
            height: if exact { h } else { 1 + self.below(40) },
            filter: Filter::Bilinear,
            flip_horizontal: self.below(2) == 0,
            flip_vertical: self.below(2) == 0,
        }
    }
}

fn shown(
    decoder: &mut Decoder,
    image: Encoded<'_>,
    views: &[CropResize],
    channels: usize,
) -> Result<Vec<Vec<u8>>, PixelError> {
    let bytes = |view: &CropResize| view.width as usize * view.height as usize * channels;
    let mut outs: Vec<Vec<u8>> = views.iter().map(|view| vec![0xAA; bytes(view)]).collect();
    let mut slices: Vec<&mut [u8]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
    decoder.crop_resize_into(image, views, &mut slices)?;
    Ok(outs)
}

/// Compares single views and pairs, in colour and gray. Returns the number of views compared, or 0 if the file cannot
/// be indexed.
fn compare(bytes: &[u8], what: &str, n_views: usize) -> usize {
    let Some(index) = build_seek_index(bytes) else {
        return 0;
    };
    let info = probe(bytes).unwrap();
    let (width, height) = if info.orientation >= 5 { (info.height, info.width) } else { (info.width, info.height) };
    let mut random = Random(u64::from(width) << 32 | u64::from(height));
    for color in [Color::Rgb, Color::Gray] {
        let mut decoder =
            Decoder::new(DecodeOptions { color, orientation: Orientation::Apply, ..DecodeOptions::default() });
        for n in 0..n_views {
            let views: Vec<CropResize> = (0..=n % 4 / 3).map(|_| random.view(width, height)).collect();
            let mut show = |seek_index| {
                let image = Encoded { bytes, seek_index };
                shown(&mut decoder, image, &views, color.channels())
            };
            let (expected, found) = (show(None).unwrap(), show(Some(&index)).unwrap());
            assert!(expected == found, "{what}: {views:?} differ");
        }
    }
    2 * n_views
}

fn jpegs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.append(&mut jpegs(&path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            if ImageFormat::sniff(&bytes) == Some(ImageFormat::Jpeg) {
                all.push((path, bytes));
            }
        }
    }
    all.sort();
    all
}

fn compare_folder(folder: &Path, n_views: usize) -> (usize, usize) {
    let files = jpegs(folder);
    let compared = files.iter().map(|(path, bytes)| compare(bytes, &path.display().to_string(), n_views));
    let (mut n_files, mut n) = (0, 0);
    for compared in compared {
        n_files += usize::from(compared > 0);
        n += compared;
    }
    (n_files, n)
}

#[test]
fn views_of_our_own_images_are_the_same_with_an_index() {
    for folder in ["fixtures/images/formats", "fixtures/images/folder", "examples/photos"] {
        let (n_files, n) = compare_folder(&root().join(folder), 40);
        assert!(n_files >= 5, "{folder}: {n} views of {n_files} files");
    }
    let mut random = Random(7);
    for (width, height) in [(200, 150), (151, 97), (640, 20)] {
        for (channels, quality) in [(3, 95), (3, 40), (1, 90)] {
            let n = width as usize * height as usize * usize::from(channels);
            let pixels: Vec<u8> =
                (0..n).map(|i| u8::try_from(i / 50 % 200 + random.below(30) as usize).unwrap()).collect();
            let jpeg = encode_jpeg(width, height, channels, &pixels, quality).unwrap();
            assert!(compare(&jpeg, &format!("{width}x{height}x{channels}"), 100) > 0);
        }
    }
}

#[test]
fn views_of_pillows_images_are_the_same_with_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let python = std::env::var_os("PACKDS_PYTHON").map_or_else(|| root().join(".venv/bin/python"), PathBuf::from);
    let script = root().join("tests/pillow/seekable_images.py");
    let made = Command::new(&python).arg(script).arg(folder.path()).output();
    let made = made.unwrap_or_else(|error| panic!("{}: {error}: run scripts/setup", python.display()));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (n_files, n) = compare_folder(folder.path(), 16);
    println!("{n} views of {n_files} files");
    assert_eq!(n_files, 8 * 4 * 2 * 5, "every file gets an index");
}

#[test]
fn views_of_the_given_folder_are_the_same_with_an_index() {
    let Some(folder) = std::env::var_os("PACKDS_TEST_IMAGES") else {
        println!("PACKDS_TEST_IMAGES is not set: no folder of images to compare");
        return;
    };
    let (n_files, n) = compare_folder(Path::new(&folder), 40);
    println!("{n} views of {n_files} files");
}

#[test]
fn a_wrong_index_is_an_error_and_an_empty_one_is_none() {
    let jpeg = encode_jpeg(200, 150, 3, &[90; 200 * 150 * 3], 90).unwrap();
    let index = build_seek_index(&jpeg).unwrap();
    let view = CropResize {
        area: Area { x: 100, y: 100, width: 10, height: 10 },
        width: 10,
        height: 10,
        filter: Filter::Bilinear,
        flip_horizontal: false,
        flip_vertical: false,
    };
    let mut decoder = Decoder::new(DecodeOptions::default());
    let mut show = |seek_index: &[u8]| {
        let image = Encoded { bytes: &jpeg, seek_index: Some(seek_index) };
        shown(&mut decoder, image, &[view], 3)
    };
    let expected = show(&index).unwrap();
    let mut damaged = index.clone();
    damaged[20] ^= 1;
    let error = show(&damaged).unwrap_err();
    assert_eq!(error.to_string(), "the seek index is damaged: wrong checksum");
    assert_eq!(show(&[]).unwrap(), expected);
    assert_eq!(show(&index).unwrap(), expected);
}
