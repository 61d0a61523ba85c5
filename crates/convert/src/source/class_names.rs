//! Files of class names next to the data. A JSON file next to a table is read if it has a name for each label. Other
//! files are not read, because they do not say which id each name has.

use std::path::Path;

use serde_json::{Deserializer, Value};

use super::candidate::is_image_name;
use super::detect::names_in;
use super::directory::Directory;
use super::listing::Listing;
use super::rows::members;
use super::there::{first_there, is_there_as_file, text_file};
use super::warning::Warning;
use crate::error::ConvertError;

/// Common names of files with class names.
const FILES: [&str; 17] = [
    "classes.txt",
    "classes.json",
    "class_names.txt",
    "class_names.json",
    "classnames.txt",
    "ClassName.txt",
    "names.txt",
    "categories.txt",
    "wnids.txt",
    "words.txt",
    "synset_words.txt",
    "synsets.txt",
    "LOC_synset_mapping.txt",
    "imagenet_class_index.json",
    "class_to_idx.json",
    "cat_to_name.json",
    "label_map.json",
];
/// Parts of the names of JSON files with class names.
const PARTS: [&str; 6] = ["class", "label", "categor", "names", "cat_to_name", "idx"];
/// Maximum number of JSON files to try.
const MAX_FILES: usize = 8;
/// Maximum size of a JSON file with class names, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// The warning if a folder contains a file of class names.
pub(super) fn among(top: &Directory) -> Option<Warning> {
    let is_one = |name: &&[u8]| FILES.iter().any(|known| known.as_bytes() == *name);
    let unread = |file: &[u8]| Warning::ClassNamesUnread { file: file.to_vec(), of_ids: false };
    top.names().filter(is_one).min().map(unread)
}

/// The warning if there is a file of class names next to a file with numeric labels.
pub(super) fn beside(data: &Path) -> Result<Option<Warning>, ConvertError> {
    let name = file_beside(data)?;
    Ok(name.map(|file| Warning::ClassNamesUnread { file, of_ids: false }))
}

fn file_beside(data: &Path) -> Result<Option<Vec<u8>>, ConvertError> {
    let found = first_there(FILES.map(|name| data.with_file_name(name)))?.filter(|found| found != data);
    Ok(found.as_ref().and_then(|found| found.file_name()).map(|name| name.as_encoded_bytes().to_vec()))
}

/// Adds the class names in a JSON file next to a table, or the warning about a file of names that is not read. The labels are ids from
/// `first` to `last`.
pub(super) fn add(listing: &mut Listing, table: &Path, [first, last]: [i64; 2]) -> Result<(), ConvertError> {
    if let Some((file, names)) = of_ids(table, [first, last])? {
        listing.classes = names.into_iter().map(String::into_bytes).collect();
        listing.warnings.push(Warning::ClassNamesRead { file: file.into_bytes() });
    } else if let Some(file) = file_beside(table)? {
        listing.warnings.push(Warning::ClassNamesUnread { file, of_ids: true });
    }
    Ok(())
}

/// Finds the JSON file next to a table that has a name for each id from `first` to `last`. Returns its name and the class names.
/// `None` if two such files have different class names.
fn of_ids(table: &Path, [first, last]: [i64; 2]) -> Result<Option<(String, Vec<String>)>, ConvertError> {
    let Some(folder) = table.parent() else { return Ok(None) };
    let is_one = |name: &String| {
        let lower = name.to_ascii_lowercase();
        lower.ends_with(".json") && PARTS.iter().any(|part| lower.contains(part))
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let mut files: Vec<String> = names_in(folder).into_iter().filter(is_one).collect();
    files.sort_unstable();
    let mut found: Option<(String, Vec<String>)> = None;
    for file in files.into_iter().take(MAX_FILES) {
        let path = folder.join(&file);
        let is_short = || path.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        if path == table || !is_there_as_file(&path)? || !is_short() {
            continue;
        }
        let Some(names) = text_file(&path)?.and_then(|text| names_of(&text, first, last)) else { continue };
        match &found {
            Some((_, other)) if *other != names => return Ok(None),
            Some(_) => {}
            None => found = Some((file, names)),
        }
    }
    Ok(found)
}

/// The names in `["cat", "dog"]`, `{"0": "cat", "1": "dog"}` or `{"cat": 0, "dog": 1}`. `None` if an id from `first` to
/// `last` has no name, or if two ids have the same name. Ids in an object may count from 1; the id 0 is then named "0".
/// Ids in a list count from 0.
fn names_of(text: &str, first: i64, last: i64) -> Option<Vec<String>> {
    let text = text.trim_start_matches('\u{feff}');
    let pairs: Vec<(i64, String)> = match serde_json::from_str(text) {
        Ok(Value::Array(names)) if first == 0 => {
            (0..).zip(names).map(|(id, name)| Some((id, name.as_str()?.to_owned()))).collect::<Option<_>>()?
        }
        Ok(Value::Object(_)) => {
            let members = members::<Value>(Deserializer::from_str(text), "a JSON object", "class").ok()?;
            let pair = |(key, value): (String, Value)| match value {
                Value::String(name) => Some((key.parse().ok()?, name)),
                id => Some((id.as_i64()?, key)),
            };
            members.into_iter().map(pair).collect::<Option<_>>()?
        }
        _ => return None,
    };
    let (least, n) = (pairs.iter().map(|(id, _)| *id).min()?, i64::try_from(pairs.len()).ok()?);
    let is_file = pairs.iter().any(|(_, name)| is_image_name(name.as_bytes()));
    if !(0..=1).contains(&least) || first < least || last >= least + n || is_file {
        return None;
    }
    let mut names = vec![String::new(); usize::try_from(least + n).ok()?];
    if let (1, Some(zero)) = (least, names.first_mut()) {
        "0".clone_into(zero);
    }
    for (id, name) in pairs {
        let place = names.get_mut(usize::try_from(id).ok()?).filter(|place| place.is_empty())?;
        *place = name;
    }
    let mut sorted: Vec<&String> = names.iter().collect();
    sorted.sort_unstable();
    let are_names =
        sorted.windows(2).all(|pair| pair[0] != pair[1]) && names.iter().all(|name| !name.trim().is_empty());
    are_names.then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_only_if_each_id_has_its_own() {
        for text in [r#"["cat", "dog"]"#, r#"{"1": "dog", "0": "cat"}"#, r#"{"cat": 0, "dog": 1}"#] {
            assert_eq!(names_of(text, 0, 1).unwrap(), ["cat", "dog"], "{text}");
            assert_eq!(names_of(text, 0, 2), None, "{text}");
        }
        assert_eq!(names_of(r#"{"1": "cat", "2": "dog"}"#, 1, 2).unwrap(), ["0", "cat", "dog"]);
        for text in [
            r#"{"1": "cat", "2": "dog"}"#,
            r#"{"0": "cat", "1": "cat"}"#,
            r#"{"0": "cat", "00": "dog"}"#,
            r#"{"0": "cat", "5": "dog"}"#,
            r#"{"0": "a.jpg", "1": "b.jpg"}"#,
            r#"{"0": "cat", "1": ["dog"]}"#,
            r#"{"-9223372036854775808": "cat", "9223372036854775807": "dog"}"#,
            r#"["cat", 1]"#,
            "{}",
            "[]",
            "{",
        ] {
            assert_eq!(names_of(text, 0, 1), None, "{text}");
        }
        assert_eq!(names_of(r#"["cat", "dog"]"#, 1, 1), None);
    }
}
