//! The names of options that messages mention, and other words that differ between the command and Python.

use packds_system::{Opt, Words};

pub(crate) const BATCH: Opt = Opt::new("batch");
pub(crate) const BY: Opt = Opt::new("by");
pub(crate) const CHECK_DECODE: Opt = Opt::new("check_decode");
pub(crate) const CHUNK: Opt = Opt::new("chunk");
pub(crate) const CODEC: Opt = Opt::new("codec");
pub(crate) const CROP: Opt = Opt::new("crop");
pub(crate) const DTYPE: Opt = Opt::new("dtype");
pub(crate) const FILTER: Opt = Opt::new("filter");
pub(crate) const FOLDS: Opt = Opt::new("folds");
pub(crate) const FORCE: Opt = Opt::new("force");
pub(crate) const FROM: Opt = Opt::new("from").keyword("from_format");
pub(crate) const GRAY: Opt = Opt::new("gray");
pub(crate) const GROUP_BY: Opt = Opt::new("group_by");
pub(crate) const IMAGE_KEY: Opt = Opt::new("image_key");
pub(crate) const IMAGES: Opt = Opt::new("images");
pub(crate) const JPEG_SCALING: Opt = Opt::new("jpeg_scaling");
pub(crate) const KEEP_ORDER: Opt = Opt::new("keep_order");
pub(crate) const LABEL_KEY: Opt = Opt::new("label_key");
pub(crate) const LAYOUT: Opt = Opt::new("layout");
pub(crate) const LEAVE_OUT: Opt = Opt::new("leave_out");
pub(crate) const MANY_SAMPLES_PER_FILE: Opt = Opt::new("many_samples_per_file");
pub(crate) const MASK_KEY: Opt = Opt::new("mask_key");
pub(crate) const MASKS: Opt = Opt::new("masks");
pub(crate) const MODE: Opt = Opt::new("mode");
pub(crate) const NAMES: Opt = Opt::new("names");
pub(crate) const NORMALIZE: Opt = Opt::new("normalize");
pub(crate) const ON_ERROR: Opt = Opt::new("on_error");
pub(crate) const ONE_SAMPLE_PER_FILE: Opt = Opt::new("one_sample_per_file");
pub(crate) const PER_SAMPLE: Opt = Opt::new("per_sample");
pub(crate) const QUALITY: Opt = Opt::new("quality");
pub(crate) const RATIO: Opt = Opt::new("ratio");
pub(crate) const RAW_FRACTION: Opt = Opt::new("raw_fraction");
pub(crate) const RESIZE: Opt = Opt::new("resize");
pub(crate) const ROOT: Opt = Opt::new("root");
pub(crate) const SEEKABLE: Opt = Opt::new("seekable");
pub(crate) const SHARD: Opt = Opt::new("shard");
pub(crate) const SPLIT: Opt = Opt::new("split");
pub(crate) const STRATIFY: Opt = Opt::new("stratify");
pub(crate) const TO: Opt = Opt::new("to");
pub(crate) const ZARR_VERSION: Opt = Opt::new("zarr_version");

pub(crate) const SIZE: Words = Words { command: "WIDTHxHEIGHT", python: "(width, height)" };
pub(crate) const MEAN_STD: Words = Words { command: "MEAN/STD", python: "(mean, std)" };
pub(crate) const LIST_FORMATS: Words = Words { command: "'packds formats'", python: "packds.formats()" };
pub(crate) const VERIFY: Words = Words { command: "'packds verify'", python: "packds.open(path).verify()" };
