//! LMDB databases with one or several keys per sample.
//!
//! Values are read in place. They may be image files, `.npy` arrays or Caffe's `Datum`. Labels come from the datum, from
//! `label-NUMBER` next to `image-NUMBER`, or from folders in the keys. In exports of packds, `KEY/FIELD.EXTENSION` belongs to the
//! sample `KEY`. Pickles are never run.

mod datum;
mod tree;

use packds_system::to_u64;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use packds_pixels::ImageFormat;

use super::ListOptions;
use super::candidate::is_image_name;
use super::column::TextArena;
use super::detect::names_in;
use super::found::{Found, FoundLabels, LabelValues, Names};
use super::gather::{Gathered, Gathering, Item, Raw, shown};
use super::listing::Faults;
use super::roles::{Keys, Part, find_field, find_image_field};
use super::shards::{Shards, folders_in};
use super::split::{is_split_name, split_and_rest};
use super::store::{Content, OpenFile, PixelShape, Span, SpanFiles};
use super::warning::{Warning, readable};
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::metadata::{LMDB_CLASSES, LMDB_METADATA, Metadata};
use crate::opt::{IMAGE_KEY, LEAVE_OUT, SPLIT};
use datum::Datum;
use tree::{Entry, Tree};

/// The file of a database, in its folder.
const DATA_FILE: &str = "data.mdb";
/// Maximum depth of databases below a folder, and maximum number of subfolders to search at each depth.
const MAX_DEPTH: usize = 3;
const MAX_FOLDERS: usize = 64;
/// First bytes of a value used to detect its type.
const SNIFFED: u64 = 256;
/// Maximum size of the metadata, in bytes.
const MAX_METADATA: u64 = 1 << 28;

/// The parts of a source: one for each subfolder if the subfolders are splits, otherwise just the source itself.
///
/// # Errors
/// If a split, or a folder without splits, has several databases.
pub(crate) fn parts(source: &Path, options: &ListOptions) -> Result<Vec<Shards>, ConvertError> {
    if !source.is_dir() || source.join(DATA_FILE).exists() {
        return Ok(vec![Shards::one(source)]);
    }
    let splits = match splits_of(source) {
        none if none.is_empty() => outer_splits(source, options.split.as_deref())?,
        splits => splits,
    };
    if splits.is_empty() {
        return Ok(vec![Shards::one(source)]);
    }
    Ok(splits.into_iter().map(|(split, path)| Shards { split: Some(split), ..Shards::one(&path) }).collect())
}

/// Whether each subfolder of a folder is a database or contains databases, and there are at least two.
pub(crate) fn is_of_databases(folder: &Path) -> bool {
    databases_below(folder, 0).is_some_and(|found| found.len() > 1)
}

/// The databases in the subfolders of a folder. `None` if a subfolder has none, or if there are images.
fn databases_below(folder: &Path, depth: usize) -> Option<Vec<PathBuf>> {
    let mut names = names_in(folder);
    if names.iter().any(|name| is_image_name(name.as_bytes())) {
        return None;
    }
    names.sort_unstable();
    let mut found = Vec::new();
    let folders = names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir());
    for inner in folders.take(MAX_FOLDERS) {
        if inner.join(DATA_FILE).is_file() {
            found.push(inner);
        } else if depth < MAX_DEPTH {
            found.extend(databases_below(&inner, depth + 1)?);
        } else {
            return None;
        }
    }
    Some(found).filter(|found| !found.is_empty())
}

/// The subfolders as splits, if at least two are named like splits, and the only database in each. If the caller wants one split, only
/// that one is returned.
///
/// # Errors
/// If there are several databases that are not one for each split.
fn outer_splits(source: &Path, wanted: Option<&str>) -> Result<Vec<(String, PathBuf)>, ConvertError> {
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let folders = folders_in(source);
    let n_splits = folders.iter().filter_map(name).filter(|name| is_split_name(name.as_bytes())).count();
    if n_splits < 2 {
        return match databases_below(source, 0) {
            Some(found) if found.len() > 1 => Err(several(source, &found, None)),
            _ => Ok(Vec::new()),
        };
    }
    let mut splits = Vec::new();
    let mut refused = None;
    for folder in folders {
        let Some(split) = name(&folder) else { continue };
        let found = match folder.join(DATA_FILE).is_file() {
            true => vec![folder],
            false => databases_below(&folder, 0).unwrap_or_default(),
        };
        if let [only] = found.as_slice() {
            splits.push((split, only.clone()));
        } else if refused.is_none() || wanted == Some(split.as_str()) {
            refused = Some((split, found));
        }
    }
    let has_wanted = wanted.is_some_and(|wanted| splits.iter().any(|(split, _)| split == wanted));
    match refused {
        Some((_, found)) if !has_wanted => {
            Err(several(source, &found, splits.first().map(|(split, _)| split.as_str())))
        }
        _ => {
            splits.retain(|(split, _)| !has_wanted || wanted == Some(split));
            Ok(splits)
        }
    }
}

