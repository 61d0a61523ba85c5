//! The augmentation of images: which fields they are in, and how an item becomes a picture.

use packds_system::{to_u64, to_usize};
use std::collections::BTreeMap;
use std::sync::Arc;

use packds_format::{Coding, DType, Field, FieldKind, Role, Schema, Store};
use packds_pixels::{
    Color, DecodeOptions, Decoder, Encoded, Image, ImageFormat, Layout, Pixels, check_structure,
};

use super::error::LoadError;
use super::filling::Row;
use super::kept::ImageSize;
use super::outputs::{Outputs, Source};
use super::refused::RefusedFiles;
use super::stored_images::{ChunkSource, StoredImages};
use crate::arena::SlotMut;
use crate::augment::{
    Augment, AugmentError, AugmentPlan, Augmenter, Geometry, ImageSource, Located, Mix, Output,
    Picture, SampleKey, Size,
};
use crate::device::{
    Changes, ColorOp, FileHead, FileLimits, Finish, Frame, Holding, Patch, Resampling, Share,
    Windows,
};
use crate::fetch::StepItems;
use crate::{Pack, ReadError};

/// The device's part in processing images.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnDevice {
    /// Whether it finishes them.
    pub(crate) finishes: bool,
    /// The images that it holds.
    pub(crate) holds: Holding,
    /// The limits of JPEG files that it decodes, if it does.
    pub(crate) decodes: Option<FileLimits>,
}

/// The augmented image field, its mask and its seek index.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// The complete augmentation.
    made: AugmentPlan,
    /// The host's part of it.
    plan: Arc<AugmentPlan>,
    /// The pictures that the device holds and makes images from.
    holding: Holding,
    /// Why it holds none, as a sentence.
    against_holding: Option<&'static str>,
    /// Why it does not decode them, as a sentence.
    against_files: Option<&'static str>,
    /// The device's part of the augmentation.
    pub(crate) finish: Option<Finish>,
    image: PictureField,
    mask: Option<PictureField>,
    /// The position of the image's seek index in the body.
    seek: Option<usize>,
    /// The files that the device refused, if it decodes files.
    pub(crate) refused: Arc<RefusedFiles>,
}

/// An image field in the body.
#[derive(Debug, Clone)]
struct PictureField {
    name: String,
    position: usize,
    /// Width, height and channels. `None` for variable-size images.
    size: Option<(u32, u32, u8)>,
    channels: u8,
    /// Whether its items lack a channel dimension.
    is_flat: bool,
}

impl Pictures {
    /// Applies `augment` to the images of `pack`: to the first field with the role image and to the first mask, if they are
    /// `wanted`. If the device finishes images, this leaves its part out.
    pub(crate) fn new(
        pack: &Pack,
        augment: &Augment,
        wanted: Option<&[String]>,
        device: OnDevice,
    ) -> Result<Self, LoadError> {
        let schema = pack.schema();
        let is_wanted = |f: &Field| wanted.is_none_or(|names| names.contains(&f.name));
        let by_role = |role| {
            let mut found = schema.fields().iter().filter(|f| f.role == Some(role));
            found.find(|f| f.store == Store::Body && is_wanted(f))
        };
        let image = by_role(Role::Image).ok_or_else(|| {
            LoadError::Option(format!(
                "{}: no loaded field holds images, so there is nothing to augment",
                pack.file_path().display()
            ))
        })?;
        let refused = |source| LoadError::Augment {
            path: pack.file_path().to_owned(),
            source: Box::new(source),
        };
        let source = ImageSource::of_field(image).map_err(refused)?;
        let made = AugmentPlan::new(augment, &source).map_err(refused)?;
        let has_mask = by_role(Role::Mask).is_some();
        let held = match source.size {
            _ if device.holds == Holding::Nothing => Err("no device holds them"),
            _ if has_mask => Err("masks go along with them"),
            None => Err("they are files, have sizes of their own, or are not stored as hwc"),
            Some(size) => made.finish_windows(size),
        };
        let against_holding = held.as_ref().err().copied();
        let files = match device.decodes {
            None => Err("no device decodes them"),
            _ if image.kind != FieldKind::Image => Err("they are pixels, not files"),
            _ if has_mask => Err("masks go along with them"),
            Some(limits) => made.finish_files(limits),
        };
        let against_files = files.as_ref().err().copied();
        let finish = held.ok().or(files.ok());
        let finish = finish.or_else(|| made.finish().filter(|_| device.finishes));
        let plan = match &finish {
            Some(Finish { files: Some(_), .. }) => {
                AugmentPlan::new(&augment.as_windows(), &source).map_err(refused)?
            }
            Some(_) => AugmentPlan::new(&augment.as_pixels(), &source).map_err(refused)?,
            None => made.clone(),
        };
        let mask = by_role(Role::Mask)
            .map(|field| PictureField::new(schema, field).map_err(refused))
            .transpose()?;
        let seek = schema.seek_index_of(&image.name);
        Ok(Self {
            made,
            holding: device.holds,
            against_holding,
            against_files,
            plan: Arc::new(plan),
            finish,
            image: PictureField::new(schema, image).map_err(refused)?,
            mask,
            seek: seek.and_then(|(number, _)| schema.body().position(|(n, _)| n == number)),
            refused: Arc::default(),
        })
    }

