//! Converts masks from arrays of types other than `u8`: booleans, wider numbers, and one-hot classes.

use std::path::Path;
use std::sync::Arc;

use packds_format::Scalar;
use packds_system::to_usize;
use serde::{Deserialize, Serialize};

use super::indicators::only_one;
use super::portable::Portable;
use super::store::{ArrayType, Content, PixelShape, Store};
use crate::error::ConvertError;
use crate::opt::LEAVE_OUT;
use crate::sample::SampleError;

/// The masks of another store, converted to `u8` arrays of shape `[height, width]`.
#[derive(Debug)]
pub(super) struct Numbers {
    pub(super) store: Arc<dyn Store>,
    pub(super) form: MaskForm,
}

/// The arrays of the masks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MaskForm {
    array: ArrayType,
    shape: PixelShape,
    classes: Classes,
}

/// How an array stores the class of each pixel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Classes {
    /// Each pixel is the number of its class.
    Numbers,
    /// Each pixel has one number per class, which is 0 for every class except its own.
    OneHot {
        n: usize,
        /// Whether the dimension of classes is first, before height and width.
        first: bool,
    },
}

impl Numbers {
    /// Masks of this array type for images of this height and width. `None` if the arrays are already `u8` or cannot be
    /// masks.
    pub(super) fn new(store: &Arc<dyn Store>, array: &ArrayType, image: Option<(u64, u64)>) -> Option<Self> {
        let is_image = |height: u64, width: u64| image.is_none_or(|image| image == (height, width));
        let (height, width, classes) = match *array.shape.as_slice() {
            [h, w] => (h, w, Classes::Numbers),
            [h, w, 1] | [1, h, w] if is_image(h, w) => (h, w, Classes::Numbers),
            [h, w, n @ 2..=256] if is_image(h, w) => (h, w, Classes::OneHot { n: to_usize(n), first: false }),
            [n @ 2..=256, h, w] if is_image(h, w) => (h, w, Classes::OneHot { n: to_usize(n), first: true }),
            _ => return None,
        };
        let numbers = ArrayType { dtype: packds_format::DType::U8, shape: vec![height, width] };
        let shape = PixelShape::of(&numbers)?;
        Some(Self { store: Arc::clone(store), form: MaskForm { array: array.clone(), shape, classes } })
    }

    /// The number of classes of one-hot masks.
    pub(super) fn one_hot(&self) -> Option<usize> {
        match self.form.classes {
            Classes::Numbers => None,
            Classes::OneHot { n, .. } => Some(n),
        }
    }

    /// Refuses one-hot masks if the first mask is not one-hot: the shape alone proves nothing.
    pub(super) fn refuse_channels(&self, source: &Path) -> Result<(), ConvertError> {
        let Classes::OneHot { first, .. } = self.form.classes else { return Ok(()) };
        let Err(SampleError::Source(reason)) = self.append(0, u64::MAX, &mut Vec::new()) else { return Ok(()) };
        let axis = if first { 0 } else { 2 };
        let hint = format!(
            "write class numbers in Python: mask = (mask.any({axis}) * (mask.argmax({axis}) + 1)).astype(\"uint8\"), which gives 0 to pixels without a class, and the first class to pixels with several; or leave the field out with {LEAVE_OUT}"
        );
        Err(ConvertError::contradictory(source, "", reason, hint))
    }

    /// The class of each pixel of a mask.
    fn classes(&self, mask: &[u8]) -> Result<Vec<u8>, SampleError> {
        let size = to_usize(self.form.array.dtype.size());
        let number =
            |idx: usize| mask.get(idx * size..)?.get(..size).and_then(|bytes| Scalar::of(self.form.array.dtype, bytes));
        let n_pixels = to_usize(self.form.shape.bytes());
        let class = |pixel: usize| match self.form.classes {
            Classes::Numbers => number(pixel).and_then(Scalar::class_id).and_then(|id| u8::try_from(id).ok()),
            Classes::OneHot { n, first } => {
                let at = |class: usize| if first { class * n_pixels + pixel } else { pixel * n + class };
                let is_set = |class: usize| number(at(class)).is_some_and(|number| number.nearest_f64() != 0.0);
                only_one((0..n).map(is_set)).and_then(|class| u8::try_from(class).ok())
            }
        };
        let wrong = |pixel: usize| {
            let width = to_usize(u64::from(self.form.shape.width));
            let (x, y) = (pixel % width, pixel / width);
            SampleError::Source(match self.form.classes {
                Classes::Numbers => {
                    let found =
                        number(pixel).map_or(String::new(), |number| format!(", found {}", number.nearest_f64()));
                    format!("mask: expected whole numbers from 0 to 255{found} at x {x}, y {y}")
                }
                Classes::OneHot { n, .. } => {
                    format!(
                        "mask: expected exactly one of {n} classes at each pixel, found none or several at x {x}, y {y}"
                    )
                }
            })
        };
        (0..n_pixels).map(|pixel| class(pixel).ok_or_else(|| wrong(pixel))).collect()
    }
}

