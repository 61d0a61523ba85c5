//! NumPy's `.npy`: a file with all images and its labels next to it, a folder with one such file per field, or a folder with one file
//! per sample.

mod header;

pub(super) use header::{Elements, HeaderError, MAX_HEADER, NpyHeader, elements, npy_head};

use packds_system::to_u64;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ListOptions;
use super::arrays::{ArraySet, StoredArray};
use super::beside::label_stems;
use super::column::TextArena;
use super::found::Found;
use super::key_split::{self, SplitNames};
use super::numbers::read_texts;
use super::per_file::PerFile;
use super::roles::{Keys, Part, find_field};
use super::shards::Shards;
use super::store::{ArrayType, OpenFile, Store};
use super::there::{is_there, is_there_as_file, text_file};
use super::warning::Warning;
use super::whole::FileValue;
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::metadata::METADATA_KEY;
use crate::opt::{IMAGE_KEY, LABEL_KEY, ONE_SAMPLE_PER_FILE};

/// Number of bytes to read first when reading a header.
const HEAD_BYTES: u64 = 512;
/// Maximum number of files that are checked as fields.
const MAX_FIELDS: usize = 64;

/// One part for each split that the names of a folder's files mention, and one for files without a split if images are among them.
/// The whole source if there are no splits.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    let whole = Shards::one(source);
    if !source.is_dir() {
        return Ok(vec![whole]);
    }
    let stems: Vec<String> = npy_files(source)?.into_iter().map(|(stem, _)| stem).collect();
    // Exports store the pack's metadata text in a file next to the arrays.
    let text = metadata_text(source)?.map(|_| METADATA_KEY);
    Ok(key_split::parts(&whole, stems.iter().map(String::as_str).chain(text)))
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let source = part.only()?;
    if !source.is_dir() {
        return read_file(source, options);
    }
    let files = npy_files(source)?;
    match read_fields(source, &files, part.split.as_deref(), options)? {
        Some(found) => Ok(found),
        None => {
            let names = files.into_iter().map(|(stem, _)| stem).collect();
            Err(ConvertError::KeyMissing { path: source.to_owned(), wanted: "of images".to_owned(), found: names })
        }
    }
}

/// Whether each file of a folder is one sample, rather than one field of all samples.
pub(super) fn is_one_per_file(folder: &Path, options: &ListOptions) -> Result<bool, ConvertError> {
    let files = npy_files(folder)?;
    let parts = parts(folder)?;
    if files.is_empty() {
        return Ok(true);
    }
    if parts.iter().any(|part| part.split.is_some()) || read_fields(folder, &files, None, options)?.is_some() {
        return Ok(false);
    }
    refuse_unnamed_images(folder, &files)?;
    Ok(true)
}

/// The array of a file that holds one sample.
pub(crate) fn read_whole(path: &Path, _: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    let mut set = ArraySet::new(DataFormat::Npy, path, PerFile::One);
    let file = push_file(&mut set, "image", path)?;
    set.into_values(&file)
}

/// The number of items of an array, and its items: numbers or arrays, or else texts.
type NpyItems = (usize, Result<(ArrayType, Arc<dyn Store>), TextArena>);

/// The items of the array in a file. The first dimension counts them.
pub(crate) fn array_of_npy(path: &Path) -> Result<NpyItems, ConvertError> {
    let mut set = ArraySet::new(DataFormat::Npy, path, PerFile::Many);
    push_file(&mut set, "", path)?;
    let Some(array) = set.arrays.first() else {
        let hint = "save an array whose first dimension counts the samples";
        return Err(ConvertError::contradictory(path, "", "it contains no items", hint));
    };
    let items = match (array.store(), array.elements) {
        (Some(store), Elements::Numbers { dtype, .. }) => Ok((ArrayType { dtype, shape: array.item.clone() }, store)),
        _ if array.is_scalar() => Err(read_texts(array)?),
        _ => {
            let reason = "expected numbers, or one text for each sample, found arrays of texts";
            return Err(ConvertError::unsupported(path, "", reason, "save one text for each sample"));
        }
    };
    Ok((array.rows(), items))
}

/// The `.npy` files directly in a folder, sorted by name, each with its name without the extension.
fn npy_files(folder: &Path) -> Result<Vec<(String, PathBuf)>, ConvertError> {
    let unreadable = |source| ConvertError::UnreadableDirectory { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let stem = name.and_then(npy_stem);
        if let Some(stem) = stem
            && is_there_as_file(&path)?
        {
            files.push((stem.to_owned(), path));
        }
    }
    files.sort();
    Ok(files)
}

