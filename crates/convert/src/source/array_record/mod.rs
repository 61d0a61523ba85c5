//! Reads ArrayRecord, Google's files of records with an index: a Riegeli file whose last block says where the index is.
//!
//! Records are `tf.train.Example` messages, which `tfrecord` reads, or image files. The chunks of records are unpacked.

mod highway;
mod riegeli;

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_system::{counted, to_u64};

use self::riegeli::{BLOCK, Records, Riegeli, SIGNATURE};
use super::ListOptions;
use super::candidate::is_image_bytes;
use super::found::{Found, Names};
use super::gather::{Gathered, Gathering, Item};
use super::packed::{Packed, Piece, Unpack};
use super::protobuf::{Message, Wire};
use super::shards::{Shards, allow_open_files};
use super::spool::Spool;
use super::store::{Content, OpenFile, Span, SpanFiles};
use super::tfrecord::{self, RecordFile};
use crate::data_format::DataFormat;
use crate::error::ConvertError;
use crate::sample::MAX_FILE_BYTES;

/// The number in the last block of each file.
const MAGIC: u64 = 0x7193_0e70_4fda_e05e;
/// The version of the index.
const VERSION: u64 = 1;
/// Maximum size of a record, in bytes: twice the largest image.
const MAX_RECORD: u64 = 2 * MAX_FILE_BYTES;

/// Whether these are the first bytes of a Riegeli file.
pub(crate) fn is_riegeli(head: &[u8]) -> bool {
    head.starts_with(&SIGNATURE)
}

/// Finds the samples.
pub(crate) fn read(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    allow_open_files(part.files.len());
    let open = |path: &Path| ArrayRecord::open(path, options);
    for path in &part.files {
        let mut first = Vec::new();
        if open(path)?.next(&mut first)?.is_some() {
            return match is_image_bytes(&first) {
                true => images(part, options),
                false => tfrecord::read_records(part, options, DataFormat::ArrayRecord, open),
            };
        }
    }
    tfrecord::read_records(part, options, DataFormat::ArrayRecord, open)
}

/// The samples of files whose records are image files.
fn images(part: &Shards, options: &ListOptions) -> Result<Found, ConvertError> {
    let mut warnings = Vec::new();
    let metadata = part.metadata(&mut warnings)?;
    let (mut files, mut field): (Vec<OpenFile>, Option<Gathered>) = (Vec::new(), None);
    for (file, path) in (0_u32..).zip(&part.files) {
        let mut records = ArrayRecord::open(path, options)?;
        let mut record = Vec::new();
        while let Some(offset) = records.next(&mut record)? {
            let item = Item::Stored(Span { file, offset, bytes: to_u64(record.len()) }, Content::File);
            match &mut field {
                Some(field) => field.push(&item).map_err(|reason| ConvertError::malformed(path, "", reason))?,
                None => field = Some(Gathered::begin("image".to_owned(), &item)),
            }
        }
        files.push(records.into_file()?);
    }
    let gathering = Gathering {
        format: DataFormat::ArrayRecord,
        fields: field.into_iter().collect(),
        names: Names::Numbered("record".to_owned()),
        files: SpanFiles::open(files),
        classes: Vec::new(),
        labels: None,
        metadata,
        warnings,
        ignored: 0,
    };
    gathering.into_found(&part.root, options)
}

/// A chunk of records, as the index describes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Chunk {
    at: u64,
    bytes: u64,
    n_records: u64,
}

/// A file whose records are read in order.
struct ArrayRecord {
    file: Riegeli,
    path: PathBuf,
    chunks: std::vec::IntoIter<Chunk>,
    /// The records of the current chunk, and the place of the next.
    records: Records,
    next: usize,
    n: u64,
    spool: Spool,
}

impl ArrayRecord {
    /// Opens a file and reads its index.
    fn open(path: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        let file = Riegeli::open(path)?;
        let chunks = index(&file)?;
        let mut spool = Spool::create(&options.spool_folder())?;
        spool.unpacks(Packed::ArrayRecord(path.into()));
        Ok(Self {
            file,
            path: path.to_owned(),
            chunks: chunks.into_iter(),
            records: Records::default(),
            next: 0,
            n: 0,
            spool,
        })
    }
}

