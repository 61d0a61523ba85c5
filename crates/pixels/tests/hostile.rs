//! Damaged and truncated files, and files with false headers, give errors. They never cause a panic or an allocation of
//! a declared size.
//!
//! The files are generated here. They are the smallest valid image of each format, with some bytes changed.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::LazyLock;

use packds_pixels::{
    Color, Crop, DecodeOptions, Decoder, Filter, Geometry, ImageFormat, Orientation, PixelError, Resize,
    check_structure, encode_jpeg, encode_png, probe,
};
use proptest::prelude::*;

const WIDTH: u32 = 37;
const HEIGHT: u32 = 29;

fn pixels(channels: usize) -> Vec<u8> {
    let n_bytes = (WIDTH * HEIGHT) as usize * channels;
    (0..=250).step_by(7).chain([3, 1]).cycle().take(n_bytes).collect()
}

fn gif() -> Vec<u8> {
    let mut bytes = Vec::new();
    let palette: Vec<u8> = (0..=255).flat_map(|value| [value, 255 - value, 7]).collect();
    let (width, height) = (u16::try_from(WIDTH).unwrap(), u16::try_from(HEIGHT).unwrap());
    let mut encoder = gif::Encoder::new(&mut bytes, width, height, &palette).unwrap();
    let frame = gif::Frame::from_indexed_pixels(width, height, pixels(1), Some(3));
    encoder.write_frame(&frame).unwrap();
    drop(encoder);
    bytes
}

fn tiff() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut encoder = tiff::encoder::TiffEncoder::new(&mut bytes).unwrap();
    let image = encoder.new_image::<tiff::encoder::colortype::RGB8>(WIDTH, HEIGHT).unwrap();
    image.write_data(&pixels(3)).unwrap();
    bytes.into_inner()
}

fn webp() -> Vec<u8> {
    let mut bytes = Vec::new();
    let encoder = image::codecs::webp::WebPEncoder::new_lossless(&mut bytes);
    encoder.encode(&pixels(3), WIDTH, HEIGHT, image::ExtendedColorType::Rgb8).unwrap();
    bytes
}

/// A BMP file with 8 bits per pixel and a palette of 256 colours. The top row comes first.
fn bmp() -> Vec<u8> {
    let stride = (WIDTH as usize).next_multiple_of(4);
    let mut bytes = b"BM\0\0\0\0\0\0\0\0\x36\x04\0\0\x28\0\0\0".to_vec();
    bytes.extend(WIDTH.to_le_bytes());
    bytes.extend(HEIGHT.wrapping_neg().to_le_bytes());
    bytes.extend([1, 0, 8, 0]);
    bytes.extend([0; 24]);
    bytes.extend((0..=255).flat_map(|value| [value, 7, 255 - value, 0]));
    for row in pixels(1).chunks_exact(WIDTH as usize) {
        bytes.extend(row);
        bytes.extend(vec![0; stride - row.len()]);
    }
    // The padding of the last row may be missing.
    bytes.truncate(bytes.len() - (stride - WIDTH as usize));
    bytes
}

/// A plain PGM file with one digit per sample, so that truncation never leaves a shorter number.
fn plain() -> Vec<u8> {
    let samples: Vec<String> = pixels(1).iter().map(|value| (value % 10).to_string()).collect();
    format!("P2 {WIDTH} {HEIGHT} 9\n{}", samples.join(" ")).into_bytes()
}

fn pnm() -> Vec<u8> {
    let mut bytes = format!("P6 {WIDTH} {HEIGHT} 255\n").into_bytes();
    bytes.extend(pixels(3));
    bytes
}

/// The header of a TGA file with 24 bits per pixel whose top row comes first.
fn tga(kind: u8) -> Vec<u8> {
    let (width, height) = (u8::try_from(WIDTH).unwrap(), u8::try_from(HEIGHT).unwrap());
    vec![0, 0, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, width, 0, height, 0, 24, 0x20]
}

fn bgr() -> impl Iterator<Item = [u8; 3]> {
    pixels(3).as_chunks::<3>().0.to_vec().into_iter().map(|[red, green, blue]| [blue, green, red])
}

fn qoi() -> Vec<u8> {
    let mut bytes = b"qoif".to_vec();
    let side = |side: u32| [0, 0, 0, u8::try_from(side).unwrap()];
    bytes.extend([side(WIDTH), side(HEIGHT)].concat());
    bytes.extend([3, 0]);
    bytes.extend(pixels(3).as_chunks::<3>().0.iter().flat_map(|[red, green, blue]| [0xFE, *red, *green, *blue]));
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 1]);
    bytes
}

