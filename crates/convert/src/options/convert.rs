//! The options of a conversion. A new option needs a field, a default and a declaration.

use std::path::{Path, PathBuf};

use packds_format::DType;
use packds_pixels::{Color, Crop, Filter, Layout, Orientation, PIXEL_TYPES, Resize};
use packds_system::{BadValue, Named, Opt};
use serde_json::{Value, json};

use super::spec::{Declared, OptionSpec, parse, put, whole};
use super::values::{Compression, Mode, NormalizeBy, OnError, image_dtype};
use crate::data_format::DataFormat;
use crate::opt;
use crate::set::ShardRule;
use crate::source::{ListOptions, MaskOrder};

/// Maximum number of decoding threads. More threads give no speed-up, and the system may refuse to start them.
const MAX_JOBS: usize = 256;

/// All options of a conversion.
#[derive(Debug, Clone)]
pub struct ConvertOptions {
    /// How the source is listed.
    pub list: ListOptions,
    /// How images are stored.
    pub mode: Mode,
    /// The share of raw samples in [`Mode::Mixed`], 0 to 1. `None` means [`Self::RAW_FRACTION`].
    pub raw_fraction: Option<f64>,
    /// How the whole image is resized. `None` means the default for the mode.
    pub resize: Option<Resize>,
    /// The part of the image that is kept. `None` means the default for the mode.
    pub crop: Option<Crop>,
    /// The interpolation filter for resizing.
    pub filter: Filter,
    /// How the EXIF orientation is treated.
    pub orientation: Orientation,
    /// RGB or gray. If `None`, it is taken from a source that contains arrays or was exported from a pack, and is RGB
    /// for other sources.
    pub color: Option<Color>,
    /// Element type of raw images: `u8`, `f16`, `bf16` or `f32`.
    pub dtype: DType,
    /// Dimension order of raw images of one size. If `None`, it is taken from a source that contains arrays or was
    /// exported from a pack, and is height, width, channels for other sources.
    pub layout: Option<Layout>,
    /// Normalization. It is applied to float pixels, but only recorded for `u8`.
    pub normalize: NormalizeBy,
    /// JPEG quality of re-encoded images, 1 to 100. `None` keeps the source's bytes.
    pub quality: Option<u8>,
    /// Whether JPEGs are decoded at a reduced size if that is still large enough. This changes pixels.
    pub jpeg_scaling: bool,
    /// Whether files are fully decoded even when stored unchanged.
    pub check_decode: bool,
    /// Whether each JPEG gets an index that makes decoding a crop faster. Only for [`Mode::Encoded`].
    pub seekable: bool,
    /// How chunks are compressed.
    pub compression: Compression,
    /// Samples per chunk. `None` chooses a number that depends on the size of a sample.
    pub chunk_samples: Option<u32>,
    /// The batch size to align chunks with.
    pub batch: Option<u32>,
    /// How the samples are divided among the shards of a set. `None` writes a single pack.
    pub shards: Option<ShardRule>,
    /// Whether samples keep the listing's order instead of being shuffled.
    pub keep_order: bool,
    /// Seed for the sample order and for the choice of raw samples.
    pub seed: u64,
    /// What happens if an image cannot be read or decoded.
    pub on_error: OnError,
    /// Maximum number of pixels of an image. A larger image causes an error.
    pub max_pixels: u64,
    /// Number of decoding threads. 0 means all cores.
    pub jobs: usize,
    /// Whether an existing output is replaced.
    pub force: bool,
}

impl Default for ConvertOptions {
    fn default() -> Self {
        Self {
            list: ListOptions::default(),
            mode: Mode::Raw,
            raw_fraction: None,
            resize: None,
            crop: None,
            filter: Filter::default(),
            orientation: Orientation::Ignore,
            color: None,
            dtype: DType::U8,
            layout: None,
            normalize: NormalizeBy::None,
            quality: None,
            jpeg_scaling: false,
            check_decode: false,
            seekable: false,
            compression: Compression::None,
            chunk_samples: None,
            batch: None,
            shards: None,
            keep_order: false,
            seed: 0,
            on_error: OnError::Stop,
            max_pixels: packds_pixels::DecodeOptions::default().max_pixels,
            jobs: 0,
            force: false,
        }
    }
}