/// The name of a `.npy` file without its extension. `None` for hidden and other files.
fn npy_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    (extension.eq_ignore_ascii_case("npy") && !stem.starts_with('.') && !stem.is_empty()).then_some(stem)
}

/// Reads a file that holds all images, and the files next to it.
fn read_file(path: &Path, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut set = ArraySet::new(DataFormat::Npy, path, PerFile::Many);
    push_file(&mut set, "image", path)?;
    let stem = set.dataset.clone();
    let n = set.arrays.first().map(StoredArray::rows);
    let Some(n) = n else {
        let hint = "pass an array of images whose first dimension counts the samples";
        let reason = "it contains no samples";
        return Err(ConvertError::contradictory(path, "", reason, hint));
    };
    let beside = |name: &str| path.with_file_name(format!("{name}.npy"));
    if let Some(key) = &options.label_key {
        let file = beside(key);
        if !is_there(&file)? {
            return Err(ConvertError::SourceMissing { path: file });
        }
        push_file(&mut set, "label", &file)?;
    } else {
        let own = label_stems(&stem).into_iter().map(|stem| (stem, true));
        let any = ["labels", "y"].map(|stem| (stem.to_owned(), false));
        for (name, is_own) in own.chain(any) {
            let file = beside(&name);
            if name == stem || !is_there(&file)? {
                continue;
            }
            push_file(&mut set, "label", &file)?;
            // A label file with a generic name may belong to another image file.
            if !is_own && set.arrays.last().is_some_and(|labels| labels.rows() != n) {
                set.arrays.pop();
                let (count, first) = (1, name.into_bytes());
                set.warnings.push(Warning::OtherArrays { count, first });
            }
            break;
        }
    }
    if let Some(text) = text_file(&path.with_extension("json"))? {
        // The name is so common that the content must be checked.
        if crate::metadata::Metadata::parse(&text).is_ok() {
            set.take_metadata(&text);
        }
    }
    set.leave_out(path, options)?;
    let keys = Keys {
        // The key selected the file. Its array is called `label` here.
        label: None,
        ..Keys::of(options)
    };
    set.into_found(path, keys)
}

/// Reads a folder with one file per field. `None` if the folder does not have this layout.
fn read_fields(
    folder: &Path,
    files: &[(String, PathBuf)],
    split: Option<&str>,
    options: &ListOptions,
) -> Result<Option<Found>, ConvertError> {
    let stems = files.iter().map(|(stem, _)| stem.as_str());
    let text = metadata_text(folder)?;
    let packs = text.as_ref().map(|_| METADATA_KEY);
    let names = SplitNames::new(stems.clone().chain(packs), split);
    let mut keys = names.keys(Keys::of(options));
    let plain: Vec<String> = stems.filter_map(|s| names.plain(s)).map(str::to_owned).collect();
    let pair = only_pair(&plain);
    if let (None, None, Some((images, labels))) = (keys.image, keys.label, pair)
        && find_field(folder, &plain, Part::Image, keys, None)?.is_none()
    {
        keys = Keys { image: Some(images), label: Some(labels), ..keys };
    }
    if keys.image.is_none() && find_field(folder, &plain, Part::Image, keys, None)?.is_none() {
        return Ok(None);
    }
    let mut set = ArraySet::new(DataFormat::Npy, folder, PerFile::Many);
    for (stem, path) in files {
        if let Some(name) = names.plain(stem) {
            push_file(&mut set, name, path)?;
        }
    }
    let images = find_field(folder, &plain, Part::Image, keys, None)?.and_then(|at| plain.get(at));
    let n = set.arrays.iter().find(|a| Some(&a.name) == images);
    let n = n.map(StoredArray::rows);
    // A folder with one file per sample may also contain an `x.npy`. In a folder of fields, some other file has as many items as
    // the image file.
    let like_images = set.arrays.iter().filter(|array| Some(array.rows()) == n);
    if keys.image.is_none() && set.arrays.len() > 1 && like_images.count() < 2 {
        return Ok(None);
    }
    if let Some(text) = text_file(&folder.join("classes.json"))? {
        set.classes = serde_json::from_str(&text).map_err(|error| {
            let reason = format!("expected a list of names, found {error}");
            ConvertError::malformed(&folder.join("classes.json"), "", reason)
        })?;
    }
    if let Some(text) = text {
        set.take_metadata(&text);
    }
    set.leave_out(folder, options)?;
    set.into_found(folder, keys).map(Some)
}

