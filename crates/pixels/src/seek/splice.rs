//! Builds a small JPEG from a JPEG and its index. The small JPEG contains the bits that an area needs.

use super::headers::Headers;
use super::huffman::{Code, CodeList, DC_CATEGORIES, END_OF_BLOCK};
use super::index::{Entry, Grid, bad, unpack};
use super::walk::{be_word, first_255, has_255};
use crate::area::Area;
use crate::error::PixelError;
use packds_system::to_usize;

/// libjpeg's maximum side.
const MAX_SIDE: u32 = 65_500;
/// A splice with more than this fraction of the MCUs is not worthwhile. The fraction is `WORTH.0 / WORTH.1`.
const WORTH: (u64, u64) = (9, 10);

/// Builds small JPEGs, reusing its buffers.
#[derive(Debug, Default)]
pub(crate) struct Splicer {
    entries: Vec<Entry>,
    jpeg: Vec<u8>,
}

/// A small JPEG, and the position of the area's first pixel in it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spliced<'a> {
    pub(crate) jpeg: &'a [u8],
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) x: u32,
    pub(crate) y: u32,
}

/// The MCUs to copy, and the dummy MCUs to add.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// The entries of a row: the first one, and one past the last.
    columns: (u32, u32),
    /// Rows of MCUs.
    rows: (u32, u32),
    /// Whether a dummy MCU before the copied part of each row sets the DC predictors.
    dummy_left: bool,
    /// Whether a dummy MCU after the copied part of each row sets the DC predictors for the next row.
    dummy_right: bool,
    /// Whether a row of dummy MCUs at the top sets the DC predictors for the first row.
    dummy_top: bool,
    /// Number of MCUs across and down.
    mcus: (u32, u32),
}

impl Layout {
    /// The layout that `area` of the image needs. `None` if this would be nearly the whole image.
    fn new(headers: &Headers<'_>, grid: &Grid, area: Area) -> Option<Self> {
        let (mcu_width, mcu_height) = headers.mcu_size();
        let (margin_x, margin_y) = headers.is_subsampled();
        let (margin_x, margin_y) = (u32::from(margin_x), u32::from(margin_y));
        let entry_width = mcu_width * grid.step;
        let columns = (
            area.x.saturating_sub(margin_x) / entry_width,
            (area.x + area.width + margin_x).min(headers.width).div_ceil(entry_width),
        );
        let rows = (
            area.y.saturating_sub(margin_y) / mcu_height,
            (area.y + area.height + margin_y).min(headers.height).div_ceil(mcu_height),
        );
        let dummy_left = columns.0 > 0;
        let dummy_right = !dummy_left && columns.1 < grid.columns();
        let dummy_top = !dummy_left && rows.0 > 0;
        let across = (columns.1 * grid.step).min(grid.mcus_across) - columns.0 * grid.step;
        let mcus = (across + u32::from(dummy_left || dummy_right), rows.1 - rows.0 + u32::from(dummy_top));
        let n = u64::from(mcus.0) * u64::from(mcus.1);
        let all = u64::from(grid.mcus_across) * u64::from(grid.rows);
        let fits = mcus.0 * mcu_width <= MAX_SIDE && mcus.1 * mcu_height <= MAX_SIDE;
        let is_worth_it = fits && n * WORTH.1 < all * WORTH.0;
        is_worth_it.then_some(Self { columns, rows, dummy_left, dummy_right, dummy_top, mcus })
    }

    /// Width and height of the small JPEG. They extend to the image's edge if the area reaches it, otherwise to whole
    /// MCUs.
    fn size(&self, headers: &Headers<'_>, grid: &Grid) -> Option<(u16, u16)> {
        let (mcu_width, mcu_height) = headers.mcu_size();
        let beyond = |n: u32, mcu: u32, side: u32| n * mcu - side;
        let mut width = self.mcus.0 * mcu_width;
        if self.columns.1 == grid.columns() {
            width -= beyond(grid.mcus_across, mcu_width, headers.width);
        }
        let mut height = self.mcus.1 * mcu_height;
        if self.rows.1 == grid.rows {
            height -= beyond(grid.rows, mcu_height, headers.height);
        }
        Some((width.try_into().ok()?, height.try_into().ok()?))
    }

