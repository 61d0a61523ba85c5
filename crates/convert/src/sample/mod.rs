//! Adds one sample to a block: reads, decodes, resizes, crops and encodes its image, and fills in the other fields.

mod columns;
mod file;
mod image;

use packds_system::counted;
use std::time::{Duration, Instant};

use packds_format::{BlockBuilder, Coding};
use packds_pixels::ops::Emit;
use packds_pixels::{Color, DecodeOptions, Decoder, Histogram, PixelError};

use crate::mask_values::MaskValues;
use crate::options::ConvertOptions;
use crate::plan::{ImageForm, Plan};
use crate::source::Listing;

use columns::{Item, describe};
pub(crate) use file::{MAX_FILE_BYTES, append_file};
use image::{InHistogram, Made, MadeMask, pixel_bytes};

/// Why a sample could not be read or stored. The options decide whether the conversion continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The file cannot be opened or read.
    #[error("cannot read this file: {0}")]
    Read(#[from] std::io::Error),
    /// The file is longer than any valid image.
    #[error("the file has {found} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The file's length.
        found: u64,
    },
    /// The source is shorter than it was before, or shorter than its metadata states.
    #[error("{path}: expected {} at byte {offset}, found {found}", counted(*expected, "byte"))]
    SourceShort {
        /// The file.
        path: std::path::PathBuf,
        /// Byte offset in the file.
        offset: u64,
        /// Bytes expected.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The item's length does not match its type.
    #[error("expected {}, found {found}", counted(*expected, "byte"))]
    WrongLength {
        /// The length that the type requires.
        expected: u64,
        /// The length of the item.
        found: u64,
    },
    /// A file named by a manifest does not exist or is not a regular file.
    #[error("{}, named in line {line} of {manifest}{}", if *is_there { "not a regular file" } else { "no such file" }, near_names(near.as_deref()))]
    NoFile {
        /// The file's path, including the root folder.
        file: std::path::PathBuf,
        /// Whether it exists but is not a regular file.
        is_there: bool,
        /// The manifest.
        manifest: std::path::PathBuf,
        /// The line on which the row starts, counted from 1.
        line: u64,
        /// Two files whose names differ from this name only in case or Unicode form.
        near: Option<Box<[String; 2]>>,
    },
    /// The mask folder does not contain a mask for this image.
    #[error("sample {sample}: '{masks}' has no mask with the same name")]
    NoMask {
        /// The number of the sample.
        sample: usize,
        /// The mask folder.
        masks: String,
        /// A line of Python that writes a mask for each image in this image's folder. `None` if some of these images
        /// have masks, or if the source is an archive.
        line: Option<String>,
    },
    /// The row of this image has no mask.
    #[error("sample {sample}: {place}: column '{column}': the path is missing")]
    NoMaskCell {
        /// The number of the sample.
        sample: usize,
        /// The column of masks.
        column: String,
        /// The place of the row in the manifest.
        place: String,
    },
    /// The item does not exist.
    #[error("the source has no such item")]
    Missing,
    /// Another problem, as described by the source's reader.
    #[error("{0}")]
    Source(String),
    /// A value of the sample cannot be read.
    #[error("{reason}")]
    Value {
        /// The value, and what is wrong with it.
        reason: String,
        /// What to do about it. `None` if the value is damaged.
        hint: Option<String>,
    },
    /// The kind of the item differs from that of earlier items.
    #[error("expected {expected}, found {found}")]
    OtherContent {
        /// The kind of earlier items.
        expected: String,
        /// The kind of this item.
        found: String,
    },
    /// The file is not an image, or is damaged.
    #[error("{0}")]
    Pixels(#[from] PixelError),
    /// The image's size differs from that of all others.
    #[error("expected {expected:?} pixels (width, height) after resize and crop, found {found:?}")]
    OtherSize {
        /// Width and height of the others.
        expected: (u32, u32),
        /// Width and height of this image.
        found: (u32, u32),
    },
    /// The mask's size differs from its image's.
    #[error(
        "mask `{mask}`: expected the image's {expected:?} pixels (width, height), found {found:?}: resize the mask with Image.NEAREST"
    )]
    MaskSize {
        /// The mask's path.
        mask: String,
        /// The image's width and height.
        expected: (u32, u32),
        /// The mask's width and height.
        found: (u32, u32),
    },
    /// The mask cannot be read or decoded.
    #[error("mask `{mask}`: {source}")]
    Mask {
        /// The mask's path.
        mask: String,
        /// What is wrong with it.
        source: Box<SampleError>,
    },
    /// Another field of the sample cannot be read.
    #[error("field `{name}`: {source}")]
    Field {
        /// The field.
        name: String,
        /// What is wrong with it.
        source: Box<SampleError>,
    },
    /// The block rejected the sample.
    #[error("{0}")]
    Format(#[from] packds_format::FormatError),
}

