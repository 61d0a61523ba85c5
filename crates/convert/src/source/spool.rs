//! A temporary file for items that can only be read in the source's order, because they are compressed or read by a library. The
//! items are unpacked once and can then be read in any order.
//!
//! The file has no name, so the system always frees it when the program ends, even after a crash.

use packds_system::to_u64;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::packed::{Origin, Packed, Piece};
use super::store::{ArrayType, Contents, OpenFile, RowPart, Rows, Span, SpanFiles, Spans, Store};
use crate::error::ConvertError;

/// Bytes per write call.
const WRITE_BYTES: usize = 1 << 20;

/// Bytes between progress reports.
const TOLD_BYTES: u64 = 16 << 20;

/// Receives the progress of unpacking, and may stop the unpacking.
#[derive(Clone, Default)]
pub struct Unpacking {
    told: Option<Arc<dyn Fn(u64) + Send + Sync>>,
    stops: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl Unpacking {
    /// Calls `told` with the number of bytes so far.
    pub fn new(told: impl Fn(u64) + Send + Sync + 'static) -> Self {
        Self { told: Some(Arc::new(told)), stops: None }
    }

    /// Calls `stops` before a source is unpacked into a temporary folder, and repeatedly during unpacking. If it
    /// returns true, listing fails with [`ConvertError::Interrupted`]. If the process ends after the first call and
    /// before the listing is dropped, the temporary folder is not removed.
    #[must_use]
    pub fn until(self, stops: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { stops: Some(Arc::new(stops)), ..self }
    }

    /// Reports that the number of unpacked bytes has grown from `before` to `bytes`.
    pub(super) fn tell(&self, before: u64, bytes: u64) {
        if let Some(told) = &self.told
            && bytes / TOLD_BYTES != before / TOLD_BYTES
        {
            told(bytes);
        }
    }

    /// An error if the caller wants to stop.
    pub(super) fn check(&self) -> Result<(), ConvertError> {
        let stops = self.stops.as_ref().is_some_and(|stops| stops());
        if stops { Err(ConvertError::Interrupted) } else { Ok(()) }
    }
}

impl std::fmt::Debug for Unpacking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Unpacking").field(&self.told.is_some()).finish()
    }
}

/// The folder for unpacked sources.
#[derive(Debug, Clone)]
pub(super) struct SpoolFolder {
    pub(super) path: PathBuf,
    pub(super) unpacking: Unpacking,
}

/// Items being unpacked.
#[derive(Debug)]
pub(super) struct Spool {
    folder: SpoolFolder,
    file: BufWriter<Arc<File>>,
    bytes: u64,
    /// Where the bytes that `origin` describes begin.
    start: u64,
    origin: Origin,
}

impl Spool {
    /// Creates an empty file in `folder`.
    pub(super) fn create(folder: &SpoolFolder) -> Result<Self, ConvertError> {
        let file = tempfile::tempfile_in(&folder.path);
        let file = file.map_err(|e| spool_error(&folder.path, e))?;
        Ok(Self {
            folder: folder.clone(),
            file: BufWriter::with_capacity(WRITE_BYTES, Arc::new(file)),
            bytes: 0,
            start: 0,
            origin: Origin::default(),
        })
    }

    /// Names a file that is unpacked into the spool. Returns its index.
    pub(super) fn unpacks(&mut self, packed: Packed) -> u32 {
        self.origin.add(packed)
    }

    /// Says that the bytes that follow are those of a piece.
    pub(super) fn begin(&mut self, piece: Piece) {
        self.origin.begin(self.bytes - self.start, piece);
    }

    /// Says that the bytes that follow are those of a file that is one piece.
    pub(super) fn begin_file(&mut self, packed: Packed) {
        let packed = self.unpacks(packed);
        self.begin(Piece { packed, ..Piece::default() });
    }

    /// Says that the bytes that follow are at `offset` in the last piece.
    pub(super) fn at(&mut self, offset: u64) {
        self.origin.at(self.bytes - self.start, offset);
    }

    /// Says that the bytes that follow are not those of a piece.
    #[cfg(feature = "arrow")]
    pub(super) fn end(&mut self) {
        self.origin.end(self.bytes - self.start);
    }

