//! Masks in colour files. A table gives the class of each colour: `class_dict.csv` with the columns `name,r,g,b`, as in CamVid and
//! DeepGlobe. The number of a class is its row. Without a table, all colours must be gray, as in Kvasir-SEG.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use packds_pixels::{Color, DecodeOptions, Decoder};
use packds_system::open_regular;
use serde::{Deserialize, Serialize};

use super::listing::{Listing, Masks};
use super::look::look_at;
use super::mask_files::MaskFiles;
use super::paths::as_path;
use super::rows::{Cell, RowFile, RowForm, Rows};
use super::split::is_split_folder;
use super::store::PixelShape;
use super::there::first_there;
use super::warning::Warning;
use crate::error::ConvertError;
use crate::sample::SampleError;

/// Common names of tables of colours.
const FILES: [&str; 2] = ["class_dict.csv", "class_dict_seg.csv"];
/// The possible names of each column, in lower case.
const COLUMNS: [&[&str]; 4] =
    [&["name", "class", "class_name", "label"], &["r", "red"], &["g", "green"], &["b", "blue"]];

/// The class number of each colour.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MaskColors {
    /// The name of the table. `None` if the colours are gray.
    file: Option<String>,
    #[serde(with = "pairs")]
    ids: HashMap<[u8; 3], u8>,
}

/// The colours as a sorted list, because the keys of a JSON object are strings.
mod pairs {
    use std::collections::{BTreeMap, HashMap};

    use serde::{Deserialize, Deserializer, Serializer};

    type Pair = ([u8; 3], u8);

    pub(super) fn serialize<S: Serializer>(ids: &HashMap<[u8; 3], u8>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(ids.iter().collect::<BTreeMap<_, _>>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<[u8; 3], u8>, D::Error> {
        Ok(Vec::<Pair>::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Finds the class of each colour if the first mask is a colour image: reads the table next to the masks, or accepts gray pixels.
///
/// # Errors
/// If the table is malformed.
pub(super) fn find(listing: &mut Listing) -> Result<(), ConvertError> {
    let Some(Masks::Files(MaskFiles { paths, .. })) = &listing.masks else { return Ok(()) };
    let first = (0..paths.len()).find(|idx| !listing.faults.contains_key(idx));
    let Some(first) = first.map(|idx| listing.root.join(as_path(&paths.path(idx)))) else { return Ok(()) };
    if !look_at(&first).is_some_and(|look| look.is_color) {
        return Ok(());
    }
    let colors = if let Some(table) = first_there(places(&first, &listing.root))? {
        let (colors, names) = read(&table)?;
        listing
            .warnings
            .push(Warning::MaskColors { file: colors.file.clone().unwrap_or_default().into_bytes(), names });
        colors
    } else if let gray = MaskColors::gray()
        && is_gray(&first, &gray)
    {
        listing.warnings.push(Warning::GrayMasks);
        gray
    } else {
        return Ok(());
    };
    listing.mask_colors = Some(Arc::new(colors));
    Ok(())
}

/// Whether the colours of a mask stand for classes: there is a table, or all colours are gray.
pub(super) fn are_classes(mask: &Path, root: &Path) -> Result<bool, ConvertError> {
    Ok(first_there(places(mask, root))?.is_some() || is_gray(mask, &MaskColors::gray()))
}

fn is_gray(mask: &Path, gray: &MaskColors) -> bool {
    let mut bytes = Vec::new();
    let read = open_regular(mask).and_then(|mut file| file.read_to_end(&mut bytes));
    read.is_ok() && gray.number(&mut bytes).is_ok()
}

/// Whether a file has the name of a table of colours.
pub(super) fn is_table(file: &[u8]) -> bool {
    FILES.iter().any(|name| name.as_bytes() == file)
}

/// The possible paths of the table: in the mask folder or a folder above it, up to the root, or next to the folder of a split.
fn places(mask: &Path, root: &Path) -> Vec<PathBuf> {
    let is_split = root.file_name().is_some_and(|name| is_split_folder(name.as_encoded_bytes()));
    let above = root.parent().filter(|_| is_split);
    let folders = mask.ancestors().skip(1).take_while(|folder| folder.starts_with(root)).chain(above);
    folders.flat_map(|folder| FILES.map(|name| folder.join(name))).collect()
}

/// The colours of a table, and the names of the classes.
fn read(path: &Path) -> Result<(MaskColors, Vec<String>), ConvertError> {
    let file = RowFile::new(path, path.parent().unwrap_or(Path::new("")))?;
    let mut rows = Rows::open(&file, RowForm::Csv)?;
    let place = |known: &[&str]| {
        let is_known = |column: &String| known.contains(&column.trim().to_ascii_lowercase().as_str());
        rows.columns.iter().position(is_known)
    };
    let [Some(name), Some(red), Some(green), Some(blue)] = COLUMNS.map(place) else {
        let found = crate::error::quoted(&rows.columns);
        return Err(rows.malformed(format!("expected the columns 'name', 'r', 'g' and 'b', found {found}")));
    };
    let (mut ids, mut names) = (HashMap::new(), Vec::new());
    while rows.advance()? {
        let text = |column: usize| match rows.cell(column) {
            Cell::Text(text) => text.trim().to_owned(),
            _ => String::new(),
        };
        let level = |column: usize| {
            let text = text(column);
            let level = text.parse::<u8>();
            level.map_err(|_| rows.malformed(format!("expected a colour from 0 to 255, found '{text}'")))
        };
        let color = [level(red)?, level(green)?, level(blue)?];
        let id = u8::try_from(names.len()).map_err(|_| rows.malformed("expected at most 256 colours".to_owned()))?;
        if let Some(other) = ids.insert(color, id) {
            let other = names.get(usize::from(other)).cloned().unwrap_or_default();
            return Err(rows.malformed(format!("'{}' has the colour of '{other}'", text(name))));
        }
        names.push(text(name));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((MaskColors { file: Some(name), ids }, names))
}

impl MaskColors {
    /// Colours for masks without a table: the class of a gray pixel is its level.
    fn gray() -> Self {
        Self { file: None, ids: (0..=u8::MAX).map(|level| ([level; 3], level)).collect() }
    }

    /// Replaces the bytes of a mask file with its class numbers, one for each pixel.
    pub(super) fn number(&self, file: &mut Vec<u8>) -> Result<PixelShape, SampleError> {
        let options = DecodeOptions { color: Color::Rgb, ..DecodeOptions::default() };
        let image = Decoder::new(options).decode(file).map_err(SampleError::Pixels)?;
        file.clear();
        for (pixel, color) in image.data.as_chunks::<3>().0.iter().enumerate() {
            let id = self.ids.get(color).ok_or_else(|| {
                let width = usize::try_from(image.width).unwrap_or(1).max(1);
                let (x, y, [r, g, b]) = (pixel % width, pixel / width, color);
                let expected = self.file.as_ref().map_or("gray".to_owned(), |file| format!("in '{file}'"));
                SampleError::Source(format!("the colour {r}, {g}, {b} at x {x}, y {y} is not {expected}"))
            })?;
            file.push(*id);
        }
        Ok(PixelShape { width: image.width, height: image.height, channels: 1, planar: false })
    }
}
