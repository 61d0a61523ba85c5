//! Packs, read through the public loader.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use packds_reader::arena::{SlotMut, SlotRef};
use packds_reader::augment::Augment;
use packds_reader::device::{Device, DeviceError, Done, Transfer};
use packds_reader::loader::Loader;
use packds_reader::plan::Order;

use super::feed::{Feed, Take};
use super::order::{Course, OrderName};
use crate::BenchError;

/// A loader with default options. Batches are delivered in its ring's slots, as for a device. Batches that
/// could be borrowed are copied, because every other format delivers to its own memory too.
pub(crate) struct PackFeed {
    loader: Loader,
    image: String,
    label: String,
    labels: Vec<i64>,
}

impl PackFeed {
    pub(crate) fn open(
        path: &Path,
        course: &Course,
        augment: Option<&str>,
    ) -> Result<Self, BenchError> {
        let order = match course.order {
            OrderName::Sequential => Order::Sequential,
            OrderName::PerSample => Order::Random,
            OrderName::Chunk => Order::Chunks,
        };
        let pack = packds_reader::open(path)?;
        let name = |role| {
            let mut fields = pack.schema().fields().iter();
            let field = fields.find(|field| field.role == Some(role));
            field.map(|field| field.name.clone()).unwrap_or_default()
        };
        let image = name(packds_format::Role::Image);
        let label = name(packds_format::Role::Label);
        let threads = NonZero::new(course.threads).unwrap_or(NonZero::<usize>::MIN);
        let mut builder = Loader::builder(pack)
            .batch(u32::try_from(course.batch).unwrap_or(1))
            .order(order)
            .seed(course.seed)
            .threads(threads)
            .device(Arc::new(Staging));
        if let Some(words) = augment {
            builder = builder.augment(Augment::parse(words).map_err(BenchError::augment)?);
        }
        Ok(Self {
            loader: builder.build()?,
            image,
            label,
            labels: Vec::new(),
        })
    }
}

impl Feed for PackFeed {
    fn epoch(&mut self, epoch: u32, take: &mut Take<'_>) -> Result<(), BenchError> {
        for batch in self.loader.epoch(epoch)? {
            let batch = batch?;
            let pixels = batch.field(&self.image)?;
            self.labels.clear();
            if let Ok(labels) = batch.elements::<i64>(&self.label) {
                self.labels.extend_from_slice(labels);
            } else if let Ok(labels) = batch.elements::<i32>(&self.label) {
                self.labels.extend(labels.iter().copied().map(i64::from));
            } else {
                self.labels.resize(batch.len(), 0);
            }
            if !take(pixels.bytes, &self.labels) {
                break;
            }
        }
        Ok(())
    }
}

/// Memory that batches are only read from.
#[derive(Debug)]
struct Staging;

impl Device for Staging {
    fn name(&self) -> &'static str {
        "staging"
    }

    fn recycle(&self, _: &mut SlotMut) {}

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        Ok(Box::new(Done))
    }
}
