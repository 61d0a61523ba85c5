//! `packds reorder`: writes all samples of a pack in another order.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions, ReorderOptions, reordered};

use super::{show, write};
use crate::args::PackPath;
use crate::declared::Given;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds reorder merged.pack shuffled.pack
  packds reorder train.pack other.pack --seed 1
  packds reorder val.pack sorted.pack --by path";

/// Write all samples of a pack in another order, without decoding images
///
/// By default, the samples are shuffled, in an order that depends only on their number and on the seed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReorderArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    how: Given<ReorderOptions>,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &ReorderArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (how, options) = (args.how.options()?, args.given.options()?);
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let shown = Shown::new(console);
        let samples = shown.during("ordering", || reordered(pack, path, &how))?;
        let taken = [(path.as_path(), pack, Some(samples.as_slice()))];
        let what = (Edit::Reorder, &args.how.described(), &Changes::default());
        let report = write(&taken, what, (&args.output, ""), &options, &shown)?;
        console.result(|| &report, |console| show(&report, console))
    })
}
