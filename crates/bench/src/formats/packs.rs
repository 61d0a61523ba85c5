//! Reads packs through the public loader.

use std::num::NonZero;
use std::path::Path;
use std::sync::Arc;

use packds_format::Role;
use packds_reader::device::OwnSlots;
use packds_reader::loader::Loader;
use packds_reader::plan::Order;

use super::feed::{Feed, Take};
use super::order::{OrderName, Schedule};
use crate::BenchError;
use crate::load::parse_augment;

/// A loader with default options. Batches are delivered in the slots of its ring, as for a device. Batches that could
/// be lent are copied too, because every other format also copies its batches.
pub(crate) struct PackFeed {
    loader: Loader,
    image: String,
    label: String,
    labels: Vec<i64>,
}

impl PackFeed {
    pub(crate) fn open(path: &Path, schedule: &Schedule, augment: &str) -> Result<Self, BenchError> {
        let order = match schedule.order {
            OrderName::Sequential => Order::Sequential,
            OrderName::PerSample => Order::Random,
            OrderName::Chunk => Order::Chunks,
        };
        let pack = packds_reader::open(path)?;
        let name = |role| pack.schema().by_role(role, None).map(|(_, field)| field.name.clone()).unwrap_or_default();
        let (image, label) = (name(Role::Image), name(Role::Label));
        let threads = NonZero::new(schedule.threads).unwrap_or(NonZero::<usize>::MIN);
        let mut builder = Loader::builder(pack)
            .batch(u32::try_from(schedule.batch).unwrap_or(1))
            .order(order)
            .seed(schedule.seed)
            .threads(threads)
            .device(Arc::new(OwnSlots));
        if let Some(augment) = parse_augment(augment)? {
            builder = builder.augment(augment);
        }
        Ok(Self { loader: builder.build()?, image, label, labels: Vec::new() })
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
