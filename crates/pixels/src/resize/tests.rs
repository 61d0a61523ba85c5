//! All kernels give the same results, and a window is equal to the same part of the whole result.

use proptest::prelude::*;

use super::kernel::Kernel;
use super::{Resampler, resize};
use crate::decode::Image;
use crate::geometry::{Crop, Filter, Geometry, Resize};

/// Noise without a period. It contains black and white, so that sums overshoot.
fn noise(width: u32, height: u32, channels: u8, seed: u64) -> Image {
    let n_bytes = width as usize * height as usize * usize::from(channels);
    let mut state = seed | 1;
    let data = (0..n_bytes).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let value = (state >> 56) as u8;
        if value < 64 {
            0
        } else if value > 192 {
            255
        } else {
            value
        }
    });
    Image { width, height, channels, data: data.collect() }
}

fn render(kernel: Kernel, src: &Image, geometry: &Geometry) -> Vec<u8> {
    let channels = usize::from(src.channels);
    let (width, height) = geometry.output_size(src.width, src.height, 1);
    let mut out = vec![0; width as usize * height as usize * channels];
    let window = geometry.window(src.width, src.height);
    let mut resampler = Resampler::with_kernel(kernel);
    resampler.start(src.width, src.height, channels, window, geometry.filter);
    resampler.push(&src.data, 0, src.width as usize * channels, &mut out);
    out
}

fn cut(src: &Image, x: u32, y: u32, width: u32, height: u32) -> Vec<u8> {
    let channels = usize::from(src.channels);
    let rows = src.data.chunks_exact(src.width as usize * channels);
    let columns = x as usize * channels..(x + width) as usize * channels;
    rows.skip(y as usize).take(height as usize).flat_map(|row| row[columns.clone()].to_vec()).collect()
}

fn any_filter() -> impl Strategy<Value = Filter> {
    proptest::sample::select(Filter::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn all_kernels_agree(
        (width, height) in (1_u32..90, 1_u32..90),
        (to_width, to_height) in (1_u32..120, 1_u32..120),
        gray in any::<bool>(),
        filter in any_filter(),
        seed in any::<u64>(),
    ) {
        let src = noise(width, height, if gray { 1 } else { 3 }, seed);
        let resize = Resize::Exact { width: to_width, height: to_height };
        let geometry = Geometry { resize, filter, ..Geometry::default() };
        let mut results = Kernel::all().into_iter().map(|kernel| render(kernel, &src, &geometry));
        let oracle = results.next().unwrap();
        for result in results {
            prop_assert_eq!(&oracle, &result);
        }
    }

    #[test]
    fn a_window_equals_the_whole_cut(
        (width, height) in (1_u32..100, 1_u32..100),
        (to_width, to_height) in (1_u32..130, 1_u32..130),
        (crop_width, crop_height) in (1_u32..130, 1_u32..130),
        gray in any::<bool>(),
        filter in any_filter(),
        seed in any::<u64>(),
    ) {
        let src = noise(width, height, if gray { 1 } else { 3 }, seed);
        let whole = resize(&src, to_width, to_height, filter).unwrap();
        let (crop_width, crop_height) = (crop_width.min(to_width), crop_height.min(to_height));
        let geometry = Geometry {
            resize: Resize::Exact { width: to_width, height: to_height },
            crop: Crop::Center { width: crop_width, height: crop_height },
            filter,
            ..Geometry::default()
        };
        let window = geometry.window(width, height);
        let expected = cut(&whole, window.x.start, window.y.start, crop_width, crop_height);
        for kernel in Kernel::all() {
            prop_assert_eq!(&expected, &render(kernel, &src, &geometry));
        }
    }
}

#[test]
fn extreme_shrinking_and_growing_agree() {
    for (width, height, to_width, to_height) in
        [(5000, 3, 1, 7), (3, 5000, 7, 1), (1, 1, 300, 200), (2000, 40, 3, 39), (40, 2000, 41, 2)]
    {
        for channels in [1, 3] {
            let src = noise(width, height, channels, 7);
            for filter in Filter::ALL {
                let resize = Resize::Exact { width: to_width, height: to_height };
                let geometry = Geometry { resize, filter, ..Geometry::default() };
                let results: Vec<_> = Kernel::all().into_iter().map(|kernel| render(kernel, &src, &geometry)).collect();
                assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{filter} {width}x{height}");
            }
        }
    }
}

#[test]
fn images_that_do_not_fit_their_size_are_errors() {
    let mut image = noise(4, 4, 3, 1);
    assert!(resize(&image, 0, 3, Filter::Box).is_err());
    image.data.pop();
    assert!(resize(&image, 3, 3, Filter::Box).is_err());
    image.channels = 2;
    assert!(resize(&image, 3, 3, Filter::Box).is_err());
}
