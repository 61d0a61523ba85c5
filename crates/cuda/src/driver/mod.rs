//! The calls that staging makes of a CUDA driver, and nothing more: what is behind them is a GPU, or a simulation of one.
//!
//! Handles are plain numbers that mean something to the driver that gave them. Work is queued on streams: a call returns
//! when it is queued, streams do it in their own order, and events say how far a stream is.

mod cufile;
mod library;
mod nvidia;
mod nvjpeg;
mod sim;

use std::fmt;
use std::fs::File;

use crate::emission::Emission;
use crate::error::CudaError;

pub use nvidia::Nvidia;
pub use sim::{Fault, MapFailure, SimDriver};

/// An address in a device's memory; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct DevicePtr(pub u64);

impl DevicePtr {
    /// The address `bytes` behind this one.
    #[must_use]
    pub const fn plus(self, bytes: u64) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// A queue of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream(pub u64);

/// A mark in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event(pub u64);

/// A device's memory, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Not in use by anybody.
    pub free: u64,
    /// All of it.
    pub total: u64,
}

/// One device, through its driver. Every call may come from any thread and leaves the thread's current context as it is.
pub trait Driver: fmt::Debug + Send + Sync {
    /// The device, for people.
    fn device_name(&self) -> &str;

    /// The NUMA node of the host's memory that the device is next to, where the system says so.
    fn numa_node(&self) -> Option<u32>;

    /// The device's memory now.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    fn memory(&self) -> Result<Memory, CudaError>;

    /// Takes device memory for `what`.
    ///
    /// # Errors
    /// [`CudaError::Memory`] where there is not so much.
    fn allocate(&self, bytes: u64, what: &'static str) -> Result<DevicePtr, CudaError>;

    /// Gives device memory back.
    ///
    /// # Safety
    /// It is of [`allocate`](Self::allocate), was not given back, and no queued work uses it.
    unsafe fn free(&self, memory: DevicePtr);

    /// Pins the host's memory, so that copies from it are asynchronous and go at the speed of the bus.
    ///
    /// # Safety
    /// The memory stays mapped until [`unregister`](Self::unregister).
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn register(&self, host: *const u8, bytes: usize) -> Result<(), CudaError>;

    /// As [`register`](Self::register), of memory that this process may only read, such as a mapped file.
    ///
    /// # Safety
    /// As of [`register`](Self::register).
    ///
    /// # Errors
    /// [`CudaError::Call`], [`CudaError::Use`] where the driver cannot.
    unsafe fn register_read_only(&self, host: *const u8, bytes: usize) -> Result<(), CudaError>;

    /// Ends [`register`](Self::register) or [`register_read_only`](Self::register_read_only).
    ///
    /// # Safety
    /// The memory is registered, and no queued work reads it.
    unsafe fn unregister(&self, host: *const u8);

    /// A stream of the lowest priority that does not wait for the default stream.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    fn stream(&self) -> Result<Stream, CudaError>;

    /// Gives a stream up.
    ///
    /// # Safety
    /// It is of [`stream`](Self::stream) and not used again.
    unsafe fn drop_stream(&self, stream: Stream);

    /// An event that nothing waits for yet.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    fn event(&self) -> Result<Event, CudaError>;

    /// Gives an event up.
    ///
    /// # Safety
    /// It is of [`event`](Self::event) and not used again.
    unsafe fn drop_event(&self, event: Event);

    /// Lets `event` happen when all that is queued on `stream` now is done; what it marked before is forgotten.
    ///
    /// # Safety
    /// Both exist.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn record(&self, event: Event, stream: Stream) -> Result<(), CudaError>;

    /// Lets what is queued on `stream` from now on wait for what `event` marks now.
    ///
    /// # Safety
    /// Both exist.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn wait_for(&self, stream: Stream, event: Event) -> Result<(), CudaError>;

    /// Whether what `event` marks has happened.
    ///
    /// # Safety
    /// It exists.
    ///
    /// # Errors
    /// [`CudaError::Call`], also of work that was queued before.
    unsafe fn has_happened(&self, event: Event) -> Result<bool, CudaError>;

    /// Returns when what `event` marks has happened.
    ///
    /// # Safety
    /// It exists.
    ///
    /// # Errors
    /// [`CudaError::Call`], also of work that was queued before.
    unsafe fn synchronize(&self, event: Event) -> Result<(), CudaError>;

    /// Queues a copy from the host's memory.
    ///
    /// # Safety
    /// Until it is done the host's bytes are registered and do not change, and nobody else uses those of the device.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn copy_in(
        &self,
        from: *const u8,
        to: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaError>;

    /// Copies to the host, and returns when that is done.
    ///
    /// # Safety
    /// The device's bytes are allocated, and no queued work writes them.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn copy_out(&self, from: DevicePtr, to: &mut [u8]) -> Result<(), CudaError>;

    /// Queues a copy within the device.
    ///
    /// # Safety
    /// Until it is done nobody writes what it reads or uses what it writes, and both are allocated.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn copy_within(
        &self,
        from: DevicePtr,
        to: DevicePtr,
        bytes: usize,
        stream: Stream,
    ) -> Result<(), CudaError>;

