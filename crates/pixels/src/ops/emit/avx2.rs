//! The final pass with vector instructions, eight values at a time.
//!
//! Division is slow, and multiplying by the reciprocal does not round correctly. One correction step with fused
//! multiply-adds fixes almost every quotient. If a single fused `value * scale + bias` already gives the right bits
//! (mostly for 16-bit types), it is used instead. Neither method is proven to be exact: `Emit` tests all 256 byte
//! values and falls back if any result differs.

use std::arch::x86_64::{
    __m128i, __m256, __m256i, _mm_loadl_epi64, _mm_loadu_si128, _mm_or_si128, _mm_shuffle_epi8, _mm_storeu_si128,
    _mm256_add_epi32, _mm256_and_si256, _mm256_castps_si256, _mm256_castsi256_si128, _mm256_cvtepi32_ps,
    _mm256_cvtepu8_epi32, _mm256_cvtps_ph, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_mul_ps, _mm256_packus_epi32,
    _mm256_permute4x64_epi64, _mm256_set_m128i, _mm256_set1_epi32, _mm256_set1_ps, _mm256_setr_ps, _mm256_shuffle_epi8,
    _mm256_srli_epi32, _mm256_storeu_ps, _mm256_sub_ps,
};

use crate::cast::Layout;
use crate::float::FloatType;

/// Number of values in a register.
const LANES: usize = 8;
/// `_MM_FROUND_TO_NEAREST_INT`: halves to even.
const NEAREST: i32 = 0;

