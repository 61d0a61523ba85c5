//! A resident dataset: the images of all samples of a pack are on the GPU, as bytes. The kernel cuts crops out of them.

use packds_system::to_u64;
use std::io::{self, ErrorKind};
use std::num::NonZero;
use std::sync::Arc;

use packds_format::Uuid;
use packds_reader::arena::Arena;
use packds_reader::device::Resampling;
use packds_reader::loader::{Holdable, LoadError, Loader, Probe};
use packds_reader::plan::{Last, Order};

use crate::device::CudaDevice;
use crate::driver::{DevicePtr, Driver, Event, Stream};
use crate::error::CudaError;
use crate::staging::finish;

/// Size of a batch while the dataset is loading.
const BATCH_BYTES: u64 = 32 << 20;
/// Number of batches in progress while the dataset is loading.
const SLOTS: usize = 4;

/// Where the images of a loader's pack are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// All images are on the GPU. A batch consists of crops of them.
    Resident,
    /// The chunks of current batches are on the GPU. A batch consists of crops of their images.
    GpuWindow,
    /// The images are on the host: only the chunks of the current window. Each batch is copied to the GPU.
    HostWindow,
    /// The images are on the host. Each batch is copied to the GPU.
    Host,
}

packds_system::named!(Tier {
    Resident = "resident",
    GpuWindow = "gpu-window",
    HostWindow = "host-window",
    Host = "host",
});

impl Tier {
    /// The tier for a dataset of this size. It is resident if it takes at most 3/5 of the free memory, because a model
    /// also needs memory.
    #[must_use]
    pub const fn of(bytes: u64, free: u64) -> Self {
        if bytes <= free / 5 * 3 { Self::Resident } else { Self::Host }
    }
}

/// The images of a pack on the GPU.
#[derive(Debug)]
pub(crate) struct Resident {
    driver: Arc<dyn Driver>,
    pub(crate) pack: Uuid,
    /// The images of all samples in file order, followed by space for the padding of the last batch.
    pub(crate) images: DevicePtr,
    /// The taps for resizing areas of the images.
    pub(crate) tables: Option<Tables>,
}

/// The taps of a resampling, on the GPU.
#[derive(Debug)]
pub(crate) struct Tables {
    driver: Arc<dyn Driver>,
    pub(crate) resampling: Arc<Resampling>,
    pub(crate) taps: DevicePtr,
}

impl Tables {
    /// Copies the taps for resizing areas to a device.
    pub(crate) fn load(driver: &Arc<dyn Driver>, resampling: Arc<Resampling>) -> Result<Self, CudaError> {
        let end = End::new(Arc::clone(driver))?;
        let len = size_of_val(resampling.taps());
        let arena = Arena::new(1, len).map_err(of_host)?;
        let mut slot = arena.try_take().ok_or_else(|| of_host(ErrorKind::OutOfMemory.into()))?;
        for (to, word) in slot.as_chunks_mut().0.iter_mut().zip(resampling.taps()) {
            *to = word.to_le_bytes();
        }
        let taps = driver.allocate(to_u64(len), "tables for resizing")?;
        let tables = Self { taps, driver: Arc::clone(driver), resampling };
        // SAFETY: the arena outlives the registration, which ends below.
        unsafe { driver.register(slot.as_ptr(), slot.len())? };
        // SAFETY: source and destination have this many bytes, and the code waits until the copy is done.
        let copied = unsafe { driver.copy_in(slot.as_ptr(), tables.taps, len, end.stream) };
        let waited = end.wait();
        // SAFETY: the copy is done, or the driver has failed and no longer does anything.
        unsafe { driver.unregister(slot.as_ptr()) };
        copied.and(waited).map(|()| tables)
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        // SAFETY: the copy into the memory is done. Stagings read the memory, and keep it until their reads are done.
        unsafe { self.driver.free(self.taps) };
    }
}

impl Resident {
    /// Copies the images of a loader's pack to the device, with the same checksums as the loader. Also copies the taps
    /// for resizing them.
    pub(crate) fn load(device: &CudaDevice, probe: Probe<'_>, holdable: Holdable) -> Result<Self, LoadError> {
        let pack = probe.pack();
        let Holdable { field, bytes, resampling, .. } = holdable;
        let item = (bytes / pack.n_samples().max(1)).max(1);
        let rows = (BATCH_BYTES / item).clamp(1, pack.n_samples().max(1));
        let driver = Arc::clone(device.driver());
        let room = bytes.saturating_add(rows.saturating_mul(item));
        let loader = Loader::builder(Arc::clone(pack))
            .fields(&[&field])
            .checksums(probe.checksums())
            .order(Order::Sequential)
            .batch(u32::try_from(rows).unwrap_or(u32::MAX))
            .last(Last::Pad)
            .slots(NonZero::new(SLOTS).unwrap_or(NonZero::<usize>::MIN))
            .device(Arc::new(CudaDevice::with(Arc::clone(&driver))))
            .build()?;
        let images = driver.allocate(room, "the images of the pack")?;
        let mut resident = Self { driver, pack: pack.pack_uuid(), images, tables: None };
        // Declared after `resident`, so that even after an error, it waits for the copies before the images are freed.
        let end = End::new(Arc::clone(&resident.driver))?;
        for batch in loader.epoch(0)? {
            let batch = batch?;
            let first = batch.ids().first().copied().unwrap_or(0);
            let to = resident.images.plus(first.saturating_mul(item));
            // SAFETY: samples arrive in file order, so there is space for each batch, including the padding of the last
            // one. The stream belongs to `end`.
            unsafe { finish(&batch, end.stream, &[Some(to)])? };
        }
        end.wait()?;
        drop(end);
        resident.tables = resampling.map(|taps| Tables::load(&resident.driver, taps)).transpose()?;
        Ok(resident)
    }
}

impl Drop for Resident {
    fn drop(&mut self) {
        // SAFETY: only stagings read the memory, and each staging keeps it until its reads are done.
        unsafe { self.driver.free(self.images) };
    }
}

/// A stream, and an event that marks the end of its work.
pub(crate) struct End {
    driver: Arc<dyn Driver>,
    pub(crate) stream: Stream,
    event: Event,
}

impl End {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Result<Self, CudaError> {
        let stream = driver.stream()?;
        let event = driver.event().inspect_err(|_| {
            // SAFETY: the stream was just created, and nothing uses it.
            unsafe { driver.drop_stream(stream) };
        })?;
        Ok(Self { driver, stream, event })
    }

    /// Waits until all work on the stream is complete.
    pub(crate) fn wait(&self) -> Result<(), CudaError> {
        // SAFETY: the event and the stream exist.
        unsafe { self.driver.record(self.event, self.stream)? };
        // SAFETY: the event exists.
        unsafe { self.driver.synchronize(self.event) }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        // After an error, queued work may still write the images, which will be freed next.
        let _ = self.wait();
        // SAFETY: the event is not used again.
        unsafe { self.driver.drop_event(self.event) };
        // SAFETY: the stream is not used again.
        unsafe { self.driver.drop_stream(self.stream) };
    }
}

fn of_host(error: io::Error) -> CudaError {
    CudaError::Use(format!("cannot reserve host memory: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_resident_where_it_leaves_room() {
        assert_eq!(Tier::of(60, 100), Tier::Resident);
        assert_eq!(Tier::of(61, 100), Tier::Host);
        assert_eq!(Tier::of(u64::MAX, u64::MAX), Tier::Host);
        assert_eq!(Tier::of(0, 0), Tier::Resident);
    }
}
