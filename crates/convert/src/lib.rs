//! Converts image folders, manifests and other formats to packs, and exports packs to other formats.
//!
//! [`convert`] makes a pack: source, decode, transform, chunk, encode, write. [`export`] reads one: pack, batches, encode, sink.
//! The modules follow the data: `source` lists the files, `survey` and `plan` decide what the pack will look like, `sample` makes
//! one sample, `pipeline` makes blocks of samples on all cores, `output` is the file.
//!
//! ```no_run
//! use packds_convert::{ConvertOptions, convert};
//!
//! let report = convert("imagefolder".as_ref(), "out.pack".as_ref(), &ConvertOptions::default(), &())?;
//! println!("{} images in {} chunks", report.n_samples, report.n_chunks);
//! # Ok::<(), packds_convert::ConvertError>(())
//! ```
#![forbid(unsafe_code)]

pub mod error;
pub mod source;

mod convert;
mod data_format;
mod export;
mod forecast;
mod formats;
mod identity;
mod metadata;
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
mod sink;
mod survey;

pub use convert::{check_apart, convert, convert_listing};
pub use data_format::DataFormat;
pub use error::{ConvertError, hint_of_writing};
pub use export::{ExportCodec, ExportOptions, ExportReport, export, target_format};
pub use forecast::{Forecast, FormForecast, forecast};
pub use options::{Compression, ConvertOptions, Mode, NormalizeBy, OnError};
pub use output::{check_output, place_output};
pub use pipeline::{Observer, Phase, Progress};
pub use report::{Report, Skipped, Stages};
pub use safe_name::{safe_name, safe_names, stem};
pub use sample::SampleError;
pub use sink::{ImagesAs, ItemFile, interleave, item_file};
