//! The row buffers of the passes, and the choice between plain and vector code.

use super::taps::Taps;
use super::{SLACK, scalar};

/// A ring buffer of the last rows. Rows are addressed by their absolute number.
///
/// Every row is followed by `SLACK` bytes that kernels may read or write.
#[derive(Debug, Default)]
pub(super) struct Ring {
    bytes: Vec<u8>,
    stride: usize,
    n_rows: usize,
    base: usize,
    /// Number of bytes before the first row.
    lead: usize,
    /// Number of bytes at the start of each row that are written but not read.
    skip: usize,
}

/// If a row starts at a multiple of 32, libjpeg writes it directly to memory, bypassing the cache. Our rows are read
/// again immediately, so they start between such addresses. This makes rendering faster by a fifth.
const STREAMED: usize = 32;

impl Ring {
    /// Allocates `n_rows` rows of `row_bytes` bytes. The first row has the number `base`. The first `skip` bytes of
    /// each row are written but not read.
    pub(super) fn reset(&mut self, row_bytes: usize, skip: usize, n_rows: usize, base: usize) {
        self.base = base;
        self.skip = skip;
        self.stride = (row_bytes + SLACK).next_multiple_of(64);
        self.n_rows = n_rows.max(1);
        let needed = self.stride * self.n_rows + 2 * STREAMED;
        if self.bytes.len() < needed {
            self.bytes.resize(needed, 0);
        }
        let aligned = self.bytes.as_ptr().align_offset(STREAMED);
        self.lead = aligned.min(STREAMED - 1) + STREAMED / 2;
    }

    /// The row and its slack.
    pub(super) fn row(&self, number: usize) -> &[u8] {
        self.slot(self.slot_of(number))
    }

    /// The slot of row `number`.
    pub(super) fn slot_of(&self, number: usize) -> usize {
        (number - self.base) % self.n_rows
    }

    /// The slot of the row after the one in `slot`.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn next_slot(&self, slot: usize) -> usize {
        if slot + 1 == self.n_rows { 0 } else { slot + 1 }
    }

    /// The row in a slot.
    pub(super) fn slot(&self, slot: usize) -> &[u8] {
        &self.bytes[self.lead + slot * self.stride..][self.skip..self.stride]
    }

    pub(super) fn row_mut(&mut self, number: usize) -> &mut [u8] {
        let slot = self.slot_of(number);
        &mut self.bytes[self.lead + slot * self.stride..][..self.stride]
    }
}

/// The instructions that the passes use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kernel {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2(super::avx2::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(super::avx512::Avx512, super::avx2::Avx2),
}

/// The best kernel that this processor supports.
impl Default for Kernel {
    fn default() -> Self {
        Self::all().pop().unwrap_or(Self::Scalar)
    }
}

impl Kernel {
    /// All kernels that this processor supports, from the plain one to the best one. They must give the same results.
    pub(super) fn all() -> Vec<Self> {
        let mut kernels = vec![Self::Scalar];
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = super::avx2::Avx2::detect() {
            kernels.push(Self::Avx2(avx2));
            if let Some(avx512) = super::avx512::Avx512::detect() {
                kernels.push(Self::Avx512(avx512, avx2));
            }
        }
        kernels
    }

    /// Whether this kernel uses `Lanes`.
    pub(super) fn has_lanes(self) -> bool {
        match self {
            Self::Scalar => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(_) => false,
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(..) => true,
        }
    }

    /// Resizes rows `first..first + n_rows` of `ring` horizontally into the rows of `dst`. The
    /// ring's rows start at source column `offset`.
    pub(super) fn horizontal(self, job: &Horizontal<'_>, dst: &mut dyn Iterator<Item = &mut [u8]>) {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512(avx512, _) if job.taps.lanes.is_usable() => {
                avx512.horizontal(job, &job.taps.lanes, dst);
                return;
            }
            Self::Avx2(avx2) | Self::Avx512(_, avx2) if job.taps.fits_i16 => {
                avx2.horizontal(job, dst);
                return;
            }
            _ => {}
        }
        let width = job.taps.start.len() * job.channels;
        for (row, out) in (job.first..job.first + job.n_rows).zip(dst) {
            scalar::horizontal(job.ring.row(row), job.offset, job.channels, job.taps, &mut out[..width]);
        }
    }

    /// Like `horizontal`, but writes to the rows of `middle` that have the same numbers. These rows must not wrap
    /// around the end of `middle`.
    pub(super) fn horizontal_to_ring(self, job: &Horizontal<'_>, middle: &mut Ring) {
        let slot = middle.slot_of(job.first);
        debug_assert!(slot + job.n_rows <= middle.n_rows, "a block of rows must not wrap");
        let stride = middle.stride;
        let rows = &mut middle.bytes[middle.lead + slot * stride..];
        self.horizontal(job, &mut rows.chunks_mut(stride));
    }

    /// Computes output row `index` of `taps` from the rows of `ring`.
    pub(super) fn vertical(self, ring: &Ring, taps: &Taps, index: usize, dst: &mut [u8]) {
        #[cfg(target_arch = "x86_64")]
        match self {
            Self::Avx512(avx512, _) if taps.fits_i16 && dst.len() >= super::avx512::Avx512::MIN_COLUMNS => {
                avx512.vertical(ring, taps, index, dst);
                return;
            }
            Self::Avx2(avx2) | Self::Avx512(_, avx2) if taps.fits_i16 => {
                avx2.vertical(ring, taps, index, dst);
                return;
            }
            _ => {}
        }
        scalar::vertical(ring, taps, index, dst);
    }
}

/// A run of rows for the horizontal pass.
#[derive(Clone, Copy)]
pub(super) struct Horizontal<'a> {
    pub(super) ring: &'a Ring,
    pub(super) first: usize,
    pub(super) n_rows: usize,
    pub(super) offset: usize,
    pub(super) channels: usize,
    pub(super) taps: &'a Taps,
}
