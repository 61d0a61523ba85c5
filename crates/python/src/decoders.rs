//! Image items as pixels, with decoders that keep their buffers.

use std::sync::Mutex;

use packds_format::{Coding, DType, Field, Role};
use packds_pixels::{Color, DecodeOptions, Decoder};
use packds_reader::MappedPack;

/// Decoders that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Decoders(Mutex<Vec<(Color, Decoder)>>);

/// Pixels of an image with their shape: `[height, width, channels]`, of masks without channels.
pub(crate) type Pixels = (Vec<u8>, DType, Vec<usize>);

impl Decoders {
    /// The pixels of an item of an image field of sizes of its own.
    pub(crate) fn pixels(
        &self,
        pack: &MappedPack,
        field: &Field,
        sample: u64,
        item: &[u8],
    ) -> Result<Pixels, String> {
        let color = color_of(field);
        if pack.coding(&field.name, sample) == Some(Coding::Raw) {
            let shape = pack.item_shape(&field.name, sample);
            let (height, width, channels) = shape.ok_or("its size is not known")?;
            let shape = shape_of(color, height, width, channels)?;
            let n_bytes = shape
                .iter()
                .try_fold(1_usize, |n, side| n.checked_mul(*side));
            if n_bytes != Some(item.len()) {
                return Err(format!("{} bytes are no pixels of {shape:?}", item.len()));
            }
            return Ok((item.to_vec(), DType::U8, shape));
        }
        let mut decoder = self.lend(color);
        let image = decoder.decode(item).map_err(|error| error.to_string())?;
        self.put_back(color, decoder);
        let (height, width) = (u64::from(image.height), u64::from(image.width));
        let shape = shape_of(color, height, width, u64::from(image.channels))?;
        Ok((image.data, DType::U8, shape))
    }

    fn lend(&self, color: Color) -> Decoder {
        // Not waited for: in a forked child the thread that had the lock may be gone.
        if let Ok(mut idle) = self.0.try_lock()
            && let Some(place) = idle.iter().position(|(other, _)| *other == color)
        {
            return idle.swap_remove(place).1;
        }
        Decoder::new(DecodeOptions {
            color,
            ..DecodeOptions::default()
        })
    }

    fn put_back(&self, color: Color, decoder: Decoder) {
        if let Ok(mut idle) = self.0.try_lock() {
            idle.push((color, decoder));
        }
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

fn shape_of(color: Color, height: u64, width: u64, channels: u64) -> Result<Vec<usize>, String> {
    let mut shape = vec![height, width];
    if color != Color::Index {
        shape.push(channels);
    }
    let sides = shape.iter().map(|side| usize::try_from(*side));
    sides
        .collect::<Result<_, _>>()
        .map_err(|_| format!("{height}x{width} is larger than this machine can address"))
}