/// The error about several databases. `split` is one that has a single database.
fn several(source: &Path, found: &[PathBuf], split: Option<&str>) -> ConvertError {
    let names: Vec<String> =
        found.iter().map(|path| path.strip_prefix(source).unwrap_or(path).display().to_string()).collect();
    let reason = format!("expected one LMDB database, or one for each split, found {}", quoted(&names));
    let alone = found.first().map_or(source, PathBuf::as_path);
    let split = split.map_or(String::new(), |split| format!("; {} reads only that split", SPLIT.with(split)));
    let hint = format!("convert each database separately, such as {}{split}", alone.display());
    ConvertError::unsupported(source, "", reason, hint)
}

/// The splits and their folders, in the order of the names. Empty unless each subfolder is a split with a database.
fn splits_of(folder: &Path) -> Vec<(String, PathBuf)> {
    let of_split = |path: PathBuf| {
        let (split, rest) = split_and_rest(path.file_name()?.to_str()?)?;
        path.join(DATA_FILE).is_file().then_some((rest, (split, path)))
    };
    let Some(mut found) = folders_in(folder).into_iter().map(of_split).collect::<Option<Vec<_>>>() else {
        return Vec::new();
    };
    found.sort();
    let are_splits = found.len() > 1
        && found.windows(2).all(|pair| matches!(pair, [(a, (one, _)), (b, (other, _))] if a == b && one != other));
    if are_splits { found.into_iter().map(|(_, split)| split).collect() } else { Vec::new() }
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let source = part.only()?;
    let path = if source.is_dir() { source.join(DATA_FILE) } else { source.to_owned() };
    let file = OpenFile::open(&path).map_err(ConvertError::io(&path))?;
    let tree = Tree::open(&file, &path)?;
    let mut reader = Reader::new(&file, &path, options);
    let databases = Databases::find(&tree, options, &path)?;
    reader.databases = databases.others;
    tree.walk(databases.images, |entry| reader.add(entry))?;
    reader.end_sample()?;
    if let Some(labels) = databases.labels {
        reader.add_labels(&tree, labels)?;
    }
    options.check_left_out(&path, &reader.names())?;
    let mut options = options.clone();
    options.image_key = databases.image_key.or_else(|| reader.has("image").then(|| "image".to_owned()));
    let (gathering, faults) = reader.into_gathering();
    let gathering = Gathering { files: SpanFiles::open(vec![file]), ..gathering };
    let mut found = gathering.into_found(&part.root, &options)?;
    if options.label_key.is_none() {
        found.take_texts();
    }
    Ok(Found { faults, ..found })
}

/// The databases of a file.
struct Databases {
    /// The root of the database with the images: the main database, the named one that the image key selects, or the only named
    /// one.
    images: u64,
    /// The image key, unless it was used to select the database.
    image_key: Option<String>,
    /// A named database with a label for each image.
    labels: Option<(String, u64)>,
    /// The names of all other databases.
    others: Vec<String>,
}

impl Databases {
    fn find(tree: &Tree<'_>, options: &ListOptions, path: &Path) -> Result<Self, ConvertError> {
        let (mut named, has_samples) = named_databases(tree, path)?;
        let names: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
        let is_named = |key: &&str| names.iter().any(|name| name == key);
        let keys = Keys::of(options);
        let image = match (keys.image.filter(is_named), names.as_slice()) {
            (Some(key), _) => Some(key.to_owned()),
            (None, _) if has_samples => None,
            (None, []) => None,
            (None, [only]) => Some(only.clone()),
            (None, _) => names.get(find_image_field(path, &names, keys, None)?).cloned(),
        };
        let keys = Keys { image: image.as_deref(), label: keys.label.filter(is_named), mask: None };
        let label = find_field(path, &names, Part::Label, keys, None)?.and_then(|place| names.get(place));
        let mut take = |wanted: Option<&String>| {
            let place = named.iter().position(|(name, _)| Some(name) == wanted)?;
            Some(named.remove(place))
        };
        let images = take(image.as_ref()).map_or(tree.root, |(_, root)| root);
        let image_key = options.image_key.clone().filter(|key| Some(key) != image.as_ref());
        let labels = take(label);
        Ok(Self { images, image_key, labels, others: named.into_iter().map(|(name, _)| name).collect() })
    }
}

