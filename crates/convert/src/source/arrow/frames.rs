//! The messages of an Arrow IPC file or stream. Each location is checked against the file before use.
//!
//! `body` and the library read the content of the messages.

use std::path::Path;
use std::sync::Arc;

use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Endianness, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use crate::error::ConvertError;
use crate::source::numbers::u32_at;
use crate::source::store::OpenFile;

/// Magic bytes at the start and end of a file.
const MAGIC: &[u8] = b"ARROW1";
/// Magic bytes at the start of a file in Feather version 1.
const FEATHER_1: &[u8] = b"FEA1";
/// Number of bytes at the start of a file: the magic bytes and the padding.
const HEAD_BYTES: u64 = 8;
/// Number of bytes at the end of a file: the footer's length and the magic bytes.
const TAIL_BYTES: u64 = 10;
/// The marker at the start of a message, before its length.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// Size of the marker and the length.
const PREFIX_BYTES: u64 = 8;
/// Maximum size of a message (without its arrays) or a footer, in bytes.
const MAX_MESSAGE_BYTES: u64 = 256 << 20;
/// Maximum size of a message's arrays, in bytes.
pub(super) const MAX_BODY_BYTES: u64 = 8 << 30;

/// A message: its own bytes and the location of its arrays.
#[derive(Debug)]
pub(super) struct Frame {
    /// The message without its prefix.
    pub(super) message: Vec<u8>,
    /// Offset of the arrays in the file.
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// The messages of a file, after the schema.
pub(super) struct Frames {
    pub(super) file: Arc<OpenFile>,
    pub(super) schema: SchemaRef,
    order: Order,
}

/// How to find the next message.
enum Order {
    /// The footer lists the location of each message: dictionaries, then batches. Stored here in reverse order.
    Listed(Vec<(u64, u64)>),
    /// Consecutive messages from this offset.
    Stream(u64),
}

impl Frames {
    /// Opens a file or a stream.
    pub(super) fn open(path: &Path) -> Result<Self, ConvertError> {
        let file = OpenFile::open(path).map_err(ConvertError::io(path))?;
        let head = file.part("the start", 0, HEAD_BYTES.min(file.bytes))?;
        if head.starts_with(FEATHER_1) {
            let reason = "this is Feather version 1";
            let hint = "write it as version 2: pyarrow.feather.write_feather(pyarrow.feather.read_table(old), new)";
            return Err(ConvertError::unsupported(path, "", reason, hint));
        }
        if head.starts_with(MAGIC) { Self::of_file(file) } else { Self::of_stream(file) }
    }

    fn of_file(file: OpenFile) -> Result<Self, ConvertError> {
        let path = file.path.clone();
        let malformed = |reason: String| ConvertError::malformed(&path, "the footer", reason);
        let start = file.bytes.checked_sub(TAIL_BYTES);
        let start = start.filter(|start| *start >= HEAD_BYTES);
        let start = start.ok_or_else(|| malformed("the file ends before it".to_owned()))?;
        let tail = file.part("the footer", start, TAIL_BYTES)?;
        let (len, magic) = tail.split_at(4);
        if magic != MAGIC {
            let found = magic.escape_ascii();
            return Err(malformed(format!("expected \"ARROW1\" at the end, found \"{found}\"")));
        }
        let len = u32_at(len, 0).map_or(0, u64::from);
        let offset = start.checked_sub(len).filter(|offset| *offset >= HEAD_BYTES && len <= MAX_MESSAGE_BYTES);
        let offset =
            offset.ok_or_else(|| malformed(format!("it declares {len} bytes, but the file has {}", file.bytes)))?;
        let bytes = file.part("the footer", offset, len)?;
        let footer = root_as_footer(&bytes).map_err(|e| malformed(e.to_string()))?;
        let schema = footer.schema().ok_or_else(|| malformed("it has no schema".to_owned()))?;
        let schema = schema_of(&path, schema)?;
        let mut places = Vec::new();
        let lists = [footer.dictionaries(), footer.recordBatches()];
        for block in lists.into_iter().flatten().flatten() {
            let start = u64::try_from(block.offset());
            let bytes = u64::try_from(block.bodyLength());
            places.push(
                start.ok().zip(bytes.ok()).ok_or_else(|| malformed("it has a negative offset or length".to_owned()))?,
            );
        }
        places.reverse();
        Ok(Self { file: Arc::new(file), schema, order: Order::Listed(places) })
    }

