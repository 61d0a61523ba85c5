//! Zstandard frames, one per block.

use packds_system::{counted, to_u64};
use std::cell::RefCell;

use zstd::bulk::Decompressor;
use zstd::zstd_safe;

use crate::FormatError;
use crate::le::len_u64;

/// Maximum window of a frame: 8 MiB, so that decoding needs little memory.
const WINDOW_LOG: u32 = 23;

/// Compresses one block to one frame. The result is deterministic.
pub(crate) fn compress(raw: &[u8], level: i32) -> Result<Vec<u8>, FormatError> {
    let mut encoder = zstd::bulk::Compressor::new(level)?;
    encoder.window_log(WINDOW_LOG)?;
    Ok(encoder.compress(raw)?)
}

/// The window size that a frame declares, in bytes. `None` if its header is truncated. The size is encoded in a
/// descriptor, or it is the content size if bit 5 of the byte after the magic number is set (RFC 8878, 3.1.1.1).
fn window_of(frame: &[u8], content: Option<u64>) -> Option<u64> {
    if frame.get(4)? & 0x20 != 0 {
        return content;
    }
    let descriptor = frame.get(5)?;
    let base = 1_u64 << (10 + (descriptor >> 3));
    Some(base + base / 8 * u64::from(descriptor & 7))
}

/// Maximum decoded size of a frame of this length: each block has a 3-byte header and at least one byte, and decodes to
/// at most 128 KiB (RFC 8878, 3.1.1.2).
fn most_of(frame: &[u8]) -> u64 {
    len_u64(frame).div_ceil(4).saturating_mul(128 << 10)
}

thread_local! {
    /// Each thread reuses its decompressor, because a decompressor's tables are larger than many blocks.
    static DECOMPRESSOR: RefCell<Decompressor<'static>> = RefCell::default();
}

/// Decompresses one frame to exactly `expected` bytes in `out` (cleared first), in one pass without reallocation.
///
/// This never allocates more than a frame of this length can decode to.
pub(crate) fn decompress(frame: &[u8], expected: u64, out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let expected_bytes = counted(expected, "byte");
    let found = |found: u64| format!("expected {expected_bytes}, found {found}");
    // The declared size is not trusted. The real size is checked below.
    let said = zstd_safe::get_frame_content_size(frame).ok().flatten();
    if let Some(window) = window_of(frame, said).filter(|window| *window > 1 << WINDOW_LOG) {
        return Err(format!("its window of {window} bytes is larger than 8 MiB"));
    }
    if let Some(said) = said.filter(|said| *said != expected) {
        return Err(found(said));
    }
    // A block is exactly one frame. Without this check, data after it would go unnoticed.
    let len = zstd_safe::find_frame_compressed_size(frame).map_err(in_words)?;
    if len != frame.len() {
        return Err(format!("found {} after the frame", counted(frame.len() - len, "byte")));
    }
    let most = most_of(frame);
    if expected > most {
        return Err(format!("expected {expected_bytes}, but the frame decompresses to at most {most}"));
    }
    let room = usize::try_from(expected).map_err(|e| e.to_string())?;
    out.try_reserve_exact(room).map_err(|e| e.to_string())?;
    let n = DECOMPRESSOR.with_borrow_mut(|it| it.decompress_to_buffer(frame, out));
    let n = to_u64(n.map_err(|e| e.to_string())?);
    if n == expected { Ok(()) } else { Err(found(n)) }
}

/// zstd's message for an error code.
fn in_words(code: usize) -> String {
    zstd_safe::get_error_name(code).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_must_give_exactly_what_is_expected() {
        let raw = vec![7_u8; 100_000];
        let frame = compress(&raw, 1).unwrap();
        let mut out = Vec::new();
        decompress(&frame, 100_000, &mut out).unwrap();
        assert_eq!(out, raw);
        assert_eq!(decompress(&frame, 99_999, &mut out).unwrap_err(), "expected 99999 bytes, found 100000");
        assert_eq!(decompress(&frame, 100_001, &mut out).unwrap_err(), "expected 100001 bytes, found 100000");
        let mut long = frame.clone();
        long.extend_from_slice(b"junk");
        assert_eq!(decompress(&long, 100_000, &mut out).unwrap_err(), "found 4 bytes after the frame");
        assert!(decompress(&frame[..frame.len() - 1], 100_000, &mut out).is_err());
        let twice = [&frame[..], &frame[..]].concat();
        let behind = format!("found {} bytes after the frame", frame.len());
        assert_eq!(decompress(&twice, 100_000, &mut out).unwrap_err(), behind);
        assert!(decompress(&[], 0, &mut out).is_err());
    }

    #[test]
    fn a_frame_that_does_not_say_its_size_must_give_what_is_expected() {
        use std::io::Write;
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.write_all(&[7; 100_000]).unwrap();
        let frame = encoder.finish().unwrap();
        assert!(matches!(zstd_safe::get_frame_content_size(&frame), Ok(None)));
        let mut out = Vec::new();
        decompress(&frame, 100_000, &mut out).unwrap();
        assert_eq!(out, vec![7; 100_000]);
        assert!(decompress(&frame, 99_999, &mut out).is_err());
        assert_eq!(decompress(&frame, 100_001, &mut out).unwrap_err(), "expected 100001 bytes, found 100000");
        // Memory is never reserved for more data than a frame of this length can contain.
        let error = decompress(&frame, 1 << 60, &mut out).unwrap_err();
        assert!(error.contains("at most"), "{error}");
    }
}
