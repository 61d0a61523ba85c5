//! Rotation, translation, scaling and shearing, as in Pillow's `Image.transform`.

use crate::area::Pixels;
use crate::decode::usize_of;
use crate::error::PixelError;
use packds_system::to_usize;

use super::sample::{self, Map, Picture};

/// Interpolation at a point of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// The pixel that contains the point: Pillow's `NEAREST`.
    Nearest,
    /// Four pixels, blended linearly: Pillow's `BILINEAR`.
    Bilinear,
    /// Sixteen pixels, blended by cubic curves: Pillow's `BICUBIC`.
    Bicubic,
}

/// A mapping from result pixels to source pixels.
///
/// With the matrix `[a, b, c, d, e, f]`, the point (x, y) of the result shows the point (a x + b y + c, d x + e y + f)
/// of the source. The centre of the first pixel is (0.5, 0.5).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Affine {
    /// The coefficients a to f, in pixels.
    pub matrix: [f64; 6],
    /// Interpolation between pixels.
    pub sampling: Sampling,
    /// The colour outside the source, one value per channel.
    pub fill: [u8; 4],
}

impl Affine {
    /// torchvision's `affine` for an image of `width` x `height`: shears, scales and rotates around the centre, then
    /// translates. `sampling` is nearest and `fill` is black. Both fields can be changed afterwards.
    ///
    /// `degrees` is clockwise, `translate` is in pixels to the right and down, and `shear` is in degrees along rows and
    /// columns. torchvision rounds random translations, and callers should too.
    ///
    /// # Errors
    /// `InvalidArgument` if a number or the matrix is not finite, or the scale is not positive.
    pub fn new(
        width: u32,
        height: u32,
        degrees: f64,
        translate: (f64, f64),
        scale: f64,
        shear: (f64, f64),
    ) -> Result<Self, PixelError> {
        if !(scale.is_finite() && scale > 0.0) {
            return Err(PixelError::argument("scale", "above 0", scale));
        }
        Self::around(middle(width, height), degrees, translate, scale, shear)
    }

    /// torchvision's `affine` with shear around the image's upper left corner, by `x` degrees along rows and `y`
    /// degrees along columns. `sampling` is nearest and `fill` is black. Both fields can be changed afterwards.
    ///
    /// # Errors
    /// `InvalidArgument` if the matrix is not finite.
    pub fn shear(x: f64, y: f64) -> Result<Self, PixelError> {
        Self::around((0.0, 0.0), 0.0, (0.0, 0.0), 1.0, (x, y))
    }

    /// torchvision's affine matrix around the point `middle`. `scale` must be positive.
    fn around(
        middle: (f64, f64),
        degrees: f64,
        translate: (f64, f64),
        scale: f64,
        shear: (f64, f64),
    ) -> Result<Self, PixelError> {
        let (angle, x, y) = (degrees.to_radians(), shear.0.to_radians(), shear.1.to_radians());
        // The forward matrix without the scale: the rotation times the shears. Its determinant is 1.
        let a = (angle - y).cos() / y.cos();
        let b = -(angle - y).cos() * x.tan() / y.cos() - angle.sin();
        let c = (angle - y).sin() / y.cos();
        let d = -(angle - y).sin() * x.tan() / y.cos() + angle.cos();
        Self::moved([d, -b, -c, a].map(|value| value / scale), middle, translate)
    }

    /// `rotate` of torchvision and Pillow: `degrees` counter-clockwise around the centre, keeping the size. `sampling`
    /// is nearest and `fill` is black. Both fields can be changed afterwards.
    ///
    /// # Errors
    /// `InvalidArgument` if the angle is not finite.
    pub fn rotation(width: u32, height: u32, degrees: f64) -> Result<Self, PixelError> {
        let angle = -degrees.rem_euclid(360.0).to_radians();
        let (cos, sin) = (to_15_places(angle.cos()), to_15_places(angle.sin()));
        Self::moved([cos, sin, -sin, cos], middle(width, height), (0.0, 0.0))
    }

