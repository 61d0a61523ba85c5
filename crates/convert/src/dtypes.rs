//! The names that other libraries use for each element type. The crate lists them only here.

use packds_format::DType;

/// PyTorch's storage classes. The larger unsigned integers have none.
const TORCH_STORAGES: [(&str, DType); 10] = [
    ("BoolStorage", DType::Bool),
    ("ByteStorage", DType::U8),
    ("CharStorage", DType::I8),
    ("ShortStorage", DType::I16),
    ("IntStorage", DType::I32),
    ("LongStorage", DType::I64),
    ("HalfStorage", DType::F16),
    ("BFloat16Storage", DType::Bf16),
    ("FloatStorage", DType::F32),
    ("DoubleStorage", DType::F64),
];

pub(crate) fn torch_storage(dtype: DType) -> Option<&'static str> {
    TORCH_STORAGES.iter().find(|(_, of)| *of == dtype).map(|(class, _)| *class)
}

pub(crate) fn of_torch_storage(class: &str) -> Option<DType> {
    TORCH_STORAGES.iter().find(|(name, _)| *name == class).map(|(_, dtype)| *dtype)
}

/// The type with this number in TensorFlow's `DataType` enum.
pub(crate) fn of_tensorflow(number: u64) -> Option<DType> {
    let dtype = match number {
        1 => DType::F32,
        2 => DType::F64,
        3 => DType::I32,
        4 => DType::U8,
        5 => DType::I16,
        6 => DType::I8,
        9 => DType::I64,
        10 => DType::Bool,
        14 => DType::Bf16,
        17 => DType::U16,
        19 => DType::F16,
        22 => DType::U32,
        23 => DType::U64,
        _ => return None,
    };
    Some(dtype)
}

pub(crate) fn safetensors_name(dtype: DType) -> String {
    dtype.name().to_ascii_uppercase()
}

pub(crate) fn of_safetensors_name(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.name().eq_ignore_ascii_case(name))
}

/// The type for a NumPy type string without its byte order, such as `f4`.
pub(crate) fn of_numpy_kind(kind: &[u8]) -> Option<DType> {
    if kind == b"?" {
        return Some(DType::Bool);
    }
    let is = |dtype: &DType| dtype.numpy_typestr().as_bytes().get(1..) == Some(kind);
    // bf16 and u16 have the same type string. The search returns u16, which precedes bf16 in `ALL`.
    DType::ALL.into_iter().find(is)
}

/// The type of an Arrow column. Arrow lacks bf16, so bf16 is stored as 16-bit integers.
#[cfg(feature = "arrow")]
pub(crate) const fn arrow_type(dtype: DType) -> arrow_schema::DataType {
    use arrow_schema::DataType;
    match dtype {
        DType::Bool => DataType::Boolean,
        DType::U8 => DataType::UInt8,
        DType::I8 => DataType::Int8,
        DType::U16 | DType::Bf16 => DataType::UInt16,
        DType::I16 => DataType::Int16,
        DType::U32 => DataType::UInt32,
        DType::I32 => DataType::Int32,
        DType::U64 => DataType::UInt64,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
    }
}

/// The element type of an Arrow column, if packs support it.
#[cfg(feature = "arrow")]
pub(crate) fn of_arrow_type(column: &arrow_schema::DataType) -> Option<DType> {
    // bf16 and u16 have the same column type. The search returns u16, which precedes bf16 in `ALL`.
    DType::ALL.into_iter().find(|dtype| arrow_type(*dtype) == *column)
}

/// A Rust type that represents an element, for libraries with generic functions.
#[cfg(feature = "hdf5")]
pub(crate) trait Native: Sized {
    /// Reads the element from little-endian bytes.
    fn from_bytes(bytes: &[u8]) -> Self;

    fn append_to(self, out: &mut Vec<u8>);
}

#[cfg(feature = "hdf5")]
macro_rules! native {
    ($($type:ty),*) => {$(
        impl Native for $type {
            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; size_of::<Self>()]))
            }

            fn append_to(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

#[cfg(feature = "hdf5")]
native!(u8, i8, u16, i16, u32, i32, u64, i64, half::f16, f32, f64);

#[cfg(feature = "hdf5")]
impl Native for bool {
    fn from_bytes(bytes: &[u8]) -> Self {
        bytes.first().is_some_and(|byte| *byte != 0)
    }

    fn append_to(self, out: &mut Vec<u8>) {
        out.push(self.into());
    }
}

/// Evaluates `$body` with `$T` as the [`Native`] type of `$dtype`. Few libraries support bf16, so it is passed as
/// `u16`.
#[cfg(feature = "hdf5")]
macro_rules! with_native {
    ($dtype:expr, $T:ident => $body:expr) => {
        $crate::dtypes::with_native!(@ $dtype, $T, $body;
            Bool bool, U8 u8, I8 i8, U16 u16, I16 i16, U32 u32, I32 i32, U64 u64, I64 i64,
            F16 ::half::f16, Bf16 u16, F32 f32, F64 f64)
    };
    (@ $dtype:expr, $T:ident, $body:expr; $($variant:ident $native:ty),*) => {
        match $dtype {
            $(::packds_format::DType::$variant => {
                type $T = $native;
                $body
            })*
        }
    };
}
#[cfg(feature = "hdf5")]
pub(crate) use with_native;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_another_library_leads_back_to_its_type() {
        for dtype in DType::ALL {
            assert_eq!(of_safetensors_name(&safetensors_name(dtype)), Some(dtype));
            if let Some(class) = torch_storage(dtype) {
                assert_eq!(of_torch_storage(class), Some(dtype));
            }
            let bits = if dtype == DType::Bf16 { DType::U16 } else { dtype };
            let kind = dtype.numpy_typestr().get(1..).unwrap();
            assert_eq!(of_numpy_kind(kind.as_bytes()), Some(bits));
            #[cfg(feature = "arrow")]
            assert_eq!(of_arrow_type(&arrow_type(dtype)), Some(bits));
        }
        assert_eq!(of_safetensors_name("F8_E4M3"), None);
        assert_eq!(of_numpy_kind(b"c8"), None);
    }

    #[cfg(feature = "hdf5")]
    #[test]
    fn native_types_have_the_size_of_their_elements() {
        for dtype in DType::ALL {
            let size = with_native!(dtype, T => size_of::<T>());
            assert_eq!(packds_system::to_u64(size), dtype.size(), "{dtype}");
        }
    }
}
