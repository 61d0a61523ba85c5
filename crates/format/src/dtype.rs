//! Element types.

use serde::{Deserialize, Serialize};

/// Declares the types. Each line gives the name in the schema, the name in NumPy or `ml_dtypes`, the type string of
/// NumPy, and the size of an element in bytes.
macro_rules! dtypes {
    ($($(#[$doc:meta])* $dtype:ident: $name:literal, $numpy:literal, $typestr:literal, $size:literal;)*) => {
        /// The type of one element of a tensor. Elements are little-endian in the file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        pub enum DType {
            $($(#[$doc])* $dtype,)*
        }

        // In the order of docs/reference/format.md.
        packds_system::named!(DType { $($dtype = $name),* });

        impl DType {
            const fn row(self) -> (&'static str, &'static str, u64) {
                match self {
                    $(Self::$dtype => ($numpy, $typestr, $size),)*
                }
            }
        }
    };
}

dtypes! {
    /// One byte, 0 or 1.
    Bool: "bool", "bool", "|b1", 1;
    /// Unsigned 8-bit integer.
    U8: "u8", "uint8", "|u1", 1;
    /// Signed 8-bit integer.
    I8: "i8", "int8", "|i1", 1;
    /// Unsigned 16-bit integer.
    U16: "u16", "uint16", "<u2", 2;
    /// Signed 16-bit integer.
    I16: "i16", "int16", "<i2", 2;
    /// Unsigned 32-bit integer.
    U32: "u32", "uint32", "<u4", 4;
    /// Signed 32-bit integer.
    I32: "i32", "int32", "<i4", 4;
    /// Unsigned 64-bit integer.
    U64: "u64", "uint64", "<u8", 8;
    /// Signed 64-bit integer.
    I64: "i64", "int64", "<i8", 8;
    /// IEEE 754 half precision.
    F16: "f16", "float16", "<f2", 2;
    /// The upper 16 bits of an IEEE 754 single.
    Bf16: "bf16", "bfloat16", "<u2", 2;
    /// IEEE 754 single precision.
    F32: "f32", "float32", "<f4", 4;
    /// IEEE 754 double precision.
    F64: "f64", "float64", "<f8", 8;
}

impl DType {
    /// The name in NumPy or `ml_dtypes`.
    #[must_use]
    pub const fn numpy_name(self) -> &'static str {
        self.row().0
    }

    /// The type string that `NumPy` uses for such values, for example `<f4`. `NumPy` has no bf16, so bf16 becomes
    /// 16-bit integers.
    #[must_use]
    pub const fn numpy_typestr(self) -> &'static str {
        self.row().1
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn size(self) -> u64 {
        self.row().2
    }

    /// Whether it is a floating-point type.
    #[must_use]
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The type with this [`numpy_name`](Self::numpy_name).
    #[must_use]
    pub fn from_numpy_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|dtype| dtype.numpy_name() == name)
    }

    /// The name in NumPy. NumPy has no bf16, so bf16 becomes 16-bit integers.
    #[must_use]
    pub const fn numpy(self) -> &'static str {
        match self {
            Self::Bf16 => Self::U16.numpy_name(),
            _ => self.numpy_name(),
        }
    }
}
