//! Executes kernel launches of the simulated driver: runs the twin on memory of the process.

use packds_pixels::ops::Adjustment;
use packds_reader::device::{ColorOp, Frame, Patch, Share};

use super::memory::{address, bytes_at, copy, place};
use crate::driver::DevicePtr;
use crate::emission::Emission;
use crate::error::CudaError;
use crate::twin;

/// Size of a launch's table in bytes.
pub(super) fn table_bytes(e: &Emission) -> u64 {
    4 * u64::from(e.channels) * (256 + u64::from(e.n_patches))
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn frame_of(bytes: &[u8]) -> Frame {
    Frame {
        source: u64::from(word(&bytes[4..])) << 32 | u64::from(word(bytes)),
        x: word(&bytes[8..]).cast_signed(),
        y: word(&bytes[12..]).cast_signed(),
        flips: word(&bytes[16..]),
        width: word(&bytes[20..]),
        height: word(&bytes[24..]),
        row_bytes: word(&bytes[28..]),
        across: word(&bytes[32..]),
        down: word(&bytes[36..]),
    }
}

fn patch_of(bytes: &[u8]) -> Patch {
    Patch { x: (word(bytes), word(&bytes[4..])), y: (word(&bytes[8..]), word(&bytes[12..])) }
}

fn share_of(bytes: &[u8]) -> Share {
    Share { patch: patch_of(bytes), own: (word(&bytes[16..]) == 0).then(|| f32::from_bits(word(&bytes[20..]))) }
}

fn color_of(bytes: &[u8]) -> ColorOp {
    let by = word(&bytes[4..]);
    let factor = f32::from_bits(by);
    ColorOp(match word(bytes) {
        1 => Some(Adjustment::Brightness(factor)),
        2 => Some(Adjustment::Contrast(factor)),
        3 => Some(Adjustment::Saturation(factor)),
        4 => Some(Adjustment::Hue(factor)),
        5 => Some(Adjustment::Grayscale),
        6 => Some(Adjustment::Solarize(u8::try_from(by).unwrap_or(u8::MAX))),
        _ => None,
    })
}

/// Reads `n` items of `N` bytes each at an address. Empty if the address is null.
fn items<const N: usize, T>(at: DevicePtr, n: u64, item: impl Fn(&[u8]) -> T) -> Vec<T> {
    if at.0 == 0 {
        return Vec::new();
    }
    let bytes = bytes_at(at.0, n * address(N));
    bytes.chunks_exact(N).map(item).collect()
}

/// Performs a launch. `pictures` and `taps` are the numbers of bytes from the addresses of the source and the taps to
/// the ends of their allocations.
pub(super) fn emit(e: &Emission, pictures: u64, taps: u64) -> Result<(), CudaError> {
    let n = u64::from(e.n);
    let table = items::<4, _>(e.table, table_bytes(e) / 4, word);
    let frames = items::<{ Frame::BYTES }, _>(e.frames, n, frame_of);
    let frames = (e.frames.0 != 0).then_some(frames);
    let patches = items::<{ Patch::BYTES }, _>(e.patches, n * u64::from(e.n_patches), patch_of);
    let shares = items::<{ Share::BYTES }, _>(e.shares, n, share_of);
    let colors = items::<{ ColorOp::BYTES }, _>(e.colors, n * u64::from(e.n_colors), color_of);
    let source = match e.frames.0 {
        0 => n * u64::from(e.width) * u64::from(e.height) * u64::from(e.channels),
        _ => pictures,
    };
    let taps = items::<4, _>(e.taps, taps / 4, word);
    let inputs = twin::Inputs {
        source: bytes_at(e.source.0, source),
        frames: frames.as_deref(),
        table: &table,
        patches: &patches,
        shares: (e.shares.0 != 0).then_some(&shares),
        colors: &colors,
        taps: &taps,
    };
    let mut out = vec![0; place(e.out_bytes())];
    twin::emit(e, inputs, &mut out)?;
    let from = address(out.as_ptr().expose_provenance());
    copy(from, e.out.0, e.out_bytes());
    Ok(())
}
