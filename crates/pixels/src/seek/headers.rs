//! Headers of JPEGs that can be indexed: they have one baseline scan of one or three components.
//!
//! This parser is stricter than a decoder, so unusual files cannot be indexed.

use std::ops::Range;

use super::huffman::CodeList;
use crate::probe::be16;

/// libjpeg's limits.
const MAX_SAMPLING: u8 = 4;
const MAX_BLOCKS_IN_MCU: usize = 10;

/// One component of the frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Component {
    pub(super) id: u8,
    /// Sampling factors. Always 1 and 1 if there is only one component.
    pub(super) h: u8,
    pub(super) v: u8,
    quantization: u8,
    /// The Huffman tables that the scan uses for this component.
    pub(super) dc: usize,
    pub(super) ac: usize,
}

impl Component {
    /// 8x8 blocks per MCU.
    pub(super) fn blocks(self) -> usize {
        usize::from(self.h) * usize::from(self.v)
    }
}

/// The headers up to the entropy-coded data.
#[derive(Debug)]
pub(super) struct Headers<'a> {
    jpeg: &'a [u8],
    pub(super) width: u32,
    pub(super) height: u32,
    frame_marker: u8,
    components: [Component; 3],
    n_components: usize,
    pub(super) dc: [Option<CodeList<'a>>; 4],
    pub(super) ac: [Option<CodeList<'a>>; 4],
    /// The segments that affect decoding: quantization, JFIF and Adobe.
    kept: Vec<Range<usize>>,
    /// Start of the entropy-coded data.
    pub(super) scan: usize,
}

impl<'a> Headers<'a> {
    /// Reads the headers. `None` if the file cannot be indexed.
    pub(super) fn parse(jpeg: &'a [u8]) -> Option<Self> {
        if !jpeg.starts_with(&[0xFF, 0xD8]) {
            return None;
        }
        let mut headers = Self {
            jpeg,
            width: 0,
            height: 0,
            frame_marker: 0,
            components: [Component::default(); 3],
            n_components: 0,
            dc: [None; 4],
            ac: [None; 4],
            kept: Vec::new(),
            scan: 0,
        };
        let mut at = 2;
        loop {
            if *jpeg.get(at)? != 0xFF {
                return None;
            }
            // Fill bytes may precede a marker.
            while *jpeg.get(at + 1)? == 0xFF {
                at += 1;
            }
            let marker = *jpeg.get(at + 1)?;
            let length = usize::from(be16(jpeg, at + 2)?);
            let end = at.checked_add(2 + length)?;
            let body = jpeg.get(at + 4..end)?;
            match marker {
                0xC0 | 0xC1 => headers.frame(marker, body)?,
                0xC4 => headers.huffman(body)?,
                0xDB => headers.kept.push(at..end),
                0xE0 if body.starts_with(b"JFIF\0") => headers.kept.push(at..end),
                0xEE if body.starts_with(b"Adobe") => headers.kept.push(at..end),
                0xE0..=0xEF | 0xFE => {}
                0xDD if body == [0, 0] => {}
                0xDA => {
                    headers.scan_header(body)?;
                    headers.scan = end;
                    return Some(headers);
                }
                _ => return None,
            }
            at = end;
        }
    }

    fn frame(&mut self, marker: u8, body: &[u8]) -> Option<()> {
        let n = usize::from(*body.get(5)?);
        let fits = body.len() == 6 + 3 * n && matches!(n, 1 | 3);
        if self.n_components != 0 || !fits || *body.first()? != 8 {
            return None;
        }
        self.height = u32::from(be16(body, 1)?);
        self.width = u32::from(be16(body, 3)?);
        for (component, part) in self.components.iter_mut().zip(body[6..].chunks_exact(3)) {
            let (h, v) = (part[1] >> 4, part[1] & 15);
            let usual = 1..=MAX_SAMPLING;
            if !usual.contains(&h) || !usual.contains(&v) {
                return None;
            }
            // With one component, an MCU is one block, whatever the sampling factors.
            let (h, v) = if n == 1 { (1, 1) } else { (h, v) };
            *component = Component { id: part[0], h, v, quantization: part[2], ..Component::default() };
        }
        self.frame_marker = marker;
        self.n_components = n;
        let blocks: usize = self.components().iter().map(|c| c.blocks()).sum();
        let usable = self.width > 0 && self.height > 0 && blocks <= MAX_BLOCKS_IN_MCU;
        usable.then_some(())
    }

    fn huffman(&mut self, mut body: &'a [u8]) -> Option<()> {
        while let Some((&class_and_number, rest)) = body.split_first() {
            let (counts, rest) = rest.split_first_chunk()?;
            let n = counts.iter().map(|&n| usize::from(n)).sum();
            let (symbols, rest) = rest.split_at_checked(n)?;
            let tables = match class_and_number >> 4 {
                0 => &mut self.dc,
                1 => &mut self.ac,
                _ => return None,
            };
            *tables.get_mut(usize::from(class_and_number & 15))? = Some(CodeList::new(*counts, symbols)?);
            body = rest;
        }
        Some(())
    }

    fn scan_header(&mut self, body: &[u8]) -> Option<()> {
        let n = self.n_components;
        let (&n_in_scan, rest) = body.split_first()?;
        // There must be one scan of all components, in the order of the frame, with all coefficients at full precision.
        if n == 0 || usize::from(n_in_scan) != n || rest.get(2 * n..)? != [0, 63, 0] {
            return None;
        }
        for (component, part) in self.components.iter_mut().zip(rest.chunks_exact(2)).take(n) {
            component.dc = usize::from(part[1] >> 4);
            component.ac = usize::from(part[1] & 15);
            let known = self.dc.get(component.dc)?.is_some() && self.ac.get(component.ac)?.is_some();
            if part[0] != component.id || !known {
                return None;
            }
        }
        Some(())
    }

    pub(super) fn components(&self) -> &[Component] {
        &self.components[..self.n_components]
    }

    /// The maximum sampling factors, across and down.
    fn sampling(&self) -> (u8, u8) {
        let largest = |(h, v): (u8, u8), c: &Component| (h.max(c.h), v.max(c.v));
        self.components().iter().fold((1, 1), largest)
    }

    /// Size of an MCU in pixels.
    pub(super) fn mcu_size(&self) -> (u32, u32) {
        let (h, v) = self.sampling();
        (8 * u32::from(h), 8 * u32::from(v))
    }

    /// Number of MCUs across and down.
    pub(super) fn n_mcus(&self) -> (u32, u32) {
        let (width, height) = self.mcu_size();
        (self.width.div_ceil(width), self.height.div_ceil(height))
    }

    /// Whether any component is subsampled (across, down). If so, a pixel depends on its neighbours.
    pub(super) fn is_subsampled(&self) -> (bool, bool) {
        let (h, v) = self.sampling();
        let all = self.components();
        (all.iter().any(|c| c.h < h), all.iter().any(|c| c.v < v))
    }

    /// Writes the headers for an image of another size with other Huffman tables.
    pub(super) fn write_into(
        &self,
        (width, height): (u16, u16),
        dc: &[Option<CodeList<'_>>; 4],
        ac: &[Option<CodeList<'_>>; 4],
        out: &mut Vec<u8>,
    ) {
        out.extend([0xFF, 0xD8]);
        for segment in &self.kept {
            out.extend(self.jpeg.get(segment.clone()).unwrap_or_default());
        }
        let n = u8::try_from(self.n_components).unwrap_or(0);
        let ([h1, h0], [w1, w0]) = (be_bytes(height), be_bytes(width));
        out.extend([0xFF, self.frame_marker, 0, 8 + 3 * n, 8, h1, h0, w1, w0, n]);
        for c in self.components() {
            out.extend([c.id, c.h << 4 | c.v, c.quantization]);
        }
        for (class, tables) in [dc, ac].into_iter().enumerate() {
            for (number, table) in tables.iter().enumerate() {
                let (Some(table), Ok(name)) = (table, u8::try_from(class << 4 | number)) else {
                    continue;
                };
                let length = u16::try_from(19 + table.n_symbols()).unwrap_or(0);
                out.extend([0xFF, 0xC4]);
                out.extend(be_bytes(length));
                out.push(name);
                out.extend(table.counts);
                out.extend(table.symbols());
            }
        }
        out.extend([0xFF, 0xDA, 0, 6 + 2 * n, n]);
        for c in self.components() {
            let tables = u8::try_from(c.dc << 4 | c.ac).unwrap_or(0);
            out.extend([c.id, tables]);
        }
        out.extend([0, 63, 0]);
    }
}

fn be_bytes(value: u16) -> [u8; 2] {
    let byte = |value: u16| u8::try_from(value & 0xFF).unwrap_or(0);
    [byte(value >> 8), byte(value)]
}
