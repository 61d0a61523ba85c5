//! Tests that a splice has the same pixels as the whole file, and that damaged indexes and files do no harm.

use std::path::Path;

use proptest::prelude::*;

use super::headers::Headers;
use super::index::{CHECKSUM_BYTES, Entry, Grid, checksum, unpack};
use super::{Splicer, build_seek_index};
use crate::area::Area;
use crate::decode::{DecodeOptions, Decoder};
use crate::encode_jpeg;
use crate::error::PixelError;

/// Smooth colours with some noise, so that blocks have few or many bits.
fn pixels(width: u32, height: u32, channels: u32) -> Vec<u8> {
    let mut noise = 12345_u32;
    let mut value = |x: u32, y: u32, c: u32| {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let smooth = x * (c + 1) + y * 2 + (x / 16 + y / 11) % 2 * 60;
        let detail = if y % 40 < 20 { noise >> 26 } else { 0 };
        ((smooth + detail) % 256).to_le_bytes()[0]
    };
    (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| (0..channels).map(move |c| (x, y, c))))
        .map(|(x, y, c)| value(x, y, c))
        .collect()
}

fn jpeg(width: u32, height: u32, channels: u8, quality: u8) -> Vec<u8> {
    let data = pixels(width, height, u32::from(channels));
    encode_jpeg(width, height, channels, &data, quality).unwrap()
}

/// A 4:2:0 file whose header is changed to other sampling factors. The image is meaningless, but valid.
fn with_sampling(width: u16, height: u16, factors: u8) -> Vec<u8> {
    let (h, v) = (u16::from(factors >> 4), u16::from(factors & 15));
    let (across, down) = (width.div_ceil(8 * h), height.div_ceil(8 * v));
    let mut bytes = jpeg(u32::from(across) * 16, u32::from(down) * 16, 3, 85);
    let frame = bytes.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    for (at, side) in [(frame + 5, height), (frame + 7, width)] {
        bytes[at] = (side >> 8).to_le_bytes()[0];
        bytes[at + 1] = side.to_le_bytes()[0];
    }
    bytes[frame + 11] = factors;
    bytes
}

fn fixture(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/images");
    std::fs::read(root.join(path)).unwrap()
}

/// The rows and columns of an area.
fn cut(pixels: &[u8], width: u32, area: Area) -> Vec<u8> {
    let usize_of = |n: u32| n as usize;
    let columns = usize_of(area.x) * 3..usize_of(area.x + area.width) * 3;
    let rows = pixels.chunks_exact(usize_of(width) * 3);
    rows.skip(usize_of(area.y)).take(usize_of(area.height)).flat_map(|row| &row[columns.clone()]).copied().collect()
}

fn decoder() -> Decoder {
    Decoder::new(DecodeOptions { max_pixels: 1 << 22, ..DecodeOptions::default() })
}

/// Single pixels in the corners, a whole row, a whole column, and random areas.
fn areas(width: u32, height: u32) -> Vec<Area> {
    let mut random = 99_u64;
    let mut below = |n: u32| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((u64::from(n) * (random >> 32)) >> 32).unwrap()
    };
    let mut all = Vec::new();
    for (x, y) in [(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)] {
        let (width, height) = (1, 1);
        all.push(Area { x, y, width, height });
    }
    all.push(Area { x: 0, y: height / 2, width, height: 1 });
    all.push(Area { x: width / 2, y: 0, width: 1, height });
    for _ in 0..40 {
        let (w, h) = (1 + below(width), 1 + below(height));
        let (x, y) = (below(width - w + 1), below(height - h + 1));
        all.push(Area { x, y, width: w, height: h });
    }
    all
}

/// Compares every area. Returns the number of splices.
fn compare(jpeg: &[u8], what: &str) -> usize {
    let mut decoder = decoder();
    let whole = decoder.decode(jpeg).unwrap();
    let index = build_seek_index(jpeg).unwrap_or_else(|| panic!("{what}: no index"));
    let mut splicer = Splicer::default();
    let mut n = 0;
    for area in areas(whole.width, whole.height) {
        let Some(small) = splicer.splice(jpeg, &index, area).unwrap() else { continue };
        n += 1;
        let picture = decoder.decode(small.jpeg).unwrap();
        assert_eq!((picture.width, picture.height), (small.width, small.height));
        let there = Area { x: small.x, y: small.y, ..area };
        let found = cut(&picture.data, picture.width, there);
        let expected = cut(&whole.data, whole.width, area);
        assert!(found == expected, "{what}: {area:?} differs");
    }
    n
}

