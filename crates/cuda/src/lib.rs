//! Batches in the memory of NVIDIA's GPUs, through a driver that is loaded when it is first asked for.
//!
//! [`CudaDevice`] is a device of `packds-reader`: the loader's staging ring is registered with the driver, each filled slot
//! is copied to the GPU by a stream of its own, and [`finish`] writes the batch's fields, on the stream that the user
//! works on, into memory that the user took. docs/reference/cuda.md is the guide.
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
