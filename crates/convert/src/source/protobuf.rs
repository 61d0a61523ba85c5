//! Reads the wire format of protocol buffers: the fields of a message.
//!
//! `tfrecord` and `lmdb` interpret the fields.

/// Reads a message field by field. Lengths are checked against the bytes of the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of this message in the outermost message.
    base: usize,
}

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    /// Bytes, a string, packed numbers or a message.
    Bytes(Part<'a>),
}

/// A byte range and its offset in the outermost message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Part<'a> {
    /// The bytes as a message.
    pub(super) fn message(self) -> Message<'a> {
        Message { bytes: self.bytes, at: 0, base: self.at }
    }
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Part { bytes, at: 0 }.message()
    }

    /// The number and the value of the next field. `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, String> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let wire = match tag & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(self.chunk()?),
            5 => Wire::Fixed32(self.chunk()?),
            2 => {
                let len = self.varint()?;
                let at = self.at;
                let end = usize::try_from(len).ok().and_then(|len| at.checked_add(len));
                let bytes = end.and_then(|end| self.bytes.get(at..end));
                let bytes = bytes.ok_or_else(|| {
                    let left = self.bytes.len() - at;
                    format!("expected a field of {len} bytes, found {left} bytes")
                })?;
                self.at += bytes.len();
                let at = self.base + at;
                Wire::Bytes(Part { bytes, at })
            }
            other => {
                return Err(format!("expected a protocol buffer, found a field of wire type {other}"));
            }
        };
        match tag >> 3 {
            0 => Err("expected a protocol buffer, found a field with number 0".to_owned()),
            number => Ok(Some((number, wire))),
        }
    }

    /// The next varint of packed numbers. `None` at the end.
    pub(super) fn next_varint(&mut self) -> Result<Option<u64>, String> {
        if self.at >= self.bytes.len() {
            return Ok(None);
        }
        self.varint().map(Some)
    }

    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.bytes.get(self.at).copied();
            let byte = byte.ok_or("a number is truncated")?;
            self.at += 1;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for only one bit of a u64.
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has more than 64 bits".to_owned())
    }

    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let chunk = rest.first_chunk().ok_or("a number is truncated")?;
        self.at += N;
        Ok(*chunk)
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutation::{Dice, damage};
    use super::*;

    #[test]
    fn fields_of_every_kind_are_read() {
        let bytes = b"\x08\x96\x01\x12\x02hi\x1d\x01\0\0\0\x21\x02\0\0\0\0\0\0\0";
        let mut message = Message::new(bytes);
        let mut fields = Vec::new();
        while let Some(field) = message.next().unwrap() {
            fields.push(field);
        }
        let part = Part { bytes: b"hi", at: 5 };
        assert_eq!(
            fields,
            [
                (1, Wire::Varint(150)),
                (2, Wire::Bytes(part)),
                (3, Wire::Fixed32([1, 0, 0, 0])),
                (4, Wire::Fixed64([2, 0, 0, 0, 0, 0, 0, 0])),
            ]
        );
    }

    #[test]
    fn hostile_messages_end_in_errors() {
        for bytes in [
            &b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"[..],
            b"\x12\x05hi",
            b"\x08",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            b"\x0b",
            b"\x00\x01",
            b"\x1d\0\0",
        ] {
            assert!(Message::new(bytes).next().is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn damage_never_panics() {
        let whole = b"\x0a\x08\x12\x06\x08\x96\x01\x12\x01a\x12\x02hi\x1d\x01\0\0\0".to_vec();
        let mut dice = Dice::new(3);
        for _ in 0..20_000 {
            let mut bytes = whole.clone();
            damage(&mut bytes, &mut dice);
            let mut open = vec![Message::new(&bytes)];
            while let Some(message) = open.last_mut() {
                match message.next() {
                    Ok(Some((_, Wire::Bytes(part)))) => {
                        assert_eq!(&bytes[part.at..part.at + part.bytes.len()], part.bytes);
                        open.push(part.message());
                    }
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => {
                        open.pop();
                    }
                }
            }
        }
    }
}
