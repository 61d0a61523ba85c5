//! `packds info --shuffle`: reports how random the batches of a pack are in a given order.

use std::io;
use std::path::PathBuf;

use clap::Args;
use packds_bench::largest_batch;
use packds_format::Stats;
use packds_reader::Pack;
use packds_reader::plan::{Batching, LabelReport, Order, OrderKind, PlanError, Ranks, Sampler, ShuffleReport};
use packds_report::PlotFile;
use serde_json::{Value, json};

use crate::args::{named, ordered};
use crate::escape::{escape, escape_path};
use crate::failure::Failure;
use crate::human::{counted, human_bytes};
use crate::output::{check_new, write_plot};
use crate::shuffle_plot::Evidence;

/// The default batch size, if the pack has enough samples for one batch.
const USUAL_BATCH: u32 = 256;

/// The order to assess.
#[derive(Debug, Args)]
pub(crate) struct ShuffleArgs {
    /// Report how random the pack's batches are, and what that costs
    #[arg(long)]
    shuffle: bool,
    /// Samples per batch, over all ranks [default: 256, or fewer for a smaller pack]
    #[arg(long, value_name = "N", requires = "shuffle")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    batch: Option<u32>,
    /// Chunks shuffled together; implies --order window [default: 64, or fewer if two windows exceed the memory]
    #[arg(long, value_name = "CHUNKS", requires = "shuffle")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// Order of samples; auto is random if the pack fits in memory, else window
    #[arg(long, value_parser = named::<Order>(), default_value_t, requires = "shuffle")]
    order: Order,
    /// Memory for windows, all ranks together [default: 4 GiB]
    #[arg(long, value_name = "BYTES", requires = "shuffle", value_parser = packds_system::parse_bytes)]
    memory: Option<u64>,
    /// Plot where batches come from, what they contain, and how larger windows help (.svg or .png)
    #[arg(long, value_name = "FILE", requires = "shuffle", value_hint = clap::ValueHint::FilePath)]
    #[arg(value_parser = PlotFile::parse)]
    plot: Option<PlotFile>,
    /// Seed of the plotted order
    #[arg(long, value_name = "SEED", default_value_t = 0, requires = "plot")]
    seed: u64,
    /// Replace an existing plot
    #[arg(long, requires = "plot")]
    force: bool,
}

impl ShuffleArgs {
    pub(crate) fn has_plot(&self) -> bool {
        self.plot.is_some()
    }
}

/// The report on how random a pack's batches are in an order, and its plot.
pub(crate) struct Shuffle {
    batch: u32,
    /// A note if the default batch size was reduced.
    batch_note: Option<String>,
    report: ShuffleReport,
    plot: Option<Plot>,
}

struct Plot {
    path: PathBuf,
    /// The measured design effects of this order's batches and of uniform batches.
    counted: Option<(f64, f64)>,
}

impl Shuffle {
    /// The report on this order, if it was requested.
    pub(crate) fn read(args: &ShuffleArgs, pack: &Pack, stats: &Stats) -> Result<Option<Self>, Failure> {
        if !args.shuffle {
            return Ok(None);
        }
        if let Some(plot) = &args.plot {
            check_new(plot.path(), args.force)?;
        }
        let mut sampler = Sampler::new(ordered(args.order, args.window)?).seed(args.seed);
        if let Some(bytes) = args.memory {
            sampler = sampler.memory_bytes(bytes);
        }
        let dataset = pack.dataset()?;
        let labels = stats.labels.iter().map(|(name, label)| (name.as_str(), label.icc));
        let labels: Vec<(&str, Option<f64>)> = labels.filter(|(_, icc)| icc.is_some()).collect();
        let batch = args.batch.unwrap_or(USUAL_BATCH.min(largest_batch(pack.n_samples(), 1)));
        let is_reduced = args.batch.is_none() && batch < USUAL_BATCH;
        let batch_note = is_reduced.then(|| {
            let samples = counted(pack.n_samples(), "sample");
            format!("the default batch size was reduced to {batch}: an epoch of {samples} must have one batch")
        });
        let refused = |error| refused(error, pack);
        let schedule = sampler.schedule(dataset, Ranks::single(), Batching::global(batch)).map_err(refused)?;
        let report = schedule.shuffle_report(&labels).map_err(refused)?;
        let plot = match &args.plot {
            None => None,
            Some(file) => {
                let evidence = Evidence::read(pack, &schedule, &report, dataset, args.seed)?;
                write_plot(file, &evidence.figure(), args.force)?;
                Some(Plot { path: file.path().to_owned(), counted: evidence.counted() })
            }
        };
        Ok(Some(Self { batch, batch_note, report, plot }))
    }

