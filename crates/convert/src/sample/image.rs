//! Adds a sample's image and mask to the block. An image is decoded into the block, re-encoded, or stored as the source
//! file.

use packds_system::{to_u64, to_usize};
use std::time::Instant;

use packds_format::{BlockBuilder, Coding, DType};
use packds_pixels::{
    Color, Decoder, Filter, Geometry, ImageInfo, Layout, PixelError, Pixels, Resize, build_seek_index, check_structure,
    encode_jpeg, encode_png, probe,
};

use super::columns::{Item, describe};
use super::{SampleError, SampleReader};
use crate::plan::{ImageForm, MIXED_QUALITY, coding_of};
use crate::sink::pixels_of;
use crate::source::store::{ArrayType, Content, PixelShape};

/// An image added to the block.
pub(super) struct Made {
    pub(super) size: SourceSize,
    pub(super) item_bytes: u64,
    pub(super) bytes_in: u64,
    pub(super) pixels: InHistogram,
}

/// A mask added to the block.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MadeMask {
    pub(super) bytes_in: u64,
    /// Size of the item in bytes. 0 if there is no mask, or if all masks have the same size.
    pub(super) item_bytes: u64,
    /// Whether the mask was resized to the size of its image.
    pub(super) is_resized: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct SourceSize {
    pub(super) width: u32,
    pub(super) height: u32,
    /// EXIF orientation, 1 to 8.
    pub(super) orientation: u8,
    /// Whether channels have more than 8 bits.
    pub(super) is_deep: bool,
    /// Whether there is an alpha channel, which is not decoded.
    pub(super) has_alpha: bool,
    /// Whether the file has further frames or pages, which are not decoded.
    pub(super) has_more: bool,
}

impl From<ImageInfo> for SourceSize {
    fn from(info: ImageInfo) -> Self {
        let ImageInfo { width, height, orientation, has_alpha, has_more, .. } = info;
        Self { width, height, orientation, is_deep: info.bit_depth > 8, has_alpha, has_more }
    }
}

impl From<PixelShape> for SourceSize {
    fn from(shape: PixelShape) -> Self {
        Self {
            width: shape.width,
            height: shape.height,
            orientation: 1,
            is_deep: false,
            has_alpha: false,
            has_more: false,
        }
    }
}

/// The location of the pixels to be counted in the histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InHistogram {
    InBlock,
    InScratch,
    None,
}

