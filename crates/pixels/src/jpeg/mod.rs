//! JPEG decoding with libjpeg-turbo. The pixels are equal to Pillow's.
//!
//! libjpeg reports errors through a callback that must not return. The callback unwinds (the library is compiled for
//! that), and `Session` turns this into a `Result`. The input is a slice, so if libjpeg requests more input, the file
//! is truncated.

mod encode;

use packds_system::{counted, to_usize};
use std::ffi::c_int;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use mozjpeg_sys::{
    J_COLOR_SPACE, JPEG_LIB_VERSION, boolean, jpeg_CreateDecompress, jpeg_common_struct, jpeg_crop_scanline,
    jpeg_decompress_struct, jpeg_destroy_decompress, jpeg_error_mgr, jpeg_finish_decompress, jpeg_read_header,
    jpeg_read_scanlines, jpeg_resync_to_restart, jpeg_skip_scanlines, jpeg_source_mgr, jpeg_start_decompress,
    jpeg_std_error,
};

use crate::error::PixelError;
use crate::format::ImageFormat;

pub use encode::encode_jpeg;

/// Maximum number of scans. No encoder writes this many. Without a limit, a small file could take hours.
const MAX_SCANS: c_int = 500;
/// libjpeg's `JMSG_LENGTH_MAX`.
const MESSAGE_BYTES: usize = 200;

/// An error inside libjpeg.
#[derive(Debug)]
enum Failure {
    OutOfInput,
    TooManyScans,
    Fatal(c_int, String),
}

/// libjpeg's error manager, followed by our fields. libjpeg only sees the first field.
#[repr(C)]
struct Errors {
    manager: jpeg_error_mgr,
    failure: Option<Failure>,
}

impl Errors {
    fn new() -> Self {
        // SAFETY: all zeros is valid for this C structure of integers, pointers and optional functions.
        let mut manager: jpeg_error_mgr = unsafe { std::mem::zeroed() };
        // SAFETY: `manager` is writable, and the function only fills it in.
        unsafe { jpeg_std_error(&mut manager) };
        manager.error_exit = Some(error_exit);
        manager.emit_message = Some(emit_message);
        manager.output_message = Some(output_message);
        Self { manager, failure: None }
    }
}

/// The unwind payload. The cause is in `Errors::failure`.
struct Unwound;

/// The decompressor and the data that it points to. It is boxed, because it must not move.
struct State {
    cinfo: jpeg_decompress_struct,
    errors: Errors,
    source: jpeg_source_mgr,
    progress: mozjpeg_sys::jpeg_progress_mgr,
}

/// A JPEG decoder for a sequence of files. Each file gets its own decompressor, because a reused one would keep the
/// tables of the previous file and use them for a file that lacks its own.
pub(crate) struct JpegDecoder {
    state: Box<State>,
}

// SAFETY: the pointers in `State` point to `State` itself, or to memory that libjpeg allocated with malloc and that
// nothing else refers to. A decompressor does not depend on thread-local state of libjpeg, so another thread may
// continue with it.
unsafe impl Send for JpegDecoder {}

/// The channels that libjpeg writes for a pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raw {
    Gray,
    Rgb,
    /// CMYK, stored inverted, as Adobe does and Pillow assumes.
    Cmyk,
}

impl Raw {
    pub(crate) fn channels(self) -> usize {
        match self {
            Self::Gray => 1,
            Self::Rgb => 3,
            Self::Cmyk => 4,
        }
    }
}

impl JpegDecoder {
    pub(crate) fn new() -> Self {
        let mut state = Box::new(State {
            // SAFETY: all zeros is valid for this C structure of integers, pointers, optional functions, and enums with
            // a value 0.
            cinfo: unsafe { std::mem::zeroed() },
            errors: Errors::new(),
            // SAFETY: as above.
            source: unsafe { std::mem::zeroed() },
            // SAFETY: as above.
            progress: unsafe { std::mem::zeroed() },
        });
        let errors = &raw mut state.errors;
        state.cinfo.common.err = errors.cast();
        state.source.init_source = Some(init_source);
        state.source.fill_input_buffer = Some(fill_input_buffer);
        state.source.skip_input_data = Some(skip_input_data);
        state.source.resync_to_restart = Some(jpeg_resync_to_restart);
        state.source.term_source = Some(init_source);
        state.progress.progress_monitor = Some(monitor_progress);
        Self { state }
    }

