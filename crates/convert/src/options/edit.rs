//! The options of commands that write packs from packs.

use packds_system::Opt;

use super::spec::{Declared, OptionSpec, parse, put, whole};
use crate::edit::{AddFieldOptions, RelabelOptions, ReorderOptions, SplitOptions};
use crate::opt;
use crate::set::CompactOptions;

/// The options of every edit.
#[derive(Debug, Clone, Default)]
pub struct EditOptions {
    /// Whether to only report what would be written.
    pub dry_run: bool,
    /// Samples per chunk. `None` means as in the first pack.
    pub chunk_samples: Option<u32>,
    /// Number of threads. 0 means all cores.
    pub jobs: usize,
    /// Whether an existing pack is replaced.
    pub force: bool,
}

/// The options of adding packs to a set.
#[derive(Debug, Clone, Default)]
pub struct AppendOptions {
    /// Whether to only report what would be written.
    pub dry_run: bool,
    /// Number of threads. 0 means all cores.
    pub jobs: usize,
}

type AddFieldSpec = OptionSpec<AddFieldOptions>;
type AppendSpec = OptionSpec<AppendOptions>;
type CompactSpec = OptionSpec<CompactOptions>;
type EditSpec = OptionSpec<EditOptions>;
type RelabelSpec = OptionSpec<RelabelOptions>;
type ReorderSpec = OptionSpec<ReorderOptions>;
type SplitSpec = OptionSpec<SplitOptions>;

const DRY_RUN: Opt = Opt::new("dry_run");
const DRY_RUN_HELP: &str = "Report what would be written, without writing anything";
const JOBS: Opt = Opt::new("jobs");
const JOBS_HELP: &str = "Threads; 0 = one per core";

impl Declared for AddFieldOptions {
    const OPTIONS: &'static [AddFieldSpec] = &[
        AddFieldSpec::value(
            opt::COLUMN,
            "NAME",
            |o, text| {
                o.columns.push(text.to_owned());
                Ok(())
            },
            "Column of the table to add (repeatable) [default: all besides path or sample]",
        )
        .repeats(),
        AddFieldSpec::value(
            opt::NAME,
            "NAME",
            |o, text| put(&mut o.name, Ok(Some(text.to_owned()))),
            "Name of the new field [default: that of the column, or of the .npy file]",
        ),
        AddFieldSpec::value(
            opt::DTYPE,
            "TYPE",
            |o, text| put(&mut o.dtype, parse(text).map(Some)),
            "Type of the values: bool, u8, i8, .., f32, f64, string or json [default: i64, f64, bool, string or json, as they are in the table]",
        ),
    ];
}

impl Declared for AppendOptions {
    const OPTIONS: &'static [AppendSpec] = &[
        AppendSpec::switch(DRY_RUN, |o| o.dry_run = true, DRY_RUN_HELP),
        AppendSpec::value(JOBS, "N", |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)), JOBS_HELP)
            .short('j')
            .default(|o| o.jobs.to_string()),
    ];
}

impl Declared for CompactOptions {
    const OPTIONS: &'static [CompactSpec] = &[
        CompactSpec::switch(DRY_RUN, |o| o.dry_run = true, "Report what would be joined and deleted, without doing it"),
        CompactSpec::value(
            opt::SHARD_SIZE,
            "BYTES",
            |o, text| put(&mut o.shard_bytes, packds_system::parse_bytes(text)),
            "Join neighbours to shards of at most about this many bytes [default: 8GB]",
        ),
        CompactSpec::switch(
            Opt::new("delete_old"),
            |o| o.delete_old = true,
            "Delete older versions, and all files that the latest version does not use",
        ),
        CompactSpec::switch(
            Opt::new("clean"),
            |o| o.clean = true,
            "Delete files that no version uses, such as those that a killed command left behind",
        ),
        CompactSpec::value(JOBS, "N", |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)), JOBS_HELP)
            .short('j')
            .default(|o| o.jobs.to_string()),
    ];
}

