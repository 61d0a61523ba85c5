//! Typed views of bytes, with their shape.

use bytemuck::{AnyBitPattern, try_cast_slice};
use half::{bf16, f16};
use packds_format::{DType, FormatError};

/// An array in C order over borrowed little-endian bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayView<'a> {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// All elements.
    pub bytes: &'a [u8],
}

impl<'a> ArrayView<'a> {
    /// The elements as numbers of their type, without a copy.
    ///
    /// # Errors
    /// [`FormatError::WrongUse`] if `T` is not the element type, or if the bytes in the pack are not aligned for `T`.
    pub fn elements<T: Element>(&self) -> Result<&'a [T], FormatError> {
        let wrong = |misaligned: bool| {
            let problem = if misaligned { "their bytes are not aligned for" } else { "were requested as" };
            FormatError::WrongUse(format!("the elements are {}, but {problem} {}", self.dtype, T::DTYPE))
        };
        if T::DTYPE != self.dtype {
            return Err(wrong(false));
        }
        if self.bytes.is_empty() {
            return Ok(&[]);
        }
        try_cast_slice(self.bytes).map_err(|_| wrong(true))
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is also an element type of packs.
pub trait Element: AnyBitPattern + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($rust:ty => $dtype:ident),* $(,)?) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_seen_as_their_own_type_only() {
        let numbers = [1_i32, -2, 3];
        let view = ArrayView { dtype: DType::I32, shape: vec![3], bytes: bytemuck::cast_slice(&numbers) };
        assert_eq!(view.elements::<i32>().unwrap(), numbers);
        let error = view.elements::<f32>().unwrap_err();
        assert_eq!(error.to_string(), "the elements are i32, but were requested as f32");
    }

    #[test]
    fn misaligned_bytes_are_refused() {
        let bytes = [0_u64; 2];
        let bytes: &[u8] = bytemuck::cast_slice(&bytes);
        let view = ArrayView { dtype: DType::F32, shape: vec![1], bytes: &bytes[1..5] };
        let error = view.elements::<f32>().unwrap_err().to_string();
        assert_eq!(error, "the elements are f32, but their bytes are not aligned for f32");
    }
}
