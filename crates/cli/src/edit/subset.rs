//! `packds subset`: writes some samples of a pack to a new pack.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions, in_file_order};

use super::{show, write};
use crate::args::PackPath;
use crate::choice::{Choice, nothing_chosen};
use crate::declared::Given;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds subset train.pack cats.pack --class cat
  packds subset train.pack large.pack --where \"source_width >= 512 and label in ('cat', 'dog')\"
  packds subset train.pack clean.pack --samples keep.txt
  packds subset train.pack small.pack --samples 0-9999 --dry-run";

/// Write some samples of a pack to a new pack, without decoding images
///
/// The samples keep their order. Items are copied as they are stored, and everything copied is checked against its
/// checksum. Without an option that selects samples, all samples are copied.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SubsetArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &SubsetArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let mut samples = args.choice.of(pack)?;
        let told = samples.as_deref_mut().map(in_file_order).transpose()?.flatten();
        if samples.as_ref().map_or(pack.n_samples() == 0, Vec::is_empty) {
            return Err(nothing_chosen(pack));
        }
        let shown = Shown::new(console);
        let taken = [(path.as_path(), pack, samples.as_deref())];
        let how = args.choice.described();
        let mut report =
            write(&taken, (Edit::Subset, &how, &Changes::default()), (&args.output, ""), &options, &shown)?;
        report.warnings.extend(told);
        console.result(|| &report, |console| show(&report, console))
    })
}
