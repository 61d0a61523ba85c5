//! The command line. Each subcommand declares its own arguments in its file.

use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use packds_format::constants::{MAJOR, MINOR};
use packds_reader::plan::Order;
use packds_system::Named;

use crate::failure::Failure;
use crate::{bench, completions, convert, doctor, export, extract, formats, info, labels, man, show, verify, view};

const ABOUT: &str = "Pack an image dataset into one chunked, checksummed file, inspect it, and unpack it.";

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 bad data; 2 could not run;
130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
Results go to stdout, everything else to stderr.";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "packds", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print the result as one JSON document
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(Box<convert::ConvertArgs>),
    Export(export::ExportArgs),
    Formats(formats::FormatsArgs),
    Info(info::InfoArgs),
    Verify(verify::VerifyArgs),
    Show(show::ShowArgs),
    View(view::ViewArgs),
    Extract(extract::ExtractArgs),
    Labels(labels::LabelsArgs),
    Bench(bench::BenchArgs),
    Doctor(Box<doctor::DoctorArgs>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The pack that a command reads.
#[derive(Debug, Args)]
pub(crate) struct PackPath {
    /// The pack
    #[arg(value_name = "PACK", value_hint = clap::ValueHint::FilePath)]
    pub(crate) pack: PathBuf,
}

/// Parses a value by its name. Help and completions list the names.
pub(crate) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let names = T::NAMES.iter().map(|name: &&'static str| -> &'static str {
        // clap requires 'static names; leaking a few strings once is fine.
        if name.contains('_') { name.replace('_', "-").leak() } else { name }
    });
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

pub(crate) fn ordered(order: Order, window: Option<u32>) -> Result<Order, Failure> {
    let refused = |error| Failure::not_run(error).hint("drop --window, or drop --order");
    order.with_window(window).map_err(refused)
}

/// The parser, with the long text of `--version`.
pub(crate) fn command() -> clap::Command {
    static VERSION: OnceLock<String> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let simd =
            if packds_pixels::jpeg_simd() { "with SIMD" } else { "without SIMD (slow: install nasm and build again)" };
        format!("{}\nJPEG decoder {simd}\nformat version {MAJOR}.{MINOR}", env!("CARGO_PKG_VERSION"))
    });
    Cli::command().long_version(version.as_str())
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_are_consistent() {
        super::command().debug_assert();
    }
}
