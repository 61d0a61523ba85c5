//! Where the items of a store are, so that another process can read them: byte ranges of files that have names, or of what is
//! unpacked from them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::masks::{self, MaskForm};
use super::packed::{Again, Packed, Piece, unpack};
use super::paths::{FilePath, FileTable, as_path};
use super::ragged::Ragged;
use super::shards::allow_open_files;
use super::store::{ArrayType, Content, Contents, ItemFiles, Numbers, OpenFile, Span, SpanFiles, Spans, Store};
use super::swapped::Swapped;
use crate::error::ConvertError;

/// The items of some samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Portable {
    /// Byte ranges, each with its content.
    Spans { places: Places, spans: Vec<Span>, contents: Vec<Content> },
    /// Numbers, one per sample.
    Numbers { array: ArrayType, bytes: Vec<u8> },
    /// Any number of entries per sample.
    Ragged { entry: ArrayType, bytes: Vec<u8>, ends: Vec<u64> },
    /// Items in which the bytes of each number are reversed.
    Swapped { store: Box<Portable>, element: usize },
    /// Arrays that are converted to masks.
    Masks { store: Box<Portable>, form: MaskForm },
}

/// What the spans refer to. The number of a span's file is an index in `files` or, from the number of files on, in `pieces`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Places {
    files: Vec<FilePath>,
    /// Whether there is one file for each item. Such files are opened only to read them.
    are_per_item: bool,
    packed: Vec<Packed>,
    pieces: Vec<Piece>,
}

/// Items whose places are being collected.
#[derive(Default)]
struct Collected {
    places: Places,
    spans: Vec<Span>,
    /// The indices of the spans in pieces.
    unpacked: Vec<usize>,
    packed: HashMap<(*const OpenFile, u32, Option<usize>), u32>,
    pieces: HashMap<Piece, u32>,
}

impl Collected {
    /// Adds an item that is unpacked into `spool`. `own` is the file to unpack if the spool does not know it.
    fn push_unpacked(&mut self, spool: &OpenFile, span: Span, own: Option<(usize, &Path)>) -> Option<()> {
        let (packed, piece, offset) = spool.origin.find(span.offset, span.bytes)?;
        let key = (std::ptr::from_ref(spool), piece.packed, own.map(|(item, _)| item));
        let number = match self.packed.get(&key) {
            Some(number) => *number,
            None => {
                let path = own.map_or_else(|| packed.path().as_path(), |(_, path)| path);
                let path = FilePath::from(std::path::absolute(path).ok()?.as_path());
                let number = u32::try_from(self.places.packed.len()).ok()?;
                self.places.packed.push(packed.clone().with_path(path));
                self.packed.insert(key, number);
                number
            }
        };
        let piece = Piece { packed: number, ..piece };
        let number = match self.pieces.get(&piece) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.places.pieces.len()).ok()?;
                self.places.pieces.push(piece);
                self.pieces.insert(piece, number);
                number
            }
        };
        self.unpacked.push(self.spans.len());
        self.spans.push(Span { file: number, offset, bytes: span.bytes });
        Some(())
    }

    fn finish(mut self, mut contents: Vec<Content>) -> Option<Portable> {
        let n_files = u32::try_from(self.places.files.len()).ok()?;
        for idx in self.unpacked {
            let span = self.spans.get_mut(idx)?;
            span.file = span.file.checked_add(n_files)?;
        }
        // One content stands for all, if they are the same.
        if contents.iter().all(|content| contents.first() == Some(content)) {
            contents.truncate(1);
        }
        Some(Portable::Spans { places: self.places, spans: self.spans, contents })
    }
}

/// Items in files of their own: for each, its place among the files and its byte range.
pub(super) fn per_item(
    files: &ItemFiles,
    items: impl Iterator<Item = Option<(usize, Span)>>,
    contents: Vec<Content>,
) -> Option<Portable> {
    let mut collected = Collected::default();
    collected.places.are_per_item = true;
    for item in items {
        let (idx, span) = item?;
        let path = std::path::absolute(files.root.join(as_path(&files.paths.path(idx)))).ok()?;
        let number = u32::try_from(collected.places.files.len()).ok()?;
        match span.file {
            ItemFiles::OWN => collected.spans.push(Span { file: number, ..span }),
            // A bad sample has no bytes.
            _ if span.bytes == 0 => collected.spans.push(Span { file: number, offset: 0, bytes: 0 }),
            _ => collected.push_unpacked(&files.spool, span, Some((idx, &path)))?,
        }
        collected.places.files.push(FilePath::from(path.as_path()));
    }
    collected.finish(contents)
}

