//! cuFile, the library of GPUDirect Storage, loaded on first use. It reads from the disk into GPU memory.
//!
//! Its types are declared here as in cufile.h, but with integers instead of enums. An unknown error of a newer version
//! is then still a valid number.

use packds_system::to_usize;
use std::ffi::{c_int, c_uint, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use cudarc::driver::sys;

use super::library::functions;
use super::nvidia::Current;
use super::{DevicePtr, DirectFile};
use crate::error::CudaError;

/// Names for the dynamic linker: first the one in runtime packages, which PyTorch also loads, then the one in
/// development packages.
const NAMES: [&str; 2] = ["libcufile.so.0", "libcufile.so"];
/// Type of a handle for a file that is given by its descriptor.
const OPAQUE_FD: c_int = 1;
const SUCCESS: c_int = 0;
/// Status if the driver is already open in this process.
const ALREADY_OPEN: c_int = 5026;
/// Maximum size of a single read.
const MOST_BYTES: usize = 1 << 30;

/// `CUfileError_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Status {
    cufile: c_int,
    cuda: c_int,
}

/// `CUfileDescr_t` for a file descriptor. `before` and `behind` are padding.
#[repr(C)]
struct Description {
    kind: c_int,
    before: c_int,
    fd: c_int,
    behind: c_int,
    operations: *const c_void,
}

/// `CUfileDrvProps_t`, with space for fields of newer versions.
#[repr(C)]
#[derive(Default)]
struct Properties {
    major: c_uint,
    minor: c_uint,
    poll_threshold: usize,
    max_direct_io: usize,
    status: c_uint,
    control: c_uint,
    others: [c_uint; 32],
}

functions! {
    // The types are those in cufile.h.
    "cuFile" in NAMES, or install "libcufile, or nvidia-cufile-cu12 from PyPI";
    "cuFileDriverOpen" as driver_open: unsafe extern "C" fn() -> Status;
    "cuFileDriverGetProperties" as properties: unsafe extern "C" fn(*mut Properties) -> Status;
    "cuFileHandleRegister" as register: unsafe extern "C" fn(*mut *mut c_void, *mut Description) -> Status;
    "cuFileHandleDeregister" as deregister: unsafe extern "C" fn(*mut c_void);
    "cuFileRead" as read: unsafe extern "C" fn(*mut c_void, *mut c_void, usize, i64, i64) -> isize;
}

/// A file that cuFile reads.
#[derive(Debug)]
pub(super) struct CuFile {
    handle: *mut c_void,
    context: sys::CUcontext,
    /// Must stay open as long as the handle exists.
    _file: File,
}

// SAFETY: cuFile handles and CUDA contexts may be used from any thread.
unsafe impl Send for CuFile {}
// SAFETY: several threads may call cuFile's functions at the same time.
unsafe impl Sync for CuFile {}

impl CuFile {
    /// Registers a file with cuFile, for reads into the memory of a context. The context must be current.
    pub(super) fn open(file: File, context: sys::CUcontext) -> Result<Self, CudaError> {
        let functions = functions()?;
        // The driver is never closed, because other code in the process may use it. It closes when the process ends.
        // SAFETY: the call has no arguments. A second call reports that the driver is already open.
        let opened = unsafe { (functions.driver_open)() };
        if opened.cufile != ALREADY_OPEN {
            checked("cuFileDriverOpen", opened)?;
        }
        let mut properties = Properties::default();
        // SAFETY: the call fills in the struct.
        let told = unsafe { (functions.properties)(&raw mut properties) };
        checked("cuFileDriverGetProperties", told)?;
        // Each bit of the status stands for a supported kind of disk. If there is none, cuFile would read through host
        // memory, as the fallback does.
        if properties.status == 0 {
            let text = "cuFile supports none of this machine's disks (is the kernel module nvidia-fs loaded?)";
            return Err(CudaError::Use(text.to_owned()));
        }
        let mut description =
            Description { kind: OPAQUE_FD, before: 0, fd: file.as_raw_fd(), behind: 0, operations: std::ptr::null() };
        let mut handle = std::ptr::null_mut();
        // SAFETY: the description refers to an open file. The call writes a handle, which `drop` deregisters.
        let registered = unsafe { (functions.register)(&raw mut handle, &raw mut description) };
        checked("cuFileHandleRegister", registered)?;
        Ok(Self { handle, context, _file: file })
    }
}

