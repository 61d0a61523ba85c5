//! `packds bench`: measure this machine alongside its hardware limits.

pub(crate) mod axis;
mod charts;
mod convert;
mod formats;
mod load;
pub(crate) mod palette;
mod tune;
mod tune_plot;

use std::io::Write;

use clap::{Args, Subcommand};
use packds_bench::Machine;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::human::{counted, human_bytes};

/// Measure packds on this machine, alongside the hardware limit measured in the same run
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Convert(convert::ConvertBenchArgs),
    Load(load::LoadBenchArgs),
    Formats(formats::FormatsBenchArgs),
    Tune(tune::TuneBenchArgs),
}

pub(crate) fn run(args: &BenchArgs, console: &mut Console) -> Result<Exit, Failure> {
    match &args.what {
        What::Convert(args) => convert::run(args, console),
        What::Load(args) => load::run(args, console),
        What::Formats(args) => formats::run(args, console),
        What::Tune(args) => tune::run(args, console),
    }
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
