//! Reads labels from names such as `cat.0.jpg`, and finds words in the names of other unlabelled images that may be the labels.

use std::collections::BTreeSet;

use super::detect::names_in;
use super::folder_note::FolderNote;
use super::listing::{Labels, Listing, SourceKind};
use super::paths::{as_path, lossy, stem};
use super::roles::TEXT_NAME;
use super::there::text_file;
use super::unread::is_note;
use super::warning::Warning;
use crate::opt::LABEL_KEY;

/// Minimum number of images. With fewer, equal words may be chance.
const MIN_IMAGES: usize = 4;

/// Takes labels from the names of unlabelled images, or warns about names that may contain labels.
pub(super) fn read(listing: &mut Listing) {
    let Some(warning) = find(listing) else { return };
    let words: Option<Vec<&[u8]>> = (0..listing.len()).map(|idx| numbered_word(listing.paths.name(idx))).collect();
    let (Warning::LabelsInNames { word, image }, Some(words)) = (&warning, words.filter(|_| !listing.has_labels()))
    else {
        listing.warnings.push(warning);
        return;
    };
    let told = Warning::LabelsFromNames { word: word.clone(), image: image.clone() };
    let classes: BTreeSet<&[u8]> = words.iter().copied().collect();
    let classes: Vec<Vec<u8>> = classes.into_iter().map(<[u8]>::to_vec).collect();
    let id = |word: &&[u8]| {
        classes.binary_search_by(|class| class.as_slice().cmp(word)).ok().and_then(|id| i64::try_from(id).ok())
    };
    listing.labels = Labels::PerSample(words.iter().filter_map(id).collect());
    listing.classes = classes;
    listing.warnings.push(told);
}

/// The word of a name that consists of a word and a number, as in `cat.0.jpg`.
fn numbered_word(name: &[u8]) -> Option<&[u8]> {
    let stem = stem(name);
    let dot = stem.iter().position(|byte| *byte == b'.')?;
    let (word, number) = (&stem[..dot], &stem[dot + 1..]);
    let is_number = !number.is_empty() && number.iter().all(u8::is_ascii_digit);
    (is_number && !word.is_empty() && !word.iter().any(u8::is_ascii_digit)).then_some(word)
}

/// The warning about unlabelled or single-class images whose names seem to contain labels: several leading numbers, or leading words that recur
/// twice or more on average.
fn find(listing: &Listing) -> Option<Warning> {
    let is_flat = listing.kind() == SourceKind::FlatFolder && matches!(listing.labels, Labels::None);
    let is_flat = is_flat || listing.has_one_folder();
    let is_told = |warning: &Warning| {
        matches!(warning, Warning::MarkedNames { .. } | Warning::SameStems { .. } | Warning::FewMasks { .. })
    };
    let has_other_marks = listing.warnings.iter().any(is_told);
    if !is_flat || has_other_marks || listing.masks.is_some() || listing.len() < MIN_IMAGES {
        return None;
    }
    if let Some(note) = rows_by_number(listing) {
        return Some(Warning::Folders(note));
    }
    if (0..listing.len()).all(|idx| has_numbers(listing.paths.name(idx))) {
        let image = listing.paths.name(0);
        return Some(Warning::LabelsInNames { word: first_word(image)?.to_vec(), image: image.to_vec() });
    }
    if let Some(note) = texts(listing) {
        return Some(Warning::Folders(note));
    }
    let mut words = BTreeSet::new();
    for idx in 0..listing.len() {
        words.insert(first_word(listing.paths.name(idx))?);
        if 2 * words.len() > listing.len() {
            return None;
        }
    }
    let image = listing.paths.name(0);
    let word = first_word(image)?.to_vec();
    (words.len() > 1).then(|| Warning::LabelsInNames { word, image: image.to_vec() })
}

/// The warning about names that may be the texts in the images, as for captchas: short words of one length, with letters and digits at
/// any place.
fn texts(listing: &Listing) -> Option<FolderNote> {
    const LENGTHS: std::ops::RangeInclusive<usize> = 4..=8;
    let stems: Vec<&[u8]> = (0..listing.len()).map(|idx| stem(listing.paths.name(idx))).collect();
    let len = stems.first()?.len();
    let is_word = |stem: &&[u8]| stem.len() == len && stem.iter().all(u8::is_ascii_alphanumeric);
    let are_words = LENGTHS.contains(&len) && listing.paths.n_directories() == 1 && stems.iter().all(is_word);
    let has_both = |at: usize| {
        let mut kinds = stems.iter().filter_map(|stem| stem.get(at)).map(u8::is_ascii_digit);
        let first = kinds.next();
        kinds.any(|kind| Some(kind) != first)
    };
    // In names such as `img001` or `a1b001`, each place has either letters or digits.
    if !are_words || !has_both(0) || !has_both(len - 1) {
        return None;
    }
    let first = listing.paths.name(0).to_vec();
    let line = table_of_names(TEXT_NAME, "p.stem", &format!("*{}", lossy(&first[len..])));
    Some(FolderNote::NamesAsTexts { first, line })
}

