//! What `packds info --shuffle` tells: how random batches are that are read from a pack in some order.

use std::io;

use clap::{Args, ValueEnum};
use packds_format::Stats;
use packds_reader::MappedPack;
use packds_reader::plan::{
    Batching, Dataset, LabelReport, Order, OrderKind, PlanError, Ranks, Sampler, ShuffleReport,
};
use serde_json::Value;

use crate::escape::escape;
use crate::failure::Failure;
use crate::human::{counted, human_bytes};

/// The order that is judged.
#[derive(Debug, Args)]
pub(crate) struct ShuffleArgs {
    /// Tell how random the batches are that are read from it, and what that costs
    #[arg(long)]
    shuffle: bool,
    /// Samples of a batch, all ranks together
    #[arg(long, value_name = "N", default_value_t = 256, requires = "shuffle")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    batch: u32,
    /// Chunks mixed at one time: means `--order window` [default: 64, or as many as fit twice in the memory]
    #[arg(long, value_name = "CHUNKS", requires = "shuffle")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
    /// In which order samples are read; auto is random for what fits in the memory, else window
    #[arg(long, value_enum, default_value_t, requires = "shuffle")]
    order: OrderName,
    /// Memory for the windows of all ranks together [default: 4 GiB]
    #[arg(long, value_name = "BYTES", requires = "shuffle")]
    memory: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
enum OrderName {
    #[default]
    Auto,
    Sequential,
    Random,
    Chunks,
    Window,
}

/// How random a pack is read in batches of one size.
pub(crate) struct Shuffle {
    batch: u32,
    report: ShuffleReport,
}

impl Shuffle {
    /// The report on this order; none where nobody asked for it.
    pub(crate) fn read(
        args: &ShuffleArgs,
        pack: &MappedPack,
        stats: &Stats,
    ) -> Result<Option<Self>, Failure> {
        if !args.shuffle {
            return Ok(None);
        }
        let mut sampler = Sampler::new(args.order()?);
        if let Some(bytes) = args.memory {
            sampler = sampler.memory_bytes(bytes);
        }
        let bytes = chunk_bytes(pack)?;
        let dataset = Dataset::new(*pack.geometry(), bytes, &pack.header().pack_uuid.0);
        let labels: Vec<(&str, Option<f64>)> = stats
            .labels
            .iter()
            .filter(|(_, label)| label.icc.is_some())
            .map(|(name, label)| (name.as_str(), label.icc))
            .collect();
        let report = sampler
            .schedule(dataset, Ranks::single(), Batching::global(args.batch))
            .and_then(|schedule| schedule.shuffle_report(&labels))
            .map_err(|error| refused(&error, pack))?;
        let batch = args.batch;
        Ok(Some(Self { batch, report }))
    }

    /// The report as it stands in the document of `--json`.
    pub(crate) fn json(&self) -> Result<Value, Failure> {
        let report = serde_json::from_str(&self.report.to_json());
        Ok(report.map_err(io::Error::from)?)
    }

    /// The report as lines of a key and a text.
    pub(crate) fn lines(&self) -> Vec<(&'static str, String)> {
        let report = &self.report;
        let verdict = report.verdict.map_or(
            "unknown, because no label has an icc in the pack's statistics",
            |verdict| verdict.name(),
        );
        let order = report.order.name();
        let mut lines = vec![
            (
                "shuffle",
                format!("batches of {}, order {order}: {verdict}", self.batch),
            ),
            ("window", self.window()),
            ("memory", self.memory()),
            ("reads", self.reads()),
            (
                "repeats",
                format!(
                    "mates of a batch meet again in the next epoch {:.2} times as often as in uniform batches",
                    report.repetition
                ),
            ),
        ];
        lines.extend(report.labels.iter().flat_map(label_lines));
        let notices = report.notices.iter().map(|n| escape(&n.to_string()));
        lines.extend(notices.map(|notice| ("note", notice)));
        lines
    }

    fn window(&self) -> String {
        let report = &self.report;
        format!(
            "{} at a time, {:.1} % of the data set, in {}",
            counted(report.window, "chunk"),
            report.coverage * 100.0,
            counted(report.lanes.into(), "lane")
        )
    }

    fn memory(&self) -> String {
        let report = &self.report;
        let what = match report.order {
            OrderKind::Random => "all chunks",
            _ => "two windows",
        };
        format!(
            "{} for {what}, {} for tables",
            human_bytes(report.window_bytes),
            human_bytes(report.table_bytes)
        )
    }

    fn reads(&self) -> String {
        match self.report.chunk_reads {
            Some(times) => format!("{times:.3} of each chunk in an epoch, on one rank"),
            None => "one for each sample: for what stays in memory".to_owned(),
        }
    }
}

impl ShuffleArgs {
    fn order(&self) -> Result<Order, Failure> {
        let order = match self.order {
            OrderName::Auto if self.window.is_none() => Order::Auto,
            OrderName::Auto | OrderName::Window => Order::Window {
                chunks: self.window,
            },
            OrderName::Sequential => Order::Sequential,
            OrderName::Random => Order::Random,
            OrderName::Chunks => Order::Chunks,
        };
        if self.window.is_some() && !matches!(order, Order::Window { .. }) {
            return Err(
                Failure::not_run("--window is for --order window: other orders have none")
                    .hint("leave out --window or --order"),
            );
        }
        Ok(order)
    }
}

/// Bytes of a chunk in the file, on average.
fn chunk_bytes(pack: &MappedPack) -> Result<u64, Failure> {
    let n_chunks = pack.n_chunks();
    let Some(last) = n_chunks.checked_sub(1) else {
        return Ok(0);
    };
    let last = pack.chunk_entry(last).map_err(|e| pack.error(e))?;
    let end = last.offset.saturating_add(last.stored_len);
    let body = end.saturating_sub(pack.header().data_off);
    Ok(body.div_ceil(n_chunks))
}

fn refused(error: &PlanError, pack: &MappedPack) -> Failure {
    let failure = Failure::not_run(error).at(pack.file_path());
    match error {
        PlanError::NoBatch { .. } => failure.hint("give the batch you train with: --batch N"),
        _ => failure,
    }
}

fn label_lines(label: &LabelReport) -> [(&'static str, String); 2] {
    let effect = format!(
        "`{}` has design effect {:.2}: {}",
        escape(&label.name),
        label.deff,
        label.verdict.name()
    );
    let windows = format!(
        "the smallest window that is ok has {}, uniform-like {}",
        counted(label.window_ok, "chunk"),
        counted(label.window_uniform, "chunk")
    );
    [("label", effect), ("label", windows)]
}
