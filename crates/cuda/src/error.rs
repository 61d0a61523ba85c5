//! Why a GPU cannot be used.

use packds_reader::device::DeviceError;

/// Why a GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CudaError {
    /// The machine has no driver.
    #[error(
        "no CUDA driver: {why}; install NVIDIA's driver (in a container: let it see the GPU), or load on the host"
    )]
    NoDriver {
        /// What the dynamic linker says, or what the library lacks.
        why: String,
    },
    /// The driver sees no GPU at all.
    #[error(
        "no CUDA device: the driver sees none; look at `nvidia-smi` and CUDA_VISIBLE_DEVICES, or load on the host"
    )]
    NoDevice,
    /// There are GPUs, but not this one.
    #[error("no CUDA device {asked}: the driver sees {found}, counted from 0")]
    NoSuchDevice {
        /// Its number.
        asked: u32,
        /// How many there are.
        found: u32,
    },
    /// The driver cannot take our kernel.
    #[error(
        "the CUDA driver is too old: expected one for CUDA 12.0 or later (525 or later), found one for CUDA {major}.{minor}"
    )]
    OldDriver {
        /// Of the CUDA version it is for.
        major: u32,
        /// Of the CUDA version it is for.
        minor: u32,
    },
    /// The GPU cannot run our kernel.
    #[error(
        "{name} cannot be used: expected compute capability 8.0 or later (Ampere), found {major}.{minor}"
    )]
    OldDevice {
        /// The GPU.
        name: String,
        /// Of its compute capability.
        major: u32,
        /// Of its compute capability.
        minor: u32,
    },
    /// The GPU has not the memory.
    #[error(
        "the GPU has no {bytes} bytes of memory left for {what}: make batch_size or slots smaller, or free memory"
    )]
    Memory {
        /// Bytes that were asked for.
        bytes: u64,
        /// For what.
        what: &'static str,
    },
    /// A call of the driver failed.
    #[error("{call} failed: {name} ({text})")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The driver's name of the error.
        name: String,
        /// What the driver says.
        text: String,
    },
    /// It is used in a way that it is not made for.
    #[error("{0}")]
    Use(String),
}

impl From<CudaError> for DeviceError {
    fn from(error: CudaError) -> Self {
        Self {
            device: "cuda",
            reason: error.to_string(),
        }
    }
}