/// The named databases with their roots, and whether the main database has samples too.
fn named_databases(tree: &Tree<'_>, path: &Path) -> Result<(Vec<(String, u64)>, bool), ConvertError> {
    // Maximum number of named databases. A file has few, and a main database of samples has none.
    const MAX_DATABASES: usize = 4096;
    let (mut databases, mut has_samples, mut found) = (Vec::new(), false, 0_u64);
    tree.walk(tree.root, |entry| {
        found += 1;
        match entry.database {
            Some(root) if databases.len() < MAX_DATABASES => {
                databases.push((String::from_utf8_lossy(&entry.key).into_owned(), root));
            }
            _ => has_samples = true,
        }
        Ok(())
    })?;
    let expected = tree.n_entries;
    if found != expected {
        let reason = format!("expected {expected} entries, found {found}");
        return Err(ConvertError::malformed(path, "", reason));
    }
    Ok((databases, has_samples))
}

/// Samples being collected.
struct Reader<'a> {
    file: &'a OpenFile,
    path: &'a Path,
    options: &'a ListOptions,
    /// Names of excluded fields found so far.
    left_out: BTreeSet<String>,
    fields: Vec<Gathered>,
    keys: Vec<Vec<u8>>,
    /// Labels stored under separate keys, indexed by the [`sample_of`] part of the key.
    labels: BTreeMap<Vec<u8>, String>,
    /// The name of the database of labels, if there is one.
    label_name: String,
    classes: Vec<String>,
    metadata: Option<Result<Metadata, String>>,
    /// Named databases that are not read.
    databases: Vec<String>,
    /// Whether any images are Caffe's `Datum` with three channels.
    has_caffe_colors: bool,
}

/// Key prefixes of numbered labels.
const LABEL_PREFIXES: [&[u8]; 2] = [b"label-", b"label_"];
/// Key prefixes of numbered images.
const IMAGE_PREFIXES: [&[u8]; 4] = [b"image-", b"image_", b"img-", b"img_"];

/// The part of a key that an image and its label share.
fn sample_of(key: &[u8]) -> &[u8] {
    let mut prefixes = IMAGE_PREFIXES.iter().chain(&LABEL_PREFIXES);
    prefixes.find_map(|prefix| key.strip_prefix(*prefix)).unwrap_or(key)
}

impl<'a> Reader<'a> {
    fn new(file: &'a OpenFile, path: &'a Path, options: &'a ListOptions) -> Self {
        Self {
            file,
            path,
            options,
            left_out: BTreeSet::new(),
            fields: Vec::new(),
            keys: Vec::new(),
            labels: BTreeMap::new(),
            label_name: "label".to_owned(),
            classes: Vec::new(),
            metadata: None,
            databases: Vec::new(),
            has_caffe_colors: false,
        }
    }

    /// Whether a field is excluded.
    fn is_left_out(&mut self, field: &str) -> bool {
        let is_left_out = self.options.is_left_out(field);
        if is_left_out && !self.left_out.contains(field) {
            self.left_out.insert(field.to_owned());
        }
        is_left_out
    }

    /// The names of all fields, including excluded ones.
    fn names(&self) -> Vec<String> {
        let fields = self.fields.iter().map(|field| field.name.clone());
        fields.chain(self.left_out.iter().cloned()).collect()
    }

