//! Version 5 MAT-files: the arrays of numbers in one file, or in one file for each split. Arrays are unpacked once,
//! into a temporary file.
//!
//! In MATLAB files, the first dimension varies fastest. The unpacked arrays have the order of NumPy, as from
//! `scipy.io.loadmat`. If the last dimension of an array counts the samples, it becomes the first.

mod element;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use packds_format::{DType, Scalar};
use packds_system::{to_u64, to_usize};

use self::element::{Content, Numbers, Order, Variable, order, variables};
use super::ListOptions;
use super::arrays::{ArraySet, Described};
use super::detect::{Head, head_of, names_in};
use super::found::Found;
use super::key_split::SplitNames;
use super::npy::Elements;
use super::per_file::PerFile;
use super::roles::{Keys, is_label_name};
use super::shards::{Shards, folders_in};
use super::spool::Spool;
use super::store::OpenFile;
use super::unread::Unread;
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::sample::MAX_FILE_BYTES;

/// Bytes of the header that identify a file.
const HEAD_BYTES: u64 = 128;
/// Bytes unpacked at a time.
const PIECE_BYTES: u64 = 1 << 20;

/// Maximum number of variables in a file of labels or splits.
const MAX_VECTORS: usize = 16;
/// Maximum number of bytes in each of them.
const MAX_VECTOR_BYTES: u64 = 64 << 20;

/// Whether a file is a version 5 MAT-file.
pub(crate) fn starts(head: &Head<'_>) -> bool {
    order(head.bytes).is_some()
}

/// Whether a folder is a dataset in MATLAB files: one file, or one for each split. If there are folders next to the
/// files, the files are more likely labels or settings. If there are several files and no splits, each file may have
/// one image.
pub(crate) fn is_set(folder: &Path, names: &[String]) -> bool {
    let is_one = |name: &&String| DataFormat::from_file_name(name) == Some(DataFormat::Matlab);
    let mut files = names.iter().filter(is_one).peekable();
    let has_files = files.peek().is_some() && folders_in(folder).is_empty();
    let is_matlab = |name: &String| head_of(&folder.join(name)).is_ok_and(|head| order(&head).is_some());
    let parts = || Shards::find(folder, DataFormat::Matlab).map(Shards::by_split).unwrap_or_default();
    has_files && files.all(is_matlab) && parts().iter().all(|part| part.files.len() == 1)
}

/// One part for each split in the file names. If the file names mention no split, the array names of the first file decide.
pub(crate) fn parts(shards: Shards) -> Result<Vec<Shards>, ConvertError> {
    ArraySet::parts_by_names(shards, |file| {
        let (_, variables) = open(file)?;
        Ok(arrays(&variables).map(|(variable, _)| variable.name.clone()).collect())
    })
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let read = |file: &_| read_file(file, part.split.as_deref(), options);
    ArraySet::join_split(part, options, read, |file| read(file).map(|(set, _)| set))
}

/// The variables of a file.
fn open(file: &OpenFile) -> Result<(Order, Vec<Variable>), ConvertError> {
    let head = file.part("", 0, HEAD_BYTES)?;
    let order = order(&head);
    let order = order.ok_or_else(|| {
        ConvertError::malformed(&file.path, "", "this is not a version 5 MAT-file (saved with -v6 or -v7)")
    })?;
    Ok((order, variables(file, order)?))
}

/// The arrays of numbers.
fn arrays(variables: &[Variable]) -> impl Iterator<Item = (&Variable, &Numbers)> {
    variables.iter().filter_map(|variable| match &variable.content {
        Content::Numbers(numbers) => Some((variable, numbers)),
        Content::Other(_) => None,
    })
}

/// The arrays of a split in a file, and the caller's keys for them.
fn read_file<'a>(
    file: &Arc<OpenFile>,
    split: Option<&str>,
    options: &'a ListOptions,
) -> Result<(ArraySet, Keys<'a>), ConvertError> {
    let (order, variables) = open(file)?;
    let names = SplitNames::new(variables.iter().map(|variable| variable.name.as_str()), split);
    let mut set = ArraySet::new(DataFormat::Matlab, &file.path, PerFile::Many);
    let samples = n_samples(&variables);
    if arrays(&variables).next().is_none() {
        return Err(refused(file, "", "it has no arrays of numbers".to_owned()));
    }
    let mut spool = Spool::create(&options.spool_folder())?;
    let mut unpacked = Vec::new();
    for variable in &variables {
        let Some(name) = names.plain(&variable.name) else { continue };
        if options.is_left_out(name) {
            set.left_out.push(name.to_owned());
            continue;
        }
        let numbers = match &variable.content {
            Content::Numbers(numbers) => numbers,
            Content::Other(what) => {
                set.warnings.push(left_out(file, variable, what, options)?);
                continue;
            }
        };
        let (shape, is_last) = shape(numbers, samples).ok_or_else(|| {
            let shape = &numbers.shape;
            refused(file, name, format!("cannot tell which dimension of the array {shape:?} counts the samples"))
        })?;
        if is_last {
            let shape = numbers.shape.clone();
            set.warnings.push(Warning::SamplesLast { field: name.to_owned(), shape });
        }
        let offset = unpack((file, order), (variable, numbers), is_last, &mut spool)?;
        unpacked.push((name, numbers, shape, offset));
    }
    let spooled = Arc::new(spool.finish(&file.path)?);
    for (name, numbers, shape, offset) in unpacked {
        let elements = Elements::Numbers { dtype: numbers.dtype, swapped: order.is_big && numbers.dtype.size() > 1 };
        let (shape, room, stride) = (shape.as_slice(), numbers.bytes, None);
        set.push(&spooled, &Described { name, elements, shape, offset, room, stride })?;
    }
    Ok((set, names.keys(Keys::of(options))))
}

