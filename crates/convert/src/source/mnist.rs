//! Reads MNIST's idx files and other datasets in this format: in place, or unpacked once if they are gzipped.

use packds_system::to_u64;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use packds_format::DType;

use super::ListOptions;
use super::arrays::{ArraySet, Described};
use super::found::Found;
use super::npy::Elements;
use super::packed::Packed;
use super::per_file::PerFile;
use super::roles::Keys;
use super::shards::Shards;
use super::split::is_split_name;
use super::spool::Spool;
use super::store::OpenFile;
use super::there::first_there;
use super::torchvision;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;

/// Maximum number of dimensions accepted: images have three, or four with channels.
const MAX_DIMENSIONS: u8 = 8;
/// Bytes unpacked at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The parts of a folder: one per split, each with its image file.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    if !source.is_dir() {
        return Ok(vec![Shards::one(source)]);
    }
    let unreadable = |error| ConvertError::UnreadableDirectory { path: source.to_owned(), source: error };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(source).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().into_string();
        names.extend(name.ok().filter(|name| is_idx(name) && name.contains("images")));
    }
    names.sort_unstable();
    let mut sets: BTreeMap<String, PathBuf> = BTreeMap::new();
    for name in names {
        let Some(path) = first_there(places(source, &name))? else { continue };
        let plain = name.trim_end_matches(".gz");
        let is_plain = plain == name;
        // If a file exists both plain and gzipped, the plain one is read. `x.idx3-ubyte` is another name for
        // `x-idx3-ubyte`.
        let set = plain.replacen(".idx", "-idx", 1);
        if !sets.contains_key(&set)
            || (is_plain && sets.get(&set).is_some_and(|known| known.extension() == Some("gz".as_ref())))
        {
            sets.insert(set, path);
        }
    }
    let mut parts: Vec<Shards> = Vec::new();
    for (name, path) in sets {
        let split = split_of(&name);
        if parts.iter().any(|part| part.split == split) {
            let reason =
                format!("there are several image files for {}", split.as_deref().unwrap_or("the same dataset"));
            let hint = "pass one image file; its labels are found next to it";
            return Err(ConvertError::unsupported(source, &name, reason, hint));
        }
        parts.push(Shards { root: source.to_owned(), files: vec![path], split });
    }
    if parts.is_empty() {
        let reason = "this folder has no image files (such as train-images-idx3-ubyte)";
        return Err(ConvertError::malformed(source, "", reason));
    }
    parts.sort_by(|a, b| a.split.cmp(&b.split));
    Ok(parts)
}

/// Whether this is the name of an idx file.
pub(crate) fn is_idx(name: &str) -> bool {
    name.contains("idx") && name.contains("ubyte")
}

/// The possible paths of a file: in the folder, or in a subfolder of the same name, which some archives create.
fn places(folder: &Path, name: &str) -> [PathBuf; 2] {
    [folder.join(name), folder.join(name).join(name)]
}

/// The split name that precedes `images` in a file name. MNIST calls the test set `t10k`.
fn split_of(name: &str) -> Option<String> {
    let (before, _) = name.split_once("images")?;
    let word = before.trim_end_matches(['-', '_', '.']);
    let word = word.rsplit(['-', '_', '.']).next()?.to_ascii_lowercase();
    match word.as_str() {
        "t10k" => Some("test".to_owned()),
        word if is_split_name(word.as_bytes()) => Some(word.to_owned()),
        _ => None,
    }
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let images = part.only()?;
    let mut set = ArraySet::new(DataFormat::Mnist, images, PerFile::Many);
    let file = IdxFile::open(images, options)?;
    file.push(&mut set, "image", false)?;
    let name = images.file_name().and_then(|name| name.to_str());
    let labels = label_names(name.unwrap_or_default());
    let folder = images.parent().unwrap_or(images);
    let is_own = folder.file_name() == images.file_name();
    let folder = folder.parent().filter(|_| is_own).unwrap_or(folder);
    match first_there(labels.iter().flat_map(|name| places(folder, name)))? {
        Some(path) => {
            let file = IdxFile::open(&path, options)?;
            if file.shape.len() > 1 {
                // QMNIST has one row per image, which starts with the class.
                file.push(&mut set, "label_info", false)?;
            }
            file.push(&mut set, "label", true)?;
        }
        None => {
            let file = labels.first().cloned().unwrap_or_default().into_bytes();
            set.warnings.push(Warning::LabelsMissing { file });
        }
    }
    set.warnings.extend(torchvision::unread_tensors(folder));
    set.leave_out(images, options)?;
    let keys = Keys::of(options);
    set.into_found(images, keys)
}

