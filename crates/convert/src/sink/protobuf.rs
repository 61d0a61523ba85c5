//! Writes the wire format of protocol buffers: the fields of a message, whatever its type.

use packds_system::to_u64;

/// Appends a field that holds bytes, a string or a message.
pub(super) fn bytes_field(number: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(number << 3 | 2);
    varint(to_u64(bytes.len()), out);
    out.extend_from_slice(bytes);
}

/// Appends a number as a varint.
pub(super) fn varint(mut value: u64, out: &mut Vec<u8>) {
    loop {
        // A byte holds seven bits of the number.
        let low = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}
