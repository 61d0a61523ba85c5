//! Reads and writes seek indexes. Their format is in docs/reference/format.md, "Seek index".

use packds_system::{to_u64, to_usize};
use std::ops::RangeInclusive;

use super::headers::Headers;
use super::walk::{Walked, be_word};
use crate::error::PixelError;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 15;
pub(super) const CHECKSUM_BYTES: usize = 4;
/// Maximum number of pixels between two entries of a row, unless an MCU is larger. A smaller number makes indexes
/// larger. A larger number makes decoders decode more pixels outside the crop.
const ENTRY_PIXELS: u32 = 48;
/// Range of DC coefficients for 8-bit pixels.
pub(super) const DC_RANGE: RangeInclusive<i32> = -1024..=1023;
/// Maximum length of entropy-coded data in bytes, because positions are 32-bit counts of bits.
pub(super) const MAX_SCAN_BYTES: usize = 1 << 28;
/// Number of ones that announce a number that is written in full. Rice codes start with fewer ones.
const MAX_ONES: u32 = 20;
const MAX_PARAMETER: u8 = 24;
/// Numbers per entry: position, and DC coefficients of up to three components.
const FIELDS: usize = 4;

/// The grid of entries over an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grid {
    /// MCUs from one entry of a row to the next.
    pub(super) step: u32,
    pub(super) mcus_across: u32,
    /// Rows of MCUs.
    pub(super) rows: u32,
}

impl Grid {
    /// The grid of an index that is about to be built.
    pub(super) fn new(headers: &Headers<'_>) -> Self {
        let step = (ENTRY_PIXELS / headers.mcu_size().0).max(1);
        Self::with_step(headers, step)
    }

    /// The grid of an existing index, from its header.
    pub(super) fn of_index(headers: &Headers<'_>, index: &[u8]) -> Result<Self, PixelError> {
        let step = index.get(1).filter(|&&step| step > 0);
        let step = step.ok_or_else(|| bad("has no entries"))?;
        Ok(Self::with_step(headers, u32::from(*step)))
    }

    fn with_step(headers: &Headers<'_>, step: u32) -> Self {
        let (mcus_across, rows) = headers.n_mcus();
        Self { step, mcus_across, rows }
    }

    /// Entries per row.
    pub(super) fn columns(&self) -> u32 {
        self.mcus_across.div_ceil(self.step)
    }
}

/// The state of a decoder before an MCU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entry {
    /// The bit at which the MCU starts, from the start of the entropy-coded data.
    pub(super) position: u32,
    /// The previous DC coefficient of each component.
    pub(super) dc: [i16; 3],
}

impl Entry {
    pub(super) fn new(position: u32, dc: [i32; 3]) -> Option<Self> {
        let [a, b, c] = dc.map(|value| i16::try_from(value).ok());
        Some(Self { position, dc: [a?, b?, c?] })
    }
}

/// The stored form of an entry: small differences.
type Residuals = [u32; FIELDS];

/// The predicted step from the previous entry. It is the step between the two corresponding entries in the row above.
/// If there are none, it is the step between the two previous entries, if these exist.
fn position_step(entries: &[Entry], columns: usize, at: usize) -> i64 {
    let step = |at: usize| i64::from(entries[at].position) - i64::from(entries[at - 1].position);
    match at.checked_sub(columns) {
        Some(above) if above > 0 => step(above),
        _ if at > 1 => step(at - 1),
        _ => 0,
    }
}

/// The predicted coefficients: those of the entry above, or otherwise of the previous entry.
fn predicted_dc(entries: &[Entry], columns: usize, at: usize) -> [i16; 3] {
    entries[at.checked_sub(columns).unwrap_or(at - 1)].dc
}

fn zigzag(value: i64) -> Option<u32> {
    u32::try_from((value << 1) ^ (value >> 63)).ok()
}

fn unzigzag(value: u32) -> i64 {
    let half = i64::from(value >> 1);
    if value & 1 == 0 { half } else { -1 - half }
}

