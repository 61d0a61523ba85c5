//! Files with a separate HDF5 dataset for each image, such as `/cat/0001`. Groups are classes.
//!
//! Each dataset is either an array of pixels, or an image file stored as an opaque value (`numpy.void`) or as bytes in a `u8`
//! array.

use packds_system::to_u64;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ::hdf5::dataset::Layout;
use packds_pixels::ImageFormat;

use super::file::{Element, H5Dataset, H5File};
use super::rows;
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::source::ListOptions;
use crate::source::found::{Found, FoundLabels, LabelValues, Names};
use crate::source::roles::{is_image_name, is_label_name, is_mask_name};
use crate::source::shards::Shards;
use crate::source::split::is_split_name;
use crate::source::spool::Spool;
use crate::source::store::{ArrayType, Content, Contents, OpenFile, PixelShape, Span, SpanFiles, Spans};
use crate::source::warning::Warning;

/// Number of leading bytes needed to recognize an image file.
const SNIFFED: u64 = 16;

/// Whether every dataset of a file is one image. Only `u8` arrays are accepted as pixels, because other arrays are
/// usually weights.
pub(super) fn are_all(file: &H5File) -> bool {
    let is_named = |dataset: &H5Dataset| is_image_name(name_of(&dataset.path));
    let is_picture = |dataset: &H5Dataset| content(file, dataset).is_some();
    file.datasets.len() > 1 && !file.datasets.iter().any(is_named) && file.datasets.iter().all(is_picture)
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The content of a dataset, if the dataset is one image.
fn content(file: &H5File, dataset: &H5Dataset) -> Option<Content> {
    if is_file(file, dataset) {
        return Some(Content::File);
    }
    match dataset.element {
        Element::Number { dtype, .. } => {
            let array = ArrayType { dtype, shape: dataset.shape.clone() };
            PixelShape::of(&array).map(Content::Pixels)
        }
        _ => None,
    }
}

/// Whether a dataset is an image file, stored as an opaque value or as a list of bytes.
fn is_file(file: &H5File, dataset: &H5Dataset) -> bool {
    let is_bytes = match (&dataset.element, dataset.shape.as_slice()) {
        (Element::Other(_), []) => true,
        (Element::Number { dtype, .. }, [_]) => dtype.size() == 1,
        _ => false,
    };
    let at = dataset.dataset.offset().filter(|_| is_bytes && dataset.dataset.layout() == Layout::Contiguous);
    let head = at.and_then(|at| file.open.bytes_at(at, SNIFFED).ok());
    head.is_some_and(|head| ImageFormat::sniff(&head).is_some())
}

/// The split of a dataset, in lower case, and the group below it.
fn group_of(path: &str) -> (Option<String>, &str) {
    let group = path.rsplit_once('/').map_or("", |(group, _)| group);
    let (first, rest) = group.split_once('/').unwrap_or((group, ""));
    match is_split_name(first.as_bytes()) {
        true => (Some(first.to_ascii_lowercase()), rest),
        false => (None, group),
    }
}

/// One part for each split if every image is in a group named after a split, otherwise the whole source.
pub(super) fn parts(whole: Shards, file: &H5File) -> Vec<Shards> {
    let splits: Option<Vec<String>> = file.datasets.iter().map(|dataset| group_of(&dataset.path).0).collect();
    let Some(mut splits) = splits else { return vec![whole] };
    splits.sort_unstable();
    splits.dedup();
    splits.into_iter().map(|split| Shards { split: Some(split), ..whole.clone() }).collect()
}

/// Finds the samples, sorted by path in each file.
pub(super) fn read(part: &Shards, files: Vec<H5File>, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut pictures = Pictures {
        options,
        opened: Vec::new(),
        spans: Vec::new(),
        contents: Contents::All(Content::File),
        paths: Vec::new(),
        classes: classes(&files, &part.root)?,
        ids: Vec::new(),
    };
    for file in &files {
        pictures.add(file, part.split.as_deref())?;
    }
    let n = pictures.spans.len();
    let (values, classes) = (LabelValues::Ids(pictures.ids), pictures.classes);
    let labels = (!classes.is_empty()).then(|| FoundLabels { name: "label".to_owned(), values, classes });
    let store = Spans { files: SpanFiles::open(pictures.opened), spans: pictures.spans, contents: pictures.contents };
    let found = Found {
        labels,
        warnings: vec![Warning::DatasetEach { n }],
        ..Found::new(DataFormat::Hdf5, Arc::new(store), Names::Paths(pictures.paths))
    };
    found.leave_out(&part.root, options)
}

/// Images being collected.
struct Pictures<'a> {
    options: &'a ListOptions,
    opened: Vec<OpenFile>,
    spans: Vec<Span>,
    contents: Contents,
    paths: Vec<Vec<u8>>,
    classes: Vec<String>,
    ids: Vec<i64>,
}

