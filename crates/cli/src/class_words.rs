//! Display names of classes. For example, `n01440764` is shown as "tench".

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use packds_format::Classes;
use packds_reader::Pack;
use packds_system::read_regular;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::Failure;
use crate::escape::{escape, escape_path, first_few};
use crate::label::Labels;

/// The option for a file of display names.
#[derive(Debug, Default, Args)]
pub(crate) struct WordsFile {
    /// File of display names for the classes, such as LOC_synset_mapping.txt; - is stdin
    ///
    /// Each line of a text file has a class name, a space or a tab, and the display name. A .csv file has two columns.
    /// A .json file has an object: {"n01440764": "tench"} or {"0": ["n01440764", "tench"]}. Classes without a display
    /// name keep their class name.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    names: Option<PathBuf>,
}

impl WordsFile {
    /// The labels and classes of a pack, with the names to show. Of the labels, only those of `samples` are needed; `None`
    /// means all.
    pub(crate) fn apply<'a>(&self, pack: &'a Pack, samples: Option<&[u64]>) -> Result<Names<'a>, Failure> {
        let mut labels = Labels::of_samples(pack, samples)?;
        let mut classes = pack.located(pack.classes())?;
        if let Some(file) = &self.names {
            let words = read(file)?;
            check(&words, &classes, pack.file_path()).map_err(|failure| failure.at(file))?;
            let lists = classes.iter_mut().map(|classes| classes.names.as_mut_slice()).chain([labels.names_mut()]);
            for name in lists.flatten() {
                if let Some(words) = words.get(name) {
                    name.clone_from(words);
                }
            }
        }
        Ok((labels, classes))
    }
}

/// The labels of a pack, and the classes of all its fields.
pub(crate) type Names<'a> = (Labels<'a>, Vec<Classes>);

type Words = HashMap<String, String>;

/// Checks that at least one of the pack's classes has a display name.
fn check(words: &Words, classes: &[Classes], pack: &Path) -> Result<(), Failure> {
    let names = || classes.iter().flat_map(|classes| &classes.names);
    if names().any(|name| words.contains_key(name)) {
        return Ok(());
    }
    if names().next().is_none() {
        let message = format!("the classes of {} have no names to replace", escape_path(pack));
        return Err(Failure::not_run(message).hint("drop --names"));
    }
    let mut given: Vec<String> = words.keys().cloned().collect();
    given.sort();
    let names: Vec<String> = names().cloned().collect();
    let message = format!(
        "this file has no display names for the classes of {}: it has display names for {}, but the classes are {}",
        escape_path(pack),
        if given.is_empty() { "no class".to_owned() } else { first_few(&given) },
        first_few(&names)
    );
    Err(Failure::not_run(message))
}

fn read(file: &Path) -> Result<Words, Failure> {
    let read = if file.as_os_str() == "-" { read_stdin() } else { read_regular(file) };
    let bytes = read.map_err(|error| Failure::not_run(format!("cannot read: {error}")).at(file))?;
    let wrong = |message: String| Failure::not_run(message).at(file);
    let text = str::from_utf8(&bytes).map_err(|error| {
        wrong(format!("expected UTF-8 text, found an invalid byte at position {}", error.valid_up_to()))
    })?;
    let text = text.trim_start_matches('\u{feff}');
    let extension = file.extension().unwrap_or_default().to_ascii_lowercase();
    let pairs = match extension.to_str() {
        Some("csv") => csv_rows(text),
        Some("json") => json_entries(text),
        _ => text_lines(text),
    };
    let mut words = Words::new();
    for (place, name, shown) in pairs.map_err(wrong)? {
        match words.insert(name.clone(), shown.clone()) {
            Some(before) if before != shown => {
                let (name, before, shown) = (escape(&name), escape(&before), escape(&shown));
                return Err(wrong(format!("{place}: `{name}` has two display names, `{before}` and `{shown}`")));
            }
            _ => {}
        }
    }
    Ok(words)
}

fn read_stdin() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::stdin().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Where the entry is in the file, the class name, and its display name.
type Entry = (String, String, String);

fn entry(place: String, name: &str, words: &str) -> Result<Entry, String> {
    let (name, words) = (name.trim(), words.trim());
    if name.is_empty() || words.is_empty() {
        return Err(format!("{place}: expected a class name and a display name, found only one of them"));
    }
    Ok((place, name.to_owned(), words.to_owned()))
}

