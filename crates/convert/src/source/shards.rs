//! Finds the files of a source (one file, a folder of files, or a pattern such as `train-{000..099}.tar`), and the splits in their
//! names.

use packds_system::to_u64;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::folder_note::FolderNote;
use super::split::is_split_name;
use super::warning::{Warning, readable};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;

/// The subfolder in which Hugging Face repositories often keep their files.
const DATA_FOLDER: &str = "data";
/// The subfolder in which torchvision's first datasets keep their tensors.
pub(super) const TENSOR_FOLDER: &str = "processed";
/// Maximum number of files of a pattern.
const MAX_FILES: usize = 1 << 20;

/// The files or folders of a source of one format.
#[derive(Debug, Clone)]
pub(crate) struct Shards {
    /// The source as given. Paths in errors start with it.
    pub(crate) root: PathBuf,
    /// At least one path, in name order or in the pattern's order. If the source is one file, or its format stores a dataset in a
    /// folder, the only path is the root.
    pub(super) files: Vec<PathBuf>,
    /// The split of all files, if their names state one.
    pub(super) split: Option<String>,
}

impl Shards {
    /// A source of one file or folder.
    pub(crate) fn one(path: &Path) -> Self {
        Self { root: path.to_owned(), files: vec![path.to_owned()], split: None }
    }

    /// Finds the files of `format` in the folder `path` by their extension. If there are none, searches its [`data_folder`], or its
    /// [`split_folders`] if that does not exist. If `path` is a pattern, returns all its files.
    pub(crate) fn find(path: &Path, format: DataFormat) -> Result<Self, ConvertError> {
        let data = data_folder(path);
        let files = if path.is_dir() {
            match files_in(path, format)? {
                none if none.is_empty() && data.is_dir() => files_in(&data, format)?,
                none if none.is_empty() => {
                    let splits = split_folders(path);
                    let files = splits.iter().map(|split| files_in(split, format));
                    files.collect::<Result<Vec<_>, _>>()?.concat()
                }
                files => files,
            }
        } else if path.exists() {
            vec![path.to_owned()]
        } else {
            pattern_files(path)?
        };
        if files.is_empty() {
            let reason =
                format!("this folder has no {format} files (names that end in .{})", format.extensions().join(", ."));
            let hint = "pass the folder with the files, or a file of this format";
            return Err(ConvertError::contradictory(path, "", reason, hint));
        }
        Ok(Self { root: path.to_owned(), files, split: None })
    }

    /// The single file, for formats without sets of files.
    pub(super) fn only(&self) -> Result<&Path, ConvertError> {
        match self.files.as_slice() {
            [file] => Ok(file),
            files => Err(ConvertError::unsupported(
                &self.root,
                "",
                format!("expected one file, found {}", files.len()),
                "pass one of them",
            )),
        }
    }

    /// The metadata of an exported pack, if the source is a folder that has it.
    pub(super) fn metadata(&self, warnings: &mut Vec<Warning>) -> Result<Option<Metadata>, ConvertError> {
        if !self.root.is_dir() {
            return Ok(None);
        }
        Ok(readable(Metadata::in_folder(&self.root)?, warnings))
    }