    /// Whether the device holds the images and only gets windows of them.
    pub(crate) fn are_held(&self) -> bool {
        let finish = self.finish.as_ref();
        finish.is_some_and(|finish| finish.windows.is_some() && finish.files.is_none())
    }

    /// The limits of JPEG files that the device decodes, if it does.
    pub(crate) fn files(&self) -> Option<FileLimits> {
        self.finish.as_ref()?.files
    }

    /// Why the device does not hold them, as a sentence. `None` if it does.
    pub(crate) fn against_holding(&self) -> Option<&'static str> {
        self.against_holding
    }

    /// Why the device does not decode them, as a sentence. `None` if it does.
    pub(crate) fn against_files(&self) -> Option<&'static str> {
        self.against_files
    }

    /// How pictures on the device are resized.
    pub(crate) fn resampling(&self) -> Option<&Arc<Resampling>> {
        let windows = self.finish.as_ref()?.windows.as_ref()?;
        windows.resampling.as_ref()
    }

    /// The field's name, and whether its items have the three dimensions of an image.
    pub(crate) fn image(&self) -> (&str, bool) {
        (&self.image.name, !self.image.is_flat)
    }

    /// Size of a stored picture. `None` for variable-size pictures.
    pub(crate) fn picture_bytes(&self) -> Option<u64> {
        let (width, height, channels) = self.image.size?;
        let pixels = u64::from(width).checked_mul(height.into())?;
        pixels.checked_mul(channels.into())
    }

    /// The position of the field whose stored items are the input of the device. `None` if the host has to process them first.
    pub(crate) fn unchanged(&self) -> Option<usize> {
        let is_unchanged = self.finish.is_some() && !self.are_held() && self.plan.changes_nothing();
        is_unchanged.then_some(self.image.position)
    }

    /// Whether the device takes the pictures chunk by chunk.
    pub(crate) fn come_in_chunks(&self) -> bool {
        self.are_held() && matches!(self.holding, Holding::Chunks | Holding::ChunksOfFile)
    }

    /// Whether the device reads them itself.
    pub(crate) fn are_unread(&self) -> bool {
        self.are_held() && self.holding == Holding::ChunksOfFile
    }

    /// The start of each row's picture for the device. The device takes the missing chunks for slot number `slot`.
    fn places(
        &self,
        rows: &[Row],
        slot: usize,
        source: &ChunkSource<'_>,
    ) -> Result<Vec<u64>, LoadError> {
        let bytes = self.picture_bytes().unwrap_or(0);
        if self.holding == Holding::All {
            return Ok(rows
                .iter()
                .map(|row| row.sample.saturating_mul(bytes))
                .collect());
        }
        let geometry = source.pack.geometry();
        let mut taken = BTreeMap::new();
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let (chunk, index) = geometry.locate(row.sample);
            let first = match taken.get(&chunk) {
                Some(first) => *first,
                None => {
                    let first = self.take_chunk(chunk, slot, source)?;
                    taken.insert(chunk, first);
                    first
                }
            };
            places.push(first + u64::from(index).saturating_mul(bytes));
        }
        Ok(places)
    }

    fn take_chunk(
        &self,
        chunk: u64,
        slot: usize,
        source: &ChunkSource<'_>,
    ) -> Result<u64, LoadError> {
        let geometry = source.pack.geometry();
        let first = geometry.first_sample(chunk);
        let (position, schema) = (self.image.position, source.pack.schema());
        let number = schema.body().nth(position).map(|(number, _)| number);
        let mut images = StoredImages {
            source,
            position,
            unread: number.filter(|_| self.are_unread()),
            samples: first..first + u64::from(geometry.samples_in(chunk)),
            bytes: to_usize(self.picture_bytes().unwrap_or(0)),
            scratch: Vec::new(),
            failed: None,
        };
        match source.device.take_chunk(slot, chunk, &mut images)? {
            Some(first) => Ok(first),
            None => Err(images.failed.map_or_else(
                || LoadError::Option("a device took no chunk".to_owned()),
                LoadError::Read,
            )),
        }
    }

    /// Writes the windows of all views of `rows` for the device.
    pub(crate) fn write_windows(
        &self,
        windows: &Windows,
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
        source: &ChunkSource<'_>,
    ) -> Result<(), LoadError> {
        let places = self.places(rows, slot.number(), source)?;
        for view in 0..self.plan.output().views {
            let region = slot.get_mut(windows.offset(view)..).unwrap_or_default();
            let (frames, _) = region.as_chunks_mut::<{ Frame::BYTES }>();
            for ((row, place), to) in rows.iter().zip(&places).zip(frames) {
                let picture = Located {
                    size: Size {
                        width: windows.width,
                        height: windows.height,
                    },
                    row_bytes: windows.row_bytes,
                    source: *place,
                };
                let resampling = windows.resampling.as_deref();
                let frame = self
                    .plan
                    .window(key(seeds, *row), view, picture, resampling);
                let frame = frame.map_err(|error| LoadError::Option(error.to_string()))?;
                let no_taps = || LoadError::Option("an area larger than its picture".to_owned());
                *to = frame.ok_or_else(no_taps)?.to_bytes();
            }
        }
        Ok(())
    }

    /// Writes the windows of `rows` for the device. Their files or pixels start at `offset` in the slot. Returns how many
    /// of them the host decoded.
    pub(crate) fn write_file_windows(
        &self,
        finish: &Finish,
        slot: &mut [u8],
        (offset, item_bytes): (usize, usize),
        rows: &[Row],
        seeds: &[u64],
    ) -> Result<u64, LoadError> {
        let (Some(windows), Some(limits)) = (&finish.windows, finish.files) else {
            return Ok(0);
        };
        let number = |n: usize| to_u64(n);
        let (slot_bytes, channels) = (number(slot.len()), finish.channels);
        let mut n_pixels = 0;
        for (at, row) in rows.iter().enumerate() {
            let place = offset.saturating_add(at.saturating_mul(item_bytes));
            let frame = match FileHead::of(slot.get(place..).unwrap_or_default()) {
                FileHead::Pixels => {
                    n_pixels += 1;
                    Frame {
                        source: number(place + FileHead::BYTES),
                        width: finish.width,
                        height: finish.height,
                        row_bytes: finish.width.saturating_mul(channels),
                        ..Frame::default()
                    }
                }
                FileHead::File { width, height, .. } => {
                    let before = number(at).saturating_mul(limits.pixel_bytes.into());
                    let picture = Located {
                        size: Size { width, height },
                        row_bytes: width.saturating_mul(channels),
                        source: slot_bytes.saturating_add(before),
                    };
                    let resampling = windows.resampling.as_deref();
                    let frame = self.plan.window(key(seeds, *row), 0, picture, resampling);
                    let frame = frame.map_err(|error| LoadError::Option(error.to_string()))?;
                    let no_taps = || LoadError::Option("a file larger than its limits".to_owned());
                    frame.ok_or_else(no_taps)?
                }
            };
            let to = windows.offset(0).saturating_add(at * Frame::BYTES);
            if let Some(to) = slot.get_mut(to..to + Frame::BYTES) {
                to.copy_from_slice(&frame.to_bytes());
            }
        }
        Ok(n_pixels)
    }

    /// Writes colour changes, erased areas and mixing of `rows` for the device.
    pub(crate) fn write_changes(
        &self,
        changes: &Changes,
        slot: &mut [u8],
        rows: &[Row],
        seeds: &[u64],
    ) {
        for view in 0..self.made.output().views {
            let region = slot.get_mut(changes.patches(view)..).unwrap_or_default();
            let (places, _) = region.as_chunks_mut::<{ Patch::BYTES }>();
            let patches = rows
                .iter()
                .flat_map(|row| self.made.patches(key(seeds, *row), view));
            for (patch, to) in patches.zip(places) {
                *to = patch.to_bytes();
            }
            let region = slot.get_mut(changes.colors(view)..).unwrap_or_default();
            let (places, _) = region.as_chunks_mut::<{ ColorOp::BYTES }>();
            let n = changes.n_colors;
            let colors = rows
                .iter()
                .flat_map(|row| self.made.colors(key(seeds, *row), view, n));
            for (color, to) in colors.zip(places) {
                *to = color.to_bytes();
            }
        }
        if changes.mixes {
            let region = slot.get_mut(changes.shares()..).unwrap_or_default();
            let (places, _) = region.as_chunks_mut::<{ Share::BYTES }>();
            for (row, to) in rows.iter().zip(places) {
                *to = self.made.share(key(seeds, *row)).to_bytes();
            }
        }
    }

    /// The body fields to read, by their positions.
    pub(crate) fn positions(&self) -> Vec<usize> {
        match self.holding {
            Holding::All | Holding::ChunksOfFile if self.are_held() => return Vec::new(),
            Holding::Chunks if self.are_held() => return vec![self.image.position],
            _ => {}
        }
        let mask = self.mask.as_ref().map(|mask| mask.position);
        let all = [Some(self.image.position), mask, self.seek];
        all.into_iter().flatten().collect()
    }

    /// The use of the body field at `position`.
    pub(crate) fn source_of(&self, position: usize) -> Option<Source> {
        if position == self.image.position {
            return Some(match self.files() {
                Some(_) => Source::File,
                None if self.are_held() => Source::Held,
                None => Source::Image,
            });
        }
        let mask = self.mask.as_ref()?;
        (position == mask.position).then_some(Source::Mask)
    }

    /// Whether it moves pixels.
    pub(crate) fn moves_pixels(&self) -> bool {
        self.made.moves_pixels()
    }

    /// Width and height of all stored pictures. `None` for variable-size pictures.
    pub(crate) fn stored_size(&self) -> Option<(u32, u32)> {
        self.image.size.map(|(width, height, _)| (width, height))
    }

    /// What a view shows of a row's picture.
    pub(crate) fn geometry(
        &self,
        pack: &Pack,
        row: Row,
        seeds: &[u64],
        view: u32,
    ) -> Result<Geometry, LoadError> {
        let size = match self.stored_size() {
            Some(size) => Some(size),
            None => pack
                .told(pack.item_shape(&self.image.name, row.sample))?
                .and_then(|(height, width, _)| {
                    Some((u32::try_from(width).ok()?, u32::try_from(height).ok()?))
                }),
        };
        let size = size.ok_or_else(|| {
            let (path, sample) = (pack.file_path().display(), row.sample);
            LoadError::Option(format!(
                "{path}: sample {sample}: the pack does not say how large its image is"
            ))
        })?;
        let drawn = self.made.geometry(key(seeds, row), view, size);
        drawn.map_err(|error| bad_sample(pack, row.sample, error))
    }

    /// The output.
    pub(crate) fn made(&self) -> Output {
        self.plan.output()
    }

    /// Element type, shape and views of the output.
    pub(crate) fn output(&self, source: Source) -> (DType, Vec<usize>, u32) {
        let output = self.plan.output();
        let size = |n: u32| to_usize(n);
        let (height, width) = (size(output.height), size(output.width));
        if source == Source::Mask {
            let mut shape = vec![height, width];
            // The mask keeps its shape in the pack, with or without channels.
            if let Some(mask) = self.mask.as_ref().filter(|mask| !mask.is_flat) {
                shape.push(mask.channels.into());
            }
            return (DType::U8, shape, output.views);
        }
        let channels = output.channels.into();
        let shape = match output.layout {
            Layout::Hwc => vec![height, width, channels],
            Layout::Chw => vec![channels, height, width],
        };
        (output.dtype, shape, output.views)
    }

    /// The size of a sample's image, and its pixels if it needs decoding.
    pub(crate) fn decoded(
        &self,
        pack: &Pack,
        items: &StepItems,
        row: Row,
    ) -> Result<(ImageSize, Option<Image>), LoadError> {
        let mut scratch = Vec::new();
        let item = items.item(self.image.position, row.sample, &mut scratch)?;
        let stored = to_u64(item.len());
        let channels = self.plan.output().channels;
        let size = |width: u32, height: u32| {
            let pixels = u64::from(width) * u64::from(height);
            ImageSize {
                stored,
                decoded: pixels * u64::from(channels),
                pixels,
                images: 1,
            }
        };
        match self.image.picture(pack, row.sample, item, None)? {
            Picture::Raw(raw) => {
                raw.check()
                    .map_err(|error| bad_sample(pack, row.sample, error.into()))?;
                Ok((size(raw.width, raw.height), None))
            }
            Picture::Encoded(encoded) => {
                let color = if channels == 1 {
                    Color::Gray
                } else {
                    Color::Rgb
                };
                let options = DecodeOptions {
                    color,
                    ..DecodeOptions::default()
                };
                let image = Decoder::new(options).decode(encoded.bytes);
                let image = image.map_err(|error| bad_sample(pack, row.sample, error.into()))?;
                Ok((size(image.width, image.height), Some(image)))
            }
        }
    }

    /// Mixes the images of a finished batch if the augmentation requires it, or returns how the device will mix them.
    pub(crate) fn mix(
        &self,
        outputs: &Outputs,
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
    ) -> Result<Option<Mix>, LoadError> {
        let keys: Vec<SampleKey> = rows.iter().map(|row| key(seeds, *row)).collect();
        if self.finish.is_some() {
            return Ok(self.made.mixed(&keys));
        }
        let Some(field) = outputs.fields.iter().find(|f| f.source == Source::Image) else {
            return Ok(None);
        };
        let len = rows.len() * field.item_bytes;
        let batch = slot.get_mut(field.offset..field.offset + len);
        let mixed = self.plan.mix(&keys, batch.unwrap_or_default());
        mixed.map_err(|error| LoadError::Option(error.to_string()))
    }
}

