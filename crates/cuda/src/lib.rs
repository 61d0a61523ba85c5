//! Batches in the memory of NVIDIA GPUs. The driver is loaded on first use.
//!
//! [`CudaDevice`] is a device for `packds-reader`. It registers the loader's staging ring with the driver and copies
//! each filled slot to the GPU on its own stream. [`finish`] then writes the batch's fields on the user's stream, into
//! the user's memory. docs/reference/cuda.md is the guide.
//!
//! A GPU is opened by its number. If there is no driver, the error says so, and the program continues:
//!
//! ```
//! use packds_cuda::CudaDevice;
//!
//! match CudaDevice::open(0) {
//!     Ok(device) => println!("{}", device.name()),
//!     Err(error) => println!("{error}"),
//! }
//! ```
//!
//! The device is passed to a loader's builder. [`CudaDevice::in_tier`] decides from the loader's options where the
//! images are kept:
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use packds_cuda::{CudaDevice, DevicePtr, Stream, finish};
//! use packds_reader::loader::Loader;
//!
//! # fn tensor_for(bytes: usize) -> DevicePtr { DevicePtr(bytes as u64) }
//! let gpu = CudaDevice::open(0)?;
//! let pack = packds_reader::open("train.pack")?;
//! let builder = Loader::builder(pack).batch(256).device(Arc::new(gpu.clone()));
//! let (device, tier) = gpu.in_tier(&builder, None)?;
//! println!("the images are in tier '{}'", tier.name());
//! let loader = builder.device(Arc::new(device)).build()?;
//! for batch in loader.epoch(0)? {
//!     let batch = batch?;
//!     let fields = batch.fields().iter();
//!     let outputs: Vec<_> = fields.map(|f| Some(tensor_for(f.n_bytes() * batch.len()))).collect();
//!     // SAFETY: each address has the bytes of its field, and only the default stream uses them.
//!     unsafe { finish(&batch, Stream(0), &outputs)? };
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod device;
mod driver;
mod emission;
mod error;
mod resident;
mod staging;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod twin;

pub use device::CudaDevice;
pub use driver::{DevicePtr, DirectFile, Driver, Event, JpegDecoder, JpegFile, Memory, Nvidia, Stream};
#[cfg(any(test, feature = "testing"))]
pub use driver::{Fault, MapFailure, SimDriver};
pub use emission::{Emission, padding_word, planar, type_word};
pub use error::CudaError;
pub use resident::Tier;
pub use staging::{Upload, finish, finish_and_wait};
