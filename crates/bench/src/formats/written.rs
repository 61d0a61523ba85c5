//! The files of one format, written from the reference.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use packds_convert::{ConvertError, ConvertOptions, DataFormat, ExportOptions, ImagesAs, Mode, convert, export};

use super::cache::{bytes_of, files_of};
use super::candidate::Open;
use super::catalogue::{Chunk, Entry, Export, Make, SHARD_BATCHES};
use super::feed::{Feed, Lanes};
use super::order::Schedule;
use super::packs::PackFeed;
use super::read::Made;
use super::reference::Reference;
use super::report::FormatRow;
use crate::BenchError;
use crate::watch::Progress;

/// Why gray images have no encoded pack.
const GRAY: &str = "image files in a pack are decoded as RGB, but these images have one channel";

enum Way {
    Readers(Open),
    /// A pack, and the augmentation that produces the reference's pixels. The augmentation may be empty.
    Pack(PathBuf, String),
}

struct Files {
    way: Way,
    files: Vec<PathBuf>,
    bytes: u64,
    write: Duration,
}

/// A format, and its files if it could be written.
pub(super) struct Written {
    pub(super) entry: Entry,
    files: Result<Files, String>,
    shard: u64,
    notes: Vec<String>,
}

impl Written {
    /// Writes the format's files below `work`. A format that this build does not support is not an error.
    pub(super) fn make(
        entry: &Entry,
        reference: &Reference,
        work: &Path,
        progress: &Progress<'_>,
    ) -> Result<Self, BenchError> {
        let shard = u64::from(reference.batch) * SHARD_BATCHES;
        let mut written = Self {
            entry: *entry,
            files: Err(String::new()),
            shard,
            notes: entry.notes.iter().map(|note| (*note).to_owned()).collect(),
        };
        if let (Make::EncodedPack, 1) = (entry.make, reference.channels) {
            written.files = Err(GRAY.to_owned());
            return Ok(written);
        }
        written.files = match written.write(reference, work, progress) {
            Ok(files) => Ok(files),
            Err(BenchError::Convert(ConvertError::FormatLeftOut { .. })) => Err("not part of this build".to_owned()),
            Err(error) => return Err(error),
        };
        Ok(written)
    }

    fn write(&mut self, reference: &Reference, work: &Path, progress: &Progress<'_>) -> Result<Files, BenchError> {
        let started = Instant::now();
        let path = match self.entry.make {
            Make::Export(how) => {
                let path = work.join(how.target);
                self.notes.extend(run_export(&how, reference, &path, self.shard, progress)?);
                path
            }
            Make::Pack(zstd) => {
                let path = work.join(format!("{}.pack", self.entry.name));
                reference.copy(&path, zstd, progress)?;
                path
            }
            Make::EncodedPack => {
                let path = work.join("encoded.pack");
                let images = self.image_files(reference, work, progress)?;
                let options = ConvertOptions { mode: Mode::Encoded, ..ConvertOptions::default() };
                convert(&images, &path, &options, progress)?;
                path
            }
        };
        let write = started.elapsed();
        let way = match self.entry.make {
            Make::Export(how) => Way::Readers((how.read)(&self.made(reference, path.clone()))?),
            Make::Pack(_) => Way::Pack(path.clone(), String::new()),
            Make::EncodedPack => Way::Pack(path.clone(), reference.augment.clone()),
        };
        let files = files_of(&path)?;
        Ok(Files { way, bytes: bytes_of(&files)?, files, write })
    }

    /// The image files for an encoded pack: the user's, or PNG files of the same pixels.
    fn image_files(
        &mut self,
        reference: &Reference,
        work: &Path,
        progress: &Progress<'_>,
    ) -> Result<PathBuf, BenchError> {
        if let Some(images) = &reference.images {
            self.notes.push(format!("decoded by {}", reference.augment));
            return Ok(images.clone());
        }
        let folder = work.join("encoded-images");
        let options = ExportOptions {
            to: Some(DataFormat::ImageFolder),
            images: Some(ImagesAs::Files),
            ..ExportOptions::default()
        };
        export(&reference.pack, &folder, &options, progress)?;
        self.notes.push("PNG files of the pixels".to_owned());
        // The manifest has the pack's class ids. Ids derived from folder names may differ.
        Ok(folder.join("manifest.jsonl"))
    }

    fn made(&self, reference: &Reference, path: PathBuf) -> Made {
        Made {
            path,
            n_samples: reference.n_samples(),
            sample_bytes: reference.sample_bytes(),
            channels: reference.channels,
            batch: u64::from(reference.batch),
            shard: self.shard,
            labels: reference.labels.clone().into(),
        }
    }

    /// Why the format was not written. `None` if it was.
    pub(super) fn left_out(&self) -> Option<&str> {
        self.files.as_ref().err().map(String::as_str)
    }

    pub(super) fn files(&self) -> &[PathBuf] {
        self.files.as_ref().map_or(&[], |files| &files.files)
    }

    pub(super) fn open(&self, schedule: &Schedule, sample_bytes: usize) -> Result<Box<dyn Feed>, BenchError> {
        let files = self.files.as_ref().map_err(|reason| BenchError::wrong(self.entry.name, "files", reason))?;
        let schedule = Schedule { shard: self.entry.streamed.then_some(self.shard), ..*schedule };
        Ok(match &files.way {
            Way::Readers(open) => Box::new(Lanes::open(open, schedule, sample_bytes)?),
            Way::Pack(path, augment) => Box::new(PackFeed::open(path, &schedule, augment)?),
        })
    }

    pub(super) fn row(&self, reference: &Reference) -> FormatRow {
        let files = self.files.as_ref().ok();
        FormatRow {
            format: self.entry.name.to_owned(),
            // If the pack has the original files, the title says so, because they can take longer to decode than the
            // files of other formats.
            title: match (&self.entry.make, &reference.images) {
                (Make::EncodedPack, Some(_)) => format!("{}: original files", self.entry.title),
                _ => self.entry.title.to_owned(),
            },
            runtime: "rust".to_owned(),
            lossless: true,
            bytes: files.map(|files| files.bytes),
            write_s: files.map(|files| files.write.as_secs_f64()),
            chunk: self.entry.chunk(reference.batch).map(u64::from),
            notes: self.notes.clone(),
        }
    }
}

/// Exports and syncs to disk. Returns notes about data that the format cannot store.
fn run_export(
    how: &Export,
    reference: &Reference,
    path: &Path,
    shard: u64,
    progress: &Progress<'_>,
) -> Result<Vec<String>, BenchError> {
    let options = ExportOptions {
        to: Some(how.to),
        images: Some(how.images),
        chunk_samples: match how.chunk {
            Chunk::Unset => None,
            Chunk::Of(n) => Some(n),
            Chunk::Batch => Some(reference.batch),
        },
        shard_samples: how.sharded.then_some(shard),
        codec: how.codec,
        per_sample: how.per_sample,
        ..ExportOptions::default()
    };
    let report = export(&reference.pack, path, &options, progress)?;
    // An export to one file syncs the file. The files of an export to a folder are synced here, so that nothing is
    // written back later.
    for file in files_of(path)? {
        let synced = File::open(&file).and_then(|file| file.sync_all());
        synced.map_err(BenchError::io(&file))?;
    }
    Ok(report.lost.iter().map(|lost| format!("not kept: {lost}")).collect())
}
