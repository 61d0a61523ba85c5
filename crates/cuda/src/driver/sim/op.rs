//! Work queued on the simulated driver, and the memory that each step reads and writes.

use std::ops::Range;

use packds_reader::device::{ColorOp, Frame, Patch, Share};

use super::jpeg::QueuedFile;
use super::launch::table_bytes;
use super::memory::{address, range};
use crate::emission::Emission;

#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub(super) number: u64,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    CopyIn { from: u64, to: u64, bytes: u64, sum: u64 },
    CopyWithin { from: u64, to: u64, bytes: u64 },
    Decode(QueuedFile),
    Emit(Emission),
    Record { event: u64, record: u64 },
    Wait { event: u64, record: u64 },
}

impl Kind {
    /// The device memory that the step reads.
    pub(super) fn reads(&self) -> Vec<Range<u64>> {
        match self {
            Self::CopyWithin { from, bytes, .. } => vec![range(*from, *bytes)],
            Self::Emit(e) => {
                let picture = u64::from(e.width) * u64::from(e.height);
                let all = picture * u64::from(e.channels) * u64::from(e.n);
                let n = u64::from(e.n);
                let patches = n * u64::from(e.n_patches) * address(Patch::BYTES);
                let mut ranges = vec![
                    range(e.table.0, table_bytes(e)),
                    range(e.patches.0, patches),
                    range(e.colors.0, n * u64::from(e.n_colors) * address(ColorOp::BYTES)),
                ];
                // The size of the taps is unknown here, but it is at least 4 bytes.
                if e.taps.0 != 0 {
                    ranges.push(range(e.taps.0, 4));
                }
                if e.shares.0 != 0 {
                    ranges.push(range(e.shares.0, n * address(Share::BYTES)));
                }
                ranges.retain(|range| !range.is_empty());
                // With frames, pictures can be anywhere. They are checked one by one when the step runs.
                if e.frames.0 == 0 {
                    ranges.push(e.source.0..e.source.0 + all);
                } else {
                    ranges.push(range(e.frames.0, n * address(Frame::BYTES)));
                }
                ranges
            }
            _ => Vec::new(),
        }
    }

    /// The device memory that the step writes.
    pub(super) fn writes(&self) -> Option<Range<u64>> {
        match self {
            Self::CopyIn { to, bytes, .. } | Self::CopyWithin { to, bytes, .. } => Some(*to..to + bytes),
            Self::Decode(file) => Some(range(file.to, file.pixel_bytes())),
            Self::Emit(e) => Some(e.out.0..e.out.0 + e.out_bytes()),
            _ => None,
        }
    }

    /// The host memory that the step reads.
    pub(super) fn reads_host(&self) -> Option<Range<u64>> {
        match self {
            Self::CopyIn { from, bytes, .. } => Some(*from..from + bytes),
            Self::Decode(file) => Some(range(file.from, file.bytes)),
            _ => None,
        }
    }
}