/// Possible names of the label file for an image file.
fn label_names(images: &str) -> Vec<String> {
    let plain = images.trim_end_matches(".gz");
    let labels = plain.replacen("images", "labels", 1);
    let names = [labels.replacen("idx3-ubyte", "idx1-ubyte", 1), labels.replacen("idx3-ubyte", "idx2-int", 1), labels];
    let with_gz = |name: &String| [name.clone(), format!("{name}.gz")];
    let names = names.iter().flat_map(with_gz);
    names.filter(|name| *name != images).collect()
}

/// An array in a file.
struct IdxFile {
    file: Arc<OpenFile>,
    dtype: DType,
    shape: Vec<u64>,
    /// Start of the data.
    data: u64,
}

impl IdxFile {
    fn open(path: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let head = file.part("", 0, file.bytes.min(512))?;
        if head.starts_with(b"\x1f\x8b") {
            return Self::unpack(path, &file, options);
        }
        let (dtype, shape, data) = header(path, &head)?;
        Ok(Self { file: Arc::new(file), dtype, shape, data })
    }

    /// Unpacks a gzipped file, up to the length stated in its header.
    fn unpack(path: &Path, file: &OpenFile, options: &ListOptions) -> Result<Self, ConvertError> {
        let damaged = |error: std::io::Error| ConvertError::malformed(path, "", format!("cannot be unpacked: {error}"));
        let mut source = MultiGzDecoder::new(file.file().map_err(ConvertError::io(path))?);
        let mut head = Vec::new();
        let most = u64::from(MAX_DIMENSIONS) * 4 + 4;
        let read = source.by_ref().take(most).read_to_end(&mut head);
        read.map_err(damaged)?;
        let (dtype, shape, data) = header(path, &head)?;
        let bytes = shape.iter().try_fold(dtype.size(), |n, d| n.checked_mul(*d));
        let expected = bytes.and_then(|n| n.checked_add(data)).unwrap_or(u64::MAX);
        let mut spool = Spool::create(&options.spool_folder())?;
        spool.begin_file(Packed::Stream(path.into()));
        spool.append(&head)?;
        let mut found = to_u64(head.len());
        let mut piece = vec![0; PIECE_BYTES];
        while found <= expected {
            let n = source.read(&mut piece).map_err(damaged)?;
            if n == 0 {
                break;
            }
            spool.append(piece.get(..n).unwrap_or_default())?;
            found = found.saturating_add(to_u64(n));
        }
        if found != expected {
            let reason = format!("expected {expected} bytes when unpacked, found {found}");
            return Err(ConvertError::malformed(path, "", reason));
        }
        Ok(Self { file: Arc::new(spool.finish(path)?), dtype, shape, data })
    }

    /// Adds the array, or only the first number of each row.
    fn push(&self, set: &mut ArraySet, name: &str, is_first: bool) -> Result<(), ConvertError> {
        let row = self.shape.iter().skip(1);
        let row = row.fold(self.dtype.size(), |n, d| n.saturating_mul(*d));
        let shape = self.shape.get(..1).filter(|_| is_first);
        let described = Described {
            name,
            elements: Elements::Numbers { dtype: self.dtype, swapped: self.dtype.size() > 1 },
            shape: shape.unwrap_or(&self.shape),
            offset: self.data,
            room: self.file.bytes.saturating_sub(self.data),
            stride: Some(row),
        };
        set.push(&self.file, &described)
    }
}

/// The element type, the dimensions and the start of the data.
fn header(path: &Path, head: &[u8]) -> Result<(DType, Vec<u64>, u64), ConvertError> {
    let wrong = || {
        let found = head.get(..4).unwrap_or(head).escape_ascii();
        let reason = format!("expected the header of an idx file, found \"{found}\"");
        ConvertError::malformed(path, "", reason)
    };
    let (dtype, n) = match head.get(..4) {
        Some(&[0, 0, kind, n @ 1..=MAX_DIMENSIONS]) => {
            let dtype = match kind {
                0x08 => DType::U8,
                0x09 => DType::I8,
                0x0b => DType::I16,
                0x0c => DType::I32,
                0x0d => DType::F32,
                0x0e => DType::F64,
                _ => return Err(wrong()),
            };
            (dtype, usize::from(n))
        }
        _ => return Err(wrong()),
    };
    let sizes = head.get(4..4 + 4 * n).ok_or_else(wrong)?;
    let shape = sizes.as_chunks::<4>().0.iter().map(|size| {
        // The format's numbers are big-endian.
        let mut size = *size;
        size.reverse();
        u32::from_le_bytes(size).into()
    });
    let data = to_u64(4 + 4 * n);
    Ok((dtype, shape.collect(), data))
}

#[cfg(test)]
mod tests;
