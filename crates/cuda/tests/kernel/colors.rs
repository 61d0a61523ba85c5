//! Colour operations give the same results as on the host.

use packds_pixels::ops::Adjustment;

use super::*;

impl Draws {
    fn unit(&mut self) -> f32 {
        f32::from(u16::try_from(self.below(1 << 16)).unwrap()) / 65536.0
    }

    /// A random operation with a random factor, or nothing.
    fn color(&mut self) -> ColorOp {
        let factor = 3.0 * self.unit();
        ColorOp(match self.below(8) {
            0 => None,
            1 => Some(Adjustment::Brightness(factor)),
            2 => Some(Adjustment::Saturation(factor)),
            3 => Some(Adjustment::Hue(self.unit() - 0.5)),
            4 => Some(Adjustment::Grayscale),
            5 => Some(Adjustment::Solarize(self.byte())),
            _ => Some(Adjustment::Contrast(factor)),
        })
    }
}

impl Case {
    /// The same case with operations on the colours of each image.
    fn colored(mut self, n_colors: u32, seed: u64) -> Self {
        let mut draws = Draws(seed);
        let e = &mut self.emission;
        e.n_colors = n_colors;
        self.colors = (0..e.n * n_colors).map(|_| draws.color()).collect();
        let measures = |color: &ColorOp| matches!(color.0, Some(Adjustment::Contrast(_)));
        e.measures = self.colors.iter().any(measures).into();
        self
    }
}

#[test]
fn the_kernel_changes_colors_with_the_hosts_bits() {
    let host = Mutex::new(Host::start());
    let sizes = (1_u32..5, 1_u32..30, 1_u32..30, 1_u32..75, 1_u32..75, any::<bool>());
    let kinds = (0_usize..4, any::<bool>(), 0_u8..4);
    let norms = (-1.0_f32..2.0, 1e-3_f32..2.0);
    let changes = (0_u32..3, any::<bool>(), 1_u32..7);
    proptest!(
        ProptestConfig::with_cases(500),
        |(sizes in sizes, kind in kinds, seed in any::<u64>(), norm in norms, change in changes)| {
            let (n_patches, mixes, n_colors) = change;
            let case = case(sizes, kind, seed, norm).colored(n_colors, seed);
            let mut host = host.lock().unwrap();
            check(&mut host, &case);
            check(&mut host, &case.changed(n_patches, mixes, seed));
        }
    );
}

/// Uses the maximum number of operations.
#[test]
fn the_longest_lists_of_colors_are_done() {
    let mut host = Host::start();
    let most = u32::try_from(Changes::MOST_COLORS).unwrap();
    for seed in 0..6 {
        let case = case((3, 9, 7, 20, 12, true), (0, false, 0), seed, (0.0, 1.0));
        let case = case.colored(most, seed).changed(0, true, seed);
        check(&mut host, &case);
    }
}

/// `n` random bytes.
fn draws_of(n: usize) -> Vec<u8> {
    let mut draws = Draws(1);
    (0..n).map(|_| draws.byte()).collect()
}

/// One image for each of the 256 hue rotations, with 4096 colours each, including gray and black.
#[test]
fn every_turn_of_the_hue_is_the_hosts() {
    let mut host = Host::start();
    let mut case = case((256, 64, 64, 64, 64, true), (0, false, 0), 1, (0.0, 1.0));
    case.frames = None;
    case.source = draws_of(256 * 64 * 64 * 3);
    for image in case.source.chunks_mut(64 * 64 * 3) {
        for (value, pixel) in (0_u8..=255).zip(image.chunks_mut(3)) {
            pixel.fill(value);
        }
    }
    case.emission.n_colors = 1;
    let turn = |number: u32| (number as f32 - 127.5) / 255.0;
    let hue = |number| ColorOp(Some(Adjustment::Hue(turn(number))));
    case.colors = (0..256).map(hue).collect();
    check(&mut host, &case);
}

/// Every value, with factors from 0 to 3 and every threshold.
#[test]
fn every_value_is_adjusted_as_the_hosts() {
    let mut host = Host::start();
    for is_color in [false, true] {
        let sizes = (256, 16, 16, 16, 16, is_color);
        let mut case = case(sizes, (0, true, 0), 1, (0.0, 1.0));
        case.frames = None;
        let channels = usize::from(if is_color { 3_u8 } else { 1 });
        case.source = draws_of(256 * 256 * channels);
        for (value, pixel) in (0_u8..=255).cycle().zip(case.source.chunks_mut(channels)) {
            for (factor, to) in [1, 3, 5].iter().zip(pixel) {
                *to = value.wrapping_mul(*factor);
            }
        }
        case.emission.n_colors = 1;
        case.emission.measures = 1;
        for kind in 0..4 {
            let color = |number: u8| {
                let factor = f32::from(number) / 85.0;
                ColorOp(Some(match kind {
                    0 => Adjustment::Brightness(factor),
                    1 => Adjustment::Contrast(factor),
                    2 => Adjustment::Saturation(factor),
                    _ => Adjustment::Solarize(number),
                }))
            };
            case.colors = (0..=255).map(color).collect();
            check(&mut host, &case);
        }
    }
}
