//! JPEG encoding for fixtures and exports.

use packds_system::to_usize;
use std::ffi::{c_int, c_ulong};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use mozjpeg_sys::{
    J_COLOR_SPACE, J_INT_PARAM, JINT_COMPRESS_PROFILE_VALUE, JPEG_LIB_VERSION, jpeg_CreateCompress,
    jpeg_c_set_int_param, jpeg_compress_struct, jpeg_destroy_compress, jpeg_finish_compress, jpeg_mem_dest,
    jpeg_set_defaults, jpeg_set_quality, jpeg_start_compress, jpeg_write_scanlines,
};

use super::{Errors, Failure, Unwound};
use crate::decode::{check_pixels, usize_of};
use crate::error::PixelError;
use crate::format::ImageFormat;

/// A compressor and the memory that it writes to. Dropping it frees both.
struct Compressor {
    cinfo: jpeg_compress_struct,
    errors: Errors,
    bytes: *mut u8,
    n_bytes: c_ulong,
}

impl Drop for Compressor {
    fn drop(&mut self) {
        // SAFETY: `cinfo` was zeroed by `encode_jpeg` or created by `compress`, and is destroyed only here.
        unsafe { jpeg_destroy_compress(&mut self.cinfo) };
        // SAFETY: the pointer is null, or `jpeg_mem_dest` allocated it with malloc and left it to its caller to free.
        unsafe { free(self.bytes.cast()) };
    }
}

unsafe extern "C" {
    fn free(memory: *mut std::ffi::c_void);
}

/// Encodes gray (1 channel) or RGB (3) pixels as a baseline JPEG with 4:2:0 and standard tables, which are the settings
/// of libjpeg-turbo and Pillow. The same pixels always give the same bytes.
///
/// # Errors
/// `WrongBuffer` or `InvalidArgument` if the sizes do not match, or `quality` is outside 1 to 100.
pub fn encode_jpeg(width: u32, height: u32, channels: u8, data: &[u8], quality: u8) -> Result<Vec<u8>, PixelError> {
    check_pixels(width, height, channels, data.len())?;
    if width > 65500 || height > 65500 {
        return Err(PixelError::argument("size of a JPEG", "at most 65500x65500", format!("{width}x{height}")));
    }
    if !(1..=100).contains(&quality) {
        return Err(PixelError::argument("quality", "1 to 100", quality));
    }
    let mut compressor = Box::new(Compressor {
        // SAFETY: all zeros is valid for this C structure of integers, pointers, and enums with a value 0.
        cinfo: unsafe { std::mem::zeroed() },
        errors: Errors::new(),
        bytes: std::ptr::null_mut(),
        n_bytes: 0,
    });
    let run = || compress(&mut compressor, (width, height, channels), data, quality);
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => {}
        Err(payload) if payload.is::<Unwound>() => {
            let reason = match compressor.errors.failure.take() {
                Some(Failure::Fatal(_, message)) => message,
                _ => "unknown error".to_owned(),
            };
            return Err(PixelError::malformed(ImageFormat::Jpeg, reason));
        }
        Err(payload) => resume_unwind(payload),
    }
    let n_bytes = to_usize(compressor.n_bytes);
    // SAFETY: after `jpeg_finish_compress`, `bytes` points to `n_bytes` written bytes.
    Ok(unsafe { std::slice::from_raw_parts(compressor.bytes, n_bytes) }.to_vec())
}

fn compress(this: &mut Compressor, (width, height, channels): (u32, u32, u8), data: &[u8], quality: u8) {
    this.cinfo.common.err = (&raw mut this.errors).cast();
    let cinfo = &mut this.cinfo;
    // SAFETY: `cinfo` is zeroed and has an error manager. Version and size are those of the bindings.
    unsafe { jpeg_CreateCompress(cinfo, JPEG_LIB_VERSION, size_of::<jpeg_compress_struct>()) };
    // SAFETY: `bytes` and `n_bytes` outlive the compressor, because they are in the same box.
    unsafe { jpeg_mem_dest(cinfo, &mut this.bytes, &mut this.n_bytes) };
    cinfo.image_width = width;
    cinfo.image_height = height;
    cinfo.input_components = c_int::from(channels);
    cinfo.in_color_space = if channels == 1 { J_COLOR_SPACE::JCS_GRAYSCALE } else { J_COLOR_SPACE::JCS_RGB };
    let fastest = JINT_COMPRESS_PROFILE_VALUE::JCP_FASTEST as c_int;
    // SAFETY: the compressor is created and idle. The profile is set before the defaults, which depend on it.
    unsafe { jpeg_c_set_int_param(cinfo, J_INT_PARAM::JINT_COMPRESS_PROFILE, fastest) };
    // SAFETY: size and colour space are set.
    unsafe { jpeg_set_defaults(cinfo) };
    // SAFETY: the defaults are set.
    unsafe { jpeg_set_quality(cinfo, c_int::from(quality), 1) };
    // SAFETY: every parameter is set.
    unsafe { jpeg_start_compress(cinfo, 1) };
    for row in data.chunks_exact(usize_of(width) * usize::from(channels)) {
        let line = row.as_ptr();
        // SAFETY: `line` points to `width * channels` bytes, which is one row.
        unsafe { jpeg_write_scanlines(cinfo, &raw const line, 1) };
    }
    // SAFETY: all `height` rows were written (`check_pixels`).
    unsafe { jpeg_finish_compress(cinfo) };
}
