//! CIFAR-10 and CIFAR-100: binary files or Python pickles. Pickles are parsed without executing code.

mod python;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ListOptions;
use super::arrays::{Described, StoredArray};
use super::column::{ColumnValues, SourceColumn};
use super::found::{Found, FoundLabels, LabelValues, Names};
use super::npy::Elements;
use super::numbers::read_ids;
use super::shards::Shards;
use super::store::OpenFile;
use super::there::{first_there, is_there_as_file, text_file};
use super::warning::Warning;
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use packds_format::DType;

/// Three colour planes of 32 by 32 pixels.
const SHAPE: [u64; 3] = [3, 32, 32];
const IMAGE_BYTES: u64 = 3072;
const U8: Elements = Elements::Numbers { dtype: DType::U8, swapped: false };

/// The training and test sets of a folder. A single file has no split name.
pub(crate) fn parts(source: &Path) -> Result<Vec<Shards>, ConvertError> {
    if !source.is_dir() {
        return Ok(vec![Shards::one(source)]);
    }
    let numbered = |ending: &str| -> Result<Vec<PathBuf>, ConvertError> {
        let mut found = Vec::new();
        for path in (1..=9).map(|n| source.join(format!("data_batch_{n}{ending}"))) {
            if is_there_as_file(&path)? {
                found.push(path);
            }
        }
        Ok(found)
    };
    let named = |names: &[&str]| -> Result<Vec<PathBuf>, ConvertError> {
        let found = first_there(names.iter().map(|name| source.join(name)))?;
        Ok(found.into_iter().collect())
    };
    let sets = [
        ("test", vec![named(&["test_batch.bin", "test_batch", "test.bin", "test"])?]),
        ("train", vec![numbered(".bin")?, numbered("")?, named(&["train.bin", "train"])?]),
    ];
    let mut parts = Vec::new();
    for (split, files) in sets {
        if let Some(files) = files.into_iter().find(|files| !files.is_empty()) {
            parts.push(Shards { root: source.to_owned(), files, split: Some(split.to_owned()) });
        }
    }
    if parts.is_empty() {
        let reason = "expected data_batch_1, test_batch, train or test, with or without .bin";
        return Err(ConvertError::malformed(source, "", reason));
    }
    Ok(parts)
}

/// The field for the twenty superclasses of CIFAR-100.
const COARSE: &str = "coarse_label";

/// The contents of one or more files.
#[derive(Default)]
struct Batches {
    images: Option<StoredArray>,
    labels: Vec<i64>,
    /// CIFAR-100 only.
    coarse: Vec<i64>,
    names: Vec<Vec<u8>>,
}

impl Batches {
    /// Adds the images of the next file.
    fn take_images(&mut self, array: StoredArray) {
        match &mut self.images {
            None => self.images = Some(array),
            Some(images) => images.parts.extend(array.parts),
        }
    }
}

/// Whether a file is named like a published CIFAR file.
pub(crate) fn is_cifar_name(name: &str) -> bool {
    name.starts_with("data_batch") || matches!(name.trim_end_matches(".bin"), "test_batch" | "train" | "test")
}

/// Whether a file starts like a pickle of protocol 2 to 5, or like a dictionary pickled with protocol 0 or 1.
pub(crate) fn is_pickled_dictionary(head: &[u8]) -> bool {
    [&b"\x80"[..], b"(d", b"}"].iter().any(|start| head.starts_with(start))
}

