//! The contents of the sources that `records.py` writes in several formats, and access to packs.

use packds_format::Pack;

use crate::support::Folder;

/// Number of samples in most sources, and the size of their images.
pub(crate) const N: u64 = 20;
const PIXELS: u64 = 5 * 7 * 3;

/// The pixels of image `i`.
pub(crate) fn pixels(i: u64) -> Vec<u8> {
    let pixel = |k| u8::try_from((k * 7 + i * 31) % 251).unwrap();
    (0..PIXELS).map(pixel).collect()
}

/// Converts a source with further arguments, keeping its order.
pub(crate) fn converted(folder: &Folder, source: &str, args: &[&str]) -> Pack<Vec<u8>> {
    let out = format!("{}.pack", source.replace('/', "_"));
    let all = [&["convert", source, &out, "--keep-order", "--force"], args].concat();
    let ran = folder.packds(&all);
    assert_eq!(ran.code, 0, "{ran:?}");
    Pack::open(std::fs::read(folder.path(&out)).unwrap()).unwrap()
}

/// The error for a source.
pub(crate) fn refused(folder: &Folder, source: &str, args: &[&str]) -> String {
    let ran = folder.packds(&[&["convert", source, "no.pack"], args].concat());
    assert_ne!(ran.code, 0, "{ran:?}");
    assert!(!folder.path("no.pack").exists());
    ran.stderr
}

/// The items of a field.
pub(crate) fn items(pack: &Pack<Vec<u8>>, name: &str) -> Vec<Vec<u8>> {
    let mut fields = pack.schema().fields().iter();
    let number = fields.position(|field| field.name == name);
    let number = number.unwrap_or_else(|| panic!("no field {name}"));
    (0..pack.n_samples()).map(|sample| pack.item(number, sample).unwrap().into_owned()).collect()
}

/// The labels, as numbers.
pub(crate) fn labels(pack: &Pack<Vec<u8>>) -> Vec<i32> {
    let items = items(pack, "label");
    let label = |item: &Vec<u8>| i32::from_le_bytes(item.as_slice().try_into().unwrap());
    items.iter().map(label).collect()
}

/// The class names.
pub(crate) fn classes(pack: &Pack<Vec<u8>>) -> Vec<String> {
    pack.classes().unwrap().first().map(|classes| classes.names.clone()).unwrap_or_default()
}

/// Asserts that a pack has the scripts' images and labels, numbered by `samples`, in order.
pub(crate) fn assert_records(pack: &Pack<Vec<u8>>, samples: impl IntoIterator<Item = u64>) {
    let samples: Vec<u64> = samples.into_iter().collect();
    let expected: Vec<Vec<u8>> = samples.iter().map(|i| pixels(*i)).collect();
    assert_eq!(items(pack, "image"), expected);
}
