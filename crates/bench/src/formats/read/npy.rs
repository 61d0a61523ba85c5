//! Finds where the data in a `.npy` file begins.

/// The header size of a `.npy` file that begins with `head`. `None` if it is not a `.npy` file.
pub(super) fn header_bytes(head: &[u8]) -> Option<usize> {
    let head = head.strip_prefix(b"\x93NUMPY")?;
    match head {
        [1, _, a, b, ..] => Some(10 + usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => {
            let len = u32::from_le_bytes([*a, *b, *c, *d]);
            Some(12 + usize::try_from(len).ok()?)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_begins_behind_the_header() {
        assert_eq!(header_bytes(b"\x93NUMPY\x01\x00\x76\x00{"), Some(128));
        assert_eq!(header_bytes(b"\x93NUMPY\x02\x00\x74\x00\x00\x00{"), Some(128));
        assert_eq!(header_bytes(b"NUMPY\x01\x00\x76\x00"), None);
        assert_eq!(header_bytes(b"\x93NUMPY\x01"), None);
    }
}