/// Serializes an index.
pub(super) fn pack(headers: &Headers<'_>, grid: &Grid, walked: &Walked) -> Option<Vec<u8>> {
    let n = headers.components().len();
    let columns = to_usize(grid.columns());
    let entries = &walked.entries;
    let mut residuals: Vec<Residuals> = Vec::with_capacity(entries.len());
    // The first entry is always at 0 with zero predictors.
    for at in 1..entries.len() {
        let step = i64::from(entries[at].position) - i64::from(entries[at - 1].position);
        let dc = predicted_dc(entries, columns, at);
        let mut one = [zigzag(step - position_step(entries, columns, at))?, 0, 0, 0];
        for ((to, value), predicted) in one[1..].iter_mut().zip(entries[at].dc).zip(dc) {
            *to = zigzag(i64::from(value) - i64::from(predicted))?;
        }
        residuals.push(one);
    }
    let mut parameters = [0; FIELDS];
    for (field, parameter) in parameters.iter_mut().enumerate().take(n + 1) {
        *parameter = best_parameter(residuals.iter().map(|one| one[field]))?;
    }
    let mut index = head(headers, grid, walked.scan_bytes, parameters)?;
    let mut writer = CodeWriter::default();
    for one in &residuals {
        for (&value, &parameter) in one.iter().zip(&parameters).take(n + 1) {
            writer.put(value, parameter, &mut index);
        }
    }
    writer.finish(&mut index);
    let sum = checksum(&index);
    index.extend(sum);
    Some(index)
}

/// The header before the codes.
fn head(headers: &Headers<'_>, grid: &Grid, scan_bytes: u32, parameters: [u8; FIELDS]) -> Option<Vec<u8>> {
    let mut index = vec![VERSION, u8::try_from(grid.step).ok()?];
    index.extend(u16::try_from(headers.width).ok()?.to_le_bytes());
    index.extend(u16::try_from(headers.height).ok()?.to_le_bytes());
    let (width, height) = headers.mcu_size();
    index.push(u8::try_from(2 * width + height / 8).ok()?);
    index.extend(scan_bytes.to_le_bytes());
    index.extend(parameters);
    Some(index)
}

/// The parameter that minimizes the length of all codes.
fn best_parameter(values: impl Iterator<Item = u32> + Clone) -> Option<u8> {
    let n_bits = |parameter: u8| -> u64 {
        let n_bits_of = |value| match value >> parameter {
            ones if ones < MAX_ONES => u64::from(ones + 1) + u64::from(parameter),
            _ => u64::from(MAX_ONES + 32),
        };
        values.clone().map(n_bits_of).sum()
    };
    (0..=MAX_PARAMETER).min_by_key(|&parameter| n_bits(parameter))
}

/// Writes Rice codes. Each consists of ones, a zero, and a number of bits equal to the parameter.
#[derive(Default)]
struct CodeWriter {
    buffer: u64,
    n_bits: u32,
}

impl CodeWriter {
    fn put(&mut self, value: u32, parameter: u8, out: &mut Vec<u8>) {
        let ones = value >> parameter;
        if ones < MAX_ONES {
            self.bits((1 << (ones + 1)) - 2, ones + 1, out);
            self.bits(value & ((1 << parameter) - 1), u32::from(parameter), out);
        } else {
            self.bits((1 << MAX_ONES) - 1, MAX_ONES, out);
            self.bits(value >> 16, 16, out);
            self.bits(value & 0xFFFF, 16, out);
        }
    }

    fn bits(&mut self, bits: u32, n: u32, out: &mut Vec<u8>) {
        self.buffer = self.buffer << n | u64::from(bits);
        self.n_bits += n;
        while self.n_bits >= 8 {
            self.n_bits -= 8;
            out.push(u8::try_from(self.buffer >> self.n_bits & 0xFF).unwrap_or(0));
        }
    }

    fn finish(mut self, out: &mut Vec<u8>) {
        let missing = self.n_bits.wrapping_neg() & 7;
        self.bits(0, missing, out);
    }
}

/// Reads the output of `CodeWriter`.
struct CodeReader<'a> {
    bytes: &'a [u8],
    at: usize,
    buffer: u64,
    n_bits: u32,
}

impl CodeReader<'_> {
    fn refill(&mut self) {
        if let Some(eight) = self.bytes[self.at..].first_chunk() {
            self.buffer |= be_word(*eight) >> self.n_bits;
            let n_bytes = (64 - self.n_bits) / 8;
            self.at += n_bytes as usize;
            self.n_bits += 8 * n_bytes;
            return;
        }
        while self.n_bits <= 56 {
            let Some(&byte) = self.bytes.get(self.at) else { return };
            self.buffer |= u64::from(byte) << (56 - self.n_bits);
            self.at += 1;
            self.n_bits += 8;
        }
    }

    fn take(&mut self, n: u32) -> Option<u32> {
        if n == 0 {
            return Some(0);
        }
        let value = u32::try_from(self.buffer >> (64 - n)).ok()?;
        self.n_bits = self.n_bits.checked_sub(n)?;
        self.buffer <<= n;
        Some(value)
    }

    fn next(&mut self, parameter: u8) -> Option<u32> {
        // The longest code has 20 + 32 bits, which fit in a full buffer.
        if self.n_bits < MAX_ONES + 32 {
            self.refill();
        }
        let ones = (!self.buffer).leading_zeros().min(MAX_ONES);
        if ones == MAX_ONES {
            self.take(ones)?;
            return self.take(32);
        }
        self.take(ones + 1)?;
        let low = self.take(u32::from(parameter))?;
        // This does not overflow, because `ones` is below 2^5 and a parameter is at most 24.
        Some(ones << parameter | low)
    }
}

