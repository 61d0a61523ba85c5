//! What to do if images cannot be on the device as requested.

use std::fmt;

/// What to request instead. The text uses the terms of this crate. Other front ends have their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Use batches of images made on the host.
    TierHost,
    /// Use a tier that may register the file, by name.
    NameTier,
    /// Use the tier that may read chunks from the disk.
    NameWindow,
    /// Decode on the host.
    HostDecodes,
    /// Use an order that visits chunk after chunk.
    OrderWindow,
    /// Use the policy that makes bad samples errors.
    BadSamplesError,
    /// Disable checksums, or let the loader read.
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