    /// The mapping with the linear part `[p, q, r, s]` around a point. The result is then translated.
    fn moved(
        [p, q, r, s]: [f64; 4],
        (middle_x, middle_y): (f64, f64),
        translate: (f64, f64),
    ) -> Result<Self, PixelError> {
        let (to_x, to_y) = (-middle_x - translate.0, -middle_y - translate.1);
        let matrix = [p, q, p * to_x + q * to_y + middle_x, r, s, r * to_x + s * to_y + middle_y];
        check(&matrix)?;
        Ok(Self { matrix, sampling: Sampling::Nearest, fill: [0; 4] })
    }

    /// Writes the mapped image at the same size. The bytes are those of Pillow's `image.transform(image.size, AFFINE,
    /// matrix, filter, fillcolor=fill)`.
    ///
    /// # Errors
    /// `InvalidArgument` if a number of the matrix is not finite or the image has more than 4
    /// channels, `WrongBuffer` if a buffer has the wrong length.
    pub fn apply_into(&self, image: Pixels<'_>, out: &mut [u8]) -> Result<(), PixelError> {
        check(&self.matrix)?;
        image.check()?;
        PixelError::check_len(out.len(), image.data.len())?;
        let (width, height) = (usize_of(image.width), usize_of(image.height));
        match image.channels {
            1 => self.draw(Picture::new(image.data, width, height), out, sample::gray),
            2 => self.draw(Picture::<2>::new(image.data, width, height), out, sample::plain),
            3 => self.draw(Picture::new(image.data, width, height), out, sample::color),
            4 => self.draw(Picture::<4>::new(image.data, width, height), out, sample::plain),
            other => return Err(PixelError::argument("channels", "1 to 4", other)),
        }
        Ok(())
    }

    /// Draws the mapped image, with `smooth` unless the sampling is nearest.
    fn draw<const N: usize>(
        &self,
        picture: Picture<'_, N>,
        out: &mut [u8],
        smooth: fn(&Picture<'_, N>, &Map<N>, &mut [[u8; N]]),
    ) {
        let pixels = out.as_chunks_mut::<N>().0;
        let mut fill = [0; N];
        fill.copy_from_slice(&self.fill[..N]);
        let matrix = self.matrix;
        let [_, b, _, d, _, _] = matrix;
        let rows_map_to_rows = b == 0.0 && d == 0.0;
        let steps = if rows_map_to_rows { None } else { Fixed::of(&matrix, picture.width, picture.height) };
        if self.sampling != Sampling::Nearest {
            let cubic = self.sampling == Sampling::Bicubic;
            let map = Map { matrix, fill, cubic };
            smooth(&picture, &map, pixels);
        } else if let Some(steps) = steps {
            steps.draw(&picture, fill, pixels);
        } else {
            self.step(&picture, fill, pixels);
        }
    }

    /// Pillow's nearest filter for mappings that keep rows horizontal and columns vertical, and for mappings with
    /// positions that do not fit in 16.16 bits. It computes positions by repeated addition.
    fn step<const N: usize>(&self, picture: &Picture<'_, N>, fill: [u8; N], out: &mut [[u8; N]]) {
        let [a, b, c, d, e, f] = self.matrix;
        let (mut first_x, mut first_y) = (c + b * 0.5 + a * 0.5, f + e * 0.5 + d * 0.5);
        for pixels in out.chunks_exact_mut(picture.width) {
            let (mut x, mut y) = (first_x, first_y);
            for pixel in pixels {
                *pixel = picture.nearest(x, y).unwrap_or(fill);
                x += a;
                y += d;
            }
            first_x += b;
            first_y += e;
        }
    }
}

fn check(matrix: &[f64; 6]) -> Result<(), PixelError> {
    if matrix.iter().all(|value| value.is_finite()) {
        return Ok(());
    }
    Err(PixelError::argument("affine matrix", "finite numbers", format!("{matrix:?}")))
}

fn middle(width: u32, height: u32) -> (f64, f64) {
    (f64::from(width) * 0.5, f64::from(height) * 0.5)
}

/// Rounds to 15 decimals, as Pillow rounds sines and cosines, so that quarter turns are exact.
fn to_15_places(value: f64) -> f64 {
    format!("{value:.15}").parse().unwrap_or(value)
}

impl<const N: usize> Picture<'_, N> {
    /// The pixel that contains the point. `None` outside the image.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "points are at or above 0; the cast truncates and stays within usize"
    )]
    fn nearest(&self, x: f64, y: f64) -> Option<[u8; N]> {
        if x < 0.0 || y < 0.0 {
            return None;
        }
        let (x, y) = (x as usize, y as usize);
        (x < self.width && y < self.height).then(|| self.pixels[y * self.width + x])
    }
}