    fn add(&mut self, entry: Entry) -> Result<(), ConvertError> {
        let key = entry.key.as_slice();
        if key == LMDB_METADATA.as_bytes() {
            let text = self.raw(&entry).text_to(MAX_METADATA)?;
            self.metadata = Some(Metadata::parse(&text));
            return Ok(());
        }
        if key == LMDB_CLASSES.as_bytes() {
            let text = self.raw(&entry).text_to(MAX_METADATA)?;
            let names = serde_json::from_str(&text);
            self.classes = names.map_err(|e| self.wrong(&entry, &format!("cannot read the class names: {e}")))?;
            return Ok(());
        }
        let is_special = key.starts_with(b"__") || key == b"num-samples" || key == b"length";
        if is_special || entry.database.is_some() {
            return Ok(());
        }
        if LABEL_PREFIXES.iter().any(|prefix| key.starts_with(prefix)) {
            return match self.is_left_out("label") {
                true => Ok(()),
                false => self.add_label(&entry),
            };
        }
        let member = self.keys.last().and_then(|own| {
            let rest = key.strip_prefix(own.as_slice())?;
            rest.strip_prefix(b"/")
        });
        match member.map(<[u8]>::to_vec) {
            Some(member) => self.member(&entry, &member),
            None => self.sample(entry),
        }
    }

    /// Reads a label that has its own key.
    fn add_label(&mut self, entry: &Entry) -> Result<(), ConvertError> {
        let text = self.raw(entry).text()?;
        if text.contains(|c: char| c.is_control() && !c.is_whitespace()) {
            let reason = format!("expected a label as text, found \"{}\"", text.escape_default());
            let hint =
                format!("write ids in digits, or leave the labels out with {}", LEAVE_OUT.with(&self.label_name));
            return Err(ConvertError::contradictory(self.path, &shown(&entry.key), reason, hint));
        }
        self.labels.insert(sample_of(&entry.key).to_vec(), text);
        Ok(())
    }

    /// Reads the database of labels, unless there are labels already.
    fn add_labels(&mut self, tree: &Tree<'_>, (name, root): (String, u64)) -> Result<(), ConvertError> {
        if self.is_left_out(&name) {
            return Ok(());
        }
        let is_wanted = self.options.label_key.as_ref() == Some(&name);
        if !is_wanted && (self.has("label") || !self.labels.is_empty()) {
            self.databases.push(name);
            return Ok(());
        }
        self.label_name = name;
        self.labels.clear();
        tree.walk(root, |entry| self.add_label(&entry))
    }

    /// Handles a key that starts a sample.
    fn sample(&mut self, entry: Entry) -> Result<(), ConvertError> {
        self.end_sample()?;
        let is_first = self.keys.is_empty();
        let head = self.raw(&entry).head(SNIFFED)?;
        if ImageFormat::sniff(&head).is_some() {
            self.push("image", &self.raw(&entry).stored(0, Content::File), &entry, is_first)?;
        } else if head.starts_with(b"\x93NUMPY") {
            let item = self.raw(&entry).array()?;
            self.push("image", &item, &entry, is_first)?;
        } else if let Some((item, label)) = self.datum(&entry)? {
            self.has_caffe_colors |= matches!(&item, Item::Stored(_, Content::Pixels(PixelShape { channels: 3, .. })));
            self.push("image", &item, &entry, is_first)?;
            if let Some(label) = label {
                self.push("label", &Item::Int(label), &entry, is_first)?;
            }
        } else {
            return Err(self.unknown(&entry, &head));
        }
        self.keys.push(entry.key);
        Ok(())
    }