    fn of_stream(file: OpenFile) -> Result<Self, ConvertError> {
        let path = file.path.clone();
        let malformed = |reason: String| ConvertError::malformed(&path, "the schema", reason);
        let frame = frame_at(&file, 0, None)?;
        let frame = frame.ok_or_else(|| malformed("the stream is empty".to_owned()))?;
        let message = root_as_message(&frame.message).map_err(|e| malformed(e.to_string()))?;
        let schema = message.header_as_schema();
        let schema = schema.ok_or_else(|| malformed("the stream does not start with a schema".to_owned()))?;
        let schema = schema_of(&path, schema)?;
        let next = frame.offset.saturating_add(frame.bytes);
        Ok(Self { file: Arc::new(file), schema, order: Order::Stream(next) })
    }

    /// The next dictionary or record batch.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, ConvertError> {
        match &mut self.order {
            Order::Listed(places) => match places.pop() {
                None => Ok(None),
                Some((start, bytes)) => {
                    let frame = frame_at(&self.file, start, Some(bytes))?;
                    let missing = || {
                        let place = format!("the message at {start}");
                        let reason = "it is missing, although the footer lists it";
                        ConvertError::malformed(&self.file.path, &place, reason)
                    };
                    frame.map(Some).ok_or_else(missing)
                }
            },
            Order::Stream(next) => {
                let frame = frame_at(&self.file, *next, None)?;
                if let Some(frame) = &frame {
                    *next = frame.offset.saturating_add(frame.bytes);
                }
                Ok(frame)
            }
        }
    }
}

fn schema_of(path: &Path, schema: arrow_ipc::Schema<'_>) -> Result<SchemaRef, ConvertError> {
    if schema.endianness() == Endianness::Big {
        let reason = "the numbers are big-endian";
        let hint = "write it again on a little-endian machine, for example with pyarrow";
        return Err(ConvertError::unsupported(path, "", reason, hint));
    }
    let schema = super::guarded(path, "the schema", || {
        let schema = try_fb_to_schema(schema);
        schema.map_err(|e| ConvertError::malformed(path, "the schema", e.to_string()))
    })?;
    Ok(Arc::new(schema))
}

/// The message at `start`, or `None` at the end of a stream. `listed` is the length of the message's arrays according
/// to the footer.
fn frame_at(file: &OpenFile, start: u64, listed: Option<u64>) -> Result<Option<Frame>, ConvertError> {
    let place = format!("the message at {start}");
    let malformed = |reason: String| Err(ConvertError::malformed(&file.path, &place, reason));
    if start == file.bytes && listed.is_none() {
        return Ok(None);
    }
    let prefix = file.part(&place, start, PREFIX_BYTES)?;
    let (mark, len) = prefix.split_at(4);
    if mark != CONTINUATION {
        let found = mark.escape_ascii();
        return malformed(format!("expected four bytes 0xff, found \"{found}\""));
    }
    let len = u32_at(len, 0).map_or(0, u64::from);
    if len == 0 {
        return Ok(None);
    }
    if len > MAX_MESSAGE_BYTES {
        return malformed(format!("expected a message of at most {MAX_MESSAGE_BYTES} bytes, found {len}"));
    }
    let at = start.saturating_add(PREFIX_BYTES);
    let message = file.part(&place, at, len)?;
    let bytes = match root_as_message(&message) {
        Err(error) => return malformed(error.to_string()),
        Ok(parsed) => match parsed.header_type() {
            MessageHeader::RecordBatch | MessageHeader::DictionaryBatch | MessageHeader::Schema => parsed.bodyLength(),
            other => {
                let found = other.variant_name().unwrap_or("another message");
                return malformed(format!("expected a batch, found {found}"));
            }
        },
    };
    let offset = at.saturating_add(len);
    let left = file.bytes.saturating_sub(offset);
    let bytes = u64::try_from(bytes).ok().filter(|bytes| *bytes <= left);
    match (bytes, listed) {
        (Some(bytes), _) if bytes > MAX_BODY_BYTES => {
            let reason = format!("its arrays take {bytes} bytes, more than the limit of {MAX_BODY_BYTES}");
            let hint = "write it with smaller record batches";
            Err(ConvertError::unsupported(&file.path, &place, reason, hint))
        }
        (Some(bytes), Some(listed)) if bytes != listed => {
            malformed(format!("its arrays take {bytes} bytes, but the footer says {listed}"))
        }
        (Some(bytes), _) => Ok(Some(Frame { message, offset, bytes })),
        (None, _) => malformed(format!("its arrays extend past the end of the file: {left} bytes are left")),
    }
}
