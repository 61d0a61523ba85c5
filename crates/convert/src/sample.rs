//! One sample from its files to its fields: read, decode, resize, crop, encode.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use packds_format::{BlockBuilder, Coding, DType};
use packds_pixels::{
    Color, DecodeOptions, Decoder, Filter, FloatType, Geometry, Histogram, Image, ImageInfo,
    Layout, PixelError, cast_into, check_structure, encode_jpeg, to_layout_into,
};

use crate::options::ConvertOptions;
use crate::plan::{ImageForm, ItemColumns, Plan, coding_of};
use crate::source::{ColumnValues, Listing};

/// The longest file that is read: more would not fit a chunk.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 30;

/// Why a sample could not be made. The converter decides what that means for the whole.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// The file cannot be opened or read.
    #[error("cannot read this file: {0}")]
    Read(#[from] std::io::Error),
    /// The file is longer than any image should be.
    #[error("file has {found} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The limit.
        limit: u64,
        /// The file's length.
        found: u64,
    },
    /// The file is no image, or a damaged one.
    #[error("{0}")]
    Pixels(#[from] PixelError),
    /// The image does not have the size of all the others.
    #[error(
        "expected an image of {expected:?} pixels (width, height) after resize and crop, found {found:?}"
    )]
    OtherSize {
        /// Width and height of the others.
        expected: (u32, u32),
        /// This image's.
        found: (u32, u32),
    },
    /// The mask does not have the size of its image.
    #[error(
        "mask `{mask}`: expected the image's {expected:?} pixels (width, height), found {found:?}"
    )]
    MaskSize {
        /// The mask's path.
        mask: String,
        /// The image's width and height.
        expected: (u32, u32),
        /// The mask's.
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
    /// The block refused the sample.
    #[error("{0}")]
    Format(#[from] packds_format::FormatError),
}

/// Time spent in each step, added up over threads.
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

/// What was learned about a sample on the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts {
    pub(crate) bytes_in: u64,
    pub(crate) item_bytes: u64,
    /// The file has an EXIF orientation other than upright.
    pub(crate) oriented: bool,
    /// Its pixels are in the histogram.
    pub(crate) counted: bool,
}

/// A thread's buffers and decoders.
pub(crate) struct SampleReader<'a> {
    listing: &'a Listing,
    options: &'a ConvertOptions,
    plan: &'a Plan,
    decoder: Decoder,
    mask_decoder: Decoder,
    file: Vec<u8>,
    pixels: Vec<u8>,
    path: Vec<u8>,
    pub(crate) times: Times,
}

/// What is stored for an image field.
struct Item {
    width: u32,
    height: u32,
    channels: u8,
    coding: Coding,
}

impl<'a> SampleReader<'a> {
    pub(crate) fn new(listing: &'a Listing, options: &'a ConvertOptions, plan: &'a Plan) -> Self {
        let decode = |color| DecodeOptions {
            color,
            max_pixels: options.max_pixels,
            jpeg_scaling: options.jpeg_scaling,
        };
        Self {
            listing,
            options,
            plan,
            decoder: Decoder::new(decode(options.color)),
            mask_decoder: Decoder::new(DecodeOptions {
                jpeg_scaling: false,
                ..decode(Color::Index)
            }),
            file: Vec::new(),
            pixels: Vec::new(),
            path: Vec::new(),
            times: Times::default(),
        }
    }

