//! `packds simulate`: what a data set of any size asks of caches, networks and stores. Nothing is read or written: the
//! plans are real, and the bytes are counted.

mod cache;
mod chart;
mod cluster;
mod timeline;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, ValueHint};
use packds_format::{Classes, DType, Field, Limits, Manifest, Schema, ShardEntry, Stats, Uuid, chunk_samples_for};
use packds_reader::plan::{Order, PlanError};
use packds_report::{PlotFile, whole};
use packds_system::{parse_bytes, to_u64, to_usize};
use serde::Serialize;

use self::cache::{Evict, hits};
use self::cluster::{Cluster, Read, Reads};
use self::timeline::{Link, run as run_steps};
use crate::args::{named, ordered};
use crate::console::Console;
use crate::escape::escape_path;
use crate::figures::{Column, Figures, Keys};
use crate::human::{counted, human_bytes};
use crate::output::{check_new, write_plot};
use crate::progress::Shown;
use crate::task::Amount;
use crate::{Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds simulate train.packs --ranks 64 --cache 500GB
  packds simulate --samples 1000000000 --sample-bytes 150KB --ranks 1024 --cache 4000GB --plot cache.svg
  packds simulate --samples 1281167 --sample-bytes 110KB --ranks 8 --bandwidth 2GB --latency-ms 30";

/// Requests per second that a prefix of S3 answers, by its documentation.
const REQUESTS_PER_PREFIX: f64 = 5500.0;
/// Number of cache sizes in the comparison, besides none.
const CACHES: u64 = 10;

const EPOCHS: [Column; 8] = [
    ("epoch", 5),
    ("needed", 10),
    ("from store", 10),
    ("hits %", 6),
    ("requests/s", 10),
    ("seconds", 9),
    ("waits s", 8),
    ("waits %", 7),
];
const SWEEP: [Column; 3] = [("cache", 10), ("hits % by next use", 18), ("by last use", 11)];

/// Predict cache hits, requests and waiting for a data set and a cluster of any size
///
/// Computes the real plans of one machine's ranks, and counts what they would read: no pack is needed, and no byte is read.
/// The machines of a cluster read different chunks at the same rate, so one stands for all. A cache keeps whole chunks, and
/// evicts the one that is needed last. Give a PACK or a set, or describe one with --samples and --sample-bytes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SimulateArgs {
    /// Pack or set to simulate. Without it, --samples and --sample-bytes describe one
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath, conflicts_with_all = ["samples", "sample_bytes"])]
    pack: Option<PathBuf>,
    /// Number of samples
    #[arg(long, value_name = "N", required_unless_present = "pack", value_parser = clap::value_parser!(u64).range(1..))]
    samples: Option<u64>,
    /// Mean size of a stored sample
    #[arg(long, value_name = "BYTES", required_unless_present = "pack", value_parser = parse_bytes)]
    sample_bytes: Option<u64>,
    /// Samples per chunk [default: as `packds convert` chooses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    chunk: Option<u32>,
    /// Size of a shard, for the size of the manifest
    #[arg(long, value_name = "BYTES", default_value = "8GB", value_parser = parse_bytes)]
    shard_size: u64,
    /// Order of samples: those that read whole chunks
    #[arg(long, value_parser = named::<Order>(), default_value = "window")]
    order: Order,
    /// Number of chunks that are shuffled together [default: depends on the size of a chunk]
    #[arg(long, value_name = "CHUNKS")]
    window: Option<u32>,
    /// Samples of one step on one rank
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Seed of the order
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Number of epochs
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    epochs: u32,
    /// Number of ranks (GPUs) in the cluster
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    ranks: u32,
    /// Number of ranks that share a machine, its cache and its link
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    ranks_per_host: u32,
    /// Images per second that one rank trains
    #[arg(long, value_name = "N", default_value_t = 4000.0, value_parser = positive)]
    rate: f64,
    /// Cache of one machine
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = parse_bytes)]
    cache: u64,
    /// Bytes per second between one machine and the store
    #[arg(long, value_name = "BYTES", default_value = "10GB", value_parser = parse_bytes)]
    bandwidth: u64,
    /// Time from a request to its first byte
    #[arg(long, value_name = "MS", default_value_t = 20.0, value_parser = positive)]
    latency_ms: f64,
    /// Size of one request
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = parse_bytes)]
    request: u64,
    /// How far ahead of training one machine reads
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = parse_bytes)]
    ahead: u64,
    /// Price of 1000 requests, in any currency
    #[arg(long, value_name = "PRICE", default_value_t = 0.0004, value_parser = positive)]
    price: f64,
    /// Draw how many reads caches of several sizes answer, to this SVG or PNG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Replace an existing plot
    #[arg(long, requires = "plot")]
    force: bool,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected a number above 0".to_owned())
}

