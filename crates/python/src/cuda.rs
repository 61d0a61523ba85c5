//! Batches on GPUs: which device a loader has, and the writing of a batch into tensors that Python took.

use packds_reader::loader::{Batch, LoaderBuilder};

use crate::failure::Failure;

/// What Python calls the device that is none, for tests.
#[cfg(feature = "cuda")]
const SIMULATED: &str = "simulated";

/// What was decided about a loader's batches on a GPU.
#[derive(Debug, Clone)]
pub(crate) struct OnGpu {
    /// Where images lie.
    pub(crate) tier: &'static str,
    /// How chunks or batches come there, where the file was to be registered.
    pub(crate) copies: Option<String>,
    /// Why images lie there, where nobody said where.
    pub(crate) why: Option<String>,
}

/// What Python asks of a GPU, in its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// `resident`, `gpu-window`, `host-window`, `host` or `auto`.
    pub(crate) tier: &'a str,
    /// `staging` memory is registered with the driver, the `file` too, or the file with cuFile, which is `gds`.
    pub(crate) register: &'a str,
    /// JPEG files are decoded by the `host` or the `gpu`.
    pub(crate) jpeg: &'a str,
}

/// The same loader onto a GPU: the one with this number, or the simulated one.
#[cfg(feature = "cuda")]
pub(crate) fn onto_gpu(
    builder: LoaderBuilder,
    gpu: &str,
    asked: Asked<'_>,
) -> Result<(LoaderBuilder, OnGpu), Failure> {
    use std::sync::Arc;

    use packds_cuda::{CudaDevice, Tier};

    let decodes = decodes(asked)?;
    let wanted = match asked.tier {
        "auto" => None,
        "resident" => Some(Tier::Resident),
        "gpu-window" => Some(Tier::GpuWindow),
        "host-window" => Some(Tier::HostWindow),
        "host" => Some(Tier::Host),
        other => {
            let text = format!(
                "tier: expected auto, resident, gpu-window, host-window or host, found {other:?}"
            );
            return Err(Failure::Option(text));
        }
    };
    let device = opened(gpu)?;
    let device = match asked.register {
        "staging" => device,
        "file" => device.registering_file(),
        "gds" => device.reading_from_disk(),
        other => {
            let text = format!("register: expected staging, file or gds, found {other:?}");
            return Err(Failure::Option(text));
        }
    };
    let builder = builder.device(Arc::new(device.clone()));
    let (device, tier) = match decodes {
        true => {
            let tier = wanted.map_or_else(|| CudaDevice::host_tier(&builder), Ok)?;
            (device.decoding_jpeg(&builder, None)?, tier)
        }
        false => device.in_tier(&builder, wanted)?,
    };
    let on_gpu = OnGpu {
        tier: tier.name(),
        copies: device.copies(),
        why: device.why().map(str::to_owned),
    };
    Ok((builder.device(Arc::new(device)), on_gpu))
}

/// Whether the GPU is to decode JPEG files.
#[cfg(feature = "cuda")]
fn decodes(asked: Asked<'_>) -> Result<bool, Failure> {
    match asked.jpeg {
        "host" => return Ok(false),
        "gpu" => {}
        other => {
            let text = format!("jpeg: expected host or gpu, found {other:?}");
            return Err(Failure::Option(text));
        }
    }
    let Asked { tier, register, .. } = asked;
    let found = match (tier, register) {
        ("auto" | "host", "staging") => return Ok(true),
        ("auto" | "host", _) => format!("register={register:?}"),
        _ => format!("tier={tier:?}"),
    };
    let text = format!(
        "jpeg=\"gpu\" decodes files from staging memory in the tier host, found {found}: leave that out"
    );
    Err(Failure::Option(text))
}

#[cfg(feature = "cuda")]
fn opened(gpu: &str) -> Result<packds_cuda::CudaDevice, Failure> {
    use packds_cuda::{CudaDevice, SimDriver};

    if gpu == SIMULATED {
        let latest = std::time::Duration::from_micros(200);
        let driver = SimDriver::new(0, latest, 1 << 30);
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
pub(crate) fn onto_gpu(
    _: LoaderBuilder,
    _: &str,
    _: Asked<'_>,
) -> Result<(LoaderBuilder, OnGpu), Failure> {
    Err(no_cuda())
}

#[cfg(not(feature = "cuda"))]
fn no_cuda() -> Failure {
    let text = "device: this build of packds has no CUDA; install the wheel, or build with the feature cuda";
    Failure::Option(text.to_owned())
}

/// Queues the writing of a batch's fields on a stream of PyTorch's, to the addresses of tensors that PyTorch took on it; without
/// a stream, which is a simulated GPU, it writes them and waits.
#[cfg(feature = "cuda")]
pub(crate) fn write(
    batch: &Batch,
    stream: Option<u64>,
    addresses: &[Option<u64>],
) -> Result<(), Failure> {
    use packds_cuda::{DevicePtr, Stream};

    let outputs: Vec<Option<DevicePtr>> = addresses.iter().map(|to| to.map(DevicePtr)).collect();
    let queued = match stream {
        // SAFETY: python/packds/_cuda.py made each tensor of its field's type and shape on the loader's GPU and the current
        // stream, which is this one; PyTorch orders all later use of the memory behind it.
        Some(stream) => unsafe { packds_cuda::finish(batch, Stream(stream), &outputs) },
        // SAFETY: as above, on the processor; nobody has the tensors yet.
        None => unsafe { packds_cuda::finish_and_wait(batch, &outputs) },
    };
    queued.map_err(|error| Failure::Option(error.to_string()))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn write(_: &Batch, _: Option<u64>, _: &[Option<u64>]) -> Result<(), Failure> {
    Err(no_cuda())
}