    /// Adds the listing's sample `id` to the block, or leaves the block as it was.
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
        result
    }

    fn try_add(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
        histogram: &mut Histogram,
    ) -> Result<Facts, SampleError> {
        let started = Instant::now();
        let bytes_in = read_file(&self.listing.file_path(id), &mut self.file)?;
        self.times.read += started.elapsed();
        let (info, item_bytes, pixels) = match self.plan.form {
            ImageForm::Fixed { width, height } => self.fixed_image(width, height, block)?,
            _ => self.variable_image(id, block)?,
        };
        let mask_bytes = if self.listing.has_masks() {
            self.mask(id, &info, block)?
        } else {
            0
        };
        self.columns(id, Some(&info), block)?;
        // Near the end, since it cannot be taken back: the histogram counts only samples that are in.
        let started = Instant::now();
        let counted = pixels != Pixels::None;
        match pixels {
            Pixels::InBlock => histogram.add(block.tensor_mut(self.plan.fields.image)?),
            Pixels::InScratch => histogram.add(&self.pixels),
            Pixels::None => {}
        }
        self.times.stats += started.elapsed();
        let started = Instant::now();
        block.finish_sample()?;
        self.times.encode += started.elapsed();
        Ok(Facts {
            bytes_in: bytes_in + mask_bytes,
            item_bytes,
            oriented: info.orientation != 1,
            counted,
        })
    }

    /// Decodes into the block, through a buffer where type or layout differ.
    fn fixed_image(
        &mut self,
        width: u32,
        height: u32,
        block: &mut BlockBuilder,
    ) -> Result<(ImageInfo, u64, Pixels), SampleError> {
        let channels = self.options.color.channels();
        let n = usize::try_from(u64::from(width) * u64::from(height))
            .unwrap_or(usize::MAX)
            .saturating_mul(channels);
        let out = block.tensor_mut(self.plan.fields.image)?;
        let item_bytes = u64::try_from(out.len()).unwrap_or(u64::MAX);
        let direct = self.options.dtype == DType::U8 && self.options.layout == Layout::Hwc;
        let started = Instant::now();
        let info = if direct {
            render(
                &mut self.decoder,
                &self.file,
                &self.plan.geometry,
                (width, height),
                out,
            )?
        } else {
            self.pixels.resize(n, 0);
            render(
                &mut self.decoder,
                &self.file,
                &self.plan.geometry,
                (width, height),
                &mut self.pixels,
            )?
        };
        self.times.decode += started.elapsed();
        if direct {
            return Ok((info, item_bytes, Pixels::InBlock));
        }
        let started = Instant::now();
        self.store_pixels(out)?;
        self.times.encode += started.elapsed();
        Ok((info, item_bytes, Pixels::InScratch))
    }

    /// Casts, normalizes and lays out the scratch pixels as the schema says.
    fn store_pixels(&self, out: &mut [u8]) -> Result<(), SampleError> {
        let channels = self.options.color.channels();
        let float = match self.options.dtype {
            DType::F16 => FloatType::F16,
            DType::Bf16 => FloatType::Bf16,
            DType::F32 => FloatType::F32,
            _ => {
                return Ok(to_layout_into(
                    &self.pixels,
                    channels,
                    self.options.layout,
                    out,
                )?);
            }
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the affine is applied in f32, as torchvision does"
        )]
        let narrow = |values: &[f64]| values.iter().map(|v| *v as f32).collect::<Vec<f32>>();
        let (mean, std) = match &self.plan.affine {
            Some((mean, std)) => (narrow(mean), narrow(std)),
            None => (vec![0.0; channels], vec![1.0; channels]),
        };
        Ok(cast_into(
            &self.pixels,
            channels,
            &mean,
            &std,
            float,
            self.options.layout,
            out,
        )?)
    }

    /// Appends the image's item: pixels, the file, or a new file.
    fn variable_image(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
    ) -> Result<(ImageInfo, u64, Pixels), SampleError> {
        self.path.clear();
        self.listing.path_into(id, &mut self.path);
        let raw = self.plan.is_raw(self.options.seed, &self.path);
        let quality = match self.plan.form {
            ImageForm::Encoded { quality } | ImageForm::Mixed { quality, .. } => quality,
            _ => None,
        };
        let info = check_structure(&self.file)?;
        let keep = !raw && quality.is_none() && self.options.color == Color::Rgb;
        let started = Instant::now();
        let (item, pixels) = if keep {
            let item = Item {
                width: info.width,
                height: info.height,
                channels: info.channels,
                coding: coding_of(info.format),
            };
            (item, self.check_kept(&info)?)
        } else {
            let image = self.decoder.render(&self.file, &self.plan.geometry)?;
            let Image {
                width,
                height,
                channels,
                data,
            } = image;
            self.pixels = data;
            let coding = if raw { Coding::Raw } else { Coding::Jpeg };
            (
                Item {
                    width,
                    height,
                    channels,
                    coding,
                },
                Pixels::InScratch,
            )
        };
        self.times.decode += started.elapsed();
        let started = Instant::now();
        let out = block.item_mut(self.plan.fields.image)?;
        let before = out.len();
        if keep {
            out.extend_from_slice(&self.file);
        } else if raw {
            out.extend_from_slice(&self.pixels);
        } else {
            let quality = quality.unwrap_or(90);
            out.extend_from_slice(&encode_jpeg(
                item.width,
                item.height,
                item.channels,
                &self.pixels,
                quality,
            )?);
        }
        let item_bytes = u64::try_from(out.len() - before).unwrap_or(u64::MAX);
        if let Some(columns) = self.plan.fields.image_columns {
            describe(&columns, &item, block)?;
        }
        self.times.encode += started.elapsed();
        Ok((info, item_bytes, pixels))
    }

    /// Looks at a file that is kept untouched: its size, and if asked for whether it decodes.
    fn check_kept(&mut self, info: &ImageInfo) -> Result<Pixels, SampleError> {
        let found = u64::from(info.width).saturating_mul(u64::from(info.height));
        if found > self.options.max_pixels {
            let limit = self.options.max_pixels;
            return Err(PixelError::TooManyPixels {
                width: info.width,
                height: info.height,
                limit,
            }
            .into());
        }
        if !self.options.check_decode {
            return Ok(Pixels::None);
        }
        let (_, pixels) = self.decoder.decode_full(&self.file)?;
        self.pixels.clear();
        self.pixels.extend_from_slice(pixels);
        Ok(Pixels::InScratch)
    }

    /// Adds the mask: nearest pixels through the image's geometry, or the file as it is.
    fn mask(
        &mut self,
        id: usize,
        image: &ImageInfo,
        block: &mut BlockBuilder,
    ) -> Result<u64, SampleError> {
        let mut name = Vec::new();
        let Some((path, field)) = self
            .listing
            .mask_path_into(id, &mut name)
            .and(self.listing.mask_file_path(id))
            .zip(self.plan.fields.mask)
        else {
            return Ok(0);
        };
        let mask = String::from_utf8_lossy(&name).into_owned();
        let wrong = |source: SampleError| SampleError::Mask {
            mask: mask.clone(),
            source: Box::new(source),
        };
        let mut file = Vec::new();
        let bytes = read_file(&path, &mut file).map_err(wrong)?;
        let info = check_structure(&file).map_err(|e| wrong(e.into()))?;
        if (info.width, info.height) != (image.width, image.height) {
            let (expected, found) = ((image.width, image.height), (info.width, info.height));
            return Err(SampleError::MaskSize {
                mask,
                expected,
                found,
            });
        }
        let geometry = Geometry {
            filter: Filter::Nearest,
            ..self.plan.geometry
        };
        let started = Instant::now();
        if let ImageForm::Fixed { width, height } = self.plan.form {
            let out = block.tensor_mut(field)?;
            render(
                &mut self.mask_decoder,
                &file,
                &geometry,
                (width, height),
                out,
            )
            .map_err(wrong)?;
        } else {
            let keep = matches!(self.plan.form, ImageForm::Encoded { quality: None });
            let item = if keep {
                block.item_mut(field)?.extend_from_slice(&file);
                let coding = coding_of(info.format);
                Item {
                    width: info.width,
                    height: info.height,
                    channels: info.channels,
                    coding,
                }
            } else {
                // Re-encoding would change class numbers, so masks stay raw where their images are not untouched.
                let image = self
                    .mask_decoder
                    .render(&file, &geometry)
                    .map_err(|e| wrong(e.into()))?;
                block.item_mut(field)?.extend_from_slice(&image.data);
                Item {
                    width: image.width,
                    height: image.height,
                    channels: 1,
                    coding: Coding::Raw,
                }
            };
            if let Some(columns) = self.plan.fields.mask_columns {
                describe(&columns, &item, block)?;
            }
        }
        self.times.decode += started.elapsed();
        Ok(bytes)
    }

    /// Fills in labels, numbers, and the source's further columns.
    fn columns(
        &self,
        id: usize,
        info: Option<&ImageInfo>,
        block: &mut BlockBuilder,
    ) -> Result<(), SampleError> {
        let fields = &self.plan.fields;
        if let (Some(field), Some(label)) = (fields.label, self.listing.label(id)) {
            match i32::try_from(label) {
                Ok(narrow) if self.plan.label_dtype == DType::I32 => {
                    block.set_column(field, &narrow.to_le_bytes())?
                }
                _ => block.set_column(field, &label.to_le_bytes())?,
            }
        }
        if let (Some(field), Some(labels)) = (fields.labels, self.listing.label_list(id)) {
            let mut bits = vec![0_u8; self.listing.classes().len().div_ceil(8).max(1)];
            for label in labels
                .iter()
                .filter_map(|label| usize::try_from(*label).ok())
            {
                if let Some(byte) = bits.get_mut(label / 8) {
                    *byte |= 1 << (label % 8);
                }
            }
            block.set_column(field, &bits)?;
        }
        if let Some(field) = fields.valid {
            block.set_column(field, &[u8::from(info.is_some())])?;
        }
        block.set_column(
            fields.source_id,
            &u64::try_from(id).unwrap_or(u64::MAX).to_le_bytes(),
        )?;
        block.set_column(
            fields.source_width,
            &info.map_or(0, |i| i.width).to_le_bytes(),
        )?;
        block.set_column(
            fields.source_height,
            &info.map_or(0, |i| i.height).to_le_bytes(),
        )?;
        for (column, &field) in self.listing.columns().iter().zip(&fields.extra) {
            match &column.values {
                ColumnValues::I64(values) => block.set_column(field, &values[id].to_le_bytes())?,
                ColumnValues::F64(values) => block.set_column(field, &values[id].to_le_bytes())?,
                ColumnValues::Bool(values) => block.set_column(field, &[u8::from(values[id])])?,
                ColumnValues::Text(texts) | ColumnValues::Json(texts) => {
                    block
                        .item_mut(field)?
                        .extend_from_slice(texts.get(id).as_bytes());
                }
            }
        }
        Ok(())
    }

    /// Adds a sample of zeros in the place of one that could not be made: label and columns kept, `valid` 0.
    pub(crate) fn substitute(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
    ) -> Result<(), SampleError> {
        let fields = &self.plan.fields;
        if matches!(self.plan.form, ImageForm::Fixed { .. }) {
            block.tensor_mut(fields.image)?.fill(0);
            if let Some(mask) = fields.mask {
                block.tensor_mut(mask)?.fill(0);
            }
        } else {
            // The smallest image there is, through the same geometry.
            let (width, height) = self.plan.geometry.output_size(1, 1, 1);
            let one = |channels| Item {
                width,
                height,
                channels: u8::try_from(channels).unwrap_or(0),
                coding: Coding::Raw,
            };
            let n = usize::try_from(u64::from(width) * u64::from(height)).unwrap_or(usize::MAX);
            let image = [(
                Some(fields.image),
                fields.image_columns,
                self.options.color.channels(),
            )];
            for (field, columns, channels) in
                image
                    .into_iter()
                    .chain([(fields.mask, fields.mask_columns, 1)])
            {
                let Some((field, columns)) = field.zip(columns) else {
                    continue;
                };
                let out = block.item_mut(field)?;
                out.resize(out.len().saturating_add(n.saturating_mul(channels)), 0);
                describe(&columns, &one(channels), block)?;
            }
        }
        self.columns(id, None, block)?;
        Ok(block.finish_sample()?)
    }
}

