//! Converts image folders, manifests and other formats to packs, and exports packs to other formats.
//!
//! [`convert`] lists the samples of a source, decodes and transforms their images, encodes the samples in chunks, and
//! writes the pack. [`export`] reads batches from a pack, encodes them, and passes them to a sink. The modules follow
//! these steps: `source` lists the samples, `survey` and `plan` decide how the pack is laid out, `sample` reads one
//! sample, `pipeline` builds blocks of samples on all cores, and `output` manages the output file.
//!
//! This example converts a folder of class folders to a pack, and exports the pack to an .npz file:
//!
//! ```
//! use std::fs;
//!
//! use packds_convert::{ConvertOptions, ExportOptions, convert, export};
//! use packds_format::Pack;
//! use packds_pixels::encode_png;
//!
//! let folder = tempfile::tempdir()?;
//! for (class, gray) in [("cats", 50), ("dogs", 200)] {
//!     let images = folder.path().join("photos").join(class);
//!     fs::create_dir_all(&images)?;
//!     fs::write(images.join("1.png"), encode_png(8, 8, 3, &[gray; 8 * 8 * 3])?)?;
//! }
//!
//! let (photos, pack) = (folder.path().join("photos"), folder.path().join("photos.pack"));
//! let report = convert(&photos, &pack, &ConvertOptions::default(), &())?;
//! assert_eq!((report.n_samples, report.n_classes), (2, 2));
//!
//! let pack = Pack::open(fs::read(pack)?)?;
//! let report = export(&pack, &folder.path().join("photos.npz"), &ExportOptions::default(), &())?;
//! assert_eq!(report.n_samples, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The observer `()` ignores progress. Another [`Observer`] can display progress and cancel. [`forecast()`] predicts
//! the size of a pack. A [`source::Listing`] describes what was found in a source, and [`convert_listing`] converts it.
#![forbid(unsafe_code)]

pub mod error;
pub mod source;

mod convert;
mod data_format;
mod diff;
mod distributed;
mod dtypes;
mod edit;
mod export;
mod forecast;
mod formats;
mod identity;
mod label_set;
mod literal;
mod mask_values;
mod metadata;
mod open_pack;
mod opt;
mod options;
mod ordered;
mod output;
mod pipeline;
mod plan;
mod provenance;
mod report;
mod restored;
mod safe_name;
mod sample;
mod set;
mod sink;
mod survey;

pub use convert::{check_apart, check_target, check_target_name, convert, convert_listing};
pub use data_format::DataFormat;
pub use diff::{ClassChanges, DiffOptions, DiffReport, Few, FieldChanges, ItemChange, SampleChange, SampleName, diff};
pub use distributed::{
    BuildOptions, BuildReport, Commit, CommitReport, PlanReport, ShardPlan, list_to_plan, plan_shards,
};
pub use edit::{
    AddFieldOptions, Changes, Edit, EditReport, RelabelOptions, ReorderOptions, Share, Side, SplitOptions, Taken, edit,
    in_file_order, reordered, sides,
};
pub use error::{ConvertError, hint_of_writing};
pub use export::{ExportCodec, ExportReport, export, target_format};
pub use forecast::{Forecast, FormForecast, forecast};
pub use options::{
    AppendOptions, Compression, ConvertOptions, Declared, EditOptions, ExportOptions, Mode, NormalizeBy, OnError,
    OptionSpec, Takes, given,
};
pub use output::{check_output, place_output};
pub use pipeline::{Observer, Phase, Progress};
pub use report::{Report, Skipped, Stages};
pub use safe_name::{safe_name, safe_names, stem};
pub use sample::SampleError;
pub use set::{
    Added, AppendReport, CompactOptions, CompactReport, JoinedShard, Leftover, ShardRule, append, check_set_name,
    compact,
};
pub use sink::{ImagesAs, ItemFile, interleave, item_file};
