//! Items of image fields as pixels, each of its own size.

use packds_format::{Coding, Field, FormatError, Role};
use packds_pixels::{Color, DecodeOptions, Decoder};

use crate::MappedPack;
use crate::augment::AugmentError;

/// Decodes the items of a field of images of sizes of their own. One for each thread: it keeps a decoder's buffers.
#[derive(Debug)]
pub struct ItemDecoder {
    field: String,
    color: Color,
    decoder: Decoder,
}

/// An item's `u8` pixels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemPixels {
    /// The pixels, in C order.
    pub data: Vec<u8>,
    /// `[height, width, channels]`, of masks `[height, width]`.
    pub shape: Vec<usize>,
}

impl ItemDecoder {
    /// A decoder for the items of `field`.
    #[must_use]
    pub fn new(field: &Field) -> Self {
        let color = color_of(field);
        Self {
            field: field.name.clone(),
            color,
            decoder: Decoder::new(DecodeOptions {
                color,
                ..DecodeOptions::default()
            }),
        }
    }

    /// The field whose items it decodes.
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// The pixels of a sample's item: of a file decoded, raw ones as they are.
    ///
    /// # Errors
    /// [`AugmentError::Pixels`] where the file does not decode, [`AugmentError::Picture`] where raw pixels are not of the size that
    /// the pack says, or where what it says of them is damaged.
    pub fn pixels(
        &mut self,
        pack: &MappedPack,
        sample: u64,
        item: &[u8],
    ) -> Result<ItemPixels, AugmentError> {
        let coding = pack.coding(&self.field, sample).map_err(damaged)?;
        if coding != Some(Coding::Raw) {
            let image = self.decoder.decode(item)?;
            let sides = [image.height, image.width, image.channels.into()];
            let shape = self.shape(sides.map(u64::from));
            let data = image.data;
            return Ok(ItemPixels { data, shape });
        }
        let size = pack.item_shape(&self.field, sample).map_err(damaged)?;
        let (height, width, channels) = size.unwrap_or((0, 0, 0));
        let shape = self.shape([height, width, channels]);
        let bytes = shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        if bytes != Some(item.len()) {
            return Err(AugmentError::Picture {
                what: "size",
                expected: format!("{shape:?}"),
                found: format!("{} bytes", item.len()),
            });
        }
        let data = item.to_vec();
        Ok(ItemPixels { data, shape })
    }

    fn shape(&self, sides: [u64; 3]) -> Vec<usize> {
        let n_sides = if self.color == Color::Index { 2 } else { 3 };
        // A side that no memory holds is none of pixels that are there.
        let side = |side: u64| usize::try_from(side).unwrap_or(usize::MAX);
        sides.into_iter().take(n_sides).map(side).collect()
    }
}

fn damaged(error: FormatError) -> AugmentError {
    AugmentError::Picture {
        what: "coding or size",
        expected: "a column that is whole".to_owned(),
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