impl PictureField {
    fn new(schema: &Schema, field: &Field) -> Result<Self, AugmentError> {
        let position = schema.body().position(|(_, f)| f.name == field.name);
        let source = ImageSource::of_field(field)?;
        let size = source
            .size
            .map(|size| (size.width, size.height, source.channels));
        // Decoded masks have one channel.
        let is_mask = field.kind == FieldKind::Image && field.role == Some(Role::Mask);
        Ok(Self {
            name: field.name.clone(),
            position: position.unwrap_or(0),
            size,
            channels: if is_mask { 1 } else { source.channels },
            is_flat: is_mask || (field.kind == FieldKind::Tensor && field.shape.len() == 2),
        })
    }

    /// The item of `sample` as a picture.
    fn picture<'a>(
        &self,
        pack: &Pack,
        sample: u64,
        item: &'a [u8],
        seek_index: Option<&'a [u8]>,
    ) -> Result<Picture<'a>, ReadError> {
        let raw = |(width, height, channels)| {
            Ok(Picture::Raw(Pixels {
                data: item,
                width,
                height,
                channels,
            }))
        };
        if let Some(size) = self.size {
            return raw(size);
        }
        if pack.told(pack.coding(&self.name, sample))? == Some(Coding::Raw) {
            let shape = pack.told(pack.item_shape(&self.name, sample))?;
            let (h, w, c) = shape.unwrap_or((0, 0, 0));
            let size = u32::try_from(w).ok().zip(u32::try_from(h).ok());
            let (width, height) = size.unwrap_or((0, 0));
            return raw((width, height, u8::try_from(c).unwrap_or(0)));
        }
        Ok(Picture::Encoded(Encoded {
            bytes: item,
            seek_index: seek_index.filter(|index| !index.is_empty()),
        }))
    }
}

