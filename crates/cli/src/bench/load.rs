//! `packds bench load`: measures loading, together with the hardware limit.

use std::io::Write;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use packds_bench::{LoadBench, LoadBenchOptions, bench_load};
use packds_reader::Checksums;
use packds_reader::augment::Buckets;
use packds_reader::plan::Order;

use super::{augmentation, check_time, show_cache, show_machine};
use crate::args::{n_threads, named, ordered};
use crate::human::{counted, human_bytes};
use crate::progress::Shown;
use crate::task::Amount;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds bench load train.pack
  packds bench load train.pack --batch 64 --jobs 2 --augment rrc224,flip";

/// Measure loading batches from a pack, and compare it with copying, decoding or reading the same data
///
/// Slices of epochs alternate with slices of a minimal loop, on the same number of threads. Ratios are medians of the
/// pairs. The loop is memcpy for pixels that are copied, resize or decode_crop_resize for images that are augmented,
/// and direct_read for cold reads.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadBenchArgs {
    /// Pack to measure
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pack: PathBuf,
    /// Order of samples
    #[arg(long, value_parser = named::<Order>(), default_value = "window")]
    order: Order,
    /// Chunks shuffled together, for `--order window` [default: 64, or fewer if two windows exceed the memory]
    #[arg(long, value_name = "CHUNKS")]
    window: Option<NonZero<u32>>,
    /// Samples per batch [default: 256; 64 for variable-size images; fewer for a smaller pack]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Threads of the loader, and of the limit; 0 = one per core
    #[arg(short, long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Augmentations, such as rrc224,flip; empty for none [default: rrc224,flip for variable-size images]
    #[arg(long, value_name = "OPS")]
    augment: Option<String>,
    /// Sizes of batches, one for each aspect ratio, such as 512,640x384,384x640 or area:262144/64
    #[arg(long, value_name = "SIZES", value_parser = Buckets::parse)]
    buckets: Option<Buckets>,
    /// Read from disk, bypassing the page cache; requires --memory below the pack size
    #[arg(long)]
    cold: bool,
    /// Maximum time per measurement
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Memory for the loader, in bytes or with a unit, such as 4GiB [default: 4 GiB]
    #[arg(long, value_name = "BYTES", value_parser = packds_system::parse_bytes)]
    memory: Option<u64>,
    /// When to verify checksums
    #[arg(long, value_parser = named::<Checksums>(), default_value = "first-touch")]
    checksums: Checksums,
    /// Seed of the order and augmentation
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
}

impl LoadBenchArgs {
    fn options(&self) -> Result<LoadBenchOptions, Failure> {
        let order = ordered(self.order, self.window.map(NonZero::get))?;
        check_time("--seconds", self.seconds)?;
        Ok(LoadBenchOptions {
            order,
            batch: self.batch,
            threads: n_threads(self.jobs),
            augment: self.augment.clone(),
            buckets: self.buckets.clone(),
            cold: self.cold,
            seconds: self.seconds,
            memory_bytes: self.memory,
            checksums: self.checksums,
            seed: self.seed,
        })
    }
}

pub(crate) fn run(args: &LoadBenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.options()?;
    // The first epoch and the slices take at most this long each.
    let about = Duration::from_secs_f64(2.0 * options.seconds);
    let shown = Shown::new(console);
    let bench = bench_load(&args.pack, &options, &mut |what| shown.step(what, Amount::Time { about }))?;
    drop(shown);
    console.result(|| &bench, |console| show(&bench, &mut console.prose()))
}

fn show(bench: &LoadBench, out: &mut dyn Write) -> Result<(), Failure> {
    show_machine(&bench.machine, out)?;
    let (pack, options) = (&bench.pack, &bench.options);
    let (samples, chunk) = (counted(pack.n_samples, "sample"), pack.chunk_samples);
    let (file, sample) = (human_bytes(pack.bytes), human_bytes(pack.sample_bytes));
    writeln!(out, "pack     {samples} in chunks of {chunk}, {file}; {sample} per sample in a batch")?;
    let augment = augmentation(&options.augment);
    writeln!(
        out,
        "options  order {} (window {}), batch {}, {}, images {augment}, checksums {}, seed {}",
        options.order,
        options.window,
        options.batch,
        counted(options.threads, "thread"),
        options.checksums,
        options.seed
    )?;
    if let Some(sizes) = &options.buckets {
        writeln!(out, "buckets  {sizes}")?;
    }
    if let Some(most) = bench.batch_cut_to {
        writeln!(out, "batch    the default size was reduced to {most}: an epoch of {samples} must have one batch")?;
    }
    writeln!(out, "access   {}: {}", bench.engine, bench.access_reason)?;
    show_cache(bench.cache, bench.resident_before, bench.resident_after, out)?;
    show_figures(bench, out)
}

fn show_figures(bench: &LoadBench, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "loaded   {:.0} images/s, {:.2} GiB/s: {:.3} of {} ({:.0} images/s), {:.3} to {:.3} over {} of {}",
        bench.images_per_s,
        bench.bytes_per_s / f64::from(1 << 30),
        bench.ratio,
        bench.limit,
        bench.limit_images_per_s,
        bench.ratio_range.0,
        bench.ratio_range.1,
        counted(bench.slices, "slice"),
        counted(bench.slice_images, "image")
    )?;
    if let Some(rate) = bench.read_once_images_per_s {
        writeln!(out, "read     {rate:.0} images/s if the consumer reads every byte once")?;
    }
    writeln!(
        out,
        "first    first batch after {:.1} ms, resume in {:.2} ms; first epoch {:.0} images/s ({}); 99 % of batches within {:.2} ms",
        bench.first_batch_ms,
        bench.resume_ms,
        bench.first_epoch_images_per_s,
        counted(bench.first_epoch_images, "image"),
        bench.p99_batch_ms
    )?;
    for first in &bench.first_batches {
        writeln!(
            out,
            "first    cold first batch, {}: {:.1} ms, {:.2} times a direct read of its samples ({:.1} ms), {:.2} to {:.2}",
            first.access, first.ms, first.ratio, first.limit_ms, first.ratio_range.0, first.ratio_range.1
        )?;
    }
    writeln!(
        out,
        "cost     {:.4} CPU s per 1000 images, {:.3} CPU s per GiB; peak memory {} ({} private), {} ahead in {}",
        bench.cpu_s_per_1000,
        bench.cpu_s_per_gib,
        human_bytes(bench.peak_rss_bytes),
        human_bytes(bench.peak_anon_bytes),
        counted(bench.prefetch, "batch"),
        counted(bench.slots, "slot")
    )?;
    writeln!(out, "checksum {}", bench.checksum)?;
    Ok(())
}