/// The end of an error message if two files have nearly the same name. Empty if there are none.
fn near_names(near: Option<&[String; 2]>) -> String {
    near.map_or(String::new(), |[one, other]| {
        format!(": both '{one}' and '{other}' have this name in another case or Unicode form")
    })
}

/// Time spent in each step, summed over threads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Times {
    pub(crate) read: Duration,
    pub(crate) decode: Duration,
    pub(crate) stats: Duration,
    pub(crate) encode: Duration,
}

impl Times {
    pub(crate) fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.decode += other.decode;
        self.stats += other.stats;
        self.encode += other.encode;
    }
}

/// Facts about a sample, collected while it was added.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) bytes_in: u64,
    pub(crate) item_bytes: u64,
    /// Size of the mask in bytes. 0 if there is no mask, or if all masks have the same size.
    pub(crate) mask_bytes: u64,
    /// Size of the image's seek index in bytes. 0 if the image has no index.
    pub(crate) index_bytes: u64,
    /// Whether the EXIF orientation is not upright.
    pub(crate) oriented: bool,
    /// Whether the image's channels were reduced from more than 8 bits to 8.
    pub(crate) cut: bool,
    /// Whether the source says another size of an image with boxes.
    pub(crate) other_size: bool,
    /// Whether an alpha channel was left out.
    pub(crate) had_alpha: bool,
    /// Whether the image's file has further frames or pages.
    pub(crate) has_more: bool,
    /// Whether the mask was resized to the size of the image.
    pub(crate) resized_mask: bool,
    /// Number of pixels in the source's image.
    pub(crate) n_pixels: u64,
    /// Whether the sample is valid. A sample is invalid if the source marks it as zeros in place of a bad sample.
    pub(crate) valid: bool,
    /// Whether the sample's pixels are in the histogram.
    pub(crate) counted: bool,
}

/// A thread's buffers and decoders.
pub(crate) struct SampleReader<'a> {
    listing: &'a Listing,
    options: &'a ConvertOptions,
    plan: &'a Plan,
    decoder: Decoder,
    mask_decoder: Decoder,
    /// Writes pixels in the type and layout of the pack. Created when the first raw image is added.
    emit: Option<Emit>,
    file: Vec<u8>,
    pixels: Vec<u8>,
    planes: Vec<u8>,
    path: Vec<u8>,
    /// The values of the masks so far.
    pub(crate) mask_values: MaskValues,
    pub(crate) times: Times,
}

impl<'a> SampleReader<'a> {
    pub(crate) fn new(listing: &'a Listing, options: &'a ConvertOptions, plan: &'a Plan) -> Self {
        let decode = |color| DecodeOptions {
            color,
            max_pixels: options.max_pixels,
            jpeg_scaling: options.jpeg_scaling,
            ..DecodeOptions::default()
        };
        Self {
            listing,
            options,
            plan,
            decoder: Decoder::new(decode(options.color())),
            mask_decoder: Decoder::new(DecodeOptions { jpeg_scaling: false, ..decode(Color::Index) }),
            emit: None,
            file: Vec::new(),
            pixels: Vec::new(),
            planes: Vec::new(),
            path: Vec::new(),
            mask_values: MaskValues::default(),
            times: Times::default(),
        }
    }

