//! Keeps the samples of one step in memory, so that the work on them can be repeated and timed. The loader can then
//! make batches without reading, decoding or transforming. Only the doctor uses this, not training.

use std::collections::BTreeMap;
use std::sync::Arc;

use packds_pixels::{Image, Pixels};

use super::error::LoadError;
use super::filling::Row;
use super::pictures::Pictures;
use super::schedule::{EpochSchedule, Sequence};
use super::{BadSamples, Loader};
use crate::fetch::StepItems;

/// Maximum number of samples that are kept. They are repeated to fill a batch of any size.
const MOST_SAMPLES: usize = 64;
/// After this many bytes of decoded pixels, no more samples are kept.
const MOST_BYTES: u64 = 256 << 20;

/// The form in which samples are kept. The stages before this form are not repeated.
#[derive(Debug)]
enum Form {
    /// Stored items. They are decoded and transformed.
    Raw,
    /// Decoded pixels. They are transformed.
    Decoded,
    /// The slot of a finished batch. Its rows are copied.
    Processed(Vec<u8>),
}

/// A batch that is made repeatedly.
#[derive(Debug)]
pub struct Kept {
    pub(crate) samples: Arc<Samples>,
    form: Form,
}

/// The samples, in all forms except the finished batch.
#[derive(Debug)]
pub(crate) struct Samples {
    /// The schedule that the samples came from. It has been stopped and does not read any more.
    pub(crate) schedule: EpochSchedule,
    pub(crate) epoch: u32,
    pub(crate) bucket: usize,
    pub(crate) rows: Vec<Row>,
    pub(crate) items: Arc<[Option<StepItems>]>,
    /// The decoded pixels of each sample, by pack and number.
    pixels: BTreeMap<(usize, u64), Image>,
    size: ImageSize,
}

/// Total size of the images of the kept samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImageSize {
    /// Stored bytes.
    pub stored: u64,
    /// Bytes of pixels.
    pub decoded: u64,
    /// Number of pixels.
    pub pixels: u64,
    /// Number of images.
    pub images: u64,
}

impl Kept {
    /// Keeps the first samples of the loader's first step as stored.
    ///
    /// # Errors
    /// [`LoadError`], as for the step itself.
    pub fn take(loader: &Loader) -> Result<Self, LoadError> {
        let sequence = loader.sequence(0)?;
        let epoch = sequence.number();
        let schedule = EpochSchedule::start(sequence, &loader.fetches, 0)?;
        let (rows, _) = schedule.rows(0)?;
        let items = schedule.items(0)?;
        schedule.stop();
        let (bucket, pixels) = (schedule.bucket(0), BTreeMap::new());
        let mut samples =
            Samples { schedule, epoch, bucket, rows: Vec::new(), items, pixels, size: ImageSize::default() };
        for row in rows.iter().take(MOST_SAMPLES) {
            match samples.add(loader, *row) {
                Err(error) if loader.shared.bad_samples == BadSamples::Error => return Err(error),
                // Bad samples are skipped here, even if training replaces them.
                Err(_) => {}
                Ok(()) if samples.size.decoded > MOST_BYTES => break,
                Ok(()) => {}
            }
        }
        if samples.rows.is_empty() {
            return Err(LoadError::Option(
                "no sample of the first batch can be decoded: run `packds verify`".to_owned(),
            ));
        }
        let own = samples.rows.clone();
        samples.rows = own.iter().copied().cycle().take(rows.len()).collect();
        Ok(Self { samples: Arc::new(samples), form: Form::Raw })
    }

    /// The same samples, decoded. `None` if they do not need to be decoded.
    pub fn decoded(&self) -> Option<Self> {
        let is_decoded = !self.samples.pixels.is_empty();
        is_decoded.then(|| Self { samples: Arc::clone(&self.samples), form: Form::Decoded })
    }

    /// The same samples as a finished batch of `loader`. `None` if their images are not processed, or have different
    /// sizes.
    ///
    /// # Errors
    /// [`LoadError`], as for that batch.
    pub fn processed(self: &Arc<Self>, loader: &Loader) -> Result<Option<Self>, LoadError> {
        // Images of different sizes are not in the slot.
        let pictures = loader.contents.of(self.samples.bucket).outputs.pictures_on_host();
        if pictures.is_none_or(Pictures::sizes_vary) {
            return Ok(None);
        }
        let Some(batch) = loader.repeat(self)?.next().transpose()? else { return Ok(None) };
        let slot = batch.slot().map(|slot| slot.to_vec());
        Ok(slot.map(|slot| Self { samples: Arc::clone(&self.samples), form: Form::Processed(slot) }))
    }

    /// The size of the images.
    pub fn size(&self) -> ImageSize {
        self.samples.size
    }

    /// The pixels of a row's image, if they are kept.
    pub(crate) fn pixels(&self, row: Row) -> Option<Pixels<'_>> {
        if !matches!(self.form, Form::Decoded) {
            return None;
        }
        let image = self.samples.pixels.get(&(row.pack, row.sample))?;
        Some(Pixels { data: &image.data, width: image.width, height: image.height, channels: image.channels })
    }

    /// The bytes of the finished batch, if they are kept.
    pub(crate) fn batch(&self) -> Option<&[u8]> {
        match &self.form {
            Form::Processed(batch) => Some(batch),
            Form::Raw | Form::Decoded => None,
        }
    }
}

impl Samples {
    fn add(&mut self, loader: &Loader, row: Row) -> Result<(), LoadError> {
        let items = self.items.get(row.pack).and_then(Option::as_ref);
        let (Some(items), Some(pack)) = (items, loader.contents.first().packs.get(row.pack)) else {
            return Ok(());
        };
        if let Some(pictures) = loader.contents.of(self.bucket).outputs.pictures_on_host() {
            let (size, image) = pictures.decoded(pack, items, row)?;
            self.size.stored += size.stored;
            self.size.decoded += size.decoded;
            self.size.pixels += size.pixels;
            self.size.images += size.images;
            if let Some(image) = image {
                self.pixels.insert((row.pack, row.sample), image);
            }
        }
        self.rows.push(row);
        Ok(())
    }
}

impl Loader {
    /// Returns an endless sequence of batches of the kept samples.
    ///
    /// # Errors
    /// [`LoadError`], as for an epoch.
    #[doc(hidden)]
    pub fn repeat(&self, kept: &Arc<Kept>) -> Result<super::Epoch, LoadError> {
        self.start(Sequence::Kept(Arc::clone(kept)), 0)
    }
}
