//! Items that can only be had in the source's own order (compressed, or behind a library), unpacked once into a
//! temporary file from which they are read in any order.
//!
//! The file has no name: whatever ends the program, the system takes it back.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::store::{ArrayType, Content, Contents, OpenFile, RowPart, Rows, Span, Spans, Store};
use crate::error::ConvertError;

/// Bytes handed to the system at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Items being unpacked.
#[derive(Debug)]
pub(super) struct Spool {
    folder: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl Spool {
    /// An empty one in `folder`.
    pub(super) fn create(folder: &Path) -> Result<Self, ConvertError> {
        let file = tempfile::tempfile_in(folder).map_err(|e| spool_error(folder, e))?;
        Ok(Self {
            folder: folder.to_owned(),
            file: BufWriter::with_capacity(WRITE_BYTES, file),
            bytes: 0,
        })
    }

    /// Appends bytes; returns where they start.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, ConvertError> {
        let offset = self.bytes;
        let written = self.file.write_all(bytes);
        written.map_err(|e| spool_error(&self.folder, e))?;
        self.bytes += u64::try_from(bytes.len()).unwrap_or(0);
        Ok(offset)
    }

    /// Nothing more is coming: the file to read from. `source` is what errors name.
    pub(super) fn finish(self, source: &Path) -> Result<OpenFile, ConvertError> {
        let file = self.file.into_inner();
        let file = file.map_err(|e| spool_error(&self.folder, e.into_error()))?;
        Ok(OpenFile {
            path: source.to_owned(),
            file,
            bytes: self.bytes,
        })
    }

    /// Nothing more is coming, and all that came are rows of arrays of one type.
    pub(super) fn into_rows(
        self,
        source: &Path,
        array: ArrayType,
        rows: usize,
    ) -> Result<Arc<dyn Store>, ConvertError> {
        let stride = array.bytes().unwrap_or(u64::MAX);
        let part = RowPart {
            file: Arc::new(self.finish(source)?),
            offset: 0,
            rows,
            stride,
        };
        Ok(Arc::new(Rows {
            parts: vec![part],
            array,
        }))
    }

    /// Nothing more is coming, and the items end at `ends`, one after the other from the start.
    pub(super) fn into_items(
        self,
        source: &Path,
        ends: &[u64],
        content: Content,
    ) -> Result<Arc<dyn Store>, ConvertError> {
        let mut offset = 0;
        let mut spans = Vec::with_capacity(ends.len());
        for &end in ends {
            let bytes = end.saturating_sub(offset);
            spans.push(Span {
                file: 0,
                offset,
                bytes,
            });
            offset = end;
        }
        Ok(Arc::new(Spans {
            files: Arc::new(vec![self.finish(source)?]),
            spans,
            contents: Contents::All(content),
        }))
    }
}

fn spool_error(folder: &Path, source: std::io::Error) -> ConvertError {
    ConvertError::Spool {
        folder: folder.to_owned(),
        source,
    }
}