impl ConvertOptions {
    /// The default share of raw samples in [`Mode::Mixed`].
    pub const RAW_FRACTION: f64 = 0.5;

    /// The number of decoding threads to use.
    #[must_use]
    pub fn n_jobs(&self) -> usize {
        match self.jobs {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n.min(MAX_JOBS),
        }
    }

    /// Dimension order of raw images of one size. The default is height, width, channels.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.layout.unwrap_or(Layout::Hwc)
    }

    /// RGB or gray. The default is RGB.
    #[must_use]
    pub fn color(&self) -> Color {
        self.color.unwrap_or(Color::Rgb)
    }

    /// Whether a resize or crop was requested.
    #[must_use]
    pub fn has_geometry(&self) -> bool {
        self.resize.is_some_and(|r| r != Resize::None) || self.crop.is_some_and(|c| c != Crop::None)
    }

    /// The same options, completed for this output: the source is unpacked next to it, and listing uses as many threads
    /// as decoding does.
    #[must_use]
    pub fn for_output(mut self, output: &Path) -> Self {
        let folder = output.parent().map(|folder| match folder.as_os_str().is_empty() {
            true => PathBuf::from("."),
            false => folder.to_owned(),
        });
        self.list.spool = folder;
        self.list.jobs = self.n_jobs();
        self
    }
}

/// The rule for a size of shards.
fn shard_size(text: &str) -> Result<ShardRule, String> {
    match packds_system::parse_bytes(text)? {
        0 => Err("expected at least 1 byte, such as 8GB, found 0".to_owned()),
        n => Ok(ShardRule::Bytes(n)),
    }
}

type Spec = OptionSpec<ConvertOptions>;

