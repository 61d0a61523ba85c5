//! Random access to the items of a source: one item per sample, in any order, from any thread.
//!
//! Each format's module finds the items and builds a [`Store`] of them.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_format::DType;
use packds_system::{open_regular, to_u64, to_usize};
use serde::{Deserialize, Serialize};

use super::packed::Origin;
use super::paths::{PathTable, as_path};
use super::portable::{Portable, per_item};
use crate::error::ConvertError;
use crate::sample::SampleError;

/// Element type and dimensions of an array.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArrayType {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
}

impl ArrayType {
    /// Bytes of one array. `None` if the number exceeds 64 bits.
    pub(crate) fn bytes(&self) -> Option<u64> {
        let n = |n: u64, &d: &u64| n.checked_mul(d);
        self.shape.iter().try_fold(self.dtype.size(), n)
    }

    /// Whether an item is a single number.
    pub(crate) fn is_one_number(&self) -> bool {
        is_one(&self.shape)
    }
}

/// Whether items of this shape have exactly one value.
pub(crate) fn is_one(shape: &[u64]) -> bool {
    shape.iter().all(|n| *n == 1)
}

/// The size of an image of `u8` pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PixelShape {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// The number of channels: 1 or 3.
    pub(crate) channels: u8,
    /// The order of the dimensions: true for channels, height, width; false for height, width, channels.
    pub(crate) planar: bool,
}

impl PixelShape {
    /// The size of the image, if an array of this type is an image: `u8` with `[H, W]`, `[H, W, 1 or 3]` or
    /// `[1 or 3, H, W]`. If both the first and the last dimension are 1 or 3, the channels are last.
    pub(crate) fn of(array: &ArrayType) -> Option<Self> {
        let (height, width, channels, planar) = match (array.dtype, array.shape.as_slice()) {
            (DType::U8, &[h, w]) => (h, w, 1, false),
            (DType::U8, &[h, w, c @ (1 | 3)]) => (h, w, c, false),
            (DType::U8, &[c @ (1 | 3), h, w]) => (h, w, c, true),
            _ => return None,
        };
        Some(Self {
            width: u32::try_from(width).ok().filter(|n| *n > 0)?,
            height: u32::try_from(height).ok().filter(|n| *n > 0)?,
            channels: u8::try_from(channels).ok()?,
            planar,
        })
    }

    /// The pixels' array type.
    pub(crate) fn array(&self) -> ArrayType {
        let (w, h, c) = (self.width.into(), self.height.into(), u64::from(self.channels));
        ArrayType {
            dtype: DType::U8,
            shape: match (c, self.planar) {
                (1, false) => vec![h, w],
                (_, true) => vec![c, h, w],
                _ => vec![h, w, c],
            },
        }
    }

    /// Bytes of the pixels.
    pub(crate) fn bytes(&self) -> u64 {
        let n_pixels = u64::from(self.width).saturating_mul(u64::from(self.height));
        n_pixels.saturating_mul(u64::from(self.channels))
    }
}

/// What an item's bytes contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// An image file. Its header states the size.
    File,
    /// Pixels of this size.
    Pixels(PixelShape),
    /// An array of this type.
    Array(ArrayType),
    /// Any number of entries of this type.
    Ragged(ArrayType),
    /// Opaque bytes.
    Bytes,
    /// A string.
    Text,
    /// A JSON text.
    Json,
}

impl Content {
    /// Pixels if an array of this type is an image, otherwise an array.
    pub(crate) fn of_array(array: ArrayType) -> Self {
        match PixelShape::of(&array) {
            Some(shape) => Self::Pixels(shape),
            None => Self::Array(array),
        }
    }
}

/// One item per sample.
pub(crate) trait Store: Send + Sync + fmt::Debug {
    /// Number of items.
    fn len(&self) -> usize;

    /// Bytes of item `idx`, without reading it.
    fn bytes(&self, idx: usize) -> u64;

    /// Content of item `idx`, without reading it.
    fn content(&self, idx: usize) -> Content;

    /// Whether all items have the same content.
    fn is_uniform(&self) -> bool {
        true
    }

    /// Appends the first `limit` bytes of item `idx` to `out`, or all of it if it is shorter.
    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError>;

    /// Where the items at `places` are, for another process. `None` if it could not read them there.
    fn portable(&self, _places: &[usize]) -> Option<Portable> {
        None
    }
}