impl SampleReader<'_> {
    /// Reads the image of sample `id` into the file buffer.
    fn read_image(&mut self, id: usize) -> Result<Content, SampleError> {
        let started = Instant::now();
        self.file.clear();
        let content = self.listing.append_image(id, u64::MAX, &mut self.file)?;
        self.times.read += started.elapsed();
        Ok(content)
    }

    /// Copies an array into the block unchanged.
    pub(super) fn array_image(
        &mut self,
        id: usize,
        array: &ArrayType,
        block: &mut BlockBuilder,
    ) -> Result<Made, SampleError> {
        let content = self.read_image(id)?;
        let same = matches!(&content, Content::Array(found) if found == array);
        let out = block.tensor_mut(self.plan.fields.image)?;
        if !same || out.len() != self.file.len() {
            let expected = format!("an array of {} with shape {:?}", array.dtype, array.shape);
            return Err(other_content(&expected, &content));
        }
        out.copy_from_slice(&self.file);
        let item_bytes = to_u64(self.file.len());
        let (height, width) = self.plan.array_size();
        Ok(Made {
            size: SourceSize { width, height, orientation: 1, is_deep: false, has_alpha: false, has_more: false },
            item_bytes,
            bytes_in: item_bytes,
            pixels: InHistogram::None,
        })
    }

    /// Decodes the image into the block. If the pack's type or layout differs from that of decoded pixels, decodes into
    /// a buffer first.
    pub(super) fn fixed_image(
        &mut self,
        id: usize,
        width: u32,
        height: u32,
        block: &mut BlockBuilder,
    ) -> Result<Made, SampleError> {
        let content = self.read_image(id)?;
        let bytes_in = to_u64(self.file.len());
        let channels = self.options.color().channels();
        let n = pixel_bytes(width, height, channels);
        let out = block.tensor_mut(self.plan.fields.image)?;
        let item_bytes = to_u64(out.len());
        let direct = self.options.dtype == DType::U8 && self.options.layout() == Layout::Hwc;
        let started = Instant::now();
        let item = RenderItem {
            bytes: &self.file,
            content: &content,
            geometry: &self.plan.geometry,
            expected: (width, height),
        };
        let size = if direct {
            item.render(&mut self.decoder, &mut self.planes, out)?
        } else {
            self.pixels.resize(n, 0);
            item.render(&mut self.decoder, &mut self.planes, &mut self.pixels)?
        };
        self.times.decode += started.elapsed();
        if direct {
            return Ok(Made { size, item_bytes, bytes_in, pixels: InHistogram::InBlock });
        }
        let started = Instant::now();
        self.store_pixels(out)?;
        self.times.encode += started.elapsed();
        Ok(Made { size, item_bytes, bytes_in, pixels: InHistogram::InScratch })
    }

    /// Converts the pixels in the scratch buffer to the type and layout of the schema, and normalizes them if
    /// requested.
    fn store_pixels(&mut self, out: &mut [u8]) -> Result<(), SampleError> {
        let emit = match &self.emit {
            Some(emit) => emit,
            None => self.emit.insert(self.plan.emit(self.options)?),
        };
        Ok(emit.write_into(&self.pixels, out)?)
    }

    /// Reads the image file directly into the block and keeps it unchanged. A file in a format that packs do not store
    /// becomes a PNG.
    pub(super) fn kept_image(&mut self, id: usize, block: &mut BlockBuilder) -> Result<Made, SampleError> {
        let started = Instant::now();
        let out = block.item_mut(self.plan.fields.image)?;
        let before = out.len();
        let content = self.listing.append_image(id, u64::MAX, out)?;
        self.times.read += started.elapsed();
        if content != Content::File {
            return Err(other_content("an image file", &content));
        }
        let bytes_in = to_u64(out.len() - before);
        let started = Instant::now();
        let file = out.get(before..).unwrap_or(&[]);
        let (mut item, info) = check_file(file, self.options.max_pixels)?;
        let is_kept = coding_of(info.format).is_some();
        if !is_kept {
            item.channels = if info.channels == 1 { 1 } else { 3 };
            let png = as_png(&mut self.decoder, file, item.channels)?;
            out.truncate(before);
            out.extend_from_slice(&png);
        }
        let item_bytes = to_u64(out.len() - before);
        let pixels = self.check_kept(before, block)?;
        self.times.decode += started.elapsed();
        if let Some(columns) = self.plan.fields.image_columns {
            describe(&columns, &item, block)?;
        }
        let mut size = SourceSize::from(info);
        size.is_deep &= !is_kept || pixels != InHistogram::None;
        size.has_alpha &= !is_kept;
        Ok(Made { size, item_bytes, bytes_in, pixels })
    }

    /// Decodes a file that is stored unchanged, if requested. `before` is the position of the file in the image field.
    fn check_kept(&mut self, before: usize, block: &mut BlockBuilder) -> Result<InHistogram, SampleError> {
        if !self.options.check_decode {
            return Ok(InHistogram::None);
        }
        let out = block.item_mut(self.plan.fields.image)?;
        let (_, pixels) = self.decoder.decode_full(out.get(before..).unwrap_or(&[]))?;
        self.pixels.clear();
        self.pixels.extend_from_slice(pixels);
        Ok(InHistogram::InScratch)
    }

    /// Appends the image's item: its pixels, its original file, or a re-encoded file.
    pub(super) fn variable_image(&mut self, id: usize, block: &mut BlockBuilder) -> Result<Made, SampleError> {
        self.path.clear();
        self.listing.path_into(id, &mut self.path);
        let raw = self.plan.is_raw(self.options.seed, &self.path);
        let quality = match self.plan.form {
            ImageForm::Encoded { quality } | ImageForm::Mixed { quality, .. } => quality,
            _ => None,
        };
        if !raw && quality.is_none() && self.options.color() == Color::Rgb {
            return self.kept_image(id, block);
        }
        let content = self.read_image(id)?;
        let bytes_in = to_u64(self.file.len());
        let started = Instant::now();
        let size = source_size(&self.file, &content, self.options.max_pixels)?;
        let geometry = &self.plan.geometry;
        let (width, height) = geometry.output_size(size.width, size.height, size.orientation);
        let channels = self.options.color().channels();
        let n = pixel_bytes(width, height, channels);
        self.pixels.resize(n, 0);
        let item = RenderItem { bytes: &self.file, content: &content, geometry, expected: (width, height) };
        item.render(&mut self.decoder, &mut self.planes, &mut self.pixels)?;
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
            out.extend_from_slice(&encode_jpeg(width, height, channels, &self.pixels, quality)?);
            Coding::Jpeg
        };
        let item_bytes = to_u64(out.len() - before);
        if let Some(columns) = self.plan.fields.image_columns {
            describe(&columns, &Item { width, height, channels, coding }, block)?;
        }
        self.times.encode += started.elapsed();
        Ok(Made { size, item_bytes, bytes_in, pixels: InHistogram::InScratch })
    }

    /// Adds the seek index of the image that was just added. `item_bytes` is the size of that image. Returns the size
    /// of the index, or 0 if the image cannot have an index.
    pub(super) fn seek_index(&mut self, item_bytes: u64, block: &mut BlockBuilder) -> Result<u64, SampleError> {
        let Some(field) = self.plan.fields.seek else {
            return Ok(0);
        };
        let started = Instant::now();
        let images = block.item_mut(self.plan.fields.image)?;
        let n = to_usize(item_bytes);
        let item = images.get(images.len().saturating_sub(n)..);
        let index = build_seek_index(item.unwrap_or_default()).unwrap_or_default();
        block.item_mut(field)?.extend_from_slice(&index);
        self.times.encode += started.elapsed();
        Ok(to_u64(index.len()))
    }

    /// Adds the mask: resized like the image, or as an unchanged file. A mask of another size is first resized to the
    /// size of its image.
    pub(super) fn mask(
        &mut self,
        id: usize,
        image: SourceSize,
        block: &mut BlockBuilder,
    ) -> Result<MadeMask, SampleError> {
        let mut name = Vec::new();
        let path = self.listing.mask_path_into(id, &mut name);
        let Some((_, field)) = path.zip(self.plan.fields.mask) else {
            return Ok(MadeMask::default());
        };
        let mask = String::from_utf8_lossy(&name).into_owned();
        let wrong = |source: SampleError| match source {
            // The mask has several files, and this error names the bad one.
            named @ (SampleError::Mask { .. } | SampleError::MaskSize { .. }) => named,
            source => SampleError::Mask { mask: mask.clone(), source: Box::new(source) },
        };
        let expected = self.plan.plane_size().unwrap_or((image.width, image.height));
        let mut file = Vec::new();
        let content = self.listing.append_mask(id, expected, &mut file).map_err(wrong)?;
        let mut content = content.unwrap_or(Content::Bytes);
        let bytes = to_u64(file.len());
        let size = source_size(&file, &content, self.options.max_pixels).map_err(wrong)?;
        let found = (size.width, size.height);
        let is_resized = found != expected;
        if is_resized {
            if size.orientation != 1 || !have_equal_shape(found, expected) {
                return Err(SampleError::MaskSize { mask, expected, found });
            }
            (file, content) = self.resized_mask(&file, &content, expected).map_err(wrong)?;
        }
        let geometry = Geometry { filter: Filter::Nearest, ..self.plan.geometry };
        self.mask_values.is_scaled |= probe(&file).is_ok_and(|info| info.bit_depth > 8);
        let started = Instant::now();
        let own = || geometry.output_size(expected.0, expected.1, size.orientation);
        let expected = self.plan.fields.mask_size.unwrap_or_else(own);
        let rendered = RenderItem { bytes: &file, content: &content, geometry: &geometry, expected };
        let mut item_bytes = 0;
        if self.plan.fields.mask_size.is_some() {
            let out = block.tensor_mut(field)?;
            rendered.render(&mut self.mask_decoder, &mut self.planes, out).map_err(wrong)?;
            self.mask_values.add(out);
        } else {
            // Pixels are class numbers, not a file, even if their first bytes look like those of an image file.
            let is_file = |file: &[u8]| {
                !matches!(content, Content::Pixels(_)) && probe(file).is_ok_and(|info| coding_of(info.format).is_some())
            };
            let keep = matches!(self.plan.form, ImageForm::Encoded { quality: None }) && is_file(&file);
            let item = if keep {
                let (item, _) = check_file(&file, self.options.max_pixels).map_err(wrong)?;
                block.item_mut(field)?.extend_from_slice(&file);
                item
            } else {
                // Re-encoding would change class numbers, so masks are stored raw unless the images are unchanged
                // files.
                let (width, height) = expected;
                let items = block.item_mut(field)?;
                let before = items.len();
                items.resize(before.saturating_add(pixel_bytes(width, height, 1)), 0);
                let out = items.get_mut(before..).unwrap_or_default();
                rendered.render(&mut self.mask_decoder, &mut self.planes, out).map_err(wrong)?;
                self.mask_values.add(out);
                Item { width, height, channels: 1, coding: Coding::Raw }
            };
            item_bytes = match item.coding {
                Coding::Raw => u64::from(item.width) * u64::from(item.height),
                _ => bytes,
            };
            if let Some(columns) = self.plan.fields.mask_columns {
                describe(&columns, &item, block)?;
            }
        }
        self.times.decode += started.elapsed();
        Ok(MadeMask { bytes_in: bytes, item_bytes, is_resized })
    }

    /// Decodes a mask, and resizes it to the size of its image like Pillow's `resize` with `Image.NEAREST`.
    fn resized_mask(
        &mut self,
        file: &[u8],
        content: &Content,
        (width, height): (u32, u32),
    ) -> Result<(Vec<u8>, Content), SampleError> {
        let geometry =
            Geometry { resize: Resize::Exact { width, height }, filter: Filter::Nearest, ..Geometry::default() };
        let mut pixels = vec![0; pixel_bytes(width, height, 1)];
        let item = RenderItem { bytes: file, content, geometry: &geometry, expected: (width, height) };
        item.render(&mut self.mask_decoder, &mut self.planes, &mut pixels)?;
        Ok((pixels, Content::Pixels(PixelShape { width, height, channels: 1, planar: false })))
    }
}

