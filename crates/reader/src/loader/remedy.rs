//! What to do if images cannot be on the device as requested.

use std::fmt;

use packds_system::Opt;

const BAD_SAMPLES: Opt = Opt::new("bad_samples");
const CHECKSUMS: Opt = Opt::new("checksums");
const JPEG: Opt = Opt::new("jpeg");
const ORDER: Opt = Opt::new("order");
const REGISTER: Opt = Opt::new("register");
const TIER: Opt = Opt::new("tier");

/// What to request instead. The text names options in the words of the front end.
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
        let (host, window) = (TIER.with("host"), TIER.with("gpu-window"));
        match self {
            Self::TierHost => write!(f, "give {host}"),
            Self::NameTier => write!(f, "give {window} or {host}, or leave {REGISTER} out"),
            Self::NameWindow => write!(f, "give {window}, or leave {REGISTER} out"),
            Self::HostDecodes => write!(f, "leave {JPEG} out: the host decodes"),
            Self::OrderWindow => write!(f, "give {}", ORDER.with("window")),
            Self::BadSamplesError => {
                write!(f, "give {}, or another tier", BAD_SAMPLES.with("error"))
            }
            Self::ChecksumsOff => {
                write!(f, "give {}, or leave {REGISTER} out", CHECKSUMS.with("off"))
            }
        }
    }
}