/// What the simulation found.
#[derive(Debug, Serialize)]
pub(super) struct Simulation {
    n_samples: u64,
    bytes: u64,
    n_chunks: u64,
    chunk_samples: u32,
    chunk_bytes: u64,
    n_shards: u64,
    manifest_bytes: u64,
    /// Time to parse the manifest.
    manifest_ms: f64,
    n_hosts: u32,
    n_ranks: u32,
    plan_bytes: u64,
    ns_per_position: f64,
    /// Most chunks that one rank holds at once, and their size.
    held_chunks: usize,
    held_bytes: u64,
    /// What all ranks consume together.
    bytes_per_s: f64,
    epochs: Vec<Epoch>,
    caches: Vec<CacheSize>,
    /// Most requests per second of all machines in one epoch, and the prefixes that S3 needs for them.
    requests_per_s: f64,
    prefixes: u32,
    requests_price: f64,
}

/// What one machine does in an epoch.
#[derive(Debug, Serialize)]
struct Epoch {
    epoch: u32,
    bytes: u64,
    bytes_from_store: u64,
    hit_share: f64,
    n_requests: u64,
    /// Of all machines.
    requests_per_s: f64,
    seconds: f64,
    wait_s: f64,
}

/// How many reads after the first epoch a cache of one machine answers.
#[derive(Debug, Serialize)]
pub(super) struct CacheSize {
    pub(super) bytes: u64,
    pub(super) by_next_use: f64,
    pub(super) by_last_use: f64,
}

pub(crate) fn run(args: &SimulateArgs, console: &mut Console) -> Result<Exit, Failure> {
    if let Some(plot) = &args.plot {
        check_new(plot.path(), args.force)?;
    }
    let (cluster, n_shards) = args.cluster()?;
    let shown = Shown::new(console);
    let tell = |done, total| shown.report(Amount::Of { done, total, thing: "step", bytes: 0 });
    let reads = shown.during("planning", || cluster.reads(args.epochs, &tell)).map_err(refused)?;
    let found = shown.during("counting", || args.simulate(&cluster, n_shards, &reads))?;
    if let Some(plot) = &args.plot {
        let figure = chart::figure(&found.caches, &found.title(), &args.subtitle(&found));
        write_plot(plot, &figure, args.force)?;
    }
    console.result(
        || &found,
        |console| {
            show(&found, args, console)?;
            if let Some(plot) = &args.plot {
                writeln!(console.prose(), "plot     {}", escape_path(plot.path()))?;
            }
            Ok(())
        },
    )?;
    Ok(Exit::Done)
}

fn refused(error: PlanError) -> Failure {
    Failure::not_run(error).hint("lower --batch or --ranks, or simulate more samples")
}

impl SimulateArgs {
    /// The cluster, and the number of shards of the set.
    fn cluster(&self) -> Result<(Cluster, u64), Failure> {
        if matches!(self.order, Order::Random | Order::Auto) {
            let why = "only orders that read whole chunks are simulated: random reads single samples, from memory or a local disk";
            return Err(Failure::not_run(why).hint("pass --order window, the default, or --order chunks"));
        }
        let described = |n_samples: u64, bytes: u64, chunk_samples: u32| Cluster {
            n_samples,
            chunk_samples,
            chunk_bytes: bytes.saturating_mul(chunk_samples.into()).max(1),
            order: self.order,
            seed: self.seed,
            batch: self.batch,
            ranks: self.ranks,
            ranks_per_host: self.ranks_per_host,
        };
        let (mut cluster, n_shards) = match &self.pack {
            Some(path) => {
                let pack = packds_reader::open(path)?;
                let n = pack.n_samples();
                let bytes = pack.file_len() / n.max(1);
                let n_shards = pack.manifest().map_or(1, |manifest| to_u64(manifest.shards.len()));
                (described(n, bytes, self.chunk.unwrap_or(pack.geometry().chunk_samples())), n_shards)
            }
            None => {
                let (n, bytes) = (self.samples.unwrap_or(1), self.sample_bytes.unwrap_or(1).max(1));
                let cluster = described(n, bytes, self.chunk.unwrap_or_else(|| chunk_samples_for(bytes, None)));
                (cluster, n.saturating_mul(bytes).div_ceil(self.shard_size.max(1)))
            }
        };
        cluster.order = ordered(self.order, self.window)?;
        Ok((cluster, n_shards.max(1)))
    }