/// A file opened once and read at many offsets.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    handle: Handle,
    /// Where its first byte is: 0, except in a temporary file that several files were unpacked into.
    start: u64,
    /// The length of the file when it was opened.
    pub(crate) bytes: u64,
    /// Where the bytes come from, if this is a temporary file of unpacked bytes.
    pub(super) origin: Arc<Origin>,
}

/// How the bytes of a file are reached.
#[derive(Debug)]
enum Handle {
    Open(Arc<File>),
    /// The file is opened for each read, because the process may not keep as many files open. Its device and number identify it.
    Closed(u64, u64),
}

impl OpenFile {
    /// Opens a regular file. See [`open_regular`].
    pub(crate) fn open(path: &Path) -> std::io::Result<Self> {
        let file = open_regular(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self::of(path, Arc::new(file), 0, bytes))
    }

    /// The `bytes` bytes of an open file that begin at `start`. Errors name `path`.
    pub(crate) fn of(path: &Path, file: Arc<File>, start: u64, bytes: u64) -> Self {
        Self { path: path.to_owned(), handle: Handle::Open(file), start, bytes, origin: Arc::default() }
    }

    /// The same file, with the origin of its bytes.
    pub(super) fn with_origin(self, origin: Origin) -> Self {
        Self { origin: Arc::new(origin), ..self }
    }

    /// An empty file without a name.
    pub(crate) fn empty() -> std::io::Result<Self> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file: File = rustix::fs::memfd_create("packds-empty", flags)?.into();
        Ok(Self::of(Path::new(""), Arc::new(file), 0, 0))
    }

    /// The open file.
    ///
    /// # Errors
    /// If it is opened for each read, and another file has its path now.
    pub(crate) fn file(&self) -> std::io::Result<Arc<File>> {
        let (device, number) = match &self.handle {
            Handle::Open(file) => return Ok(Arc::clone(file)),
            Handle::Closed(device, number) => (*device, *number),
        };
        let file = open_regular(&self.path)?;
        if identity(&file.metadata()?) != (device, number) {
            return Err(std::io::Error::other("the file was replaced while it was read"));
        }
        Ok(Arc::new(file))
    }

    /// The same file, which stays open if `stays` is true, and is otherwise opened for each read. Temporary files always stay open.
    pub(super) fn kept(mut self, stays: bool) -> Self {
        if let (false, Handle::Open(file)) = (stays, &self.handle)
            && self.is_named()
            && let Ok(metadata) = file.metadata()
        {
            let (device, number) = identity(&metadata);
            self.handle = Handle::Closed(device, number);
        }
        self
    }

    /// The `len` bytes at `offset`. Errors name `place`, a position in the file.
    pub(crate) fn part(&self, place: &str, offset: u64, len: u64) -> Result<Vec<u8>, ConvertError> {
        self.bytes_at(offset, len).map_err(|e| ConvertError::malformed(&self.path, place, e.to_string()))
    }

    /// The `len` bytes at `offset`.
    pub(crate) fn bytes_at(&self, offset: u64, len: u64) -> Result<Vec<u8>, SampleError> {
        let mut out = Vec::new();
        self.append_at(offset, len, &mut out)?;
        Ok(out)
    }

    /// Appends `len` bytes at `offset` to `out`. If the file is shorter, `out` is unchanged.
    pub(crate) fn append_at(&self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let before = out.len();
        let end = offset.checked_add(len).filter(|end| *end <= self.bytes);
        let wanted = usize::try_from(len).ok().filter(|_| end.is_some());
        let short = || SampleError::SourceShort {
            path: self.path.clone(),
            offset,
            expected: len,
            found: self.bytes.saturating_sub(offset),
        };
        let wanted = wanted.ok_or_else(short)?;
        let reserved = out.try_reserve(wanted);
        reserved.map_err(|_| SampleError::Read(std::io::ErrorKind::OutOfMemory.into()))?;
        out.resize(before.saturating_add(wanted), 0);
        let room = out.get_mut(before..).unwrap_or_default();
        let at = self.start.saturating_add(offset);
        let read = self.file().and_then(|file| std::os::unix::fs::FileExt::read_exact_at(&*file, room, at));
        read.map_err(|error| {
            out.truncate(before);
            match error.kind() {
                std::io::ErrorKind::UnexpectedEof => short(),
                _ => SampleError::Read(error),
            }
        })
    }
}

impl OpenFile {
    /// Whether another process that opens the path gets this file.
    pub(super) fn is_named(&self) -> bool {
        let own = self.file().and_then(|file| file.metadata());
        let named = std::fs::metadata(&self.path);
        own.is_ok_and(|own| named.is_ok_and(|named| identity(&own) == identity(&named)))
    }
}

