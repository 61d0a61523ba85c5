//! Image folders and manifests into packs

pub mod error;
pub mod source;

pub use error::ConvertError;
