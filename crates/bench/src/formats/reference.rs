//! The images for all formats: a pack of raw pixels made from the user's data.

use packds_system::{to_u64, to_usize};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use packds_convert::source::{ListOptions, Listing, list, source_format};
use packds_convert::{ConvertError, ConvertOptions, DataFormat, convert};
use packds_format::{
    Block, BlockBuilder, Codec, DType, Field, FieldKind, Filter, FooterParts, PackOptions, PackWriter, Paths, Role,
    Schema,
};
use packds_pixels::{Crop, Resize, probe};
use packds_reader::Pack;

use crate::BenchError;
use crate::threads::start;
use crate::watch::Progress;
use crate::workload::link;

/// If image sizes differ, images are resized to this short side.
const SHORT: u32 = 256;
/// Side of the centre crop that follows the resize.
const MIDDLE: u32 = 224;
/// Default number of images from a folder.
const MOST: u64 = 1024;

pub(crate) struct Reference {
    pub(crate) pack: Pack,
    /// Batch size, reduced if there are few images. Divides the number of samples.
    pub(crate) batch: u32,
    pub(crate) height: u64,
    pub(crate) width: u64,
    pub(crate) channels: u64,
    pub(crate) labels: Vec<i64>,
    /// The augmentation that turns the files in `images` into the reference's pixels.
    pub(crate) augment: String,
    /// The folder of the original images. `None` if the data is a pack.
    pub(crate) images: Option<PathBuf>,
}

impl Reference {
    pub(crate) fn n_samples(&self) -> u64 {
        self.pack.n_samples()
    }

    pub(crate) fn sample_bytes(&self) -> usize {
        to_usize(self.height * self.width * self.channels)
    }

    /// Takes at most `most` images of `data`, in batches of at most `batch`. From a pack, it takes the first images.
    /// From a folder, it takes evenly spread images.
    pub(crate) fn make(
        data: &Path,
        work: &Path,
        batch: u32,
        most: Option<u64>,
        progress: &Progress<'_>,
    ) -> Result<Self, BenchError> {
        let path = work.join("reference.pack");
        if data.extension().is_some_and(|e| e == "pack") && data.is_file() {
            let source = packds_reader::open(data)?;
            let (n, batch) = whole_batches(source.n_samples().min(most.unwrap_or(u64::MAX)), batch);
            let writing = Copying { source: &source, n_samples: n, chunk_samples: batch, zstd: None, progress };
            writing.write(&path)?;
            return Self::open(&path, batch, None, String::new());
        }
        let format = source_format(data, &ListOptions::default())?;
        if !matches!(format, DataFormat::ImageFolder | DataFormat::Manifest) {
            // Only these formats have one file per image, which the encoded pack stores unchanged.
            let error = ConvertError::Options {
                reason: format!("{}: expected an image folder or a pack, found {format}", data.display()),
                hint: "convert it to a pack first, with packds convert".to_owned(),
            };
            return Err(error.into());
        }
        let listing = list(data, &ListOptions::default())?;
        let found = to_u64(listing.len());
        let (n, batch) = whole_batches(found.min(most.unwrap_or(MOST)), batch);
        let images = work.join("images");
        let mut options = ConvertOptions { chunk_samples: Some(batch), ..ConvertOptions::default() };
        let mut augment = String::new();
        if link_some(&listing, &images, to_usize(n))? {
            options.resize = Some(Resize::Short(SHORT));
            options.crop = Some(Crop::Center { width: MIDDLE, height: MIDDLE });
            augment = format!("resize{SHORT},center{MIDDLE}");
        }
        convert(&images, &path, &options, progress)?;
        Self::open(&path, batch, Some(images), augment)
    }

    fn open(path: &Path, batch: u32, images: Option<PathBuf>, augment: String) -> Result<Self, BenchError> {
        let pack = packds_reader::open(path)?;
        let fields = Fields::of(&pack)?;
        let (height, width, channels) = fields.shape;
        let labels = labels(&pack, fields.label)?;
        let augment = match augment.is_empty() {
            true => format!("center{width}x{height}"),
            false => augment,
        };
        Ok(Self { pack, batch, height, width, channels, labels, augment, images })
    }

