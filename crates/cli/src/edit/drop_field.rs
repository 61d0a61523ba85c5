//! `packds drop-field`: writes a pack without some of its fields.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions};
use serde_json::json;

use super::{show, write};
use crate::args::PackPath;
use crate::declared::Given;
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure};

const EXAMPLES: &str = "\
Examples:
  packds drop-field train.pack small.pack note
  packds drop-field train.pack images.pack mask source_width source_height";

/// Write a pack without some of its fields, without decoding images
///
/// Fields that describe an image, such as its width, are left out with it. A field that another field needs can only be
/// left out together with it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DropFieldArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Pack to write
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Fields to leave out
    #[arg(value_name = "FIELD", required = true)]
    fields: Vec<String>,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &DropFieldArgs, console: &mut Console) -> Result<Exit, Failure> {
    let options = args.given.options()?;
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let changes = Changes::drop_fields(pack, path, &args.fields)?;
        let how = json!({"fields": args.fields});
        let taken = [(path.as_path(), pack, None)];
        let shown = Shown::new(console);
        let report = write(&taken, (Edit::DropField, &how, &changes), (&args.output, ""), &options, &shown)?;
        console.result(|| &report, |console| show(&report, console))
    })
}