    /// The report as it appears in the document of `--json`.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        let report = serde_json::from_str(&self.report.to_json());
        let mut report: Value = report.map_err(io::Error::from)?;
        if let (Some(note), Some(notices)) = (&self.batch_note, report["notices"].as_array_mut()) {
            notices.push(json!(note));
        }
        if let Some(plot) = &self.plot {
            report["plot"] = json!({
                "path": escape_path(&plot.path),
                "counted_deff": plot.counted.map(|counted| counted.0),
                "counted_deff_uniform": plot.counted.map(|counted| counted.1),
            });
        }
        Ok(report)
    }

    /// The report as lines, each with a key and a value.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let report = &self.report;
        let verdict = report
            .verdict
            .map_or("unknown, because the pack's statistics have no icc for any label", |verdict| verdict.name());
        let order = report.order.name();
        let repeats = format!(
            "samples that shared a batch meet again in the next epoch {:.2} times as often as with uniform batches",
            report.repetition
        );
        let mut lines = vec![
            ("shuffle", format!("batches of {}, order {order}: {verdict}", self.batch)),
            ("window", self.window()),
            ("memory", self.memory()),
            ("reads", self.reads()),
            ("repeats", repeats),
        ];
        lines.extend(report.labels.iter().flat_map(label_lines));
        let notices = report.notices.iter().map(|n| escape(&n.to_string()));
        lines.extend(notices.chain(self.batch_note.clone()).map(|notice| ("note", notice)));
        lines.extend(self.plot.iter().map(|plot| ("plot", plot.text())));
        lines
    }

    fn window(&self) -> String {
        let report = &self.report;
        let (chunks, lanes) = (counted(report.window, "chunk"), counted(report.lanes, "lane"));
        format!("{chunks} at a time, {:.1} % of the dataset, in {lanes}", report.coverage * 100.0)
    }

    fn memory(&self) -> String {
        let report = &self.report;
        let what = match report.order {
            OrderKind::Random => "all chunks",
            _ => "two windows",
        };
        format!("{} for {what}, {} for tables", human_bytes(report.window_bytes), human_bytes(report.table_bytes))
    }

    fn reads(&self) -> String {
        match self.report.chunk_reads {
            Some(times) => format!("{times:.3} reads per chunk and epoch, on one rank"),
            None => "one read per sample: use only if the pack stays in memory".to_owned(),
        }
    }
}

impl Plot {
    fn text(&self) -> String {
        let path = escape_path(&self.path);
        match self.counted {
            Some((here, uniform)) => {
                format!("{path}: measured design effect {here:.2}; uniform batches have {uniform:.2}")
            }
            None => path,
        }
    }
}

pub(crate) fn refused(error: PlanError, pack: &Pack) -> Failure {
    Failure::from(error).at(pack.file_path())
}

fn label_lines(label: &LabelReport) -> [(&'static str, String); 2] {
    let effect = format!("`{}`: design effect {:.2}, {}", escape(&label.name), label.deff, label.verdict.name());
    let (ok, uniform) = (counted(label.window_ok, "chunk"), counted(label.window_uniform, "chunk"));
    let windows = format!("smallest window for ok: {ok}, for uniform-like: {uniform}");
    [("label", effect), ("label", windows)]
}