/// A mapping in 16.16 fixed point. Pillow uses it to step from pixel to pixel.
struct Fixed {
    first: [i32; 2],
    /// The step to the next column, and the step to the next row.
    steps: [[i32; 2]; 2],
}

impl Fixed {
    /// `None` if a corner of the image is mapped to a position that does not fit in 16.16 bits.
    #[expect(clippy::cast_precision_loss, reason = "sides are exact in f64")]
    fn of(matrix: &[f64; 6], width: usize, height: usize) -> Option<Self> {
        let [a, b, c, d, e, f] = *matrix;
        let (width, height) = (width as f64, height as f64);
        let corners = [(0.0, 0.0), (width, height), (0.0, height), (width, 0.0)];
        let fits = |(x, y): &(f64, f64)| (x * a + y * b + c).abs() < 32768.0 && (x * d + y * e + f).abs() < 32768.0;
        corners.iter().all(fits).then(|| Self {
            first: [fixed(c + a * 0.5 + b * 0.5), fixed(f + d * 0.5 + e * 0.5)],
            steps: [[fixed(a), fixed(d)], [fixed(b), fixed(e)]],
        })
    }

    fn draw<const N: usize>(&self, picture: &Picture<'_, N>, fill: [u8; N], out: &mut [[u8; N]]) {
        let [mut first_x, mut first_y] = self.first;
        let [[right_x, right_y], [down_x, down_y]] = self.steps;
        for pixels in out.chunks_exact_mut(picture.width) {
            let (mut x, mut y) = (first_x, first_y);
            for pixel in pixels {
                // A negative position becomes a huge column or row, which is outside every image.
                let (column, row) = (whole(x), whole(y));
                *pixel = if column < picture.width && row < picture.height {
                    picture.pixels[row * picture.width + column]
                } else {
                    fill
                };
                x = x.wrapping_add(right_x);
                y = y.wrapping_add(right_y);
            }
            first_x = first_x.wrapping_add(down_x);
            first_y = first_y.wrapping_add(down_y);
        }
    }
}

/// Rounds to 16.16 fixed point.
#[expect(clippy::cast_possible_truncation, reason = "positions are below 32768; the cast clips larger steps")]
fn fixed(value: f64) -> i32 {
    (value * 65536.0 + 0.5).floor() as i32
}

