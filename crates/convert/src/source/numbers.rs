//! Reads small arrays into memory: labels and strings.

use super::arrays::StoredArray;
use super::column::TextArena;
use super::npy::Elements;
use super::swapped::swap;
use crate::error::ConvertError;
use packds_format::Scalar;
use packds_system::{to_u64, to_usize};

/// Bytes read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Calls `take` with each element of the array in order, little-endian.
fn each_element(
    array: &StoredArray,
    mut take: impl FnMut(&[u8]) -> Result<(), ConvertError>,
) -> Result<(), ConvertError> {
    let (element, swapped) = match array.elements {
        Elements::Numbers { dtype, swapped } => (dtype.size(), swapped.then_some(dtype.size())),
        Elements::Text { bytes, swapped, .. } => (bytes, swapped.then_some(4)),
    };
    let size = to_usize(element).max(1);
    let at_a_time = (PIECE_BYTES / size).max(1);
    let swapped = swapped.and_then(|n| usize::try_from(n).ok());
    let mut piece = Vec::new();
    for part in &array.parts {
        let path = &part.file.path;
        let read_error = |error: crate::SampleError| ConvertError::malformed(path, &array.name, error.to_string());
        // If there are gaps between items, reads one item at a time.
        let mut row = 0;
        while row < part.rows {
            let n = match part.stride == element {
                true => at_a_time.min(part.rows - row),
                false => 1,
            };
            let at = to_u64(row);
            let offset = at.saturating_mul(part.stride).saturating_add(part.offset);
            let bytes = to_u64(n).saturating_mul(element);
            piece.clear();
            let read = part.file.append_at(offset, bytes, &mut piece);
            read.map_err(read_error)?;
            if let Some(element) = swapped {
                swap(&mut piece, element);
            }
            piece.chunks_exact(size).try_for_each(&mut take)?;
            row += n;
        }
    }
    Ok(())
}

/// The class ids of an array with one number per item. `None` if some are not whole.
pub(super) fn read_ids(array: &StoredArray) -> Result<Option<Vec<i64>>, ConvertError> {
    let Elements::Numbers { dtype, .. } = array.elements else {
        return Ok(None);
    };
    let mut ids = Some(Vec::new());
    each_element(array, |number| {
        let id = Scalar::of(dtype, number).and_then(Scalar::class_id);
        match (&mut ids, id) {
            (Some(list), Some(id)) => list.push(id),
            _ => ids = None,
        }
        Ok(())
    })?;
    Ok(ids)
}

/// The strings of an array with one string per item, without trailing zeros.
pub(super) fn read_texts(array: &StoredArray) -> Result<TextArena, ConvertError> {
    let wide = matches!(array.elements, Elements::Text { wide: true, .. });
    let mut texts = TextArena::default();
    each_element(array, |text| {
        texts.push(&text_of(text, wide));
        Ok(())
    })?;
    Ok(texts)
}

/// A fixed-width text without trailing zeros.
pub(super) fn text_of(bytes: &[u8], wide: bool) -> String {
    if wide {
        let chars = bytes.as_chunks::<4>().0.iter();
        let codes = chars.map(|code| u32::from_le_bytes(*code));
        let text: String = codes.map(|code| char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)).collect();
        return text.trim_end_matches('\0').to_owned();
    }
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// The little-endian number at offset `at`. `None` if it extends past the end.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let chunk = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_le_bytes(*chunk))
}

/// Like [`u16_at`].
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let chunk = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_le_bytes(*chunk))
}

/// Like [`u16_at`].
pub(super) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let chunk = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_le_bytes(*chunk))
}
