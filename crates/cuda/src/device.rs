//! A GPU as a device of the loader.

use std::sync::Arc;

use packds_reader::MappedPack;
use packds_reader::arena::{Arena, SlotMut, SlotRef};
use packds_reader::device::{Device, DeviceError, Holding, Transfer};
use packds_reader::loader::{LoadError, LoaderBuilder};

use crate::driver::{Driver, Nvidia};
use crate::error::CudaError;
use crate::resident::{Resident, Tables, Tier};
use crate::staging::{ImageSource, Ring, WindowPlan};

/// Why a set cannot be on the GPU whole.
const NOT_HOLDABLE: &str = "the tiers resident and gpu-window are for the raw images of one pack, all of one size, with an augmentation of resizes, \
    crops, flips, erasing and mixing, and without masks: take the tier host";

/// A GPU. It may serve several loaders, each with a ring of its own.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
    /// Where images come from.
    images: ImageSource,
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
        }
    }

    /// The same device for a loader with these options, in a tier: the one that is wanted, or else what the GPU's memory
    /// allows. In the resident tier the set is on the GPU when this returns.
    ///
    /// # Errors
    /// [`LoadError`] where the images cannot be on the GPU though that is wanted, or where a resident set cannot be read whole.
    pub fn in_tier(
        &self,
        builder: &LoaderBuilder,
        wanted: Option<Tier>,
    ) -> Result<(Self, Tier), LoadError> {
        let with = |images, tier| {
            let driver = Arc::clone(&self.driver);
            Ok((Self { driver, images }, tier))
        };
        let host = || with(ImageSource::Slots, Tier::Host);
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
            let plan = WindowPlan {
                pack: builder.pack().header().pack_uuid,
                chunk_bytes: holdable.chunk_bytes,
                n_chunks: builder.pack().n_chunks(),
                chunks_of_batch: holdable.chunks_of_batch,
                tables: Tables::of(&self.driver, holdable.resampling)?,
            };
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
