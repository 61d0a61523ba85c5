//! NVIDIA's driver, loaded on first use. A program that contains this code also runs without a driver.

use packds_system::{to_u64, to_usize};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fs::{self, File};
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::result::DriverError;
use cudarc::driver::sys;
use libloading::Library;

use super::cufile::CuFile;
use super::library::said;
use super::nvjpeg::NvJpeg;
use super::{DevicePtr, DirectFile, Driver, Event, JpegDecoder, Memory, Stream};
use crate::emission::{BLOCK, Emission};
use crate::error::CudaError;

/// The kernel, as compiled by `kernel/build`.
const PTX: &str = concat!(include_str!("../../kernel/emit.ptx"), "\0");
/// The driver's library.
const LIBRARY: &str = "libcuda.so.1";
/// The kernel's entry points, in the order of [`Entry`](crate::emission::Entry).
const KERNELS: [&CStr; 3] = [c"emit", c"emit_changed", c"emit_colored"];
/// The oldest driver that supports the PTX: CUDA 12.0.
const OLDEST_DRIVER: c_int = 12_000;
/// The oldest compute capability that the PTX supports.
const OLDEST_DEVICE: (c_int, c_int) = (8, 0);

/// A GPU in its primary context. PyTorch and the CUDA runtime use the same context in this process.
#[derive(Debug)]
pub struct Nvidia {
    device: sys::CUdevice,
    context: sys::CUcontext,
    module: sys::CUmodule,
    kernels: [sys::CUfunction; KERNELS.len()],
    name: String,
}

// SAFETY: the driver's handles may be used from any thread. Each call makes the context current, so it does not matter
// which thread made a handle.
unsafe impl Send for Nvidia {}
// SAFETY: several threads may call the driver's functions at the same time.
unsafe impl Sync for Nvidia {}

/// All driver functions that are used. They are checked because cudarc panics if one is missing.
const FUNCTIONS: &[&str] = &[
    "cuCtxGetStreamPriorityRange",
    "cuCtxPopCurrent_v2",
    "cuCtxPushCurrent_v2",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetCount",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventQuery",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuInit",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoH_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuStreamCreateWithPriority",
    "cuStreamDestroy_v2",
    "cuStreamWaitEvent",
];

/// Checks that the driver's library can be loaded and has all required functions.
fn library() -> Result<(), CudaError> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| lacks(LIBRARY));
    found.clone().map_err(|why| CudaError::NoDriver { why })
}

fn lacks(name: &str) -> Result<(), String> {
    // SAFETY: NVIDIA's libraries may be initialized at any time.
    let library = unsafe { Library::new(name) }.map_err(|error| said(&error))?;
    // Check that cudarc, which tries several names, finds the library too.
    // SAFETY: as above.
    if !unsafe { sys::is_culib_present() } {
        return Err(format!("{name} cannot be loaded"));
    }
    for function in FUNCTIONS {
        // SAFETY: the symbol is only looked up here and never called.
        let symbol = unsafe { library.get::<*const c_void>(function.as_bytes()) };
        if symbol.is_err() {
            return Err(format!("{name} lacks {function}: it is too old, or not from NVIDIA"));
        }
    }
    Ok(())
}