/// Reads a file from an offset on. Several threads may read the same file.
pub(super) struct ReadAt<F> {
    file: F,
    offset: u64,
}

impl<F: Deref<Target = OpenFile>> ReadAt<F> {
    pub(super) fn new(file: F, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl<F: Deref<Target = OpenFile>> Read for ReadAt<F> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let at = self.file.start.saturating_add(self.offset);
        let n = std::os::unix::fs::FileExt::read_at(&*self.file.file()?, out, at)?;
        self.offset = self.offset.saturating_add(to_u64(n));
        Ok(n)
    }
}

/// The device and the number of a file.
fn identity(file: &std::fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// The files that contain the byte ranges of a store's items.
#[derive(Debug, Clone)]
pub(crate) enum SpanFiles {
    /// Open files.
    Open(Arc<Vec<OpenFile>>),
    /// One file per item, opened for each read.
    PerItem(Arc<ItemFiles>),
}

impl SpanFiles {
    pub(crate) fn open(files: Vec<OpenFile>) -> Self {
        Self::Open(Arc::new(files))
    }

    /// Appends a byte range of item `idx`.
    fn append(&self, idx: usize, span: Span, out: &mut Vec<u8>) -> Result<(), SampleError> {
        match self {
            Self::Open(files) => {
                let file = usize::try_from(span.file).ok().and_then(|n| files.get(n));
                file.ok_or(SampleError::Missing)?.append_at(span.offset, span.bytes, out)
            }
            Self::PerItem(files) if span.file == ItemFiles::SPOOL => {
                files.spool.append_at(span.offset, span.bytes, out)
            }
            Self::PerItem(files) => files.open(idx)?.append_at(span.offset, span.bytes, out),
        }
    }
}

/// One file per item.
#[derive(Debug)]
pub(crate) struct ItemFiles {
    pub(super) root: PathBuf,
    pub(super) paths: PathTable,
    /// The unpacked data; an empty file if nothing was unpacked.
    pub(super) spool: OpenFile,
}

impl ItemFiles {
    /// The number of the item's own file in a [`Span`].
    pub(super) const OWN: u32 = 0;
    /// The number of the spool in a [`Span`].
    pub(super) const SPOOL: u32 = 1;

    fn open(&self, idx: usize) -> std::io::Result<OpenFile> {
        OpenFile::open(&self.root.join(as_path(&self.paths.path(idx))))
    }
}

/// A byte range in one of several files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Span {
    /// The file's index.
    pub(crate) file: u32,
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// Items that are byte ranges of files, each with its own length. Uses 24 bytes of memory per item.
#[derive(Debug)]
pub(crate) struct Spans {
    pub(crate) files: SpanFiles,
    pub(crate) spans: Vec<Span>,
    /// The content of the items.
    pub(crate) contents: Contents,
}

/// The contents of a store's items.
#[derive(Debug)]
pub(crate) enum Contents {
    /// All items have this content.
    All(Content),
    /// The content of each item.
    Each(Vec<Content>),
}

impl From<Content> for Contents {
    fn from(content: Content) -> Self {
        Self::All(content)
    }
}

impl Contents {
    /// Records the content of item `n`. Becomes a list only when two contents differ.
    pub(super) fn push(&mut self, n: usize, content: Content) {
        match self {
            Self::All(all) if n == 0 => *all = content,
            Self::All(all) if *all == content => {}
            Self::All(all) => {
                let mut each = vec![all.clone(); n];
                each.push(content);
                *self = Self::Each(each);
            }
            Self::Each(each) => each.push(content),
        }
    }

    pub(super) fn get(&self, idx: usize) -> Content {
        match self {
            Self::All(content) => content.clone(),
            Self::Each(contents) => contents.get(idx).cloned().unwrap_or(Content::Bytes),
        }
    }

    pub(super) fn is_uniform(&self) -> bool {
        match self {
            Self::All(_) => true,
            Self::Each(contents) => contents.windows(2).all(|pair| pair.first() == pair.last()),
        }
    }
}

impl Store for Spans {
    fn len(&self) -> usize {
        self.spans.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.spans.get(idx).map_or(0, |span| span.bytes)
    }

    fn content(&self, idx: usize) -> Content {
        self.contents.get(idx)
    }

    fn is_uniform(&self) -> bool {
        self.contents.is_uniform()
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let span = self.spans.get(idx).ok_or(SampleError::Missing)?;
        self.files.append(idx, Span { bytes: span.bytes.min(limit), ..*span }, out)
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let files = match &self.files {
            SpanFiles::Open(files) => files,
            SpanFiles::PerItem(files) => {
                let items = places.iter().map(|place| Some((*place, *self.spans.get(*place)?)));
                return per_item(files, items, places.iter().map(|place| self.contents.get(*place)).collect());
            }
        };
        let file = |span: &Span| usize::try_from(span.file).ok().and_then(|n| files.get(n));
        let items = places.iter().map(|place| {
            let span = self.spans.get(*place)?;
            Some((file(span)?, span.offset, span.bytes, self.contents.get(*place)))
        });
        Portable::of(items)
    }
}

/// Numbers in memory, one per sample.
#[derive(Debug)]
pub(crate) struct Numbers {
    pub(crate) array: ArrayType,
    pub(crate) bytes: Vec<u8>,
}

impl Numbers {
    /// Single numbers of this type.
    pub(crate) fn new(dtype: DType, bytes: Vec<u8>) -> Self {
        Self { array: ArrayType { dtype, shape: Vec::new() }, bytes }
    }

    fn width(&self) -> usize {
        to_usize(self.array.dtype.size())
    }
}

impl Store for Numbers {
    fn len(&self) -> usize {
        self.bytes.len() / self.width().max(1)
    }

    fn bytes(&self, _idx: usize) -> u64 {
        self.array.dtype.size()
    }

    fn content(&self, _idx: usize) -> Content {
        Content::Array(self.array.clone())
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let start = idx.saturating_mul(self.width());
        let number = self.bytes.get(start..start.saturating_add(self.width()));
        let number = number.ok_or(SampleError::Missing)?;
        let limit = to_usize(limit);
        out.extend_from_slice(number.get(..limit).unwrap_or(number));
        Ok(())
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let width = self.width();
        let number = |place: &usize| self.bytes.get(place.checked_mul(width)?..)?.get(..width);
        let numbers = places.iter().map(number);
        let bytes = numbers.collect::<Option<Vec<&[u8]>>>()?.concat();
        Some(Portable::Numbers { array: self.array.clone(), bytes })
    }
}

/// Items of one type at equal distances: rows of arrays, in one or several files. Uses no memory per item.
#[derive(Debug)]
pub(crate) struct Rows {
    /// For each file: where its first row starts and how many rows it has.
    pub(crate) parts: Vec<RowPart>,
    pub(crate) array: ArrayType,
}

/// Rows at equal distances in a file.
#[derive(Debug, Clone)]
pub(crate) struct RowPart {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) offset: u64,
    pub(crate) rows: usize,
    /// Distance between row starts: at least the bytes of a row.
    pub(crate) stride: u64,
}

