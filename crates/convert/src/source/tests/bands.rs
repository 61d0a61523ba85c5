//! TIFF files with bands, made by hand. `tests/formats` reads files that tifffile wrote.

use packds_pixels::encode_png;

use super::super::mutation::{Dice, damage};
use super::{Tree, classes, labels};
use crate::source::Listing;
use crate::source::store::Content;

/// A file with one strip, or with one strip for each band.
struct Tiff {
    bands: u16,
    bits: u16,
    /// 1 unsigned, 2 signed, 3 float.
    format: u16,
    /// 1 gray, 2 RGB.
    photometric: u16,
    is_planar: bool,
}

const BANDS: Tiff = Tiff { bands: 5, bits: 16, format: 1, photometric: 1, is_planar: false };

impl Tiff {
    /// The bytes of a file with 3 rows of 2 pixels. Byte `n` of the pixel data is `n`.
    fn bytes(&self) -> Vec<u8> {
        let data: Vec<u8> = (0..3 * 2 * self.bands * self.bits / 8).map(|n| u8::try_from(n % 256).unwrap()).collect();
        let n_strips = if self.is_planar { self.bands } else { 1 };
        let strip = data.len() / usize::from(n_strips);
        let starts: Vec<u32> = (0..n_strips).map(|n| 8 + u32::from(n) * u32::try_from(strip).unwrap()).collect();
        let lengths = vec![u32::try_from(strip).unwrap(); n_strips.into()];
        let shorts = |value: u16| vec![u32::from(value); self.bands.into()];
        let planar = if self.is_planar { 2 } else { 1 };
        let entries: [(u16, u16, Vec<u32>); 11] = [
            (256, 3, vec![2]),
            (257, 3, vec![3]),
            (258, 3, shorts(self.bits)),
            (259, 3, vec![1]),
            (262, 3, vec![self.photometric.into()]),
            (273, 4, starts),
            (277, 3, vec![self.bands.into()]),
            (278, 3, vec![3]),
            (279, 4, lengths),
            (284, 3, vec![planar]),
            (339, 3, shorts(self.format)),
        ];
        let mut file = b"II\x2a\0".to_vec();
        file.extend_from_slice(&u32::try_from(8 + data.len()).unwrap().to_le_bytes());
        file.extend(data);
        let mut far = file.len() + 2 + 12 * entries.len() + 4;
        let mut tail = Vec::new();
        file.extend_from_slice(&11_u16.to_le_bytes());
        for (tag, kind, values) in entries {
            let mut bytes: Vec<u8> = match kind {
                3 => values.iter().flat_map(|value| u16::try_from(*value).unwrap().to_le_bytes()).collect(),
                _ => values.iter().flat_map(|value| value.to_le_bytes()).collect(),
            };
            file.extend_from_slice(&[tag.to_le_bytes(), kind.to_le_bytes()].concat());
            file.extend_from_slice(&u32::try_from(values.len()).unwrap().to_le_bytes());
            if bytes.len() > 4 {
                file.extend_from_slice(&u32::try_from(far).unwrap().to_le_bytes());
                far += bytes.len();
                tail.append(&mut bytes);
            } else {
                bytes.resize(4, 0);
                file.append(&mut bytes);
            }
        }
        file.extend_from_slice(&[0; 4]);
        file.extend(tail);
        file
    }
}

fn image(listing: &Listing, idx: usize) -> (String, Vec<u64>, Vec<u8>) {
    let mut bytes = Vec::new();
    match listing.append_image(idx, u64::MAX, &mut bytes).unwrap() {
        Content::Array(array) => (array.dtype.to_string(), array.shape, bytes),
        other => panic!("{other:?}"),
    }
}

fn told(listing: &Listing) -> String {
    let told: Vec<String> = listing.warnings().iter().map(ToString::to_string).collect();
    told.join("\n")
}