    /// The warning if the files have names with different words, so that they may be different data sets. Splits, numbers and
    /// hashes do not count.
    pub(super) fn note_names(&self) -> Option<Warning> {
        let words = |file: &Path| {
            let name = file.file_name()?.to_str()?.to_ascii_lowercase();
            let is_word = |word: &&str| {
                !word.is_empty() && !word.bytes().any(|b| b.is_ascii_digit()) && !is_split_name(word.as_bytes())
            };
            let words = name.split(|c: char| !c.is_alphanumeric()).filter(is_word).map(str::to_owned);
            Some(words.collect::<Vec<_>>())
        };
        let first = self.files.first()?;
        let other = self.files.iter().find(|file| words(file) != words(first))?;
        let [one, other] =
            [first, other].map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned());
        Some(Warning::Folders(FolderNote::OneSet { one, other }))
    }

    /// Groups the files by the split in their name (`train-00000-of-00010.parquet`) or in the name of their folder, sorted by split.
    /// Files without a split form one part.
    pub(crate) fn by_split(self) -> Vec<Self> {
        // Names such as `extra_32x32.mat` are splits only next to other splits.
        let more = ["extra", "unlabeled", "unlabelled"];
        let has_splits = self.clone().by_words(&|_| false).iter().any(|part| part.split.is_some());
        self.by_words(&|word| has_splits && more.iter().any(|known| word.eq_ignore_ascii_case(known)))
    }

    /// Groups the files by split. Words that `is_more` accepts are splits as well.
    fn by_words(self, is_more: &dyn Fn(&str) -> bool) -> Vec<Self> {
        let root = self.root.clone();
        let split = |file: &Path| {
            let name = file.file_name()?.to_str()?;
            // The first word that is a split, at any position: `train-0.tar`, `imagenet-val-000.tar`, `train00-2071.tfrec`.
            let words = name.split(['-', '_', '.']);
            let words = words.map(|word| word.trim_end_matches(|c: char| c.is_ascii_digit()));
            let word = words.clone().find(|word| is_split_name(word.as_bytes()));
            let word = word.or_else(|| words.clone().find(|word| is_more(word)));
            let folder = file.parent().filter(|folder| *folder != root);
            let folder = folder.and_then(|folder| folder.file_name()?.to_str());
            let folder = folder.filter(|name| is_split_name(name.as_bytes()));
            Some(word.or(folder)?.to_ascii_lowercase())
        };
        let mut parts: Vec<Self> = Vec::new();
        for file in self.files {
            let split = split(&file);
            match parts.iter_mut().find(|part| part.split == split) {
                Some(part) => part.files.push(file),
                None => parts.push(Self { root: self.root.clone(), files: vec![file], split }),
            }
        }
        parts.sort_by(|a, b| a.split.cmp(&b.split));
        parts
    }
}

/// The subfolder with the files of a dataset, which may not exist.
pub(super) fn data_folder(folder: &Path) -> PathBuf {
    match folders_in(folder).as_slice() {
        [only] if only.file_name().is_some_and(|name| name == TENSOR_FOLDER) => only.clone(),
        _ => folder.join(DATA_FOLDER),
    }
}

/// The split folders in a folder, in name order. If there is only one subfolder, searches it too: Hugging Face generates
/// `default/train/0000.parquet`. Empty unless all folders there are splits.
pub(super) fn split_folders(folder: &Path) -> Vec<PathBuf> {
    let splits = |folder: &Path| {
        let folders = folders_in(folder);
        let name = |path: &PathBuf| path.file_name().is_some_and(|n| is_split_name(n.as_bytes()));
        match folders.iter().all(name) {
            true => folders,
            false => Vec::new(),
        }
    };
    match (splits(folder), folders_in(folder).as_slice()) {
        (none, [only]) if none.is_empty() => splits(only),
        (splits, _) => splits,
    }
}

/// The visible subfolders in name order. Empty if the folder cannot be listed.
pub(super) fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_hidden = |path: &PathBuf| {
        let name = path.file_name();
        name.is_some_and(|name| name.as_bytes().starts_with(b"."))
    };
    let paths = entries.map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir() && !is_hidden(path)).collect();
    folders.sort();
    folders
}

/// Raises the limit of open files to slightly more than `n`, but at most to the system's hard limit. Returns whether so many files may
/// be open. If not, opening a file may fail with the system's error.
pub(super) fn allow_open_files(n: usize) -> bool {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const OTHERS: u64 = 256;
    let wanted = to_u64(n).saturating_add(OTHERS);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return true;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    // If this fails, the soft limit does not change.
    let is_raised = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum }).is_ok();
    is_raised && raised == wanted
}

fn files_in(folder: &Path, format: DataFormat) -> Result<Vec<PathBuf>, ConvertError> {
    let listed = std::fs::read_dir(folder).and_then(|entries| {
        let paths = entries.map(|entry| entry.map(|entry| entry.path()));
        paths.collect::<Result<Vec<_>, _>>()
    });
    let mut files = listed.map_err(|source| ConvertError::UnreadableDirectory { path: folder.to_owned(), source })?;
    files.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.filter(|name| !name.starts_with('.'));
        name.and_then(DataFormat::from_file_name) == Some(format)
    });
    files.sort();
    Ok(files)
}