/// The warning about a variable that is not an array of numbers.
///
/// # Errors
/// If the pack needs the variable.
fn left_out(file: &OpenFile, variable: &Variable, what: &str, options: &ListOptions) -> Result<Warning, ConvertError> {
    let reason = format!("this is {what}, and only arrays of numbers are read");
    if options.needs(&variable.name) {
        return Err(refused(file, &variable.name, reason));
    }
    Ok(Warning::LeftOut { field: variable.name.clone(), reason })
}

/// The error about a variable, or about the file if `name` is empty. The hint is a line of Python that converts the
/// file.
fn refused(file: &OpenFile, name: &str, reason: String) -> ConvertError {
    let hint = Unread::named("MATLAB").map_or("", |row| row.hint);
    ConvertError::unsupported(&file.path, name, reason, hint)
}

/// The number of samples: the length of the first vector with a label name, or else of the only vector. `None` if there
/// is no such vector.
fn n_samples(variables: &[Variable]) -> Option<u64> {
    let vectors = || arrays(variables).filter_map(|(variable, numbers)| Some((variable, vector(&numbers.shape)?)));
    let labels = vectors().find(|(variable, _)| is_label_name(&variable.name));
    let only = vectors().next().filter(|_| vectors().count() == 1);
    labels.or(only).map(|(_, n)| n)
}

/// The length of a row or column of at least two numbers. `None` for other shapes.
fn vector(shape: &[u64]) -> Option<u64> {
    match *shape {
        [1, n] | [n, 1] if n > 1 => Some(n),
        _ => None,
    }
}

/// The shape of an array with its samples first, and whether they were last. `None` if it is unclear which dimension
/// counts them.
fn shape(numbers: &Numbers, samples: Option<u64>) -> Option<(Vec<u64>, bool)> {
    let shape = &numbers.shape;
    if let Some(n) = vector(shape) {
        return Some((vec![n], false));
    }
    let (first, last) = shape.first().zip(shape.last())?;
    let are_images = matches!(shape.as_slice(), [_, _, 1 | 3 | 4, n] if !matches!(n, 1 | 3 | 4));
    let is_last = match samples {
        Some(n) if [*first, *last] == [n; 2] && !are_images => return None,
        Some(n) => *last == n,
        None if shape.len() > 2 && !are_images => return None,
        None => are_images,
    };
    let mut shape = shape.clone();
    if is_last {
        shape.rotate_right(1);
    }
    Some((shape, is_last))
}

/// Unpacks the numbers of a variable in NumPy's order, and returns their offset in `spool`. If the samples are last,
/// each is unpacked separately.
fn unpack(
    (file, order): (&OpenFile, Order),
    (variable, numbers): (&Variable, &Numbers),
    is_last: bool,
    spool: &mut Spool,
) -> Result<u64, ConvertError> {
    let mut offset = None;
    let mut lengths = numbers.shape.clone();
    let n = if is_last { lengths.pop().unwrap_or(0) } else { 1 };
    let bytes = numbers.bytes.checked_div(n).unwrap_or(0);
    if bytes > MAX_FILE_BYTES {
        let reason = format!("the array has {bytes} bytes, more than the limit of {MAX_FILE_BYTES}");
        let hint = "save it as .npy in Python, or with its samples in the last dimension: numpy.save(\"x.npy\", scipy.io.loadmat(\"x.mat\")[\"X\"])";
        return Err(ConvertError::unsupported(&file.path, &variable.name, reason, hint));
    }
    let mut reader = variable.open(file, order)?;
    let mut turned = Vec::new();
    for _ in 0..if bytes == 0 { 0 } else { n } {
        let block = block((file, variable), &mut reader, bytes)?;
        turn(&block, &lengths, numbers.dtype, &mut turned);
        offset.get_or_insert(spool.append(&turned)?);
    }
    // Reading to the end verifies the checksum of a compressed variable.
    let mut rest = reader.take(MAX_FILE_BYTES);
    std::io::copy(&mut rest, &mut std::io::sink()).map_err(|error| variable.malformed(file, &error))?;
    Ok(offset.unwrap_or(0))
}

