//! Decides whether a file of arrays holds one sample or one per row. Files that may be either are refused.

use std::path::Path;

use packds_format::DType;

use super::ListOptions;
use super::found::Found;
use super::listing::SourceField;
use super::paths::{PathTable, as_path, lossy};
use super::roles::{is_label_name, is_mask_name};
use super::shards::Shards;
use super::store::{Content, Contents};
use super::warning::Warning;
use crate::error::ConvertError;
use crate::opt::{MANY_SAMPLES_PER_FILE, ONE_SAMPLE_PER_FILE};

/// How many samples a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PerFile {
    /// One sample per row of its arrays.
    Many,
    /// One sample with all arrays.
    One,
}

/// Minimum number of rows for a file to be read as a single image.
const MIN_ROWS: usize = 8;
/// Minimum side of the images that may be flattened into rows.
const MIN_SIDE: u32 = 8;
/// Row lengths of flattened images in well-known datasets (28x28, 32x32x3, ...). Actual images rarely have these widths.
const FLAT_WIDTHS: [u32; 6] = [28 * 28, 28 * 28 * 3, 32 * 32 * 3, 64 * 64 * 3, 96 * 96 * 3, 224 * 224 * 3];
/// The hint for files that each hold many images.
const TOGETHER: &str = "put the images of all files into one array and their labels into another: numpy.concatenate(..).reshape(-1, HEIGHT, WIDTH) as x.npy, numpy.repeat(..) as y.npy";

/// Refuses files that were read row by row, but look like one sample each.
pub(super) fn refuse_one(found: &Found, part: &Shards, options: &ListOptions) -> Result<(), ConvertError> {
    if options.one_sample_per_file == Some(false) || found.metadata.is_some() {
        return Ok(());
    }
    let n_files = part.files.len();
    let Some(looks) = looks_like_one(found, n_files) else { return Ok(()) };
    let files = if n_files == 1 { "the file" } else { "each file" };
    let reason = format!("expected one image in each row of the arrays, but {looks}: {files} may be one sample");
    let hint = format!(
        "{ONE_SAMPLE_PER_FILE} reads each file as one sample, and {MANY_SAMPLES_PER_FILE} reads each row as one"
    );
    Err(ConvertError::unsupported(&part.root, "", reason, hint))
}

/// Why each file looks like one sample. `None` if it does not.
fn looks_like_one(found: &Found, n_files: usize) -> Option<String> {
    let (shape, is_u8) = match found.images.content(0) {
        Content::Pixels(shape) => (shape.array().shape, true),
        Content::Array(array) => (array.shape, array.dtype == DType::U8),
        _ => return None,
    };
    let n = found.images.len();
    // A map has a number for each pixel: the dimensions of an image without its channels.
    let map_shape = match shape.as_slice() {
        [width] | [width, 1..=4] => Some([*width]),
        _ => None,
    };
    let is_map = |field: &&SourceField| {
        let is_named = is_label_name(&field.name) || is_mask_name(&field.name);
        is_named
            && matches!(field.store.content(0), Content::Array(array) if map_shape.is_some_and(|shape| array.shape == shape))
    };
    let map = found.fields.iter().find(is_map).filter(|_| n >= MIN_ROWS);
    let map = map.map(|map| format!("'{}' has as many numbers as the image has pixels", map.name));
    let [height, width] = *shape.as_slice() else { return map };
    if !found.are_planes {
        return map;
    }
    if found.has_single_label {
        return Some("there is only one label".to_owned());
    }
    let has_labels = found.labels.is_some() || !found.fields.is_empty() || !found.texts.is_empty();
    if is_u8 && (3..=4).contains(&width) && height > 4 {
        Some(format!("their shape {n}x{height}x{width} is that of one image"))
    } else if n_files > 1 && !has_labels {
        Some(format!("the {n_files} files have no labels, and their arrays have three dimensions"))
    } else if matches!(n, 3 | 4) && !has_labels && height > 4 && width > 4 {
        Some(format!("their shape {n}x{height}x{width} is that of one image"))
    } else {
        map
    }
}

/// Refuses files that were read as one sample each if they certainly hold many: flattened images, stacks of different lengths, or
/// images next to files with fewer than two dimensions, which are probably labels. Warns if each file may hold many images.
pub(super) fn refuse_many(
    folder: &Path,
    paths: &PathTable,
    contents: &Contents,
) -> Result<Option<Warning>, ConvertError> {
    refuse_sets(folder, paths, contents)?;
    Ok(many_images(contents).map(|shape| Warning::Stacks { shape }))
}

fn refuse_sets(folder: &Path, paths: &PathTable, contents: &Contents) -> Result<(), ConvertError> {
    let path = |place: usize| folder.join(as_path(&paths.path(place)));
    let hint = |hint: &str| format!("{hint}; {ONE_SAMPLE_PER_FILE} reads each file as one sample");
    let refused =
        |place, reason: String, what: &str| Err(ConvertError::unsupported(&path(place), "", reason, hint(what)));
    let each: Vec<Content> = match contents {
        Contents::Each(each) => each.clone(),
        // All files have arrays of the same shape. With only one file, that means nothing.
        Contents::All(content) if paths.len() > 1 => vec![content.clone()],
        Contents::All(_) => return Ok(()),
    };
    if let Some((place, shape)) = vector_beside_images(&each) {
        let reason = format!("expected one image, found an array of shape {shape:?}");
        if let Some(error) = other_length(folder, paths, &each, (place, shape)) {
            return Err(error);
        }
        return refused(place, reason, "pass a folder with one file per field, or remove files that are not images");
    }
    if let Some((shape, true)) = stacks(contents) {
        let reason = format!(
            "expected one image per file, found arrays such as {shape:?} whose first dimensions differ: each looks like many images"
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

/// The shape of the first file, if each file may contain many images.
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

/// The first array with fewer than two dimensions, if other arrays have at least two. `None` if all have fewer, because
/// then they are the samples.
fn vector_beside_images(each: &[Content]) -> Option<(usize, &[u64])> {
    let vector = |content: &'_ Content| matches!(content, Content::Array(array) if array.shape.len() < 2);
    let place = each.iter().position(vector)?;
    let is_mixed = each.iter().any(|content| !vector(content));
    match each.get(place) {
        Some(Content::Array(array)) if is_mixed => Some((place, &array.shape)),
        _ => None,
    }
}

/// The error about an image file and a label file that differ in length.
fn other_length(
    folder: &Path,
    paths: &PathTable,
    each: &[Content],
    (place, shape): (usize, &[u64]),
) -> Option<ConvertError> {
    let ([n], [_, _]) = (shape, each) else { return None };
    let Content::Array(images) = &each[1 - place] else { return None };
    let (name, first) = (lossy(&paths.path(1 - place)), images.shape.first().filter(|_| images.shape.len() > 2)?);
    let reason =
        format!("expected {first} values, one for each image in '{name}' of shape {:?}, found {n}", images.shape);
    let hint = match images.shape.iter().position(|length| length == n) {
        Some(along) => format!("put the dimension of the images first: numpy.moveaxis(images, {along}, 0)"),
        None => format!("correct one of the files; {ONE_SAMPLE_PER_FILE} reads each file as one sample"),
    };
    Some(ConvertError::contradictory(&folder.join(as_path(&paths.path(place))), "", reason, hint))
}

/// If all rows of the files may be flattened images: the numbers of rows and columns of the first file, and whether this is nearly
/// certain. It is nearly certain if a file has more than four times as many rows as columns. It is also nearly certain if the width
/// is one of [`FLAT_WIDTHS`] and either a file has more rows than columns or the number of rows varies.
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
