//! The header of NumPy files.

use packds_format::DType;

/// The header in version 1.0 of the format (NEP 1). NumPy has no bf16, so it is written as u16.
pub(super) fn npy_header(dtype: DType, shape: &[u64]) -> Vec<u8> {
    npy_header_of(dtype.numpy_typestr(), shape)
}

/// The header of an array of elements with this type string.
pub(super) fn npy_header_of(descr: &str, shape: &[u64]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}", shape.trim_end());
    // Ten bytes precede the text, and the data must start at a multiple of 64.
    while (10 + head.len() + 1) % 64 != 0 {
        head.push(' ');
    }
    head.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    // A shape has at most 8 dimensions, so the header has at most a few hundred bytes.
    file.extend_from_slice(&u16::try_from(head.len()).unwrap_or(u16::MAX).to_le_bytes());
    file.extend_from_slice(head.as_bytes());
    file
}
