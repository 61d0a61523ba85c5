//! A GPU as a device of the loader.

use std::sync::Arc;

use packds_reader::arena::{Arena, SlotMut, SlotRef};
use packds_reader::device::{Device, DeviceError, Transfer};

use crate::driver::{Driver, Nvidia};
use crate::error::CudaError;
use crate::staging::Ring;

/// A GPU. It may serve several loaders, each with a ring of its own.
#[derive(Debug, Clone)]
pub struct CudaDevice {
    driver: Arc<dyn Driver>,
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
        Self { driver }
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

    fn attach(&self, ring: &Arc<Arena>) -> Result<Option<Arc<dyn Device>>, DeviceError> {
        let ring = Ring::new(Arc::clone(&self.driver), Arc::clone(ring))?;
        Ok(Some(Arc::new(ring)))
    }

    fn recycle(&self, _: &mut SlotMut) {}

    fn submit(&self, _: SlotRef, _: usize) -> Result<Box<dyn Transfer>, DeviceError> {
        let text = "a slot of a ring that the device was not attached to";
        Err(CudaError::Use(text.to_owned()).into())
    }
}
