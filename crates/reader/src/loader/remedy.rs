//! What to do where images cannot be on a device as they were asked for.

use std::fmt;

/// What to ask for instead. Its text is in the words of this crate; other front ends have theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Batches of the host's images.
    TierHost,
    /// A tier in which the file may be registered, by its name.
    NameTier,
    /// The tier in which chunks may be read from the disk.
    NameWindow,
    /// The host's decoder.
    HostDecodes,
    /// An order that goes chunk by chunk.
    OrderWindow,
    /// The policy that makes bad samples errors.
    BadSamplesError,
    /// No checks, or reading by the loader.
    ChecksumsOff,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TierHost => "take the tier host",
            Self::NameTier => "name one of them, or do not register the file",
            Self::NameWindow => "name that tier, or do without GPUDirect Storage",
            Self::HostDecodes => "let the host decode",
            Self::OrderWindow => "take the order window",
            Self::BadSamplesError => "take the policy error, or another tier",
            Self::ChecksumsOff => "turn checksums off, or let the loader read the images",
        })
    }
}
