//! Huffman tables in three forms: as stored, with added codes, and as decoding tables.

use packds_system::to_usize;

/// Maximum category of a DC difference in 8-bit baseline files.
pub(super) const MAX_DC_CATEGORY: u8 = 11;
/// The AC symbol for end-of-block.
pub(super) const END_OF_BLOCK: u8 = 0;
/// All DC symbols that dummy blocks may need.
pub(super) const DC_CATEGORIES: [u8; 12] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
/// Bits per table look-up. Most codes are shorter.
const LOOK: usize = 10;

/// A code: its bits, in the lower part, and its length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bits: u32,
    pub(super) len: u32,
}

/// A stored Huffman table: the number of codes of each length, and their symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CodeList<'a> {
    pub(super) counts: [u8; 16],
    symbols: &'a [u8],
    /// Symbols appended because the file's table lacked them.
    added: [u8; 12],
    n_added: usize,
}

impl<'a> CodeList<'a> {
    /// `None` if there are too many codes of some length, or if the number of codes differs from that of the symbols.
    pub(super) fn new(counts: [u8; 16], symbols: &'a [u8]) -> Option<Self> {
        let table = Self { counts, symbols, added: [0; 12], n_added: 0 };
        let n: usize = counts.iter().map(|&n| usize::from(n)).sum();
        (n == symbols.len() && n <= 256 && table.next_codes().is_some()).then_some(table)
    }

    /// The symbols, shortest codes first.
    pub(super) fn symbols(&self) -> impl Iterator<Item = u8> {
        let added = self.added.iter().take(self.n_added);
        self.symbols.iter().chain(added).copied()
    }

    pub(super) fn n_symbols(&self) -> usize {
        self.symbols.len() + self.n_added
    }

    /// For each length, the code after the last one. `None` if there are too many codes of some length. The code that
    /// consists only of ones is never used.
    fn next_codes(&self) -> Option<[u32; 17]> {
        let mut next = [0_u32; 17];
        let mut code = 0_u32;
        for (len, &count) in (1_u32..).zip(&self.counts) {
            code = 2 * code + u32::from(count);
            if count > 0 && code >= 1 << len {
                return None;
            }
            *next.get_mut(len as usize)? = code;
        }
        Some(next)
    }

    /// The table with a code for each of `wanted`. New codes are appended, and existing codes do not change. `None` if
    /// there is no space.
    pub(super) fn with(mut self, wanted: &[u8]) -> Option<Self> {
        for &symbol in wanted {
            if !self.symbols().any(|known| known == symbol) {
                *self.added.get_mut(self.n_added)? = symbol;
                self.n_added += 1;
            }
        }
        if self.n_added == 0 {
            return Some(self);
        }
        let longest = self.counts.iter().rposition(|&n| n > 0).unwrap_or(0);
        let own = self.counts;
        (longest..16).find_map(|idx| {
            self.counts = own;
            let n = usize::from(self.counts[idx]) + self.n_added;
            self.counts[idx] = u8::try_from(n).ok()?;
            (self.n_symbols() <= 256 && self.next_codes().is_some()).then_some(self)
        })
    }

    /// The code of a symbol, if it has one.
    pub(super) fn code(&self, wanted: u8) -> Option<Code> {
        self.codes().find_map(|(symbol, code)| (symbol == wanted).then_some(code))
    }

    /// All symbols with their codes, shortest first.
    fn codes(&self) -> impl Iterator<Item = (u8, Code)> {
        let lengths = (1_u32..).zip(self.counts).flat_map(|(len, n)| std::iter::repeat_n(len, usize::from(n)));
        let mut next = Code { bits: 0, len: 1 };
        self.symbols().zip(lengths).map(move |(symbol, len)| {
            let code = Code { bits: next.bits << (len - next.len), len };
            next = Code { bits: code.bits + 1, len };
            (symbol, code)
        })
    }
}

/// How far a code moves a reader that skips coefficients.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    /// Length of the code and of the number after it together, in bits. 0 in a table of short codes if none of them
    /// starts with these bits.
    pub(super) n_bits: u8,
    /// Length of the number in bits.
    pub(super) size: u8,
    /// Number of coefficients skipped. 64 or more at the end of the block.
    pub(super) advance: u8,
}

/// A decoding table.
pub(super) struct Lookup<'a> {
    short: Box<[Step; 1 << LOOK]>,
    table: CodeList<'a>,
    /// For each length, the code after the last one.
    next_codes: [u32; 17],
    /// The meaning of a symbol.
    step: fn(symbol: u8) -> Option<Step>,
}

impl<'a> Lookup<'a> {
    pub(super) fn dc(table: CodeList<'a>) -> Self {
        Self::new(table, |size| {
            let valid = size <= MAX_DC_CATEGORY;
            valid.then_some(Step { n_bits: size, size, advance: 1 })
        })
    }

