//! Decodes image items, with decoders that reuse their buffers.

use std::sync::Mutex;

use packds_format::Field;
use packds_reader::augment::AugmentError;
use packds_reader::{ItemDecoder, ItemPixels, Pack};

#[derive(Debug, Default)]
pub(crate) struct Decoders(Mutex<Vec<ItemDecoder>>);

impl Decoders {
    /// The pixels of an item in a variable-size image field.
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
        // Do not wait for the lock: in a forked child, the thread that held it may be gone.
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