/// Whether two sizes have the same ratio of width and height, allowing for rounding to whole pixels.
fn have_equal_shape((width, height): (u32, u32), (other_width, other_height): (u32, u32)) -> bool {
    let [one, other] = [(width, other_height), (other_width, height)].map(|(a, b)| u64::from(a) * u64::from(b));
    one.abs_diff(other) < u64::from(width.max(height).max(other_width).max(other_height))
}

/// An image or mask of the source, to be decoded, resized and cropped.
struct RenderItem<'a> {
    bytes: &'a [u8],
    content: &'a Content,
    geometry: &'a Geometry,
    /// The width and height that the result must have.
    expected: (u32, u32),
}

impl RenderItem<'_> {
    /// Decodes, resizes and crops the item into `out`. `planes` is a buffer for interleaving planar pixels.
    fn render(&self, decoder: &mut Decoder, planes: &mut Vec<u8>, out: &mut [u8]) -> Result<SourceSize, SampleError> {
        let result = match self.content {
            Content::File => decoder.render_into(self.bytes, self.geometry, out).map(|rendered| rendered.info.into()),
            Content::Pixels(shape) => {
                let pixels = Pixels {
                    data: interleaved(self.bytes, *shape, planes),
                    width: shape.width,
                    height: shape.height,
                    channels: shape.channels,
                };
                decoder.render_pixels_into(pixels, self.geometry, out).map(|()| SourceSize::from(*shape))
            }
            other => return Err(other_content("an image", other)),
        };
        match result {
            Ok(size) => Ok(size),
            Err(PixelError::WrongBuffer { .. }) => {
                let size: SourceSize = match self.content {
                    Content::Pixels(shape) => (*shape).into(),
                    _ => probe(self.bytes)?.into(),
                };
                let found = self.geometry.output_size(size.width, size.height, size.orientation);
                Err(SampleError::OtherSize { expected: self.expected, found })
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn interleaved<'a>(bytes: &'a [u8], shape: PixelShape, pixels: &'a mut Vec<u8>) -> &'a [u8] {
    if !shape.planar || shape.channels == 1 {
        return bytes;
    }
    pixels.clear();
    pixels.extend(pixels_of(bytes));
    pixels
}

fn other_content(expected: &str, found: &Content) -> SampleError {
    SampleError::OtherContent {
        expected: expected.to_owned(),
        found: match found {
            Content::File => "an image file".to_owned(),
            Content::Pixels(shape) => format!("a {}x{} array of pixels", shape.width, shape.height),
            Content::Array(array) => format!("an array of {} with shape {:?}", array.dtype, array.shape),
            Content::Ragged(_) => "any number of entries".to_owned(),
            Content::Bytes => "bytes".to_owned(),
            Content::Text | Content::Json => "text".to_owned(),
        },
    }
}

/// The size of an image, found without decoding. Also checks that an image file is complete.
fn source_size(file: &[u8], content: &Content, limit: u64) -> Result<SourceSize, SampleError> {
    match content {
        Content::Pixels(shape) => Ok((*shape).into()),
        Content::File => Ok(check_file(file, limit)?.1.into()),
        other => Err(other_content("an image", other)),
    }
}

/// Re-encodes a file as PNG, because packs do not store its format. If `channels` is 1, all decoded channels must be
/// equal.
fn as_png(decoder: &mut Decoder, file: &[u8], channels: u8) -> Result<Vec<u8>, PixelError> {
    let (info, pixels) = decoder.decode_full(file)?;
    match channels {
        1 => {
            let gray: Vec<u8> = pixels.as_chunks::<3>().0.iter().map(|pixel| pixel[0]).collect();
            encode_png(info.width, info.height, 1, &gray)
        }
        _ => encode_png(info.width, info.height, 3, pixels),
    }
}

/// Checks, without decoding, that a file is a complete image and not too large.
fn check_file(file: &[u8], limit: u64) -> Result<(Item, ImageInfo), SampleError> {
    let info = check_structure(file)?;
    let (width, height) = (info.width, info.height);
    if u64::from(width).saturating_mul(u64::from(height)) > limit {
        return Err(PixelError::TooManyPixels { width, height, limit }.into());
    }
    let item = Item { width, height, channels: info.channels, coding: coding_of(info.format).unwrap_or(Coding::Png) };
    Ok((item, info))
}

pub(super) fn pixel_bytes(width: u32, height: u32, channels: usize) -> usize {
    to_usize(u64::from(width) * u64::from(height)).saturating_mul(channels)
}