impl DirectFile for CuFile {
    unsafe fn read(&self, offset: u64, to: DevicePtr, bytes: usize) -> Result<(), CudaError> {
        let functions = functions()?;
        let _current = Current::of(self.context)?;
        let base: *mut c_void = std::ptr::with_exposed_provenance_mut(to_usize(to.0));
        let mut done = 0;
        while done < bytes {
            let within = i64::try_from(done);
            let start = i64::try_from(offset).and_then(|start| Ok(start + within?));
            let (Ok(start), Ok(within)) = (start, within) else {
                let text = "the read extends beyond the maximum file size".to_owned();
                return Err(CudaError::Use(text));
            };
            let wanted = (bytes - done).min(MOST_BYTES);
            // SAFETY: the handle is registered. The trait requires the caller to provide the memory.
            let read = unsafe { (functions.read)(self.handle, base, wanted, start, within) };
            done += taken(read)?;
        }
        Ok(())
    }
}

impl Drop for CuFile {
    fn drop(&mut self) {
        if let Ok(functions) = functions() {
            // SAFETY: the handle was registered, and no read uses it, because every read has returned.
            unsafe { (functions.deregister)(self.handle) };
        }
    }
}

/// The number of bytes read, taken from the return value.
fn taken(returned: isize) -> Result<usize, CudaError> {
    let failed = |name: String, text: String| Err(CudaError::Call { call: "cuFileRead", name, text });
    match returned {
        0 => failed("end of file".to_owned(), "the file is shorter than it was".to_owned()),
        // A system error.
        -1 => failed("-1".to_owned(), io::Error::last_os_error().to_string()),
        // A cuFile error, negated.
        code if code < 0 => failed(code.to_string(), text_of(-code)),
        bytes => Ok(bytes.cast_unsigned()),
    }
}

fn checked(call: &'static str, status: Status) -> Result<(), CudaError> {
    if status.cufile == SUCCESS {
        return Ok(());
    }
    let code = isize::try_from(status.cufile).unwrap_or(0).abs();
    let text = match status.cuda {
        0 => text_of(code),
        cuda => format!("{}, CUDA error {cuda}", text_of(code)),
    };
    Err(CudaError::Call { call, name: status.cufile.to_string(), text })
}

/// Messages for errors that depend on the machine, by their numbers in cufile.h.
fn text_of(code: isize) -> String {
    let text = match code {
        5001 => "the kernel module nvidia-fs is not loaded",
        5007 => "GPUDirect Storage does not support this platform",
        5008 => "GPUDirect Storage does not support this file system",
        5009 => "GPUDirect Storage does not support this GPU",
        5010 => "the kernel module nvidia-fs failed",
        5011 => "the CUDA driver failed",
        5018 => "GPUDirect Storage does not support this type of file",
        5020 => "the file cannot be read without the page cache",
        5025 => "the operation is not permitted",
        5029 => "the file's disk was not found",
        5033 => "the kernel module nvidia-fs could not be set up",
        5034 => "GPUDirect Storage is turned off for this file",
        _ => "an unknown cuFile error",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn structs_are_those_of_cufile_h() {
        assert_eq!((size_of::<Status>(), size_of::<Description>()), (8, 24));
        assert_eq!(offset_of!(Description, fd), 8);
        assert_eq!(offset_of!(Description, operations), 16);
        assert_eq!(offset_of!(Properties, status), 24);
    }

    #[test]
    fn a_machine_without_cufile_or_a_gpu_says_so_and_does_not_crash() {
        let opened = CuFile::open(tempfile::tempfile().unwrap(), std::ptr::null_mut());
        if let Err(error) = opened {
            let text = error.to_string();
            let known = ["libcufile.so.0", "supports none of this machine's disks", "cuFileDriverOpen failed"];
            assert!(known.iter().any(|known| text.contains(known)), "{text}");
        }
    }

    #[test]
    fn what_a_read_returns_is_bytes_or_an_error() {
        assert_eq!(taken(7).unwrap(), 7);
        let failed = |returned| taken(returned).unwrap_err().to_string();
        assert!(failed(0).contains("shorter than it was"));
        assert!(failed(-1).starts_with("cuFileRead failed: -1"));
        assert!(failed(-5008).contains("does not support this file system"));
        let status = Status { cufile: 5011, cuda: 100 };
        let error = checked("cuFileDriverOpen", status).unwrap_err().to_string();
        assert!(error.contains("5011") && error.contains("CUDA error 100"), "{error}");
    }
}
