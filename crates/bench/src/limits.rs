//! The limits of converting: minimal loops.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packds_convert::source::Listing;
use packds_format::Crc32c;
use packds_pixels::{DecodeOptions, Decoder};

use packds_system::{open_regular, to_usize};

use crate::BenchError;
use crate::threads::start;

/// Reads and fully decodes every file on `jobs` threads, discarding the pixels. Returns the number of pixels too.
pub(crate) fn read_and_decode(listing: &Listing, jobs: usize) -> Result<(Duration, u64), BenchError> {
    let next = AtomicUsize::new(0);
    let pixels = AtomicU64::new(0);
    let failed = Mutex::new(None);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            start(scope, || {
                let mut decoder = Decoder::new(DecodeOptions::default());
                let mut bytes = Vec::new();
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= listing.len() {
                        return;
                    }
                    match decode_one(&listing.file_path(i), &mut bytes, &mut decoder) {
                        Ok(n) => _ = pixels.fetch_add(n, Ordering::Relaxed),
                        Err(error) => {
                            *failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                            next.store(listing.len(), Ordering::Relaxed);
                        }
                    }
                }
            })?;
        }
        Ok::<(), BenchError>(())
    })?;
    let time = started.elapsed();
    match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok((time, pixels.into_inner())),
    }
}

fn decode_one(path: &Path, bytes: &mut Vec<u8>, decoder: &mut Decoder) -> Result<u64, BenchError> {
    read_whole(path, bytes)?;
    let decoded = decoder.decode_full(bytes);
    let (info, pixels) = decoded.map_err(|source| BenchError::Pixels { path: path.to_owned(), source })?;
    std::hint::black_box(pixels);
    Ok(u64::from(info.width) * u64::from(info.height))
}

fn read_whole(path: &Path, bytes: &mut Vec<u8>) -> Result<(), BenchError> {
    bytes.clear();
    let mut file = open_regular(path).map_err(BenchError::io(path))?;
    file.read_to_end(bytes).map_err(BenchError::io(path))?;
    Ok(())
}

/// Concatenates all files into `output`, like `cat`.
pub(crate) fn concatenate(listing: &Listing, output: &Path) -> Result<Duration, BenchError> {
    let started = Instant::now();
    let mut bytes = Vec::new();
    let mut file = File::create(output).map_err(BenchError::io(output))?;
    for i in 0..listing.len() {
        read_whole(&listing.file_path(i), &mut bytes)?;
        file.write_all(&bytes).map_err(BenchError::io(output))?;
    }
    Ok(started.elapsed())
}

/// Reads a whole file in pieces on `jobs` threads, and computes each piece's CRC32C. Returns the XOR of them too.
pub(crate) fn read_and_checksum(path: &Path, jobs: usize) -> Result<(Duration, u32), BenchError> {
    // Small enough to stay in the cache between the two steps: larger pieces are slower.
    const PIECE: u64 = 256 << 10;
    let file = open_regular(path).map_err(BenchError::io(path))?;
    let len = file.metadata().map_err(BenchError::io(path))?.len();
    let next = AtomicU64::new(0);
    let all = Mutex::new((0_u32, None));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            start(scope, || {
                let mut buffer = vec![0; to_usize(PIECE)];
                let mut mine = 0;
                let outcome = loop {
                    let start = next.fetch_add(PIECE, Ordering::Relaxed);
                    if start >= len {
                        break None;
                    }
                    let n = to_usize(PIECE.min(len - start));
                    let piece = buffer.get_mut(..n).unwrap_or_default();
                    if let Err(error) = file.read_exact_at(piece, start) {
                        break Some(error);
                    }
                    let mut crc = Crc32c::new();
                    crc.update(piece);
                    mine ^= crc.value();
                };
                let mut all = all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                all.0 ^= mine;
                all.1 = outcome.or(all.1.take());
            })?;
        }
        Ok::<(), BenchError>(())
    })?;
    let time = started.elapsed();
    match all.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        (_, Some(source)) => Err(BenchError::Io { path: path.to_owned(), source }),
        (crc, None) => Ok((time, crc)),
    }
}