    /// Adds the listing's sample `id` to the block. On error, the block is unchanged.
    pub(crate) fn add(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
        histogram: &mut Histogram,
    ) -> Result<Facts, SampleError> {
        let result = self.try_add(id, block, histogram);
        if result.is_err() {
            block.drop_sample();
        }
        result.map_err(|error| self.listing.named(error))
    }

    fn try_add(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
        histogram: &mut Histogram,
    ) -> Result<Facts, SampleError> {
        if let Some(fault) = self.listing.fault(id) {
            return Err(fault);
        }
        let made = match &self.plan.form {
            ImageForm::Fixed { width, height } => self.fixed_image(id, *width, *height, block)?,
            ImageForm::Array(array) => self.array_image(id, array, block)?,
            _ => self.variable_image(id, block)?,
        };
        let Made { size, item_bytes, bytes_in, pixels } = made;
        let mask = if self.listing.has_masks() { self.mask(id, size, block)? } else { MadeMask::default() };
        let index_bytes = self.seek_index(item_bytes, block)?;
        let valid = self.source_fields(id, size, block)?;
        self.columns(id, Some(size), block)?;
        // This comes last, because it cannot be undone, and the histogram counts only samples that are in the block.
        let started = Instant::now();
        match pixels {
            InHistogram::InBlock if valid => {
                histogram.add(block.tensor_mut(self.plan.fields.image)?);
            }
            InHistogram::InScratch if valid => histogram.add(&self.pixels),
            _ => {}
        }
        self.times.stats += started.elapsed();
        let started = Instant::now();
        block.finish_sample()?;
        self.times.encode += started.elapsed();
        Ok(Facts {
            bytes_in: bytes_in + mask.bytes_in,
            item_bytes,
            mask_bytes: mask.item_bytes,
            index_bytes,
            oriented: size.orientation != 1,
            cut: size.is_deep,
            other_size: self.listing.stated_size(id).is_some_and(|stated| stated != (size.width, size.height)),
            had_alpha: size.has_alpha,
            has_more: size.has_more,
            resized_mask: mask.is_resized,
            n_pixels: u64::from(size.width) * u64::from(size.height),
            valid,
            counted: valid && pixels != InHistogram::None,
        })
    }

    /// Adds a sample of zeros in place of a bad sample. Keeps its label and columns, and sets `valid` to 0.
    pub(crate) fn substitute(&mut self, id: usize, block: &mut BlockBuilder) -> Result<(), SampleError> {
        let fields = &self.plan.fields;
        if self.plan.form.is_fixed() {
            block.tensor_mut(fields.image)?.fill(0);
            if let Some(mask) = fields.mask {
                block.tensor_mut(mask)?.fill(0);
            }
        } else {
            // The smallest image that the geometry allows.
            let (width, height) = self.plan.geometry.output_size(1, 1, 1);
            let one =
                |channels| Item { width, height, channels: u8::try_from(channels).unwrap_or(0), coding: Coding::Raw };
            let channels = self.options.color().channels();
            let image = (Some(fields.image), fields.image_columns, channels);
            let mask = (fields.mask, fields.mask_columns, 1);
            for (field, columns, channels) in [image, mask] {
                let Some((field, columns)) = field.zip(columns) else {
                    continue;
                };
                let out = block.item_mut(field)?;
                let zeros = pixel_bytes(width, height, channels);
                out.resize(out.len().saturating_add(zeros), 0);
                describe(&columns, &one(channels), block)?;
            }
        }
        for &field in &fields.source_fields {
            if self.plan.is_column(field) {
                let n = self.plan.item_bytes(field);
                block.set_column(field, &vec![0; n])?;
            } else if self.plan.item_bytes(field) > 0 {
                block.tensor_mut(field)?.fill(0);
            }
        }
        self.columns(id, None, block)?;
        Ok(block.finish_sample()?)
    }
}
