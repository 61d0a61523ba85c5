//! The `packds` command as a library: the binary only calls [`run`]. Its JSON documents and option parsing are public,
//! so that other programs can reuse them.
//!
//! To add a subcommand `x`: write `x.rs` with its arguments (`pub(crate) struct XArgs`, a `clap::Args`) and `pub(crate)
//! fn run(args: &XArgs, console: &mut Console) -> Result<Exit, Failure>`, declare `mod x;`, add a variant to
//! `args::Command` and an arm to `dispatch` below. Results go to `console.prose()`, or to `console.out` if they must
//! not be wrapped, everything else to `console.err`. If `console.json` is set, the result is one
//! `console.document(..)`. To convert a library's error to `Failure`, implement `From` in `failure.rs`.

mod args;
mod bench;
mod choice;
mod class_words;
mod completions;
mod console;
mod convert;
mod declared;
mod diff;
mod distributed;
mod doctor;
mod edit;
mod escape;
mod exit;
mod export;
mod extract;
mod failure;
mod figures;
mod formats;
mod head;
mod human;
mod info;
mod interrupt;
mod label;
mod labels;
mod man;
mod migrate;
mod numpy;
mod opened;
mod output;
mod piped;
mod progress;
mod prose;
mod samples;
mod show;
mod shuffle;
mod shuffle_plot;
mod simulate;
mod table;
mod task;
mod terminal_line;
mod verify;
mod view;

use std::ffi::OsString;
use std::io::{self, BufWriter, IsTerminal, Write};

use clap::FromArgMatches;

use args::{Cli, Command};
use console::Console;
pub use convert::split_output;
pub use distributed::build::build_shard;
pub use distributed::commit::commit_shards;
pub use doctor::{doctor_picture, doctor_plot};
pub use exit::Exit;
use failure::Failure;
pub use info::info_document;
use packds_system::FrontEnd;
use serde_json::json;
pub use show::sample_picture;
pub use verify::verify_document;

/// Runs the command. `args` starts with the program's name. Results go to stdout, everything else to stderr.
pub fn run(args: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Exit {
    // Do not hold the locks of stdout and stderr, because other threads draw progress and print warnings.
    let (stdout, mut err) = (io::stdout(), io::stderr());
    let out_is_terminal = stdout.is_terminal();
    let mut out = BufWriter::with_capacity(1 << 16, stdout);
    interrupt::refuse_large_files();
    let _words = FrontEnd::Command.enter();
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let mut parser = args::command();
    let parsed = parser.try_get_matches_from_mut(&args).and_then(|matches| {
        args::refuse_streams(&parser, &matches)?;
        Cli::from_arg_matches(&matches)
    });
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &args),
    };
    let err_is_terminal = err.is_terminal() && !console::is_dumb();
    let is_colored = console::is_colored(cli.color, &err);
    let (json, detail) = (cli.json, cli.detail());
    let mut console =
        Console { out: &mut out, err: &mut err, json, detail, out_is_terminal, err_is_terminal, is_colored };
    let result = dispatch(&cli.command, &mut console).and_then(|exit| {
        console.out.flush()?;
        Ok(exit)
    });
    result.unwrap_or_else(|failure| failure.report(&mut console))
}

fn dispatch(command: &Command, console: &mut Console) -> Result<Exit, Failure> {
    match command {
        Command::Convert(args) => convert::run(args, console),
        Command::Migrate(args) => migrate::run(args, console),
        Command::Plan(args) => distributed::plan::run(args, console),
        Command::Build(args) => distributed::build::run(args, console),
        Command::Commit(args) => distributed::commit::run(args, console),
        Command::Export(args) => export::run(args, console),
        Command::Formats(args) => formats::run(args, console),
        Command::Info(args) => info::run(args, console),
        Command::Verify(args) => verify::run(args, console),
        Command::Head(args) => head::run(args, console),
        Command::Show(args) => show::run(args, console),
        Command::View(args) => view::run(args, console),
        Command::Subset(args) => edit::subset::run(args, console),
        Command::Split(args) => edit::split::run(args, console),
        Command::Merge(args) => edit::merge::run(args, console),
        Command::Append(args) => edit::append::run(args, console),
        Command::Compact(args) => edit::compact::run(args, console),
        Command::Reorder(args) => edit::reorder::run(args, console),
        Command::Relabel(args) => edit::relabel::run(args, console),
        Command::AddField(args) => edit::add_field::run(args, console),
        Command::DropField(args) => edit::drop_field::run(args, console),
        Command::Extract(args) => extract::run(args, console),
        Command::Labels(args) => labels::run(args, console),
        Command::Diff(args) => diff::run(args, console),
        Command::Simulate(args) => simulate::run(args, console),
        Command::Bench(args) => bench::run(args, console),
        Command::Doctor(args) => doctor::run(args, console),
        Command::Completions(args) => completions::run(args, console),
        Command::Man(args) => man::run(args, console),
    }
}

/// Prints help and versions to stdout, and usage errors to stderr in the same form as other errors.
fn usage(error: &clap::Error, args: &[OsString]) -> Exit {
    let color = args::color(args);
    let text = |is_colored| match error.render() {
        text if is_colored => text.ansi().to_string(),
        text => text.to_string(),
    };
    if !error.use_stderr() {
        // A reader may close the pipe before the end of the help.
        let _ = io::stdout().write_all(text(console::is_colored(color, &io::stdout())).as_bytes());
        return Exit::Done;
    }
    let mut err = io::stderr();
    let plain = error.render().to_string();
    let message = plain.strip_prefix("error: ");
    if let Some(message) = message.filter(|_| args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json")) {
        let message = message.split("\n\n").next().unwrap_or_default().trim_end();
        let document = json!({ "error": { "path": null, "message": message, "hint": null } });
        // If writing to stdout fails, the message still goes to stderr below.
        let _ = writeln!(io::stdout(), "{document}");
    }
    let program = if message.is_some() { "packds: " } else { "" };
    // If stderr is closed, the message is lost.
    let _ = write!(err, "{program}{}", text(console::is_colored(color, &err)));
    Exit::NotRun
}
