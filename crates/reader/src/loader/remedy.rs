//! What to do if images cannot be placed on the device as requested.

use std::fmt;

use packds_system::Opt;

const BAD_SAMPLES: Opt = Opt::new("bad_samples");
const CHECKSUMS: Opt = Opt::new("checksums");
const JPEG: Opt = Opt::new("jpeg");
const ORDER: Opt = Opt::new("order");
const REGISTER: Opt = Opt::new("register");
const TIER: Opt = Opt::new("tier");

/// An alternative to request. It is displayed in the notation of the front end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// Use the tier `host`, in which the host prepares the images.
    TierHost,
    /// Explicitly request a tier that may register the file.
    NameTier,
    /// Request the tier that may read chunks from the disk.
    NameWindow,
    /// Decode files on the host.
    HostDecodes,
    /// Use the order `window`.
    OrderWindow,
    /// Use the policy that makes bad samples errors.
    BadSamplesError,
    /// Disable checksums, or let the loader read the chunks.
    ChecksumsOff,
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, window) = (TIER.with("host"), TIER.with("gpu-window"));
        match self {
            Self::TierHost => write!(f, "use {host}"),
            Self::NameTier => write!(f, "use {window} or {host}, or omit {REGISTER}"),
            Self::NameWindow => write!(f, "use {window}, or omit {REGISTER}"),
            Self::HostDecodes => write!(f, "omit {JPEG}, so that the host decodes the images"),
            Self::OrderWindow => write!(f, "use {}", ORDER.with("window")),
            Self::BadSamplesError => {
                write!(f, "use {}, or another tier", BAD_SAMPLES.with("error"))
            }
            Self::ChecksumsOff => {
                write!(f, "use {}, or omit {REGISTER}", CHECKSUMS.with("off"))
            }
        }
    }
}