/// The files of a pattern with `{000..099}` or `{a,b}`. All must exist.
fn pattern_files(pattern: &Path) -> Result<Vec<PathBuf>, ConvertError> {
    let text = pattern.to_str().unwrap_or_default();
    let names = expand_braces(text).map_err(|reason| {
        let hint = "write a pattern as in a shell: {000..099} or {a,b}";
        ConvertError::contradictory(pattern, "", reason, hint)
    })?;
    let missing = names.iter().find(|name| !Path::new(name).exists());
    match missing {
        Some(name) => Err(ConvertError::SourceMissing { path: PathBuf::from(name) }),
        None => Ok(names.into_iter().map(PathBuf::from).collect()),
    }
}

/// The first name that a pattern matches.
pub(super) fn first_of_pattern(pattern: &str) -> Option<String> {
    expand_braces(pattern).ok()?.into_iter().next()
}

/// Whether a nonexistent path is a pattern.
pub(super) fn is_pattern(path: &Path) -> bool {
    let text = path.to_str().unwrap_or_default();
    text.contains('{') && text.contains('}')
}

/// Expands a pattern like a shell: `{a,b}` and `{008..011}`, possibly several.
fn expand_braces(pattern: &str) -> Result<Vec<String>, String> {
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else {
            return Err("expected `}` after `{`".to_owned());
        };
        let words = match inside.contains(',') || inside.contains("..") {
            true => brace_words(inside)?,
            // A shell leaves such braces unchanged.
            false => vec![format!("{{{inside}}}")],
        };
        if names.len().saturating_mul(words.len()) > MAX_FILES {
            return Err(format!("the pattern matches more than {MAX_FILES} files"));
        }
        let joined = names.iter().flat_map(|name| words.iter().map(move |word| format!("{name}{before}{word}")));
        names = joined.collect();
        rest = after;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

fn brace_words(inside: &str) -> Result<Vec<String>, String> {
    let Some((first, last)) = inside.split_once("..") else {
        return Ok(inside.split(',').map(str::to_owned).collect());
    };
    let number = |text: &str| text.parse::<usize>().ok();
    match (number(first), number(last)) {
        (Some(from), Some(to)) if from.abs_diff(to) < MAX_FILES => {
            // As in a shell, a leading zero pads all numbers to the same width.
            let is_padded = |text: &str| text.len() > 1 && text.starts_with('0');
            let width = match is_padded(first) || is_padded(last) {
                true => first.len().max(last.len()),
                false => 0,
            };
            let words = (from.min(to)..=from.max(to)).map(|n| format!("{n:0width$}"));
            let words: Vec<String> = words.collect();
            Ok(match from <= to {
                true => words,
                false => words.into_iter().rev().collect(),
            })
        }
        _ => Err(format!("expected numbers as in {{000..099}}, found {{{inside}}}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_expand_as_in_a_shell() {
        let names = expand_braces("a-{08..11}.{tar,gz}").unwrap();
        assert_eq!(names.len(), 8);
        assert_eq!((names[0].as_str(), names[7].as_str()), ("a-08.tar", "a-11.gz"));
        assert_eq!(expand_braces("plain").unwrap(), ["plain"]);
        assert_eq!(expand_braces("a-{}.{b}").unwrap(), ["a-{}.{b}"]);
        assert!(expand_braces("a{").is_err());
        assert!(expand_braces("{0..9999999999}").is_err());
        assert_eq!(expand_braces("{3..1}").unwrap(), ["3", "2", "1"]);
        assert_eq!(expand_braces("{0009..0008}").unwrap(), ["0009", "0008"]);
        assert_eq!(expand_braces("{9..010}").unwrap(), ["009", "010"]);
    }

    #[test]
    fn files_go_to_the_split_that_their_names_start_with() {
        let shards = Shards {
            root: "d".into(),
            files: ["test-0.parquet", "train-0.parquet", "train-1.parquet"].map(PathBuf::from).to_vec(),
            split: None,
        };
        let parts = shards.by_split();
        let found: Vec<_> = parts.iter().map(|p| (p.split.as_deref(), p.files.len())).collect();
        assert_eq!(found, [(Some("test"), 1), (Some("train"), 2)]);
    }
}
