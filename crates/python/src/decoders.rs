//! Image items as pixels, with decoders that keep their buffers.

use std::sync::Mutex;

use packds_format::Field;
use packds_reader::augment::AugmentError;
use packds_reader::{ItemDecoder, ItemPixels, Pack};

/// Decoders that nobody uses at the moment.
#[derive(Debug, Default)]
pub(crate) struct Decoders(Mutex<Vec<ItemDecoder>>);

impl Decoders {
    /// The pixels of an item of an image field of sizes of its own.
    pub(crate) fn pixels(
        &self,
        pack: &Pack,
        field: &Field,
        sample: u64,
        item: &[u8],
    ) -> Result<ItemPixels, AugmentError> {
        let mut decoder = self.lend(field);
        let pixels = decoder.pixels(pack, sample, item)?;
        self.put_back(decoder);
        Ok(pixels)
    }

    fn lend(&self, field: &Field) -> ItemDecoder {
        // Not waited for: in a forked child the thread that had the lock may be gone.
        if let Ok(mut idle) = self.0.try_lock()
            && let Some(place) = idle.iter().position(|other| other.field() == field.name)
        {
            return idle.swap_remove(place);
        }
        ItemDecoder::new(field)
    }

    fn put_back(&self, decoder: ItemDecoder) {
        if let Ok(mut idle) = self.0.try_lock() {
            idle.push(decoder);
        }
    }
}
