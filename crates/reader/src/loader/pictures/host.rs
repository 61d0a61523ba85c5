//! Images that the host makes, or their pixels for a device.

use std::sync::Arc;

use packds_pixels::Pixels;

use super::files::{Files, file_or_pixels};
use super::{PictureField, Pictures, bad_sample, key};
use crate::Pack;
use crate::augment::{Augmenter, BoundingBox, Input, Picture};
use crate::fetch::StepItems;
use crate::loader::error::LoadError;
use crate::loader::filling::{Row, Variable};
use crate::loader::outputs::{Contents, Source};

/// Applies the host's part of the augmentation. Each thread has its own filler.
#[derive(Debug)]
pub(crate) struct PictureFiller {
    augmenter: Augmenter,
    image: PictureField,
    mask: Option<PictureField>,
    seek: Option<usize>,
    contents: Arc<Contents>,
    files: Option<Arc<Files>>,
    /// Buffers for decompressed items, one for each field.
    scratch: [Vec<u8>; 3],
    /// The image and the mask, if their size depends on the sample.
    varied: [Vec<u8>; 2],
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
    pub(crate) fn new(pictures: &Pictures, contents: &Arc<Contents>) -> Self {
        Self {
            augmenter: Augmenter::new(Arc::clone(&pictures.plan)),
            image: pictures.image.clone(),
            mask: pictures.mask.clone(),
            seek: pictures.seek,
            contents: Arc::clone(contents),
            files: pictures.files().map(Arc::clone),
            scratch: Default::default(),
            varied: Default::default(),
        }
    }

    /// Applies the augmentation of another bucket from now on.
    pub(crate) fn turn_to(&mut self, pictures: &Pictures) {
        self.augmenter.turn_to(&pictures.plan);
    }

    /// Makes the views of one sample with these boxes. Uses `pixels` if its image is already decoded.
    pub(crate) fn fill(
        &mut self,
        pack: &Arc<Pack>,
        items: &StepItems,
        row: Row,
        (pixels, boxes): (Option<Pixels<'_>>, &[BoundingBox]),
        views: &mut Views<'_>,
    ) -> Result<(), LoadError> {
        let key = key(&self.contents.seeds, row);
        let stored = Stored { image: &self.image, mask: self.mask.as_ref(), seek: self.seek };
        let (image, mask) = stored.pictures(pack, items, row, pixels, &mut self.scratch)?;
        if let (Some(files), [place]) = (&self.files, views.images.as_mut_slice()) {
            let limits = files.limits_of(row);
            let applied = file_or_pixels(&mut self.augmenter, limits, key, image, place);
            return applied.map_err(|source| bad_sample(pack, row.sample, source));
        }
        let input = Input { key, image, mask, boxes };
        let applied = self.augmenter.apply(input, &mut views.images, &mut views.masks);
        applied.map_err(|source| bad_sample(pack, row.sample, source))
    }

    /// Like [`fill`](Self::fill), if the size of the result depends on the sample. `to` has the image, the mask, or
    /// both.
    pub(crate) fn fill_varied(
        &mut self,
        (pack, pictures): (&Arc<Pack>, &Pictures),
        items: &StepItems,
        row: Row,
        (pixels, boxes): (Option<Pixels<'_>>, &[BoundingBox]),
        to: Vec<(Source, &mut Variable)>,
    ) -> Result<(), LoadError> {
        let key = key(&self.contents.seeds, row);
        let stored = Stored { image: &self.image, mask: self.mask.as_ref(), seek: self.seek };
        let (image, mask) = stored.pictures(pack, items, row, pixels, &mut self.scratch)?;
        let is_loaded = |source| to.iter().any(|(loaded, _)| *loaded == source);
        let input = Input { key, image, mask: mask.filter(|_| is_loaded(Source::Mask)), boxes };
        let [of_image, of_mask] = &mut self.varied;
        let made = self.augmenter.apply_varied(input, of_image, of_mask);
        let size = made.map_err(|source| bad_sample(pack, row.sample, source))?;
        for (source, variable) in to {
            let made = if source == Source::Mask { &*of_mask } else { &*of_image };
            variable.push(made, &pictures.shape(source, size));
        }
        Ok(())
    }
}

/// The fields that an image is made from.
struct Stored<'a> {
    image: &'a PictureField,
    mask: Option<&'a PictureField>,
    seek: Option<usize>,
}

impl Stored<'_> {
    /// A sample's image and mask. Uses `pixels` if its image is already decoded.
    fn pictures<'a>(
        &self,
        pack: &Pack,
        items: &'a StepItems,
        row: Row,
        pixels: Option<Pixels<'a>>,
        [for_image, for_seek, for_mask]: &'a mut [Vec<u8>; 3],
    ) -> Result<(Picture<'a>, Option<Picture<'a>>), LoadError> {
        let sample = row.sample;
        let image = items.item(self.image.position, sample, for_image)?;
        let seek = match self.seek {
            Some(position) => Some(items.item(position, sample, for_seek)?),
            None => None,
        };
        let mask = match self.mask {
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
        Ok((image, mask))
    }
}
