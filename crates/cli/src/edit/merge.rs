//! `packds merge`: writes the samples of several packs to one pack.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions};
use packds_reader::Pack;
use serde_json::json;

use super::{show, still_good, whole, write};
use crate::args::PackPaths;
use crate::declared::Given;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds merge monday.pack tuesday.pack week.pack
  packds merge part-*.pack all.pack --dry-run";

/// Write the samples of several packs to one new pack, without decoding images
///
/// The samples of the first pack come first. The packs must have the same fields. Classes are joined by name, and ids
/// that change are reported. A pack that was shuffled stays shuffled only within itself: to mix the packs, use a window
/// order when training.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MergeArgs {
    #[command(flatten)]
    packs: PackPaths,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &MergeArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let paths = &args.packs.packs;
    let packs = paths.iter().map(packds_reader::open).collect::<Result<Vec<Pack>, _>>()?;
    let shown = Shown::new(console);
    let report = write(
        &whole(paths, &packs),
        (Edit::Merge, &json!({}), &Changes::default()),
        (&args.output, ""),
        &options,
        &shown,
    );
    still_good(&packs)?;
    let report = report?;
    console.result(|| &report, |console| show(&report, console))
}