    /// Appends bytes. Returns their offset in the file.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<u64, ConvertError> {
        let offset = self.bytes;
        self.folder.unpacking.check()?;
        let written = self.file.write_all(bytes);
        written.map_err(|e| spool_error(&self.folder.path, e))?;
        self.bytes += to_u64(bytes.len());
        self.folder.unpacking.tell(offset, self.bytes);
        Ok(offset)
    }

    /// Ends writing and returns the file for reading. Errors name `source`.
    pub(super) fn finish(self, source: &Path) -> Result<OpenFile, ConvertError> {
        let file = self.file.into_inner();
        let file = file.map_err(|e| spool_error(&self.folder.path, e.into_error()))?;
        Ok(OpenFile::of(source, file, 0, self.bytes).with_origin(self.origin))
    }

    /// The bytes since the last call, or since the beginning, as a file. Errors name `source`. More bytes may follow later.
    pub(super) fn since(&mut self, source: &Path) -> Result<OpenFile, ConvertError> {
        self.file.flush().map_err(|e| spool_error(&self.folder.path, e))?;
        let start = std::mem::replace(&mut self.start, self.bytes);
        let file = OpenFile::of(source, Arc::clone(self.file.get_ref()), start, self.bytes - start);
        Ok(file.with_origin(std::mem::take(&mut self.origin)))
    }

    /// Ends writing. The content is `rows` rows of `stride` bytes.
    pub(super) fn into_part(self, source: &Path, rows: usize, stride: u64) -> Result<RowPart, ConvertError> {
        Ok(RowPart { file: Arc::new(self.finish(source)?), offset: 0, rows, stride })
    }

    /// Ends writing. The content is `rows` rows of arrays of one type.
    pub(super) fn into_rows(
        self,
        source: &Path,
        array: ArrayType,
        rows: usize,
    ) -> Result<Arc<dyn Store>, ConvertError> {
        let stride = array.bytes().unwrap_or(u64::MAX);
        Ok(Arc::new(Rows { parts: vec![self.into_part(source, rows, stride)?], array }))
    }

    /// Ends writing. The content is consecutive items that end at `ends`.
    pub(super) fn into_items(
        self,
        source: &Path,
        ends: &[u64],
        contents: impl Into<Contents>,
    ) -> Result<Arc<dyn Store>, ConvertError> {
        let mut offset = 0;
        let mut spans = Vec::with_capacity(ends.len());
        for &end in ends {
            let bytes = end.saturating_sub(offset);
            spans.push(Span { file: 0, offset, bytes });
            offset = end;
        }
        Ok(Arc::new(Spans { files: SpanFiles::open(vec![self.finish(source)?]), spans, contents: contents.into() }))
    }
}

pub(super) fn spool_error(folder: &Path, source: std::io::Error) -> ConvertError {
    ConvertError::Spool { folder: folder.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use packds_format::DType;

    use super::super::store::Content;
    use super::*;

    fn spool(told: &Arc<Mutex<Vec<u64>>>) -> Spool {
        let told = Arc::clone(told);
        let folder = SpoolFolder {
            path: std::env::temp_dir(),
            unpacking: Unpacking::new(move |bytes| told.lock().unwrap().push(bytes)),
        };
        Spool::create(&folder).unwrap()
    }

    fn item(store: &dyn Store, idx: usize, limit: u64) -> Vec<u8> {
        let mut out = vec![9];
        store.append(idx, limit, &mut out).unwrap();
        out.split_off(1)
    }

    #[test]
    fn what_was_unpacked_is_read_in_any_order_and_told_now_and_then() {
        let told = Arc::default();
        let mut spool = spool(&told);
        spool.append(b"ab").unwrap();
        spool.append(b"").unwrap();
        spool.append(&vec![7; 17 << 20]).unwrap();
        let ends = [2, 2, (17 << 20) + 2];
        let store = spool.into_items(Path::new("s"), &ends, Content::Bytes).unwrap();
        assert_eq!(*told.lock().unwrap(), [(17 << 20) + 2]);
        assert_eq!((store.len(), store.bytes(1)), (3, 0));
        assert_eq!(item(store.as_ref(), 2, 3), [7; 3]);
        assert_eq!(item(store.as_ref(), 0, u64::MAX), b"ab");
        assert!(store.append(3, 1, &mut Vec::new()).is_err());
    }

    #[test]
    fn rows_that_are_not_there_are_an_error_that_says_how_many_bytes_are() {
        let mut spool = spool(&Arc::default());
        spool.append(&[1, 2, 3, 4, 5]).unwrap();
        let array = ArrayType { dtype: DType::U8, shape: vec![2] };
        let store = spool.into_rows(Path::new("s"), array, 3).unwrap();
        assert_eq!(item(store.as_ref(), 1, u64::MAX), [3, 4]);
        let mut out = Vec::new();
        let error = store.append(2, u64::MAX, &mut out).unwrap_err();
        assert_eq!(error.to_string(), "s: expected 2 bytes at byte 4, found 1");
        assert!(out.is_empty());
        assert!(store.append(usize::MAX, 1, &mut out).is_err());
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let folder = SpoolFolder { path: "/nowhere".into(), unpacking: Unpacking::default() };
        let error = Spool::create(&folder).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere: cannot unpack"), "{error}");
    }
}