    pub(crate) fn copy(&self, path: &Path, zstd: Option<i32>, progress: &Progress<'_>) -> Result<(), BenchError> {
        let copying =
            Copying { source: &self.pack, n_samples: self.n_samples(), chunk_samples: self.batch, zstd, progress };
        copying.write(path)
    }
}

/// The number of samples to use and the batch size. The samples form whole batches, at least four if there are enough.
fn whole_batches(n: u64, batch: u32) -> (u64, u32) {
    let fit = u32::try_from((n / 4).max(1)).unwrap_or(u32::MAX);
    let batch = batch.clamp(1, fit);
    (n / u64::from(batch) * u64::from(batch), batch)
}

/// Creates links to `n` evenly spread images in class folders. Returns whether the image sizes differ.
fn link_some(listing: &Listing, folder: &Path, n: usize) -> Result<bool, BenchError> {
    let mut sizes = Vec::new();
    for k in 0..n {
        let i = k * listing.len() / n.max(1);
        let path = listing.file_path(i);
        let head = std::fs::read(&path).map_err(BenchError::io(&path))?;
        let info = probe(&head).map_err(BenchError::pixels(&path))?;
        sizes.push((info.width, info.height));
        link(listing, i, folder, [format!("{i:08}")])?;
    }
    sizes.dedup();
    Ok(sizes.len() > 1)
}

/// The fields used by the benchmark, with their schema numbers.
struct Fields {
    image: usize,
    label: Option<usize>,
    shape: (u64, u64, u64),
    /// Whether the pack is channels-first. The reference is channels-last.
    planar: bool,
}

impl Fields {
    fn of(pack: &Pack) -> Result<Self, BenchError> {
        let mut fields = pack.schema().fields().iter().enumerate();
        let image = fields.clone().find(|(_, f)| f.role == Some(Role::Image));
        let label = fields.find(|(_, f)| f.role == Some(Role::Label) && f.shape.is_empty());
        let pixels = image.filter(|(_, field)| field.kind == FieldKind::Tensor && field.dtype == DType::U8);
        let found = pixels.and_then(|(image, field)| Some((image, field.image_shape()?)));
        let (image, shape) = found.ok_or_else(|| ConvertError::Options {
            reason: format!(
                "{}: expected u8 pixels of one size with layout hwc or chw, found {}",
                pack.file_path().display(),
                image.map_or("no images".to_owned(), |(_, field)| described(field))
            ),
            hint: "make the pack with 'packds convert --mode raw --dtype u8', which gives all images one size"
                .to_owned(),
        })?;
        let field = pack.schema().fields().get(image);
        let planar = field.is_some_and(|field| field.layout.as_deref() == Some("chw"));
        Ok(Self { image, label: label.map(|(number, _)| number), shape, planar })
    }
}

fn interleave(planes: &[u8], pixels: &mut [u8], channels: usize) {
    let n_pixels = pixels.len() / channels.max(1);
    for (channel, plane) in planes.chunks_exact(n_pixels.max(1)).enumerate() {
        let to = pixels.iter_mut().skip(channel).step_by(channels.max(1));
        for (to, from) in to.zip(plane) {
            *to = *from;
        }
    }
}

fn described(field: &Field) -> String {
    match field.kind {
        FieldKind::Tensor => {
            let layout = field.layout.as_deref().unwrap_or("no layout");
            format!("{} {:?} ({layout})", field.dtype, field.shape)
        }
        FieldKind::Image => "image files, or images of several sizes".to_owned(),
        kind => kind.name().to_owned(),
    }
}

fn labels(pack: &Pack, field: Option<usize>) -> Result<Vec<i64>, BenchError> {
    let Some(field) = field else { return Ok(vec![0; to_usize(pack.n_samples())]) };
    let column = pack.column(field)?;
    Ok((0..pack.n_samples()).map(|sample| column.integer(sample).unwrap_or(0)).collect())
}

struct Copying<'a> {
    source: &'a Pack,
    n_samples: u64,
    chunk_samples: u32,
    zstd: Option<i32>,
    progress: &'a Progress<'a>,
}