impl Nvidia {
    /// The number of GPUs.
    ///
    /// # Errors
    /// [`CudaError::NoDriver`], [`CudaError::NoDevice`], [`CudaError::OldDriver`] or [`CudaError::Call`].
    pub fn count() -> Result<u32, CudaError> {
        library()?;
        // SAFETY: the library and this function exist. The driver may be initialized any number of times.
        match unsafe { sys::cuInit(0) } {
            sys::CUresult::CUDA_ERROR_NO_DEVICE => return Err(CudaError::NoDevice),
            result => checked("cuInit", result)?,
        }
        let mut version = 0;
        // SAFETY: the call writes one number.
        checked("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&raw mut version) })?;
        if version < OLDEST_DRIVER {
            return Err(CudaError::OldDriver { major: positive(version / 1000), minor: positive(version % 1000 / 10) });
        }
        let mut count = 0;
        // SAFETY: the call writes one number.
        checked("cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&raw mut count) })?;
        match positive(count) {
            0 => Err(CudaError::NoDevice),
            count => Ok(count),
        }
    }

    /// Opens the GPU with this number, as counted by the driver from 0.
    ///
    /// # Errors
    /// [`CudaError`] if a requirement is not met.
    pub fn open(ordinal: u32) -> Result<Self, CudaError> {
        let found = Self::count()?;
        let no_such = CudaError::NoSuchDevice { requested: ordinal, found };
        let number = c_int::try_from(ordinal).map_err(|_| no_such.clone())?;
        if ordinal >= found {
            return Err(no_such);
        }
        let mut device = 0;
        // SAFETY: the call writes one number.
        checked("cuDeviceGet", unsafe { sys::cuDeviceGet(&raw mut device, number) })?;
        let name = name_of(device)?;
        let (major, minor) = capability_of(device)?;
        if (major, minor) < OLDEST_DEVICE {
            return Err(CudaError::OldDevice { name, major: positive(major), minor: positive(minor) });
        }
        let mut context = ptr::null_mut();
        // SAFETY: the call writes one handle, which `drop` releases.
        checked("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
        let kernels = [ptr::null_mut(); KERNELS.len()];
        let mut opened = Self { device, context, module: ptr::null_mut(), kernels, name };
        opened.load()?;
        Ok(opened)
    }

    fn load(&mut self) -> Result<(), CudaError> {
        let _current = self.current()?;
        let mut module = ptr::null_mut();
        // SAFETY: the string ends with a zero, and the context is current.
        checked("cuModuleLoadData", unsafe { sys::cuModuleLoadData(&raw mut module, PTX.as_ptr().cast::<c_void>()) })?;
        // Stored now, so that `drop` unloads it even if a kernel is missing.
        self.module = module;
        for (kernel, name) in self.kernels.iter_mut().zip(KERNELS) {
            // SAFETY: the module is loaded, and the name ends with a zero.
            checked("cuModuleGetFunction", unsafe {
                sys::cuModuleGetFunction(&raw mut *kernel, module, name.as_ptr())
            })?;
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Driver::register`].
    unsafe fn register_with(&self, host: *const u8, bytes: usize, flags: u32) -> Result<(), CudaError> {
        let host = host.cast_mut().cast::<c_void>();
        // SAFETY: guaranteed by the caller.
        self.call("cuMemHostRegister", || unsafe { sys::cuMemHostRegister_v2(host, bytes, flags) })
    }

    /// Makes the context current until the guard is dropped.
    fn current(&self) -> Result<Current, CudaError> {
        Current::of(self.context)
    }

    /// Makes a call in the context.
    fn call(&self, name: &'static str, call: impl FnOnce() -> sys::CUresult) -> Result<(), CudaError> {
        let _current = self.current()?;
        checked(name, call())
    }
}

/// A context pushed onto the thread's context stack.
pub(super) struct Current;

impl Current {
    /// Makes a context current until the guard is dropped. The context must stay retained as long as the guard exists.
    pub(super) fn of(context: sys::CUcontext) -> Result<Self, CudaError> {
        // SAFETY: the context is retained as long as the driver exists, and all callers belong to the driver.
        checked("cuCtxPushCurrent", unsafe { sys::cuCtxPushCurrent_v2(context) })?;
        Ok(Self)
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        let mut popped = ptr::null_mut();
        // An error means that the driver is already gone. SAFETY: this removes the context that the guard pushed.
        let _ = unsafe { sys::cuCtxPopCurrent_v2(&raw mut popped) };
    }
}

impl Drop for Nvidia {
    fn drop(&mut self) {
        // Errors here mean that the driver and its resources are already gone.
        if let Ok(_current) = self.current()
            && !self.module.is_null()
        {
            // SAFETY: no launch of the kernel is queued. Any code that launches it waits for it before `self` is
            // dropped.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
        // SAFETY: the context was retained by `open`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

impl Driver for Nvidia {
    fn device_name(&self) -> &str {
        &self.name
    }

    fn numa_node(&self) -> Option<u32> {
        let place = place_of(self.device).ok()?;
        let path = format!("/sys/bus/pci/devices/{place}/numa_node");
        // -1 means that the node is unknown. It cannot be parsed as a `u32`.
        fs::read_to_string(path).ok()?.trim().parse().ok()
    }

    fn memory(&self) -> Result<Memory, CudaError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the call writes two numbers.
        self.call("cuMemGetInfo", || unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok(Memory { free: to_u64(free), total: to_u64(total) })
    }

    fn allocate(&self, bytes: u64, what: &'static str) -> Result<DevicePtr, CudaError> {
        let _current = self.current()?;
        let too_large = CudaError::Memory { bytes, what };
        let n = usize::try_from(bytes).map_err(|_| too_large.clone())?;
        let mut memory = 0;
        // SAFETY: the call writes one address.
        match unsafe { sys::cuMemAlloc_v2(&raw mut memory, n) } {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => Err(too_large),
            result => checked("cuMemAlloc", result).map(|()| DevicePtr(memory)),
        }
    }

    unsafe fn free(&self, memory: DevicePtr) {
        // SAFETY: guaranteed by the caller, as the trait requires.
        let _ = self.call("cuMemFree", || unsafe { sys::cuMemFree_v2(memory.0) });
    }

    unsafe fn register(&self, host: *const u8, bytes: usize) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller, as the trait requires. The driver reads this memory but never writes it.
        unsafe { self.register_with(host, bytes, sys::CU_MEMHOSTREGISTER_PORTABLE) }
    }

    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<(), CudaError> {
        use sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED;
        if attribute_of(self.device, CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED)? == 0 {
            let text = "this GPU's driver cannot register read-only memory";
            return Err(CudaError::Use(text.to_owned()));
        }
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_READ_ONLY;
        // SAFETY: guaranteed by the caller, as the trait requires.
        unsafe { self.register_with(host, bytes, flags) }
    }

    unsafe fn unregister(&self, host: *const u8) {
        // SAFETY: guaranteed by the caller, as the trait requires.
        let _ =
            self.call("cuMemHostUnregister", || unsafe { sys::cuMemHostUnregister(host.cast_mut().cast::<c_void>()) });
    }

    fn stream(&self) -> Result<Stream, CudaError> {
        let (mut lowest, mut highest) = (0, 0);
        // SAFETY: the call writes two numbers.
        self.call("cuCtxGetStreamPriorityRange", || unsafe {
            sys::cuCtxGetStreamPriorityRange(&raw mut lowest, &raw mut highest)
        })?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        let mut stream = ptr::null_mut();
        // SAFETY: the call writes one handle.
        self.call("cuStreamCreateWithPriority", || unsafe {
            sys::cuStreamCreateWithPriority(&raw mut stream, flags, lowest)
        })?;
        Ok(Stream(number(stream)))
    }

    unsafe fn drop_stream(&self, stream: Stream) {
        // SAFETY: guaranteed by the caller, as the trait requires.
        let _ = self.call("cuStreamDestroy", || unsafe { sys::cuStreamDestroy_v2(handle(stream.0)) });
    }

    fn event(&self) -> Result<Event, CudaError> {
        // Threads that wait for the event sleep. Spinning would take a core from the loader's threads.
        let flags =
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32 | sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        let mut event = ptr::null_mut();
        // SAFETY: the call writes one handle.
        self.call("cuEventCreate", || unsafe { sys::cuEventCreate(&raw mut event, flags) })?;
        Ok(Event(number(event)))
    }

    unsafe fn drop_event(&self, event: Event) {
        // SAFETY: guaranteed by the caller, as the trait requires.
        let _ = self.call("cuEventDestroy", || unsafe { sys::cuEventDestroy_v2(handle(event.0)) });
    }

    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller, as the trait requires.
        self.call("cuEventRecord", || unsafe { sys::cuEventRecord(handle(event.0), handle(stream.0)) })
    }

    unsafe fn wait_for(&self, stream: Stream, event: Event) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller, as the trait requires.
        self.call("cuStreamWaitEvent", || unsafe { sys::cuStreamWaitEvent(handle(stream.0), handle(event.0), 0) })
    }

    unsafe fn has_happened(&self, event: Event) -> Result<bool, CudaError> {
        let _current = self.current()?;
        // SAFETY: guaranteed by the caller, as the trait requires.
        match unsafe { sys::cuEventQuery(handle(event.0)) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            result => checked("cuEventQuery", result).map(|()| true),
        }
    }

    unsafe fn synchronize(&self, event: Event) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller, as the trait requires.
        self.call("cuEventSynchronize", || unsafe { sys::cuEventSynchronize(handle(event.0)) })
    }

    unsafe fn copy_in(&self, from: *const u8, to: DevicePtr, bytes: usize, stream: Stream) -> Result<(), CudaError> {
        let from = from.cast::<c_void>();
        // SAFETY: guaranteed by the caller, as the trait requires.
        self.call("cuMemcpyHtoDAsync", || unsafe { sys::cuMemcpyHtoDAsync_v2(to.0, from, bytes, handle(stream.0)) })
    }

    unsafe fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), CudaError> {
        let host = to.as_mut_ptr().cast::<c_void>();
        // SAFETY: guaranteed by the caller, as the trait requires. The host's bytes are borrowed until the copy is
        // done, because the call waits for it.
        self.call("cuMemcpyDtoH", || unsafe { sys::cuMemcpyDtoH_v2(host, from.0, to.len()) })
    }

    unsafe fn copy_within(
        &self,
        from: DevicePtr,
        to: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaError> {
        // SAFETY: guaranteed by the caller, as the trait requires.
        self.call("cuMemcpyDtoDAsync", || unsafe { sys::cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, handle(stream.0)) })
    }

    fn open_direct(&self, file: File) -> Result<Box<dyn DirectFile>, CudaError> {
        let _current = self.current()?;
        Ok(Box::new(CuFile::open(file, self.context)?))
    }

    fn open_jpeg(&self) -> Result<Box<dyn JpegDecoder>, CudaError> {
        let _current = self.current()?;
        Ok(Box::new(NvJpeg::open(self.context)?))
    }

    unsafe fn emit(&self, emission: &Emission, stream: Stream) -> Result<(), CudaError> {
        let (lines, images) = emission.grid();
        let (across, down) = BLOCK;
        let kernel = self.kernels[emission.entry() as usize];
        let (mut emission, stream, extra) = (*emission, handle(stream.0), ptr::null_mut());
        let mut parameters = [(&raw mut emission).cast::<c_void>()];
        let parameters = parameters.as_mut_ptr();
        // SAFETY: the parameters are copied before the call returns, and the struct is the one that the kernel
        // declares. The caller guarantees the rest, as the trait requires.
        self.call("cuLaunchKernel", || unsafe {
            sys::cuLaunchKernel(kernel, lines, images, 1, across, down, 1, 0, stream, parameters, extra)
        })
    }
}

pub(super) fn checked(call: &'static str, result: sys::CUresult) -> Result<(), CudaError> {
    let Err(error) = result.result() else { return Ok(()) };
    let text = |text: Result<&CStr, DriverError>| match text {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("{:?}", error.0),
    };
    Err(CudaError::Call { call, name: text(error.error_name()), text: text(error.error_string()) })
}

fn name_of(device: sys::CUdevice) -> Result<String, CudaError> {
    // SAFETY: the call writes a string of at most this many bytes that ends with a zero.
    let read = |to, len| unsafe { sys::cuDeviceGetName(to, len, device) };
    text_of("cuDeviceGetName", read, c"an unnamed GPU")
}

/// The device's PCI bus address in the notation of the system: `0000:65:00.0`.
fn place_of(device: sys::CUdevice) -> Result<String, CudaError> {
    // SAFETY: as above.
    let read = |to, len| unsafe { sys::cuDeviceGetPCIBusId(to, len, device) };
    text_of("cuDeviceGetPCIBusId", read, c"").map(|place| place.to_lowercase())
}

/// The string that a driver call writes.
fn text_of(
    call: &'static str,
    read: impl FnOnce(*mut c_char, c_int) -> sys::CUresult,
    otherwise: &CStr,
) -> Result<String, CudaError> {
    const TEXT_LEN: c_int = 256;
    let mut bytes = [0_u8; TEXT_LEN as usize];
    checked(call, read(bytes.as_mut_ptr().cast(), TEXT_LEN))?;
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or(otherwise);
    Ok(text.to_string_lossy().into_owned())
}

fn capability_of(device: sys::CUdevice) -> Result<(c_int, c_int), CudaError> {
    use sys::CUdevice_attribute as Attribute;
    let major = attribute_of(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute_of(device, Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok((major, minor))
}

fn attribute_of(device: sys::CUdevice, attribute: sys::CUdevice_attribute) -> Result<c_int, CudaError> {
    let mut value = 0;
    // SAFETY: the call writes one number.
    let result = unsafe { sys::cuDeviceGetAttribute(&raw mut value, attribute, device) };
    checked("cuDeviceGetAttribute", result).map(|()| value)
}

fn positive(n: c_int) -> u32 {
    u32::try_from(n).unwrap_or(0)
}

/// A driver handle as a number.
fn number<T>(handle: *mut T) -> u64 {
    to_u64(handle.expose_provenance())
}

/// A number as a driver handle. It may also be a stream from PyTorch.
fn handle<T>(number: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(to_usize(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_gpu_says_so_and_does_not_panic() {
        match Nvidia::open(0) {
            Ok(device) => assert!(!device.device_name().is_empty()),
            Err(error) => {
                let text = error.to_string();
                assert!(text.starts_with("no CUDA ") || text.contains("CUDA driver is too old"), "{text}");
            }
        }
        assert!(Nvidia::open(u32::MAX).is_err());
    }

    #[test]
    fn the_kernel_is_the_one_that_is_launched() {
        for name in KERNELS {
            let entry = format!(".visible .entry {}(", name.to_str().unwrap());
            assert!(PTX.contains(&entry));
        }
        assert!(PTX.contains(".target sm_80"));
    }
}