    /// Handles an additional field of the current sample.
    fn member(&mut self, entry: &Entry, member: &[u8]) -> Result<(), ConvertError> {
        let is_first = self.keys.len() == 1;
        let name = String::from_utf8_lossy(member).into_owned();
        let (field, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
        if self.is_left_out(field) {
            return Ok(());
        }
        let raw = self.raw(entry);
        let text;
        let item = match extension {
            "npy" => raw.array()?,
            "txt" | "json" => {
                text = raw.text()?;
                match extension {
                    "txt" => Item::Text(&text),
                    _ => Item::Json(&text),
                }
            }
            "bin" => raw.stored(0, Content::Bytes),
            _ if ImageFormat::from_extension(extension.as_bytes()).is_some() => raw.stored(0, Content::File),
            _ => {
                let reason = format!("expected a field with an extension, found '{name}'");
                return Err(self.wrong(entry, &reason));
            }
        };
        self.push(field, &item, entry, is_first)
    }

    fn push(&mut self, name: &str, item: &Item<'_>, entry: &Entry, is_first: bool) -> Result<(), ConvertError> {
        if self.is_left_out(name) {
            return Ok(());
        }
        match self.fields.iter_mut().find(|field| field.name == name) {
            Some(field) => {
                let pushed = field.push(item);
                pushed.map_err(|reason| self.wrong(entry, &reason))
            }
            None if is_first => {
                self.fields.push(Gathered::begin(name.to_owned(), item));
                Ok(())
            }
            None => {
                let reason = format!("the first sample does not have the field '{name}'");
                Err(self.wrong(entry, &reason))
            }
        }
    }

    /// Checks that the last sample is complete.
    fn end_sample(&self) -> Result<(), ConvertError> {
        let Some(key) = self.keys.last() else {
            return Ok(());
        };
        let short = self.fields.iter().find(|f| f.len() != self.keys.len());
        short.map_or(Ok(()), |field| {
            let reason = format!("expected one '{}', as in the first sample", field.name);
            let hint = "give each sample a key for each field, or leave the sample out";
            Err(ConvertError::contradictory(self.path, &shown(key), reason, hint))
        })
    }

    /// The image and label of a datum. `None` if the value is not a datum.
    fn datum(&self, entry: &Entry) -> Result<Option<(Item<'static>, Option<i64>)>, ConvertError> {
        // The first byte of a datum is the tag of one of its fields. Most other values start with a different byte.
        const MAX_BYTES: u64 = crate::sample::MAX_FILE_BYTES;
        let first = self.raw(entry).head(1)?;
        let is_likely = matches!(first.first(), Some(0x08 | 0x10 | 0x18 | 0x22 | 0x28 | 0x38));
        if !is_likely || entry.bytes > MAX_BYTES {
            return Ok(None);
        }
        let value = self.raw(entry).head(MAX_BYTES)?;
        let datum = Datum::parse(&value).map_err(|reason| {
            let hint = "convert it to image files or arrays of bytes first";
            ConvertError::unsupported(self.path, &shown(&entry.key), reason, hint)
        })?;
        Ok(datum.map(|datum| {
            let offset = entry.offset.saturating_add(to_u64(datum.data.at));
            let span = Span { file: 0, offset, bytes: to_u64(datum.data.bytes.len()) };
            (Item::Stored(span, datum.content), datum.label)
        }))
    }

    fn raw<'b>(&'b self, entry: &'b Entry) -> Raw<'b> {
        let (name, offset, bytes) = (entry.key.as_slice(), entry.offset, entry.bytes);
        Raw { file: self.file, number: 0, path: self.path, name, offset, bytes }
    }

    fn wrong(&self, entry: &Entry, reason: &str) -> ConvertError {
        self.raw(entry).wrong(reason)
    }

    fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    fn unknown(&self, entry: &Entry, head: &[u8]) -> ConvertError {
        let (reason, hint) = match head {
            [0x80, 2..=5, ..] => (
                "the value is a pickle, and loading it would run code".to_owned(),
                "write the image file or the .npy array itself as the value",
            ),
            _ => (
                format!(
                    "expected an image file, a .npy array or a Caffe Datum, found \"{}\"",
                    head.get(..16).unwrap_or(head).escape_ascii()
                ),
                "write image files or .npy arrays as values",
            ),
        };
        ConvertError::unsupported(self.path, &shown(&entry.key), reason, hint)
    }

    /// The collected fields, and a fault for each sample without a label.
    fn into_gathering(mut self) -> (Gathering, Faults) {
        let mut warnings: Vec<Warning> = self.has_caffe_colors.then_some(Warning::CaffeColors).into_iter().collect();
        let metadata = readable(self.metadata.take(), &mut warnings);
        let mut faults = Faults::new();
        warnings.extend(self.databases.iter().map(|name| Warning::LeftOut {
            field: name.clone(),
            reason: format!("it is a database; choose it with {IMAGE_KEY} to read it instead"),
        }));
        let is_field = self.has("label") && self.label_name == "label";
        let labels = match is_field || self.left_out.contains(&self.label_name) {
            true => None,
            false => self.labels_of_keys(&mut faults),
        };
        let gathering = Gathering {
            format: DataFormat::Lmdb,
            fields: self.fields,
            names: Names::Paths(self.keys),
            files: SpanFiles::open(Vec::new()),
            classes: self.classes,
            labels,
            metadata,
            warnings,
            ignored: 0,
        };
        (gathering, faults)
    }

    /// Labels from separate keys, with a fault for each sample without a label. If there are no such keys, labels from the
    /// folders in the keys.
    fn labels_of_keys(&self, faults: &mut Faults) -> Option<FoundLabels> {
        let mut texts = TextArena::default();
        let values = if self.labels.is_empty() {
            let folder = |key: &Vec<u8>| {
                let slash = key.iter().rposition(|b| *b == b'/')?;
                let folder = String::from_utf8_lossy(key.get(..slash)?).into_owned();
                (!folder.is_empty()).then_some(folder)
            };
            let folders: Option<Vec<String>> = self.keys.iter().map(folder).collect();
            let folders = folders.filter(|folders| !folders.is_empty())?;
            folders.iter().for_each(|folder| texts.push(folder));
            LabelValues::Names(texts)
        } else {
            // Samples without a label get the first label as a placeholder, so that ids stay integers.
            let any = self.labels.values().next();
            for (idx, key) in self.keys.iter().enumerate() {
                let label = self.labels.get(sample_of(key));
                if label.is_none() {
                    let reason = "the labels have no entry with its key".to_owned();
                    faults.insert(idx, reason.into());
                }
                texts.push(label.or(any).map_or("", String::as_str));
            }
            LabelValues::of_texts(texts)
        };
        Some(FoundLabels::without_classes(&self.label_name, values))
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutation::{damage, survives};
    use super::*;
    use crate::export::ExportOptions;
    use crate::sink::test_pack::{fields, pack_of, refused, to};

    fn exported(n: usize) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let options = ExportOptions { to: Some(DataFormat::Lmdb), ..ExportOptions::default() };
        to(&pack_of(n, fields()), &folder.path().join("l"), &options).unwrap();
        std::fs::read(folder.path().join("l/data.mdb")).unwrap()
    }

    #[test]
    fn damage_of_any_kind_ends_in_an_error_or_a_listing() {
        let whole = exported(60);
        survives(DataFormat::Lmdb, "a.mdb", 1000, |dice| {
            let mut bytes = whole.clone();
            damage(&mut bytes, dice);
            bytes
        });
        // Damages page headers and first nodes, because they contain the offsets.
        let n_pages = whole.len() / 4096;
        survives(DataFormat::Lmdb, "a.mdb", 3000, |dice| {
            let mut bytes = whole.clone();
            for _ in 0..=dice.below(3) {
                let at = dice.below(n_pages) * 4096 + [0, 10, 12, 16, 24, 40, 88, 112, 136][dice.below(9)];
                bytes[at + dice.below(8)] = [0, 1, 2, 3, 4, 8, 16, 0x7f, 0xff][dice.below(9)];
            }
            bytes
        });
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let whole = exported(60);
        let said = |bytes: &[u8]| {
            let path = folder.path().join("x.mdb");
            std::fs::write(&path, bytes).unwrap();
            let options = ListOptions { from: Some(DataFormat::Lmdb), ..ListOptions::default() };
            refused(&path, &options).replace(path.to_str().unwrap(), "x.mdb")
        };
        let changed = |at: usize, to: &[u8]| {
            let mut bytes = whole.clone();
            bytes[at..at + to.len()].copy_from_slice(to);
            said(&bytes)
        };
        assert!(said(&whole[..whole.len() - 4096]).contains("the file ends too early"));
        assert_eq!(said(b"hello"), "x.mdb: expected at least 152 bytes for LMDB's first page, found 5");
        assert_eq!(changed(16, &[0]), "x.mdb: expected the LMDB signature 0xbeefc0de, found 0xbeefc000");
        assert_eq!(changed(20, &[9]), "x.mdb: expected version 1 of the format, found 9");
        // The offset of the main database's root in the newer meta page. It is set to a missing page, then to a meta page.
        let root = 4096 + 16 + 72 + 40;
        assert!(changed(root, &[0xff, 0xff]).contains("the file has only"));
        assert!(changed(root, &1_u64.to_le_bytes()).contains("page 1: expected a page of a tree"));
    }

    #[test]
    fn pages_in_a_circle_end() {
        let mut whole = exported(200);
        let root = 4096 + 16 + 72 + 40;
        let root = u64::from_le_bytes(whole[root..root + 8].try_into().unwrap());
        let page = usize::try_from(root).unwrap() * 4096;
        let node = page + usize::from(u16::from_le_bytes(whole[page + 16..page + 18].try_into().unwrap()));
        whole[node..node + 4].copy_from_slice(&u32::try_from(root).unwrap().to_le_bytes());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("data.mdb"), whole).unwrap();
        let said = refused(folder.path(), &ListOptions::default());
        assert!(said.contains("form a cycle"), "{said}");
    }
}
