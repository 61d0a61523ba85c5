//! Mosaics: four parts of images, one of the sample itself and one of each of the three samples before it in the batch.
//!
//! The idea is from YOLOv4 (Bochkovskiy, Wang and Liao, 2020, arXiv:2004.10934).

use packds_pixels::Layout;
use packds_system::to_usize;

use super::draws::{Draws, MIX};
use super::geometry::Matrix;
use super::mix::check_count;
use super::movement::Movement;
use super::op::Size;
use super::{AugmentError, AugmentPlan, SampleKey};
use crate::device::Patch;

/// Number of images in a mosaic.
const PARTS: usize = 4;

/// A part of a mosaic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tile {
    /// How many places before the sample the image has in the batch.
    back: usize,
    /// The part of the image.
    pub(crate) from: Patch,
    /// Its place in the mosaic.
    pub(crate) to: Patch,
}

/// How the pixels of an image lie in memory: planes of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) planes: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes of a pixel in a plane.
    pub(crate) pixel: usize,
}

impl Tile {
    /// The image's place in a batch of `n`, for the mosaic at `place`.
    pub(crate) fn source(&self, place: usize, n: usize) -> usize {
        let back = self.back.checked_rem(n).unwrap_or(0);
        (place + n - back).checked_rem(n).unwrap_or(0)
    }

    /// How places of the image move to the mosaic, and which boxes are left of it.
    pub(crate) fn movement(&self, plan: &AugmentPlan) -> Movement {
        let start = |patch: Patch| [patch.x.0, patch.y.0].map(f64::from);
        let [x, y] = start(self.from);
        let view = Size { width: self.from.x.1 - self.from.x.0, height: self.from.y.1 - self.from.y.0 };
        let to_corner: Matrix = [1.0, 0.0, -x, 0.0, 1.0, -y];
        Movement { matrices: vec![to_corner], view, origin: start(self.to), ..plan.no_movement() }
    }

    /// Copies the part from an image to a mosaic.
    pub(crate) fn copy(&self, grid: Grid, from: &[u8], to: &mut [u8]) {
        let Grid { planes, width, height, pixel } = grid;
        let n_bytes = to_usize(self.from.x.1 - self.from.x.0) * pixel;
        let rows = (self.from.y.0..self.from.y.1).zip(self.to.y.0..self.to.y.1);
        let pairs = (0..planes).flat_map(|plane| rows.clone().map(move |rows| (plane, rows)));
        for (plane, (row, place)) in pairs {
            let start = |row: u32, column: u32| ((plane * height + to_usize(row)) * width + to_usize(column)) * pixel;
            let (start, end) = (start(row, self.from.x.0), start(place, self.to.x.0));
            if let (Some(from), Some(to)) = (from.get(start..start + n_bytes), to.get_mut(end..end + n_bytes)) {
                to.copy_from_slice(from);
            }
        }
    }
}

impl AugmentPlan {
    /// Whether images may become mosaics.
    pub(crate) const fn has_mosaics(&self) -> bool {
        self.mosaic.is_some()
    }

    /// The parts of a sample's mosaic. `None` if the sample does not become one. Draw 7 chooses, and draws 8 (x) and 9 (y)
    /// give the point at which the four parts meet. It is in the middle half of each side.
    pub(crate) fn tiles(&self, key: SampleKey) -> Option<[Tile; PARTS]> {
        let draws = Draws::new(key.root(), MIX, MIX);
        self.mosaic.filter(|p| draws.chance(7, *p))?;
        let Size { width, height } = self.size();
        let meets = |draw, side: u32| side / 4 + draws.below(draw, side / 2 + 1);
        let (x, y) = (meets(8, width), meets(9, height));
        // A part lies with its corner at the point where the parts meet: the first with its lower right corner.
        let before = |end: u32, side: u32| ((side - end, side), (0, end));
        let after = |start: u32, side: u32| ((0, side - start), (start, side));
        let columns = [before(x, width), after(x, width)];
        let rows = [before(y, height), after(y, height)];
        let tile = |back: usize| {
            let ((from_x, to_x), (from_y, to_y)) = (columns[back % 2], rows[back / 2]);
            Tile { back, from: Patch { x: from_x, y: from_y }, to: Patch { x: to_x, y: to_y } }
        };
        Some([tile(0), tile(1), tile(2), tile(3)])
    }

    /// Makes mosaics of a finished batch in place. `batch` has the results of `keys`, one after another.
    ///
    /// # Errors
    /// `Buffer` if the size of the batch is not `item_bytes()` for each key.
    pub fn make_mosaics(&self, keys: &[SampleKey], batch: &mut [u8]) -> Result<(), AugmentError> {
        let channels = usize::from(self.output().channels);
        let (planes, values) = match self.output().layout {
            Layout::Hwc => (1, channels),
            Layout::Chw => (channels, 1),
        };
        self.make_mosaics_of(self.grid(planes, values * self.value_bytes()), keys, batch)
    }

    /// Like [`make_mosaics`](Self::make_mosaics), for masks with `channels` bytes for each pixel.
    pub(crate) fn make_mosaics_of_masks(
        &self,
        channels: usize,
        keys: &[SampleKey],
        batch: &mut [u8],
    ) -> Result<(), AugmentError> {
        self.make_mosaics_of(self.grid(1, channels), keys, batch)
    }

    /// An image of the size of the results.
    pub(crate) fn grid(&self, planes: usize, pixel: usize) -> Grid {
        let Size { width, height } = self.size();
        Grid { planes, width: to_usize(width), height: to_usize(height), pixel }
    }

    fn make_mosaics_of(&self, grid: Grid, keys: &[SampleKey], batch: &mut [u8]) -> Result<(), AugmentError> {
        if !self.has_mosaics() {
            return Ok(());
        }
        let n_bytes = grid.planes * grid.width * grid.height * grid.pixel;
        let (n, expected) = (keys.len(), n_bytes.saturating_mul(keys.len()));
        check_count("bytes of a batch of mosaics", expected, batch.len())?;
        // Mosaics are made from last to first, so the images before each are still unchanged. The first ones need the
        // last images of the batch, which are mosaics by then, so copies of these are kept.
        let first_kept = n.saturating_sub(PARTS - 1);
        let kept = batch.get(first_kept * n_bytes..).unwrap_or_default().to_vec();
        let mut own = vec![0; n_bytes];
        for (place, key) in keys.iter().enumerate().rev() {
            let Some(tiles) = self.tiles(*key) else { continue };
            let (before, rest) = batch.split_at_mut(place * n_bytes);
            let Some(item) = rest.get_mut(..n_bytes) else { continue };
            own.copy_from_slice(item);
            for tile in tiles {
                let from = match tile.source(place, n) {
                    source if source == place => Some(own.as_slice()),
                    source if source < place => before.get(source * n_bytes..),
                    source => source.checked_sub(first_kept).and_then(|source| kept.get(source * n_bytes..)),
                };
                tile.copy(grid, from.unwrap_or_default(), item);
            }
        }
        Ok(())
    }
}
