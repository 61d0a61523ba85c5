//! Batches in buckets: the bucket of each sample of a pack, and what the batches of each bucket contain.

use std::sync::Arc;

use packds_format::{Field, Role};

use super::error::LoadError;
use super::outputs::{Contents, Outputs};
use crate::Pack;
use crate::augment::{AugmentError, Buckets, ImageSource};
use crate::plan::Bucketing;

/// What batches contain, for each bucket. Without buckets, there is one entry. Batches of different buckets have the
/// same fields, but images of different sizes.
#[derive(Debug, Clone)]
pub(crate) struct ByBucket(Arc<[Arc<Contents>]>);

impl ByBucket {
    /// The contents for these outputs. There is at least one output.
    pub(crate) fn new(outputs: Vec<Outputs>, packs: &[Arc<Pack>], seeds: &[u64]) -> Self {
        let contents = |outputs| Arc::new(Contents { outputs, packs: packs.to_vec(), seeds: seeds.to_vec() });
        Self(outputs.into_iter().map(contents).collect())
    }

    pub(crate) fn of(&self, bucket: usize) -> &Arc<Contents> {
        self.0.get(bucket).unwrap_or_else(|| self.first())
    }

    pub(crate) fn first(&self) -> &Arc<Contents> {
        // There is at least one entry.
        &self.0[0]
    }

    /// Whether images have several sizes.
    pub(crate) fn has_several(&self) -> bool {
        self.0.len() > 1
    }
}

/// The bucket of each sample, from the stored sizes of its images. No image is read.
pub(crate) fn bucketing(pack: &Pack, image: &Field, buckets: &Buckets) -> Result<Bucketing, LoadError> {
    let identity = buckets.to_string();
    let made = |of: &dyn Fn(u64) -> u8| Bucketing::new(pack.n_samples(), &identity, of);
    if let Some(size) = ImageSource::of_field(image).map_err(|source| refused(pack, source))?.size {
        let bucket = buckets.nearest(size.width, size.height);
        return Ok(made(&|_| bucket));
    }
    let of_role = |role| pack.schema().by_role(role, Some(&image.name)).map(|(number, _)| number);
    let (Some(width), Some(height)) = (of_role(Role::Width), of_role(Role::Height)) else {
        return Err(LoadError::Option(format!(
            "{}: buckets need the sizes of the images, but the pack has no columns with the width and the height of `{}`: convert the images again",
            pack.file_path().display(),
            image.name
        )));
    };
    let (width, height) = (pack.whole(pack.column(width))?, pack.whole(pack.column(height))?);
    let side = |side: Option<i64>| side.and_then(|side| u32::try_from(side).ok()).unwrap_or(0);
    let all = made(&|sample| buckets.nearest(side(width.integer(sample)), side(height.integer(sample))));
    // Pages that were lost while the columns were read have zeros.
    pack.still_good()?;
    Ok(all)
}

fn refused(pack: &Pack, source: AugmentError) -> LoadError {
    LoadError::Augment { path: pack.file_path().to_owned(), source: Box::new(source) }
}