    /// The number of the entry at a row and a column. The column after the last one is the first column of the next
    /// row.
    fn entry(grid: &Grid, row: u32, column: u32) -> Option<usize> {
        to_usize(row).checked_mul(to_usize(grid.columns()))?.checked_add(to_usize(column))
    }
}

impl Splicer {
    /// Builds a small JPEG that shows `area` of `jpeg` with the same pixels. `None` if decoding the file itself is
    /// equally good.
    pub(crate) fn splice(&mut self, jpeg: &[u8], index: &[u8], area: Area) -> Result<Option<Spliced<'_>>, PixelError> {
        let foreign = || bad("belongs to another image");
        let headers = Headers::parse(jpeg).ok_or_else(foreign)?;
        let grid = Grid::of_index(&headers, index)?;
        area.check_inside(headers.width, headers.height).map_err(|_| foreign())?;
        let Some(layout) = Layout::new(&headers, &grid, area) else { return Ok(None) };
        let last = Layout::entry(&grid, layout.rows.1 - 1, layout.columns.1);
        let last = last.ok_or_else(foreign)?;
        let scan_bytes = unpack(index, &headers, &grid, last, &mut self.entries)?;
        let data = usize::try_from(scan_bytes)
            .ok()
            .and_then(|n| headers.scan.checked_add(n))
            .filter(|&end| jpeg.get(end..end.saturating_add(2)) == Some(&[0xFF, 0xD9]))
            .and_then(|end| jpeg.get(headers.scan..end))
            .ok_or_else(foreign)?;
        let dummies = Dummies::new(&headers).ok_or_else(foreign)?;
        let size = layout.size(&headers, &grid).ok_or_else(foreign)?;
        self.jpeg.clear();
        headers.write_into(size, &dummies.dc, &dummies.ac, &mut self.jpeg);
        self.jpeg.reserve(data.len());
        let writer = BitWriter { out: &mut self.jpeg, buffer: 0, n_bits: 0 };
        let (mcu_width, mcu_height) = headers.mcu_size();
        let assembly = Assembly { headers: &headers, dummies: &dummies, writer, dc: [0; 3] };
        assembly.write(&layout, &grid, &self.entries, data).ok_or_else(|| bad("has an invalid entry"))?;
        let left = if layout.dummy_left { mcu_width } else { 0 };
        let top = if layout.dummy_top { mcu_height } else { 0 };
        Ok(Some(Spliced {
            jpeg: &self.jpeg,
            width: u32::from(size.0),
            height: u32::from(size.1),
            x: area.x - layout.columns.0 * grid.step * mcu_width + left,
            y: area.y - layout.rows.0 * mcu_height + top,
        }))
    }
}

/// The tables with added codes for dummy blocks, and these codes.
pub(super) struct Dummies<'a> {
    dc: [Option<CodeList<'a>>; 4],
    ac: [Option<CodeList<'a>>; 4],
    /// For each component, the codes of the difference categories and of end-of-block.
    categories: [[Code; 12]; 3],
    ends: [Code; 3],
}

impl<'a> Dummies<'a> {
    /// `None` if a table has no space for the missing codes.
    pub(super) fn new(headers: &Headers<'a>) -> Option<Self> {
        let mut dummies =
            Self { dc: [None; 4], ac: [None; 4], categories: [[Code::default(); 12]; 3], ends: [Code::default(); 3] };
        for (idx, component) in headers.components().iter().enumerate() {
            let dc = headers.dc[component.dc]?.with(&DC_CATEGORIES)?;
            let ac = headers.ac[component.ac]?.with(&[END_OF_BLOCK])?;
            for (code, category) in dummies.categories[idx].iter_mut().zip(DC_CATEGORIES) {
                *code = dc.code(category)?;
            }
            dummies.ends[idx] = ac.code(END_OF_BLOCK)?;
            dummies.dc[component.dc] = Some(dc);
            dummies.ac[component.ac] = Some(ac);
        }
        Some(dummies)
    }
}

/// Writes the new entropy-coded data.
struct Assembly<'a> {
    headers: &'a Headers<'a>,
    dummies: &'a Dummies<'a>,
    writer: BitWriter<'a>,
    /// The decoder's DC predictors at this point.
    dc: [i16; 3],
}