impl Declared for ConvertOptions {
    const OPTIONS: &'static [Spec] = &[
        Spec::switch(opt::FORCE, |o| o.force = true, "Replace OUT if it exists; a set is never replaced"),
        Spec::value(
            Opt::new("jobs"),
            "N",
            |o, text| put(&mut o.jobs, whole(text, 0, u64::MAX)),
            "Decoding threads; 0 = one per core",
        )
        .short('j')
        .default(|o| o.jobs.to_string()),
        // Source
        Spec::value(
            opt::SPLIT,
            "NAME",
            |o, text| put(&mut o.list.split, parse(text).map(Some)),
            "Convert this split of the source (train, val, ...); `all` writes one pack per split: OUT.train.pack and so on",
        )
        .offers(&["train", "val", "test", "all"])
        .under(SOURCE)
        .recorded("split", |o| o.list.split.clone().map(Value::from)),
        Spec::path(
            opt::ROOT,
            "DIR",
            |o, path| o.list.root = Some(path.to_owned()),
            "Base folder for relative paths in a manifest [default: the manifest's folder]",
        )
        .under(SOURCE),
        Spec::value(
            opt::IMAGE_KEY,
            "NAME",
            |o, text| put(&mut o.list.image_key, parse(text).map(Some)),
            "Image field, or the column of image paths in a manifest [default: found by name]",
        )
        .under(SOURCE)
        .recorded("image_key", |o| o.list.image_key.clone().map(Value::from)),
        Spec::value(
            opt::LABEL_KEY,
            "NAME",
            |o, text| put(&mut o.list.label_key, parse(text).map(Some)),
            "Label field [default: found by name]",
        )
        .under(SOURCE)
        .recorded("label_key", |o| o.list.label_key.clone().map(Value::from)),
        Spec::value(
            opt::MASK_KEY,
            "NAME",
            |o, text| put(&mut o.list.mask_key, parse(text).map(Some)),
            "Mask field, or the column of mask paths in a manifest [default: found by name]",
        )
        .under(SOURCE)
        .recorded("mask_key", |o| o.list.mask_key.clone().map(Value::from)),
        Spec::value(
            opt::MASK_ORDER,
            "ORDER",
            |o, text| put(&mut o.list.mask_order, parse(text).map(Some)),
            "How run-length encoded masks in a manifest count the pixels: down the columns of the image, or along its rows [default: decided by the name of their column]",
        )
        .under(SOURCE)
        .one_of(MaskOrder::NAMES)
        .recorded("mask_order", |o| o.list.mask_order.map(|order| order.name().into())),
        Spec::path(
            opt::IMAGES,
            "DIR",
            |o, path| o.list.images = Some(path.to_owned()),
            "Subfolder with the images [default: found by name]",
        )
        .under(SOURCE)
        .recorded("images", |o| o.list.images.as_ref().map(|path| path.to_string_lossy().into())),
        Spec::path(
            opt::MASKS,
            "DIR",
            |o, path| o.list.masks = Some(path.to_owned()),
            "Subfolder with the masks; each mask is named like its image [default: found by name]",
        )
        .under(SOURCE)
        .recorded("masks", |o| o.list.masks.as_ref().map(|path| path.to_string_lossy().into())),
        Spec::switch(
            opt::ONE_SAMPLE_PER_FILE,
            |o| o.list.one_sample_per_file = Some(true),
            "Read each file of arrays (.npy, .npz, .pt, .safetensors, .h5, .zarr) as one sample [default: only if the files are in class folders]",
        )
        .under(SOURCE)
        .excludes(opt::MANY_SAMPLES_PER_FILE)
        .recorded("one_sample_per_file", |o| o.list.one_sample_per_file.map(Value::from)),
        Spec::switch(
            opt::MANY_SAMPLES_PER_FILE,
            |o| o.list.one_sample_per_file = Some(false),
            "Read each row of a file's arrays as one sample",
        )
        .under(SOURCE),
        Spec::value(
            opt::LEAVE_OUT,
            "NAME",
            |o, text| {
                o.list.leave_out.push(text.to_owned());
                Ok(())
            },
            "Exclude a field or column (repeatable)",
        )
        .under(SOURCE)
        .repeats()
        .recorded("leave_out", |o| {
            let names = &o.list.leave_out;
            (!names.is_empty()).then(|| names.clone().into())
        }),
        Spec::value(
            opt::FROM,
            "FORMAT",
            |o, text| put(&mut o.list.from, parse(text).map(Some)),
            "Format of the source, as listed by packds formats [default: detected from content and name]",
        )
        .offers(DataFormat::NAMES)
        .under(SOURCE)
        .recorded("from", |o| o.list.from.map(DataFormat::name).map(Value::from)),
        // Images
        Spec::value(
            opt::MODE,
            "MODE",
            |o, text| put(&mut o.mode, parse(text)),
            "Store pixels (raw), image files (encoded), or some of each (mixed)",
        )
        .under(IMAGES)
        .one_of(Mode::NAMES)
        .default(|o| o.mode.to_string())
        .recorded("mode", |o| Some(o.mode.name().into())),
        Spec::value(
            opt::RAW_FRACTION,
            "P",
            |o, text| {
                let number = text.parse().map_err(|_| BadValue::new("a number", text).to_string());
                put(&mut o.raw_fraction, number.map(Some))
            },
            "Share of raw samples in mode 'mixed', 0 to 1 [default: 0.5]",
        )
        .under(IMAGES)
        .recorded("raw_fraction", |o| Some(json!(o.raw_fraction))),
        Spec::value(
            opt::QUALITY,
            "Q",
            |o, text| put(&mut o.quality, whole(text, 1, 100).map(Some)),
            "Re-encode images as JPEG of this quality (1 to 100) instead of keeping the original files",
        )
        .under(IMAGES)
        .recorded("quality", |o| Some(json!(o.quality))),
        Spec::value(
            opt::RESIZE,
            "SIZE",
            |o, text| put(&mut o.resize, parse(text).map(Some)),
            "How to resize images: short:N, long:N, max:N, WIDTHxHEIGHT or none [default: depends on the image sizes]",
        )
        .offers(&["short:256", "none"])
        .under(IMAGES)
        .recorded("resize", |o| Some(o.resize.unwrap_or_default().to_string().into())),
        Spec::value(
            opt::CROP,
            "CROP",
            |o, text| put(&mut o.crop, parse(text).map(Some)),
            "How to crop images: center:N, center:WIDTHxHEIGHT or none [default: depends on the image sizes]",
        )
        .offers(&["center:224", "none"])
        .under(IMAGES)
        .recorded("crop", |o| Some(o.crop.unwrap_or_default().to_string().into())),
        Spec::value(
            opt::FILTER,
            "FILTER",
            |o, text| put(&mut o.filter, parse(text)),
            "Filter for resizing: nearest, box, bilinear, bicubic or lanczos, as in Pillow",
        )
        .offers(Filter::NAMES)
        .under(IMAGES)
        .default(|o| o.filter.to_string())
        .recorded("filter", |o| Some(o.filter.name().into())),
        Spec::value(
            opt::ORIENTATION,
            "ORIENTATION",
            |o, text| put(&mut o.orientation, parse(text)),
            "Apply the EXIF orientation (apply), or ignore it like torchvision (ignore)",
        )
        .under(IMAGES)
        .one_of(Orientation::NAMES)
        .default(|o| o.orientation.to_string())
        .recorded("orientation", |o| Some(o.orientation.name().into())),
        Spec::switch(
            opt::GRAY,
            |o| o.color = Some(Color::Gray),
            "Convert to one channel [default: as in the source for arrays and exported packs, else three channels]",
        )
        .under(IMAGES)
        .recorded("color", |o| {
            Some(if o.color().channels() == 1 { "gray" } else { "rgb" }.into())
        }),
        Spec::switch(
            Opt::new("rgb"),
            |o| o.color = Some(Color::Rgb),
            "Convert to three channels, even if the source has one",
        )
        .under(IMAGES)
        .excludes(opt::GRAY),
        Spec::value(
            opt::DTYPE,
            "DTYPE",
            |o, text| put(&mut o.dtype, image_dtype(text)),
            "Type of the pixels: u8, f16, bf16 or f32; floats are scaled to 0..1, and normalized if a mean and std are given",
        )
        .offers(&PIXEL_TYPES)
        .under(IMAGES)
        .default(|o| o.dtype.to_string())
        .recorded("dtype", |o| Some(o.dtype.name().into())),
        Spec::value(
            opt::NORMALIZE,
            "HOW",
            |o, text| put(&mut o.normalize, parse(text)),
            "Mean and std: none, imagenet, dataset (measured in an extra pass) or MEAN/STD such as 0.5,0.5,0.5/0.25,0.25,0.25; applied to float pixels, stored as metadata for u8",
        )
        .offers(&["none", "imagenet", "dataset"])
        .under(IMAGES)
        .default(|o| o.normalize.to_string())
        .recorded("normalize", |o| Some(o.normalize.to_string().into())),
        Spec::switch(
            opt::JPEG_SCALING,
            |o| o.jpeg_scaling = true,
            "Decode JPEGs at 1/2, 1/4 or 1/8 size if that is large enough; this is faster, but pixels differ (see docs/reference/pixels.md)",
        )
        .under(IMAGES)
        .recorded("jpeg_scaling", |o| Some(o.jpeg_scaling.into())),
        Spec::switch(
            opt::CHECK_DECODE,
            |o| o.check_decode = true,
            "Fully decode files even if they are stored unchanged, to find every damaged file and to measure mean and std",
        )
        .under(IMAGES)
        .recorded("check_decode", |o| o.check_decode.then(|| true.into())),
        Spec::switch(
            opt::SEEKABLE,
            |o| o.seekable = true,
            "In mode 'encoded': add an index to each JPEG (1 to 2 % of its bytes), so that random crops decode faster",
        )
        .under(IMAGES)
        .recorded("seekable", |o| o.seekable.then(|| true.into())),
        // Layout
        Spec::value(
            opt::LAYOUT,
            "LAYOUT",
            |o, text| put(&mut o.layout, parse(text).map(Some)),
            "Order of an image's dimensions: hwc or chw [default: as in the source for arrays and exported packs, else hwc]",
        )
        .offers(Layout::NAMES)
        .under(LAYOUT)
        .recorded("layout", |o| Some(o.layout().name().into())),
        Spec::value(
            opt::CODEC,
            "CODEC",
            |o, text| put(&mut o.compression, parse(text)),
            "Compression: none, or zstd[:LEVEL] with a pixel filter",
        )
        .offers(&["none", "zstd"])
        .under(LAYOUT)
        .default(|o| o.compression.to_string())
        .recorded("codec", |o| Some(o.compression.to_string().into())),
        Spec::value(
            opt::CHUNK,
            "N",
            |o, text| put(&mut o.chunk_samples, whole(text, 1, 1 << 20).map(Some)),
            "Samples per chunk [default: the largest power of two, up to 1024, that fits in 16 MiB]",
        )
        .under(LAYOUT)
        .recorded("chunk", |o| Some(json!(o.chunk_samples))),
        Spec::value(
            opt::BATCH,
            "B",
            |o, text| put(&mut o.batch, whole(text, 1, u32::MAX.into()).map(Some)),
            "Batch size to align chunks with: the chunk size is the largest divisor of this number that fits",
        )
        .under(LAYOUT)
        .recorded("batch", |o| Some(json!(o.batch))),
        Spec::value(
            opt::SHARD_SIZE,
            "BYTES",
            |o, text| put(&mut o.shards, shard_size(text).map(Some)),
            "Write a set of packs (OUT ends with .packs) with at most about this many bytes each, such as 8GB",
        )
        .under(LAYOUT),
        Spec::value(
            opt::SHARDS,
            "N",
            |o, text| put(&mut o.shards, whole(text, 1, 1 << 20).map(|n| Some(ShardRule::Count(n)))),
            "Write a set of this many packs (OUT ends with .packs), or fewer if there are not enough chunks",
        )
        .excludes(opt::SHARD_SIZE)
        .under(LAYOUT),
        Spec::switch(
            opt::KEEP_ORDER,
            |o| o.keep_order = true,
            "Keep the source's order. If the source is sorted by class, do not read the pack chunk by chunk for training",
        )
        .under(LAYOUT)
        .recorded("order", |o| Some(if o.keep_order { "kept" } else { "shuffled" }.into())),
        Spec::value(
            Opt::new("seed"),
            "SEED",
            |o, text| put(&mut o.seed, whole(text, 0, u64::MAX)),
            "Seed for the sample order and for the choice of raw samples",
        )
        .under(LAYOUT)
        .default(|o| o.seed.to_string())
        .recorded("seed", |o| Some(o.seed.into())),
        // Errors
        Spec::value(
            opt::ON_ERROR,
            "POLICY",
            |o, text| put(&mut o.on_error, parse(text)),
            "What to do with a file that cannot be read or decoded: stop at the first one in listing order; skip it and list it; or substitute an image of zeros and set the column `valid` to 0",
        )
        .under(ERRORS)
        .one_of(OnError::NAMES)
        .default(|o| o.on_error.to_string())
        .recorded("on_error", |o| Some(o.on_error.name().into())),
        Spec::value(
            Opt::new("max_pixels"),
            "N",
            |o, text| put(&mut o.max_pixels, whole(text, 1, u64::MAX)),
            "Maximum pixels per image; a larger image causes an error",
        )
        .under(ERRORS)
        .default(|o| o.max_pixels.to_string())
        .recorded("max_pixels", |o| Some(o.max_pixels.into())),
    ];
}

const SOURCE: &str = "Source";
const IMAGES: &str = "Images";
const LAYOUT: &str = "Layout";
const ERRORS: &str = "Errors";
