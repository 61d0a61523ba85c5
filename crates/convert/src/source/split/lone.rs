//! A single list of the images of one split, such as `valid.txt` in CamVid. The other images are in no list.

use std::path::Path;

use super::super::listing::Listing;
use super::super::located::Named;
use super::super::paths::{as_path, lossy};
use super::super::table_note::TableNote;
use super::super::there::text_file;
use super::lists::{List, Lists};
use crate::error::ConvertError;

/// The only list of a folder of images with masks, if it names some of the images and nothing else, and the note about it.
pub(super) fn find(
    folder: &Path,
    listing: &Listing,
    named: &Named,
) -> Result<Option<(Vec<u8>, TableNote)>, ConvertError> {
    let groups = Lists::groups(folder, listing);
    let [group] = groups.as_slice() else { return Ok(None) };
    let ([(split, file)], true) = (group.as_slice(), listing.masks.is_some() && listing.paths.n_directories() == 1)
    else {
        return Ok(None);
    };
    let text = text_file(&folder.join(as_path(file)))?.unwrap_or_default();
    let list = List::read(&text, listing, named, false);
    let (n, all) = (list.places.len(), listing.len());
    let images = listing.root().join(as_path(listing.paths.directory(0)));
    let (name, images) = (lossy(file), images.strip_prefix(folder).unwrap_or(&images).display().to_string());
    let other = name.replacen(split.as_str(), "train", 1);
    if list.n_wrong > 0 || n == 0 || n >= all || other == name {
        return Ok(None);
    }
    let line = format!(
        "import pathlib; v = {{pathlib.Path(x).stem for x in open(\"{name}\").read().split()}}; open(\"{other}\", \"w\").write(\"\\n\".join(sorted(p.stem for p in pathlib.Path(\"{images}\").iterdir() if p.stem not in v)))"
    );
    Ok(Some((file.clone(), TableNote::LoneList { file: file.clone(), other, count: [n, all], line })))
}
