//! The frames of a record file. Each has a length, the length's checksum, the record, and the record's checksum.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use packds_format::crc32c;
use packds_system::{open_regular, to_usize};

use super::super::ListOptions;
use super::super::packed::Packed;
use super::super::spool::Spool;
use super::super::store::OpenFile;
use super::RecordFile;
use crate::error::ConvertError;
use crate::sample::MAX_FILE_BYTES;

/// Maximum size of a record, in bytes: twice the largest image.
const MAX_RECORD: u64 = 2 * MAX_FILE_BYTES;

/// A record file, read from start to end.
pub(super) struct Frames {
    path: PathBuf,
    input: Input,
    at: u64,
    n: u64,
}

enum Input {
    Plain(BufReader<File>, OpenFile),
    Gzip(Box<MultiGzDecoder<BufReader<File>>>, Spool),
}

/// The masked checksum, in the form that the format stores.
fn masked_crc(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

impl Frames {
    pub(super) fn open(path: &Path, options: &ListOptions) -> Result<Self, ConvertError> {
        let opened = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let file = open_regular(path).map_err(ConvertError::io(path))?;
        let reader = BufReader::with_capacity(1 << 18, file);
        // If the file is too short, this is reported when it is read as a record file.
        let magic = opened.bytes_at(0, 2).unwrap_or_default();
        // A record length may start with the same two bytes as a gzip file, so the length's checksum decides.
        let input = match magic == [0x1f, 0x8b] && !is_frame(&opened) {
            true => {
                let mut spool = Spool::create(&options.spool_folder())?;
                spool.begin_file(Packed::Stream(path.into()));
                Input::Gzip(Box::new(MultiGzDecoder::new(reader)), spool)
            }
            false => Input::Plain(reader, opened),
        };
        Ok(Self { path: path.to_owned(), input, at: 0, n: 0 })
    }

    /// Refuses a file that starts like a zlib stream.
    fn refuse_zlib(&self, head: &[u8]) -> Result<(), ConvertError> {
        let Some(first) = head.first_chunk::<2>().filter(|_| self.n == 0) else {
            return Ok(());
        };
        let [method, flags] = first.map(u16::from);
        if method != 0x78 || !(method * 256 + flags).is_multiple_of(31) {
            return Ok(());
        }
        let reason = "the records are compressed with ZLIB, which is not supported";
        let hint = "write them again with GZIP, or uncompressed";
        Err(ConvertError::unsupported(&self.path, "", reason, hint))
    }

    /// Appends `n` bytes, or fewer at the end of the file.
    fn fill(&mut self, out: &mut Vec<u8>, n: u64) -> Result<(), ConvertError> {
        let read = match &mut self.input {
            Input::Plain(input, _) => input.take(n).read_to_end(out),
            Input::Gzip(input, _) => input.take(n).read_to_end(out),
        };
        read.map(drop).map_err(|error| match error.kind() {
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput | std::io::ErrorKind::UnexpectedEof => {
                self.wrong(&format!("cannot be unpacked: {error}"))
            }
            _ => ConvertError::io(&self.path)(error),
        })
    }

    fn wrong(&self, reason: &str) -> ConvertError {
        let place = format!("record {} at byte {}", self.n, self.at);
        ConvertError::malformed(&self.path, &place, reason)
    }
}

impl RecordFile for Frames {
    fn next(&mut self, record: &mut Vec<u8>) -> Result<Option<u64>, ConvertError> {
        let mut head = Vec::new();
        self.fill(&mut head, 12)?;
        if head.is_empty() {
            return Ok(None);
        }
        let (Some(len), Some(crc)) = (head.first_chunk::<8>(), head.get(8..12)) else {
            return Err(self.wrong(&format!("expected 12 bytes, found {}", head.len())));
        };
        let bytes = u64::from_le_bytes(*len);
        if masked_crc(len).to_le_bytes() != crc {
            self.refuse_zlib(&head)?;
            return Err(self.wrong(
                "the checksum of the record's length is wrong: the file is damaged, or is not a TFRecord file",
            ));
        }
        if bytes > MAX_RECORD {
            return Err(self.wrong(&format!("expected a record of at most {MAX_RECORD} bytes, found {bytes}")));
        }
        let start = self.at.saturating_add(12);
        record.clear();
        self.fill(record, bytes.saturating_add(4))?;
        let data = to_usize(bytes);
        let Some((data, crc)) = record.split_at_checked(data).filter(|(_, c)| c.len() == 4) else {
            let reason = format!("the file ends inside a record of {bytes} bytes");
            return Err(self.wrong(&reason));
        };
        if masked_crc(data).to_le_bytes() != crc {
            return Err(self.wrong("the checksum of the record is wrong: the file is damaged"));
        }
        record.truncate(record.len() - 4);
        self.at = start.saturating_add(bytes).saturating_add(4);
        self.n += 1;
        match &mut self.input {
            Input::Plain(..) => Ok(Some(start)),
            Input::Gzip(_, spool) => {
                spool.at(start);
                spool.append(record).map(Some)
            }
        }
    }

    fn into_file(self) -> Result<OpenFile, ConvertError> {
        match self.input {
            Input::Plain(_, file) => Ok(file),
            Input::Gzip(_, spool) => spool.finish(&self.path),
        }
    }
}

/// Whether a file starts with a length and its checksum.
fn is_frame(file: &OpenFile) -> bool {
    file.bytes_at(0, 12).is_ok_and(|head| is_tfrecord(&head))
}

/// Whether these are the first bytes of a record file: a length and its checksum.
pub(crate) fn is_tfrecord(head: &[u8]) -> bool {
    let crc = head.get(8..12);
    crc == Some(&masked_crc(head.get(..8).unwrap_or_default()).to_le_bytes()[..])
}