/// Parses lines with a class name and a display name. A class name may contain spaces if a tab follows it.
fn text_lines(text: &str) -> Result<Vec<Entry>, String> {
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let parsed = lines.map(|(number, line): (u64, &str)| {
        let line = line.trim();
        let (name, words) = line.split_once('\t').or_else(|| line.split_once(' ')).unwrap_or((line, ""));
        entry(format!("line {number}"), name, words)
    });
    parsed.collect()
}

fn csv_rows(text: &str) -> Result<Vec<Entry>, String> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let rows = reader.records().map(|row| {
        let row = row.map_err(|error| error.to_string())?;
        let place = format!("line {}", row.position().map_or(0, csv::Position::line));
        match (row.get(0), row.get(1), row.len()) {
            (Some(name), Some(words), 2) => entry(place, name, words),
            _ => Err(format!("{place}: expected 2 columns, a class name and a display name, found {}", row.len())),
        }
    });
    rows.collect()
}

fn json_entries(text: &str) -> Result<Vec<Entry>, String> {
    let object: Pairs = serde_json::from_str(text)
        .map_err(|error| format!("expected a JSON object of class names and display names: {error}"))?;
    let entries = object.0.iter().map(|(key, value)| {
        let place = format!("entry `{}`", escape(key));
        match value {
            Value::String(words) => entry(place, key, words),
            Value::Array(pair) => match pair.as_slice() {
                [Value::String(name), Value::String(words)] => entry(place, name, words),
                _ => Err(format!("{place}: expected a list of two strings, a class name and a display name")),
            },
            _ => Err(format!("{place}: expected a display name, or a list of a class name and a display name")),
        }
    });
    entries.collect()
}

/// All entries of a JSON object, even if several have the same key.
struct Pairs(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, text: &str) -> Result<Vec<(String, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join(name);
        std::fs::write(&file, text).unwrap();
        let mut words: Vec<_> = read(&file).map_err(|failure| failure.text())?.into_iter().collect();
        words.sort();
        Ok(words)
    }

    #[test]
    fn words_are_read_from_text_csv_and_json() {
        let tench = ("n01440764".to_owned(), "tench, Tinca tinca".to_owned());
        let lion = ("sea lion".to_owned(), "Otaria".to_owned());
        let both = Ok(vec![tench.clone(), lion]);
        assert_eq!(words("a.txt", "\u{feff}n01440764 tench, Tinca tinca\r\n\nsea lion\tOtaria"), both);
        assert_eq!(words("a", "n01440764\ttench, Tinca tinca\nsea lion\tOtaria\nsea lion\tOtaria\n"), both);
        assert_eq!(words("a.CSV", "n01440764,\"tench, Tinca tinca\"\nsea lion,Otaria\n"), both);
        assert_eq!(words("a.json", r#"{"n01440764": "tench, Tinca tinca", "sea lion": "Otaria"}"#), both);
        assert_eq!(words("a.json", r#"{"0": ["n01440764", "tench, Tinca tinca"]}"#), Ok(vec![tench]));
    }

    #[test]
    fn what_is_in_doubt_is_an_error_that_names_the_place() {
        let cases = [
            ("a.txt", "cat Katze\ndog\n", "line 2: expected a class name and a display name, found only one of them"),
            ("a.txt", "cat Katze\ncat Kater\n", "line 2: `cat` has two display names, `Katze` and `Kater`"),
            (
                "a.csv",
                "cat,Katze\ndog,Hund,chien\n",
                "line 2: expected 2 columns, a class name and a display name, found 3",
            ),
            (
                "a.json",
                r#"{"cat": "Katze", "cat": "Kater"}"#,
                "entry `cat`: `cat` has two display names, `Katze` and `Kater`",
            ),
            ("a.json", "[1]", "expected a JSON object of class names and display names: invalid type"),
            (
                "a.json",
                r#"{"cat": 1}"#,
                "entry `cat`: expected a display name, or a list of a class name and a display name",
            ),
            (
                "a.json",
                r#"{"0": ["cat"]}"#,
                "entry `0`: expected a list of two strings, a class name and a display name",
            ),
        ];
        for (name, text, expected) in cases {
            let message = words(name, text).unwrap_err();
            assert!(message.starts_with(expected), "{message}");
        }
    }
}
