//! A folder with one `.npy` file per sample, in class folders or flat.

use packds_system::to_usize;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::header::Elements;
use super::{metadata_text, npy_stem, read_header};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::metadata::Metadata;
use crate::safe_name::safe_names;
use crate::sample::SampleError;
use crate::source::found::{Found, FoundLabels, LabelValues, Names};
use crate::source::paths::as_path;
use crate::source::store::{ArrayType, Content, Contents, OpenFile, Store};
use crate::source::swapped::swap;
use crate::source::warning::{Warning, readable};

/// Maximum folder depth.
const MAX_DEPTH: usize = 16;
/// Minimum side of images that a row may contain.
const MIN_SIDE: u32 = 8;
/// Row lengths of flattened images in well-known datasets (28x28, 32x32x3, ...). Actual images rarely have these widths.
const FLAT_WIDTHS: [u32; 6] = [28 * 28, 28 * 28 * 3, 32 * 32 * 3, 64 * 64 * 3, 96 * 96 * 3, 224 * 224 * 3];
/// What to do with files of many images each.
const TOGETHER: &str = "put the images of all files into one array and their labels into another: numpy.concatenate(..).reshape(-1, HEIGHT, WIDTH) as x.npy, numpy.repeat(..) as y.npy";

/// Finds the samples. They are in class folders unless the folder itself contains files.
pub(super) fn read(folder: &Path, is_flat: bool) -> Result<Found, ConvertError> {
    let mut paths = Vec::new();
    let mut other_files = 0;
    walk(folder, b"", (!is_flat, 0), &mut paths, &mut other_files)?;
    if paths.is_empty() {
        return Err(ConvertError::malformed(folder, "", "there are no .npy files in it"));
    }
    let files = NpyFiles::new(folder, &paths)?;
    refuse_sets(folder, &paths, &files.contents)?;
    let mut warnings = Vec::new();
    let metadata = readable(metadata_text(folder)?.map(|text| Metadata::parse(&text)), &mut warnings);
    if metadata.is_none()
        && let Some(shape) = many_images(&files.contents)
    {
        warnings.push(Warning::Stacks { shape });
    }
    let labels = (!is_flat).then(|| labels(&paths, metadata.as_ref()));
    Ok(Found {
        labels: labels.flatten(),
        metadata,
        warnings,
        ignored: other_files,
        ..Found::new(DataFormat::Npy, Arc::new(files), Names::Paths(paths))
    })
}

/// Refuses arrays that could be mistaken for images: numbers or vectors next to images, which are probably labels; and files of
/// many flattened images each.
fn refuse_sets(folder: &Path, paths: &[Vec<u8>], contents: &Contents) -> Result<(), ConvertError> {
    let path = |place: usize| match paths.get(place) {
        Some(path) => folder.join(as_path(path)),
        None => folder.to_owned(),
    };
    let refused = |place, reason: String, hint: &str| Err(ConvertError::unsupported(&path(place), "", reason, hint));
    let each: Vec<Content> = match contents {
        Contents::Each(each) => each.clone(),
        // All are the same. A single file proves nothing.
        Contents::All(content) if paths.len() > 1 => vec![content.clone()],
        Contents::All(_) => return Ok(()),
    };
    if let Some((place, shape)) = vector_beside_images(&each) {
        let reason = format!("expected one image, found an array of shape {shape:?}");
        let hint = "name a folder with one file per field, or remove files that are not images";
        return refused(place, reason, hint);
    }
    if let Some((shape, true)) = stacks(contents) {
        let reason = format!(
            "expected one image, found an array of shape {shape:?}, and others with another first dimension: each looks like many images"
        );
        return refused(0, reason, TOGETHER);
    }
    match flat_images(contents) {
        Some(((height, width), true)) => {
            let reason = format!(
                "expected one image, found {height}x{width}, which looks like {height} flattened images of {width} numbers"
            );
            refused(0, reason, TOGETHER)
        }
        _ => Ok(()),
    }
}

/// The shape of the first file, if each may contain many images.
fn many_images(contents: &Contents) -> Option<Vec<u64>> {
    let flat = flat_images(contents).map(|((height, width), _)| vec![height.into(), width.into()]);
    flat.or_else(|| Some(stacks(contents)?.0))
}

