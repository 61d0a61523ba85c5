//! Where the items of a store are, so that another process can read them: byte ranges of files that have names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::paths::FilePath;
use super::shards::allow_open_files;
use super::store::{ArrayType, Content, Contents, Numbers, OpenFile, Span, SpanFiles, Spans, Store};
use super::swapped::Swapped;
use crate::error::ConvertError;

/// The items of some samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Portable {
    /// Byte ranges of files, each with its content.
    Spans { files: Vec<FilePath>, spans: Vec<Span>, contents: Vec<Content> },
    /// Numbers, one per sample.
    Numbers { array: ArrayType, bytes: Vec<u8> },
    /// Items in which the bytes of each number are reversed.
    Swapped { store: Box<Portable>, element: usize },
}

impl Portable {
    /// The items: for each, its file, offset, length and content. `None` if a file has no name, because it is temporary.
    pub(super) fn of<'a>(items: impl Iterator<Item = Option<(&'a OpenFile, u64, u64, Content)>>) -> Option<Self> {
        let (mut files, mut numbers) = (Vec::new(), HashMap::new());
        let (mut spans, mut contents) = (Vec::new(), Vec::new());
        for item in items {
            let (file, offset, bytes, content) = item?;
            let number = match numbers.get(file.path.as_path()) {
                Some(number) => *number,
                None => {
                    let number = u32::try_from(files.len()).ok().filter(|_| file.is_named())?;
                    files.push(FilePath::from(std::path::absolute(&file.path).ok()?.as_path()));
                    numbers.insert(file.path.as_path(), number);
                    number
                }
            };
            spans.push(Span { file: number, offset, bytes });
            contents.push(content);
        }
        // One content stands for all, if they are the same.
        if contents.iter().all(|content| contents.first() == Some(content)) {
            contents.truncate(1);
        }
        Some(Self::Spans { files, spans, contents })
    }

    /// The files that contain the items.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        match self {
            Self::Spans { files, .. } => files.iter().map(|file| file.as_path().to_owned()).collect(),
            Self::Numbers { .. } => Vec::new(),
            Self::Swapped { store, .. } => store.files(),
        }
    }

    /// A store of the items.
    ///
    /// # Errors
    /// If a file cannot be opened, or if there are not `n` items.
    pub(super) fn open(self, n: usize, plan: &Path) -> Result<Arc<dyn Store>, ConvertError> {
        let store: Arc<dyn Store> = match self {
            Self::Spans { files, spans, mut contents } => {
                let stays = allow_open_files(files.len());
                let open = |file: FilePath| {
                    let opened = OpenFile::open(file.as_path()).map_err(ConvertError::io(file.as_path()));
                    opened.map(|file| file.kept(stays))
                };
                let files = files.into_iter().map(open).collect::<Result<_, _>>()?;
                let contents = match contents.len() {
                    1 => Contents::All(contents.remove(0)),
                    _ => Contents::Each(contents),
                };
                Arc::new(Spans { files: SpanFiles::open(files), spans, contents })
            }
            Self::Numbers { array, bytes } => Arc::new(Numbers { array, bytes }),
            Self::Swapped { store, element } => Arc::new(Swapped { store: store.open(n, plan)?, element }),
        };
        match store.len() == n {
            true => Ok(store),
            false => Err(ConvertError::malformed(plan, "", format!("expected {n} items, found {}", store.len()))),
        }
    }
}
