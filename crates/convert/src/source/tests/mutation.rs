//! Tests the readers with thousands of damaged files. For each file, a reader must return a listing or an error, quickly and with
//! little memory.

use std::path::Path;

use super::{ListOptions, list};
use crate::data_format::DataFormat;

/// A deterministic random number generator.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % u64::try_from(n.max(1)).unwrap()).unwrap()
    }
}

/// Changes some bytes, truncates the file, or moves a run of bytes.
pub(super) fn damage(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len());
        match dice.below(8) {
            0 => bytes.truncate(at),
            1 => {
                let end = (at + dice.below(64)).min(bytes.len());
                bytes[at..end].fill([0, 0xff][dice.below(2)]);
            }
            2 => {
                let end = (at + dice.below(64)).min(bytes.len());
                let run = bytes[at..end].to_vec();
                let to = dice.below(bytes.len());
                bytes.splice(to..to, run);
            }
            3 | 4 => {
                let values = [0, 1, 7, 0x7f, 0x80, 0xff];
                bytes[at] = values[dice.below(values.len())];
            }
            _ => bytes[at] ^= 1 << dice.below(8),
        }
        if bytes.is_empty() {
            bytes.push(0);
        }
    }
}

/// Lists `n` damaged versions of a file and reads the result. Each version is made by `make` and saved as `name`.
pub(super) fn survives(format: DataFormat, name: &str, n: usize, make: impl FnMut(&mut Dice) -> Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    survives_at(format, &folder.path().join(name), &folder.path().join(name), n, make);
}

/// Like [`survives`] for a file in a folder, which is listed.
pub(super) fn survives_in(
    format: DataFormat,
    folder: &Path,
    name: &str,
    n: usize,
    make: impl FnMut(&mut Dice) -> Vec<u8>,
) {
    survives_at(format, folder, &folder.join(name), n, make);
}

fn survives_at(format: DataFormat, source: &Path, file: &Path, n: usize, mut make: impl FnMut(&mut Dice) -> Vec<u8>) {
    let options = ListOptions { from: Some(format), ..ListOptions::default() };
    let mut dice = Dice::new(7);
    let mut good = 0;
    for _ in 0..n {
        std::fs::write(file, make(&mut dice)).unwrap();
        good += usize::from(list_and_read(source, &options));
    }
    assert!(good < n, "no damage was found");
}

fn list_and_read(path: &Path, options: &ListOptions) -> bool {
    let Ok(listing) = list(path, options) else {
        return false;
    };
    let mut out = Vec::new();
    for idx in 0..listing.len() {
        out.clear();
        let _ = listing.append_image(idx, 1 << 20, &mut out);
        for field in listing.fields() {
            out.clear();
            let _ = super::append_stored(field.store.as_ref(), idx, 1 << 20, &mut out);
        }
    }
    true
}