    /// Reads the header of `bytes`.
    pub(crate) fn open<'a>(&'a mut self, bytes: &'a [u8]) -> Result<Session<'a>, PixelError> {
        let state = &mut *self.state;
        state.source.next_input_byte = bytes.as_ptr();
        state.source.bytes_in_buffer = bytes.len();
        state.errors.failure = None;
        let mut session = Session { state, bytes: PhantomData };
        let version = JPEG_LIB_VERSION;
        let size = size_of::<jpeg_decompress_struct>();
        // SAFETY: `cinfo` is zeroed or was destroyed, and its `err` points to an initialized error manager. Version and
        // size are those of the bindings, which were compiled together with the library.
        session.call(|cinfo| unsafe { jpeg_CreateDecompress(cinfo, version, size) })?;
        session.state.cinfo.src = &raw mut session.state.source;
        session.state.cinfo.common.progress = &raw mut session.state.progress;
        // SAFETY: the decompressor is idle, and its source points to `bytes`, which the session borrows.
        session.call(|cinfo| unsafe { jpeg_read_header(cinfo, 1) })?;
        Ok(session)
    }
}

/// A file being decoded. Dropping it makes the decoder ready for the next file.
pub(crate) struct Session<'a> {
    state: &'a mut State,
    bytes: PhantomData<&'a [u8]>,
}

