//! Finds the MCUs in one pass over the entropy-coded data, without storing coefficients.

use super::headers::Headers;
use super::huffman::Lookup;
use super::index::{DC_RANGE, Entry, Grid};

/// Maximum length of a code and the number after it together, in bits.
const MAX_STEP_BITS: u32 = 16 + 15;

/// Reads bits, removing the zero after each 255.
struct BitReader<'a> {
    /// The entropy-coded data up to the end of the file.
    data: &'a [u8],
    /// The next byte to read.
    at: usize,
    /// Bits that have been read, in the upper part.
    buffer: u64,
    n_bits: u32,
}

impl BitReader<'_> {
    /// Reads bytes until the buffer is full or a marker is next.
    fn refill(&mut self) {
        if let Some(eight) = self.data[self.at..].first_chunk() {
            let word = be_word(*eight);
            if !has_255(word) {
                // This also sets some bits of the next byte. They are correct, and setting them again later changes
                // nothing.
                self.buffer |= word >> self.n_bits;
                let n_bytes = (64 - self.n_bits) / 8;
                self.at += n_bytes as usize;
                self.n_bits += 8 * n_bytes;
                return;
            }
        }
        while self.n_bits <= 56 {
            let (byte, n_bytes) = match self.data.get(self.at) {
                Some(255) if self.data.get(self.at + 1) == Some(&0) => (255, 2),
                Some(255) | None => return,
                Some(&byte) => (byte, 1),
            };
            self.buffer |= u64::from(byte) << (56 - self.n_bits);
            self.at += n_bytes;
            self.n_bits += 8;
        }
    }

    /// Removes bits that `step` decoded.
    fn drop_bits(&mut self, n: u32) -> Option<()> {
        self.n_bits = self.n_bits.checked_sub(n)?;
        self.buffer <<= n;
        Some(())
    }

    /// Position of the next bit in the data. Zeros after 255 count.
    fn position(&self) -> Option<u32> {
        let mut at = self.at;
        for _ in 0..self.n_bits.div_ceil(8) {
            // If the last byte is 0 and follows 255, it is a zero that was removed.
            let stuffed = at >= 2 && self.data[at - 2] == 255 && self.data[at - 1] == 0;
            at = at.checked_sub(if stuffed { 2 } else { 1 })?;
        }
        let bit = self.n_bits.wrapping_neg() & 7;
        u32::try_from(at).ok()?.checked_mul(8)?.checked_add(bit)
    }

    /// Skips a block. Returns the difference of its DC coefficient from the previous one.
    fn block(&mut self, dc: &Lookup<'_>, ac: &Lookup<'_>) -> Option<i32> {
        self.refill();
        let step = dc.step(self.buffer)?;
        let (n_bits, size) = (u32::from(step.n_bits), u32::from(step.size));
        let difference = match size {
            0 => 0,
            _ => {
                let bits = (self.buffer << (n_bits - size)) >> (64 - size);
                let bits = i32::try_from(bits).ok()?;
                // Numbers that start with 0 are negative.
                let is_negative = bits >> (size - 1) == 0;
                bits - if is_negative { (1 << size) - 1 } else { 0 }
            }
        };
        self.drop_bits(n_bits)?;
        let mut coefficient = 1_u32;
        while coefficient < 64 {
            if self.n_bits < MAX_STEP_BITS {
                self.refill();
            }
            let step = ac.step(self.buffer)?;
            self.drop_bits(u32::from(step.n_bits))?;
            coefficient += u32::from(step.advance);
            if coefficient > 64 && step.advance < 64 {
                return None;
            }
        }
        Some(difference)
    }
}

/// The result of a walk: an entry for every few MCUs of every row, an entry for the end, and the length of the
/// entropy-coded data.
pub(super) struct Walked {
    pub(super) entries: Vec<Entry>,
    pub(super) scan_bytes: u32,
}

/// Walks through the data. `None` if the data is damaged or does not end with the image.
pub(super) fn walk(headers: &Headers<'_>, grid: &Grid, data: &[u8]) -> Option<Walked> {
    let mut reader = BitReader { data, at: 0, buffer: 0, n_bits: 0 };
    let dc = [0, 1, 2, 3].map(|number: usize| headers.dc[number].map(Lookup::dc));
    let ac = [0, 1, 2, 3].map(|number: usize| headers.ac[number].map(Lookup::ac));
    // The components' blocks in an MCU, with their tables.
    let mut blocks = Vec::new();
    for (idx, component) in headers.components().iter().enumerate() {
        let tables = (dc[component.dc].as_ref()?, ac[component.ac].as_ref()?);
        blocks.extend(std::iter::repeat_n((idx, tables), component.blocks()));
    }
    let mut entries = Vec::new();
    let mut dc_values = [0_i32; 3];
    for _ in 0..grid.rows {
        for column in 0..grid.mcus_across {
            if column % grid.step == 0 {
                entries.push(Entry::new(reader.position()?, dc_values)?);
            }
            for &(idx, (dc, ac)) in &blocks {
                let value = dc_values[idx].checked_add(reader.block(dc, ac)?)?;
                if !DC_RANGE.contains(&value) {
                    return None;
                }
                dc_values[idx] = value;
            }
        }
    }
    let end = reader.position()?;
    entries.push(Entry::new(end, [0; 3])?);
    let scan_bytes = end_of_data(data, usize::try_from(end / 8).ok()?)?;
    Some(Walked { entries, scan_bytes: u32::try_from(scan_bytes).ok()? })
}

/// The location of the end-of-image marker, if it is the next marker.
fn end_of_data(data: &[u8], from: usize) -> Option<usize> {
    let rest = data.get(from..)?;
    let is_marker = |pair: &[u8]| pair[0] == 255 && pair[1] != 0;
    let at = from + rest.windows(2).position(is_marker)?;
    (data[at + 1] == 0xD9).then_some(at)
}

/// Eight bytes. The first is at the upper end.
pub(super) fn be_word(bytes: [u8; 8]) -> u64 {
    #[expect(clippy::big_endian_bytes, reason = "JPEG's bits start at the upper end")]
    u64::from_be_bytes(bytes)
}

/// Sets the highest bit of each byte that is 255, and no other bit.
fn marks_of_255(word: u64) -> u64 {
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    const LOWER_7: u64 = 0x7F * LOWEST;
    // If all of the lower 7 bits are set, they carry into the highest bit.
    ((word & LOWER_7) + LOWEST) & word & !LOWER_7
}

/// Whether one of the eight bytes is 255.
pub(super) fn has_255(word: u64) -> bool {
    marks_of_255(word) != 0
}

/// Index of the first byte that is 255.
pub(super) fn first_255(word: u64) -> Option<usize> {
    let marks = marks_of_255(word);
    let first = usize::try_from(marks.leading_zeros() / 8);
    first.ok().filter(|_| marks != 0)
}