impl Portable {
    /// The items: for each, its file, offset, length and content. `None` if a file has no name, because it is temporary, and its
    /// bytes cannot be unpacked again.
    pub(super) fn of<'a>(items: impl Iterator<Item = Option<(&'a OpenFile, u64, u64, Content)>>) -> Option<Self> {
        // The number of each file that has a name. A temporary file may go by the same path.
        let mut numbers: HashMap<*const OpenFile, Option<u32>> = HashMap::new();
        let (mut collected, mut contents) = (Collected::default(), Vec::new());
        for item in items {
            let (file, offset, bytes, content) = item?;
            let files = &mut collected.places.files;
            let number = match numbers.get(&std::ptr::from_ref(file)) {
                Some(number) => *number,
                None => {
                    let number = match file.is_named() {
                        false => None,
                        true => {
                            files.push(FilePath::from(std::path::absolute(&file.path).ok()?.as_path()));
                            Some(u32::try_from(files.len() - 1).ok()?)
                        }
                    };
                    numbers.insert(std::ptr::from_ref(file), number);
                    number
                }
            };
            match number {
                Some(number) => collected.spans.push(Span { file: number, offset, bytes }),
                None => collected.push_unpacked(file, Span { file: 0, offset, bytes }, None)?,
            }
            contents.push(content);
        }
        collected.finish(contents)
    }

    /// The files that contain the items.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Spans { places, .. } => {
                let files = places.files.iter().map(|file| file.as_path().to_owned());
                let packed = (0_u32..).zip(&places.packed).flat_map(|(number, packed)| {
                    packed.files(places.pieces.iter().filter(move |piece| piece.packed == number))
                });
                // A sample that is a folder, such as a Zarr array, has no size and time of its own.
                files.filter(|file| !places.are_per_item || !file.is_dir()).chain(packed).collect()
            }
            Self::Numbers { .. } | Self::Ragged { .. } => Vec::new(),
            Self::Swapped { store, .. } | Self::Masks { store, .. } => store.files(),
        }
    }

    /// A store of the items.
    ///
    /// # Errors
    /// If a file cannot be opened or unpacked, or if there are not `n` items.
    pub(super) fn open(self, n: usize, plan: &Path, again: &Again<'_>) -> Result<Arc<dyn Store>, ConvertError> {
        let store: Arc<dyn Store> = match self {
            Self::Spans { places, spans, mut contents } => {
                let contents = match contents.len() {
                    1 => Contents::All(contents.remove(0)),
                    _ => Contents::Each(contents),
                };
                let (files, spans) = places.open(spans, plan, again)?;
                Arc::new(Spans { files, spans, contents })
            }
            Self::Numbers { array, bytes } => Arc::new(Numbers { array, bytes }),
            Self::Ragged { entry, bytes, ends } => Arc::new(Ragged { entry, bytes, ends }),
            Self::Swapped { store, element } => Arc::new(Swapped { store: store.open(n, plan, again)?, element }),
            Self::Masks { store, form } => Arc::new(masks::Numbers { store: store.open(n, plan, again)?, form }),
        };
        match store.len() == n {
            true => Ok(store),
            false => Err(ConvertError::malformed(plan, "", format!("expected {n} items, found {}", store.len()))),
        }
    }
}

impl Places {
    /// Opens the files, and unpacks the pieces.
    fn open(
        self,
        mut spans: Vec<Span>,
        plan: &Path,
        again: &Again<'_>,
    ) -> Result<(SpanFiles, Vec<Span>), ConvertError> {
        let n_files = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        let unpacked = spans.iter().map(|span| span.file >= n_files).collect::<Vec<_>>();
        let in_pieces = spans.iter_mut().zip(&unpacked).filter(|(_, unpacked)| **unpacked).map(|(span, _)| {
            span.file -= n_files;
            span
        });
        let spool = unpack(&self.packed, &self.pieces, in_pieces.collect(), again, plan)?;
        let (own, in_spool) = match self.are_per_item {
            true => (Some(ItemFiles::OWN), ItemFiles::SPOOL),
            false => (None, n_files),
        };
        for (span, unpacked) in spans.iter_mut().zip(unpacked) {
            span.file = if unpacked { in_spool } else { own.unwrap_or(span.file) };
        }
        if self.are_per_item {
            let mut paths = FileTable::default();
            self.files.iter().for_each(|file| paths.push(file.as_bytes()));
            let files = ItemFiles { root: PathBuf::from("/"), paths: paths.paths, spool };
            return Ok((SpanFiles::PerItem(Arc::new(files)), spans));
        }
        let stays = allow_open_files(self.files.len());
        let open = |file: FilePath| {
            let opened = OpenFile::open(file.as_path()).map_err(ConvertError::io(file.as_path()));
            opened.map(|file| file.kept(stays))
        };
        let mut files: Vec<OpenFile> = self.files.into_iter().map(open).collect::<Result<_, _>>()?;
        files.push(spool);
        Ok((SpanFiles::open(files), spans))
    }
}