impl Assembly<'_> {
    fn write(mut self, layout: &Layout, grid: &Grid, entries: &[Entry], data: &[u8]) -> Option<()> {
        let entry = |row, column| entries.get(Layout::entry(grid, row, column)?).copied();
        if layout.dummy_top {
            let first = entry(layout.rows.0, layout.columns.0)?;
            for _ in 0..layout.mcus.0 {
                self.dummy(first.dc)?;
            }
        }
        for row in layout.rows.0..layout.rows.1 {
            let (from, to) = (entry(row, layout.columns.0)?, entry(row, layout.columns.1)?);
            if layout.dummy_left {
                self.dummy(from.dc)?;
            }
            self.writer.copy(data, from.position, to.position)?;
            self.dc = to.dc;
            if layout.dummy_right {
                // The data after the last row does not matter.
                let next = entry(row + 1, 0).filter(|_| row + 1 < layout.rows.1);
                self.dummy(next.map_or(self.dc, |next| next.dc))?;
            }
        }
        self.writer.finish();
        Some(())
    }

    /// Writes a uniform MCU, after which the predictors are `dc`.
    fn dummy(&mut self, dc: [i16; 3]) -> Option<()> {
        for (idx, component) in self.headers.components().iter().enumerate() {
            let end = self.dummies.ends[idx];
            for _ in 0..component.blocks() {
                let difference = i32::from(dc[idx]) - i32::from(self.dc[idx]);
                self.dc[idx] = dc[idx];
                let size = u32::BITS - difference.unsigned_abs().leading_zeros();
                let category = usize::try_from(size).ok()?;
                let code = self.dummies.categories[idx].get(category)?;
                self.writer.put(code.bits, code.len);
                let number = if difference < 0 {
                    (1 << size) - 1 - difference.unsigned_abs()
                } else {
                    difference.unsigned_abs()
                };
                self.writer.put(number, size);
                self.writer.put(end.bits, end.len);
            }
        }
        Some(())
    }
}

/// Writes bits, and inserts a zero after each byte of 255.
struct BitWriter<'a> {
    out: &'a mut Vec<u8>,
    /// Pending bits, in the upper part. Fewer than 64.
    buffer: u64,
    n_bits: u32,
}

