//! Batches in the memory of NVIDIA GPUs. The driver is loaded on first use.
//!
//! [`CudaDevice`] is a device for `packds-reader`. It registers the loader's staging ring with the driver and copies each
//! filled slot to the GPU on its own stream. [`finish`] then writes the batch's fields on the user's stream, into the
//! user's memory. docs/reference/cuda.md is the guide.
//!
//! ```no_run
//! use packds_cuda::CudaDevice;
//!
//! match CudaDevice::open(0) {
//!     Ok(device) => println!("{}", device.name()),
//!     Err(error) => println!("{error}"),
//! }
//! ```

mod device;
mod driver;
mod emission;
mod error;
mod resident;
mod staging;
#[doc(hidden)]
pub mod twin;

pub use device::CudaDevice;
pub use driver::{
    DevicePtr, DirectFile, Driver, Event, Fault, JpegDecoder, JpegFile, MapFailure, Memory, Nvidia,
    SimDriver, Stream,
};
pub use emission::{Emission, padding_word, planar, type_word};
pub use error::CudaError;
pub use resident::Tier;
pub use staging::{Upload, finish, finish_and_wait};
