//! `packds bench edit`: writing packs from packs, alongside a plain copy of as many bytes.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_convert::{Changes, Edit, EditOptions, EditReport, ReorderOptions, Taken, edit, reordered};
use packds_reader::{Pack, VerifyOptions};
use packds_system::{Unfinished, open_regular, to_u64, to_usize};
use serde::Serialize;
use serde_json::{Map, json};

use crate::BenchError;
use crate::machine::{Machine, PeakRss};
use crate::measure::{Figure, Pairs, to_f64};
use crate::watch::{Progress, Watcher};

/// Bytes per read and write of the plain copy, as `cat` uses.
const PIECE: usize = 128 << 10;
/// `subset` takes one sample of this many. `split` also writes the others.
const SUBSET: u64 = 10;

/// The inputs of a pack. Of each input, all samples are taken, or these.
type Parts<'a> = &'a [Option<&'a [u64]>];

/// Options of [`bench_edit`].
#[derive(Debug, Clone)]
pub struct EditBenchOptions {
    /// Number of threads of the edits. 0 means one per core.
    pub jobs: usize,
    /// Number of pairs of runs, after a warm-up pair.
    pub rounds: usize,
    /// How many times `merge` has the pack as an input. At least 2.
    pub copies: usize,
    /// Where to create a temporary folder. Default: the system's temporary folder.
    pub work: Option<PathBuf>,
}

/// The result of `packds bench edit`.
#[derive(Debug, Clone, Serialize)]
pub struct EditBench {
    /// The machine that ran the benchmark.
    pub machine: Machine,
    /// Number of pairs of runs.
    pub rounds: usize,
    /// How many times `merge` had the pack as an input.
    pub copies: usize,
    /// Number of samples of the pack.
    pub n_samples: u64,
    /// Size of the pack in bytes.
    pub bytes: u64,
    /// State of the page cache. Always `warm`, because the warm-up pairs read all files.
    pub cache: &'static str,
    /// Seed of the new order.
    pub seed: u64,
    /// One result for each edit.
    pub edits: Vec<Figure>,
}

/// Measures edits of `pack` without the final sync to disk, which the copies do not do either. `watcher` receives progress
/// and can cancel.
///
/// # Errors
/// [`BenchError`] if something fails, a new pack is damaged or lacks samples, or the watcher cancels.
pub fn bench_edit(pack: &Pack, options: &EditBenchOptions, watcher: &dyn Watcher) -> Result<EditBench, BenchError> {
    let rounds = options.rounds.max(1);
    let path = pack.file_path();
    let parent = options.work.clone().unwrap_or_else(std::env::temp_dir);
    let folder =
        tempfile::Builder::new().prefix("packds-bench").tempdir_in(&parent).map_err(BenchError::io(&parent))?;
    let _unfinished = Unfinished::new(folder.path());
    let copies = options.copies.max(2);
    let progress = &Progress::new(watcher, to_u64(4 * (rounds + 1)));
    let bench = Bench { pack, folder: folder.path(), rounds, jobs: options.jobs, progress };
    let (tenth, rest): (Vec<u64>, Vec<u64>) = (0..pack.n_samples()).partition(|n| n % SUBSET == 0);
    let order = reordered(&**pack, path, &ReorderOptions::default())?;
    let (merged, tenth, rest) = (vec![None; copies], [Some(tenth.as_slice())], [Some(rest.as_slice())]);
    let edits = vec![
        bench.measure("merge", Edit::Merge, &[&merged])?,
        bench.measure("split", Edit::Split, &[&rest, &tenth])?,
        bench.measure("subset", Edit::Subset, &[&tenth])?,
        bench.measure("reorder", Edit::Reorder, &[&[Some(order.as_slice())]])?,
    ];
    pack.still_good()?;
    Ok(EditBench {
        machine: Machine::here(),
        rounds,
        copies,
        n_samples: pack.n_samples(),
        bytes: pack.file_len(),
        cache: "warm",
        seed: 0,
        edits,
    })
}

struct Bench<'a> {
    pack: &'a Pack,
    folder: &'a Path,
    rounds: usize,
    jobs: usize,
    progress: &'a Progress<'a>,
}