/// The shape of the first file, if all look like stacks of images of one size. Also whether the stacks differ in length.
fn stacks(contents: &Contents) -> Option<(Vec<u64>, bool)> {
    let shape = |content: &'_ Content| match content {
        Content::Array(array) => Some(array.shape.clone()),
        _ => None,
    };
    let (first, rest) = match contents {
        Contents::All(content) => (content, &[][..]),
        Contents::Each(each) => each.split_first()?,
    };
    let first = shape(first)?;
    let side = u64::from(MIN_SIDE);
    let is_stack = match first.as_slice() {
        [_, height, width] => *height >= side && *width >= side,
        [_, height, width, 1..=4] | [_, 1..=4, height, width] => *height >= side && *width >= side,
        _ => false,
    };
    let is_alike = |content: &Content| shape(content).is_some_and(|other| other.get(1..) == first.get(1..));
    let differ = rest.iter().any(|content| shape(content).as_ref() != Some(&first));
    (is_stack && rest.iter().all(is_alike)).then_some((first, differ))
}

/// The first array with fewer than two dimensions, if others have more. If all have fewer, they are the samples.
fn vector_beside_images(each: &[Content]) -> Option<(usize, &[u64])> {
    let vector = |content: &'_ Content| matches!(content, Content::Array(array) if array.shape.len() < 2);
    let place = each.iter().position(vector)?;
    let is_mixed = each.iter().any(|content| !vector(content));
    match each.get(place) {
        Some(Content::Array(array)) if is_mixed => Some((place, &array.shape)),
        _ => None,
    }
}

/// Rows and columns of the first file, if all rows may be flattened images. Also whether that is nearly certain: there are more
/// than four times as many rows as columns; or the width is well known, and there are more rows than columns or the number of
/// rows varies.
fn flat_images(contents: &Contents) -> Option<((u32, u32), bool)> {
    let size = |content: &Content| match content {
        Content::Pixels(shape) if shape.channels == 1 => Some((shape.height, shape.width)),
        _ => None,
    };
    let sizes: Vec<(u32, u32)> = match contents {
        Contents::All(content) => vec![size(content)?],
        Contents::Each(each) => each.iter().map(size).collect::<Option<_>>()?,
    };
    let &(height, width) = sizes.first()?;
    if sizes.iter().any(|(_, own)| *own != width) {
        return None;
    }
    let is_known = FLAT_WIDTHS.contains(&width);
    let side = width.isqrt();
    let is_flat = is_known || (side >= MIN_SIDE && side * side == width);
    let are_longer = |times: u32| {
        let least = width.saturating_mul(times);
        sizes.iter().any(|(height, _)| *height > least)
    };
    let differ = sizes.iter().any(|(own, _)| *own != height);
    let is_sure = are_longer(4) || (is_known && (differ || are_longer(1)));
    (is_known || (is_flat && is_sure)).then_some(((height, width), is_sure))
}

