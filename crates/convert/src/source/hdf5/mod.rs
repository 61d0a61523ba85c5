//! HDF5: the datasets of one file or of several similar files.
//!
//! The library only locates the data. Reading and unpacking happen without it, because it cannot run on several threads at a time.

mod chunks;
mod file;
mod header;
mod heap;
mod pictures;
mod rows;

use packds_system::{to_u64, to_usize};
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use self::file::{Element, H5Dataset, H5File, LINK};
use self::rows::Unpacker;
use super::ListOptions;
use super::beside::{Pair, is_mask_beside, pairs};
use super::found::{Found, check_same_classes};
use super::packed::{Piece, Unpack, no_piece};
use super::roles::{is_image_name, is_label_name};
use super::shards::Shards;
use super::spool::Spool;
use super::store::{ArrayType, Content, Contents, RowPart, SpanFiles, Spans, Store};
use super::tree::{self, Node, NodeKind, Tree};
use super::warning::Warning;
use super::whole::FileValue;
use crate::data_format::DataFormat;
use crate::error::{ConvertError, quoted};
use crate::opt::LABEL_KEY;

/// The hint for datasets whose types are not supported.
const READABLE: &str = "write each column as a separate dataset of numbers or strings: in Python, file.create_dataset('images', data=table['image'])";

/// Maximum size of strings kept in memory, in bytes.
const MAX_TEXT_BYTES: usize = 1 << 32;

/// One part for each split in the file names. If the file names mention no split, the dataset names of the first file decide.
pub(crate) fn parts(shards: Shards) -> Result<Vec<Shards>, ConvertError> {
    let by_name = shards.clone().by_split();
    if by_name.iter().any(|part| part.split.is_some()) {
        return Ok(by_name);
    }
    let (pairs, _) = pairs_of(&shards.files)?;
    let Some(first) = pairs.first().map(|pair| &pair.images) else {
        return Ok(vec![shards]);
    };
    guarded(first, || {
        let file = H5File::open(first)?;
        if pictures::are_all(&file) && file.metadata()?.is_none() {
            return Ok(pictures::parts(shards.clone(), &file));
        }
        tree::parts(shards.clone(), &nodes(&file.datasets), file.metadata()?.is_some())
    })
}

/// The image files with their label files. Files of masks next to image files are left out, with a warning for each. In
/// PCam, only one split has such a file, but a field must have an item for each sample.
fn pairs_of(files: &[PathBuf]) -> Result<(Vec<Pair>, Vec<Warning>), ConvertError> {
    let (masks, pairs): (Vec<Pair>, _) =
        pairs(files)?.into_iter().partition(|pair| is_mask_beside(&pair.images, files));
    let warning = |pair: Pair| Warning::LeftOut {
        field: "mask".to_owned(),
        reason: format!(
            "masks in a separate file ('{}') are not read: copy the dataset into the image file",
            pair.images.file_name().unwrap_or_default().to_string_lossy()
        ),
    };
    Ok((pairs, masks.into_iter().map(warning).collect()))
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    guarded(&part.root, || {
        let (pairs, masks) = pairs_of(&part.files)?;
        let files: Result<Vec<H5File>, _> = pairs.iter().map(|p| H5File::open(&p.images)).collect();
        let files = files?;
        if let Some(first) = files.first() {
            let has_keys = options.image_key.is_some() || options.label_key.is_some() || options.mask_key.is_some();
            if !has_keys && pictures::are_all(first) && first.metadata()?.is_none() {
                return pictures::read(part, files, options);
            }
            refuse_unreadable(first)?;
        }
        let links: Vec<Warning> = files.iter().flat_map(H5File::link_warnings).collect();
        let mut files = Files::of(files, options)?;
        for labels in pairs.iter().filter_map(|pair| pair.labels.as_ref()) {
            files.take_labels(H5File::open(labels)?, part)?;
        }
        let split = part.split.as_deref();
        let mut found = tree::read(&mut files, DataFormat::Hdf5, &part.root, split, options)?;
        found.warnings.extend(links);
        found.warnings.extend(masks);
        Ok(found)
    })
}