/// Applies the augmentation, on one thread.
#[derive(Debug)]
pub(crate) struct PictureFiller {
    augmenter: Augmenter,
    image: PictureField,
    mask: Option<PictureField>,
    seek: Option<usize>,
    seeds: Arc<[u64]>,
    /// The limits of files that the device decodes.
    files: Option<FileLimits>,
    refused: Arc<RefusedFiles>,
    /// Buffers for decompressed items, one per field.
    scratch: [Vec<u8>; 3],
}

/// The destination of the views of one sample.
#[derive(Debug, Default)]
pub(crate) struct Views<'a> {
    images: Vec<&'a mut [u8]>,
    masks: Vec<&'a mut [u8]>,
}

impl<'a> Views<'a> {
    pub(crate) fn push(&mut self, source: Source, to: &'a mut [u8]) {
        match source {
            Source::Mask => self.masks.push(to),
            _ => self.images.push(to),
        }
    }
}

impl PictureFiller {
    pub(crate) fn new(pictures: &Pictures, seeds: &Arc<[u64]>) -> Self {
        Self {
            augmenter: Augmenter::new(Arc::clone(&pictures.plan)),
            image: pictures.image.clone(),
            mask: pictures.mask.clone(),
            seek: pictures.seek,
            seeds: Arc::clone(seeds),
            files: pictures.files(),
            refused: Arc::clone(&pictures.refused),
            scratch: Default::default(),
        }
    }