impl Store for Numbers {
    fn len(&self) -> usize {
        self.store.len()
    }

    fn bytes(&self, _: usize) -> u64 {
        self.form.shape.bytes()
    }

    fn content(&self, _: usize) -> Content {
        Content::Pixels(self.form.shape)
    }

    fn append(&self, idx: usize, limit: u64, out: &mut Vec<u8>) -> Result<(), SampleError> {
        let mut mask = Vec::new();
        self.store.append(idx, u64::MAX, &mut mask)?;
        let classes = self.classes(&mask)?;
        out.extend_from_slice(classes.get(..to_usize(limit)).unwrap_or(&classes));
        Ok(())
    }

    fn portable(&self, places: &[usize]) -> Option<Portable> {
        let store = Box::new(self.store.portable(places)?);
        Some(Portable::Masks { store, form: self.form.clone() })
    }
}

#[cfg(test)]
mod tests {
    use packds_format::DType;

    use super::*;
    use crate::source::spool::{Spool, SpoolFolder, Unpacking};

    /// A store with one mask of this type.
    fn store(dtype: DType, shape: &[u64], bytes: &[u8]) -> (Arc<dyn Store>, ArrayType) {
        let folder = SpoolFolder { path: std::env::temp_dir(), unpacking: Unpacking::default() };
        let mut spool = Spool::create(&folder).unwrap();
        spool.append(bytes).unwrap();
        let array = ArrayType { dtype, shape: shape.to_vec() };
        (spool.into_rows(Path::new("s"), array.clone(), 1).unwrap(), array)
    }

    fn mask(dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (store, array) = store(dtype, shape, bytes);
        let numbers = Numbers::new(&store, &array, None).ok_or("no masks")?;
        let mut out = Vec::new();
        numbers.append(0, u64::MAX, &mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }

    #[test]
    fn whole_numbers_of_any_type_are_classes() {
        let floats: Vec<u8> = [0.0_f32, 1.0, 255.0, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(mask(DType::F32, &[2, 2], &floats), Ok(vec![0, 1, 255, 2]));
        let longs: Vec<u8> = [0_i64, 7].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(mask(DType::I64, &[1, 2], &longs), Ok(vec![0, 7]));
        assert_eq!(mask(DType::Bool, &[1, 1, 2], &[1, 0]), Ok(vec![1, 0]));
        assert_eq!(mask(DType::U16, &[1, 2, 1], &[3, 0, 4, 0]), Ok(vec![3, 4]));
    }

    #[test]
    fn other_numbers_are_errors_that_say_where() {
        for (value, shown) in [(0.5_f32, "0.5"), (256.0, "256"), (-1.0, "-1"), (f32::NAN, "NaN")] {
            let bytes: Vec<u8> = [0.0, 0.0, 0.0, value].iter().flat_map(|v| v.to_le_bytes()).collect();
            let error = mask(DType::F32, &[2, 2], &bytes).unwrap_err();
            assert!(error.contains(&format!("found {shown} at x 1, y 1")), "{error}");
        }
    }

    #[test]
    fn one_hot_classes_become_numbers() {
        let last: Vec<u8> = [0, 1, 0, 1, 0, 0].to_vec();
        assert_eq!(mask(DType::U8, &[2, 1, 3], &last), Ok(vec![1, 0]));
        let first: Vec<u8> = [0.0_f32, 0.0, 1.0, 0.0, 0.0, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(mask(DType::F32, &[3, 1, 2], &first).unwrap_err(), mask_error());
        let first: Vec<u8> = [0.0_f32, 0.0, 1.0, 0.0, 0.0, 1.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let (store, array) = store(DType::F32, &[3, 1, 2], &first);
        let numbers = Numbers::new(&store, &array, Some((1, 2))).unwrap();
        let mut out = Vec::new();
        numbers.append(0, u64::MAX, &mut out).unwrap();
        assert_eq!((out, numbers.one_hot()), (vec![1, 2], Some(3)));
        // Two classes at one pixel.
        assert!(mask(DType::U8, &[2, 1, 3], &[1, 1, 0, 0, 0, 1]).unwrap_err().contains("one of 3 classes"));
    }

    fn mask_error() -> String {
        "mask: expected exactly one of 2 classes at each pixel, found none or several at x 0, y 0".to_owned()
    }
}