/// Decodes the entries up to number `last`. Returns the length of the entropy-coded data, or an error if the index is
/// damaged or does not belong to this file.
pub(super) fn unpack(
    index: &[u8],
    headers: &Headers<'_>,
    grid: &Grid,
    last: usize,
    entries: &mut Vec<Entry>,
) -> Result<u32, PixelError> {
    let (covered, sum) = index
        .split_last_chunk::<CHECKSUM_BYTES>()
        .filter(|(covered, _)| covered.len() >= HEAD_BYTES)
        .ok_or_else(|| bad("is too short"))?;
    if covered.first() != Some(&VERSION) {
        return Err(bad("has an unknown version"));
    }
    // Skipped when fuzzing, because random input would never pass.
    if !cfg!(fuzzing) && checksum(covered) != *sum {
        return Err(bad("is damaged: wrong checksum"));
    }
    let (found, codes) = covered.split_at(HEAD_BYTES);
    let number = |at: usize| found[at..at + 4].iter().rev().fold(0, |n, &byte| n << 8 | u32::from(byte));
    let scan_bytes = number(7);
    let mut parameters = [0; FIELDS];
    parameters.copy_from_slice(&found[11..]);
    if Some(found) != head(headers, grid, scan_bytes, parameters).as_deref() {
        return Err(bad("belongs to another image"));
    }
    let n_fields = headers.components().len() + 1;
    let usable = parameters.iter().all(|&parameter| parameter <= MAX_PARAMETER);
    // A number takes at least one bit, so the allocation is bounded by the input.
    if !usable || last.saturating_mul(n_fields) > codes.len().saturating_mul(8) {
        return Err(bad("is truncated"));
    }
    let mut unpacker = Unpacker {
        reader: CodeReader { bytes: codes, at: 0, buffer: 0, n_bits: 0 },
        columns: to_usize(grid.columns()),
        parameters,
        n_fields,
        end: i64::from(scan_bytes) * 8,
    };
    entries.clear();
    entries.push(Entry::default());
    for _ in 0..last {
        let entry = unpacker.next(entries);
        entries.push(entry.ok_or_else(|| bad("has an invalid entry"))?);
    }
    Ok(scan_bytes)
}

/// Reads entries sequentially.
struct Unpacker<'a> {
    reader: CodeReader<'a>,
    columns: usize,
    parameters: [u8; FIELDS],
    n_fields: usize,
    /// Upper limit of positions.
    end: i64,
}

impl Unpacker<'_> {
    /// The entry after `entries`, which must not be empty.
    fn next(&mut self, entries: &[Entry]) -> Option<Entry> {
        let at = entries.len();
        let step = unzigzag(self.reader.next(self.parameters[0])?);
        let before = i64::from(entries[at - 1].position);
        let position = before + step + position_step(entries, self.columns, at);
        if position < before || position > self.end {
            return None;
        }
        let mut dc = predicted_dc(entries, self.columns, at).map(i32::from);
        for (value, &parameter) in dc.iter_mut().zip(&self.parameters[1..self.n_fields]) {
            let difference = unzigzag(self.reader.next(parameter)?);
            *value = i32::try_from(difference).ok()?.checked_add(*value)?;
            if !DC_RANGE.contains(value) {
                return None;
            }
        }
        Entry::new(u32::try_from(position).ok()?, dc)
    }
}

/// The lower 32 bits of `hash_bytes(0, bytes)`, see docs/reference/format.md, "Permutation".
pub(super) fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    const G: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |x: u64| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    };
    let mut hash = mix(G) ^ to_u64(bytes.len());
    for piece in bytes.chunks(8) {
        let mut eight = [0; 8];
        eight[..piece.len()].copy_from_slice(piece);
        hash = mix((hash ^ u64::from_le_bytes(eight)).wrapping_add(G));
    }
    let [a, b, c, d, ..] = hash.to_le_bytes();
    [a, b, c, d]
}

pub(super) fn bad(reason: &'static str) -> PixelError {
    PixelError::BadSeekIndex { reason }
}