    /// Makes the views of one sample, from `pixels` if its image is decoded already.
    pub(crate) fn fill(
        &mut self,
        pack: &Arc<Pack>,
        items: &StepItems,
        row: Row,
        pixels: Option<Pixels<'_>>,
        views: &mut Views<'_>,
    ) -> Result<(), LoadError> {
        let sample = row.sample;
        let [for_image, for_seek, for_mask] = &mut self.scratch;
        let image = items.item(self.image.position, sample, for_image)?;
        let seek = match self.seek {
            Some(position) => Some(items.item(position, sample, for_seek)?),
            None => None,
        };
        let mask = match &self.mask {
            Some(field) => {
                let item = items.item(field.position, sample, for_mask)?;
                Some(field.picture(pack, sample, item, None)?)
            }
            None => None,
        };
        let image = match pixels {
            Some(pixels) => Picture::Raw(pixels),
            None => self.image.picture(pack, sample, image, seek)?,
        };
        let key = key(&self.seeds, row);
        if let (Some(limits), [place]) = (self.files, views.images.as_mut_slice()) {
            let limits = (!self.refused.has(row)).then_some(limits);
            let applied = file_or_pixels(&mut self.augmenter, limits, key, image, place);
            return applied.map_err(|source| bad_sample(pack, sample, source));
        }
        let applied = self
            .augmenter
            .apply(key, image, mask, &mut views.images, &mut views.masks);
        applied.map_err(|source| bad_sample(pack, sample, source))
    }
}

