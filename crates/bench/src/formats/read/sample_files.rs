//! Formats with one file per sample: `.npy` files, or image files that are decoded.

use packds_system::{to_u64, to_usize};
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
use crate::formats::candidate::{Batch, Open, Reader, readers};
use crate::formats::order::Rows;

/// Image files in class folders. The class ids come from the manifest next to them. Ids derived from folder names would
/// differ if a class has no name or no samples.
pub(crate) fn image_files(made: &Made) -> Result<Open, BenchError> {
    let listing = list(&made.path.join("manifest.jsonl"), &ListOptions::default())?;
    let file = |i| (listing.file_path(i), listing.label(i).unwrap_or(0));
    one_by_one(made, (0..listing.len()).map(file).collect(), Some(made.channels))
}

/// Arrays, one per file, in the order of the file names.
pub(crate) fn array_files(made: &Made) -> Result<Open, BenchError> {
    let mut images = Vec::new();
    for path in files_of(&made.path)? {
        let len = std::fs::metadata(&path).map_err(BenchError::io(&path))?.len();
        // Files of labels or other fields are smaller than any image.
        if path.extension().is_some_and(|e| e == "npy") && to_usize(len) > made.sample_bytes {
            images.push(path);
        }
    }
    let made = made.with_listed_labels();
    one_by_one(&made, images.into_iter().zip(made.labels.iter().copied()).collect(), None)
}

/// Lists the files and their labels before anything is timed. Image files are decoded to `channels` channels.
fn one_by_one(made: &Made, files: Arc<[(PathBuf, i64)]>, channels: Option<u64>) -> Result<Open, BenchError> {
    if to_u64(files.len()) != made.n_samples {
        return Err(made.odd("the number of files differs from the number of samples"));
    }
    Ok(Box::new(move |threads| {
        readers(threads, || OneByOne {
            files: Arc::clone(&files),
            pictures: channels.map(Pictures::new),
            bytes: Vec::new(),
        })
    }))
}

struct OneByOne {
    files: Arc<[(PathBuf, i64)]>,
    /// `None` if the files are arrays.
    pictures: Option<Pictures>,
    bytes: Vec<u8>,
}

impl Reader for OneByOne {
    fn load(&mut self, rows: &Rows, out: &mut Batch) -> Result<(), BenchError> {
        for (sample, (pixels, label)) in rows.iter().zip(out.rows_mut()) {
            let Some((path, class)) = self.files.get(to_usize(sample)) else {
                continue;
            };
            *label = *class;
            let mut file = File::open(path).map_err(BenchError::io(path))?;
            let odd = || BenchError::io(path)(std::io::ErrorKind::InvalidData.into());
            if let Some(pictures) = &mut self.pictures {
                self.bytes.clear();
                file.read_to_end(&mut self.bytes).map_err(BenchError::io(path))?;
                if !pictures.decode(&self.bytes, pixels).map_err(BenchError::pixels(path))? {
                    return Err(odd());
                }
                continue;
            }
            // Read the usual size of the header first. The second read then goes directly into the batch.
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
