//! `packds bench`: measures packds on this machine, together with the hardware limits.

mod charts;
mod convert;
mod edit;
mod formats;
mod load;
mod tune;
mod tune_plot;

use std::io::Write;

use clap::{Args, Subcommand};
use packds_bench::Machine;

use crate::human::{counted, human_bytes};
use crate::{Console, Exit, Failure};

/// Measure packds on this machine, and the hardware limit in the same run
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Convert(convert::ConvertBenchArgs),
    Edit(edit::EditBenchArgs),
    Load(load::LoadBenchArgs),
    Formats(formats::FormatsBenchArgs),
    Tune(tune::TuneBenchArgs),
}

pub(crate) fn run(args: &BenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.what {
        What::Convert(args) => convert::run(args, console),
        What::Edit(args) => edit::run(args, console),
        What::Load(args) => load::run(args, console),
        What::Formats(args) => formats::run(args, console),
        What::Tune(args) => tune::run(args, console),
    }
}

/// Checks an option of `packds bench` or `packds doctor` that is a time in seconds or milliseconds.
pub(crate) fn check_time(option: &str, found: f64) -> Result<(), Failure> {
    if found > 0.0 && found <= 3600.0 {
        return Ok(());
    }
    Err(Failure::not_run(format!("{option} must be above 0 and at most 3600: found {found}")))
}

fn augmentation(augment: &str) -> &str {
    if augment.is_empty() { "unchanged" } else { augment }
}

fn show_cache(cache: &str, before: f64, after: f64, out: &mut dyn Write) -> Result<(), Failure> {
    let (before, after) = (before * 100.0, after * 100.0);
    writeln!(out, "cache    {cache}: {before:.1} % of the pack in the page cache before, {after:.1} % after")?;
    Ok(())
}

fn show_machine(machine: &Machine, out: &mut dyn Write) -> Result<(), Failure> {
    let simd = if machine.jpeg_simd { "with" } else { "without" };
    let memory = human_bytes(machine.memory_bytes);
    writeln!(
        out,
        "machine  {}, {}, {memory}, Linux {}, JPEG {simd} SIMD",
        machine.cpu,
        counted(machine.cores, "core"),
        machine.kernel
    )?;
    Ok(())
}
