//! Checks a Parquet footer before the library uses its numbers: the depth of the schema, the stated number of children of each
//! group, and encryption. The footer is a struct in Thrift's compact protocol.
//!
//! The library reads the metadata itself.

use std::path::Path;

use crate::error::ConvertError;
use crate::source::store::OpenFile;

/// Size of the end of every file, in bytes: the footer length and four letters.
const TAIL_BYTES: u64 = 8;
/// Maximum size of a footer, in bytes.
const MAX_FOOTER_BYTES: u64 = 1 << 30;
/// Maximum nesting of groups, and of Thrift's lists and structs.
const MAX_LEVELS: usize = 64;

/// Field numbers in the footer's struct and in a schema element.
const SCHEMA: i32 = 2;
const ENCRYPTION: i32 = 8;
const CHILDREN: i32 = 5;

/// Checks the footer of `file`.
pub(super) fn check(file: &OpenFile) -> Result<(), ConvertError> {
    let path = file.path.as_path();
    let malformed = |reason: String| ConvertError::malformed(path, "the footer", reason);
    let start = file.bytes.checked_sub(TAIL_BYTES).filter(|start| *start >= 4);
    let start = start.ok_or_else(|| malformed(format!("expected at least 12 bytes, found {}", file.bytes)))?;
    let tail = file.part("the footer", start, TAIL_BYTES)?;
    let (len, magic) = tail.split_at(4);
    if magic == b"PARE" {
        return Err(encrypted(path));
    }
    if magic != b"PAR1" {
        let found = magic.escape_ascii();
        return Err(malformed(format!("expected \"PAR1\" at the end, found \"{found}\"")));
    }
    let len = <[u8; 4]>::try_from(len).unwrap_or_default();
    let len = u64::from(u32::from_le_bytes(len));
    let offset = start.checked_sub(len).filter(|offset| *offset >= 4 && len <= MAX_FOOTER_BYTES);
    let offset =
        offset.ok_or_else(|| malformed(format!("it declares {len} bytes, but the file has {}", file.bytes)))?;
    let footer = file.part("the footer", offset, len)?;
    match look(&footer) {
        Ok(false) => Ok(()),
        Ok(true) => Err(encrypted(path)),
        Err(reason) => Err(malformed(reason)),
    }
}

fn encrypted(path: &Path) -> ConvertError {
    let hint = "decrypt it first, for example by reading and writing it with pyarrow";
    ConvertError::unsupported(path, "", "the file is encrypted", hint)
}

/// Checks the schema in the footer. Returns whether the file is encrypted.
fn look(footer: &[u8]) -> Result<bool, String> {
    let mut thrift = Thrift { rest: footer };
    let (mut field, mut is_encrypted) = (0, false);
    while let Some((number, kind)) = thrift.field(field)? {
        field = number;
        match (number, kind) {
            (SCHEMA, LIST) => thrift.schema()?,
            (number, kind) => {
                is_encrypted |= number == ENCRYPTION;
                thrift.skip(kind, MAX_LEVELS)?;
            }
        }
    }
    Ok(is_encrypted)
}

/// Thrift types that this parser distinguishes.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const I32: u8 = 5;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// The unread bytes.
struct Thrift<'a> {
    rest: &'a [u8],
}