#[test]
fn a_splice_shows_the_pixels_of_the_whole_file() {
    let mut n = 0;
    for (width, height) in [(1, 1), (7, 5), (64, 48), (98, 134), (203, 66), (17, 190), (333, 17)] {
        for quality in [1, 50, 90, 100] {
            for channels in [1, 3] {
                let what = format!("{width}x{height}x{channels} of quality {quality}");
                n += compare(&jpeg(width, height, channels, quality), &what);
            }
        }
    }
    assert!(n > 1000, "only {n} splices");
}

#[test]
fn every_sampling_is_spliced_to_the_same_pixels() {
    for factors in [0x22, 0x41, 0x14] {
        for (width, height) in [(203, 131), (64, 48), (33, 190)] {
            let what = format!("{factors:02x} {width}x{height}");
            assert!(compare(&with_sampling(width, height, factors), &what) > 5, "{what}");
        }
    }
    for name in ["baseline.jpg", "baseline_422.jpg", "baseline_444.jpg", "gray.jpg", "exif_orientation_6.jpg"] {
        assert!(compare(&fixture(&format!("formats/{name}")), name) > 5, "{name}");
    }
    assert!(compare(&fixture("folder/fish/b.JPEG"), "b.JPEG") > 5);
}

#[test]
fn files_of_other_kinds_get_no_index() {
    for name in ["progressive.jpg", "restart_markers.jpg", "cmyk.jpg", "rgb.png", "lossy.webp"] {
        assert_eq!(build_seek_index(&fixture(&format!("formats/{name}"))), None, "{name}");
    }
    assert_eq!(build_seek_index(b""), None);
    assert_eq!(build_seek_index(&fixture("bad/truncated.jpg")), None);
    let whole = jpeg(60, 50, 3, 80);
    let frame = whole.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    for (at, value) in [(frame + 4, 12), (frame + 1, 0xC9), (frame + 9, 4)] {
        let mut other = whole.clone();
        other[at] = value;
        assert_eq!(build_seek_index(&other), None, "byte {at} is {value}");
    }
}

#[test]
fn a_file_cut_short_gets_no_index() {
    let whole = jpeg(60, 50, 3, 80);
    for len in 0..whole.len() {
        assert_eq!(build_seek_index(&whole[..len]), None, "{len} bytes");
    }
}

/// If this test fails, the format has changed. See docs/reference/format.md, "Seek index".
#[test]
fn an_index_has_the_bytes_that_it_always_had() {
    for (name, len, sum) in [
        ("folder/cat/c.jpg", 314, [70, 40, 171, 157]),
        ("formats/baseline_444.jpg", 81, [223, 43, 85, 243]),
        ("formats/gray.jpg", 52, [27, 12, 241, 180]),
    ] {
        let index = build_seek_index(&fixture(name)).unwrap();
        let (_, found) = index.split_last_chunk().unwrap();
        assert_eq!((index.len(), *found), (len, sum), "{name}");
    }
}

#[test]
fn entries_come_back_from_their_index() {
    let file = jpeg(203, 131, 3, 90);
    let headers = Headers::parse(&file).unwrap();
    let grid = Grid::new(&headers);
    let walked = super::walk::walk(&headers, &grid, &file[headers.scan..]).unwrap();
    let index = build_seek_index(&file).unwrap();
    let mut entries = Vec::new();
    let last = walked.entries.len() - 1;
    let scan_bytes = unpack(&index, &headers, &grid, last, &mut entries).unwrap();
    assert_eq!(entries, walked.entries);
    assert_eq!(entries[0], Entry::default());
    assert_eq!(headers.scan + scan_bytes as usize + 2, file.len());
}

fn reseal(index: &mut [u8]) {
    let (covered, sum) = index.split_last_chunk_mut::<CHECKSUM_BYTES>().unwrap();
    *sum = checksum(covered);
}