impl RecordFile for ArrayRecord {
    fn next(&mut self, record: &mut Vec<u8>) -> Result<Option<u64>, ConvertError> {
        while self.next >= self.records.ranges.len() {
            let Some(chunk) = self.chunks.next() else { return Ok(None) };
            self.records = self.file.records(chunk.at)?;
            self.next = 0;
            self.spool.begin(Piece { place: chunk.at, ..Piece::default() });
            let (n, bytes) = (to_u64(self.records.ranges.len()), to_u64(self.records.values.len()));
            if (n, bytes) != (chunk.n_records, chunk.bytes) {
                let Chunk { at, bytes: expected_bytes, n_records } = chunk;
                let expected = counted(n_records, "record");
                let reason = format!(
                    "the index says {expected} of {expected_bytes} bytes in all, but the chunk has {n} of {bytes} bytes"
                );
                return Err(self.file.wrong(&format!("chunk at byte {at}"), &reason));
            }
        }
        let range = self.records.ranges.get(self.next).cloned();
        let bytes = range.and_then(|range| self.records.values.get(range)).unwrap_or_default();
        if to_u64(bytes.len()) > MAX_RECORD {
            let reason = format!("expected a record of at most {MAX_RECORD} bytes, found {}", bytes.len());
            return Err(self.file.wrong(&format!("record {}", self.n), &reason));
        }
        record.clear();
        record.extend_from_slice(bytes);
        self.next += 1;
        self.n += 1;
        self.spool.append(record).map(Some)
    }

    fn into_file(self) -> Result<OpenFile, ConvertError> {
        self.spool.finish(&self.path)
    }
}

/// The chunks of a file, which are unpacked again.
pub(super) fn pieces(path: &Path) -> Result<Arc<dyn Unpack>, ConvertError> {
    Ok(Arc::new(Riegeli::open(path)?))
}

impl Unpack for Riegeli {
    fn read<'a>(&'a self, piece: &Piece) -> Result<Box<dyn Read + 'a>, ConvertError> {
        Ok(Box::new(Cursor::new(self.records(piece.place)?.values)))
    }
}

/// Reads the index of a file: the last block says where it is.
fn index(file: &Riegeli) -> Result<Vec<Chunk>, ConvertError> {
    let at = file.bytes() - BLOCK;
    let place = format!("last block at byte {at}");
    let wrong = |reason: String| {
        file.wrong(&place, &format!("{reason}: this is not an ArrayRecord file, or its writer did not close it"))
    };
    let last = file.records(at).map_err(|error| match error {
        ConvertError::SourceMalformed { reason, .. } => wrong(reason),
        error => error,
    })?;
    let postscript = last.first().ok_or_else(|| wrong("expected the place of the index, found nothing".to_owned()))?;
    let [place, magic, ..] = numbers(Message::new(postscript)).map_err(wrong)?;
    if magic != MAGIC || place >= at {
        return Err(wrong("expected the place of the index, found something else".to_owned()));
    }
    let index = file.records(place)?;
    let wrong = |reason: String| file.wrong(&format!("index at byte {place}"), &reason);
    let mut head = Message::new(index.first().ok_or_else(|| wrong("it is empty".to_owned()))?);
    let inner = match head.next().map_err(wrong)? {
        Some((1, Wire::Bytes(part))) => part.message(),
        _ => return Err(wrong("expected a description of the file, found something else".to_owned())),
    };
    let [version, n_chunks, n_records, ..] = numbers(inner).map_err(wrong)?;
    if version != VERSION {
        return Err(wrong(format!("expected version {VERSION} of the index, found {version}")));
    }
    let mut chunks = Vec::with_capacity(index.ranges.len());
    let (mut before, mut sum) = (0, 0_u64);
    for range in index.ranges.iter().skip(1) {
        let entry = Message::new(index.values.get(range.clone()).unwrap_or_default());
        let [at, bytes, n_records, ..] = numbers(entry).map_err(wrong)?;
        if at <= before || at >= place {
            return Err(wrong(format!("expected a chunk between byte {before} and byte {place}, found byte {at}")));
        }
        before = at;
        sum = sum.saturating_add(n_records);
        chunks.push(Chunk { at, bytes, n_records });
    }
    if (to_u64(chunks.len()), sum) != (n_chunks, n_records) {
        let told = |n_records, n_chunks| format!("{} in {}", counted(n_records, "record"), counted(n_chunks, "chunk"));
        let found = told(sum, to_u64(chunks.len()));
        return Err(wrong(format!("expected {}, found {found}", told(n_records, n_chunks))));
    }
    Ok(chunks)
}

/// The fields 1 to 3 of a message, which are numbers. Other fields are skipped.
fn numbers(mut message: Message<'_>) -> Result<[u64; 3], String> {
    let mut numbers = [0; 3];
    while let Some((field, wire)) = message.next()? {
        let place = field.checked_sub(1).and_then(|place| usize::try_from(place).ok());
        if let (Some(number), Wire::Varint(value)) = (place.and_then(|place| numbers.get_mut(place)), wire) {
            *number = value;
        }
    }
    Ok(numbers)
}

impl Records {
    fn first(&self) -> Option<&[u8]> {
        self.values.get(self.ranges.first()?.clone())
    }
}

#[cfg(test)]
mod tests;
