//! The command line. Each subcommand declares its own arguments in its file.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::OnceLock;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Args, ColorChoice, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use packds_format::constants::{MAJOR, MINOR};
use packds_reader::plan::Order;
use packds_system::Named;

use crate::console::Detail;
use crate::failure::Failure;
use crate::{
    bench, completions, convert, diff, distributed, doctor, edit, export, extract, formats, head, info, labels, man,
    migrate, show, simulate, verify, view,
};

const ABOUT: &str = "Pack an image dataset into one chunked, checksummed file, inspect it, and unpack it.";

const AFTER_HELP: &str = "\
Exit codes: 0 done; 1 bad data, or `diff` found a difference; 2 could not run;
130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
Results go to stdout, everything else to stderr.";

/// The heading of the options that all commands have.
const COMMON: &str = "Common options";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "packds", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Print the result as one JSON document
    #[arg(long, global = true, help_heading = COMMON)]
    pub(crate) json: bool,
    /// Print no summary and no progress, only results, warnings and errors
    #[arg(short, long, global = true, help_heading = COMMON)]
    quiet: bool,
    /// Print details of what was written
    #[arg(short, long, global = true, conflicts_with = "quiet", help_heading = COMMON)]
    verbose: bool,
    /// Colour help, errors and warnings; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, global = true, value_name = "WHEN", default_value_t, help_heading = COMMON)]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    pub(crate) fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Quiet,
            (_, true) => Detail::Verbose,
            _ => Detail::Summary,
        }
    }
}

/// The subcommands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Convert(Box<convert::ConvertArgs>),
    Migrate(Box<migrate::MigrateArgs>),
    Plan(Box<distributed::plan::PlanArgs>),
    Build(distributed::build::BuildArgs),
    Commit(distributed::commit::CommitArgs),
    Export(export::ExportArgs),
    Formats(formats::FormatsArgs),
    Info(info::InfoArgs),
    Verify(verify::VerifyArgs),
    Head(head::HeadArgs),
    Show(show::ShowArgs),
    View(view::ViewArgs),
    Subset(edit::subset::SubsetArgs),
    Split(edit::split::SplitArgs),
    Merge(edit::merge::MergeArgs),
    Append(edit::append::AppendArgs),
    Compact(edit::compact::CompactArgs),
    Reorder(edit::reorder::ReorderArgs),
    Relabel(edit::relabel::RelabelArgs),
    AddField(edit::add_field::AddFieldArgs),
    DropField(edit::drop_field::DropFieldArgs),
    Extract(extract::ExtractArgs),
    Labels(labels::LabelsArgs),
    Diff(diff::DiffArgs),
    Bench(bench::BenchArgs),
    Simulate(Box<simulate::SimulateArgs>),
    Doctor(Box<doctor::DoctorArgs>),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

/// The pack that a command reads.
#[derive(Debug, Args)]
pub(crate) struct PackPath {
    /// Pack to read
    #[arg(value_name = "PACK", value_hint = ValueHint::FilePath)]
    pub(crate) pack: PathBuf,
}

/// The packs that a command reads, one after another.
#[derive(Debug, Args)]
pub(crate) struct PackPaths {
    /// Packs to read
    #[arg(value_name = "PACK", required = true, value_hint = ValueHint::FilePath)]
    pub(crate) packs: Vec<PathBuf>,
}

/// The number of threads of a command.
#[derive(Debug, Args)]
pub(crate) struct Jobs {
    /// Threads; 0 = one per core
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,
}

/// The number of threads for a value of `--jobs`: 0 means one per core.
pub(crate) fn n_threads(jobs: usize) -> NonZero<usize> {
    let per_core = || std::thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN);
    NonZero::new(jobs).unwrap_or_else(per_core)
}

/// Parses a value by its name. Help and completions list the names.
pub(crate) fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let names = T::NAMES.iter().map(|name: &&'static str| -> &'static str {
        // clap requires 'static names; leaking a few strings once is fine.
        if name.contains('_') { name.replace('_', "-").leak() } else { name }
    });
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// Options for which `-` means stdin or stdout, as pairs of a subcommand and an argument id.
const STREAMS: [(&str, &str); 3] = [("show", "output"), ("show", "names"), ("head", "names")];