impl Copying<'_> {
    fn schema(&self, fields: &Fields) -> Result<Schema, BenchError> {
        let known = self.source.schema().fields();
        let mut image = known.get(fields.image).cloned().unwrap_or_else(|| Field::tensor("image", DType::U8, &[]));
        let (h, w, c) = fields.shape;
        image.shape = vec![h, w, c];
        image.layout = Some("hwc".to_owned());
        image.codec = match self.zstd {
            None => Codec::None,
            Some(level) => Codec::Zstd { level, filter: Filter::for_pixels(fields.shape.2, true) },
        };
        Ok(Schema::new(vec![
            image,
            Field::column("label", DType::I64, &[]).with_role(Role::Label),
            Field::column("sample_crc32c", DType::U32, &[]).with_role(Role::SampleCrc32c),
        ])?)
    }

    /// Encodes blocks on all cores and writes them in order. On return, the file is on disk.
    fn write(&self, path: &Path) -> Result<(), BenchError> {
        let fields = Fields::of(self.source)?;
        let labels = labels(self.source, fields.label)?;
        let file = File::create(path).map_err(BenchError::io(path))?;
        let options = PackOptions::new(self.schema(&fields)?, self.chunk_samples);
        let mut writer = PackWriter::new(BufWriter::new(file), options)?;
        let schema = writer.schema().clone();
        let block = u64::from(writer.next_block_samples());
        let chunk = u64::from(self.chunk_samples);
        let blocks: Vec<(u64, u64)> = (0..self.n_samples)
            .step_by(to_usize(chunk))
            .flat_map(|start| {
                let end = (start + chunk).min(self.n_samples);
                let n_blocks = (end - start).div_ceil(block);
                (0..n_blocks).map(move |i| (start + i * block, (start + (i + 1) * block).min(end)))
            })
            .collect();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for wave in blocks.chunks(cores) {
            self.progress.check()?;
            let made: Vec<Result<Block, BenchError>> = std::thread::scope(|scope| {
                let make = |span: &(u64, u64)| self.block(&schema, &fields, &labels, *span);
                let threads: Vec<_> =
                    wave.iter().map(|span| start(scope, move || make(span))).collect::<Result<_, BenchError>>()?;
                let ended = || BenchError::wrong("a writing thread", "a block", "a panic");
                Ok::<_, BenchError>(
                    threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(ended()))).collect(),
                )
            })?;
            for block in made {
                writer.append(block?)?;
            }
        }
        let mut paths = Paths::default();
        let n = to_usize(self.n_samples);
        let mut known = 0;
        self.source.for_each_path(|_, path| {
            known += 1;
            if known <= n {
                paths.push(path)?;
            }
            Ok::<_, packds_format::FormatError>(())
        })?;
        let parts = FooterParts { paths, ..FooterParts::default() };
        let (mut file, _) = writer.finish(parts)?;
        file.flush().map_err(BenchError::io(path))?;
        let file = file.into_inner().map_err(|e| e.into_error());
        let synced = file.and_then(|file| file.sync_all());
        synced.map_err(BenchError::io(path))
    }

    fn block(
        &self,
        schema: &Schema,
        fields: &Fields,
        labels: &[i64],
        (start, end): (u64, u64),
    ) -> Result<Block, BenchError> {
        let mut block = BlockBuilder::new(schema);
        for sample in start..end {
            let item = self.source.item(fields.image, sample)?;
            let pixels = block.tensor_mut(0)?;
            match fields.planar {
                true => interleave(&item, pixels, to_usize(fields.shape.2)),
                false => pixels.copy_from_slice(&item),
            }
            let label = usize::try_from(sample).ok().and_then(|i| labels.get(i));
            block.set_column(1, &label.copied().unwrap_or(0).to_le_bytes())?;
            block.finish_sample()?;
        }
        Ok(block.finish()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_that_came_first_come_last() {
        let mut pixels = [0; 6];
        interleave(&[1, 2, 3, 4, 5, 6], &mut pixels, 3);
        assert_eq!(pixels, [1, 3, 5, 2, 4, 6]);
        interleave(&[1, 2, 3, 4, 5, 6], &mut pixels, 1);
        assert_eq!(pixels, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn batches_are_whole_and_there_are_four_of_them() {
        assert_eq!(whole_batches(1000, 64), (960, 64));
        assert_eq!(whole_batches(20, 64), (20, 5));
        assert_eq!(whole_batches(3, 64), (3, 1));
        assert_eq!(whole_batches(255, 64), (252, 63));
    }
}