#[test]
fn files_with_bands_are_arrays_in_class_folders() {
    for (tiff, dtype) in [
        (BANDS, "u16"),
        (Tiff { bands: 2, bits: 8, ..BANDS }, "u8"),
        (Tiff { bands: 4, ..BANDS }, "u16"),
        (Tiff { bands: 3, bits: 32, format: 3, photometric: 2, ..BANDS }, "f32"),
        (Tiff { bands: 13, bits: 64, format: 2, photometric: 2, ..BANDS }, "i64"),
    ] {
        let tree = Tree::new(&[]);
        tree.write("a/1.tif", &tiff.bytes());
        tree.write("b/1.TIFF", &tiff.bytes());
        let listing = tree.list().unwrap();
        assert_eq!((labels(&listing), classes(&listing)), (vec![Some(0), Some(1)], vec!["a", "b"]));
        let (found, shape, bytes) = image(&listing, 1);
        assert_eq!((found.as_str(), shape), (dtype, vec![3, 2, tiff.bands.into()]));
        assert!(bytes.iter().enumerate().all(|(n, byte)| usize::from(*byte) == n % 256), "{dtype}");
        let words = format!("read 2 TIFF files with {} bands as {dtype} arrays [3, 2, {}]", tiff.bands, tiff.bands);
        assert!(told(&listing).contains(&words), "{}", told(&listing));
    }
}

#[test]
fn bands_that_are_stored_one_after_the_other_become_the_last_dimension() {
    let tree = Tree::new(&[]);
    tree.write("a.tif", &Tiff { bits: 8, is_planar: true, ..BANDS }.bytes());
    let listing = tree.list().unwrap();
    let (_, shape, bytes) = image(&listing, 0);
    assert_eq!((shape, &bytes[..6]), (vec![3, 2, 5], &[0, 6, 12, 18, 24, 1][..]));
    assert!(told(&listing).contains("become the last dimension"), "{}", told(&listing));
}

#[test]
fn images_stay_images_and_do_not_mix_with_bands() {
    let tree = Tree::new(&[]);
    let rgb = Tiff { bands: 3, bits: 8, photometric: 2, ..BANDS }.bytes();
    tree.write("a/1.tif", &rgb);
    tree.write("a/2.tif", &Tiff { bands: 4, bits: 16, photometric: 2, ..BANDS }.bytes());
    tree.write("a/3.tif", &Tiff { bands: 1, bits: 8, ..BANDS }.bytes());
    let listing = tree.list().unwrap();
    assert_eq!(listing.image_content(0), Content::File);
    tree.write("b/1.tif", &BANDS.bytes());
    let error = tree.list().unwrap_err().to_string();
    assert!(error.contains("'b/1.tif' has 5 bands of type u16, and 'a/1.tif' is an image"), "{error}");
    let tree = Tree::new(&[]);
    tree.write("a/1.png", &encode_png(1, 1, 3, &[0; 3]).unwrap());
    tree.write("a/2.tif", &BANDS.bytes());
    assert!(tree.list().unwrap_err().to_string().contains("'a/1.png' is an image"));
}

#[test]
fn a_file_that_changes_or_cannot_be_read_is_one_bad_sample() {
    let tree = Tree::new(&[]);
    tree.write("a/1.tif", &BANDS.bytes());
    tree.write("a/2.tif", b"II");
    let listing = tree.list().unwrap();
    let mut bytes = Vec::new();
    assert!(listing.append_image(1, u64::MAX, &mut bytes).is_err());
    tree.write("a/1.tif", &Tiff { bands: 6, ..BANDS }.bytes());
    let error = listing.append_image(0, u64::MAX, &mut bytes).unwrap_err().to_string();
    assert!(error.contains("another size, type or number of bands"), "{error}");
}

#[test]
fn damaged_bands_are_errors() {
    let tree = Tree::new(&[]);
    let mut dice = Dice::new(11);
    let (mut good, mut bad) = (0, 0);
    for n in 0..3000 {
        let mut file = Tiff { is_planar: n % 2 == 0, ..BANDS }.bytes();
        damage(&mut file, &mut dice);
        tree.write("a.tif", &file);
        let mut bytes = Vec::new();
        match tree.list().map(|listing| listing.append_image(0, 1 << 20, &mut bytes)) {
            Ok(Ok(_)) => good += 1,
            _ => bad += 1,
        }
    }
    assert!(good > 0 && bad > 0, "{good} {bad}");
}