impl Session<'_> {
    /// Width and height.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.state.cinfo.image_width, self.state.cinfo.image_height)
    }

    /// The channels that libjpeg can write for this file: RGB for colour, gray or RGB for gray, and CMYK for four
    /// channels.
    pub(crate) fn raw(&self, want_gray: bool) -> Result<Raw, PixelError> {
        match self.state.cinfo.num_components {
            1 if want_gray => Ok(Raw::Gray),
            1 | 3 => Ok(Raw::Rgb),
            4 => Ok(Raw::Cmyk),
            n => Err(PixelError::unsupported(ImageFormat::Jpeg, format!("{n} components"))),
        }
    }

    /// Starts decoding at `eighths` / 8 of the size. Returns that size.
    pub(crate) fn start(&mut self, raw: Raw, eighths: u32) -> Result<(u32, u32), PixelError> {
        self.state.cinfo.out_color_space = match raw {
            Raw::Gray => J_COLOR_SPACE::JCS_GRAYSCALE,
            Raw::Rgb => J_COLOR_SPACE::JCS_RGB,
            Raw::Cmyk => J_COLOR_SPACE::JCS_CMYK,
        };
        self.state.cinfo.scale_num = eighths;
        self.state.cinfo.scale_denom = 8;
        // SAFETY: the header was read by `open`.
        self.call(|cinfo| unsafe { jpeg_start_decompress(cinfo) })?;
        let found = to_usize(self.state.cinfo.output_components.max(0).cast_unsigned());
        if found != raw.channels() {
            let reason = format!("decoded {}, expected {}", counted(found, "channel"), raw.channels());
            return Err(PixelError::malformed(ImageFormat::Jpeg, reason));
        }
        Ok((self.state.cinfo.output_width, self.state.cinfo.output_height))
    }

    /// Restricts decoding to some columns. Returns the actual columns, which are a few more.
    pub(crate) fn crop(&mut self, first: u32, width: u32) -> Result<std::ops::Range<u32>, PixelError> {
        let (mut offset, mut width) = (first, width);
        // SAFETY: decompression has started, and no row has been read. libjpeg checks both conditions and the range.
        self.call(|cinfo| unsafe { jpeg_crop_scanline(cinfo, &mut offset, &mut width) })?;
        Ok(offset..offset + width)
    }

    /// Skips rows.
    pub(crate) fn skip(&mut self, n_rows: u32) -> Result<(), PixelError> {
        if n_rows > 0 {
            // SAFETY: decompression has started, and libjpeg stops at the last row.
            self.call(|cinfo| unsafe { jpeg_skip_scanlines(cinfo, n_rows) })?;
        }
        Ok(())
    }

    /// Decodes the next row into the start of `row`.
    pub(crate) fn read_row(&mut self, row: &mut [u8]) -> Result<(), PixelError> {
        let cinfo = &self.state.cinfo;
        let channels = to_usize(cinfo.output_components.cast_unsigned());
        let expected = to_usize(cinfo.output_width).saturating_mul(channels);
        if row.len() < expected {
            return Err(PixelError::WrongBuffer { expected, found: row.len() });
        }
        let mut line = row.as_mut_ptr();
        // SAFETY: decompression has started, and `line` points to at least the `output_width *
        // output_components` writable bytes that a row needs (checked above).
        let n_rows = self.call(|cinfo| unsafe { jpeg_read_scanlines(cinfo, &raw mut line, 1) })?;
        if n_rows == 1 {
            return Ok(());
        }
        Err(PixelError::malformed(ImageFormat::Jpeg, "fewer rows than declared"))
    }

    /// Reads up to the end-of-image marker, after the last row.
    pub(crate) fn finish(mut self) -> Result<(), PixelError> {
        // SAFETY: decompression has started, and libjpeg checks that every row was read.
        self.call(|cinfo| unsafe { jpeg_finish_decompress(cinfo) })?;
        Ok(())
    }

    /// Calls a libjpeg function and turns an unwinding error into a `PixelError`.
    fn call<T>(&mut self, run: impl FnOnce(&mut jpeg_decompress_struct) -> T) -> Result<T, PixelError> {
        let cinfo = &mut self.state.cinfo;
        match catch_unwind(AssertUnwindSafe(|| run(cinfo))) {
            Ok(value) => Ok(value),
            Err(payload) if payload.is::<Unwound>() => Err(self.error()),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn error(&mut self) -> PixelError {
        let format = ImageFormat::Jpeg;
        match self.state.errors.failure.take() {
            Some(Failure::OutOfInput) => PixelError::truncated(format, "the data ends inside the image"),
            Some(Failure::TooManyScans) => PixelError::malformed(format, format!("more than {MAX_SCANS} scans")),
            Some(Failure::Fatal(code, _)) if code == mozjpeg_sys::JERR_OUT_OF_MEMORY as c_int => {
                PixelError::OutOfMemory { bytes: 0 }
            }
            Some(Failure::Fatal(_, message)) => PixelError::malformed(format, message),
            None => PixelError::malformed(format, "unknown error"),
        }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // SAFETY: this is allowed in every state, even if creation failed. It frees all memory and never fails.
        unsafe { jpeg_destroy_decompress(&mut self.state.cinfo) };
        self.state.source.next_input_byte = std::ptr::null();
        self.state.source.bytes_in_buffer = 0;
    }
}

/// Stores the cause and unwinds to `Session::call`, because `error_exit` must not return.
fn fail(common: &mut jpeg_common_struct, failure: Failure) -> ! {
    // SAFETY: `err` is the first field of an `Errors`, which lives as long as the compressor or decompressor that
    // refers to it. Nothing else refers to it while libjpeg runs.
    let errors = unsafe { &mut *common.err.cast::<Errors>() };
    errors.failure = Some(failure);
    resume_unwind(Box::new(Unwound));
}

extern "C-unwind" fn error_exit(common: &mut jpeg_common_struct) {
    // SAFETY: `err` points to the initialized error manager of `Errors::new`.
    let manager = unsafe { &*common.err };
    let (code, format_message) = (manager.msg_code, manager.format_message);
    let mut text = [0_u8; MESSAGE_BYTES];
    if let Some(format_message) = format_message {
        // SAFETY: the binding declares 80 bytes, but C only takes a pointer, and `text` is longer.
        let buffer = unsafe { &*(&raw mut text).cast::<[u8; 80]>() };
        // SAFETY: libjpeg writes at most JMSG_LENGTH_MAX = 200 bytes there, including a NUL.
        unsafe { format_message(common, buffer) };
    }
    let n_bytes = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    let message = String::from_utf8_lossy(&text[..n_bytes]).to_lowercase();
    fail(common, Failure::Fatal(code, message));
}

/// Ignores warnings and traces, because Pillow accepts corrupt data that libjpeg only warns about.
extern "C-unwind" fn emit_message(_: &mut jpeg_common_struct, _: c_int) {}

extern "C-unwind" fn output_message(_: &mut jpeg_common_struct) {}

extern "C-unwind" fn init_source(_: &mut jpeg_decompress_struct) {}

extern "C-unwind" fn fill_input_buffer(cinfo: &mut jpeg_decompress_struct) -> boolean {
    fail(&mut cinfo.common, Failure::OutOfInput);
}

extern "C-unwind" fn skip_input_data(cinfo: &mut jpeg_decompress_struct, n_bytes: std::ffi::c_long) {
    // SAFETY: `src` was set in `open` to a source that lives as long as the decompressor.
    let source = unsafe { &mut *cinfo.src };
    let n_bytes = to_usize(n_bytes.max(0).cast_unsigned()).min(source.bytes_in_buffer);
    source.bytes_in_buffer -= n_bytes;
    // SAFETY: `n_bytes` is at most the number of remaining bytes in the slice.
    source.next_input_byte = unsafe { source.next_input_byte.add(n_bytes) };
}

extern "C-unwind" fn monitor_progress(common: &mut jpeg_common_struct) {
    // SAFETY: only decompressors have this monitor, and `common` is the first field of a decompressor.
    let cinfo = unsafe { &*(&raw const *common).cast::<jpeg_decompress_struct>() };
    if cinfo.input_scan_number > MAX_SCANS {
        fail(common, Failure::TooManyScans);
    }
}

/// Whether libjpeg was built with SIMD. If nasm is missing, libjpeg is silently built without SIMD.
#[must_use]
pub fn jpeg_simd() -> bool {
    unsafe extern "C" {
        fn jsimd_can_idct_islow() -> c_int;
    }
    // SAFETY: this function of libjpeg has no arguments. It queries the processor and caches the answer.
    unsafe { jsimd_can_idct_islow() != 0 }
}
