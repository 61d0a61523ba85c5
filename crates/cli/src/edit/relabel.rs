//! `packds relabel`: writes a pack with other labels.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions, RelabelOptions};

use super::{show, write};
use crate::args::PackPath;
use crate::declared::Given;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds relabel train.pack fixed.pack corrections.csv
  packds relabel train.pack checked.pack checked.csv --only
  packds relabel train.pack named.pack --rename kitten=cat --rename puppy=dog";

/// Write a pack with other labels, without decoding images
///
/// The table has a column path or sample (the number of the sample in the pack), and a column with the new classes.
/// Classes that the pack lacks are added at the end. Classes without samples keep their ids.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RelabelArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Table of new labels: a .csv, .tsv, .jsonl or .parquet file
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    table: Option<PathBuf>,
    #[command(flatten)]
    how: Given<RelabelOptions>,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &RelabelArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (how, options) = (args.how.options()?, args.given.options()?);
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let shown = Shown::new(console);
        let table = args.table.as_deref();
        let (changes, samples) = shown.during("reading", || Changes::relabel(pack, path, table, &how))?;
        let mut described = args.how.described();
        if let Some(name) = table.and_then(|table| table.file_name()) {
            described["table"] = name.to_string_lossy().into();
        }
        let taken = [(path.as_path(), pack, samples.as_deref())];
        let report = write(&taken, (Edit::Relabel, &described, &changes), (&args.output, ""), &options, &shown)?;
        console.result(|| &report, |console| show(&report, console))
    })
}
