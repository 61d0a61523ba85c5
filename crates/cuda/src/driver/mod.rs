//! The calls to the CUDA driver that staging needs. Either a GPU or a simulation implements them.
//!
//! Handles are plain numbers that are valid for the driver that returned them. Work is queued on streams. A call
//! returns when its work is queued, each stream executes its work in order, and events mark the progress of a stream.

mod cufile;
mod library;
mod nvidia;
mod nvjpeg;
#[cfg(any(test, feature = "testing"))]
mod sim;

use std::fmt;
use std::fs::File;

use crate::emission::Emission;
use crate::error::CudaError;

pub use nvidia::Nvidia;
#[cfg(any(test, feature = "testing"))]
pub use sim::{Fault, MapFailure, SimDriver};

/// An address in device memory. 0 is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` after this one.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// A queue of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub u64);

/// A marker in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub u64);

/// The size of a device's memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Free bytes.
    pub free: u64,
    /// Total bytes.
    pub total: u64,
}

/// One device with its driver. Calls may come from any thread. They do not change the thread's current context.
///
/// Any call that can fail may return [`CudaError::Call`], even if the failed work was queued by an earlier call. Other
/// errors are documented for each call.
#[expect(clippy::missing_errors_doc, reason = "the error that all calls share is described above")]
pub trait Driver: fmt::Debug + Send + Sync {
    /// The name of the device, for messages.
    fn device_name(&self) -> &str;

    /// The NUMA node of the host memory that is closest to the device, if known.
    fn numa_node(&self) -> Option<u32>;

    /// The free and the total memory of the device.
    fn memory(&self) -> Result<Memory, CudaError>;

    /// Allocates device memory for `what`.
    ///
    /// # Errors
    /// [`CudaError::Memory`] if there is not enough.
    fn allocate(&self, bytes: u64, what: &'static str) -> Result<DevicePtr, CudaError>;

    /// Frees device memory.
    ///
    /// # Safety
    /// The memory is from [`allocate`](Self::allocate) and was not freed before, and no queued work uses it.
    unsafe fn free(&self, memory: DevicePtr);

    /// Pins host memory. Copies from it are then asynchronous and run at the speed of the bus.
    ///
    /// # Safety
    /// The memory stays mapped until [`unregister`](Self::unregister).
    unsafe fn register(&self, host: *const u8, bytes: usize) -> Result<(), CudaError>;

    /// Like [`register`](Self::register), for memory that this process may only read, such as a mapped file.
    ///
    /// # Safety
    /// As for [`register`](Self::register).
    ///
    /// # Errors
    /// [`CudaError::Use`] if the driver does not support it.
    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<(), CudaError>;

    /// Undoes [`register`](Self::register) or [`register_read_only`](Self::register_read_only).
    ///
    /// # Safety
    /// The memory is registered, and no queued work reads it.
    unsafe fn unregister(&self, host: *const u8);

    /// Creates a stream of the lowest priority. It does not wait for the default stream.
    fn stream(&self) -> Result<Stream, CudaError>;

    /// Destroys a stream.
    ///
    /// # Safety
    /// The stream is from [`stream`](Self::stream) and is not used again.
    unsafe fn drop_stream(&self, stream: Stream);

    /// Creates an event.
    fn event(&self) -> Result<Event, CudaError>;

    /// Destroys an event.
    ///
    /// # Safety
    /// The event is from [`event`](Self::event) and is not used again.
    unsafe fn drop_event(&self, event: Event);

    /// Records `event` on `stream`: the event happens when all work queued on the stream so far is complete. This
    /// replaces the event's previous record.
    ///
    /// # Safety
    /// The event and the stream exist.
    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), CudaError>;

    /// Makes work queued on `stream` from now on wait for the current record of `event`.
    ///
    /// # Safety
    /// The event and the stream exist.
    unsafe fn wait_for(&self, stream: Stream, event: Event) -> Result<(), CudaError>;