/// Where the pixels that the histogram counts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pixels {
    InBlock,
    InScratch,
    None,
}

/// Decodes one image of a pack whose images have one size.
fn render(
    decoder: &mut Decoder,
    file: &[u8],
    geometry: &Geometry,
    expected: (u32, u32),
    out: &mut [u8],
) -> Result<ImageInfo, SampleError> {
    match decoder.render_into(file, geometry, out) {
        Ok(rendered) => Ok(rendered.info),
        Err(PixelError::WrongBuffer { .. }) => {
            let info = packds_pixels::probe(file)?;
            let found = geometry.output_size(info.width, info.height, info.orientation);
            Err(SampleError::OtherSize { expected, found })
        }
        Err(error) => Err(error.into()),
    }
}

/// Fills in the columns that describe an item of variable size.
fn describe(
    columns: &ItemColumns,
    item: &Item,
    block: &mut BlockBuilder,
) -> Result<(), SampleError> {
    block.set_column(columns.width, &item.width.to_le_bytes())?;
    block.set_column(columns.height, &item.height.to_le_bytes())?;
    block.set_column(columns.channels, &[item.channels])?;
    Ok(block.set_column(columns.coding, &[item.coding.number()])?)
}

/// Reads a whole file into `buffer`, which keeps its memory from file to file.
pub(crate) fn read_file(path: &Path, buffer: &mut Vec<u8>) -> Result<u64, SampleError> {
    let file = File::open(path)?;
    let len = file.metadata()?.len();
    if len > MAX_FILE_BYTES {
        return Err(SampleError::TooLarge {
            limit: MAX_FILE_BYTES,
            found: len,
        });
    }
    buffer.clear();
    buffer.reserve(usize::try_from(len).unwrap_or(0).saturating_add(1));
    let read = file.take(MAX_FILE_BYTES + 1).read_to_end(buffer)?;
    Ok(u64::try_from(read).unwrap_or(u64::MAX))
}