/// A vector loop for one kind of output. Constructed only if the processor has AVX2, FMA and F16C.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fast {
    loops: Loop,
    layout: Layout,
    /// One normalization per channel. If there is only one channel, its normalization is repeated three times.
    norms: [Norm; 3],
    single: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loop {
    Planes,
    Fused(FloatType),
    Corrected(FloatType),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Norm {
    mean: f32,
    std: f32,
}

impl Fast {
    /// The loops for this output, fastest first. Empty if the processor lacks an instruction or the output is
    /// unsupported.
    pub(super) fn candidates(norms: &[(f32, f32)], float: Option<FloatType>, layout: Layout) -> Vec<Self> {
        let has_all =
            is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        let norm = |index: usize| norms.get(index).map(|&(mean, std)| Norm { mean, std });
        let norms = match (norms.len(), norm(0), norm(1), norm(2)) {
            (1, Some(norm), _, _) if has_all => [norm; 3],
            (3, Some(red), Some(green), Some(blue)) if has_all => [red, green, blue],
            _ => return Vec::new(),
        };
        let single = norm(1).is_none();
        let loops = match float {
            Some(ty) => vec![Loop::Fused(ty), Loop::Corrected(ty)],
            // Bytes in unchanged order are copied.
            None if single || layout == Layout::Hwc => Vec::new(),
            None => vec![Loop::Planes],
        };
        let fast = |loops| Self { loops, layout, norms, single };
        loops.into_iter().map(fast).collect()
    }

    /// Writes pixels from the start of the image. Returns how many were written.
    pub(super) fn write(&self, hwc: &[u8], out: &mut [u8]) -> usize {
        use FloatType::{Bf16, F16, F32};
        match self.loops {
            // SAFETY: `self` exists only if the processor has AVX2, FMA and F16C. The same applies below.
            Loop::Planes => unsafe { planes(hwc, out) },
            // SAFETY: as above.
            Loop::Fused(F32) => unsafe { self.cast::<true, SINGLE>(hwc, out) },
            // SAFETY: as above.
            Loop::Fused(F16) => unsafe { self.cast::<true, HALF>(hwc, out) },
            // SAFETY: as above.
            Loop::Fused(Bf16) => unsafe { self.cast::<true, UPPER_HALF>(hwc, out) },
            // SAFETY: as above.
            Loop::Corrected(F32) => unsafe { self.cast::<false, SINGLE>(hwc, out) },
            // SAFETY: as above.
            Loop::Corrected(F16) => unsafe { self.cast::<false, HALF>(hwc, out) },
            // SAFETY: as above.
            Loop::Corrected(Bf16) => unsafe { self.cast::<false, UPPER_HALF>(hwc, out) },
        }
    }

    #[target_feature(enable = "avx2,fma,f16c")]
    fn cast<const FUSED: bool, const TYPE: u8>(&self, hwc: &[u8], out: &mut [u8]) -> usize {
        let step = LANES * if TYPE == SINGLE { 4 } else { 2 };
        if self.single || self.layout == Layout::Hwc {
            // Three registers together hold eight pixels of three channels. Their first lanes hold channels 0, 2 and 1.
            let lanes = [0, 2, 1].map(|first| {
                let norm = |lane: usize| self.norms[(first + lane) % 3];
                Lanes::new([0, 1, 2, 3, 4, 5, 6, 7].map(norm))
            });
            let (blocks, _) = hwc.as_chunks::<{ 3 * LANES }>();
            for (block, out) in blocks.iter().zip(out.chunks_exact_mut(3 * step)) {
                let parts = block.as_chunks::<LANES>().0.iter();
                for ((part, out), lanes) in parts.zip(out.chunks_exact_mut(step)).zip(&lanes) {
                    let values = _mm256_cvtepu8_epi32(load_8(part));
                    store::<TYPE>(out, lanes.normalised::<FUSED>(values));
                }
            }
            return blocks.len() * 3 * LANES / if self.single { 1 } else { 3 };
        }
        let lanes = self.norms.map(|norm| Lanes::new([norm; LANES]));
        let picks = [0, 1, 2].map(|channel| every_third(channel));
        let [red, green, blue] = split(out).map(|plane| plane.chunks_exact_mut(step));
        let mut n_pixels = 0;
        for ((red, green), blue) in red.zip(green).zip(blue) {
            // There are two loads. The second one reads four bytes past these pixels.
            let Some(block) = hwc[n_pixels * 3..].first_chunk::<28>() else { break };
            let pixels = load_pixels(block);
            for (channel, plane) in [red, green, blue].into_iter().enumerate() {
                let values = _mm256_shuffle_epi8(pixels, picks[channel]);
                store::<TYPE>(plane, lanes[channel].normalised::<FUSED>(values));
            }
            n_pixels += LANES;
        }
        n_pixels
    }
}

const SINGLE: u8 = 0;
const HALF: u8 = 1;
const UPPER_HALF: u8 = 2;

/// The normalization of eight values.
#[derive(Clone, Copy)]
struct Lanes {
    mean: __m256,
    std: __m256,
    reciprocal: __m256,
    scale: __m256,
    bias: __m256,
}

impl Lanes {
    #[target_feature(enable = "avx2,fma,f16c")]
    fn new(norms: [Norm; LANES]) -> Self {
        let all = |of: fn(Norm) -> f32| {
            let [a, b, c, d, e, f, g, h] = norms.map(of);
            _mm256_setr_ps(a, b, c, d, e, f, g, h)
        };
        Self {
            mean: all(|norm| norm.mean),
            std: all(|norm| norm.std),
            reciprocal: all(|norm| 1.0 / norm.std),
            scale: all(|norm| rounded(1.0 / (255.0 * f64::from(norm.std)))),
            bias: all(|norm| rounded(-f64::from(norm.mean) / f64::from(norm.std))),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2,fma,f16c")]
    fn normalised<const FUSED: bool>(&self, values: __m256i) -> __m256 {
        let values = _mm256_cvtepi32_ps(values);
        if FUSED {
            return _mm256_fmadd_ps(values, self.scale, self.bias);
        }
        let parts = quotient(values, _mm256_set1_ps(255.0), _mm256_set1_ps(1.0 / 255.0));
        quotient(_mm256_sub_ps(parts, self.mean), self.std, self.reciprocal)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is intended")]
fn rounded(value: f64) -> f32 {
    value as f32
}

/// `value / divisor`: an estimate, corrected by its remainder.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn quotient(value: __m256, divisor: __m256, reciprocal: __m256) -> __m256 {
    let guess = _mm256_mul_ps(value, reciprocal);
    let left_over = _mm256_fnmadd_ps(guess, divisor, value);
    _mm256_fmadd_ps(left_over, reciprocal, guess)
}

/// Writes eight values in the output type.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn store<const TYPE: u8>(out: &mut [u8], values: __m256) {
    if TYPE == SINGLE {
        let Some(out) = out.first_chunk_mut::<32>() else { return };
        // SAFETY: `out` has 32 writable bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_ps(out.as_mut_ptr().cast(), values) };
        return;
    }
    let halves = if TYPE == HALF { _mm256_cvtps_ph::<NEAREST>(values) } else { upper_halves(values) };
    store_16(out, halves);
}

/// The upper halves of eight `f32`, rounded to nearest, ties to even.
#[inline]
#[target_feature(enable = "avx2,fma,f16c")]
fn upper_halves(values: __m256) -> __m128i {
    let bits = _mm256_castps_si256(values);
    let odd = _mm256_and_si256(_mm256_srli_epi32::<16>(bits), _mm256_set1_epi32(1));
    let up = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    let upper = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, up));
    let packed = _mm256_packus_epi32(upper, upper);
    _mm256_castsi256_si128(_mm256_permute4x64_epi64::<0b1000>(packed))
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_16(out: &mut [u8], value: __m128i) {
    let Some(out) = out.first_chunk_mut::<16>() else { return };
    // SAFETY: `out` has 16 writable bytes, and the store needs no alignment.
    unsafe { _mm_storeu_si128(out.as_mut_ptr().cast(), value) };
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_8(bytes: &[u8; LANES]) -> __m128i {
    // SAFETY: there are eight readable bytes. The load reads no more than that and needs no alignment.
    unsafe { _mm_loadl_epi64(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load_16(bytes: &[u8; 16]) -> __m128i {
    // SAFETY: there are sixteen readable bytes, and the load needs no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// Loads eight three-byte pixels, four in each half of the register, starting at the half's first byte.
#[inline]
#[target_feature(enable = "avx2")]
fn load_pixels(block: &[u8; 28]) -> __m256i {
    let mut low = [0; 16];
    let mut high = [0; 16];
    low.copy_from_slice(&block[..16]);
    high.copy_from_slice(&block[12..]);
    _mm256_set_m128i(load_16(&high), load_16(&low))
}

/// The shuffle that extends one channel of the four pixels in each half to 32 bits.
#[inline]
#[target_feature(enable = "avx2")]
fn every_third(channel: u8) -> __m256i {
    let mut picks = [NOTHING; 16];
    for (pick, from) in picks.iter_mut().step_by(4).zip((channel..).step_by(3)) {
        *pick = from;
    }
    let half = load_16(&picks);
    _mm256_set_m128i(half, half)
}

/// The position that makes a shuffle write 0.
const NOTHING: u8 = 0x80;

/// The three planes of an output.
fn split(out: &mut [u8]) -> [&mut [u8]; 3] {
    let plane = out.len() / 3;
    let (red, rest) = out.split_at_mut(plane);
    let (green, blue) = rest.split_at_mut(plane);
    [red, green, blue]
}

/// Splits pixels into planes, sixteen at a time. The bytes of each channel are gathered from the three registers that
/// hold the pixels. Returns how many pixels were written.
#[target_feature(enable = "avx2")]
fn planes(hwc: &[u8], out: &mut [u8]) -> usize {
    let pick = |channel: u8, part: u8| {
        let mut picks = [NOTHING; 16];
        for (pick, from) in picks.iter_mut().zip((channel..).step_by(3)) {
            *pick = from.checked_sub(16 * part).filter(|from| *from < 16).unwrap_or(NOTHING);
        }
        load_16(&picks)
    };
    let picks = [0, 1, 2].map(|channel| [0, 1, 2].map(|part| pick(channel, part)));
    let (blocks, _) = hwc.as_chunks::<48>();
    let [red, green, blue] = split(out).map(|plane| plane.chunks_exact_mut(16));
    for (((block, red), green), blue) in blocks.iter().zip(red).zip(green).zip(blue) {
        let [a, b, c] = [0, 1, 2].map(|part| load_16(&block.as_chunks::<16>().0[part]));
        for (plane, picks) in [red, green, blue].into_iter().zip(&picks) {
            let ab = _mm_or_si128(_mm_shuffle_epi8(a, picks[0]), _mm_shuffle_epi8(b, picks[1]));
            store_16(plane, _mm_or_si128(ab, _mm_shuffle_epi8(c, picks[2])));
        }
    }
    blocks.len() * 16
}
