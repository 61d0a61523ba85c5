//! `packds add-field`: writes a pack with more fields.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{AddFieldOptions, Changes, Edit, EditOptions};

use super::{show, write};
use crate::args::PackPath;
use crate::declared::Given;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds add-field train.pack out.pack scores.csv
  packds add-field train.pack out.pack people.parquet --column age --dtype u8
  packds add-field train.pack out.pack embedding.npy --name clip";

/// Write a pack with more fields, without decoding images
///
/// The values come from a table with a column path or sample (the number of the sample in the pack) and a row for each
/// sample, or from a .npy file with an item for each sample, in the order of the pack.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AddFieldArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Values of the new fields: a .csv, .tsv, .jsonl, .parquet or .npy file
    #[arg(value_name = "TABLE", value_hint = ValueHint::FilePath)]
    table: PathBuf,
    #[command(flatten)]
    how: Given<AddFieldOptions>,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &AddFieldArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (how, options) = (args.how.options()?, args.given.options()?);
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let shown = Shown::new(console);
        let changes = shown.during("reading", || Changes::add_fields(pack, path, &args.table, &how))?;
        let mut described = args.how.described();
        if let Some(name) = args.table.file_name() {
            described["table"] = name.to_string_lossy().into();
        }
        let taken = [(path.as_path(), pack, None)];
        let report = write(&taken, (Edit::AddField, &described, &changes), (&args.output, ""), &options, &shown)?;
        console.result(|| &report, |console| show(&report, console))
    })
}