impl Declared for EditOptions {
    const OPTIONS: &'static [EditSpec] = &[
        EditSpec::switch(DRY_RUN, |o| o.dry_run = true, DRY_RUN_HELP),
        EditSpec::value(
            opt::CHUNK,
            "N",
            |o, text| put(&mut o.chunk_samples, whole(text, 1, 1 << 20).map(Some)),
            "Samples per chunk [default: as in the first pack]",
        ),
        EditSpec::value(JOBS, "N", |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)), JOBS_HELP)
            .short('j')
            .default(|o| o.jobs.to_string()),
        EditSpec::switch(opt::FORCE, |o| o.force = true, "Replace an existing pack"),
    ];
}

impl Declared for RelabelOptions {
    const OPTIONS: &'static [RelabelSpec] = &[
        RelabelSpec::value(
            Opt::new("field"),
            "NAME",
            |o, text| put(&mut o.field, Ok(Some(text.to_owned()))),
            "Label field to change [default: the only one]",
        ),
        RelabelSpec::switch(opt::ONLY, |o| o.only = true, "Leave out samples without a row in the table"),
        RelabelSpec::value(
            opt::RENAME,
            "OLD=NEW",
            |o, text| {
                o.rename.push(text.parse().map_err(|error: packds_system::BadValue| error.to_string())?);
                Ok(())
            },
            "Rename a class, or join it with the class NEW (repeatable)",
        )
        .repeats(),
    ];
}

impl Declared for ReorderOptions {
    const OPTIONS: &'static [ReorderSpec] = &[
        ReorderSpec::value(
            opt::BY,
            "FIELD",
            |o, text| put(&mut o.by, Ok(Some(text.to_owned()))),
            "Sort by this field, or by path, instead of shuffling; samples with equal values keep their order",
        ),
        ReorderSpec::value(
            opt::SEED,
            "SEED",
            |o, text| put(&mut o.seed, whole(text, 0, u64::MAX).map(Some)),
            "Seed of the shuffled order",
        )
        .default(|o| o.seed.unwrap_or(0).to_string()),
    ];
}

impl Declared for SplitOptions {
    const OPTIONS: &'static [SplitSpec] = &[
        SplitSpec::value(
            opt::RATIO,
            "S,..",
            |o, text| put(&mut o.ratio, parse(text).map(Some)),
            "Shares of the new packs, such as 0.9,0.1 (train, val) or 0.8,0.1,0.1 (train, val, test)",
        ),
        SplitSpec::value(
            opt::FOLDS,
            "N",
            |o, text| put(&mut o.folds, whole(text, 2, 1000).map(Some)),
            "Number of new packs with equal shares, for cross-validation",
        )
        .excludes(opt::RATIO),
        SplitSpec::value(
            opt::BY,
            "FIELD",
            |o, text| put(&mut o.by, Ok(Some(text.to_owned()))),
            "One new pack for each value of this field",
        )
        .excludes(opt::RATIO),
        SplitSpec::value(
            opt::NAMES,
            "NAME,..",
            |o, text| put(&mut o.names, Ok(text.split(',').map(str::to_owned).collect())),
            "Names of the new packs [default: train, val and test, or part0, part1, ..]",
        ),
        SplitSpec::value(
            opt::GROUP_BY,
            "FIELD",
            |o, text| put(&mut o.group_by, Ok(Some(text.to_owned()))),
            "Keep samples with the same value of this field together, such as those of one patient",
        ),
        SplitSpec::value(
            opt::STRATIFY,
            "FIELD",
            |o, text| put(&mut o.stratify, Ok(Some(text.to_owned()))),
            "Give all new packs the same proportions of the values of this field, such as label",
        )
        .excludes(opt::GROUP_BY),
        SplitSpec::value(
            opt::SEED,
            "SEED",
            |o, text| put(&mut o.seed, whole(text, 0, u64::MAX).map(Some)),
            "Seed of the random choice",
        )
        .default(|o| o.seed.unwrap_or(0).to_string()),
    ];
}
