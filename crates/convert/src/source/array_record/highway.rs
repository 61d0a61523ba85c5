//! HighwayHash with 64 bits, the checksum of Riegeli.
//!
//! <https://github.com/google/highwayhash> specifies it.

/// `Riegeli/records\n`, twice.
const KEY: [u64; 4] = [0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572, 0x2f69_6c65_6765_6952, 0x0a73_6472_6f63_6572];
const MUL_0: [u64; 4] = [0xdbe6_d5d5_fe4c_ce2f, 0xa409_3822_299f_31d0, 0x1319_8a2e_0370_7344, 0x243f_6a88_85a3_08d3];
const MUL_1: [u64; 4] = [0x3bd3_9e10_cb0e_f593, 0xc0ac_f169_b5f1_8a8c, 0xbe54_66cf_34e9_0c6c, 0x4528_21e6_38d0_1377];
/// Bytes of a packet.
const PACKET: usize = 32;

/// The checksum of these bytes.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    let mut state = State::new();
    let (packets, rest) = bytes.as_chunks::<PACKET>();
    packets.iter().for_each(|packet| state.update(lanes_of(packet)));
    if !rest.is_empty() {
        state.end(rest);
    }
    state.finish()
}

fn lanes_of(packet: &[u8; PACKET]) -> [u64; 4] {
    let (lanes, _) = packet.as_chunks::<8>();
    [0, 1, 2, 3].map(|lane| lanes.get(lane).map_or(0, |bytes| u64::from_le_bytes(*bytes)))
}

struct State {
    v0: [u64; 4],
    v1: [u64; 4],
    mul0: [u64; 4],
    mul1: [u64; 4],
}

impl State {
    fn new() -> Self {
        let mut state = Self { v0: MUL_0, v1: MUL_1, mul0: MUL_0, mul1: MUL_1 };
        state.v0.iter_mut().zip(KEY).for_each(|(lane, key)| *lane ^= key);
        state.v1.iter_mut().zip(KEY).for_each(|(lane, key)| *lane ^= key.rotate_left(32));
        state
    }

    fn update(&mut self, packet: [u64; 4]) {
        let Self { v0, v1, mul0, mul1 } = self;
        let lanes = v0.iter_mut().zip(v1.iter_mut()).zip(mul0.iter_mut().zip(mul1.iter_mut())).zip(packet);
        for (((v0, v1), (mul0, mul1)), lane) in lanes {
            *v1 = v1.wrapping_add(mul0.wrapping_add(lane));
            *mul0 ^= low(*v1) * high(*v0);
            *v0 = v0.wrapping_add(*mul1);
            *mul1 ^= low(*v0) * high(*v1);
        }
        merge(v1, v0);
        merge(v0, v1);
    }

    /// Adds the last bytes, fewer than a packet.
    fn end(&mut self, rest: &[u8]) {
        let n = rest.len();
        let count = u32::try_from(n).unwrap_or_default();
        let step = (u64::from(count) << 32) + u64::from(count);
        self.v0.iter_mut().for_each(|lane| *lane = lane.wrapping_add(step));
        let rotated = |half: u64| (half << count | half >> (32 - count)) & 0xffff_ffff;
        self.v1.iter_mut().for_each(|lane| *lane = rotated(high(*lane)) << 32 | rotated(low(*lane)));
        let (words, last) = rest.split_at(n & !3);
        let mut packet = [0; PACKET];
        packet.iter_mut().zip(words).for_each(|(to, from)| *to = *from);
        let set = |packet: &mut [u8; PACKET], at: usize, from: Option<&u8>| {
            packet.get_mut(at).zip(from).into_iter().for_each(|(to, from)| *to = *from);
        };
        if n & 16 != 0 {
            // The last four bytes. Some of them are in the words, too.
            let four = rest.get(n - 4..).unwrap_or_default();
            four.iter().enumerate().for_each(|(at, byte)| set(&mut packet, 28 + at, Some(byte)));
        } else if !last.is_empty() {
            set(&mut packet, 16, last.first());
            set(&mut packet, 17, last.get(last.len() >> 1));
            set(&mut packet, 18, last.last());
        }
        self.update(lanes_of(&packet));
    }

    fn finish(mut self) -> u64 {
        for _ in 0..4 {
            let [a, b, c, d] = self.v0.map(|lane| lane.rotate_left(32));
            self.update([c, d, a, b]);
        }
        [self.v0, self.v1, self.mul0, self.mul1].iter().fold(0_u64, |sum, [lane, ..]| sum.wrapping_add(*lane))
    }
}

fn low(lane: u64) -> u64 {
    lane & 0xffff_ffff
}

fn high(lane: u64) -> u64 {
    lane >> 32
}

/// Adds the mixed bytes of each pair of lanes to a pair of other lanes.
fn merge(from: &[u64; 4], to: &mut [u64; 4]) {
    let (from, _) = from.as_chunks::<2>();
    let (to, _) = to.as_chunks_mut::<2>();
    for ([v0, v1], [add0, add1]) in from.iter().zip(to) {
        let mixed0 = ((v0 & 0xff00_0000) | (v1 & 0xff_0000_0000)) >> 24
            | ((v0 & 0xff00_0000_0000) | (v1 & 0x00ff_0000_0000_0000)) >> 16
            | v0 & 0xff_0000
            | (v0 & 0xff00) << 32
            | (v1 & 0xff00_0000_0000_0000) >> 8
            | v0 << 56;
        let mixed1 = ((v1 & 0xff00_0000) | (v0 & 0xff_0000_0000)) >> 24
            | v1 & 0xff_0000
            | (v1 & 0xff00_0000_0000) >> 16
            | (v1 & 0xff00) << 24
            | (v0 & 0x00ff_0000_0000_0000) >> 8
            | (v1 & 0xff) << 48
            | v0 & 0xff00_0000_0000_0000;
        *add0 = add0.wrapping_add(mixed0);
        *add1 = add1.wrapping_add(mixed1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksums_of_riegeli_are_these() {
        // The header of the first block and the signature of every file, and the empty data of the signature.
        let block = [0_u64, 64].map(u64::to_le_bytes).concat();
        assert_eq!(hash(&block).to_le_bytes(), [0x83, 0xaf, 0x70, 0xd1, 0x0d, 0x88, 0x4a, 0x3f]);
        assert_eq!(hash(&[]).to_le_bytes(), [0xe1, 0x9f, 0x13, 0xc0, 0xe9, 0xb1, 0xc3, 0x72]);
        // Written by array_record: chunks of 12, 10 and 3 bytes, without compression.
        for (data, expected) in [
            (&b"\x00\x02\x05\x07helloworld!!"[..], [0xc8, 0x81, 0x87, 0x95, 0x04, 0x67, 0xad, 0xc4]),
            (b"\x00\x02\x0a\x00xxxxxxxxxx", [0x06, 0xb8, 0x0e, 0x0d, 0xb9, 0x19, 0xde, 0x92]),
            (b"\x00\x01\x03abc", [0xf6, 0x34, 0xc5, 0xaa, 0x8c, 0x80, 0x2f, 0xe8]),
        ] {
            assert_eq!(hash(data).to_le_bytes(), expected, "{data:?}");
        }
    }
}
