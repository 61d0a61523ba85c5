//! `packds completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use crate::console::Console;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{args, escape};

const EXAMPLES: &str = "\
Examples:
  packds completions bash > ~/.local/share/bash-completion/completions/packds
  packds completions zsh > \"${fpath[1]}/_packds\"
  packds completions fish > ~/.config/fish/completions/packds.fish";

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "packds", &mut script);
    if console.json {
        let (shell, script) = (args.shell.to_string(), escape::lossy(&script));
        console.document(&json!({ "shell": shell, "script": script }))?;
    } else {
        console.out.write_all(&script)?;
    }
    Ok(Exit::Done)
}