/// The values of a file that holds one sample. Single values become arrays of one element.
pub(crate) fn read_whole(path: &Path, options: &ListOptions) -> Result<Vec<FileValue>, ConvertError> {
    guarded(path, || {
        let mut file = H5File::open(path)?;
        for dataset in file.datasets.iter_mut().filter(|dataset| dataset.shape.is_empty()) {
            dataset.shape.push(1);
        }
        tree::read_whole(&mut Files::of(vec![file], options)?)
    })
}

/// A file whose datasets another process unpacks.
struct Pieces {
    file: H5File,
    /// The last dataset, and how its rows are unpacked.
    last: Mutex<Option<(u64, Arc<Unpacker>)>>,
}

/// Opens a file to unpack some rows of its datasets.
pub(super) fn pieces(path: &Path) -> Result<Arc<dyn Unpack>, ConvertError> {
    guarded(path, || Ok(Arc::new(Pieces { file: H5File::open(path)?, last: Mutex::new(None) }) as Arc<dyn Unpack>))
}

impl Unpack for Pieces {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        let (file, path) = (&self.file, &self.file.open.path);
        let dataset = file.datasets.get(to_usize(piece.place)).ok_or_else(|| no_piece(path, piece))?;
        let bytes = guarded(path, || {
            let rows = piece.start.checked_add(piece.rows).filter(|end| dataset.shape.first() >= Some(end));
            rows.ok_or_else(|| no_piece(path, piece))?;
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let unpacker = match &*last {
                Some((number, unpacker)) if *number == piece.place => Arc::clone(unpacker),
                _ => Arc::clone(&last.insert((piece.place, Arc::new(Unpacker::of(file, dataset)?))).1),
            };
            drop(last);
            unpacker.rows(file, dataset, (piece.start, piece.rows))
        })?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

/// Refuses a file without anything to read. The error names what the file contains instead.
fn refuse_unreadable(file: &H5File) -> Result<(), ConvertError> {
    let path = &file.open.path;
    let is_image = |path: &str| path.rsplit('/').next().is_some_and(is_image_name);
    let has_images = file.datasets.iter().any(|dataset| is_image(&dataset.path));
    let mut links = file.links.iter().filter(|link| !has_images && (file.datasets.is_empty() || is_image(link)));
    if let Some(link) = links.next() {
        return Err(ConvertError::unsupported(path, link, LINK, "pass the file that the link points to"));
    }
    let other = |dataset: &H5Dataset| match &dataset.element {
        Element::Other(reason) => Some((dataset.path.clone(), reason.clone())),
        _ => None,
    };
    let others: Option<Vec<(String, String)>> = file.datasets.iter().map(other).collect();
    match others.unwrap_or_default().into_iter().next() {
        Some((place, reason)) => Err(ConvertError::unsupported(path, &place, reason, READABLE)),
        None => Ok(()),
    }
}

/// Runs `work` and catches panics: the library's bindings may panic on damaged files.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, ConvertError>) -> Result<T, ConvertError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ConvertError::malformed(path, "", "the HDF5 library cannot read it")))
}

fn nodes(datasets: &[H5Dataset]) -> Vec<Node> {
    datasets.iter().map(|dataset| node(&dataset.path, dataset)).collect()
}

fn node(path: &str, dataset: &H5Dataset) -> Node {
    Node { path: path.to_owned(), rows: dataset.shape.first().copied().unwrap_or(0), kind: kind(dataset) }
}

/// Adds the rows of the same dataset in the next file. Both datasets must be of the same kind.
fn extend(to: &mut Node, file: &H5File, dataset: &H5Dataset) -> Result<(), ConvertError> {
    let next = node(&dataset.path, dataset);
    if next.kind != to.kind {
        let (expected, found) = (to.kind.describe(), next.kind.describe());
        let reason = format!("expected {expected} as in the first file, found {found}");
        let hint = "pass files with matching datasets, or convert each one separately";
        return Err(ConvertError::contradictory(&file.open.path, &dataset.path, reason, hint));
    }
    to.rows = to.rows.saturating_add(next.rows);
    Ok(())
}