    pub(super) fn ac(table: CodeList<'a>) -> Self {
        Self::new(table, |symbol| {
            let (run, size) = (symbol >> 4, symbol & 15);
            let advance = match (run, size) {
                (0, 0) => 64,
                (15, 0) => 16,
                (_, 0) => return None,
                _ => run + 1,
            };
            Some(Step { n_bits: size, size, advance })
        })
    }

    fn new(table: CodeList<'a>, step: fn(u8) -> Option<Step>) -> Self {
        let mut short = Box::new([Step::default(); 1 << LOOK]);
        for (symbol, code) in table.codes() {
            let len = code.len as usize;
            if len > LOOK {
                break;
            }
            let Some(step) = step(symbol) else { continue };
            let n_bits = step.n_bits + u8::try_from(len).unwrap_or(0);
            let first = (code.bits as usize) << (LOOK - len);
            if let Some(entries) = short.get_mut(first..first + (1 << (LOOK - len))) {
                entries.fill(Step { n_bits, ..step });
            }
        }
        Self {
            short,
            table,
            // This cannot fail, because `CodeList::new` rejects tables for which it would.
            next_codes: table.next_codes().unwrap_or_default(),
            step,
        }
    }

    /// Decodes the bits in the upper part of `bits`.
    pub(super) fn step(&self, bits: u64) -> Option<Step> {
        // This is in range, because only LOOK bits are left.
        let at = to_usize(bits >> (64 - LOOK));
        let step = self.short[at & ((1 << LOOK) - 1)];
        if step.n_bits > 0 { Some(step) } else { self.long_step(bits) }
    }

    #[cold]
    fn long_step(&self, bits: u64) -> Option<Step> {
        let mut n_before = 0;
        for (len, (&count, &next)) in (1_u8..).zip(self.table.counts.iter().zip(&self.next_codes[1..])) {
            n_before += usize::from(count);
            let code = bits >> (64 - len);
            if code < u64::from(next) {
                // The index is counted backwards from the last code of this length.
                let back = usize::try_from(u64::from(next) - code).ok()?;
                let symbol = *self.table.symbols.get(n_before.checked_sub(back)?)?;
                let step = (self.step)(symbol)?;
                return Some(Step { n_bits: step.n_bits + len, ..step });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_codes_are_added_behind_the_old_ones() {
        // There are two codes of 2 bits, 00 and 01. Free codes start with 10 and 11.
        let mut counts = [0; 16];
        counts[1] = 2;
        let table = CodeList::new(counts, &[5, 0]).unwrap();
        let full = table.with(&DC_CATEGORIES).unwrap();
        assert_eq!(full.code(5), Some(Code { bits: 0, len: 2 }));
        assert_eq!(full.code(0), Some(Code { bits: 1, len: 2 }));
        // There are ten codes that start with 10 or 11 but are not all ones. 5 bits give 16 - 1 codes.
        assert_eq!(full.code(1), Some(Code { bits: 0b10000, len: 5 }));
        assert_eq!(full.code(11), Some(Code { bits: 0b11001, len: 5 }));
        assert_eq!(full.n_symbols(), 12);
    }

    #[test]
    fn a_table_without_room_gets_no_codes() {
        // There is one code of each length. Only the code of all ones is left.
        let symbols: Vec<u8> = (20..36).collect();
        let table = CodeList::new([1; 16], &symbols).unwrap();
        assert_eq!(table.with(&[0]), None);
        assert_eq!(table.with(&[20]), Some(table));
    }

    #[test]
    fn more_codes_than_bits_are_refused() {
        let mut counts = [0; 16];
        counts[0] = 2;
        assert_eq!(CodeList::new(counts, &[1, 2]), None);
        counts[0] = 1;
        assert!(CodeList::new(counts, &[1]).is_some());
        assert_eq!(CodeList::new(counts, &[1, 2]), None);
    }

    #[test]
    fn codes_of_every_length_are_found() {
        let symbols: Vec<u8> = (1..=16).collect();
        let table = CodeList::new([1; 16], &symbols).unwrap();
        let lookup = Lookup::ac(table);
        for len in 1..=16_u8 {
            // len - 1 ones and a zero.
            let bits = !0_u64 << (65 - u32::from(len)).min(63);
            let bits = if len == 1 { 0 } else { bits };
            let step = lookup.step(bits).map(|step| step.n_bits);
            // Symbol 16 has a run but no number. No encoder writes it.
            assert_eq!(step, (len < 16).then_some(2 * len), "{len} bits");
        }
        assert!(lookup.step(!0).is_none());
    }
}
