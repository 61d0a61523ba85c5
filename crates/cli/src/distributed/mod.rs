//! The commands that convert a source on many machines: `plan`, `build` and `commit`.

pub(crate) mod build;
pub(crate) mod commit;
pub(crate) mod plan;

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The folder of the set that a plan describes.
#[derive(Debug, Args)]
pub(crate) struct SetFolder {
    /// Folder of the set. Its name ends with .packs
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::DirPath)]
    output: PathBuf,
}