/// Writes a picture into the slot: its file if the device decodes it, otherwise its pixels.
fn file_or_pixels(
    augmenter: &mut Augmenter,
    limits: Option<FileLimits>,
    key: SampleKey,
    image: Picture<'_>,
    place: &mut [u8],
) -> Result<(), AugmentError> {
    let n_bytes = augmenter.plan().item_bytes();
    let (head, rest) = place.split_at_mut(FileHead::BYTES.min(place.len()));
    let mut told = FileHead::Pixels;
    let channels = augmenter.plan().output().channels;
    let size = limits.and_then(|limits| device_file(image, limits, channels));
    match (image, size) {
        (Picture::Encoded(encoded), Some((width, height))) => {
            let len = encoded.bytes.len();
            let to = rest.get_mut(..len).unwrap_or_default();
            to.copy_from_slice(encoded.bytes);
            told = FileHead::File {
                len: u32::try_from(len).unwrap_or(0),
                width,
                height,
            };
        }
        _ => {
            let pixels = rest.get_mut(..n_bytes).unwrap_or_default();
            augmenter.apply(key, image, None, &mut [pixels], &mut [])?;
        }
    }
    head.copy_from_slice(&told.to_bytes());
    Ok(())
}

/// The size of a picture whose file the device decodes. It must be a complete 8-bit JPEG file within the limits, with
/// luma/chroma colours and as many channels as the output.
fn device_file(image: Picture<'_>, limits: FileLimits, channels: u8) -> Option<(u32, u32)> {
    let Picture::Encoded(encoded) = image else {
        return None;
    };
    // The host's decoder reports any errors in the file.
    let info = check_structure(encoded.bytes).ok()?;
    let is_plain = info.format == ImageFormat::Jpeg && info.bit_depth == 8 && !info.stores_rgb;
    let size = (info.width, info.height);
    let is_admitted = limits.admit(encoded.bytes.len(), size, channels);
    (is_plain && info.channels == channels && is_admitted).then_some(size)
}

pub(crate) fn bad_sample(pack: &Pack, sample: u64, source: AugmentError) -> LoadError {
    LoadError::Sample {
        path: pack.file_path().to_owned(),
        sample,
        chunk: pack.geometry().locate(sample).0,
        file: file_of(pack, sample),
        source: Box::new(source),
    }
}

/// The random key for the augmentation of a row.
fn key(seeds: &[u64], row: Row) -> SampleKey {
    SampleKey {
        seed: seeds.get(row.pack).copied().unwrap_or(0),
        epoch: row.epoch,
        sample: row.sample,
    }
}

/// The sample's file in the source, for messages.
fn file_of(pack: &Pack, sample: u64) -> Option<String> {
    let path = pack.path(sample).ok().flatten()?;
    Some(String::from_utf8_lossy(&path).escape_debug().to_string())
}
