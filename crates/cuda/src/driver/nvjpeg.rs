//! nvJPEG, NVIDIA's decoder for JPEG files, loaded on first use.
//!
//! Its types are declared here as in nvjpeg.h, but with integers instead of enums. An unknown status of a newer version
//! is then still a valid number.

use packds_system::to_usize;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;

use super::library::functions;
use super::nvidia::Current;
use super::{JpegDecoder, JpegFile, Stream};
use crate::error::CudaError;

/// Names for the dynamic linker, newest first. The library comes from the toolkit, or the process has loaded it from
/// elsewhere.
const NAMES: [&str; 2] = ["libnvjpeg.so.13", "libnvjpeg.so.12"];
const SUCCESS: c_int = 0;
/// Status if a flag is not supported.
const INVALID_PARAMETER: c_int = 2;
/// Errors that are caused by a file, not by the decoder: the file is damaged, unsupported or truncated.
const OF_FILES: [c_int; 3] = [3, 4, 10];
/// Value that lets nvJPEG choose the backend.
const BACKEND: c_int = 0;
/// Flag to interpolate subsampled chroma, like libjpeg.
const INTERPOLATED: c_uint = 1 << 5;
/// Output format with luma only.
const LUMA: c_int = 2;
/// Output format with interleaved RGB.
const INTERLEAVED: c_int = 5;
/// Maximum number of planes of an image.
const PLANES: usize = 4;
/// Number of decoders, which take turns: one prepares a batch while the GPU processes the batch of the other.
const TURNS: usize = 2;

/// `nvjpegImage_t`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Planes {
    channel: [*mut u8; PLANES],
    pitch: [usize; PLANES],
}

functions! {
    // The types are those in nvjpeg.h.
    "nvJPEG" in NAMES, or install "libnvjpeg, or nvidia-nvjpeg-cu12 from PyPI";
    "nvjpegCreateEx" as create: unsafe extern "C" fn(c_int, *mut c_void, *mut c_void, c_uint, *mut *mut c_void) -> c_int;
    "nvjpegDestroy" as destroy: unsafe extern "C" fn(*mut c_void) -> c_int;
    "nvjpegJpegStateCreate" as state_create: unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> c_int;
    "nvjpegJpegStateDestroy" as state_destroy: unsafe extern "C" fn(*mut c_void) -> c_int;
    "nvjpegGetImageInfo" as info: unsafe extern "C" fn(
        *mut c_void,
        *const u8,
        usize,
        *mut c_int,
        *mut c_int,
        *mut c_int,
        *mut c_int,
    ) -> c_int;
    "nvjpegDecodeBatchedInitialize" as initialize: unsafe extern "C" fn(*mut c_void, *mut c_void, c_int, c_int, c_int) -> c_int;
    "nvjpegDecode" as decode_one: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *const u8,
        usize,
        c_int,
        *mut Planes,
        sys::CUstream,
    ) -> c_int;
    "nvjpegDecodeBatched" as decode: unsafe extern "C" fn(
        *mut c_void,
        *mut c_void,
        *const *const u8,
        *const usize,
        *mut Planes,
        sys::CUstream,
    ) -> c_int;
}

/// The nvJPEG library, opened in a CUDA context.
#[derive(Debug)]
pub(super) struct NvJpeg {
    context: sys::CUcontext,
    handle: *mut c_void,
    turns: Mutex<Vec<Turn>>,
}

/// A decoder for one batch at a time, with its own memory, and the event that marks the end of its last batch.
#[derive(Debug)]
struct Turn {
    state: *mut c_void,
    done: sys::CUevent,
    /// The arguments of the last batch. They are kept until it is complete, because nvJPEG does not report when it has
    /// read them.
    places: Places,
}

/// The files of a batch and the destinations of their pixels.
#[derive(Debug, Default)]
struct Places {
    bytes: Vec<*const u8>,
    lens: Vec<usize>,
    planes: Vec<Planes>,
}