impl Store for Rows {
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.rows).sum()
    }

    fn bytes(&self, _idx: usize) -> u64 {
        self.array.bytes().unwrap_or(u64::MAX)
    }

    fn content(&self, _idx: usize) -> Content {
        Content::of_array(self.array.clone())
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let (file, offset) = self.place(idx).ok_or(SampleError::Missing)?;
        file.append_at(offset, self.bytes(idx).min(limit), out)
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let content = self.content(0);
        let items = places.iter().map(|place| {
            let (file, offset) = self.place(*place)?;
            Some((file, offset, self.bytes(*place), content.clone()))
        });
        Portable::of(items)
    }
}

impl Rows {
    /// The file of a row, and where it starts.
    fn place(&self, idx: usize) -> Option<(&OpenFile, u64)> {
        let mut row = idx;
        for part in &self.parts {
            if row < part.rows {
                let offset = to_u64(row).checked_mul(part.stride)?.checked_add(part.offset)?;
                return Some((&part.file, offset));
            }
            row -= part.rows;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_stay_open_is_read_as_long_as_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, b"abc").unwrap();
        let file = OpenFile::open(&path).unwrap().kept(false);
        assert!(matches!(file.handle, Handle::Closed(..)));
        assert_eq!(file.bytes_at(1, 2).unwrap(), b"bc");
        std::fs::write(folder.path().join("b"), b"def").unwrap();
        std::fs::rename(folder.path().join("b"), &path).unwrap();
        let error = file.bytes_at(1, 2).unwrap_err().to_string();
        assert!(error.ends_with("the file was replaced while it was read"), "{error}");
        // A file without a name cannot be opened again.
        let temporary = OpenFile::of(&path, Arc::new(tempfile::tempfile().unwrap()), 0, 0).kept(false);
        assert!(matches!(temporary.handle, Handle::Open(_)));
    }
}
