//! `packds split`: divides the samples of a pack among new packs.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use packds_convert::{Changes, Edit, EditOptions, EditReport, Side, SplitOptions, check_output, sides};
use packds_reader::Pack;
use serde_json::{Map, Value, json};

use super::{show, write};
use crate::args::PackPath;
use crate::declared::Given;
use crate::escape::{escape, escape_path};
use crate::opened::with_pack;
use crate::progress::Shown;
use crate::{Console, Exit, Failure, split_output};

const EXAMPLES: &str = "\
Examples:
  packds split all.pack out.pack --ratio 0.9,0.1                       # out.train.pack and out.val.pack
  packds split all.pack out.pack --ratio 0.8,0.1,0.1 --stratify label  # out.train.pack, out.val.pack, out.test.pack
  packds split all.pack out.pack --ratio 0.9,0.1 --group-by patient
  packds split all.pack out.pack --folds 5                             # out.fold0.pack to out.fold4.pack
  packds split all.pack out.pack --by site                             # a pack for each value of the field";

/// Divide the samples of a pack among new packs, without decoding images
///
/// Samples keep their order. The side of a sample depends only on the seed and on its path (or its checksum, if the pack
/// has no paths), so it stays on its side when data is added. Only --stratify divides exactly: added data may then move
/// some samples to another side.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SplitArgs {
    #[command(flatten)]
    pack: PackPath,
    /// Name of the packs to write: out.pack becomes out.train.pack and out.val.pack
    #[arg(value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    #[command(flatten)]
    how: Given<SplitOptions>,
    #[command(flatten)]
    given: Given<EditOptions>,
}

pub(crate) fn run(args: &SplitArgs, console: &mut Console) -> Result<Exit, Failure> {
    let (how, options) = (args.how.options()?, args.given.options()?);
    let path = &args.pack.pack;
    with_pack(path, |pack| {
        let shown = Shown::new(console);
        let sides = shown.during("dividing", || sides(pack, path, &how))?;
        let outputs: Vec<PathBuf> = sides.iter().map(|side| split_output(&args.output, &side.name)).collect();
        // Check every output before writing the first.
        outputs.iter().try_for_each(|output| check_output(output, options.force))?;
        let mut reports: Vec<(&Side, EditReport)> = Vec::new();
        for (side, output) in sides.iter().zip(&outputs) {
            let report = write_side(args, pack, side, output, &options, &shown);
            let report = report.map_err(|failure| stopped_at(failure, &reports))?;
            if !console.json {
                show(&report, console)?;
                console.out.flush()?;
            }
            reports.push((side, report));
        }
        if console.json {
            let splits: Map<String, Value> = reports.iter().map(|(side, r)| (side.name.clone(), json!(r))).collect();
            let n_samples: u64 = reports.iter().map(|(_, report)| report.n_samples).sum();
            let bytes_out: u64 = reports.iter().map(|(_, report)| report.bytes_out).sum();
            let document = json!({
                "dry_run": options.dry_run,
                "n_samples": n_samples,
                "bytes_out": bytes_out,
                "splits": splits,
            });
            console.document(&document)?;
        }
        Ok(Exit::Done)
    })
}

fn write_side(
    args: &SplitArgs,
    pack: &Pack,
    side: &Side,
    output: &std::path::Path,
    options: &EditOptions,
    shown: &Shown,
) -> Result<EditReport, Failure> {
    let taken = [(args.pack.pack.as_path(), pack, Some(side.samples.as_slice()))];
    let mut how = args.how.described();
    how["side"] = side.name.as_str().into();
    write(&taken, (Edit::Split, &how, &Changes::default()), (output, &escape(&side.name)), options, shown)
}

/// Adds the packs that were already written to the failure, if the user stopped the command.
fn stopped_at(failure: Failure, before: &[(&Side, EditReport)]) -> Failure {
    if before.is_empty() || !failure.ends_all() {
        return failure;
    }
    let written: Vec<String> = before.iter().map(|(_, report)| escape_path(&report.output)).collect();
    Failure::interrupted(format!("interrupted (already written: {})", written.join(", ")))
}
