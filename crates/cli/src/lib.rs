//! The `packds` command as a library: [`run`] is all of it, and the binary only calls that. What it tells and how it reads
//! options is there for other programs too, so that they need not say it again.
//!
//! To add a subcommand `x`, write `x.rs` with its arguments (`pub(crate) struct XArgs`, a `clap::Args`) and
//! `pub(crate) fn run(args: &XArgs, console: &mut Console) -> Result<Exit, Failure>`, declare `mod x;`, and add two lines:
//! a variant to `args::Command` and its arm to `dispatch` below. Results go to `console.out`, everything else to
//! `console.err`; with `console.json` the result is one `console.document(..)`. A library's error becomes a `Failure`
//! by a `From` in `failure.rs`.

mod args;
mod bench;
mod canvas;
mod completions;
mod console;
mod convert;
mod doctor;
mod escape;
mod exit;
mod export;
mod extract;
mod failure;
mod figure;
mod formats;
mod human;
mod info;
mod interrupt;
mod label;
mod labels;
mod lettering;
mod man;
mod numpy;
mod opened;
mod options;
mod order;
mod output;
mod plot_file;
mod progress;
mod raster;
mod samples;
mod show;
mod shuffle;
mod shuffle_plot;
mod task;
mod terminal_line;
mod verify;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};

use clap::FromArgMatches;

use args::{Cli, Command};
use console::Console;
pub use convert::split_output;
pub use doctor::{doctor_document, doctor_picture, doctor_plot, doctor_text};
pub use exit::Exit;
use failure::Failure;
pub use info::info_document;
pub use options::{convert_options, export_options};
pub use show::sample_picture;
pub use verify::verify_document;

/// The guide's examples, so that they compile.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/rust.md")]
struct RustGuide;

/// Runs the command with `args`, the program's name first: prints results on stdout, everything else on stderr.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    // The lock of neither is held: threads of a command draw and warn while it runs.
    let (stdout, mut err) = (io::stdout(), io::stderr());
    let out_is_terminal = stdout.is_terminal();
    let mut out = BufWriter::with_capacity(1 << 16, stdout);
    interrupt::refuse_large_files();
    let parsed = args::command()
        .try_get_matches_from(args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &mut err),
    };
    let err_is_terminal = err.is_terminal() && !is_dumb();
    let mut console = Console {
        out: &mut out,
        err: &mut err,
        json: cli.json,
        out_is_terminal,
        err_is_terminal,
    };
    let result = dispatch(&cli.command, &mut console).and_then(|exit| {
        console.out.flush()?;
        Ok(exit)
    });
    result.unwrap_or_else(|failure| failure.report(&mut console))
}

/// Whether the terminal says that it can do nothing but show one line after the other.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

fn dispatch(command: &Command, console: &mut Console) -> Result<Exit, Failure> {
    match command {
        Command::Convert(args) => convert::run(args, console),
        Command::Export(args) => export::run(args, console),
        Command::Formats(args) => formats::run(args, console),
        Command::Info(args) => info::run(args, console),
        Command::Verify(args) => verify::run(args, console),
        Command::Show(args) => show::run(args, console),
        Command::Extract(args) => extract::run(args, console),
        Command::Labels(args) => labels::run(args, console),
        Command::Bench(args) => bench::run(args, console),
        Command::Doctor(args) => doctor::run(args, console),
        Command::Completions(args) => completions::run(args, console),
        Command::Man(args) => man::run(args, console),
    }
}

/// Help and versions go to stdout; what cannot be understood goes to stderr, in the form of every other error.
fn usage(error: &clap::Error, err: &mut dyn Write) -> Exit {
    if !error.use_stderr() {
        // A reader that has seen enough of the help is no error.
        let _ = error.print();
        return Exit::Done;
    }
    let text = error.render().to_string();
    // Where stderr is closed there is nobody to tell.
    let _ = match text.strip_prefix("error: ") {
        Some(text) => write!(err, "packds: {text}"),
        None => write!(err, "{text}"),
    };
    Exit::NotRun
}
