//! Lists with a line for each caption of an image, such as `Flickr8k.token.txt`: the name of the image, `#`, the number of the caption,
//! a tab and the caption. The captions of an image become a list, as in COCO.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

use super::candidate::is_image_name;
use super::coco::CAPTIONS;
use super::csv_rows::PATH;
use super::json_rows::{JsonRow, JsonRows};
use super::rows::malformed;
use crate::error::ConvertError;

/// Number of bytes that [`is_one`] needs.
pub(super) const START_BYTES: usize = 1 << 12;

/// Whether a text begins like such a list. `start` is the start of the text.
pub(super) fn is_one(start: &[u8]) -> bool {
    let first = start.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty());
    let first = first.and_then(|line| str::from_utf8(line).ok());
    first.and_then(parts).is_some_and(|(image, _)| is_image_name(image.as_bytes()))
}

/// A row for each image, in the order of the first caption of each.
///
/// # Errors
/// If a line has another form.
pub(super) fn rows(path: &Path, text: &str) -> Result<JsonRows, ConvertError> {
    let mut images: Vec<(u64, &str, Vec<&str>)> = Vec::new();
    let mut place_of: HashMap<&str, usize> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let Some((image, caption)) = parts(line) else {
            let reason = "expected the name of an image, '#', a number, a tab and a caption, as in '1.jpg#0'";
            return Err(malformed(path, number, reason.to_owned()));
        };
        let place = *place_of.entry(image).or_insert(images.len());
        match images.get_mut(place) {
            Some((.., captions)) => captions.push(caption),
            None => images.push((number, image, vec![caption])),
        }
    }
    let row = |(number, image, captions): (u64, &str, Vec<&str>)| -> JsonRow {
        (number, format!("{{\"{PATH}\": {}, \"{CAPTIONS}\": {}}}", Value::from(image), Value::from(captions)))
    };
    Ok(images.into_iter().map(row).collect::<Vec<_>>().into())
}

/// The image and the caption of a line.
fn parts(line: &str) -> Option<(&str, &str)> {
    let (name, caption) = line.trim_start_matches('\u{feff}').split_once('\t')?;
    let (image, number) = name.rsplit_once('#')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && !image.is_empty()).then(|| (image, caption.trim()))
}
