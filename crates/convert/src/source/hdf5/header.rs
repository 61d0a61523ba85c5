//! Finds the value of an attribute in an object's header.
//!
//! Variable-length strings are stored in heaps, and the library loops forever on a damaged heap. These strings are therefore read
//! without the library: this module finds the references, and `heap` follows them.

use crate::source::store::OpenFile;

/// Maximum size of an object's headers, in bytes: far more than attributes need.
const MAX_BYTES: u64 = 1 << 26;
/// Maximum number of blocks of a header. A damaged block can link to itself.
const MAX_BLOCKS: usize = 1 << 12;
const ATTRIBUTE: u16 = 0x0c;
const CONTINUATION: u16 = 0x10;
/// The flag of a message that is stored elsewhere and shared by several objects.
const IS_SHARED: u8 = 2;

/// The encoding of a header's messages.
#[derive(Clone, Copy)]
enum Form {
    V1,
    V2 { has_order: bool },
}

/// A contiguous run of messages.
struct Block {
    at: u64,
    bytes: u64,
}

/// The value of attribute `name` of the object whose header is at `at`. File addresses are relative to `base`. `None`
/// if the header does not contain the attribute itself.
pub(super) fn attribute(file: &OpenFile, base: u64, at: u64, name: &str) -> Result<Option<Vec<u8>>, String> {
    let (form, first) = first_block(file, base.saturating_add(at))?;
    let mut blocks = vec![first];
    let mut next = 0;
    let mut bytes_read = 0_u64;
    while let Some(block) = blocks.get(next) {
        next += 1;
        bytes_read = bytes_read.saturating_add(block.bytes);
        if bytes_read > MAX_BYTES || next > MAX_BLOCKS {
            return Err(format!(
                "expected an object header of at most {MAX_BYTES} bytes in at most {MAX_BLOCKS} blocks, found a larger one"
            ));
        }
        let bytes = read(file, block.at, block.bytes)?;
        let mut rest = bytes.as_slice();
        while let Some(message) = Message::take(&mut rest, form) {
            match message.kind {
                CONTINUATION => blocks.push(continued(message.body, base, form)?),
                ATTRIBUTE if message.flags & IS_SHARED == 0 => {
                    if let Some(value) = value_of(message.body, name) {
                        return Ok(Some(value.to_vec()));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(None)
}

fn first_block(file: &OpenFile, at: u64) -> Result<(Form, Block), String> {
    let head = read(file, at, 16)?;
    if !head.starts_with(b"OHDR\x02") {
        if head.first() != Some(&1) {
            return Err(format!("there is no object header at offset {at}"));
        }
        let bytes = number(head.get(8..12));
        return Ok((Form::V1, Block { at: at + 16, bytes }));
    }
    let flags = head.get(5).copied().unwrap_or(0);
    let times = if flags & 0x20 == 0 { 0 } else { 16 };
    let limits = if flags & 0x10 == 0 { 0 } else { 4 };
    let width = 1_u64 << (flags & 3);
    let start = at + 6 + times + limits;
    let bytes = number(Some(&read(file, start, width)?));
    let has_order = flags & 4 != 0;
    let at = start + width;
    Ok((Form::V2 { has_order }, Block { at, bytes }))
}

/// The location of the next block.
fn continued(body: &[u8], base: u64, form: Form) -> Result<Block, String> {
    let at = number(body.get(..8)).checked_add(base);
    let bytes = number(body.get(8..16));
    // In version 2, `OCHK` precedes the messages and a checksum follows them.
    let (before, around) = match form {
        Form::V1 => (0, 0),
        Form::V2 { .. } => (4, 8),
    };
    let at = at.and_then(|at| at.checked_add(before));
    let bytes = bytes.checked_sub(around);
    let block = at.zip(bytes).map(|(at, bytes)| Block { at, bytes });
    block.ok_or_else(|| "an object header continues outside the file".to_owned())
}

struct Message<'a> {
    kind: u16,
    flags: u8,
    body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The next message. `None` at the end.
    fn take(rest: &mut &'a [u8], form: Form) -> Option<Self> {
        let (kind, bytes, flags, head) = match form {
            Form::V1 => (number(rest.get(..2)), rest.get(2..4)?, *rest.get(4)?, 8),
            Form::V2 { has_order } => {
                let head = if has_order { 6 } else { 4 };
                (number(rest.get(..1)), rest.get(1..3)?, *rest.get(3)?, head)
            }
        };
        let bytes = usize::try_from(number(Some(bytes))).ok()?;
        let (body, after) = rest.get(head..)?.split_at_checked(bytes)?;
        *rest = after;
        let kind = u16::try_from(kind).ok()?;
        Some(Self { kind, flags, body })
    }
}

/// The value of an attribute message, if the attribute has this name.
fn value_of<'a>(body: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let (head, step) = match body.first()? {
        1 => (8, 8),
        2 => (8, 1),
        3 => (9, 1),
        _ => return None,
    };
    let size = |at: usize| usize::try_from(number(body.get(at..at + 2))).ok();
    let name_bytes = size(2)?;
    let found = body.get(head..)?.get(..name_bytes)?;
    let found = found.split(|byte| *byte == 0).next()?;
    if found != name.as_bytes() {
        return None;
    }
    // Name, type and dimensions precede the value.
    let parts = [name_bytes, size(4)?, size(6)?];
    let before: usize = parts.iter().map(|bytes| bytes.next_multiple_of(step)).sum();
    body.get(head + before..)
}

pub(super) fn read(file: &OpenFile, at: u64, len: u64) -> Result<Vec<u8>, String> {
    file.bytes_at(at, len).map_err(|e| e.to_string())
}

/// A little-endian number of up to 8 bytes; 0 if missing.
fn number(bytes: Option<&[u8]>) -> u64 {
    let bytes = bytes.unwrap_or_default().iter().rev();
    bytes.fold(0, |n, byte| (n << 8) | u64::from(*byte))
}
