//! The image of a sample: decoded into the block, or its file kept or made anew. And its mask.

use std::time::Instant;

use packds_format::{BlockBuilder, Coding, DType};
use packds_pixels::{
    Color, Decoder, Filter, FloatType, Geometry, ImageInfo, Layout, PixelError, build_seek_index,
    cast_into, check_structure, encode_jpeg, to_layout_into,
};

use super::columns::{Item, describe};
use super::file::{append_file, read_file};
use super::{SampleError, SampleReader};
use crate::plan::{ImageForm, MIXED_QUALITY, coding_of};

/// An image that is in the block.
pub(super) struct Made {
    pub(super) info: ImageInfo,
    pub(super) item_bytes: u64,
    pub(super) bytes_in: u64,
    pub(super) pixels: Pixels,
}

/// Where the pixels that the histogram counts lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pixels {
    InBlock,
    InScratch,
    None,
}

impl SampleReader<'_> {
    /// Decodes into the block, through a buffer where type or layout differ.
    pub(super) fn fixed_image(
        &mut self,
        id: usize,
        width: u32,
        height: u32,
        block: &mut BlockBuilder,
    ) -> Result<Made, SampleError> {
        let started = Instant::now();
        let bytes_in = read_file(&self.listing.file_path(id), &mut self.file)?;
        self.times.read += started.elapsed();
        let channels = self.options.color.channels();
        let n = pixel_bytes(width, height, channels);
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
            return Ok(Made {
                info,
                item_bytes,
                bytes_in,
                pixels: Pixels::InBlock,
            });
        }
        let started = Instant::now();
        self.store_pixels(out)?;
        self.times.encode += started.elapsed();
        Ok(Made {
            info,
            item_bytes,
            bytes_in,
            pixels: Pixels::InScratch,
        })
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

    /// Appends the file as it is to the image's items, read straight into the block.
    pub(super) fn kept_image(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
    ) -> Result<Made, SampleError> {
        let started = Instant::now();
        let out = block.item_mut(self.plan.fields.image)?;
        let before = out.len();
        let item_bytes = append_file(&self.listing.file_path(id), out)?;
        self.times.read += started.elapsed();
        let started = Instant::now();
        let file = out.get(before..).unwrap_or(&[]);
        let (item, info) = check_file(file, self.options.max_pixels)?;
        let pixels = self.check_kept(before, block)?;
        self.times.decode += started.elapsed();
        if let Some(columns) = self.plan.fields.image_columns {
            describe(&columns, &item, block)?;
        }
        Ok(Made {
            info,
            item_bytes,
            bytes_in: item_bytes,
            pixels,
        })
    }

    /// Decodes a file that is kept untouched, if that was asked for.
    fn check_kept(
        &mut self,
        before: usize,
        block: &mut BlockBuilder,
    ) -> Result<Pixels, SampleError> {
        if !self.options.check_decode {
            return Ok(Pixels::None);
        }
        let out = block.item_mut(self.plan.fields.image)?;
        let (_, pixels) = self.decoder.decode_full(out.get(before..).unwrap_or(&[]))?;
        self.pixels.clear();
        self.pixels.extend_from_slice(pixels);
        Ok(Pixels::InScratch)
    }

    /// Appends the image's item: its pixels, its file, or a new file.
    pub(super) fn variable_image(
        &mut self,
        id: usize,
        block: &mut BlockBuilder,
    ) -> Result<Made, SampleError> {
        self.path.clear();
        self.listing.path_into(id, &mut self.path);
        let raw = self.plan.is_raw(self.options.seed, &self.path);
        let quality = match self.plan.form {
            ImageForm::Encoded { quality } | ImageForm::Mixed { quality, .. } => quality,
            _ => None,
        };
        if !raw && quality.is_none() && self.options.color == Color::Rgb {
            return self.kept_image(id, block);
        }
        let started = Instant::now();
        let bytes_in = read_file(&self.listing.file_path(id), &mut self.file)?;
        self.times.read += started.elapsed();
        let started = Instant::now();
        let (_, info) = check_file(&self.file, self.options.max_pixels)?;
        let geometry = &self.plan.geometry;
        let (width, height) = geometry.output_size(info.width, info.height, info.orientation);
        let channels = self.options.color.channels();
        let n = pixel_bytes(width, height, channels);
        self.pixels.resize(n, 0);
        self.decoder
            .render_into(&self.file, geometry, &mut self.pixels)?;
        self.times.decode += started.elapsed();
        let started = Instant::now();
        let channels = u8::try_from(channels).unwrap_or(0);
        let out = block.item_mut(self.plan.fields.image)?;
        let before = out.len();
        let coding = if raw {
            out.extend_from_slice(&self.pixels);
            Coding::Raw
        } else {
            let quality = quality.unwrap_or(MIXED_QUALITY);
            out.extend_from_slice(&encode_jpeg(
                width,
                height,
                channels,
                &self.pixels,
                quality,
            )?);
            Coding::Jpeg
        };
        let item_bytes = u64::try_from(out.len() - before).unwrap_or(u64::MAX);
        if let Some(columns) = self.plan.fields.image_columns {
            describe(
                &columns,
                &Item {
                    width,
                    height,
                    channels,
                    coding,
                },
                block,
            )?;
        }
        self.times.encode += started.elapsed();
        Ok(Made {
            info,
            item_bytes,
            bytes_in,
            pixels: Pixels::InScratch,
        })
    }

    /// Adds the seek index of the image, the last `item_bytes` of its field, where there is one to be had; returns its
    /// bytes.
    pub(super) fn seek_index(
        &mut self,
        item_bytes: u64,
        block: &mut BlockBuilder,
    ) -> Result<u64, SampleError> {
        let Some(field) = self.plan.fields.seek else {
            return Ok(0);
        };
        let started = Instant::now();
        let images = block.item_mut(self.plan.fields.image)?;
        let n = usize::try_from(item_bytes).unwrap_or(usize::MAX);
        let item = images.get(images.len().saturating_sub(n)..);
        let index = build_seek_index(item.unwrap_or_default()).unwrap_or_default();
        block.item_mut(field)?.extend_from_slice(&index);
        self.times.encode += started.elapsed();
        Ok(u64::try_from(index.len()).unwrap_or(u64::MAX))
    }

    /// Adds the mask: nearest pixels through the image's geometry, or the file as it is.
    pub(super) fn mask(
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

/// Looks at a file without decoding it: whether it is a whole image, and not too large a one.
fn check_file(file: &[u8], limit: u64) -> Result<(Item, ImageInfo), SampleError> {
    let info = check_structure(file)?;
    let (width, height) = (info.width, info.height);
    if u64::from(width).saturating_mul(u64::from(height)) > limit {
        return Err(PixelError::TooManyPixels {
            width,
            height,
            limit,
        }
        .into());
    }
    let item = Item {
        width,
        height,
        channels: info.channels,
        coding: coding_of(info.format),
    };
    Ok((item, info))
}

/// Bytes of the pixels of an image.
pub(super) fn pixel_bytes(width: u32, height: u32, channels: usize) -> usize {
    usize::try_from(u64::from(width) * u64::from(height))
        .unwrap_or(usize::MAX)
        .saturating_mul(channels)
}