impl Thrift<'_> {
    fn byte(&mut self) -> Result<u8, String> {
        let (first, rest) = self.rest.split_first().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(*first)
    }

    fn pass(&mut self, n: u64) -> Result<(), String> {
        let n = usize::try_from(n).ok();
        let rest = n.and_then(|n| self.rest.get(n..));
        self.rest = rest.ok_or("it ends too early")?;
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err("a number exceeds 64 bits".to_owned())
    }

    fn zigzag(&mut self) -> Result<i64, String> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// Number and type of the next field of a struct. `None` at its end.
    fn field(&mut self, before: i32) -> Result<Option<(i32, u8)>, String> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        let number = match byte >> 4 {
            0 => self.zigzag()?,
            delta => i64::from(before) + i64::from(delta),
        };
        let number = i32::try_from(number).map_err(|_| "a field number exceeds 32 bits")?;
        Ok(Some((number, byte & 0x0f)))
    }

    /// Length and type of a list.
    fn list(&mut self) -> Result<(u64, u8), String> {
        let byte = self.byte()?;
        let len = match byte >> 4 {
            15 => self.varint()?,
            len => u64::from(len),
        };
        Ok((len, byte & 0x0f))
    }

    fn skip(&mut self, kind: u8, levels: usize) -> Result<(), String> {
        let levels = levels.checked_sub(1);
        let levels = levels.ok_or_else(|| format!("it is nested more than {MAX_LEVELS} levels deep"))?;
        match kind {
            TRUE | FALSE => Ok(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let len = self.varint()?;
                self.pass(len)
            }
            LIST | SET => {
                let (len, kind) = self.list()?;
                for _ in 0..len {
                    self.skip_item(kind, levels)?;
                }
                Ok(())
            }
            MAP => {
                let len = self.varint()?;
                let kinds = if len == 0 { 0 } else { self.byte()? };
                for _ in 0..len {
                    self.skip_item(kinds >> 4, levels)?;
                    self.skip_item(kinds & 0x0f, levels)?;
                }
                Ok(())
            }
            STRUCT => {
                let mut field = 0;
                while let Some((number, kind)) = self.field(field)? {
                    field = number;
                    self.skip(kind, levels)?;
                }
                Ok(())
            }
            other => Err(format!("a value has the unknown type {other}")),
        }
    }

    /// Skips an item of a list, where each boolean takes a byte.
    fn skip_item(&mut self, kind: u8, levels: usize) -> Result<(), String> {
        match kind {
            TRUE | FALSE => self.pass(1),
            kind => self.skip(kind, levels),
        }
    }

    /// The elements of the schema: a tree in which each group precedes its children.
    fn schema(&mut self) -> Result<(), String> {
        let (n, kind) = self.list()?;
        if kind != STRUCT {
            return Err("its schema is not a list of structs".to_owned());
        }
        // Number of remaining children of each open group, from the root down.
        let mut open: Vec<u64> = Vec::new();
        for place in 0..n {
            let children = self.element()?;
            if children > n - place - 1 {
                return Err(format!("a group declares {children} children, but {} elements follow it", n - place - 1));
            }
            if let Some(left) = open.last_mut() {
                *left = left.saturating_sub(1);
            }
            open.push(children);
            if open.len() > MAX_LEVELS {
                return Err(format!("groups are nested more than {MAX_LEVELS} levels deep"));
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Ok(())
    }

    /// The number of children of a schema element.
    fn element(&mut self) -> Result<u64, String> {
        let (mut field, mut children) = (0, 0);
        while let Some((number, kind)) = self.field(field)? {
            field = number;
            if number == CHILDREN && matches!(kind, I16 | I32 | I64) {
                let found = self.zigzag()?;
                children = u64::try_from(found).map_err(|_| format!("a group declares {found} children"))?;
            } else {
                self.skip(kind, MAX_LEVELS)?;
            }
        }
        Ok(children)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer with a schema of nested groups, each with one child.
    fn chain(levels: usize) -> Vec<u8> {
        let mut footer = vec![0x15, 2, 0x19, 0xfc];
        let mut n = levels + 1;
        while n >= 0x80 {
            footer.push(u8::try_from(n & 0x7f).unwrap() | 0x80);
            n >>= 7;
        }
        footer.push(u8::try_from(n).unwrap());
        for _ in 0..levels {
            footer.extend([0x48, 1, b'g', 0x15, 2, 0]);
        }
        footer.extend([0x48, 1, b'v', 0, 0]);
        footer
    }

    #[test]
    fn a_schema_that_is_too_deep_is_refused_before_anything_recurses_into_it() {
        assert_eq!(look(&chain(3)), Ok(false));
        assert!(look(&chain(100_000)).unwrap_err().contains("levels deep"));
    }

    #[test]
    fn a_group_cannot_have_more_children_than_there_are() {
        // Field 2 is a list of one struct, and field 5 of the struct is 2^30.
        let footer = [0x29, 0x1c, 0x55, 0x80, 0x80, 0x80, 0x80, 0x08, 0, 0];
        assert!(look(&footer).unwrap_err().contains("children"));
    }

    #[test]
    fn no_bytes_make_it_panic_or_hang() {
        let footer = chain(3);
        for at in 0..footer.len() {
            let _ = look(&footer[..at]);
            for bit in 0..8 {
                let mut bytes = footer.clone();
                bytes[at] ^= 1 << bit;
                let _ = look(&bytes);
            }
        }
        // A list of about 2^53 one-byte booleans.
        let _ = look(&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    }
}
