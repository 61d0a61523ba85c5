//! Decodes items of variable-size image fields.

use packds_format::{Coding, Field, FormatError, Role};
use packds_pixels::{Color, DecodeOptions, Decoder};
use packds_system::{counted, to_u64, to_usize};

use crate::Pack;
use crate::augment::AugmentError;

/// Decodes the items of a variable-size image field. Use one per thread, because it holds the decoder's buffers.
#[derive(Debug)]
pub struct ItemDecoder {
    field: SizedField,
    decoder: Decoder,
}

/// A variable-size image field. Columns contain the coding and the size of each item.
#[derive(Debug)]
pub(crate) struct SizedField {
    name: String,
    color: Color,
}

/// An item's `u8` pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPixels {
    /// The pixels, in C order.
    pub data: Vec<u8>,
    /// `[height, width, channels]`, or `[height, width]` for masks and other images of class ids.
    pub shape: Vec<usize>,
}

impl ItemDecoder {
    /// A decoder for the items of `field`.
    pub fn new(field: &Field) -> Self {
        let field = SizedField::new(field);
        let decoder = Decoder::new(DecodeOptions { color: field.color, ..DecodeOptions::default() });
        Self { field, decoder }
    }

    /// The name of its field.
    pub fn field(&self) -> &str {
        &self.field.name
    }

    /// The pixels of a sample's item. If the item is a file, it is decoded. Raw pixels are returned unchanged.
    ///
    /// # Errors
    /// [`AugmentError::Pixels`] if the file cannot be decoded. [`AugmentError::Picture`] if the size of raw pixels
    /// differs from the size in the pack's columns, or if these columns are damaged.
    pub fn pixels(&mut self, pack: &Pack, sample: u64, item: &[u8]) -> Result<ItemPixels, AugmentError> {
        if let Some(shape) = self.field.raw_shape(pack, sample, item.len())? {
            let data = item.to_vec();
            return Ok(ItemPixels { data, shape });
        }
        let image = self.decoder.decode(item)?;
        let sides = [image.height, image.width, image.channels.into()];
        let shape = self.field.shape(sides.map(u64::from));
        let data = image.data;
        Ok(ItemPixels { data, shape })
    }
}

impl SizedField {
    pub(crate) fn new(field: &Field) -> Self {
        Self { name: field.name.clone(), color: color_of(field) }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The shape of a sample's item with this number of bytes, if it is raw pixels. `None` if the item is a file.
    ///
    /// # Errors
    /// [`AugmentError::Picture`] if the number of bytes does not match the size, or the columns with the size are
    /// damaged.
    pub(crate) fn raw_shape(
        &self,
        pack: &Pack,
        sample: u64,
        item_bytes: usize,
    ) -> Result<Option<Vec<usize>>, AugmentError> {
        let coding = pack.coding(&self.name, sample).map_err(damaged)?;
        if coding != Some(Coding::Raw) {
            return Ok(None);
        }
        let size = pack.item_shape(&self.name, sample).map_err(damaged)?;
        let (height, width, channels) = size.unwrap_or((0, 0, 0));
        let sides = [height, width, channels];
        let bytes = sides.iter().try_fold(1_u64, |n, side| n.checked_mul(*side));
        if bytes != Some(to_u64(item_bytes)) {
            return Err(AugmentError::Picture {
                what: "size",
                expected: format!("{sides:?}"),
                found: counted(item_bytes, "byte"),
            });
        }
        Ok(Some(self.shape(sides)))
    }

    fn shape(&self, sides: [u64; 3]) -> Vec<usize> {
        let n_sides = if self.color == Color::Index { 2 } else { 3 };
        // A side that exceeds the address space cannot match pixels in memory.
        sides.into_iter().take(n_sides).map(to_usize).collect()
    }
}

fn damaged(error: FormatError) -> AugmentError {
    AugmentError::Picture {
        what: "coding or size",
        expected: "an undamaged column".to_owned(),
        found: error.to_string(),
    }
}

fn color_of(field: &Field) -> Color {
    match field.color.as_deref() {
        Some("index") => Color::Index,
        _ if field.role == Some(Role::Mask) => Color::Index,
        Some("gray") => Color::Gray,
        _ => Color::Rgb,
    }
}
