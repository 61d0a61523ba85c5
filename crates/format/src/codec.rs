//! Codecs: bytes to bytes, one block at a time. docs/format.md, "Codecs".

use std::io::Read;

use serde::{Deserialize, Serialize};

use crate::FormatError;
use crate::filter::Filter;
use crate::le::len_u64;

/// How the chunks of a field are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase")]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// Zstandard (RFC 8878), blocks of whole samples, each a frame of its own, after an optional pixel filter.
    Zstd {
        /// Compression level, 1 to 19.
        level: i32,
        /// The pixel filter applied before.
        filter: Filter,
    },
}

impl Codec {
    /// Whether blocks are stored as they are.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::None
    }

    /// The pixel filter.
    #[must_use]
    pub fn filter(&self) -> Filter {
        match self {
            Self::None => Filter::NONE,
            Self::Zstd { filter, .. } => *filter,
        }
    }

    /// The number in a part entry.
    #[must_use]
    pub const fn number(&self) -> u8 {
        match self {
            Self::None => 0,
            Self::Zstd { .. } => 1,
        }
    }
}

/// The largest window a frame may ask for: 8 MiB, so that decoding needs little memory.
const WINDOW_LOG: u32 = 23;

/// Room for the first bytes of a frame.
const FIRST_STEP: u64 = 64 << 10;

/// Compresses one block into one frame. The same bytes come out for the same bytes and level.
pub(crate) fn compress(raw: &[u8], level: i32) -> Result<Vec<u8>, FormatError> {
    let mut encoder = zstd::bulk::Compressor::new(level)?;
    encoder.window_log(WINDOW_LOG)?;
    Ok(encoder.compress(raw)?)
}

/// Decompresses one frame that must give exactly `expected` bytes, into `out` (cleared first).
///
/// `out` grows with what the frame really yields, so a frame that lies about its size cannot make it grow further.
pub(crate) fn decompress(frame: &[u8], expected: u64, out: &mut Vec<u8>) -> Result<(), String> {
    out.clear();
    let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(|e| e.to_string())?;
    decoder
        .window_log_max(WINDOW_LOG)
        .map_err(|e| e.to_string())?;
    // One frame is a whole block: bytes behind it would be a place to hide things in.
    let mut decoder = decoder.single_frame();
    // One byte more than expected, to see that there is more; at most twice what there is, to follow the frame.
    let most = expected.saturating_add(1);
    loop {
        let len = len_u64(out);
        let step = len.max(FIRST_STEP).min(most.saturating_sub(len));
        out.reserve_exact(usize::try_from(step).unwrap_or(0));
        let found = (&mut decoder)
            .take(step)
            .read_to_end(out)
            .map_err(|e| e.to_string())?;
        if crate::le::to_u64(found) < step || step == 0 {
            break;
        }
    }
    let found = len_u64(out);
    if found > expected {
        return Err(format!("expected {expected} bytes, found more"));
    }
    if found < expected {
        return Err(format!("expected {expected} bytes, found {found}"));
    }
    let rest = decoder.finish().len();
    if rest > 0 {
        Err(format!("{rest} bytes behind the frame"))
    } else {
        Ok(())
    }
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
        assert_eq!(
            decompress(&frame, 99_999, &mut out).unwrap_err(),
            "expected 99999 bytes, found more"
        );
        assert_eq!(
            decompress(&frame, 100_001, &mut out).unwrap_err(),
            "expected 100001 bytes, found 100000"
        );
        let mut long = frame.clone();
        long.extend_from_slice(b"junk");
        assert_eq!(
            decompress(&long, 100_000, &mut out).unwrap_err(),
            "4 bytes behind the frame"
        );
        assert!(decompress(&frame[..frame.len() - 1], 100_000, &mut out).is_err());
        assert!(decompress(&[], 0, &mut out).is_err());
    }
}
