//! `packds man`: prints the manual, generated from the parser.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use clap_mangen::Man;
use serde_json::json;

use crate::{Console, Exit, Failure, args, escape};

const EXAMPLES: &str = "\
Examples:
  packds man | man -l -
  packds man --out ~/.local/share/man/man1";

/// Print the manual page, or write a page for every subcommand
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ManArgs {
    /// Write packds.1, packds-info.1, packds-bench-load.1 and so on to this folder
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
}

pub(crate) fn run(args: &ManArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut command = args::command();
    command.build();
    let Some(folder) = &args.out else {
        let page = render(command)?;
        let document = || json!({ "page": escape::lossy(&page) });
        return console.result(document, |console| Ok(console.out.write_all(&page)?));
    };
    fs::create_dir_all(folder).map_err(|e| Failure::write(folder, &e))?;
    let mut written = Vec::new();
    write_all(folder, "packds", &command, &mut written)?;
    console.result(
        || json!({ "files": written }),
        |console| Ok(written.iter().try_for_each(|path| writeln!(console.out, "{path}"))?),
    )
}

/// Writes the page of a command, and the pages of its subcommands.
fn write_all(folder: &Path, name: &str, command: &clap::Command, written: &mut Vec<String>) -> Result<(), Failure> {
    // clap requires 'static names; leaking a few strings once is fine.
    let page = command.clone().name(&*Box::leak(name.to_owned().into_boxed_str()));
    written.push(write(folder, &format!("{name}.1"), page)?);
    let subcommands = command.get_subcommands().filter(|c| c.get_name() != "help");
    subcommands.into_iter().try_for_each(|sub| write_all(folder, &format!("{name}-{}", sub.get_name()), sub, written))
}

fn render(command: clap::Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    Ok(page)
}

fn write(folder: &Path, name: &str, command: clap::Command) -> Result<String, Failure> {
    let path = folder.join(name);
    fs::write(&path, render(command)?).map_err(|e| Failure::write(&path, &e))?;
    Ok(escape::escape_path(&path))
}
