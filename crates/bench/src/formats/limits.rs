//! Hardware limits for the same images, measured in the same run.

use packds_system::to_u64;
use std::collections::BTreeMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packds_pixels::encode_png;
use packds_reader::loader::Loader;
use packds_reader::plan::Order;

use super::cache;
use super::read::Pictures;
use super::reference::Reference;
use super::report::Limits;
use crate::BenchError;
use crate::load::limit::Limit;
use crate::measure::{median, to_f64};
use crate::threads::on_threads;
use crate::watch::Progress;

/// Number of images to decode repeatedly.
const DECODED: u64 = 64;

pub(super) fn measure(
    reference: &Reference,
    threads: &[usize],
    rounds: usize,
    cold: bool,
    seed: u64,
    progress: &Progress<'_>,
) -> Result<Limits, BenchError> {
    let mut limits = Limits::default();
    let files = png_files(reference)?;
    for &n in threads {
        let mut copies = Vec::new();
        let mut decodes = Vec::new();
        for _ in 0..rounds.max(1) {
            progress.check()?;
            copies.push(copied(reference, n, seed)?);
            decodes.push(decoded(&files, reference, n)?);
        }
        limits.memcpy_images_per_s.insert(n, median(copies));
        limits.decode_images_per_s.insert(n, median(decodes));
    }
    if cold {
        let reads: Result<Vec<f64>, BenchError> =
            (0..rounds.max(1)).map(|_| progress.check().and_then(|()| read(reference, seed))).collect();
        limits.disk_read_images_per_s = BTreeMap::from([("cold".to_owned(), median(reads?))]);
    }
    Ok(limits)
}

/// Runs a limit of `bench load` on the reference. Returns images per second.
fn run(reference: &Reference, threads: usize, cold: bool, seed: u64, epochs: u64) -> Result<f64, BenchError> {
    let path = reference.pack.file_path();
    let loader = Loader::builder(packds_reader::open(path)?)
        .batch(reference.batch)
        .order(Order::Sequential)
        .threads(NonZero::new(threads).unwrap_or(NonZero::<usize>::MIN))
        .build()?;
    let limit = Limit::new(&loader, (None, None), threads.max(1), cold, seed)?;
    let steps = loader.schedule().epoch(0)?.steps();
    let time = limit.run(0, steps * epochs)?;
    Ok(rate(reference.n_samples() * epochs, time))
}

fn copied(reference: &Reference, threads: usize, seed: u64) -> Result<f64, BenchError> {
    // About 8 GiB. This takes long enough for a stable rate on a shared processor.
    let bytes = reference.n_samples() * to_u64(reference.sample_bytes());
    run(reference, threads, false, seed, ((8 << 30) / bytes.max(1)).clamp(1, 10_000))
}

/// Reads the reference pack, bypassing the page cache. Its cached pages are dropped first. Otherwise, the kernel
/// would check them and write them back.
fn read(reference: &Reference, seed: u64) -> Result<f64, BenchError> {
    cache::drop_all(&[reference.pack.file_path()])?;
    run(reference, 1, true, seed, 1)
}

fn png_files(reference: &Reference) -> Result<Vec<Vec<u8>>, BenchError> {
    let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let channels = u8::try_from(reference.channels).unwrap_or(3);
    let (width, height) = (narrow(reference.width), narrow(reference.height));
    let file = |sample| {
        let pixels = reference.pack.item(0, sample)?;
        encode_png(width, height, channels, &pixels).map_err(BenchError::pixels(reference.pack.file_path()))
    };
    (0..reference.n_samples().min(DECODED)).map(file).collect()
}

/// Decodes files from memory on threads that share a queue, for at least a quarter of a second.
fn decoded(files: &[Vec<u8>], reference: &Reference, threads: usize) -> Result<f64, BenchError> {
    const LEAST: Duration = Duration::from_millis(250);
    let next = AtomicUsize::new(0);
    let started = Instant::now();
    let decoded: Vec<u64> = on_threads(threads, || {
        let mut pictures = Pictures::new(reference.channels);
        let mut out = vec![0; reference.sample_bytes()];
        let mut n = 0;
        while started.elapsed() < LEAST {
            let number = next.fetch_add(1, Ordering::Relaxed) % files.len().max(1);
            if let Some(file) = files.get(number) {
                // Decoding does not fail, because these files come from our own encoder.
                n += u64::from(pictures.decode(file, &mut out).unwrap_or(false));
            }
            std::hint::black_box(out.first());
        }
        n
    })?;
    Ok(rate(decoded.into_iter().sum(), started.elapsed()))
}

fn rate(images: u64, time: Duration) -> f64 {
    to_f64(images) / time.as_secs_f64().max(1e-9)
}
