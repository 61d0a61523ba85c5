//! Batches on GPUs: the loader's device, and writing batches to tensors that Python allocated.

use packds_reader::loader::{Batch, LoaderBuilder};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::failure::Failure;
#[cfg(feature = "cuda")]
use crate::loader_options::{must, named};

/// Python's name for the simulated device of tests.
#[cfg(feature = "simulated")]
const SIMULATED: &str = "simulated";

/// Decisions about a loader's batches on a GPU.
#[derive(Debug, Clone)]
pub(crate) struct OnGpu {
    /// The tier, which says where the images are.
    pub(crate) tier: &'static str,
    /// How chunks or batches are copied to the GPU, if registering the file was requested.
    pub(crate) copies: Option<String>,
    /// Why this tier was chosen, if no tier was requested.
    pub(crate) why: Option<String>,
}

/// The memory that is registered with the GPU's driver.
#[cfg(feature = "cuda")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Register {
    Staging,
    /// Staging memory and the mapped file.
    File,
    /// Staging memory. In addition, the file is registered with cuFile.
    Gds,
}

#[cfg(feature = "cuda")]
packds_system::named!(Register { Staging = "staging", File = "file", Gds = "gds" });

/// Where JPEG files are decoded.
#[cfg(feature = "cuda")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Jpeg {
    Host,
    Gpu,
}

#[cfg(feature = "cuda")]
packds_system::named!(Jpeg { Host = "host", Gpu = "gpu" });

/// Python's options for a GPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuOptions {
    /// The tier, which says where the images are. `None` chooses by size.
    #[cfg(feature = "cuda")]
    tier: Option<packds_cuda::Tier>,
    #[cfg(feature = "cuda")]
    register: Register,
    #[cfg(feature = "cuda")]
    jpeg: Jpeg,
}

impl GpuOptions {
    /// Reads the GPU options from a dict with a loader's options.
    #[cfg(feature = "cuda")]
    pub(crate) fn read(given: &Bound<'_, PyDict>) -> PyResult<Self> {
        let tier: String = must(given, "tier")?;
        let parsed = || tier.parse().map_err(|error| Failure::Option(format!("tier: {error}; auto chooses by size")));
        Ok(Self {
            tier: if tier == "auto" { None } else { Some(parsed()?) },
            register: named(given, "register")?,
            jpeg: named(given, "jpeg")?,
        })
    }

    #[cfg(not(feature = "cuda"))]
    pub(crate) fn read(_: &Bound<'_, PyDict>) -> PyResult<Self> {
        Err(no_cuda().into())
    }

    /// Checks that the other options allow a GPU to decode JPEG files.
    #[cfg(feature = "cuda")]
    fn check_jpeg(self) -> Result<(), Failure> {
        let found = match (self.tier, self.register) {
            (None | Some(packds_cuda::Tier::Host), Register::Staging) => return Ok(()),
            (None | Some(packds_cuda::Tier::Host), register) => format!("register=\"{register}\""),
            (Some(tier), _) => format!("tier=\"{tier}\""),
        };
        let what = "jpeg=\"gpu\" needs tier=\"host\" and register=\"staging\"";
        Err(Failure::Option(format!("{what}, found {found}: omit that option")))
    }
}

/// Adds a GPU to a loader's builder: the GPU with this number, or the simulated GPU.
#[cfg(feature = "cuda")]
pub(crate) fn onto_gpu(
    builder: LoaderBuilder,
    gpu: &str,
    options: GpuOptions,
) -> Result<(LoaderBuilder, OnGpu), Failure> {
    use std::sync::Arc;

    use packds_cuda::CudaDevice;

    let decodes = options.jpeg == Jpeg::Gpu;
    if decodes {
        options.check_jpeg()?;
    }
    let device = opened(gpu)?;
    let device = match options.register {
        Register::Staging => device,
        Register::File => device.registering_file(),
        Register::Gds => device.reading_from_disk(),
    };
    let builder = builder.device(Arc::new(device.clone()));
    let (device, tier) = match decodes {
        true => {
            let tier = options.tier.map_or_else(|| CudaDevice::host_tier(&builder), Ok)?;
            (device.decoding_jpeg(&builder, None)?, tier)
        }
        false => device.in_tier(&builder, options.tier)?,
    };
    let on_gpu = OnGpu { tier: tier.name(), copies: device.copies(), why: device.why().map(str::to_owned) };
    Ok((builder.device(Arc::new(device)), on_gpu))
}

#[cfg(feature = "cuda")]
fn opened(gpu: &str) -> Result<packds_cuda::CudaDevice, Failure> {
    use packds_cuda::CudaDevice;

    #[cfg(feature = "simulated")]
    if gpu == SIMULATED {
        let latest = std::time::Duration::from_micros(200);
        let driver = packds_cuda::SimDriver::new(0, latest, 1 << 30);
        return Ok(CudaDevice::with(std::sync::Arc::new(driver)));
    }
    let unknown = |_| {
        let text = format!("device: expected the number of a GPU, found {gpu:?}");
        Failure::Option(text)
    };
    let ordinal: u32 = gpu.parse().map_err(unknown)?;
    CudaDevice::open(ordinal).map_err(|error| Failure::Option(error.to_string()))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn onto_gpu(_: LoaderBuilder, _: &str, _: GpuOptions) -> Result<(LoaderBuilder, OnGpu), Failure> {
    Err(no_cuda())
}

#[cfg(not(feature = "cuda"))]
fn no_cuda() -> Failure {
    let text =
        "device: this build of packds does not support CUDA; install the wheel, or build with the feature 'cuda'";
    Failure::Option(text.to_owned())
}

/// Queues writes of a batch's fields on a PyTorch stream, to the addresses of tensors that PyTorch allocated on it.
/// Without a stream (a simulated GPU), writes them and waits.
#[cfg(feature = "cuda")]
pub(crate) fn write(batch: &Batch, stream: Option<u64>, addresses: &[Option<u64>]) -> Result<(), Failure> {
    use packds_cuda::{DevicePtr, Stream};

    let outputs: Vec<Option<DevicePtr>> = addresses.iter().map(|to| to.map(DevicePtr)).collect();
    let queued = match stream {
        // SAFETY: python/packds/_cuda.py allocated each tensor with its field's type and shape, on the loader's GPU and
        // the current stream. `stream` is that stream. PyTorch orders all later use of the memory after it.
        Some(stream) => unsafe { packds_cuda::finish(batch, Stream(stream), &outputs) },
        // SAFETY: as above, on the CPU; no one else has the tensors yet.
        None => unsafe { packds_cuda::finish_and_wait(batch, &outputs) },
    };
    queued.map_err(|error| Failure::Option(error.to_string()))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn write(_: &Batch, _: Option<u64>, _: &[Option<u64>]) -> Result<(), Failure> {
    Err(no_cuda())
}
