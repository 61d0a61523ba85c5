//! A GPU as a device of the loader.

use std::sync::Arc;

use packds_reader::MappedPack;
use packds_reader::arena::{Arena, SlotMut, SlotRef};
use packds_reader::device::{Device, DeviceError, Holding, Transfer};
use packds_reader::loader::{Holdable, LoadError, LoaderBuilder};

use crate::driver::{Driver, Nvidia};
use crate::error::CudaError;
use crate::resident::{Resident, Tables, Tier};
use crate::staging::{Copies, ImageSource, Ring, WindowPlan};

/// Why a set cannot be on the GPU whole.
const NOT_HOLDABLE: &str = "the tiers resident and gpu-window are for the raw images of one pack, all of one size, with an augmentation of resizes, \
    crops, flips, colours (not blur), erasing and mixing, and without masks: take the tier host";

/// Why the mapped file cannot be registered.
const NOT_REGISTRABLE: &str = "the mapped file is registered for the tiers gpu-window and host: name one of them, or do not register the file";

/// A GPU. It may serve several loaders, each with a ring of its own.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
    /// Where images come from.
    images: ImageSource,
    /// Whether the mapped file is to be registered.
    registers_file: bool,
}

impl CudaDevice {
    /// The GPU with this number, as the driver counts them from 0.
    ///
    /// # Errors
    /// [`CudaError`]: no driver, no such GPU, too old a driver or GPU, or what the driver says.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        Ok(Self::with(Arc::new(Nvidia::open(ordinal)?)))
    }

    /// A device behind a driver; a simulated one, for tests.
    #[must_use]
    pub fn with(driver: Arc<dyn Driver>) -> Self {
        Self {
            driver,
            images: ImageSource::Slots,
            registers_file: false,
        }
    }

    /// The same device, which is to register the mapped file of a pack with the driver, read-only, for the tiers
    /// [`GpuWindow`](Tier::GpuWindow) and [`Host`](Tier::Host): chunks, or batches that lie in the file as they are, are then copied to
    /// the GPU from the page cache, without a copy by the processor. The whole file is held in memory as long as the device. Where
    /// something is against it they are copied through staging memory, and [`copies`](Self::copies) says why.
    #[must_use]
    pub const fn registering_file(mut self) -> Self {
        self.registers_file = true;
        self
    }

    /// How chunks or batches come to the GPU, in a sentence; none where the file was not to be registered.
    #[must_use]
    pub fn copies(&self) -> Option<String> {
        match &self.images {
            ImageSource::Window(plan) => plan.copies.told("chunks"),
            ImageSource::Batches(copies) => copies.told("batches"),
            _ => None,
        }
    }

    /// The same device for a loader with these options, in a tier: the one that is wanted, or else what the GPU's memory
    /// allows. In the resident tier the set is on the GPU when this returns.
    ///
    /// # Errors
    /// [`LoadError`] where the images cannot be on the GPU though that is wanted, where a resident set cannot be read whole, or
    /// where the file is to be registered and neither `GpuWindow` nor `Host` is wanted.
    pub fn in_tier(
        &self,
        builder: &LoaderBuilder,
        wanted: Option<Tier>,
    ) -> Result<(Self, Tier), LoadError> {
        let with = |images, tier| {
            let device = Self {
                images,
                ..self.clone()
            };
            Ok((device, tier))
        };
        if self.registers_file && !matches!(wanted, Some(Tier::GpuWindow | Tier::Host)) {
            return Err(LoadError::Option(NOT_REGISTRABLE.to_owned()));
        }
        let host = || with(ImageSource::Slots, Tier::Host);
        if wanted == Some(Tier::Host) && self.registers_file {
            let copies = self.copies_of(builder, builder.batches_in_file()?);
            return with(ImageSource::Batches(Arc::new(copies)), Tier::Host);
        }
        if wanted == Some(Tier::Host) {
            return host();
        }
        let Some(holdable) = builder.holdable()? else {
            return match wanted {
                Some(_) => Err(LoadError::Option(NOT_HOLDABLE.to_owned())),
                None => host(),
            };
        };
        if wanted == Some(Tier::GpuWindow) {
            let plan = self.window_plan(builder, holdable)?;
            return with(ImageSource::Window(Arc::new(plan)), Tier::GpuWindow);
        }
        let memory = self.driver.memory();
        let free = memory.map_err(DeviceError::from)?.free;
        if wanted.is_none() && Tier::of(holdable.bytes, free) == Tier::Host {
            return host();
        }
        let resident = Resident::load(self, builder.pack(), holdable)?;
        with(ImageSource::Resident(Arc::new(resident)), Tier::Resident)
    }

    fn window_plan(
        &self,
        builder: &LoaderBuilder,
        holdable: Holdable,
    ) -> Result<WindowPlan, LoadError> {
        let copies = match self.registers_file {
            true => self.copies_of(builder, builder.chunks_in_file()?),
            false => Copies::Staged,
        };
        Ok(WindowPlan {
            pack: builder.pack().header().pack_uuid,
            chunk_bytes: holdable.chunk_bytes,
            n_chunks: builder.pack().n_chunks(),
            chunks_of_batch: holdable.chunks_of_batch,
            tables: Tables::of(&self.driver, holdable.resampling)?,
            copies,
        })
    }

    /// Copies from the pack's file, where nothing that the loader knows is against it.
    fn copies_of(&self, builder: &LoaderBuilder, in_file: Result<(), String>) -> Copies {
        match in_file {
            Ok(()) => Copies::from_file(&self.driver, builder.pack()),
            Err(why) => Copies::Refused(why),
        }
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// What the GPU is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.driver.device_name()
    }
}

impl Device for CudaDevice {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn finishes(&self) -> bool {
        true
    }

    fn holds(&self, pack: &MappedPack) -> Holding {
        let found = pack.header().pack_uuid;
        match &self.images {
            ImageSource::Resident(set) if set.pack == found => Holding::All,
            ImageSource::Window(plan) if plan.pack == found => Holding::Chunks,
            _ => Holding::Nothing,
        }
    }

    fn attach(&self, ring: &Arc<Arena>) -> Result<Option<Arc<dyn Device>>, DeviceError> {
        let ring = Ring::new(Arc::clone(&self.driver), Arc::clone(ring), &self.images)?;
        Ok(Some(Arc::new(ring)))
    }

    fn recycle(&self, _: &mut SlotMut) {}

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        let text = "a slot of a ring that the device was not attached to";
        Err(CudaError::Use(text.to_owned()).into())
    }
}