/// Rejects `-` as a path where stdin and stdout cannot be used, instead of reading or writing a file of this name.
pub(crate) fn refuse_streams(command: &clap::Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let is_path =
        |arg: &Arg| matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath);
    for arg in command.get_arguments().filter(|arg| is_path(arg)) {
        let id = arg.get_id().as_str();
        let mut values = matches.get_raw(id).into_iter().flatten();
        if values.any(|value| value == "-") && !STREAMS.contains(&(command.get_name(), id)) {
            let message =
                format!("'-' for '{arg}': stdin and stdout cannot be used here; pass ./- for a file named -\n");
            return Err(clap::Error::raw(ErrorKind::ValueValidation, message));
        }
    }
    let chosen = matches.subcommand().and_then(|(name, matches)| command.find_subcommand(name).zip(Some(matches)));
    chosen.map_or(Ok(()), |(command, matches)| refuse_streams(command, matches))
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
    free_values(Cli::command().long_version(version.as_str()))
}

/// Marks free values, such as numbers. Otherwise, shells would complete them with names of files.
fn free_values(command: clap::Command) -> clap::Command {
    let free = |arg: Arg| {
        let has_values = arg.get_value_parser().possible_values().is_some();
        let is_free = arg.get_action().takes_values() && !has_values && arg.get_value_hint() == ValueHint::Unknown;
        if is_free { arg.value_hint(ValueHint::Other) } else { arg }
    };
    command.mut_args(free).mut_subcommands(free_values)
}

/// The value of `--color` for help and usage errors, for which the parser returns no arguments.
pub(crate) fn color(args: &[OsString]) -> ColorChoice {
    let mut args = args.iter().filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--");
    let mut value = None;
    while let Some(arg) = args.next() {
        match arg.strip_prefix("--color") {
            Some("") => value = args.next(),
            Some(rest) => value = rest.strip_prefix('='),
            None => {}
        }
    }
    value.and_then(|value| ColorChoice::from_str(value, false).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn arguments_are_consistent() {
        super::command().debug_assert();
    }

    /// Names of values that cannot be completed: numbers, names from a file, and free text.
    const FREE: [&str; 26] = [
        "K",
        "PRICE",
        "N",
        "N,..",
        "B",
        "P",
        "Q",
        "S",
        "V",
        "MS",
        "BYTES",
        "CHUNKS",
        "LIST",
        "NAME",
        "OPS",
        "PIXELS",
        "SEED",
        "COMMAND",
        "KEY",
        "FIELD",
        "NAME,..",
        "S,..",
        "CONDITION",
        "OLD=NEW",
        "TYPE",
        "SIZES",
    ];

    #[test]
    fn a_dash_is_refused_where_it_is_neither_stdin_nor_stdout() {
        let refused = |line: &str| {
            let mut command = super::command();
            let matches = command.try_get_matches_from_mut(line.split(' ')).unwrap();
            super::refuse_streams(&command, &matches).err().map(|error| error.to_string())
        };
        for line in
            ["info a.pack -", "convert - a.pack", "export a.pack -", "extract a.pack -", "bench load -", "man --out -"]
        {
            let message = refused(&format!("packds {line}")).unwrap();
            assert!(
                message.contains(": stdin and stdout cannot be used here; pass ./- for a file named -"),
                "{message}"
            );
        }
        assert_eq!(
            refused("packds convert a b --dry-run --sheet -").unwrap(),
            "error: '-' for '--sheet <FILE>': stdin and stdout cannot be used here; pass ./- for a file named -\n"
        );
        for line in ["packds show a -o -", "packds head a --names -", "packds info ./-"] {
            assert_eq!(refused(line), None);
        }
    }

    #[test]
    fn the_values_of_every_option_can_be_completed() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let has_values = arg.get_value_parser().possible_values().is_some();
                let has_hint = !matches!(arg.get_value_hint(), clap::ValueHint::Unknown | clap::ValueHint::Other);
                let names: Vec<&str> = arg.get_value_names().unwrap_or_default().iter().map(|n| n.as_str()).collect();
                let is_free = names.iter().all(|name| FREE.contains(name));
                assert!(has_values || has_hint || is_free, "{} {}: {names:?}", command.get_name(), arg.get_id());
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = super::command();
        command.build();
        check(&command);
    }
}
