//! Enums that users type. Parsing, printing and the message for an unknown name all come from one list of names.

use std::fmt::{self, Debug, Display};
use std::str::FromStr;

/// An enum whose values users type by name. [`named!`](crate::named) implements it.
pub trait Named: Copy + Debug + Display + FromStr<Err = BadValue> + 'static {
    /// All names, in the order of the documentation.
    const NAMES: &'static [&'static str];
}

/// An error: the user's text is not a valid value. Displayed as `expected raw, encoded or mixed, found "x"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadValue {
    expected: String,
    found: String,
}

impl BadValue {
    /// The error for the user's text `found`, where `expected` was required.
    pub fn new(expected: impl Into<String>, found: &str) -> Self {
        Self { expected: expected.into(), found: found.to_owned() }
    }

    /// The error for the user's text `found`, where one of these names was required.
    pub fn unknown(names: &[&str], found: &str) -> Self {
        let expected = match names {
            [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
            few => few.concat(),
        };
        Self::new(expected, found)
    }
}

impl Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, found {:?}", self.expected, self.found)
    }
}

impl std::error::Error for BadValue {}

/// Implements `ALL`, `name()`, `Display`, `FromStr` and [`Named`] for an enum. For a variant with fields, the macro
/// call gives the field values that the bare name stands for. Parsing accepts `-` for `_`, because command-line flags
/// use `-`.
///
/// ```
/// #[derive(Debug, Clone, Copy, PartialEq)]
/// enum Order {
///     FileOrder,
///     Window { chunks: Option<u32> },
/// }
/// packds_system::named!(Order { FileOrder = "file_order", Window { chunks: None } = "window" });
///
/// assert_eq!("file-order".parse(), Ok(Order::FileOrder));
/// assert_eq!(Order::Window { chunks: Some(3) }.to_string(), "window");
/// let error = "sorted".parse::<Order>().unwrap_err();
/// assert_eq!(error.to_string(), "expected file_order or window, found \"sorted\"");
/// ```
#[macro_export]
macro_rules! named {
    ($type:ident { $($variant:ident $({ $($field:ident: $value:expr),+ })? = $name:literal),+ $(,)? }) => {
        impl $type {
            /// Every value.
            pub const ALL: [Self; [$($name),+].len()] =
                [$(Self::$variant $({ $($field: $value),+ })?),+];

            /// The name that users type.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $name),+
                }
            }
        }

        impl $crate::Named for $type {
            const NAMES: &'static [&'static str] = &[$($name),+];
        }

        impl ::std::fmt::Display for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl ::std::str::FromStr for $type {
            type Err = $crate::BadValue;

            fn from_str(text: &str) -> Result<Self, $crate::BadValue> {
                let named = |value: &Self| value.name() == text.replace('-', "_") || value.name() == text;
                let unknown = || $crate::BadValue::unknown(<Self as $crate::Named>::NAMES, text);
                Self::ALL.into_iter().find(named).ok_or_else(unknown)
            }
        }
    };
}
