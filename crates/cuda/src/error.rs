//! Why a GPU cannot be used.

use packds_reader::device::DeviceError;
use packds_reader::loader::LoadError;

/// Why a GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The driver is not installed.
    #[error(
        "no CUDA driver: {why}; install NVIDIA's driver (in a container, also pass in the GPU), or load on the host"
    )]
    NoDriver {
        /// The message of the dynamic linker, or what is missing in the library.
        why: String,
    },
    /// The driver does not find a GPU.
    #[error(
        "no CUDA device: the driver does not see any; check `nvidia-smi` and CUDA_VISIBLE_DEVICES, or load on the host"
    )]
    NoDevice,
    /// There are GPUs, but not this one.
    #[error("no CUDA device {requested}: the driver sees {found}, numbered from 0")]
    NoSuchDevice {
        /// The requested number.
        requested: u32,
        /// The number of GPUs.
        found: u32,
    },
    /// The driver is too old to load our kernel.
    #[error(
        "the CUDA driver is too old: expected version 525 or later, which supports CUDA 12.0, found a driver for CUDA {major}.{minor}"
    )]
    OldDriver {
        /// Major part of the supported CUDA version.
        major: u32,
        /// Minor part of the supported CUDA version.
        minor: u32,
    },
    /// The GPU cannot run our kernel.
    #[error("{name} cannot be used: expected compute capability 8.0 or later (Ampere), found {major}.{minor}")]
    OldDevice {
        /// The GPU.
        name: String,
        /// Major part of its compute capability.
        major: u32,
        /// Minor part of its compute capability.
        minor: u32,
    },
    /// The GPU does not have enough memory.
    #[error(
        "the GPU does not have {bytes} bytes of free memory for {what}: use a smaller batch_size or fewer slots, or free memory"
    )]
    Memory {
        /// Requested bytes.
        bytes: u64,
        /// Purpose of the memory.
        what: &'static str,
    },
    /// A driver call failed.
    #[error("{call} failed: {name} ({text})")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The driver's name for the error.
        name: String,
        /// The driver's message.
        text: String,
    },
    /// Any other error, as a message: something is unsupported, used wrongly or not available.
    #[error("{0}")]
    Use(String),
}

impl From<CudaError> for DeviceError {
    fn from(error: CudaError) -> Self {
        Self { device: "cuda", reason: error.to_string() }
    }
}

impl From<CudaError> for LoadError {
    fn from(error: CudaError) -> Self {
        Self::Device(error.into())
    }
}