/// The integer part of a 16.16 number. A negative number ends up outside every image.
fn whole(place: i32) -> usize {
    to_usize((place >> 16).cast_unsigned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const EVERY: [Sampling; 3] = [Sampling::Nearest, Sampling::Bilinear, Sampling::Bicubic];
    const IDENTITY: [f64; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

    fn apply(affine: &Affine, width: u32, data: &[u8]) -> Vec<u8> {
        let height = u32::try_from(data.len()).unwrap() / width / 3;
        let mut out = vec![99; data.len()];
        let image = Pixels { data, width, height, channels: 3 };
        affine.apply_into(image, &mut out).unwrap();
        out
    }

    #[test]
    fn numbers_that_give_no_map_are_errors() {
        let new = |degrees, x, scale, shear| {
            let error = Affine::new(5, 5, degrees, (x, 0.0), scale, (shear, 0.0)).unwrap_err();
            error.to_string()
        };
        assert!(new(0.0, 0.0, 0.0, 0.0).contains("invalid scale"));
        assert!(new(0.0, 0.0, f64::NAN, 0.0).contains("invalid scale"));
        assert!(new(f64::NAN, 0.0, 1.0, 0.0).contains("invalid affine matrix"));
        assert!(new(0.0, f64::INFINITY, 1.0, 0.0).contains("invalid affine matrix"));
        assert!(new(0.0, 0.0, 1.0, f64::NAN).contains("invalid affine matrix"));
        assert!(new(0.0, 0.0, 5e-324, 0.0).contains("invalid affine matrix"));
        assert!(Affine::rotation(5, 5, f64::NAN).is_err());
    }

    #[test]
    fn buffers_that_do_not_fit_are_errors() {
        let mut affine = Affine::rotation(2, 2, 30.0).unwrap();
        let image = |data, channels| Pixels { data, width: 2, height: 2, channels };
        assert!(affine.apply_into(image(&[0; 12], 3), &mut [0; 11]).is_err());
        assert!(affine.apply_into(image(&[0; 11], 3), &mut [0; 11]).is_err());
        assert!(affine.apply_into(image(&[0; 20], 5), &mut [0; 20]).is_err());
        assert!(affine.apply_into(image(&[0; 16], 4), &mut [0; 16]).is_ok());
        affine.matrix[3] = f64::INFINITY;
        assert!(affine.apply_into(image(&[0; 12], 3), &mut [0; 12]).is_err());
    }

    #[test]
    fn matrices_of_any_size_are_drawn() {
        for value in [1e300, -1e300, 1e15, -1e15, 70000.0, 1e-300] {
            for place in 0..6 {
                let mut matrix = [1.0, 0.5, 0.0, 0.5, 1.0, 0.0];
                matrix[place] = value;
                for sampling in EVERY {
                    let affine = Affine { matrix, sampling, fill: [7; 4] };
                    apply(&affine, 3, &[1; 27]);
                    matrix[1] = 0.0;
                    matrix[3] = 0.0;
                    apply(&Affine { matrix, ..affine }, 3, &[1; 27]);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_identity_changes_nothing(
            width in 1_u32..6,
            mut data in prop::collection::vec(any::<u8>(), 18..90),
            sampling in prop::sample::select(EVERY.to_vec()),
        ) {
            data.truncate(data.len() / (width as usize * 3) * width as usize * 3);
            let height = u32::try_from(data.len()).unwrap() / width / 3;
            let still = Affine::new(width, height, 0.0, (0.0, 0.0), 1.0, (0.0, 0.0)).unwrap();
            prop_assert_eq!(still, Affine { matrix: IDENTITY, sampling: Sampling::Nearest, fill: [0; 4] });
            prop_assert_eq!(&apply(&Affine { sampling, ..still }, width, &data), &data);
            let turned = Affine::rotation(width, height, -720.0).unwrap();
            prop_assert_eq!(apply(&Affine { sampling, ..turned }, width, &data), data);
        }

        #[test]
        fn half_turns_reverse(
            width in 1_u32..6,
            mut data in prop::collection::vec(any::<u8>(), 18..90),
            sampling in prop::sample::select(EVERY.to_vec()),
        ) {
            data.truncate(data.len() / (width as usize * 3) * width as usize * 3);
            let height = u32::try_from(data.len()).unwrap() / width / 3;
            let turned = Affine::rotation(width, height, 180.0).unwrap();
            let mut reversed = apply(&Affine { sampling, ..turned }, width, &data);
            reversed.as_chunks_mut::<3>().0.reverse();
            prop_assert_eq!(reversed, data);
        }
    }
}
