//! The augmentation of images: which fields they are in, and where they are made.
//!
//! `host` makes images or pixels. `held` writes which crops a device cuts out of the images that it holds. `files`
//! writes JPEG files that a device decodes.

mod files;
mod held;
mod host;

use packds_system::{to_u64, to_usize};
use std::sync::Arc;

use packds_format::{Coding, DType, Field, FieldKind, Role, Schema, Store};
use packds_pixels::{Color, DecodeOptions, Decoder, Encoded, Image, Layout, Pixels};

use super::boxes::Boxes;
use super::error::LoadError;
use super::filling::Row;
use super::kept::ImageSize;
use super::outputs::{BatchField, Outputs, Source};
use crate::arena::SlotMut;
use crate::augment::{
    Augment, AugmentError, AugmentPlan, BoundingBox, Geometry, ImageSource, Located, Mix, Movement, Output, Picture,
    SampleKey, Size,
};
use crate::device::{Changes, ColorOp, Finish, Frame, OnDevice, Patch, Resampling, Windows};
use crate::fetch::StepItems;
use crate::{Pack, ReadError};

pub(crate) use self::files::Files;
pub(crate) use self::held::{ChunkSource, Held};
pub(crate) use self::host::{PictureFiller, Views};

/// The augmented image field, its mask and its seek index.
#[derive(Debug)]
pub(crate) struct Pictures {
    /// The complete augmentation.
    made: AugmentPlan,
    /// The host's part of the augmentation.
    plan: Arc<AugmentPlan>,
    place: Place,
    /// Why a device that holds or decodes images cannot hold or decode these, as a sentence. `None` if nothing prevents
    /// it.
    pub(crate) against: Option<&'static str>,
    image: PictureField,
    mask: Option<PictureField>,
    /// The position of the image's seek index in the body.
    seek: Option<usize>,
    /// The boxes that move with the image.
    boxes: Option<Boxes>,
}

/// Where images are made. [`Finish`] describes the device's part.
#[derive(Debug)]
enum Place {
    Host,
    /// The host makes the pixels, and the device does the rest.
    Pixels(Finish),
    /// On a device that holds the stored images.
    Held(Finish, Held),
    /// On a device that decodes their files.
    Files(Finish, Arc<Files>),
}

/// An image field in the body.
#[derive(Debug, Clone)]
pub(crate) struct PictureField {
    name: String,
    position: usize,
    /// Width, height and channels. `None` for variable-size images.
    size: Option<(u32, u32, u8)>,
    channels: u8,
    /// Whether its items have no channel dimension.
    is_flat: bool,
}

