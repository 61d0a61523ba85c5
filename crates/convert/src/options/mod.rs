//! The options of conversions and exports, each declared once.

mod build;
mod check;
mod convert;
mod edit;
mod export;
mod spec;
mod values;

pub use self::convert::ConvertOptions;
pub use self::edit::{AppendOptions, EditOptions};
pub use self::export::ExportOptions;
pub use self::spec::{Declared, OptionSpec, Takes, given};
pub(crate) use self::spec::{put, whole};
pub use self::values::{Compression, Mode, NormalizeBy, OnError};
