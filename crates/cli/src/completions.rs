//! `packds completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;
use serde_json::json;

use crate::{Console, Exit, Failure, args, escape};

const EXAMPLES: &str = "\
Examples:
  packds completions bash > ~/.local/share/bash-completion/completions/packds
  packds completions zsh > \"${fpath[1]}/_packds\"
  packds completions fish > ~/.config/fish/completions/packds.fish";

/// Print a shell completion script
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell that the script is for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, console: &mut Console) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut args::command(), "packds", &mut script);
    let document = || json!({ "shell": args.shell.to_string(), "script": escape::lossy(&script) });
    console.result(document, |console| Ok(console.out.write_all(&script)?))
}