impl Places {
    fn of(files: &[JpegFile<'_>]) -> Self {
        Self {
            bytes: files.iter().map(|file| file.bytes.as_ptr()).collect(),
            lens: files.iter().map(|file| file.bytes.len()).collect(),
            planes: files.iter().map(planes_of).collect(),
        }
    }
}

// SAFETY: nvJPEG handles and CUDA contexts may be used from any thread. A state may be used from one thread at a
// time, which the lock ensures.
unsafe impl Send for NvJpeg {}
// SAFETY: as above.
unsafe impl Sync for NvJpeg {}

impl NvJpeg {
    /// Opens nvJPEG in a context, which must be current.
    pub(super) fn open(context: sys::CUcontext) -> Result<Self, CudaError> {
        let functions = functions()?;
        let mut handle = ptr::null_mut();
        let mut create = |flags| {
            let (none, other) = (ptr::null_mut(), ptr::null_mut());
            // SAFETY: no custom allocators are passed. The call writes a handle, which `drop` destroys.
            unsafe { (functions.create)(BACKEND, none, other, flags, &raw mut handle) }
        };
        let created = match create(INTERPOLATED) {
            INVALID_PARAMETER => create(0),
            created => created,
        };
        checked("nvjpegCreateEx", created)?;
        let opened = Self { context, handle, turns: Mutex::default() };
        // From here on, `drop` releases what exists so far.
        for _ in 0..TURNS {
            opened.add_turn(functions)?;
        }
        Ok(opened)
    }

    fn add_turn(&self, functions: &Functions) -> Result<(), CudaError> {
        let mut turn = Turn { state: ptr::null_mut(), done: ptr::null_mut(), places: Places::default() };
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
        // SAFETY: the call writes a handle, which `drop` destroys.
        super::nvidia::checked("cuEventCreate", unsafe { sys::cuEventCreate(&raw mut turn.done, flags) })?;
        // SAFETY: as above. The library handle exists.
        let created = unsafe { (functions.state_create)(self.handle, &raw mut turn.state) };
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.push(turn);
        checked("nvjpegJpegStateCreate", created)
    }

    /// Whether nvJPEG supports the file and would write exactly the expected pixels.
    fn takes(&self, functions: &Functions, file: &JpegFile<'_>) -> Result<bool, CudaError> {
        let (mut n_planes, mut subsampling) = (0, 0);
        let (mut widths, mut heights) = ([0; PLANES], [0; PLANES]);
        let (bytes, len) = (file.bytes.as_ptr(), file.bytes.len());
        // SAFETY: the call reads the file. It writes one number to each of the first two outputs, and `PLANES` numbers
        // to each of the others.
        let told = unsafe {
            (functions.info)(
                self.handle,
                bytes,
                len,
                &raw mut n_planes,
                &raw mut subsampling,
                widths.as_mut_ptr(),
                heights.as_mut_ptr(),
            )
        };
        if OF_FILES.contains(&told) {
            return Ok(false);
        }
        checked("nvjpegGetImageInfo", told)?;
        let is_so = |found: c_int, wanted: u32| u32::try_from(found) == Ok(wanted);
        Ok(is_so(widths[0], file.width) && is_so(heights[0], file.height))
    }

