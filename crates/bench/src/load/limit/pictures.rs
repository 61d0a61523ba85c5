//! The limit of augmentation: the same crops of the same samples, decoded and resized by the same functions, without
//! planning, batching or synchronization. Steps after the resize (colours, floats) are not included.

use packds_system::to_usize;
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packds_format::{Coding, FieldKind, FormatError, Role};
use packds_pixels::{Color, CropResize, DecodeOptions, Decoder, Encoded, PixelError, Pixels, Resizer, probe};
use packds_reader::augment::{Augment, AugmentPlan, Buckets, ImageSource, SampleKey, stored_boxes};
use packds_reader::loader::Loader;

use crate::BenchError;
use crate::threads::on_threads;

/// Number of samples that a thread takes at a time.
const TAKEN: usize = 8;

pub(crate) struct CropResizes<'a> {
    loader: &'a Loader,
    /// One for each bucket.
    plans: Vec<AugmentPlan>,
    buckets: Option<&'a Buckets>,
    /// Schema numbers of the image field and its seek indexes.
    image: usize,
    seek: Option<usize>,
    /// Schema number of the boxes.
    boxes: Option<usize>,
    name: String,
    /// Height, width and channels, if all images have one size.
    size: Option<(u32, u32, u8)>,
    /// Whether the first image is an encoded file. This determines the limit's name.
    decodes: bool,
    seed: u64,
    threads: usize,
}

struct Work<'a> {
    image: Image<'a>,
    views: Vec<CropResize>,
}

enum Image<'a> {
    Raw(Pixels<'a>),
    File(Encoded<'a>),
}

impl<'a> CropResizes<'a> {
    pub(super) fn new(
        loader: &'a Loader,
        (augment, buckets): (&Augment, Option<&'a Buckets>),
        seed: u64,
        threads: usize,
    ) -> Result<Self, BenchError> {
        let schema = loader.pack().schema();
        let mut body = schema.body();
        let found = body.find(|(_, field)| field.role == Some(Role::Image));
        let (image, field) = found.ok_or_else(|| BenchError::wrong("fields of the pack", "an image", "none"))?;
        let source = ImageSource::of_field(field).map_err(BenchError::Augment)?;
        let plan = |augment: &Augment| AugmentPlan::new(augment, &source);
        let plans = match buckets {
            None => plan(augment).map(|plan| vec![plan]),
            Some(all) => all.sizes().iter().map(|size| plan(&augment.in_bucket(*size)?)).collect(),
        };
        let seek = schema.seek_index_of(&field.name).map(|(number, _)| number);
        let size = source.size.filter(|_| field.kind == FieldKind::Tensor);
        let pack = loader.pack();
        let coding = pack.located(pack.coding(&field.name, 0))?;
        Ok(Self {
            loader,
            plans: plans.map_err(BenchError::Augment)?,
            buckets,
            image,
            seek,
            boxes: schema.by_role(Role::Boxes, None).map(|(number, _)| number),
            name: field.name.clone(),
            size: size.map(|size| (size.height, size.width, source.channels)),
            decodes: field.kind != FieldKind::Tensor && coding != Some(Coding::Raw),
            seed,
            threads,
        })
    }

    pub(super) const fn name(&self) -> &'static str {
        if self.decodes { "decode_crop_resize" } else { "resize" }
    }

    pub(super) fn run(&self, epoch: u32, n_batches: u64) -> Result<Duration, BenchError> {
        // Crops and item locations are computed before timing starts.
        let plan = self.loader.schedule().epoch(epoch)?;
        let samples = (0..n_batches).flat_map(|step| plan.batch(step));
        let work: Vec<Work<'_>> = samples.map(|slot| self.work(epoch, slot.sample)).collect::<Result<_, _>>()?;
        let next = AtomicUsize::new(0);
        let started = Instant::now();
        let outcomes = on_threads(self.threads, || self.work_off(&work, &next))?;
        let time = started.elapsed();
        outcomes.into_iter().collect::<Result<(), _>>().map_err(BenchError::pixels(self.loader.pack().file_path()))?;
        Ok(time)
    }

    fn work(&self, epoch: u32, sample: u64) -> Result<Work<'a>, BenchError> {
        let pack = self.loader.pack();
        let borrowed = |field| -> Result<&'a [u8], BenchError> {
            match pack.located(pack.item(field, sample))? {
                std::borrow::Cow::Borrowed(item) => Ok(item),
                std::borrow::Cow::Owned(_) => {
                    let expected = "images without further compression";
                    Err(BenchError::wrong("images of the pack", expected, "compressed chunks"))
                }
            }
        };
        let item = borrowed(self.image)?;
        let seek_index = self.seek.map(borrowed).transpose()?;
        let raw = pack.located(self.raw_shape(sample))?;
        let (height, width, image) = match raw {
            Some((height, width, channels)) => {
                (height, width, Image::Raw(Pixels { data: item, width, height, channels }))
            }
            None => {
                let info = probe(item).map_err(BenchError::pixels(pack.file_path()))?;
                let seek_index = seek_index.filter(|index| !index.is_empty());
                (info.height, info.width, Image::File(Encoded { bytes: item, seek_index }))
            }
        };
        let key = SampleKey { seed: self.seed, epoch, sample };
        let boxes = self.boxes.map(borrowed).transpose()?.map(stored_boxes).unwrap_or_default();
        let bucket = self.buckets.map_or(0, |buckets| buckets.nearest(width, height));
        // There is a plan for each bucket.
        let views = self.plans[usize::from(bucket)].crops(key, (width, height), &boxes);
        Ok(Work { image, views: views.map_err(BenchError::Augment)? })
    }

    /// Height, width and channels of a sample with raw pixels. `None` for files.
    fn raw_shape(&self, sample: u64) -> Result<Option<(u32, u32, u8)>, FormatError> {
        if self.size.is_some() {
            return Ok(self.size);
        }
        let pack = self.loader.pack();
        if pack.coding(&self.name, sample)? != Some(Coding::Raw) {
            return Ok(None);
        }
        let shape = pack.item_shape(&self.name, sample)?;
        Ok(shape.and_then(|(height, width, channels)| {
            Some((u32::try_from(height).ok()?, u32::try_from(width).ok()?, u8::try_from(channels).ok()?))
        }))
    }

    fn work_off(&self, work: &[Work<'_>], next: &AtomicUsize) -> Result<(), PixelError> {
        let output = self.plans[0].output();
        let color = if output.channels == 1 { Color::Gray } else { Color::Rgb };
        let mut decoder = Decoder::new(DecodeOptions { color, ..DecodeOptions::default() });
        let mut resizer = Resizer::new();
        let mut outs = vec![Vec::new(); to_usize(output.views)];
        loop {
            let first = next.fetch_add(TAKEN, Ordering::Relaxed);
            let mine = work.get(first..(first + TAKEN).min(work.len())).unwrap_or_default();
            if mine.is_empty() {
                return Ok(());
            }
            for work in mine {
                for (view, out) in work.views.iter().zip(&mut outs) {
                    let n_bytes = to_usize(view.width) * to_usize(view.height) * usize::from(output.channels);
                    out.resize(n_bytes, 0);
                }
                let mut views: Vec<&mut [u8]> = outs.iter_mut().map(Vec::as_mut_slice).collect();
                match work.image {
                    Image::Raw(image) => {
                        for (view, out) in work.views.iter().zip(views) {
                            resizer.crop_resize_into(image, view, out)?;
                        }
                    }
                    Image::File(image) => {
                        decoder.crop_resize_into(image, &work.views, &mut views)?;
                    }
                }
                black_box(&outs);
            }
        }
    }
}
