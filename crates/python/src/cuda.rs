//! Batches on GPUs: which device a loader has, and the writing of a batch into tensors that Python took.

use std::sync::Arc;

use packds_reader::device::Device;
use packds_reader::loader::Batch;

use crate::failure::Failure;

/// What Python calls the device that is none, for tests.
#[cfg(feature = "cuda")]
const SIMULATED: &str = "simulated";

/// The GPU with this number, or the simulated one.
#[cfg(feature = "cuda")]
pub(crate) fn device(name: &str) -> Result<Arc<dyn Device>, Failure> {
    use packds_cuda::{CudaDevice, SimDriver};

    if name == SIMULATED {
        let latest = std::time::Duration::from_micros(200);
        let driver = SimDriver::new(0, latest, 1 << 30);
        return Ok(Arc::new(CudaDevice::with(Arc::new(driver))));
    }
    let unknown = |_| {
        Failure::Option(format!(
            "device: expected the number of a GPU, found {name:?}"
        ))
    };
    let ordinal: u32 = name.parse().map_err(unknown)?;
    let opened = CudaDevice::open(ordinal);
    Ok(Arc::new(
        opened.map_err(|error| Failure::Option(error.to_string()))?,
    ))
}

#[cfg(not(feature = "cuda"))]
pub(crate) fn device(_: &str) -> Result<Arc<dyn Device>, Failure> {
    let text = "device: this build of packds has no CUDA; install the wheel, or build with the feature cuda";
    Err(Failure::Option(text.to_owned()))
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
    device("").map(drop)
}
