//! Labels and splits in MATLAB files next to a folder of numbered images, as in Oxford's Flowers-102. There,
//! `imagelabels.mat` has a label for each of `image_00001.jpg`, `image_00002.jpg` and so on. `setid.mat` has the
//! numbers of the images in each split.

use std::path::Path;

use super::ListOptions;
use super::candidate::SampleFiles;
use super::detect::names_in;
use super::image_folder;
use super::listing::{Labels, Listing, SourceKind};
use super::matlab::vectors;
use super::paths::{lossy, stem};
use super::roles::is_label_name;
use super::warning::Warning;
use crate::data_format::DataFormat;

/// The names of the splits in `setid.mat`, each with the name that the split gets.
const SPLITS: [(&str, &str); 3] = [("trnid", "train"), ("valid", "valid"), ("tstid", "test")];

/// The splits of a folder with two such files. `None` if it has no such files, if they do not fit the images, or if
/// options say how to read the folder.
pub(super) fn splits(folder: &Path, options: &ListOptions) -> Option<Vec<(String, Listing)>> {
    let is_chosen = options.from.is_some() || options.images.is_some() || options.masks.is_some();
    if is_chosen || !folder.is_dir() {
        return None;
    }
    let mut files = names_in(folder);
    files.retain(|name| DataFormat::from_file_name(name) == Some(DataFormat::Matlab));
    files.sort();
    let [one, other] = files.as_slice() else { return None };
    let read = |name: &String| Some((name.clone(), vectors(&folder.join(name))?));
    let (mut labels, mut sets) = (read(one)?, read(other)?);
    if !matches!(labels.1.as_slice(), [(name, _)] if is_label_name(name)) {
        (labels, sets) = (sets, labels);
    }
    let [(name, ids)] = labels.1.as_slice() else { return None };
    let options = ListOptions { split: None, ..options.clone() };
    let all = image_folder::list_source(folder, &options, SampleFiles::Images).ok()?;
    let is_one = is_label_name(name) && all.kind == SourceKind::FlatFolder && !all.has_labels();
    if !is_one || all.len() != ids.len() || !are_numbered(&all) {
        return None;
    }
    let mut warnings: Vec<Warning> = all.warnings.iter().filter_map(of_other_files).collect();
    warnings.push(Warning::NumberedLabels { files: [labels.0, sets.0] });
    let ignored = all.ignored.saturating_sub(2);
    let mut taken = vec![false; ids.len()];
    let mut splits = Vec::new();
    for (name, numbers) in &sets.1 {
        let (_, split) = SPLITS.iter().find(|(known, _)| known == name)?;
        let mut places = Vec::new();
        for number in numbers {
            let place = usize::try_from(*number).ok()?.checked_sub(1)?;
            let is_taken = taken.get_mut(place)?;
            if std::mem::replace(is_taken, true) {
                return None;
            }
            places.push(place);
        }
        places.sort_unstable();
        let own = Labels::PerSample(places.iter().map(|place| ids[*place]).collect());
        let listing = Listing { labels: own, warnings: warnings.clone(), ignored, ..all.picked(&places) };
        splits.push(((*split).to_owned(), listing));
    }
    splits.sort_by(|(a, _), (b, _)| a.cmp(b));
    taken.iter().all(|taken| *taken).then_some(splits)
}

/// A warning, unless it is about the MATLAB files.
fn of_other_files(warning: &Warning) -> Option<Warning> {
    match warning {
        Warning::LabelsUnread { .. } | Warning::UnreadType { name: "MATLAB", .. } => None,
        Warning::OtherFiles { groups } => {
            let mut groups = groups.clone();
            groups.retain(|(extension, _, _)| extension != "mat");
            (!groups.is_empty()).then_some(Warning::OtherFiles { groups })
        }
        other => Some(other.clone()),
    }
}

/// Whether the names of the images end with the numbers 1, 2, 3 and so on, in the order of the listing.
fn are_numbered(listing: &Listing) -> bool {
    (0..listing.len()).all(|idx| {
        let name = lossy(stem(listing.paths.name(idx)));
        let start = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name.get(start..).and_then(|digits| digits.parse().ok()) == Some(idx + 1)
    })
}