static FILES: LazyLock<Vec<(ImageFormat, Vec<u8>)>> = LazyLock::new(|| {
    vec![
        (ImageFormat::Jpeg, encode_jpeg(WIDTH, HEIGHT, 3, &pixels(3), 80).unwrap()),
        (ImageFormat::Jpeg, encode_jpeg(WIDTH, HEIGHT, 1, &pixels(1), 80).unwrap()),
        (ImageFormat::Png, encode_png(WIDTH, HEIGHT, 3, &pixels(3)).unwrap()),
        (ImageFormat::Png, encode_png(WIDTH, HEIGHT, 1, &pixels(1)).unwrap()),
        (ImageFormat::Gif, gif()),
        (ImageFormat::Bmp, bmp()),
        (ImageFormat::Tiff, tiff()),
        (ImageFormat::WebP, webp()),
        (ImageFormat::Pnm, plain()),
        (ImageFormat::Pnm, pnm()),
        (ImageFormat::Tga, [tga(2), bgr().flatten().collect()].concat()),
        (ImageFormat::Tga, [tga(10), bgr().flat_map(|[blue, green, red]| [0, blue, green, red]).collect()].concat()),
        (ImageFormat::Qoi, qoi()),
    ]
});

fn geometry() -> Geometry {
    Geometry {
        resize: Resize::Short(16),
        crop: Crop::Center { width: 11, height: 13 },
        filter: Filter::Bilinear,
        orientation: Orientation::Apply,
    }
}

fn decoder(color: Color) -> Decoder {
    Decoder::new(DecodeOptions { color, max_pixels: 1 << 20, jpeg_scaling: false, orientation: Orientation::Apply })
}

/// Calls everything that reads a file. All calls must return.
fn read_all_ways(bytes: &[u8]) {
    let _ = probe(bytes);
    let _ = check_structure(bytes);
    for color in [Color::Rgb, Color::Gray, Color::Index] {
        let mut decoder = decoder(color);
        let _ = decoder.decode(bytes);
        let _ = decoder.render(bytes, &geometry());
    }
}

#[test]
fn honest_files_decode_and_pass_the_structure_check() {
    for (format, bytes) in FILES.iter() {
        let info = check_structure(bytes).unwrap();
        assert_eq!((info.format, info.width, info.height), (*format, WIDTH, HEIGHT));
        let image = decoder(Color::Rgb).decode(bytes).unwrap();
        assert_eq!(image.data.len(), (WIDTH * HEIGHT * 3) as usize);
        if *format != ImageFormat::Jpeg && info.channels == 3 && !info.palette {
            assert_eq!(image.data, pixels(3), "{format}");
        }
    }
}

#[test]
fn every_truncation_is_found_by_the_structure_check_and_none_panics() {
    for (format, bytes) in FILES.iter() {
        for len in 0..bytes.len() {
            let found = check_structure(&bytes[..len]);
            assert!(found.is_err(), "{format} cut to {len} of {} bytes", bytes.len());
            if len % 5 == 0 {
                read_all_ways(&bytes[..len]);
            }
        }
    }
}

#[test]
fn a_truncated_jpeg_is_an_error_whatever_the_crop() {
    let bytes = &FILES[0].1;
    for len in 2..bytes.len() {
        for side in [1, 8, 29] {
            let crop = Crop::Center { width: side, height: side };
            let top = Geometry { crop, ..Geometry::default() };
            let error = decoder(Color::Rgb).render(&bytes[..len], &top).unwrap_err();
            assert!(!matches!(error, PixelError::WrongBuffer { .. }), "{error}");
        }
    }
    let error = decoder(Color::Rgb).decode(&bytes[..bytes.len() - 2]).unwrap_err();
    assert!(matches!(error, PixelError::Truncated { format: ImageFormat::Jpeg, .. }), "{error}");
}

#[test]
fn a_decoder_goes_on_after_an_error() {
    let bytes = &FILES[0].1;
    let mut decoder = decoder(Color::Rgb);
    let expected = decoder.decode(bytes).unwrap();
    for len in [20, 200, bytes.len() / 2, bytes.len() - 1] {
        assert!(decoder.decode(&bytes[..len]).is_err());
        assert_eq!(decoder.decode(bytes).unwrap(), expected);
    }
}

