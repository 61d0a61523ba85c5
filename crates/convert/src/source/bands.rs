//! TIFF files with bands instead of colours. Each is read as an array of its own type, like a `.npy` file.

use packds_format::DType;
use packds_pixels::{TiffBands, decode_bands, tiff_bands};
use packds_system::to_usize;

use super::listing::{Images, Listing};
use super::paths::lossy;
use super::store::{ArrayType, Content, Contents, Store};
use super::warning::Warning;
use crate::dtypes::of_numpy_kind;
use crate::error::ConvertError;
use crate::opt::IMAGES;
use crate::ordered::{Next, ordered};
use crate::sample::{MAX_FILE_BYTES, SampleError};

/// Number of bytes to read first. If the directory is not in them, the whole file is read.
const HEAD_BYTES: u64 = 16 << 10;
/// Number of files that a thread inspects at a time.
const BATCH: usize = 64;

/// What the header of a file shows.
enum Kind {
    Bands(TiffBands),
    Image,
    /// The sample is bad, or the header of its file cannot be read.
    Unknown,
}

/// Replaces the images of a listing with arrays if they are TIFF files with bands.
///
/// # Errors
/// If some files have bands and others are images.
pub(super) fn find(listing: &mut Listing, jobs: usize) -> Result<(), ConvertError> {
    if !matches!(listing.images, Images::Files) || !(0..listing.len()).any(|idx| is_tiff(listing, idx)) {
        return Ok(());
    }
    let (mut bands, mut image) = (Vec::new(), None);
    let mut next = 0;
    ordered(
        jobs,
        jobs.max(1) * 2,
        || (),
        |(), range: std::ops::Range<usize>| range.map(|idx| (idx, kind(listing, idx))).collect::<Vec<_>>(),
        || {
            let range = next..listing.len().min(next + BATCH);
            next = range.end;
            Ok::<_, ConvertError>((!range.is_empty()).then_some(range))
        },
        |kinds| {
            for (idx, kind) in kinds {
                match kind {
                    Kind::Bands(found) => bands.push((idx, found)),
                    Kind::Image => image = image.or(Some(idx)),
                    Kind::Unknown => {}
                }
            }
            Ok(if image.is_some() && !bands.is_empty() { Next::Stop } else { Next::Continue })
        },
    )?;
    match (bands.first(), image) {
        (None, _) => Ok(()),
        (Some((idx, found)), Some(image)) => Err(mixed(listing, (*idx, found), image)),
        (Some((_, first)), None) => {
            let first = *first;
            replace(listing, first, bands);
            Ok(())
        }
    }
}

/// Whether a file has a TIFF extension.
fn is_tiff(listing: &Listing, idx: usize) -> bool {
    let name = listing.sample(idx).name;
    [&b".tif"[..], b".tiff"].iter().any(|end| {
        let at = name.len().saturating_sub(end.len());
        name[at..].eq_ignore_ascii_case(end)
    })
}

fn kind(listing: &Listing, idx: usize) -> Kind {
    if listing.faults.contains_key(&idx) {
        return Kind::Unknown;
    }
    if !is_tiff(listing, idx) {
        return Kind::Image;
    }
    let mut head = Vec::new();
    for limit in [HEAD_BYTES, u64::MAX] {
        head.clear();
        if listing.append_image(idx, limit, &mut head).is_err() {
            break;
        }
        match tiff_bands(&head) {
            Ok(Some(bands)) if array(&bands).is_some() => return Kind::Bands(bands),
            Ok(_) => return Kind::Image,
            Err(_) => {}
        }
    }
    Kind::Unknown
}

/// The array of a file with bands. `None` if it is larger than `MAX_FILE_BYTES`.
fn array(bands: &TiffBands) -> Option<ArrayType> {
    bands.bytes().filter(|bytes| *bytes <= MAX_FILE_BYTES)?;
    let dtype: DType = of_numpy_kind(bands.kind.as_bytes())?;
    Some(ArrayType { dtype, shape: vec![bands.height.into(), bands.width.into(), bands.bands.into()] })
}

fn mixed(listing: &Listing, (idx, bands): (usize, &TiffBands), image: usize) -> ConvertError {
    let [one, other] = [idx, image].map(|idx| lossy(&listing.paths.path(idx)));
    let reason = format!(
        "'{one}' has {} bands of type {}, and '{other}' is an image: expected files of one kind",
        bands.bands,
        of_numpy_kind(bands.kind.as_bytes()).map_or("", DType::name)
    );
    let hint = format!("move the files of one kind into another folder, or choose a folder with {IMAGES}");
    ConvertError::contradictory(listing.root(), "", reason, hint)
}

fn replace(listing: &mut Listing, first: TiffBands, found: Vec<(usize, TiffBands)>) {
    let Some(array) = array(&first) else { return };
    let planar = found.iter().filter(|(_, bands)| bands.is_planar).count();
    let mut all = vec![first; listing.len()];
    let path = found.first().map_or_else(Vec::new, |(idx, _)| listing.paths.path(*idx));
    let count = found.len();
    found.into_iter().for_each(|(idx, bands)| all[idx] = bands);
    listing.warnings.push(Warning::Bands {
        count: super::walk::count(count),
        first: path,
        array: (array.dtype, array.shape.clone()),
        are_planar: planar > 0,
    });
    let files = Listing {
        unpacked: listing.unpacked.clone(),
        unpacked_root: listing.unpacked_root.clone(),
        ..Listing::of_files(listing.kind, &listing.root, listing.paths.clone(), Vec::new())
    };
    let mut contents = Contents::All(Content::Bytes);
    for (n, bands) in all.iter().enumerate() {
        contents.push(n, Content::Array(self::array(bands).unwrap_or_else(|| array.clone())));
    }
    listing.images = Images::Stored(std::sync::Arc::new(Files { files, bands: all, contents }));
}

/// The files with bands.
#[derive(Debug)]
struct Files {
    files: Listing,
    /// The bands of each file. For a file that cannot be read, these are the bands of the first file with bands.
    bands: Vec<TiffBands>,
    contents: Contents,
}

impl Store for Files {
    fn len(&self) -> usize {
        self.bands.len()
    }

    fn bytes(&self, idx: usize) -> u64 {
        self.bands.get(idx).and_then(TiffBands::bytes).unwrap_or(0)
    }

    fn content(&self, idx: usize) -> Content {
        self.contents.get(idx)
    }

    fn is_uniform(&self) -> bool {
        self.contents.is_uniform()
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let expected = self.bands.get(idx).ok_or(SampleError::Missing)?;
        let mut file = Vec::new();
        self.files.append_image(idx, u64::MAX, &mut file)?;
        let numbers = decode_bands(&file, expected)?;
        out.extend_from_slice(numbers.get(..to_usize(limit)).unwrap_or(&numbers));
        Ok(())
    }
}