    /// Opens a file for reads that go from the disk into the device's memory past the processor.
    ///
    /// # Errors
    /// [`CudaError::Call`], [`CudaError::Use`] where that cannot be here.
    fn open_direct(&self, file: File) -> Result<Box<dyn DirectFile>, CudaError>;

    /// Opens a decoder of JPEG files into the device's memory.
    ///
    /// # Errors
    /// [`CudaError::Call`], [`CudaError::Use`] where that cannot be here.
    fn open_jpeg(&self) -> Result<Box<dyn JpegDecoder>, CudaError>;

    /// Queues a launch of the kernel.
    ///
    /// # Safety
    /// As of [`copy_within`](Self::copy_within), for all that the emission names; its numbers describe it.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn emit(&self, emission: &Emission, stream: Stream) -> Result<(), CudaError>;
}

/// A file that is read into a device's memory. It does not outlive the driver that opened it.
pub trait DirectFile: fmt::Debug + Send + Sync {
    /// Reads bytes from an offset of the file, and returns when they are there for whatever is queued from then on.
    ///
    /// # Safety
    /// The device's bytes are allocated, and nobody uses them meanwhile.
    ///
    /// # Errors
    /// [`CudaError::Call`], also where the file ends before.
    unsafe fn read(&self, offset: u64, to: DevicePtr, bytes: usize) -> Result<(), CudaError>;
}

/// A JPEG file, and where its pixels go.
#[derive(Debug, Clone, Copy)]
pub struct JpegFile<'a> {
    /// The file.
    pub bytes: &'a [u8],
    /// Columns, as its header says.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Its first pixel, in the device's memory.
    pub to: DevicePtr,
    /// Bytes from a row of pixels to the next.
    pub row_bytes: u32,
}

/// A decoder of JPEG files. It does not outlive the driver that opened it.
pub trait JpegDecoder: fmt::Debug + Send + Sync {
    /// Queues the decoding of files to pixels of 1 or 3 `channels`, which lie side by side, as they are stored: whatever their
    /// EXIF orientation says. May wait for what was queued before. Pixels are whole when the stream has done it, but may be written
    /// from the call on, before the stream has got there. Which of the files it refuses, damaged ones or of a kind that it does
    /// not decode: then nothing is queued any more, and the pixels' bytes are anything.
    ///
    /// # Safety
    /// From the call until it is done the files do not change, and nobody else uses the device's bytes of their pixels: whatever was
    /// queued that uses them is done already. They are allocated: `height` rows of `width` pixels each. The stream exists.
    ///
    /// # Errors
    /// [`CudaError::Call`].
    unsafe fn decode(
        &self,
        files: &[JpegFile<'_>],
        channels: u32,
        stream: Stream,
    ) -> Result<Vec<usize>, CudaError>;
}