/// The only pair of files in which the name of one says that it has the labels of the other, such as `faces` and
/// `faces_target`.
fn only_pair(stems: &[String]) -> Option<(&str, &str)> {
    let pair = |images: &String| {
        let labels = label_stems(images).into_iter().find_map(|label| stems.iter().find(|stem| **stem == label))?;
        Some((stems.iter().find(|stem| *stem == images)?.as_str(), labels.as_str()))
    };
    let mut pairs = stems.iter().filter_map(pair);
    pairs.next().filter(|_| pairs.next().is_none())
}

/// Refuses a folder in which no file is named like images, but one file has a number for each item of another. Without this
/// check, the labels would be mistaken for a sample.
fn refuse_unnamed_images(folder: &Path, files: &[(String, PathBuf)]) -> Result<(), ConvertError> {
    let mut shapes = Vec::new();
    // The first files are enough to recognize a folder with one file per sample.
    for (stem, path) in files.iter().take(MAX_FIELDS) {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        shapes.push((stem, read_header(&file, 0, file.bytes)?.shape));
    }
    if let ([(stem, shape)], [(_, path)]) = (shapes.as_slice(), files)
        && shape.len() > 2
        && shape.first().is_some_and(|n| *n > 4)
    {
        let reason = format!(
            "expected a file for each sample, or a file named like images, found only '{stem}.npy', an array of shape {shape:?}"
        );
        let hint = format!(
            "if its first dimension counts the samples, pass '{}'; if it is one sample, add {ONE_SAMPLE_PER_FILE}",
            path.display()
        );
        return Err(ConvertError::contradictory(folder, "", reason, hint));
    }
    let pair = shapes.iter().find_map(|(label, own)| {
        let is_of = |(_, other): &&(&String, Vec<u64>)| other.len() > 2 && other.first() == own.first();
        let images = shapes.iter().find(is_of)?;
        (own.len() == 1).then_some((label, images.0))
    });
    let Some((label, images)) = pair else {
        return Ok(());
    };
    let mut stems: Vec<String> = files.iter().map(|(stem, _)| stem.clone()).collect();
    stems.retain(|stem| stem != *label);
    let reason =
        format!("'{label}.npy' has labels, but no file has a name commonly used for images, found {}", quoted(&stems));
    let hint = format!(
        "choose the image file with {IMAGE_KEY}, such as {}, and the label file with {}",
        IMAGE_KEY.with(images),
        LABEL_KEY.with(label)
    );
    Err(ConvertError::contradictory(folder, "", reason, hint))
}

/// The metadata text that an export of a pack left in a folder.
fn metadata_text(folder: &Path) -> Result<Option<String>, ConvertError> {
    text_file(&folder.join(format!("{METADATA_KEY}.json")))
}

/// Adds the array of a file under this name.
fn push_file(set: &mut ArraySet, name: &str, path: &Path) -> Result<Arc<OpenFile>, ConvertError> {
    let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
    let header = read_header(&file, 0, file.bytes)?;
    let room = file.bytes.saturating_sub(header.data);
    set.push(&file, &header.described(name, header.data, room))?;
    Ok(file)
}

/// Reads the header of an array at `offset` of a file. At most `room` bytes belong to the array.
fn read_header(file: &OpenFile, offset: u64, room: u64) -> Result<NpyHeader, ConvertError> {
    let most = to_u64(MAX_HEADER);
    let look = |bytes: u64| {
        let head = file.part("", offset, room.min(bytes))?;
        NpyHeader::parse(&head).map_err(|error| header_error(&file.path, "", error))
    };
    // Nearly all headers are short, and a folder may have one file per sample.
    look(HEAD_BYTES).or_else(|_| look(most))
}

/// The error for the header of the array `name` of a file.
pub(super) fn header_error(path: &Path, name: &str, error: HeaderError) -> ConvertError {
    match error {
        HeaderError::Malformed(reason) => ConvertError::malformed(path, name, reason),
        HeaderError::Unsupported(reason, hint) => ConvertError::unsupported(path, name, reason, hint),
    }
}