/// The paths of all files below a folder, in name order within each folder.
fn walk(
    root: &Path,
    below: &[u8],
    (deep, depth): (bool, usize),
    paths: &mut Vec<Vec<u8>>,
    others: &mut u64,
) -> Result<(), ConvertError> {
    let folder = root.join(as_path(below));
    let unreadable = |source| ConvertError::UnreadableDirectory { path: folder.clone(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
    for name in names.iter().filter(|name| !name.as_bytes().starts_with(b".")) {
        let mut path = below.to_vec();
        if !below.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let is_folder = root.join(as_path(&path)).is_dir();
        if is_folder && deep && depth < MAX_DEPTH {
            walk(root, &path, (deep, depth + 1), paths, others)?;
        } else if !is_folder && name.to_str().and_then(npy_stem).is_some() && (depth > 0 || !deep) {
            paths.push(path);
        } else if !is_folder && name != "packds.json" {
            *others += 1;
        }
    }
    Ok(())
}

/// Labels from class folders, numbered in name order or as in the pack.
fn labels(paths: &[Vec<u8>], metadata: Option<&Metadata>) -> Option<FoundLabels> {
    let class = |path: &Vec<u8>| {
        let first = path.split(|b| *b == b'/').next().unwrap_or_default();
        String::from_utf8_lossy(first).into_owned()
    };
    let mut folders: Vec<String> = paths.iter().map(class).collect();
    folders.dedup();
    folders.sort_unstable();
    folders.dedup();
    let known = metadata.map_or(&[][..], |m| m.class_names("label"));
    let of_classes = safe_names(known.iter().map(String::as_bytes));
    let (classes, order) = if folders.iter().all(|folder| of_classes.contains(folder)) {
        (known.to_vec(), of_classes)
    } else if let Some(ids) = numbered(paths, &folders, metadata) {
        return Some(FoundLabels::without_classes("label", LabelValues::Ids(ids)));
    } else {
        (folders.clone(), folders)
    };
    let id_of: HashMap<&str, i64> = order.iter().map(String::as_str).zip(0..).collect();
    let ids = paths.iter().map(|path| id_of.get(class(path).as_str()).copied());
    let ids = ids.collect::<Option<_>>()?;
    Some(FoundLabels { name: "label".to_owned(), values: LabelValues::Ids(ids), classes })
}

/// The class ids if the folder names are ids, for packs without class names.
fn numbered(paths: &[Vec<u8>], folders: &[String], metadata: Option<&Metadata>) -> Option<Vec<i64>> {
    let label = metadata?.field("label")?;
    label.role.filter(|role| *role == packds_format::Role::Label)?;
    folders.iter().try_for_each(|name| name.parse::<i64>().ok().map(|_| ()))?;
    let id = |path: &Vec<u8>| {
        let first = path.split(|b| *b == b'/').next()?;
        str::from_utf8(first).ok()?.parse().ok()
    };
    paths.iter().map(id).collect()
}

/// Arrays in separate files. Each is opened when read.
#[derive(Debug)]
struct NpyFiles {
    root: PathBuf,
    paths: Vec<Vec<u8>>,
    contents: Contents,
    /// Start of the data in each file.
    starts: Vec<u32>,
    /// Bytes per number if big-endian, otherwise 0.
    swapped: Vec<u8>,
}

impl NpyFiles {
    fn new(root: &Path, paths: &[Vec<u8>]) -> Result<Self, ConvertError> {
        let mut files = Self {
            root: root.to_owned(),
            paths: paths.to_vec(),
            contents: Contents::All(Content::Bytes),
            starts: Vec::with_capacity(paths.len()),
            swapped: Vec::with_capacity(paths.len()),
        };
        for (n, path) in paths.iter().enumerate() {
            let content = files.look_into(path)?;
            files.contents.push(n, content);
        }
        Ok(files)
    }

    /// The content of a file's array, from its header.
    fn look_into(&mut self, path: &[u8]) -> Result<Content, ConvertError> {
        let full = self.root.join(as_path(path));
        let file = OpenFile::open(&full).map_err(ConvertError::io(&full))?;
        let header = read_header(&file, 0, file.bytes)?;
        let Elements::Numbers { dtype, swapped } = header.elements else {
            return Err(ConvertError::unsupported(&full, "", "an array of texts", "remove files that are not images"));
        };
        let found = file.bytes.saturating_sub(header.data);
        if found < header.bytes {
            let reason = format!("expected {} bytes of data, found {found}", header.bytes);
            return Err(ConvertError::malformed(&full, "", reason));
        }
        self.starts.push(u32::try_from(header.data).unwrap_or(u32::MAX));
        let element = if swapped { dtype.size() } else { 0 };
        self.swapped.push(u8::try_from(element).unwrap_or(0));
        Ok(Content::of_array(ArrayType { dtype, shape: header.shape }))
    }
}

impl Store for NpyFiles {
    fn len(&self) -> usize {
        self.paths.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        match self.contents.get(idx) {
            Content::Pixels(shape) => shape.bytes(),
            Content::Array(array) => array.bytes().unwrap_or(u64::MAX),
            Content::File | Content::Bytes | Content::Text | Content::Json => 0,
        }
    }

    fn content(&self, idx: usize) -> Content {
        self.contents.get(idx)
    }

    fn is_uniform(&self) -> bool {
        self.contents.is_uniform()
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let path = self.paths.get(idx).ok_or(SampleError::Missing)?;
        let start = self.starts.get(idx).ok_or(SampleError::Missing)?;
        let file = OpenFile::open(&self.root.join(as_path(path)))?;
        let before = out.len();
        // Only whole numbers can be reversed, so the whole array is read and then cut.
        let element = self.swapped.get(idx).copied().map_or(0, usize::from);
        let wanted = if element == 0 { limit } else { u64::MAX };
        file.append_at((*start).into(), self.bytes(idx).min(wanted), out)?;
        if element > 0 {
            swap(out.get_mut(before..).unwrap_or_default(), element);
            out.truncate(before.saturating_add(to_usize(limit)));
        }
        Ok(())
    }
}
