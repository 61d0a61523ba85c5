//! Parses as much of `tf.Example` as is needed. It is a message with named features, and each feature is a list of
//! bytes, floats or integers.

/// The features of an example that may be images, and its label.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Example<'a> {
    pub(super) bytes: Vec<&'a [u8]>,
    pub(super) label: Option<i64>,
}

pub(super) fn example(message: &[u8]) -> Option<Example<'_>> {
    let mut found = Example::default();
    for (_, features) in fields(message)? {
        for (_, entry) in fields(features.bytes()?)? {
            let (mut name, mut feature) = (&[][..], &[][..]);
            for (number, value) in fields(entry.bytes()?)? {
                match number {
                    1 => name = value.bytes()?,
                    2 => feature = value.bytes()?,
                    _ => {}
                }
            }
            for (kind, list) in fields(feature)? {
                let list = fields(list.bytes()?)?;
                match (kind, list.first()) {
                    (1, Some((_, Value::Bytes(bytes)))) => found.bytes.push(bytes),
                    (3, Some((_, value))) if name.ends_with(b"label") => {
                        found.label = match value {
                            Value::Number(number) => Some(number.cast_signed()),
                            Value::Bytes(packed) => varint(packed).map(|(n, _)| n.cast_signed()),
                        };
                    }
                    _ => {}
                }
            }
        }
    }
    Some(found)
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    const fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Number(_) => None,
        }
    }
}

/// The numbers and values of all fields of a message.
fn fields(mut message: &[u8]) -> Option<Vec<(u64, Value<'_>)>> {
    let mut all = Vec::new();
    while !message.is_empty() {
        let (key, rest) = varint(message)?;
        let (value, rest) = match key & 7 {
            0 => {
                let (number, rest) = varint(rest)?;
                (Value::Number(number), rest)
            }
            1 => (Value::Bytes(rest.get(..8)?), rest.get(8..)?),
            2 => {
                let (len, rest) = varint(rest)?;
                let (bytes, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
                (Value::Bytes(bytes), rest)
            }
            5 => (Value::Bytes(rest.get(..4)?), rest.get(4..)?),
            _ => return None,
        };
        all.push((key >> 3, value));
        message = rest;
    }
    Some(all)
}

/// A number with 7 bits per byte, lowest bits first, and the bytes after it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0_u64;
    for (place, byte) in bytes.iter().enumerate().take(10) {
        let shift = 7 * u32::try_from(place).ok()?;
        number |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(place + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A length-delimited field.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let len = u8::try_from(bytes.len()).unwrap();
        [&[number << 3 | 2, len], bytes].concat()
    }

    #[test]
    fn images_and_labels_are_found_by_what_they_are() {
        let image = field(1, &field(1, &[7; 5]));
        let label = field(3, &field(1, &[0xac, 0x02]));
        let entry = |name: &[u8], feature: &[u8]| field(1, &[field(1, name), field(2, feature)].concat());
        let features = [entry(b"image", &image), entry(b"label", &label)].concat();
        let message = field(1, &features);
        let found = example(&message).unwrap();
        assert_eq!(found.bytes, [&[7; 5][..]]);
        assert_eq!(found.label, Some(300));
        assert_eq!(example(&message[..message.len() - 1]), None);
    }
}