fn refused(file: &[u8], index: &[u8]) -> &'static str {
    let (x, y, width, height) = (20, 20, 30, 30);
    match Splicer::default().splice(file, index, Area { x, y, width, height }) {
        Err(PixelError::BadSeekIndex { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn wrong_indexes_are_refused() {
    let file = jpeg(203, 131, 3, 90);
    let index = build_seek_index(&file).unwrap();
    assert_eq!(refused(&file, b""), "has no entries");
    assert_eq!(refused(&file, &index[..12]), "is too short");
    let other = build_seek_index(&jpeg(203, 130, 3, 90)).unwrap();
    assert_eq!(refused(&file, &other), "belongs to another image");
    let other = build_seek_index(&jpeg(203, 131, 3, 91)).unwrap();
    assert_eq!(refused(&file, &other), "belongs to another image");
    let progressive = fixture("formats/progressive.jpg");
    assert_eq!(refused(&progressive, &index), "belongs to another image");
    let changed = |at: usize, value: u8| {
        let mut index = index.clone();
        index[at] = value;
        reseal(&mut index);
        refused(&file, &index)
    };
    assert_eq!(changed(0, 2), "has an unknown version");
    assert_eq!(changed(1, 0), "has no entries");
    assert_eq!(changed(11, 25), "is truncated");
    let mut long = index[..15].to_vec();
    long.extend([0xFF; 40]);
    reseal(&mut long);
    assert_eq!(refused(&file, &long), "has an invalid entry");
}

#[test]
fn every_changed_byte_of_an_index_is_found() {
    let file = jpeg(203, 131, 3, 90);
    let index = build_seek_index(&file).unwrap();
    for at in 0..index.len() {
        for bit in 0..8 {
            let mut damaged = index.clone();
            damaged[at] ^= 1 << bit;
            refused(&file, &damaged);
        }
    }
}

#[test]
fn a_header_that_lies_about_the_size_costs_no_memory() {
    let mut file = jpeg(60, 50, 3, 80);
    let mut index = build_seek_index(&file).unwrap();
    let frame = file.windows(2).position(|pair| pair == [0xFF, 0xC0]).unwrap();
    file[frame + 5..frame + 9].fill(0xFF);
    index[2..6].fill(0xFF);
    reseal(&mut index);
    let (x, y, width, height) = (65_000, 65_000, 30, 30);
    let mut splicer = Splicer::default();
    let found = splicer.splice(&file, &index, Area { x, y, width, height });
    let reason = "is truncated";
    assert_eq!(found.err(), Some(PixelError::BadSeekIndex { reason }));
    assert_eq!(build_seek_index(&file), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// The result may be wrong, but the call must return, and the result must not be larger than the file justifies.
    #[test]
    fn hostile_indexes_and_files_do_no_harm(
        kind in 0_usize..3,
        index_changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        file_changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..4),
        sealed in proptest::bool::weighted(0.9),
        corner in (0_u32..220, 0_u32..140),
        size in (1_u32..220, 1_u32..140),
    ) {
        static FILES: std::sync::LazyLock<Vec<(Vec<u8>, Vec<u8>)>> = std::sync::LazyLock::new(|| {
            let files = [jpeg(203, 131, 3, 60), jpeg(97, 66, 1, 90), with_sampling(120, 64, 0x41)];
            files.map(|file| { let index = build_seek_index(&file).unwrap(); (file, index) }).to_vec()
        });
        let (mut file, mut index) = FILES[kind].clone();
        for (place, value) in index_changes {
            let at = place.index(index.len());
            index[at] = value;
        }
        for (place, value) in file_changes {
            let at = place.index(file.len());
            file[at] = value;
        }
        if sealed {
            reseal(&mut index);
        }
        let _ = build_seek_index(&file);
        let area = Area { x: corner.0, y: corner.1, width: size.0, height: size.1 };
        let mut splicer = Splicer::default();
        if let Ok(Some(small)) = splicer.splice(&file, &index, area) {
            prop_assert!(small.jpeg.len() < 3 * file.len() + (1 << 16));
            let _ = decoder().decode(small.jpeg);
        }
    }
}