    fn simulate(&self, cluster: &Cluster, n_shards: u64, found: &Reads) -> Result<Simulation, Failure> {
        let (manifest_bytes, manifest_ms) = manifest(cluster, n_shards)?;
        let chunks = |bytes: u64| to_usize(bytes / cluster.chunk_bytes);
        let answered = hits(&found.reads, chunks(self.cache), Evict::ByNextUse);
        let epochs = self.epochs(cluster, found, &answered);
        let requests_per_s = epochs.iter().map(|epoch| epoch.requests_per_s).fold(0.0, f64::max);
        let n_hosts = cluster.n_hosts();
        let all: u64 = epochs.iter().map(|epoch| epoch.n_requests).sum::<u64>() * u64::from(n_hosts);
        let bytes = cluster.n_samples.saturating_mul(cluster.chunk_bytes / u64::from(cluster.chunk_samples));
        Ok(Simulation {
            n_samples: cluster.n_samples,
            bytes,
            n_chunks: cluster.n_samples.div_ceil(cluster.chunk_samples.into()),
            chunk_samples: cluster.chunk_samples,
            chunk_bytes: cluster.chunk_bytes,
            n_shards,
            manifest_bytes,
            manifest_ms,
            n_hosts,
            n_ranks: cluster.ranks,
            plan_bytes: found.plan_bytes,
            ns_per_position: found.ns_per_position,
            held_chunks: found.held,
            held_bytes: to_u64(found.held) * cluster.chunk_bytes,
            bytes_per_s: self.rate * f64::from(cluster.ranks) * bytes as f64 / cluster.n_samples as f64,
            epochs,
            caches: caches(found, bytes / u64::from(n_hosts), cluster.chunk_bytes),
            requests_per_s,
            prefixes: whole((requests_per_s / REQUESTS_PER_PREFIX).ceil()).max(1),
            requests_price: all as f64 / 1000.0 * self.price,
        })
    }

    fn epochs(&self, cluster: &Cluster, found: &Reads, answered: &[bool]) -> Vec<Epoch> {
        let link =
            Link { bandwidth: self.bandwidth.max(1) as f64, latency: self.latency_ms / 1000.0, ahead: self.ahead };
        let step_s = f64::from(cluster.batch) / self.rate;
        let misses = found.reads.iter().zip(answered).filter(|(_, hit)| !**hit).map(|(read, _)| *read);
        let misses: Vec<Read> = misses.collect();
        let steps = (found.steps_per_epoch, self.epochs);
        let spent = run_steps(&misses, cluster.chunk_bytes, steps, step_s, link);
        let n_in = |reads: &[Read], epoch: u32| {
            let of_epoch = |read: &&Read| read.step / found.steps_per_epoch.max(1) == u64::from(epoch);
            to_u64(reads.iter().filter(of_epoch).count())
        };
        let requests_per_chunk = cluster.chunk_bytes.div_ceil(self.request.max(1));
        let epoch = |(epoch, spent): (u32, &timeline::Spent)| {
            let (all, missed) = (n_in(&found.reads, epoch), n_in(&misses, epoch));
            let n_requests = missed * requests_per_chunk;
            Epoch {
                epoch,
                bytes: all * cluster.chunk_bytes,
                bytes_from_store: missed * cluster.chunk_bytes,
                hit_share: if all > 0 { 1.0 - missed as f64 / all as f64 } else { 0.0 },
                n_requests,
                requests_per_s: n_requests as f64 * f64::from(cluster.n_hosts()) / spent.seconds.max(1e-9),
                seconds: spent.seconds,
                wait_s: spent.waits,
            }
        };
        (0..self.epochs).zip(&spent).map(epoch).collect()
    }

    fn subtitle(&self, found: &Simulation) -> String {
        format!(
            "{} on {}, {} order, batches of {} per rank, seed {}, {} epochs. Simulated: no byte is read.",
            counted(found.n_ranks, "rank"),
            counted(found.n_hosts, "machine"),
            self.order,
            self.batch,
            self.seed,
            self.epochs
        )
    }
}

impl Simulation {
    fn title(&self) -> String {
        format!("Reads that a cache answers: {} samples, {}", self.n_samples, human_bytes(self.bytes))
    }
}

/// Caches from none to the share of the set that one machine would hold if all held the whole set together.
fn caches(found: &Reads, share: u64, chunk_bytes: u64) -> Vec<CacheSize> {
    let first = found.reads.partition_point(|read| read.step < found.steps_per_epoch);
    let later = found.reads.len() - first;
    let answered = |bytes: u64, evict: Evict| {
        let hits = hits(&found.reads, to_usize(bytes / chunk_bytes), evict);
        let n = hits.get(first..).unwrap_or_default().iter().filter(|hit| **hit).count();
        n as f64 / later.max(1) as f64
    };
    let size = |part: u64| {
        let bytes = share / CACHES * part;
        CacheSize {
            bytes,
            by_next_use: answered(bytes, Evict::ByNextUse),
            by_last_use: answered(bytes, Evict::ByLastUse),
        }
    };
    (0..=CACHES).map(size).collect()
}