/// Finds the samples of a part.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut batches = Batches::default();
    for path in &part.files {
        let is_binary = path.extension().is_some_and(|e| e == "bin");
        let file = Arc::new(OpenFile::open(path).map_err(ConvertError::io(path))?);
        if is_binary {
            read_binary(&file, &mut batches)?;
        } else {
            python::read(&file, options, &mut batches)?;
        }
    }
    let images = batches.images.as_ref().and_then(StoredArray::store);
    let images = images.ok_or_else(|| ConvertError::malformed(&part.root, "", "it contains no samples"))?;
    let first = part.files.first().map_or(&part.root, |file| file);
    let dataset = if part.root.is_dir() { part.split.clone() } else { None };
    let dataset = dataset.unwrap_or_else(|| {
        let stem = first.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    });
    let is_100 = !batches.coarse.is_empty();
    let kinds = if is_100 { &["label", COARSE][..] } else { &["label"] };
    options.check_own_keys(&part.root, kinds)?;
    let is_coarse = options.label_key.as_deref() == Some(COARSE);
    let (labels, other, other_name) = match is_coarse {
        true => (batches.coarse, batches.labels, "fine_label"),
        false => (batches.labels, batches.coarse, COARSE),
    };
    let other_names = if is_100 { class_names(first, true, !is_coarse)? } else { Vec::new() };
    let lost =
        (!other_names.is_empty()).then(|| Warning::NamesLeftOut { field: other_name.to_owned(), names: other_names });
    let texts = is_100.then(|| SourceColumn { name: other_name.to_owned(), values: ColumnValues::I64(other) });
    let mut unique: Vec<&[u8]> = batches.names.iter().map(Vec::as_slice).collect();
    unique.sort_unstable();
    unique.dedup();
    // Names that are empty or not unique do not identify samples.
    let named = batches.names.len() == images.len()
        && unique.len() == images.len()
        && unique.first().is_some_and(|name| !name.is_empty());
    Ok(Found {
        labels: Some(FoundLabels {
            name: "label".to_owned(),
            values: LabelValues::Ids(labels),
            classes: class_names(first, is_100, is_coarse)?,
        }),
        texts: texts.into_iter().collect(),
        warnings: lost.into_iter().collect(),
        ..Found::new(
            DataFormat::Cifar,
            images,
            if named { Names::Paths(batches.names) } else { Names::Numbered(dataset) },
        )
    })
}

/// Reads records of one label (or a coarse and a fine label) followed by pixels.
fn read_binary(file: &Arc<OpenFile>, batches: &mut Batches) -> Result<(), ConvertError> {
    let name = file.path.file_name().and_then(|name| name.to_str());
    let fits = |labels: u64| file.bytes.is_multiple_of(IMAGE_BYTES + labels);
    // Published files are recognized by name, others by length.
    let n_labels = match name {
        Some("train.bin" | "test.bin") => 2,
        Some(name) if name.contains("batch") => 1,
        _ if !fits(1) && fits(2) => 2,
        _ => 1,
    };
    let record = IMAGE_BYTES + n_labels;
    if !fits(n_labels) || file.bytes == 0 {
        let reason = format!(
            "expected whole records of {record} bytes, found {} bytes, which leaves a remainder of {}",
            file.bytes,
            file.bytes % record
        );
        return Err(ConvertError::malformed(&file.path, "", reason));
    }
    let n = file.bytes / record;
    let array = |name: &str, shape: &[u64], offset: u64| {
        let described = Described {
            name,
            elements: U8,
            shape,
            offset,
            room: file.bytes.saturating_sub(offset),
            stride: Some(record),
        };
        StoredArray::new(file, &described)
    };
    let labels = |name: &str, offset: u64| -> Result<Vec<i64>, ConvertError> {
        let array = array(name, &[n], offset)?;
        let ids = array.map(|array| read_ids(&array)).transpose()?;
        Ok(ids.flatten().unwrap_or_default())
    };
    batches.labels.extend(labels("label", n_labels - 1)?);
    if n_labels == 2 {
        batches.coarse.extend(labels("coarse_label", 0)?);
    }
    let [c, h, w] = SHAPE;
    if let Some(images) = array("image", &[n, c, h, w], n_labels)? {
        batches.take_images(images);
    }
    Ok(())
}

/// The class names, read from a file next to the samples.
fn class_names(beside: &Path, is_100: bool, is_coarse: bool) -> Result<Vec<String>, ConvertError> {
    let (text, pickle, key) = match (is_100, is_coarse) {
        (true, true) => ("coarse_label_names.txt", "meta", "coarse_label_names"),
        (true, false) => ("fine_label_names.txt", "meta", "fine_label_names"),
        (false, _) => ("batches.meta.txt", "batches.meta", "label_names"),
    };
    if let Some(text) = text_file(&beside.with_file_name(text))? {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        return Ok(lines.map(str::to_owned).collect());
    }
    python::names(&beside.with_file_name(pickle), key)
}

#[cfg(test)]
mod tests;
