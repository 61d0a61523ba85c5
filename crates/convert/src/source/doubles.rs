//! Finds files in the same folder whose names belong together, such as `1.jpg` and `1.png`, or `rain-1.png` and
//! `norain-1.png`. `pairs` handles common names of masks.

use std::collections::{BTreeMap, HashMap};

use super::listing::Listing;
use super::look::{MAX_LOOKED, MIN_FILES, look_at};
use super::paths::{PathTable, joined, lossy, stem};
use super::walk::count;
use super::warning::Warning;

/// Maximum number of files to compare with all others by name.
const MAX_COMPARED: usize = 1000;
/// Maximum length of a prefix, plus one. Suffixes may be longer.
const MAX_PREFIX: usize = 12;

/// Pairs of files with the same stem and two different extensions.
pub(super) struct Doubles {
    /// The two files of each stem, in the order of `extensions`.
    pub(super) files: Vec<[usize; 2]>,
    extensions: [Vec<u8>; 2],
}

impl Doubles {
    /// Finds pairs of files whose names differ only in the extension, if nearly all files belong to such a pair.
    pub(super) fn find(paths: &PathTable, keys: &[Vec<u8>]) -> Option<Self> {
        let mut first_of: HashMap<&[u8], usize> = HashMap::with_capacity(keys.len());
        let mut files = Vec::new();
        for (idx, key) in keys.iter().enumerate() {
            if let Some(first) = first_of.insert(key, idx) {
                files.push([first, idx]);
            }
        }
        let extension = |idx: usize| {
            let name = paths.name(idx);
            name[stem(name).len()..].to_ascii_lowercase()
        };
        let extensions = files.first()?.map(extension);
        files.retain(|pair| pair.map(extension) == extensions);
        let are_most = files.len() >= MIN_FILES && 20 * files.len() >= 9 * keys.len();
        (are_most && extensions[0] != extensions[1]).then_some(Self { files, extensions })
    }

    /// Which of the two extensions belongs to masks, judged by the headers of the first files. `None` if neither
    /// clearly does.
    pub(super) fn masks(&self, listing: &Listing) -> Option<usize> {
        let looks = self.files.iter().take(MAX_LOOKED).map(|pair| pair.map(|idx| look_at(&listing.file_path(idx))));
        let looks: Vec<[bool; 2]> = looks.map(|pair| pair.map(|look| look.is_some_and(|look| look.is_mask))).collect();
        (0..2).find(|of| looks.iter().all(|is_mask| is_mask[*of] && !is_mask[1 - of]))
    }

    /// The warning about the pairs. `masks` is the index of the extension of masks, if there is one.
    pub(super) fn warning(&self, masks: Option<usize>) -> Warning {
        let [one, other] = self.extensions.each_ref().map(|extension| lossy(extension));
        match masks {
            None => Warning::SameStems { count: count(self.files.len()), one, other },
            Some(0) => Warning::MasksByExtension { images: other, masks: one },
            Some(_) => Warning::MasksByExtension { images: one, masks: other },
        }
    }
}

/// The warning about names that consist of another name plus a prefix or suffix with letters. `files` holds the file index for each
/// key.
pub(super) fn marked(paths: &PathTable, keys: &[Vec<u8>], files: &[usize]) -> Option<Warning> {
    let places: HashMap<&[u8], usize> = keys.iter().enumerate().map(|(idx, key)| (key.as_slice(), idx)).collect();
    let mut marks: BTreeMap<Vec<u8>, (usize, usize, usize)> = BTreeMap::new();
    let compared = keys.len().min(MAX_COMPARED);
    for (idx, key) in keys.iter().enumerate().take(compared) {
        for (mark, other) in rests(key) {
            if let Some(of) = places.get(other.as_slice()) {
                marks.entry(mark).or_insert((0, idx, *of)).0 += 1;
            }
        }
    }
    let marked = marks.into_values().max_by_key(|(n, ..)| *n).filter(|(n, ..)| *n >= MIN_FILES && 4 * n >= compared);
    let [idx, of] = marked.map(|(_, idx, of)| [idx, of]).or_else(|| two_ends(keys))?;
    let [first, of] = [idx, of].map(|idx| paths.path(files[idx]));
    Some(Warning::MarkedNames { first, of })
}

/// The first two keys if all keys form pairs that differ only in the same two last words, as in `1_colors` and `1_depth`.
fn two_ends(keys: &[Vec<u8>]) -> Option<[usize; 2]> {
    let mut pairs: BTreeMap<&[u8], BTreeMap<&[u8], usize>> = BTreeMap::new();
    for (idx, key) in keys.iter().enumerate() {
        let at = key.iter().rposition(|byte| matches!(byte, b'_' | b'-'))?;
        pairs.entry(&key[..at]).or_default().insert(&key[at + 1..], idx);
    }
    let first = pairs.values().next().filter(|first| first.len() == 2)?;
    let are_words = first.keys().all(|word| word.iter().all(u8::is_ascii_alphabetic));
    let are_all = pairs.len() >= MIN_FILES && pairs.values().all(|pair| pair.keys().eq(first.keys()));
    let [one, other] = *first.values().copied().collect::<Vec<_>>().as_slice() else { return None };
    (are_words && are_all).then_some([other, one])
}

/// All possible prefixes and suffixes of a name, each with the rest of the path.
fn rests(key: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let at = key.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let (folder, name) = (&key[..at], key[at..].strip_prefix(b"/").unwrap_or(&key[at..]));
    let is_mark = |mark: &[u8]| mark.iter().any(u8::is_ascii_alphabetic);
    let is_separator = |idx: &usize| matches!(name[*idx], b'_' | b'-' | b'.' | b' ' | b'(');
    let behind = (1..name.len()).filter(is_separator).map(|cut| (&name[cut..], &name[..cut]));
    let before = (1..name.len().min(MAX_PREFIX)).map(|cut| (&name[..cut], &name[cut..]));
    let marked = behind.chain(before).filter(|(mark, _)| is_mark(mark));
    marked.map(|(mark, rest)| (mark.to_vec(), joined(folder, rest))).collect()
}
