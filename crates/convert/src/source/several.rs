//! Recognizes files whose arrays do not have the usual names, but hold one image each, or the images of one class each.

use std::path::Path;

use packds_format::DType;

use super::roles::is_image_name;
use super::store::{ArrayType, PixelShape};
use crate::error::{ConvertError, quoted};

/// The error about arrays that each hold one image, or the images of one class. `arrays` has their names and full
/// shapes. `None` for other arrays.
pub(super) fn refusal(source: &Path, arrays: &[(String, ArrayType)]) -> Option<ConvertError> {
    let [(name, first), _, ..] = arrays else { return None };
    if arrays.iter().any(|(name, _)| is_image_name(name.rsplit('/').next().unwrap_or(name))) {
        return None;
    }
    let all = |is: &dyn Fn(&ArrayType) -> bool| arrays.iter().all(|(_, array)| is(array));
    let (what, hint) = if all(&is_image) {
        ("looks like one image", "if each is an image, write one file for each, in class folders")
    } else if all(&|array| array.shape.split_first().is_some_and(|(_, item)| is_image(&of_shape(array, item)))) {
        ("looks like several images", "if each is a class, join them")
    } else {
        return None;
    };
    let n = arrays.len();
    let reason = format!("each of the {n} arrays {what}: '{name}' is {} of shape {:?}", first.dtype, first.shape);
    let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
    let lines = match what {
        "looks like one image" => {
            "for k in names: os.makedirs(os.path.dirname(\"out/\" + k), exist_ok=True); numpy.save(\"out/\" + k, f[k])"
        }
        _ => {
            "numpy.savez(\"x.npz\", images=numpy.concatenate([f[k][:] for k in names]), labels=numpy.repeat(range(len(names)), [len(f[k]) for k in names]), classes=names)"
        }
    };
    let hint = format!(
        "{hint}; in Python, where f is the opened file and names are the arrays {}, run: {lines}",
        quoted(&names)
    );
    Some(ConvertError::unsupported(source, "", reason, hint))
}

fn of_shape(array: &ArrayType, shape: &[u64]) -> ArrayType {
    ArrayType { dtype: array.dtype, shape: shape.to_vec() }
}

/// Whether an array has the shape of an image. A plane of numbers other than `u8` is more likely a matrix.
fn is_image(array: &ArrayType) -> bool {
    let bytes = ArrayType { dtype: DType::U8, shape: array.shape.clone() };
    let is_plain = array.dtype == DType::U8 || array.shape.len() == 3;
    is_plain && array.shape.iter().all(|side| *side > 0) && PixelShape::of(&bytes).is_some()
}