/// The next `bytes` bytes of a variable. Memory grows only with the bytes that the file contains.
fn block((file, variable): (&OpenFile, &Variable), reader: &mut dyn Read, bytes: u64) -> Result<Vec<u8>, ConvertError> {
    let mut block = Vec::new();
    while to_u64(block.len()) < bytes {
        let wanted = PIECE_BYTES.min(bytes - to_u64(block.len()));
        let read = Read::take(&mut *reader, wanted).read_to_end(&mut block);
        if read.map_err(|error| variable.malformed(file, &error))? == 0 {
            let reason = format!("expected {bytes} more bytes of numbers, found {}", block.len());
            return Err(ConvertError::malformed(&file.path, &variable.name, reason));
        }
    }
    Ok(block)
}

/// The line of Python that writes an image with bands and its map of classes, as in scenes of remote sensing (Indian Pines), for a
/// folder of MAT-files. `None` unless the folder has a cube of numbers and exactly one map of its height and width.
pub(super) fn scene(folder: &Path) -> Option<String> {
    let mut names = names_in(folder);
    names.retain(|name| DataFormat::from_file_name(name) == Some(DataFormat::Matlab));
    names.sort_unstable();
    let mut found: Vec<(String, Vec<u64>)> = Vec::new();
    for name in names.into_iter().take(MAX_VECTORS) {
        let Ok(file) = OpenFile::open(&folder.join(&name)) else { continue };
        let Ok((_, variables)) = open(&file) else { continue };
        let line = |variable: &Variable| format!("scipy.io.loadmat({name:?})[{:?}]", variable.name);
        found.extend(arrays(&variables).map(|(variable, numbers)| (line(variable), numbers.shape.clone())));
    }
    let maps_of = |cube: &[u64]| {
        let maps = found.iter().filter(|(_, shape)| cube.len() == 3 && cube.get(..2) == Some(shape.as_slice()));
        maps.filter(|(_, shape)| vector(shape).is_none()).collect::<Vec<_>>()
    };
    let (cube, map) = found.iter().find_map(|(line, shape)| match maps_of(shape).as_slice() {
        [(map, _)] => Some((line, map)),
        _ => None,
    })?;
    Some(format!(
        "to pack the scene as one image with its map of classes as the mask, run in Python in this folder: import numpy, scipy.io; x = {cube}; y = {map}; numpy.savez(\"scene.npz\", images=numpy.ascontiguousarray(x[None]), masks=numpy.ascontiguousarray(y[None])); and convert scene.npz; for patches, cut x and y into arrays of one size"
    ))
}

/// The names and numbers of all variables in a small file, if each variable is a row or column of whole numbers. `None`
/// for other files, and for files that are big-endian or cannot be read.
pub(super) fn vectors(path: &Path) -> Option<Vec<(String, Vec<i64>)>> {
    let file = OpenFile::open(path).ok()?;
    let (order, variables) = open(&file).ok()?;
    let small = variables.len() <= MAX_VECTORS && !order.is_big;
    let vector = |variable: &Variable| {
        let Content::Numbers(numbers) = &variable.content else { return None };
        vector(&numbers.shape).filter(|_| small && numbers.bytes <= MAX_VECTOR_BYTES)?;
        let mut reader = variable.open(&file, order).ok()?;
        let block = block((&file, variable), &mut reader, numbers.bytes).ok()?;
        let items = block.chunks_exact(to_usize(numbers.dtype.size()));
        let ids: Option<Vec<i64>> = items.map(|item| Scalar::of(numbers.dtype, item)?.class_id()).collect();
        Some((variable.name.clone(), ids?))
    };
    variables.iter().map(vector).collect()
}

/// Writes the numbers of `block` to `turned` in another order: the last dimension varies fastest, instead of the first.
fn turn(block: &[u8], lengths: &[u64], dtype: DType, turned: &mut Vec<u8>) {
    let size = to_usize(dtype.size());
    let lengths: Vec<usize> = lengths.iter().map(|length| to_usize(*length)).collect();
    let steps: Vec<usize> =
        lengths.iter().scan(size, |step, length| Some(std::mem::replace(step, step.saturating_mul(*length)))).collect();
    turned.clear();
    let (mut at, mut position) = (0, vec![0; lengths.len()]);
    while let Some(number) = block.get(at..at + size) {
        turned.extend_from_slice(number);
        let mut place = lengths.len();
        loop {
            let Some(before) = place.checked_sub(1) else { return };
            place = before;
            position[place] += 1;
            at += steps[place];
            if position[place] < lengths[place] {
                break;
            }
            at -= steps[place] * lengths[place];
            position[place] = 0;
        }
    }
}

#[cfg(test)]
mod tests;