fn kind(dataset: &H5Dataset) -> NodeKind {
    let Some((_, row)) = dataset.shape.split_first() else {
        return NodeKind::Other("a single value, not an array of samples".to_owned());
    };
    match &dataset.element {
        Element::Number { dtype, .. } => NodeKind::Array(ArrayType { dtype: *dtype, shape: row.to_vec() }),
        Element::FixedText(_) | Element::Text if row.is_empty() => NodeKind::Texts,
        Element::Bytes if row.is_empty() => NodeKind::Bytes,
        Element::FixedText(_) | Element::Text | Element::Bytes => {
            NodeKind::Other("variable-length strings or bytes in several dimensions".to_owned())
        }
        Element::Other(reason) => NodeKind::Other(reason.clone()),
    }
}

/// Files with the same datasets, in order.
struct Files<'a> {
    files: Vec<H5File>,
    /// Label datasets from separate files. If there are any, they form the last node.
    labels: Vec<(H5File, H5Dataset)>,
    nodes: Vec<Node>,
    options: &'a ListOptions,
}

impl<'a> Files<'a> {
    fn of(files: Vec<H5File>, options: &'a ListOptions) -> Result<Self, ConvertError> {
        let mut nodes = files.first().map(|f| nodes(&f.datasets)).unwrap_or_default();
        for file in files.iter().skip(1) {
            for node in &mut nodes {
                let same = file.datasets.iter().find(|d| d.path == node.path);
                let same = same.ok_or_else(|| {
                    let found: Vec<String> = file.datasets.iter().map(|d| d.path.clone()).collect();
                    let reason = format!(
                        "expected the dataset '{}' as in the previous files, found {}",
                        node.path,
                        quoted(&found)
                    );
                    let hint = "pass files with matching datasets; labels in separate files are found by name, such as y_train.h5 next to x_train.h5";
                    ConvertError::contradictory(&file.open.path, "", reason, hint)
                })?;
                extend(node, file, same)?;
            }
        }
        Ok(Self { files, labels: Vec::new(), nodes, options })
    }

    /// Takes the labels from the file next to the image file. Does nothing if only the image file was passed and no labels can be
    /// taken.
    ///
    /// # Errors
    /// If both files were passed, but the label file has no labels or the image file has labels too. Also if the labels do not match
    /// those of earlier files.
    fn take_labels(&mut self, mut beside: H5File, part: &Shards) -> Result<(), ConvertError> {
        let key = self.options.label_key.as_deref();
        let is_label = |path: &str| match key {
            Some(key) => path == key,
            None => path.rsplit('/').next().is_some_and(is_label_name),
        };
        let own = match self.labels.is_empty() {
            true => self.nodes.as_slice(),
            false => &[],
        };
        let place = match beside.datasets.as_slice() {
            [_] => Some(0),
            datasets => datasets.iter().position(|d| is_label(&d.path)),
        };
        let has_own = own.iter().any(|node| is_label(&node.path));
        let Some(place) = place.filter(|_| !has_own) else {
            if part.files.len() == 1 {
                // Only the image file was passed.
                return Ok(());
            }
            let found: Vec<String> = beside.datasets.iter().map(|d| d.path.clone()).collect();
            let found = quoted(&found);
            let reason = match place {
                Some(_) => format!("expected no separate label file, because the image file has labels, found {found}"),
                None => format!("cannot tell which dataset of this file has the labels, found {found}"),
            };
            let hint = format!("pass only the image file, or choose the dataset of labels with {LABEL_KEY}");
            return Err(ConvertError::contradictory(&beside.open.path, "", reason, hint));
        };
        let dataset = beside.datasets.swap_remove(place);
        match self.nodes.last_mut().filter(|_| !self.labels.is_empty()) {
            None => self.nodes.push(node(key.unwrap_or("label"), &dataset)),
            Some(last) => extend(last, &beside, &dataset)?,
        }
        self.labels.push((beside, dataset));
        Ok(())
    }

