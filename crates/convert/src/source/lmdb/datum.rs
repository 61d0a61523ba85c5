//! Caffe's `Datum`: an image and its label in one Protocol Buffers message.

use super::super::protobuf::{Message, Part, Wire};
use super::super::store::{ArrayType, Content};
use packds_format::DType;
use packds_system::to_usize;

/// The content of a datum.
#[derive(Debug, PartialEq)]
pub(super) struct Datum<'a> {
    pub(super) data: Part<'a>,
    pub(super) content: Content,
    pub(super) label: Option<i64>,
}

impl<'a> Datum<'a> {
    /// Parses `value` as a datum. `None` if it is something else.
    pub(super) fn parse(value: &'a [u8]) -> Result<Option<Self>, String> {
        let mut message = Message::new(value);
        let mut sizes = [0_u64; 3];
        let (mut data, mut label, mut encoded) = (None, None, false);
        loop {
            match message.next() {
                Ok(None) => break,
                Ok(Some((number @ 1..=3, Wire::Varint(size)))) => {
                    let place = to_usize(number - 1);
                    sizes.iter_mut().skip(place).take(1).for_each(|s| *s = size);
                }
                Ok(Some((4, Wire::Bytes(part)))) => data = Some(part),
                // A 32-bit number, sign-extended to 64 bits.
                Ok(Some((5, Wire::Varint(value)))) => label = Some(value.cast_signed()),
                Ok(Some((6, Wire::Bytes(_) | Wire::Fixed32(_)))) => {
                    return Err("this Datum has floats instead of bytes".to_owned());
                }
                Ok(Some((7, Wire::Varint(value)))) => encoded = value != 0,
                Ok(Some(_)) | Err(_) => return Ok(None),
            }
        }
        let Some(data) = data.filter(|data| !data.bytes.is_empty()) else {
            return Ok(None);
        };
        let array = ArrayType { dtype: DType::U8, shape: sizes.to_vec() };
        let content = if encoded {
            Content::File
        } else if array.bytes() == u64::try_from(data.bytes.len()).ok() {
            Content::of_array(array)
        } else if sizes.contains(&0) {
            return Ok(None);
        } else {
            let [c, h, w] = sizes;
            let found = data.bytes.len();
            return Err(format!("expected a Datum of {c}x{h}x{w} bytes, found {found} bytes"));
        };
        Ok(Some(Self { data, content, label }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datum_has_planes_and_a_label() {
        let value = b"\x08\x03\x10\x01\x18\x02\x22\x06abcdef\x28\x07";
        let datum = Datum::parse(value).unwrap().unwrap();
        assert_eq!((datum.data.bytes, datum.label), (&b"abcdef"[..], Some(7)));
        assert_eq!(datum.data.at, 8);
        let Content::Pixels(shape) = datum.content else { panic!("{:?}", datum.content) };
        assert_eq!((shape.height, shape.width, shape.channels), (1, 2, 3));
        let cut = Datum::parse(b"\x08\x03\x10\x01\x18\x02\x22\x02ab").unwrap_err();
        assert_eq!(cut, "expected a Datum of 3x1x2 bytes, found 2 bytes");
        assert_eq!(Datum::parse(b"plain text").unwrap(), None);
        let floats = Datum::parse(b"\x08\x01\x10\x01\x18\x01\x35\0\0\0\0");
        assert_eq!(floats, Err("this Datum has floats instead of bytes".to_owned()));
    }
}