#[test]
fn declared_sizes_beyond_the_limit_are_refused_before_memory_is_asked_for() {
    let mut png = FILES[2].1.clone();
    png[16..24].copy_from_slice(&[0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    let error = Decoder::new(DecodeOptions::default()).decode(&png).unwrap_err();
    let expected = PixelError::TooManyPixels { width: 65535, height: 65535, limit: 178_956_970 };
    assert_eq!(error, expected);
    let mut small = Decoder::new(DecodeOptions { max_pixels: 1000, ..DecodeOptions::default() });
    for (format, bytes) in FILES.iter() {
        let error = small.decode(bytes).unwrap_err();
        assert!(matches!(error, PixelError::TooManyPixels { limit: 1000, .. }), "{format}: {error}");
    }
}

#[test]
fn a_small_file_that_declares_a_large_image_is_an_error() {
    let mut png = FILES[2].1.clone();
    png[16..24].copy_from_slice(&[0, 0, 0x30, 0, 0, 0, 0x30, 0]);
    let error = Decoder::new(DecodeOptions::default()).decode(&png).unwrap_err();
    assert!(matches!(error, PixelError::Truncated { format: ImageFormat::Png, .. }), "{error}");
    let mut tiff = FILES[6].1.clone();
    let wide = tiff.windows(2).position(|pair| pair == [0, 1]).unwrap();
    tiff[wide..wide + 2].reverse();
    read_all_ways(&tiff);
}

#[test]
fn other_bytes_are_no_image() {
    assert_eq!(probe(b"").unwrap_err(), PixelError::Empty);
    let error = probe(b"PK\x03\x04 not an image").unwrap_err();
    assert_eq!(error, PixelError::UnknownFormat { first_bytes: b"PK\x03\x04 not".to_vec() });
}

#[test]
fn a_buffer_of_the_wrong_size_is_an_error() {
    let mut out = vec![0; 10];
    let error = decoder(Color::Rgb).render_into(&FILES[0].1, &geometry(), &mut out).unwrap_err();
    assert_eq!(error, PixelError::WrongBuffer { expected: 11 * 13 * 3, found: 10 });
}

#[test]
fn a_colour_image_is_no_mask() {
    for (_, bytes) in
        FILES.iter().filter(|(_, bytes)| probe(bytes).is_ok_and(|info| info.channels == 3 && !info.palette))
    {
        let error = decoder(Color::Index).decode(bytes).unwrap_err();
        assert_eq!(error, PixelError::NotSingleChannel { channels: 3 });
    }
    assert_eq!(decoder(Color::Index).decode(&bmp()).unwrap().data, pixels(1));
    assert_eq!(decoder(Color::Index).decode(&gif()).unwrap().data, pixels(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn changed_bytes_never_panic(
        file in 0..FILES.len(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<proptest::sample::Index>()),
    ) {
        let mut bytes = FILES[file].1.clone();
        for (place, value) in changes {
            let at = place.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        read_all_ways(&bytes);
    }

    #[test]
    fn changed_headers_never_panic(
        file in 0..FILES.len(),
        changes in proptest::collection::vec((0_usize..64, any::<u8>()), 1..4),
    ) {
        let mut bytes = FILES[file].1.clone();
        for (at, value) in changes {
            let at = at.min(bytes.len() - 1);
            bytes[at] = value;
        }
        read_all_ways(&bytes);
    }

    #[test]
    fn noise_behind_a_signature_never_panics(
        file in 0..FILES.len(),
        keep in 2_usize..40,
        noise in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let mut bytes = FILES[file].1[..keep].to_vec();
        bytes.extend(noise);
        read_all_ways(&bytes);
    }
}

#[test]
fn a_header_that_declares_a_huge_image_is_refused_before_memory_is_allocated() {
    let mut huge_qoi = qoi();
    huge_qoi[4..12].fill(0xFF);
    let mut huge_tga = tga(10);
    huge_tga[12..16].fill(0xFF);
    let numbers = [b"P5 4294967295 4294967295 255\n12".to_vec(), b"P1 4294967295 4294967295\n0 1".to_vec()];
    for bytes in numbers.into_iter().chain([huge_qoi, huge_tga]) {
        let error = decoder(Color::Rgb).decode(&bytes).unwrap_err();
        assert!(matches!(error, PixelError::TooManyPixels { .. }), "{error}");
        assert!(matches!(check_structure(&bytes), Err(PixelError::Truncated { .. })));
    }
    // Within the limit, but longer than the file.
    for bytes in [&b"P2 1000 1000 255\n1 2"[..], b"P6 1000 1000 255\n12", b"P4 1000 1000\n12"] {
        let error = decoder(Color::Rgb).decode(bytes).unwrap_err();
        assert!(matches!(error, PixelError::Truncated { format: ImageFormat::Pnm, .. }), "{error}");
    }
    for digits in ["99999999999 1 255", "1 1 65536", "1 1 0"] {
        let error = probe(format!("P5 {digits}\n1").as_bytes()).unwrap_err();
        assert!(matches!(error, PixelError::Malformed { .. }), "{error}");
    }
}
