//! Image files in a folder, named after the files that the samples came from.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use packds_system::to_u64;

use super::renamed::Renamed;
use super::{Batch, Form, SinkStart};
use crate::error::ConvertError;
use crate::opt::IMAGES;
use crate::safe_name::{safe_name, stem};

pub(super) struct ImageFiles {
    folder: PathBuf,
    /// The paths used so far, without extensions.
    taken: HashSet<String>,
    renamed: Renamed,
    digits: usize,
}

impl ImageFiles {
    /// Refuses images that are not exported as files. `what` names the format.
    pub(super) fn create(start: &SinkStart<'_>, what: &str) -> Result<Self, ConvertError> {
        let image = start.exported.fields.first();
        if image.is_none_or(|image| image.form != Form::File) {
            return Err(match start.options.images {
                Some(_) => ConvertError::options(
                    format!("{what} stores image files, but {} requests arrays", IMAGES.with("pixels")),
                    format!("omit {IMAGES}, or choose a format that stores arrays"),
                ),
                None => ConvertError::options(
                    format!(
                        "{what} stores image files, but this pack's images are arrays that image files cannot store"
                    ),
                    "choose a format that stores arrays, such as zarr, hdf5 or npy",
                ),
            });
        }
        Ok(Self {
            folder: start.path.to_owned(),
            taken: HashSet::new(),
            renamed: Renamed::default(),
            digits: start.n_samples.saturating_sub(1).to_string().len(),
        })
    }

    /// Writes the image of sample `k` to `folder`. Returns its path.
    pub(super) fn write(&mut self, folder: &str, batch: &Batch, k: usize) -> Result<String, ConvertError> {
        let sample = batch.first.saturating_add(to_u64(k));
        let path = self.path(folder, sample, batch.paths.get(k));
        let column = batch.columns.first();
        let extension = column.and_then(|column| column.extensions.get(k));
        let path = format!("{path}.{}", extension.copied().unwrap_or("bin"));
        self.renamed.note(batch.paths.get(k), &path);
        let file = self.folder.join(&path);
        fs::write(&file, column.map_or(&[][..], |column| column.item(k))).map_err(ConvertError::io(&file))?;
        Ok(path)
    }

    /// Describes the samples whose paths have changed.
    pub(super) fn note(self) -> Option<String> {
        self.renamed.summary()
    }

    /// A unique path for the image of sample `sample`, without an extension.
    fn path(&mut self, folder: &str, sample: u64, path: Option<&Vec<u8>>) -> String {
        let number = format!("{sample:0digits$}", digits = self.digits);
        let own = path.map(|path| stem(path)).filter(|stem| !stem.is_empty()).map_or_else(|| number.clone(), safe_name);
        let slash = if folder.is_empty() { "" } else { "/" };
        let mut name = format!("{folder}{slash}{own}");
        while !self.taken.insert(name.clone()) {
            name = format!("{name}-{number}");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_taken_get_the_number() {
        let (folder, taken, renamed) = (PathBuf::new(), HashSet::new(), Renamed::default());
        let mut files = ImageFiles { folder, taken, renamed, digits: 2 };
        let mut name = |sample, path: &[u8]| files.path("c", sample, Some(&path.to_vec()));
        assert_eq!(name(1, b"a/x.png"), "c/x");
        assert_eq!(name(2, b"b/x.png"), "c/x-02");
        assert_eq!(name(3, b"x-02.png"), "c/x-02-03");
        assert_eq!(name(4, b"../.."), "c/_");
        assert_eq!(name(5, b"a/"), "c/05");
    }
}