impl Pictures<'_> {
    fn add(&mut self, file: &H5File, split: Option<&str>) -> Result<(), ConvertError> {
        let own = self.add_file(H5File::reopen(&file.open)?);
        let mut spool = Spool::create(&self.options.spool_folder())?;
        // Images that must be unpacked are written to a temporary file. Its index follows the index of this file.
        let (unpacked, mut end) = (own + 1, 0);
        for dataset in &file.datasets {
            let (own_split, group) = group_of(&dataset.path);
            if split.is_some() && own_split.as_deref() != split {
                continue;
            }
            let Some(content) = content(file, dataset) else {
                let hint = "pass files whose datasets are all single images, or convert each file separately";
                let reason = "expected a single image, as in the first file";
                return Err(ConvertError::contradictory(&file.open.path, &dataset.path, reason, hint));
            };
            let span = match place(file, dataset)? {
                Some((offset, bytes)) => Span { file: own, offset, bytes },
                None => {
                    rows::unpack(file, dataset, true, self.options, &mut spool)?;
                    let bytes = rows::row_bytes(file, dataset)?.saturating_mul(to_u64(rows::count(file, dataset)?));
                    let span = Span { file: unpacked, offset: end, bytes };
                    end = end.saturating_add(bytes);
                    span
                }
            };
            self.contents.push(self.spans.len(), content);
            self.spans.push(span);
            self.paths.push(dataset.path.clone().into_bytes());
            let class = self.classes.binary_search_by(|class| class.as_str().cmp(group));
            self.ids.push(class.map_or(0, |class| i64::try_from(class).unwrap_or(0)));
        }
        self.add_file(spool.finish(&file.open.path)?);
        Ok(())
    }

    /// Adds a file with images. Returns its index.
    fn add_file(&mut self, file: OpenFile) -> u32 {
        self.opened.push(file);
        u32::try_from(self.opened.len() - 1).unwrap_or(u32::MAX)
    }
}

/// The class names: the groups of all splits, sorted. Empty if there are fewer than two groups.
fn classes(files: &[H5File], source: &Path) -> Result<Vec<String>, ConvertError> {
    let datasets = files.iter().flat_map(|file| &file.datasets);
    let groups: BTreeSet<&str> = datasets.map(|dataset| group_of(&dataset.path).1).collect();
    if groups.len() < 2 {
        return Ok(Vec::new());
    }
    let is_role = |name: &str| is_image_name(name) || is_mask_name(name) || is_label_name(name);
    let is_class = |group: &&str| !group.is_empty() && !is_role(name_of(group));
    let classes: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
    if !groups.iter().all(is_class) {
        let reason = format!("each dataset is one image, but not every group can be a class: {}", quoted(&classes));
        let hint = "put the images of each class into their own group, or write one array of all images and one array of all labels or masks";
        return Err(ConvertError::unsupported(source, "", reason, hint));
    }
    Ok(classes)
}

/// Where the bytes of an image are in the file. `None` if they must be unpacked.
fn place(file: &H5File, dataset: &H5Dataset) -> Result<Option<(u64, u64)>, ConvertError> {
    if !dataset.shape.is_empty() {
        let part = rows::in_place(file, dataset)?;
        return Ok(part.map(|part| (part.offset, part.stride.saturating_mul(to_u64(part.rows)))));
    }
    rows::refuse_other_files(file, dataset)?;
    let size = dataset.dataset.dtype().map_or(0, |dtype| to_u64(dtype.size()));
    let offset = dataset.dataset.offset();
    let found = offset.filter(|at| at.checked_add(size).is_some_and(|end| end <= file.open.bytes));
    let offset =
        found.ok_or_else(|| dataset.malformed(file, format!("expected {size} bytes of pixels inside the file")))?;
    Ok(Some((offset, size)))
}