/// Advice on how to write a table of the labels in names, such as `word` at the start of `image`: the first word, or the first three
/// numbers.
pub(super) fn table_of_words(word: &[u8], image: &[u8]) -> String {
    let end = format!("*{}", lossy(&image[stem(image).len()..]));
    let separator = lossy(image.get(word.len()..=word.len()).unwrap_or_default());
    let run = "run this Python in the folder of the images, and convert names.csv";
    if has_numbers(image) {
        let names = [1, 2, 3].map(|number| format!("number_{number}"));
        let value = format!("*p.name.split(\"{separator}\")[:3]");
        let (columns, key) = (names.join("\", \""), LABEL_KEY.with(&names[0]));
        return format!("{run}, with {key} for the first number: {}", table_of_names(&columns, &value, &end));
    }
    format!("{run}: {}", table_of_names("label", &format!("p.name.split(\"{separator}\")[0]"), &end))
}

/// The note about a text file next to images whose names begin with the number of its row: row 3 of `HousesInfo.txt` belongs to
/// `3_kitchen.jpg`. The file has as many rows as the names have different numbers.
fn rows_by_number(listing: &Listing) -> Option<FolderNote> {
    let number = |idx: usize| std::str::from_utf8(first_word(listing.paths.name(idx))?).ok()?.parse::<usize>().ok();
    let numbers: BTreeSet<usize> = (0..listing.len()).map(number).collect::<Option<_>>()?;
    let n = numbers.len();
    let is_counted = numbers.first() == Some(&1) && numbers.last() == Some(&n) && n < listing.len();
    let folder = listing.root().join(as_path(listing.paths.directory(0)));
    if !is_counted || listing.paths.n_directories() != 1 || !listing.unpacked.is_empty() {
        return None;
    }
    let is_table = |name: &String| name.ends_with(".txt") && !is_note(name.as_bytes());
    let has_rows = |name: &String| {
        let text = text_file(&folder.join(name)).ok().flatten().unwrap_or_default();
        let widths: BTreeSet<usize> = text.lines().map(|line| line.split_ascii_whitespace().count()).collect();
        text.lines().count() == n && widths.len() == 1 && widths.first() > Some(&1)
    };
    let mut tables: Vec<String> = names_in(&folder).into_iter().filter(is_table).filter(has_rows).collect();
    let (Some(file), None) = (tables.pop(), tables.pop()) else { return None };
    let image = listing.paths.name(0).to_vec();
    let (number, end) = (lossy(first_word(&image)?), lossy(&image[stem(&image).len()..]));
    let separator = lossy(image.get(number.len()..=number.len())?);
    let line = format!(
        "import csv, pathlib; r = [l.split() for l in open(\"{file}\")]; csv.writer(open(\"names.csv\", \"w\")).writerows([[\"path\"] + [f\"column_{{i + 1}}\" for i in range(len(r[0]))]] + [[p] + r[int(p.name.split(\"{separator}\")[0]) - 1] for p in sorted(pathlib.Path().glob(\"*{end}\"))])"
    );
    Some(FolderNote::RowsByNumber { file, number, image, line })
}

/// A line of Python that writes `names.csv` in the current folder, with the images that match a pattern. `value` is the expression for the
/// value of the path `p`.
pub(super) fn table_of_names(column: &str, value: &str, pattern: &str) -> String {
    format!(
        "import csv, pathlib; csv.writer(open(\"names.csv\", \"w\")).writerows([(\"path\", \"{column}\")] + [(p, {value}) for p in sorted(pathlib.Path().glob(\"{pattern}\"))])"
    )
}

/// Whether a name begins with three short numbers, as in `25_0_2_20170116.jpg`, where they are age, gender and race.
fn has_numbers(name: &[u8]) -> bool {
    let mut parts = stem(name).split(|byte| matches!(byte, b'_' | b'-'));
    let is_number = |part: &[u8]| (1..=3).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    (0..3).all(|_| parts.next().is_some_and(is_number)) && parts.next().is_some()
}

/// The part of a name before its first separator.
fn first_word(name: &[u8]) -> Option<&[u8]> {
    let stem = stem(name);
    let end = stem.iter().position(|byte| matches!(byte, b'.' | b'_' | b'-' | b' '))?;
    Some(&stem[..end])
}