impl BitWriter<'_> {
    /// Appends the lower `n` bits, at most 32. The other bits must be 0.
    fn put(&mut self, bits: u32, n: u32) {
        if n == 0 {
            return;
        }
        let bits = u64::from(bits) << (64 - n);
        if self.n_bits + n < 64 {
            self.buffer |= bits >> self.n_bits;
            self.n_bits += n;
        } else {
            let taken = 64 - self.n_bits;
            self.emit(self.buffer | bits >> self.n_bits);
            self.buffer = bits << taken;
            self.n_bits = n - taken;
        }
    }

    /// Appends eight bytes.
    fn put_word(&mut self, word: u64) {
        self.emit(self.buffer | word >> self.n_bits);
        if self.n_bits > 0 {
            self.buffer = word << (64 - self.n_bits);
        }
    }

    #[inline]
    fn emit(&mut self, word: u64) {
        if has_255(word) {
            self.emit_stuffed(word);
        } else {
            self.push(word, 8);
        }
    }

    fn emit_stuffed(&mut self, mut word: u64) {
        let mut n_bytes = 8;
        while let Some(first) = first_255(word).filter(|&first| first < n_bytes) {
            self.push(word, first + 1);
            self.out.push(0);
            n_bytes -= first + 1;
            // Shift in two steps, because a shift by 64 would overflow.
            word = word << (8 * first) << 8;
        }
        self.push(word, n_bytes);
    }

    /// Writes the first bytes of a word.
    #[inline]
    fn push(&mut self, word: u64, n_bytes: usize) {
        #[expect(clippy::big_endian_bytes, reason = "JPEG's bits start at the upper end")]
        let bytes = word.to_be_bytes();
        let end = self.out.len() + n_bytes;
        // Copying all eight bytes is faster than copying only some of them.
        self.out.extend_from_slice(&bytes);
        self.out.truncate(end);
    }

    /// Appends bits `from..to` of `data`, without the stuffed zero bytes after 0xFF.
    fn copy(&mut self, data: &[u8], from: u32, to: u32) -> Option<()> {
        let place = |position: u32| usize::try_from(position / 8).ok();
        let (mut at, end) = (place(from)?, place(to)?);
        let (skipped, tail) = (from % 8, to % 8);
        let data = data.get(..end + usize::from(tail > 0))?;
        if at == end {
            // The range has no bits, or only bits of a single byte.
            let n = tail.checked_sub(skipped)?;
            let byte = data.get(at).copied().unwrap_or(0);
            self.put(u32::from(byte) >> (8 - tail) & ((1 << n) - 1), n);
            return Some(());
        }
        if skipped > 0 {
            let byte = next_byte(data, &mut at)?;
            self.put(u32::from(byte) & (0xFF >> skipped), 8 - skipped);
        }
        while at < end {
            if let Some(eight) = data.get(at..end).and_then(<[u8]>::first_chunk) {
                let word = be_word(*eight);
                if !has_255(word) {
                    self.put_word(word);
                    at += 8;
                    continue;
                }
            }
            self.copy_to_255(data, &mut at, end)?;
        }
        if tail > 0 {
            // If a wrong position is between 255 and its zero, `at` is beyond the end.
            let byte = *data.get(at)?;
            self.put(u32::from(byte) >> (8 - tail), tail);
        }
        Some(())
    }

    /// Appends up to eight bytes. Stops after a 255, and skips the zero that follows it.
    fn copy_to_255(&mut self, data: &[u8], at: &mut usize, end: usize) -> Option<()> {
        let rest = data.get(*at..end)?;
        let mut eight = [0; 8];
        let n_bytes = rest.len().min(8);
        eight[..n_bytes].copy_from_slice(&rest[..n_bytes]);
        let word = be_word(eight);
        let (n_bytes, n_zeros) = match first_255(word) {
            Some(first) => (first + 1, usize::from(data.get(*at + first + 1) == Some(&0))),
            None => (n_bytes, 0),
        };
        let n_bits = 8 * u32::try_from(n_bytes).ok()?;
        let (upper, lower) = (n_bits.min(32), n_bits.saturating_sub(32));
        self.put(u32::try_from(word >> 32).ok()? >> (32 - upper), upper);
        if lower > 0 {
            let bits = (word & u64::from(u32::MAX)) >> (32 - lower);
            self.put(u32::try_from(bits).ok()?, lower);
        }
        *at += n_bytes + n_zeros;
        Some(())
    }

    /// Pads the last byte with ones and ends the image.
    fn finish(mut self) {
        let missing = self.n_bits.wrapping_neg() & 7;
        self.put((1 << missing) - 1, missing);
        let mut n_bits = self.n_bits;
        while n_bits > 0 {
            self.push(self.buffer, 1);
            if self.buffer >> 56 == 255 {
                self.out.push(0);
            }
            self.buffer <<= 8;
            n_bits -= 8;
        }
        self.out.extend([0xFF, 0xD9]);
    }
}

/// The byte at `at`. Moves past it, and past a zero that follows 255.
fn next_byte(data: &[u8], at: &mut usize) -> Option<u8> {
    let byte = *data.get(*at)?;
    let is_stuffed = byte == 255 && data.get(*at + 1) == Some(&0);
    *at += if is_stuffed { 2 } else { 1 };
    Some(byte)
}
