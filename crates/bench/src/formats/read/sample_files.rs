//! A file for each sample: `.npy` files, or image files that are decoded.

use packds_system::to_usize;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use packds_convert::source::{ListOptions, list};

use super::Made;
use super::decode::Pictures;
use super::npy::header_bytes;
use crate::BenchError;
use crate::formats::cache::files_of;
use crate::formats::candidate::{Batch, Candidate, Reader};
use crate::formats::order::Rows;

/// The files and their labels, listed before anything is timed.
pub(crate) struct SampleFiles {
    files: Arc<[(PathBuf, i64)]>,
    /// Channels of the pixels that the files are decoded to; none where they are arrays.
    decoded_to: Option<u64>,
}

impl SampleFiles {
    /// Image files in class folders. The manifest beside them has the class ids: those that follow from the names of the
    /// folders are others where a class has no name, or no sample.
    pub(crate) fn images(made: &Made) -> Result<Self, BenchError> {
        let listing = list(&made.path.join("manifest.jsonl"), &ListOptions::default())?;
        let file = |i| (listing.file_path(i), listing.label(i).unwrap_or(0));
        let files: Vec<(PathBuf, i64)> = (0..listing.len()).map(file).collect();
        Self::new(made, files, Some(made.channels))
    }

    /// Arrays whose names tell their order.
    pub(crate) fn arrays(made: &Made) -> Result<Self, BenchError> {
        let mut files = files_of(&made.path)?;
        files.retain(|path| path.extension().is_some_and(|e| e == "npy"));
        // Files of labels or other fields are smaller than any of the images.
        let mut images = Vec::new();
        for path in files {
            let len = std::fs::metadata(&path).map_err(BenchError::io(&path))?;
            if usize::try_from(len.len()).is_ok_and(|len| len > made.sample_bytes) {
                images.push(path);
            }
        }
        let labels = made.listed_labels();
        let files = images.into_iter().zip(labels.iter().copied()).collect();
        Self::new(made, files, None)
    }

    fn new(made: &Made, files: Vec<(PathBuf, i64)>, decoded_to: Option<u64>) -> Result<Self, BenchError> {
        if u64::try_from(files.len()).ok() != Some(made.n_samples) {
            return Err(made.odd("not one file for each sample"));
        }
        let files = files.into();
        Ok(Self { files, decoded_to })
    }
}

impl Candidate for SampleFiles {
    fn open(&self, threads: usize) -> Result<Vec<Box<dyn Reader>>, BenchError> {
        let reader = || OneByOne {
            files: Arc::clone(&self.files),
            pictures: self.decoded_to.map(Pictures::new),
            bytes: Vec::new(),
        };
        Ok((0..threads).map(|_| Box::new(reader()) as _).collect())
    }
}

struct OneByOne {
    files: Arc<[(PathBuf, i64)]>,
    /// None where the files are arrays.
    pictures: Option<Pictures>,
    bytes: Vec<u8>,
}

impl Reader for OneByOne {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        for (sample, (pixels, label)) in rows.iter().zip(out.rows_mut()) {
            let number = to_usize(sample);
            let Some((path, class)) = self.files.get(number) else {
                continue;
            };
            *label = *class;
            let mut file = File::open(path).map_err(BenchError::io(path))?;
            let odd = || {
                let error = std::io::Error::from(std::io::ErrorKind::InvalidData);
                BenchError::io(path)(error)
            };
            if let Some(pictures) = &mut self.pictures {
                self.bytes.clear();
                file.read_to_end(&mut self.bytes).map_err(BenchError::io(path))?;
                let decoded = pictures.decode(&self.bytes, pixels);
                let fits = decoded.map_err(|source| BenchError::Pixels { path: path.clone(), source })?;
                if !fits {
                    return Err(odd());
                }
                continue;
            }
            // The header's own length first: two reads, the second of them into the batch.
            let mut head = [0; 128];
            file.read_exact(&mut head).map_err(BenchError::io(path))?;
            let begun = match header_bytes(&head) {
                Some(128) => 0,
                Some(header @ 10..128) => 128 - header,
                _ => return Err(odd()),
            };
            let (start, rest) = pixels.split_at_mut(begun.min(pixels.len()));
            let known = head.get(128 - begun..).and_then(|h| h.get(..start.len()));
            start.copy_from_slice(known.unwrap_or_default());
            file.read_exact(rest).map_err(BenchError::io(path))?;
        }
        Ok(())
    }
}
