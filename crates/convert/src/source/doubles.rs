//! Finds files in the same folder whose names belong together, such as `1.jpg` and `1.png`, or `rain-1.png` and
//! `norain-1.png`. `pairs` handles common names of masks.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::listing::Listing;
use super::look::{MAX_LOOKED, MIN_FILES, look_at};
use super::pairs::key;
use super::paths::{PathTable, joined, lossy, stem};
use super::versions::roles;
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
    pub(super) fn find(paths: &PathTable) -> Option<Self> {
        if !has_two_extensions(paths) {
            return None;
        }
        let mut first_of: HashMap<Vec<u8>, usize> = HashMap::with_capacity(paths.len());
        let mut files = Vec::new();
        for idx in 0..paths.len() {
            if let Some(first) = first_of.insert(key(paths, idx, b""), idx) {
                files.push([first, idx]);
            }
        }
        let extension = |idx: usize| extension(paths, idx).to_ascii_lowercase();
        let extensions = files.first()?.map(extension);
        files.retain(|pair| pair.map(extension) == extensions);
        let are_most = files.len() >= MIN_FILES && are_most(files.len(), paths.len());
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

fn extension(paths: &PathTable, idx: usize) -> &[u8] {
    let name = paths.name(idx);
    &name[stem(name).len()..]
}

/// Whether so many pairs are nearly all files.
fn are_most(n_pairs: usize, n_files: usize) -> bool {
    20 * n_pairs >= 9 * n_files
}

/// Whether two extensions are so frequent that nearly all files may be pairs. Otherwise, the names of all files need not
/// be kept in memory.
fn has_two_extensions(paths: &PathTable) -> bool {
    let mut counts: HashMap<Vec<u8>, usize> = HashMap::new();
    for idx in 0..paths.len() {
        *counts.entry(extension(paths, idx).to_ascii_lowercase()).or_default() += 1;
    }
    counts.values().filter(|n| are_most(**n, paths.len())).count() == 2
}

/// The warning about names that consist of another name plus a prefix or suffix with letters.
pub(super) fn marked(paths: &PathTable, files: impl Iterator<Item = usize> + Clone) -> Option<Warning> {
    let compared = files.clone().take(MAX_COMPARED).map(|idx| (idx, rests(&key(paths, idx, b"")))).collect::<Vec<_>>();
    // Only the names that are looked for are kept, because there may be very many files.
    let wanted = compared.iter().flat_map(|(_, rests)| rests).map(|(_, other)| (other.clone(), None));
    let mut places: HashMap<Vec<u8>, Option<usize>> = wanted.collect();
    for idx in files.clone() {
        if let Some(place) = places.get_mut(&key(paths, idx, b"")) {
            *place = Some(idx);
        }
    }
    let mut marks: BTreeMap<&[u8], (usize, usize, usize)> = BTreeMap::new();
    for (idx, rests) in &compared {
        for (mark, other) in rests {
            if let Some(Some(of)) = places.get(other) {
                marks.entry(mark).or_insert((0, *idx, *of)).0 += 1;
            }
        }
    }
    let is_enough = |n: usize| n >= MIN_FILES && 4 * n >= compared.len();
    let marked = marks.into_values().max_by_key(|(n, ..)| *n).filter(|(n, ..)| is_enough(*n));
    let [first, of] = marked
        .map(|(_, idx, of)| [idx, of])
        .or_else(|| two_ends(paths, files.clone()))
        .or_else(|| two_patterns(paths, files))?;
    let [first, of] = [first, of].map(|idx| paths.path(idx));
    Some(Warning::MarkedNames { first, of })
}

/// The first two files if all files form pairs whose names differ only in the same two last words, as in `1_colors` and
/// `1_depth`.
fn two_ends(paths: &PathTable, files: impl Iterator<Item = usize> + Clone) -> Option<[usize; 2]> {
    let parts = |idx: usize| {
        let mut start = key(paths, idx, b"");
        let at = start.iter().rposition(|byte| matches!(byte, b'_' | b'-'))?;
        let word = start.split_off(at);
        Some((start, word))
    };
    let mut words = BTreeSet::new();
    for idx in files.clone() {
        words.insert(parts(idx)?.1);
        if words.len() > 2 {
            return None;
        }
    }
    let is_word = |word: &Vec<u8>| word.iter().skip(1).all(u8::is_ascii_alphabetic);
    if words.len() != 2 || !words.iter().all(is_word) {
        return None;
    }
    let mut pairs: BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, usize>> = BTreeMap::new();
    for idx in files {
        let (start, word) = parts(idx)?;
        pairs.entry(start).or_default().insert(word, idx);
    }
    let are_all = pairs.len() >= MIN_FILES && pairs.values().all(|pair| pair.len() == 2);
    let first: Vec<usize> = pairs.values().next()?.values().copied().collect();
    let [one, other] = *first.as_slice() else { return None };
    are_all.then_some([other, one])
}

/// The first two files if nearly all files form pairs whose names have the same numbers, but one of two patterns of letters. The patterns
/// must be those of two versions, as in `1_NOISY_2` and `1_GT_2`, or have two extensions, as in `rgb_1.jpg` and `depth_1.png`.
fn two_patterns(paths: &PathTable, files: impl Iterator<Item = usize> + Clone) -> Option<[usize; 2]> {
    let letters = |idx: usize| -> Vec<u8> {
        stem(paths.name(idx)).iter().copied().filter(|byte| !byte.is_ascii_digit()).collect()
    };
    let mut patterns = BTreeSet::new();
    for idx in files.clone() {
        patterns.insert((letters(idx), extension(paths, idx).to_ascii_lowercase()));
        if patterns.len() > 2 {
            return None;
        }
    }
    let [(one, one_end), (other, other_end)] = patterns.iter().collect::<Vec<_>>().try_into().ok()?;
    let is_known = one_end != other_end || roles([one, other]).is_some();
    if one == other || !is_known || ![one, other].iter().all(|name| name.iter().any(u8::is_ascii_alphabetic)) {
        return None;
    }
    let mut pairs = BTreeMap::<_, BTreeMap<Vec<u8>, usize>>::new();
    for idx in files {
        let numbers = stem(paths.name(idx)).split(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
        let key = (paths.directory_idx(idx), numbers.map(<[u8]>::to_vec).collect::<Vec<_>>());
        pairs.entry(key).or_default().insert(letters(idx), idx);
    }
    let n = pairs.len();
    let mut whole =
        pairs.into_values().filter(|pair| pair.len() == 2).map(|pair| pair.into_values().collect::<Vec<_>>());
    let first: [usize; 2] = whole.next()?.try_into().ok()?;
    let n_whole = 1 + whole.count();
    (n_whole >= MIN_FILES && 10 * n_whole >= 9 * n).then_some([first[1], first[0]])
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
