//! Masks in separate files: usually one for each image. An image may also have no mask file or several.

use std::collections::{BTreeMap, BTreeSet};

use packds_pixels::{Color, DecodeOptions, Decoder};
use packds_system::to_usize;

use super::mask_colors::MaskColors;
use super::paths::{PathTable, lossy};
use super::store::{Content, PixelShape};
use super::subset::picked_paths;
use crate::sample::SampleError;

/// Appends the file at a path of the listing. Returns its size.
type ReadFile<'a> = &'a dyn Fn(&[u8], &mut Vec<u8>) -> Result<u64, SampleError>;

/// The mask files of all samples.
#[derive(Debug, Clone)]
pub(super) struct MaskFiles {
    /// The first mask file of each sample. For a sample without one, its image.
    pub(super) paths: PathTable,
    pub(super) bytes: Vec<u64>,
    /// The other mask files, with their sizes, of samples that have several.
    others: BTreeMap<usize, Vec<(Vec<u8>, u64)>>,
    /// The samples without a mask file. Their masks are zeros.
    blank: BTreeSet<usize>,
}

impl MaskFiles {
    /// One file for each sample.
    pub(super) fn new(paths: PathTable, bytes: Vec<u64>) -> Self {
        Self { paths, bytes, others: BTreeMap::new(), blank: BTreeSet::new() }
    }

    /// Adds further mask files to a sample.
    pub(super) fn add(&mut self, idx: usize, files: impl Iterator<Item = (Vec<u8>, u64)>) {
        self.others.entry(idx).or_default().extend(files);
    }

    /// Sets the mask of a sample to zeros.
    pub(super) fn set_blank(&mut self, idx: usize) {
        self.blank.insert(idx);
    }

    /// The samples whose masks are zeros.
    pub(super) fn blank(&self) -> impl Iterator<Item = usize> {
        self.blank.iter().copied()
    }

    fn is_blank(&self, idx: usize) -> bool {
        self.blank.contains(&idx)
    }

    /// The paths and sizes of a sample's mask files.
    pub(super) fn of(&self, idx: usize) -> Vec<(Vec<u8>, u64)> {
        let first = (!self.is_blank(idx)).then(|| (self.paths.path(idx), self.bytes[idx]));
        let others = self.others.get(&idx).into_iter().flatten().cloned();
        first.into_iter().chain(others).collect()
    }

    /// The total size of a sample's mask files.
    pub(super) fn bytes(&self, idx: usize) -> u64 {
        let others = self.others.get(&idx).into_iter().flatten().map(|(_, bytes)| *bytes);
        let first = if self.is_blank(idx) { 0 } else { self.bytes[idx] };
        others.fold(first, u64::saturating_add)
    }

    /// The masks of some samples.
    pub(super) fn picked(&self, places: &[usize]) -> Self {
        let bytes = places.iter().map(|place| self.bytes[*place]).collect();
        let mut picked = Self::new(picked_paths(&self.paths, places), bytes);
        for (idx, place) in places.iter().enumerate() {
            if let Some(others) = self.others.get(place) {
                picked.add(idx, others.iter().cloned());
            }
            if self.is_blank(*place) {
                picked.set_blank(idx);
            }
        }
        picked
    }

    /// Appends the mask of a sample to `out`: its file, or the class numbers of the pixels. `size` is the width and height of the
    /// image.
    pub(super) fn append(
        &self,
        idx: usize,
        size: (u32, u32),
        (read, colors): (ReadFile<'_>, Option<&MaskColors>),
        out: &mut Vec<u8>,
    ) -> Result<Content, SampleError> {
        if self.is_blank(idx) {
            let shape = PixelShape { width: size.0, height: size.1, channels: 1, planar: false };
            out.resize(to_usize(shape.bytes()), 0);
            return Ok(Content::Pixels(shape));
        }
        read(&self.paths.path(idx), out)?;
        let Some(others) = self.others.get(&idx) else {
            let shape = colors.map(|colors| colors.number(out)).transpose()?;
            return Ok(shape.map_or(Content::File, Content::Pixels));
        };
        let shape = numbers(out, colors)?;
        let mut other = Vec::new();
        for (path, _) in others {
            other.clear();
            let wrong = |source| SampleError::Mask { mask: lossy(path), source: Box::new(source) };
            read(path, &mut other).map_err(wrong)?;
            let found = numbers(&mut other, colors).map_err(wrong)?;
            if (found.width, found.height) != (shape.width, shape.height) {
                let (expected, found) = ((shape.width, shape.height), (found.width, found.height));
                return Err(SampleError::MaskSize { mask: lossy(path), expected, found });
            }
            // Each pixel gets its largest value in any of the files.
            out.iter_mut().zip(&other).for_each(|(pixel, other)| *pixel = (*pixel).max(*other));
        }
        Ok(Content::Pixels(shape))
    }
}

/// Replaces the bytes of a mask file with its class numbers, one for each pixel.
fn numbers(file: &mut Vec<u8>, colors: Option<&MaskColors>) -> Result<PixelShape, SampleError> {
    if let Some(colors) = colors {
        return colors.number(file);
    }
    let options = DecodeOptions { color: Color::Index, jpeg_scaling: false, ..DecodeOptions::default() };
    let image = Decoder::new(options).decode(file).map_err(SampleError::Pixels)?;
    *file = image.data;
    Ok(PixelShape { width: image.width, height: image.height, channels: 1, planar: false })
}