impl Pictures {
    /// Prepares `augment` for the images of `pack`: for the first field with the role image and for the first mask, if
    /// they are `wanted`. If the device finishes images, its part is left out.
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
                "{}: no loaded field contains images, so there is nothing to augment",
                pack.file_path().display()
            ))
        })?;
        let refused = |source| LoadError::Augment { path: pack.file_path().to_owned(), source: Box::new(source) };
        let source = ImageSource::of_field(image).map_err(refused)?;
        let made = AugmentPlan::new(augment, &source).map_err(refused)?;
        let has_mask = by_role(Role::Mask).is_some();
        let (place, against) = match Place::new(&made, source.size, image.kind, has_mask, device) {
            Ok(place) => (place, None),
            Err(why) => (Place::finishing(&made), Some(why)),
        };
        let host = match &place {
            Place::Host => None,
            Place::Files(..) => Some(augment.as_windows()),
            Place::Pixels(_) | Place::Held(..) => Some(augment.as_pixels()),
        };
        let plan = match host {
            Some(host) => AugmentPlan::new(&host, &source).map_err(refused)?,
            None => made.clone(),
        };
        let mask = by_role(Role::Mask).map(|field| PictureField::new(schema, field).map_err(refused)).transpose()?;
        let boxes = boxes_of(pack, &made, is_wanted)?;
        let seek = schema.seek_index_of(&image.name);
        Ok(Self {
            made,
            plan: Arc::new(plan),
            place,
            against,
            image: PictureField::new(schema, image).map_err(refused)?,
            mask,
            boxes,
            seek: seek.and_then(|(number, _)| schema.body().position(|(n, _)| n == number)),
        })
    }

    /// The device's part of the augmentation.
    pub(crate) fn finish(&self) -> Option<&Finish> {
        match &self.place {
            Place::Host => None,
            Place::Pixels(finish) | Place::Held(finish, _) | Place::Files(finish, _) => Some(finish),
        }
    }

    /// How the device holds the images. `None` if it does not hold them.
    pub(crate) fn held(&self) -> Option<Held> {
        match self.place {
            Place::Held(_, held) => Some(held),
            _ => None,
        }
    }

    /// The files that the device decodes. `None` if it does not decode files.
    pub(crate) fn files(&self) -> Option<&Arc<Files>> {
        match &self.place {
            Place::Files(_, files) => Some(files),
            _ => None,
        }
    }

    pub(crate) fn resampling(&self) -> Option<&Arc<Resampling>> {
        let windows = self.finish()?.windows.as_ref()?;
        windows.resampling.as_ref()
    }

    /// The field's name, and whether its items have the three dimensions of an image.
    pub(crate) fn image(&self) -> (&str, bool) {
        (&self.image.name, !self.image.is_flat)
    }

    /// Size of a stored image. `None` for variable-size images.
    pub(crate) fn picture_bytes(&self) -> Option<u64> {
        let (width, height, channels) = self.image.size?;
        let pixels = u64::from(width).checked_mul(height.into())?;
        pixels.checked_mul(channels.into())
    }

    /// The position of the field whose stored items are the input of the device. `None` if the host must process them
    /// first.
    pub(crate) fn unchanged(&self) -> Option<usize> {
        let is_unchanged = matches!(self.place, Place::Pixels(_)) && self.plan.changes_nothing();
        is_unchanged.then_some(self.image.position)
    }

    /// Writes what the device needs for `rows` into their slot. `finish` belongs to the image field. Returns the number
    /// of images that the host decoded although the device decodes files.
    pub(crate) fn write_finish(
        &self,
        (finish, field): (&Finish, &BatchField),
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
        source: Option<&ChunkSource<'_>>,
    ) -> Result<u64, LoadError> {
        finish.write_table(slot);
        self.write_changes(&finish.changes, slot, rows, seeds);
        match (&self.place, &finish.windows, source) {
            (Place::Files(_, files), Some(windows), _) => {
                self.write_file_windows((finish, windows), files, slot, field, rows, seeds)
            }
            (Place::Held(_, held), Some(windows), Some(source)) => {
                self.write_held_windows(windows, *held, slot, rows, seeds, source).map(|()| 0)
            }
            _ => Ok(0),
        }
    }

    /// The crop of an image that becomes a view of a row. If there is none, `lost` is the error message.
    fn frame(
        &self,
        key: SampleKey,
        view: u32,
        picture: Located,
        windows: &Windows,
        lost: &str,
    ) -> Result<Frame, LoadError> {
        let frame = self.plan.window(key, view, picture, windows.resampling.as_deref());
        let frame = frame.map_err(|error| LoadError::Option(error.to_string()))?;
        frame.ok_or_else(|| LoadError::Option(lost.to_owned()))
    }

    /// Writes colour changes, erased areas and mixing of `rows` for the device.
    fn write_changes(&self, changes: &Changes, slot: &mut [u8], rows: &[Row], seeds: &[u64]) {
        for view in 0..self.made.output().views {
            let patches = rows.iter().flat_map(|row| self.made.patches(key(seeds, *row), view));
            write_each(slot, changes.patches(view), patches.map(Patch::to_bytes));
            let n = changes.n_colors;
            let colors = rows.iter().flat_map(|row| self.made.colors(key(seeds, *row), view, n));
            write_each(slot, changes.colors(view), colors.map(ColorOp::to_bytes));
        }
        if changes.mixes {
            let shares = rows.iter().map(|row| self.made.share(key(seeds, *row)).to_bytes());
            write_each(slot, changes.shares(), shares);
        }
    }

    /// The body fields to read, by their positions.
    pub(crate) fn positions(&self) -> Vec<usize> {
        let boxes = self.boxes.as_ref().map(|boxes| boxes.position);
        match self.held() {
            Some(Held::All | Held::ChunksOfFile) => return boxes.into_iter().collect(),
            Some(Held::Chunks) => return boxes.into_iter().chain([self.image.position]).collect(),
            None => {}
        }
        let mask = self.mask.as_ref().map(|mask| mask.position);
        let all = [Some(self.image.position), mask, self.seek, boxes];
        all.into_iter().flatten().collect()
    }

    /// How the body field at `position` is used. `None` if the augmentation does not use it.
    pub(crate) fn source_of(&self, position: usize) -> Option<Source> {
        if position == self.image.position {
            return Some(match self.place {
                Place::Files(..) => Source::File,
                Place::Held(..) => Source::Held,
                Place::Host | Place::Pixels(_) => Source::Image,
            });
        }
        if self.boxes.as_ref().is_some_and(|boxes| boxes.concern(position)) {
            return Some(Source::Boxes(position));
        }
        let mask = self.mask.as_ref()?;
        (position == mask.position).then_some(Source::Mask)
    }

    pub(crate) fn moves_pixels(&self) -> bool {
        self.made.moves_pixels()
    }

    /// Width and height of all stored images. `None` for variable-size images.
    pub(crate) fn stored_size(&self) -> Option<(u32, u32)> {
        self.image.fixed_size()
    }

    /// The boxes that move with the images. `None` if nothing of them is loaded, or if the images do not move.
    pub(crate) fn boxes(&self) -> Option<&Boxes> {
        self.boxes.as_ref()
    }

    /// The loaded keypoints whose left and right points would swap in a mirror image, if they had names.
    pub(crate) fn unswapped_points(&self, outputs: &Outputs) -> Option<&str> {
        let points = self.boxes.as_ref().filter(|_| self.made.mirrors())?.unnamed_points.as_deref()?;
        outputs.fields.iter().any(|field| field.name == points).then_some(points)
    }

    /// The part of a row's image that a view shows.
    pub(crate) fn geometry(&self, pack: &Pack, row: Row, seeds: &[u64], view: u32) -> Result<Geometry, LoadError> {
        let boxes = self.boxes().map(|boxes| boxes.read(pack, row.sample)).transpose()?;
        let size = self.image.size_in(pack, row.sample)?;
        let drawn = self.made.geometry(key(seeds, row), view, size, boxes.as_deref().unwrap_or_default());
        drawn.map_err(|error| bad_sample(pack, row.sample, error))
    }

    /// How a view of a row's image moves places.
    pub(crate) fn movement(
        &self,
        (pack, row): (&Pack, Row),
        seeds: &[u64],
        view: u32,
        boxes: &[BoundingBox],
    ) -> Result<Movement, LoadError> {
        let size = self.image.size_in(pack, row.sample)?;
        let movement = self.made.movement(key(seeds, row), view, size, boxes);
        movement.map_err(|error| bad_sample(pack, row.sample, error))
    }

    pub(crate) fn made(&self) -> Output {
        self.plan.output()
    }

    /// Element type, item shape and number of views of the augmented image or of its mask.
    pub(crate) fn output(&self, source: Source) -> (DType, Vec<usize>, u32) {
        let output = self.plan.output();
        let (height, width) = (to_usize(output.height), to_usize(output.width));
        if source == Source::Mask {
            let mut shape = vec![height, width];
            // The mask keeps its shape from the pack, with or without channels.
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
            ImageSize { stored, decoded: pixels * u64::from(channels), pixels, images: 1 }
        };
        match self.image.picture(pack, row.sample, item, None)? {
            Picture::Raw(raw) => {
                raw.check().map_err(|error| bad_sample(pack, row.sample, error.into()))?;
                Ok((size(raw.width, raw.height), None))
            }
            Picture::Encoded(encoded) => {
                let color = if channels == 1 { Color::Gray } else { Color::Rgb };
                let options = DecodeOptions { color, ..DecodeOptions::default() };
                let image = Decoder::new(options).decode(encoded.bytes);
                let image = image.map_err(|error| bad_sample(pack, row.sample, error.into()))?;
                Ok((size(image.width, image.height), Some(image)))
            }
        }
    }

    /// Mixes the images of a finished batch if the augmentation requires it. If the device mixes them, only returns
    /// how to mix.
    pub(crate) fn mix(
        &self,
        outputs: &Outputs,
        slot: &mut SlotMut,
        rows: &[Row],
        seeds: &[u64],
    ) -> Result<Option<Mix>, LoadError> {
        let keys: Vec<SampleKey> = rows.iter().map(|row| key(seeds, *row)).collect();
        if self.finish().is_some() {
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

impl Place {
    /// Chooses where the images are made, from what the device and the augmentation allow. The error says why the
    /// device cannot hold or decode the images.
    fn new(
        made: &AugmentPlan,
        size: Option<Size>,
        kind: FieldKind,
        has_mask: bool,
        device: OnDevice,
    ) -> Result<Self, &'static str> {
        let held = |size, held| made.finish_windows(size).map(|finish| Self::Held(finish, held));
        let files = |limits| Arc::new(Files::new(limits));
        match (device, size) {
            (OnDevice::Nothing, _) => Ok(Self::Host),
            (OnDevice::Pixels, _) => Ok(Self::finishing(made)),
            (OnDevice::Files(_), _) if kind != FieldKind::Image => Err("the images are pixels, not files"),
            _ if has_mask => Err("the images have masks"),
            (OnDevice::Files(limits), _) => made.finish_files(limits).map(|finish| Self::Files(finish, files(limits))),
            (_, None) => Err("the images are files, vary in size, or are not stored as hwc"),
            (OnDevice::Held, Some(size)) => held(size, Held::All),
            (OnDevice::Chunks, Some(size)) => held(size, Held::Chunks),
            (OnDevice::ChunksOfFile, Some(size)) => held(size, Held::ChunksOfFile),
        }
    }

    /// Lets the device finish pixels, if there is work left and the device supports it.
    fn finishing(made: &AugmentPlan) -> Self {
        made.finish().map_or(Self::Host, Self::Pixels)
    }
}

impl PictureField {
    pub(crate) fn new(schema: &Schema, field: &Field) -> Result<Self, AugmentError> {
        let position = schema.body().position(|(_, f)| f.name == field.name);
        let source = ImageSource::of_field(field)?;
        let size = source.size.map(|size| (size.width, size.height, source.channels));
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

    /// Width and height of all stored images. `None` for variable-size images.
    pub(crate) fn fixed_size(&self) -> Option<(u32, u32)> {
        self.size.map(|(width, height, _)| (width, height))
    }

    /// Width and height of a sample's stored image.
    pub(crate) fn size_in(&self, pack: &Pack, sample: u64) -> Result<(u32, u32), LoadError> {
        let size = match self.fixed_size() {
            Some(size) => Some(size),
            None => pack
                .located(pack.item_shape(&self.name, sample))?
                .and_then(|(height, width, _)| Some((u32::try_from(width).ok()?, u32::try_from(height).ok()?))),
        };
        size.ok_or_else(|| {
            let path = pack.file_path().display();
            LoadError::Option(format!("{path}: sample {sample}: the pack does not store the size of its image"))
        })
    }

    fn picture<'a>(
        &self,
        pack: &Pack,
        sample: u64,
        item: &'a [u8],
        seek_index: Option<&'a [u8]>,
    ) -> Result<Picture<'a>, ReadError> {
        let raw = |(width, height, channels)| Ok(Picture::Raw(Pixels { data: item, width, height, channels }));
        if let Some(size) = self.size {
            return raw(size);
        }
        if pack.located(pack.coding(&self.name, sample))? == Some(Coding::Raw) {
            let shape = pack.located(pack.item_shape(&self.name, sample))?;
            let (h, w, c) = shape.unwrap_or((0, 0, 0));
            let size = u32::try_from(w).ok().zip(u32::try_from(h).ok());
            let (width, height) = size.unwrap_or((0, 0));
            return raw((width, height, u8::try_from(c).unwrap_or(0)));
        }
        Ok(Picture::Encoded(Encoded { bytes: item, seek_index: seek_index.filter(|index| !index.is_empty()) }))
    }
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

/// The boxes that move with the images, if at least one field of them is loaded.
fn boxes_of(pack: &Pack, made: &AugmentPlan, is_wanted: impl Fn(&Field) -> bool) -> Result<Option<Boxes>, LoadError> {
    let schema = pack.schema();
    let is_loaded = |boxes: &Boxes| {
        let mut loaded = schema.body().enumerate().filter(|(_, (_, field))| is_wanted(field));
        loaded.any(|(position, _)| boxes.concern(position))
    };
    let boxes = Boxes::of(schema).filter(is_loaded);
    match made.needs_boxes() {
        Some(word) if boxes.is_none() => Err(LoadError::Option(format!(
            "{}: {word} needs boxes, but no loaded field has the role boxes",
            pack.file_path().display()
        ))),
        _ => Ok(boxes.filter(|_| made.moves_pixels())),
    }
}

/// Writes entries into a slot, one after another.
fn write_each<const N: usize>(slot: &mut [u8], offset: usize, entries: impl Iterator<Item = [u8; N]>) {
    let (places, _) = slot.get_mut(offset..).unwrap_or_default().as_chunks_mut();
    for (entry, to) in entries.zip(places) {
        *to = entry;
    }
}

/// The random key for the augmentation of a row.
fn key(seeds: &[u64], row: Row) -> SampleKey {
    SampleKey { seed: seeds.get(row.pack).copied().unwrap_or(0), epoch: row.epoch, sample: row.sample }
}

fn file_of(pack: &Pack, sample: u64) -> Option<String> {
    let path = pack.path(sample).ok().flatten()?;
    Some(String::from_utf8_lossy(&path).escape_debug().to_string())
}