/// The size of the set's manifest, and the time to parse it in milliseconds. The manifest is made and parsed.
fn manifest(cluster: &Cluster, n_shards: u64) -> Result<(u64, f64), Failure> {
    let per_shard = cluster.n_samples.div_ceil(n_shards);
    let bytes = per_shard.saturating_mul(cluster.chunk_bytes / u64::from(cluster.chunk_samples));
    let shard = |n: u64| {
        let mut uuid = [0; 16];
        uuid[..8].copy_from_slice(&n.to_le_bytes());
        let pack_uuid = Uuid(uuid);
        ShardEntry {
            path: format!("{pack_uuid}-00000000.pack"),
            n_samples: per_shard.min(cluster.n_samples - (n * per_shard).min(cluster.n_samples - 1)),
            bytes: bytes + (1 << 20),
            pack_uuid,
            footer_crc32c: 0,
            body_bytes: bytes,
            largest_chunk: cluster.chunk_bytes,
            origin: None,
        }
    };
    let manifest = Manifest {
        version: 1,
        parent: None,
        pack_uuid: Uuid::default(),
        dataset_uuid: Uuid::default(),
        chunk_samples: cluster.chunk_samples,
        schema: Schema::new(vec![Field::tensor("image", DType::U8, &[1])]).map_err(Failure::not_run)?,
        has_paths: true,
        shards: (0..n_shards).map(shard).collect(),
        stats: Stats::default(),
        classes: Vec::<Classes>::new(),
        provenance: serde_json::Map::new(),
    };
    let bytes = manifest.to_bytes().map_err(Failure::not_run)?;
    let started = Instant::now();
    Manifest::parse(&bytes, Limits::default()).map_err(Failure::not_run)?;
    Ok((to_u64(bytes.len()), started.elapsed().as_secs_f64() * 1e3))
}

fn show(found: &Simulation, args: &SimulateArgs, console: &mut Console) -> Result<(), Failure> {
    let out = &mut console.prose();
    let size = human_bytes(found.bytes);
    let (chunk, shards) = (human_bytes(found.chunk_bytes), counted(found.n_shards, "shard"));
    writeln!(out, "set      {} samples, {size}: {shards}, {} chunks of {}", found.n_samples, found.n_chunks, chunk)?;
    let manifest = human_bytes(found.manifest_bytes);
    writeln!(out, "manifest {manifest}, parsed in {:.1} ms on this machine", found.manifest_ms)?;
    let held = format!("{} ({})", counted(found.held_chunks, "chunk"), human_bytes(found.held_bytes));
    writeln!(
        out,
        "rank     a plan of {}, {:.0} ns per position on this machine; at most {held} at once",
        human_bytes(found.plan_bytes),
        found.ns_per_position
    )?;
    let (hosts, rate) = (counted(found.n_hosts, "machine"), found.bytes_per_s / 1e9);
    writeln!(out, "cluster  {} on {hosts}, which train {rate:.1} GB/s together", counted(found.n_ranks, "rank"))?;
    writeln!(
        out,
        "machine  cache {}, {}/s and {} ms to the store",
        human_bytes(args.cache),
        human_bytes(args.bandwidth),
        args.latency_ms
    )?;
    let mut epochs = Figures::new(EPOCHS.to_vec(), Keys::Numbers(1));
    for epoch in &found.epochs {
        let cells = vec![
            epoch.epoch.to_string(),
            human_bytes(epoch.bytes),
            human_bytes(epoch.bytes_from_store),
            format!("{:.1}", epoch.hit_share * 100.0),
            format!("{:.0}", epoch.requests_per_s),
            format!("{:.1}", epoch.seconds),
            format!("{:.1}", epoch.wait_s),
            format!("{:.1}", epoch.wait_s / epoch.seconds.max(1e-9) * 100.0),
        ];
        epochs.push(cells, "");
    }
    let mut sweep = Figures::new(SWEEP.to_vec(), Keys::Name);
    for cache in &found.caches {
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        sweep.push(vec![human_bytes(cache.bytes), percent(cache.by_next_use), percent(cache.by_last_use)], "");
    }
    let columns = console.columns();
    for lines in [epochs.lines(columns), vec![String::new()], sweep.lines(columns)] {
        lines.iter().try_for_each(|line| writeln!(console.out, "{line}"))?;
    }
    let out = &mut console.prose();
    writeln!(
        out,
        "store    at most {:.0} requests/s of all machines: {} of S3, which answers {REQUESTS_PER_PREFIX} requests/s each",
        found.requests_per_s,
        counted(found.prefixes, "prefix")
    )?;
    writeln!(out, "price    {:.2} for all requests, at {} per 1000", found.requests_price, args.price)?;
    Ok(())
}