    /// The dataset of a node in each file, with the file.
    fn datasets(&self, node: usize) -> impl Iterator<Item = (&H5File, &H5Dataset)> {
        let path = self.nodes.get(node).map_or("", |node| node.path.as_str());
        let is_beside = !self.labels.is_empty() && node + 1 == self.nodes.len();
        let own = self.files.iter().filter(move |_| !is_beside);
        let own = own.filter_map(move |file| {
            let dataset = file.datasets.iter().find(|d| d.path == path)?;
            Some((file, dataset))
        });
        let beside = self.labels.iter().filter(move |_| is_beside);
        own.chain(beside.map(|(file, dataset)| (file, dataset)))
    }

    /// The rows of each dataset of a node, unpacked if necessary.
    fn parts(&self, node: usize) -> Result<Vec<(&H5File, RowPart)>, ConvertError> {
        let mut parts = Vec::new();
        for (file, dataset) in self.datasets(node) {
            let part = match rows::in_place(file, dataset)? {
                Some(part) => part,
                None => {
                    let mut spool = Spool::create(&self.options.spool_folder())?;
                    rows::unpack(file, dataset, false, self.options, &mut spool)?;
                    spool.into_part(&file.open.path, rows::count(file, dataset)?, rows::row_bytes(file, dataset)?)?
                }
            };
            parts.push((file, part));
        }
        Ok(parts)
    }
}

impl Tree for Files<'_> {
    fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    fn rows(&mut self, node: usize) -> Result<Vec<RowPart>, ConvertError> {
        let parts = self.parts(node)?;
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }

    fn files(&mut self, node: usize, content: Content) -> Result<Arc<dyn Store>, ConvertError> {
        let (mut spans, mut files) = (Vec::new(), Vec::new());
        for (number, (file, part)) in (0_u32..).zip(self.parts(node)?) {
            spans.extend(heap::spans(file, &part, number)?);
            files.push(H5File::reopen(&file.open)?);
        }
        Ok(Arc::new(Spans { files: SpanFiles::open(files), spans, contents: Contents::All(content) }))
    }

    fn texts(&mut self, node: usize) -> Result<Vec<Vec<u8>>, ConvertError> {
        let mut texts = Vec::new();
        let mut bytes = 0_usize;
        let elements: Vec<Element> = self.datasets(node).map(|(_, d)| d.element.clone()).collect();
        for ((file, part), element) in self.parts(node)?.into_iter().zip(elements) {
            let malformed = |reason: String| {
                let path = self.nodes.get(node).map_or("", |node| node.path.as_str());
                ConvertError::malformed(&file.open.path, path, reason)
            };
            let spans = match element {
                Element::FixedText(_) => None,
                _ => Some(heap::spans(file, &part, 0)?),
            };
            for idx in 0..part.rows {
                let mut text = Vec::new();
                let read = match spans.as_ref().map(|spans| spans.get(idx)) {
                    Some(Some(span)) => file.open.append_at(span.offset, span.bytes, &mut text),
                    Some(None) => Ok(()),
                    None => {
                        let row = to_u64(idx);
                        let at = part.offset.saturating_add(row.saturating_mul(part.stride));
                        part.file.append_at(at, part.stride, &mut text)
                    }
                };
                read.map_err(|e| malformed(e.to_string()))?;
                // Short texts are padded with zero bytes.
                while text.last().is_some_and(|b| *b == 0) {
                    text.pop();
                }
                bytes = bytes.saturating_add(text.len());
                if bytes > MAX_TEXT_BYTES {
                    return Err(malformed("the strings take more than 4 GiB".to_owned()));
                }
                texts.push(text);
            }
        }
        Ok(texts)
    }

    fn classes(&self, node: usize) -> Result<Vec<String>, ConvertError> {
        let mut datasets = self.datasets(node);
        let first = datasets.next();
        let classes = first.map(|(file, dataset)| file.classes(dataset));
        let classes = classes.transpose()?.unwrap_or_default();
        for (file, dataset) in datasets {
            check_same_classes(&file.open.path, &classes, &file.classes(dataset)?)?;
        }
        Ok(classes)
    }

    fn n_files(&self) -> usize {
        self.files.len()
    }

    fn metadata(&self) -> Result<Option<String>, ConvertError> {
        match self.files.first() {
            Some(file) => file.metadata(),
            None => Ok(None),
        }
    }
}
