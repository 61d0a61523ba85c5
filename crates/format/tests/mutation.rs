//! Deterministic damage: flips, interesting numbers, splices and cuts, with or without corrected checksums.

use packds_format::mix64;

use crate::support::{reseal, reseal_outside, sections};

/// A deterministic stream of random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix64(self.0)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() >> 1).unwrap_or(0) % n.max(1)
    }
}

const INTERESTING: [u64; 24] = [
    0,
    1,
    2,
    3,
    7,
    8,
    63,
    64,
    65,
    255,
    256,
    4095,
    4096,
    4097,
    65_535,
    1 << 20,
    (1 << 20) + 1,
    0xffff_ffff,
    1 << 32,
    (1 << 48) - 1,
    1 << 62,
    0x7fff_ffff_ffff_ffff,
    u64::MAX - 7,
    u64::MAX,
];

/// A position to mutate: usually in the header, in a section or its entry, in the trailer, or at the start of the body.
fn hot_place(file: &[u8], random: &mut Random) -> usize {
    let sections = sections(file);
    let in_section = |random: &mut Random| {
        let section = sections.get(random.below(sections.len()))?;
        let entry = section.entry_at + random.below(32);
        let place = usize::try_from(section.offset).ok()?;
        let within = place.checked_add(random.below(usize::try_from(section.len).ok()?))?;
        Some(if random.next().is_multiple_of(3) { entry } else { within })
    };
    match random.below(6) {
        0 => random.below(116),
        1 => file.len().saturating_sub(1 + random.below(64)),
        2 => 8192 + random.below(200),
        3 => random.below(file.len()),
        _ => in_section(random).unwrap_or(0),
    }
}

/// Makes one to four mutations. In most cases the checksums are then corrected.
pub(crate) fn mutate(file: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = hot_place(file, random);
        match random.below(8) {
            0 | 1 => {
                if let Some(byte) = file.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            2..=5 => {
                let at = if random.next().is_multiple_of(2) { at / 4 * 4 } else { at };
                let value = INTERESTING[random.below(INTERESTING.len())].to_le_bytes();
                let size = [1, 2, 4, 8][random.below(4)];
                crate::support::put(file, at, &value[..size]);
            }
            6 => {
                let from = random.below(other.len());
                let len = random.below(256).min(other.len() - from);
                crate::support::put(file, at, &other[from..from + len]);
            }
            _ if random.next().is_multiple_of(8) => {
                file.truncate(file.len().saturating_sub(random.below(200)));
            }
            _ => {
                let digit = b'0' + u8::try_from(random.below(10)).unwrap_or(0);
                crate::support::put(file, 4096 + random.below(300), &[digit]);
            }
        }
    }
    match random.below(8) {
        0 => {}
        1 | 2 => reseal_outside(file),
        _ => reseal(file),
    }
}
