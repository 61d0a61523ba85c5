//! Minimal loops that measure the limits of conversion.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::BitXor;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packds_convert::source::Listing;
use packds_format::Crc32c;
use packds_pixels::{DecodeOptions, Decoder};

use packds_system::{open_regular, to_usize};

use crate::BenchError;
use crate::threads::on_threads;
use crate::watch::Progress;

/// Reads and fully decodes every file on `jobs` threads, discarding the pixels.
pub(crate) fn read_and_decode(listing: &Listing, jobs: usize, progress: &Progress<'_>) -> Result<Duration, BenchError> {
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let outcomes: Vec<Result<(), BenchError>> = on_threads(jobs, || {
        let mut decoder = Decoder::new(DecodeOptions::default());
        let mut bytes = Vec::new();
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= listing.len() {
                return Ok(());
            }
            let decoded = progress.check().and_then(|()| decode_one(&listing.file_path(i), &mut bytes, &mut decoder));
            decoded.inspect_err(|_| next.store(listing.len(), Ordering::Relaxed))?;
        }
    })?;
    let time = started.elapsed();
    outcomes.into_iter().collect::<Result<(), _>>()?;
    Ok(time)
}

fn decode_one(path: &Path, bytes: &mut Vec<u8>, decoder: &mut Decoder) -> Result<(), BenchError> {
    read_whole(path, bytes)?;
    let (_, pixels) = decoder.decode_full(bytes).map_err(BenchError::pixels(path))?;
    std::hint::black_box(pixels);
    Ok(())
}

fn read_whole(path: &Path, bytes: &mut Vec<u8>) -> Result<(), BenchError> {
    bytes.clear();
    let mut file = open_regular(path).map_err(BenchError::io(path))?;
    file.read_to_end(bytes).map_err(BenchError::io(path))?;
    Ok(())
}

/// Concatenates all files into `output`, like `cat`.
pub(crate) fn concatenate(listing: &Listing, output: &Path, progress: &Progress<'_>) -> Result<Duration, BenchError> {
    let started = Instant::now();
    let mut bytes = Vec::new();
    let mut file = File::create(output).map_err(BenchError::io(output))?;
    for i in 0..listing.len() {
        progress.check()?;
        read_whole(&listing.file_path(i), &mut bytes)?;
        file.write_all(&bytes).map_err(BenchError::io(output))?;
    }
    Ok(started.elapsed())
}

/// Reads a whole file in pieces on `jobs` threads, and computes the CRC32C of each piece. Also returns the XOR of all
/// CRCs.
pub(crate) fn read_and_checksum(
    path: &Path,
    jobs: usize,
    progress: &Progress<'_>,
) -> Result<(Duration, u32), BenchError> {
    // A piece must stay in the processor's cache until its checksum is computed. Larger pieces are slower.
    const PIECE: u64 = 256 << 10;
    let file = open_regular(path).map_err(BenchError::io(path))?;
    let len = file.metadata().map_err(BenchError::io(path))?.len();
    let next = AtomicU64::new(0);
    let started = Instant::now();
    let outcomes: Vec<Result<u32, BenchError>> = on_threads(jobs, || {
        let mut buffer = vec![0; to_usize(PIECE)];
        let mut all = 0;
        loop {
            let start = next.fetch_add(PIECE, Ordering::Relaxed);
            if start >= len {
                return Ok(all);
            }
            let n = to_usize(PIECE.min(len - start));
            let piece = buffer.get_mut(..n).unwrap_or_default();
            progress.check()?;
            file.read_exact_at(piece, start).map_err(BenchError::io(path))?;
            let mut crc = Crc32c::new();
            crc.update(piece);
            all ^= crc.value();
        }
    })?;
    let time = started.elapsed();
    let crcs = outcomes.into_iter().collect::<Result<Vec<u32>, BenchError>>()?;
    Ok((time, crcs.into_iter().fold(0, BitXor::bitxor)))
}