    /// Queues the decoding of one batch. The previous batch of `turn` must be complete. Returns the numbers of rejected
    /// files. If there are any, all work that was queued is complete.
    ///
    /// # Safety
    /// As for [`JpegDecoder::decode`].
    unsafe fn queue(
        &self,
        turn: &mut Turn,
        files: &[JpegFile<'_>],
        format: c_int,
        stream: sys::CUstream,
    ) -> Result<Vec<usize>, CudaError> {
        let functions = functions()?;
        let mut refused = Vec::new();
        for (number, file) in files.iter().enumerate() {
            if !self.takes(functions, file)? {
                refused.push(number);
            }
        }
        if !refused.is_empty() {
            return Ok(refused);
        }
        let too_many = |_| CudaError::Use("there are more files than nvJPEG can count".to_owned());
        let n = c_int::try_from(files.len()).map_err(too_many)?;
        turn.places = Places::of(files);
        // SAFETY: the handle and the state exist, and the state is not decoding anything. One host thread is used,
        // which is the caller's.
        let begun = unsafe { (functions.initialize)(self.handle, turn.state, n, 1, format) };
        checked("nvjpegDecodeBatchedInitialize", begun)?;
        // SAFETY: there are `n` files with their lengths and places, and the caller guarantees that they are valid.
        // Their descriptions are kept until the files are decoded.
        let queued = unsafe {
            (functions.decode)(
                self.handle,
                turn.state,
                turn.places.bytes.as_ptr(),
                turn.places.lens.as_ptr(),
                turn.places.planes.as_mut_ptr(),
                stream,
            )
        };
        if OF_FILES.contains(&queued) {
            // SAFETY: guaranteed by the caller.
            refused = unsafe { self.probe(functions, turn, files, format, stream)? };
        }
        if refused.is_empty() {
            checked("nvjpegDecodeBatched", queued)?;
        }
        Ok(refused)
    }

    /// Finds the files that made a batch fail. Decodes the files one by one and waits for each.
    ///
    /// # Safety
    /// As for [`JpegDecoder::decode`].
    unsafe fn probe(
        &self,
        functions: &Functions,
        turn: &Turn,
        files: &[JpegFile<'_>],
        format: c_int,
        stream: sys::CUstream,
    ) -> Result<Vec<usize>, CudaError> {
        let mut refused = Vec::new();
        // Earlier work of the batch must be complete before decoding again.
        turn.finish(stream)?;
        let mut state = ptr::null_mut();
        // SAFETY: the call writes a handle, which is destroyed below.
        let created = unsafe { (functions.state_create)(self.handle, &raw mut state) };
        checked("nvjpegJpegStateCreate", created)?;
        let mut decode = |(number, file): (usize, &JpegFile<'_>)| {
            let mut planes = planes_of(file);
            let (bytes, len) = (file.bytes.as_ptr(), file.bytes.len());
            // SAFETY: the caller guarantees that the file and its place are valid. The state is not decoding anything.
            let status =
                unsafe { (functions.decode_one)(self.handle, state, bytes, len, format, &raw mut planes, stream) };
            turn.finish(stream)?;
            if OF_FILES.contains(&status) {
                refused.push(number);
                return Ok(());
            }
            checked("nvjpegDecode", status)
        };
        let probed = files.iter().enumerate().try_for_each(&mut decode);
        // SAFETY: the state's work is done, or the driver has failed.
        unsafe { (functions.state_destroy)(state) };
        probed.map(|()| refused)
    }
}

impl Turn {
    /// Waits for all work that is queued on a stream.
    fn finish(&self, stream: sys::CUstream) -> Result<(), CudaError> {
        // SAFETY: the event and the stream exist.
        super::nvidia::checked("cuEventRecord", unsafe { sys::cuEventRecord(self.done, stream) })?;
        // SAFETY: as above.
        super::nvidia::checked("cuEventSynchronize", unsafe { sys::cuEventSynchronize(self.done) })
    }
}

/// The destination of a file's pixels.
fn planes_of(file: &JpegFile<'_>) -> Planes {
    let mut planes = Planes { channel: [ptr::null_mut(); PLANES], pitch: [0; PLANES] };
    planes.channel[0] = ptr::with_exposed_provenance_mut(to_usize(file.to.0));
    planes.pitch[0] = to_usize(file.row_bytes);
    planes
}

impl JpegDecoder for NvJpeg {
    unsafe fn decode(&self, files: &[JpegFile<'_>], channels: u32, stream: Stream) -> Result<Vec<usize>, CudaError> {
        let format = match channels {
            1 => LUMA,
            3 => INTERLEAVED,
            _ => {
                let text = format!("JPEG files must have 1 or 3 channels, not {channels}");
                return Err(CudaError::Use(text));
            }
        };
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let _current = Current::of(self.context)?;
        let stream = ptr::with_exposed_provenance_mut(to_usize(stream.0));
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.rotate_left(1);
        let lost = || CudaError::Use("nvJPEG has no decoder".to_owned());
        let turn = turns.first_mut().ok_or_else(lost)?;
        // The state's host memory is read until its last batch is complete.
        // SAFETY: the event exists.
        super::nvidia::checked("cuEventSynchronize", unsafe { sys::cuEventSynchronize(turn.done) })?;
        // SAFETY: guaranteed by the caller. The state is not decoding anything.
        let queued = unsafe { self.queue(turn, files, format, stream) };
        // The event is recorded even after an error, because work may be queued.
        // SAFETY: the event and the stream exist.
        let recorded = super::nvidia::checked("cuEventRecord", unsafe { sys::cuEventRecord(turn.done, stream) });
        queued.and_then(|refused| recorded.map(|()| refused))
    }
}

impl Drop for NvJpeg {
    fn drop(&mut self) {
        let (Ok(functions), Ok(_current)) = (functions(), Current::of(self.context)) else {
            return;
        };
        let turns = self.turns.get_mut().unwrap_or_else(PoisonError::into_inner);
        for turn in turns.drain(..) {
            // Errors mean that the driver and its resources are already gone.
            // SAFETY: the event exists.
            let _ = unsafe { sys::cuEventSynchronize(turn.done) };
            // SAFETY: the event is not used again.
            let _ = unsafe { sys::cuEventDestroy_v2(turn.done) };
            if !turn.state.is_null() {
                // SAFETY: the state's work is done, see above.
                unsafe { (functions.state_destroy)(turn.state) };
            }
        }
        // SAFETY: all states of the handle have been destroyed.
        unsafe { (functions.destroy)(self.handle) };
    }
}

fn checked(call: &'static str, status: c_int) -> Result<(), CudaError> {
    if status == SUCCESS {
        return Ok(());
    }
    Err(CudaError::Call { call, name: status.to_string(), text: text_of(status).to_owned() })
}

/// The meaning of each status, as numbered in nvjpeg.h.
fn text_of(status: c_int) -> &'static str {
    match status {
        1 => "nvJPEG was not initialized",
        2 => "nvJPEG rejected a parameter as invalid",
        3 => "a JPEG file is damaged",
        4 => "nvJPEG does not support this kind of JPEG file",
        5 => "nvJPEG could not allocate memory",
        6 => "the GPU failed, or there is none",
        7 => "the GPU lacks a feature that nvJPEG needs",
        8 => "nvJPEG has an internal error",
        9 => "nvJPEG does not support this operation",
        10 => "a JPEG file is truncated",
        _ => "an unknown nvJPEG error",
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;
    use crate::driver::DevicePtr;

    #[test]
    fn places_are_laid_out_as_nvjpeg_h_has_them() {
        assert_eq!((size_of::<Planes>(), offset_of!(Planes, pitch)), (64, 32));
        let planes = planes_of(&JpegFile { bytes: &[], width: 5, height: 4, to: DevicePtr(0x1000), row_bytes: 17 });
        assert_eq!((planes.channel[0].addr(), planes.pitch[0]), (0x1000, 17));
        assert!(planes.channel[1..].iter().all(|plane| plane.is_null()));
    }

    /// If the library exists, every function is found. Otherwise there is an error.
    #[test]
    fn a_machine_without_nvjpeg_or_a_gpu_says_so_and_does_not_crash() {
        let Err(error) = NvJpeg::open(ptr::null_mut()) else { return };
        let text = error.to_string();
        println!("{text}");
        let known = ["nvJPEG cannot be loaded", "nvjpegCreateEx failed"];
        assert!(known.iter().any(|known| text.contains(known)), "{text}");
    }

    #[test]
    fn a_status_is_told_in_words() {
        let error = checked("nvjpegDecodeBatched", 3).unwrap_err().to_string();
        assert_eq!(error, "nvjpegDecodeBatched failed: 3 (a JPEG file is damaged)");
        assert!(checked("nvjpegDecodeBatched", 0).is_ok());
        let error = checked("nvjpegDecodeBatched", 99).unwrap_err().to_string();
        assert!(error.contains("99"), "{error}");
    }
}