impl Bench<'_> {
    /// Alternates between an edit, which writes one pack or several, and a copy of as many bytes.
    fn measure(&self, name: &'static str, what: Edit, packs: &[Parts<'_>]) -> Result<Figure, BenchError> {
        let (target, copy) = (self.folder.join("new.pack"), self.folder.join("copy"));
        let mut pairs = Pairs::default();
        let (mut bytes, mut n_samples, mut peak) = (0, 0, 0);
        for round in 0..=self.rounds {
            let of = if round == 0 { "warm-up".to_owned() } else { format!("round {round} of {}", self.rounds) };
            self.progress.begin(&format!("{name}, {of}"))?;
            self.progress.sync()?;
            let mut time = Duration::ZERO;
            (bytes, n_samples) = (0, 0);
            for parts in packs {
                let rss = PeakRss::reset();
                let report = self.edit(what, parts, &target)?;
                peak = peak.max(rss.bytes());
                if round == 0 {
                    self.check(&target, &report, parts)?;
                }
                (bytes, n_samples, time) = (bytes + report.bytes_out, n_samples + report.n_samples, time + report.copy);
                std::fs::remove_file(&target).map_err(BenchError::io(&target))?;
                self.progress.sync()?;
            }
            let limit = self.copy(bytes, &copy)?;
            std::fs::remove_file(&copy).map_err(BenchError::io(&copy))?;
            if round > 0 {
                pairs.push(time, limit);
            }
        }
        let mut seconds = Map::new();
        seconds.insert("copy".to_owned(), json!(pairs.ours()));
        Ok(Figure {
            name,
            n_samples: to_usize(n_samples),
            images_per_s: to_f64(n_samples) / pairs.ours(),
            bytes_per_s: to_f64(bytes) / pairs.ours(),
            limit: "cat",
            limit_images_per_s: to_f64(n_samples) / pairs.limit(),
            ratio: pairs.ratio(),
            ratio_range: pairs.range(),
            peak_rss_bytes: peak,
            seconds,
        })
    }

    fn edit(&self, what: Edit, parts: Parts<'_>, target: &Path) -> Result<EditReport, BenchError> {
        let path = self.pack.file_path();
        let taken = parts.iter().map(|samples| Taken { pack: &**self.pack, path, samples: *samples });
        let taken: Vec<_> = taken.collect();
        let options = EditOptions { jobs: self.jobs, ..EditOptions::default() };
        Ok(edit(&taken, (what, &json!({}), &Changes::default()), target, &options, self.progress)?)
    }

    /// Checks that the new pack has the samples and is whole.
    fn check(&self, target: &Path, report: &EditReport, parts: Parts<'_>) -> Result<(), BenchError> {
        let n = |samples: &Option<&[u64]>| samples.map_or(self.pack.n_samples(), |samples| to_u64(samples.len()));
        let (expected, found) = (parts.iter().map(n).sum::<u64>(), report.n_samples);
        if expected != found {
            return Err(BenchError::wrong("samples", expected.to_string(), found.to_string()));
        }
        let new = packds_reader::open(target)?;
        let verified = packds_reader::verify(&new, VerifyOptions::jobs(self.jobs), &|_, _| {})?;
        match verified.is_ok() {
            true => Ok(()),
            false => Err(BenchError::wrong("the new pack", "no damage", "damage")),
        }
    }

    /// Copies this many bytes from the pack's file, from its start again if it is shorter, like `cat`.
    fn copy(&self, bytes: u64, target: &Path) -> Result<Duration, BenchError> {
        let path = self.pack.file_path();
        let started = Instant::now();
        let mut buffer = vec![0; PIECE];
        let mut file = File::create(target).map_err(BenchError::io(target))?;
        let mut left = bytes;
        while left > 0 {
            let mut source = open_regular(path).map_err(BenchError::io(path))?.take(left);
            let before = left;
            loop {
                self.progress.check()?;
                let n = source.read(&mut buffer).map_err(BenchError::io(path))?;
                if n == 0 {
                    break;
                }
                file.write_all(buffer.get(..n).unwrap_or_default()).map_err(BenchError::io(target))?;
                left -= to_u64(n);
            }
            if left == before {
                return Err(BenchError::wrong("reading the pack", "bytes", "an empty file"));
            }
        }
        Ok(started.elapsed())
    }
}
