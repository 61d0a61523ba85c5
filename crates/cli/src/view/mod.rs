//! `packds view`: a local page in the browser that shows the samples of a pack.
//!
//! The page reads the pack and changes nothing. `catalogue` answers the page's requests, and `server` speaks HTTP.

mod catalogue;
mod server;

use std::process::{Command, Stdio};

use clap::Args;
use packds_reader::Pack;
use serde_json::json;

use crate::args::PackPath;
use crate::choice::{Choice, nothing_chosen};
use crate::class_words::WordsFile;
use crate::interrupt;
use crate::opened::with_pack;
use crate::terminal_line::clear_line;
use crate::{Console, Exit, Failure};
use catalogue::Catalogue;
use server::Server;

const EXAMPLES: &str = "\
Examples:
  packds view train.pack
  packds view train.pack --class cat
  packds view train.pack --names LOC_synset_mapping.txt
  packds view train.pack --port 8000 --no-browser";

/// Show a pack in the browser: images, classes, masks, histograms, search
///
/// Serves one page on this machine only (127.0.0.1) until you press Ctrl-C. The address contains a random key, so that
/// other users of the machine cannot open the page. The page loads nothing from elsewhere and changes nothing.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pack: PackPath,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    words: WordsFile,
    /// Port to listen on [default: any free port]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    port: u16,
    /// Do not open a browser
    #[arg(long)]
    no_browser: bool,
}

pub(crate) fn run(args: &ViewArgs, console: &mut Console) -> Result<Exit, Failure> {
    with_pack(&args.pack.pack, |pack| view(args, pack, console))
}

fn view(args: &ViewArgs, pack: &Pack, console: &mut Console) -> Result<Exit, Failure> {
    let samples = args.choice.in_file_order(pack)?;
    if samples.as_ref().is_some_and(Vec::is_empty) {
        return Err(nothing_chosen(pack));
    }
    let samples = samples.unwrap_or_else(|| (0..pack.n_samples()).collect());
    let catalogue = Catalogue::open(pack, samples, args.words.apply(pack, None)?)?;
    let server = Server::bind(args.port)?;
    // Catch Ctrl-C before a user can read the address.
    let _catching = interrupt::catch();
    let url = server.url();
    console.result(|| json!({ "url": url }), |console| Ok(writeln!(console.out, "{url}")?))?;
    console.out.flush()?;
    if !console.json {
        console.doing("serving the page until you press Ctrl-C");
    }
    if !args.no_browser && console.out_is_terminal {
        open_browser(&url);
    }
    let exit = server.serve(&catalogue);
    if console.err_is_terminal {
        // Remove the terminal's `^C`.
        clear_line();
    }
    Ok(exit)
}

/// Asks the desktop to show the page. Without a desktop, nothing happens; the address has already been printed.
fn open_browser(url: &str) {
    let has_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if has_desktop {
        let _ = Command::new("xdg-open").arg(url).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    }
}