    /// Whether `event` has happened.
    ///
    /// # Safety
    /// The event exists.
    unsafe fn has_happened(&self, event: Event) -> Result<bool, CudaError>;

    /// Waits until `event` has happened.
    ///
    /// # Safety
    /// The event exists.
    unsafe fn synchronize(&self, event: Event) -> Result<(), CudaError>;

    /// Queues a copy from host memory.
    ///
    /// # Safety
    /// Until the copy is done, the host's bytes are registered and do not change, and no other code uses the device's
    /// bytes.
    unsafe fn copy_in(&self, from: *const u8, to: DevicePtr, bytes: usize, stream: Stream) -> Result<(), CudaError>;

    /// Copies to the host and waits until the copy is done.
    ///
    /// # Safety
    /// The device's bytes are allocated, and no queued work writes them.
    unsafe fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), CudaError>;

    /// Queues a copy within the device.
    ///
    /// # Safety
    /// Both ranges are allocated. Until the copy is done, nobody writes its source or uses its destination.
    unsafe fn copy_within(&self, from: DevicePtr, to: DevicePtr, bytes: usize, stream: Stream)
    -> Result<(), CudaError>;

    /// Opens a file for reads from the disk into device memory, bypassing the CPU.
    ///
    /// # Errors
    /// [`CudaError::Use`] if such reads are not supported here.
    fn open_direct(&self, file: File) -> Result<Box<dyn DirectFile>, CudaError>;

    /// Opens a decoder that writes the pixels of JPEG files to device memory.
    ///
    /// # Errors
    /// [`CudaError::Use`] if decoding is not supported here.
    fn open_jpeg(&self) -> Result<Box<dyn JpegDecoder>, CudaError>;

    /// Queues a launch of the kernel.
    ///
    /// # Safety
    /// As for [`copy_within`](Self::copy_within), for all memory in the emission. The numbers in the emission describe
    /// this memory.
    unsafe fn emit(&self, emission: &Emission, stream: Stream) -> Result<(), CudaError>;
}

/// A file for reads into device memory. It must not outlive the driver that opened it.
pub trait DirectFile: fmt::Debug + Send + Sync {
    /// Reads bytes from an offset of the file. When this returns, newly queued work can use them.
    ///
    /// # Safety
    /// The device's bytes are allocated, and nobody uses them during the read.
    ///
    /// # Errors
    /// [`CudaError::Call`] if the driver fails, or the file is too short.
    unsafe fn read(&self, offset: u64, to: DevicePtr, bytes: usize) -> Result<(), CudaError>;
}

/// A JPEG file and the destination of its pixels.
#[derive(Debug, Clone, Copy)]
pub struct JpegFile<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// Width, according to its header.
    pub width: u32,
    /// Height.
    pub height: u32,
    /// Device address of its first pixel.
    pub to: DevicePtr,
    /// Bytes from one row of pixels to the next.
    pub row_bytes: u32,
}

/// A decoder of JPEG files. It must not outlive the driver that opened it.
pub trait JpegDecoder: fmt::Debug + Send + Sync {
    /// Queues the decoding of files to interleaved pixels of 1 or 3 `channels`, as stored: EXIF orientation is ignored.
    /// The call may wait for earlier work. The pixels are complete when the stream has executed the work. But they may
    /// be written as soon as this is called, before the stream reaches this work. Returns the files that it rejects
    /// because they are damaged or unsupported. In this case, no work is queued, and the pixels are unspecified.
    ///
    /// # Safety
    /// From the call until the work is done, the files do not change, and no other code uses the device memory of their
    /// pixels. Any work that uses this memory and was queued earlier is already done. The memory is allocated, with
    /// `height` rows of `width` pixels for each file. The stream exists.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn decode(&self, files: &[JpegFile<'_>], channels: u32, stream: Stream) -> Result<Vec<usize>, CudaError>;
}
