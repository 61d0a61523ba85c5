//! One item of a sample as a separate file, with its extension and bytes.

use std::borrow::Cow;

use packds_format::{Coding, DType, Field, FieldKind, FormatError, Pack, Role};
use packds_pixels::{ImageFormat, encode_png};
use packds_system::to_u64;

use super::npy_header::npy_header;

/// An item as a file: extension and bytes.
pub type ItemFile<'a> = (&'static str, Cow<'a, [u8]>);

/// The item of `field` in sample `sample` as a file: `u8` pixels as PNG, other arrays as `.npy`, everything else as
/// stored.
///
/// # Errors
/// A description of what is wrong with the item.
pub fn item_file<'a, D: AsRef<[u8]>>(
    pack: &Pack<D>,
    field: &Field,
    sample: u64,
    item: Cow<'a, [u8]>,
) -> Result<ItemFile<'a>, String> {
    let sniffed = |item: &[u8]| ImageFormat::sniff(item).map_or("bin", ImageFormat::extension);
    match field.kind {
        FieldKind::Tensor => match pixel_shape(field) {
            Some((height, width, channels)) => {
                let chw = field.layout.as_deref() == Some("chw");
                png(&item, (height, width, channels), chw)
            }
            None => Ok(("npy", Cow::Owned(npy(field.dtype, &field.shape, &item)))),
        },
        FieldKind::Image => match pack.coding(&field.name, sample).map_err(|e| e.to_string())? {
            Some(Coding::Raw) => {
                let shape = pack.item_shape(&field.name, sample);
                match shape.map_err(|e| e.to_string())?.ok_or("the size of the image is unknown")? {
                    shape @ (_, _, 1 | 3) => png(&item, shape, false),
                    (height, width, channels) => {
                        let file = npy(DType::U8, &[height, width, channels], &item);
                        Ok(("npy", Cow::Owned(file)))
                    }
                }
            }
            Some(coding) => Ok((coding.extension().unwrap_or("bin"), item)),
            None => Ok((sniffed(&item), item)),
        },
        FieldKind::Ragged => {
            let entries = field.entries(to_u64(item.len())).ok_or("its size is not that of whole entries")?;
            let shape: Vec<u64> = std::iter::once(entries).chain(field.shape.iter().copied()).collect();
            Ok(("npy", Cow::Owned(npy(field.dtype, &shape, &item))))
        }
        FieldKind::String => Ok(("txt", item)),
        FieldKind::Json => Ok(("json", item)),
        _ => Ok((sniffed(&item), item)),
    }
}

/// The extension of the files that [`item_file`] makes of the items of an image field, if it is the same for all.
pub(super) fn common_extension<D: AsRef<[u8]>>(
    pack: &Pack<D>,
    field: &Field,
) -> Result<Option<&'static str>, FormatError> {
    if field.kind == FieldKind::Tensor {
        return Ok(pixel_shape(field).map(|_| "png"));
    }
    let mut common = None;
    for sample in 0..pack.n_samples() {
        let extension = match pack.coding(&field.name, sample)? {
            Some(Coding::Raw) => {
                let shape = pack.item_shape(&field.name, sample)?;
                shape.is_some_and(|(_, _, channels)| matches!(channels, 1 | 3)).then_some("png")
            }
            coding => coding.and_then(Coding::extension),
        };
        if extension.is_none() || common.is_some_and(|common| Some(common) != extension) {
            return Ok(None);
        }
        common = extension;
    }
    Ok(common)
}

/// The `(height, width, channels)` of a tensor of `u8` pixels that fits in a PNG.
fn pixel_shape(field: &Field) -> Option<(u64, u64, u64)> {
    if field.dtype != DType::U8 {
        return None;
    }
    let plane = match (field.role, field.shape.as_slice()) {
        (Some(Role::Image | Role::Mask), &[height, width]) => Some((height, width, 1)),
        _ => None,
    };
    let shape = field.image_shape().or(plane);
    shape.filter(|(_, _, channels)| matches!(channels, 1 | 3))
}

fn png<'a>(item: &[u8], shape: (u64, u64, u64), chw: bool) -> Result<ItemFile<'a>, String> {
    let (height, width, channels) = shape;
    let narrow = |n: u64| u32::try_from(n).map_err(|_| format!("{width}x{height} pixels are too many for PNG"));
    let channels = u8::try_from(channels).map_err(|_| format!("{channels} channels are too many for PNG"))?;
    let pixels = if chw && channels == 3 { interleave(item) } else { Cow::Borrowed(item) };
    let file = encode_png(narrow(width)?, narrow(height)?, channels, &pixels);
    file.map(|file| ("png", Cow::Owned(file))).map_err(|e| e.to_string())
}

/// Converts three planes to interleaved pixels.
pub fn interleave(planes: &[u8]) -> Cow<'_, [u8]> {
    pixels_of(planes).collect()
}

/// The interleaved pixels of three planes.
pub(crate) fn pixels_of(planes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let (red, rest) = planes.split_at(planes.len() / 3);
    let (green, blue) = rest.split_at(rest.len() / 2);
    red.iter().zip(green).zip(blue).flat_map(|((r, g), b)| [*r, *g, *b])
}

pub(crate) fn npy(dtype: DType, shape: &[u64], item: &[u8]) -> Vec<u8> {
    let mut file = npy_header(dtype, shape);
    file.extend_from_slice(item);
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn npy_starts_its_data_at_a_multiple_of_64() {
        let file = npy(DType::F32, &[2, 3], &[7; 24]);
        assert_eq!(file.len(), 64 * 2 + 24);
        let head = String::from_utf8_lossy(&file[10..128]);
        assert_eq!(head.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3,), }");
        let scalar = npy(DType::I64, &[], &[0; 8]);
        assert!(String::from_utf8_lossy(&scalar[10..]).contains("'shape': (), }"));
    }

    #[test]
    fn planes_become_pixels() {
        assert_eq!(interleave(&[1, 2, 3, 4, 5, 6]).as_ref(), [1, 3, 5, 2, 4, 6]);
    }
}
