//! Decodes views of encoded images: areas that are cropped, resized and flipped.

use super::{Decoder, orient, resize_zeroed, usize_of};
use crate::area::{Area, CropResize, Encoded};
use crate::error::PixelError;
use crate::format::ImageFormat;
use crate::geometry::Orientation;
use crate::probe::ImageInfo;

impl Decoder {
    /// Writes each view of the image to the buffer at the same position, which must have exactly `width * height *
    /// channels` bytes. The option `orientation` decides whether views refer to the stored image or the upright one.
    /// The image is decoded once for all views. For a JPEG, only the rows and columns that the areas span are decoded.
    /// With a seek index, hardly any other data is even read. The pixels are equal to those of a full decode at full
    /// size; `jpeg_scaling` is ignored.
    ///
    /// # Errors
    /// `EmptyArea` or `AreaOutside`; `InvalidArgument` if the number of views differs from the number of buffers or a
    /// view is empty; `WrongBuffer`; `BadSeekIndex` if an index is used but is wrong; and the file and limit errors of
    /// `render`.
    pub fn crop_resize_into(
        &mut self,
        image: Encoded<'_>,
        views: &[CropResize],
        outs: &mut [&mut [u8]],
    ) -> Result<(), PixelError> {
        let mut info = self.admit(image.bytes)?;
        if self.options.orientation == Orientation::Ignore {
            info.orientation = 1;
        }
        if views.len() != outs.len() {
            let found = format!("{} views, {} buffers", views.len(), outs.len());
            return Err(PixelError::argument("views", "a buffer for each", found));
        }
        let turned = info.orientation >= 5;
        let (width, height) = if turned { (info.height, info.width) } else { (info.width, info.height) };
        let channels = self.options.color.channels();
        for (view, out) in views.iter().zip(outs.iter()) {
            view.check(width, height, channels, out.len())?;
        }
        let Some(span) = span_of(views) else { return Ok(()) };
        if let ([view], [out]) = (views, &mut *outs)
            && info.format == ImageFormat::Jpeg
            && info.orientation <= 1
        {
            return self.with_spliced(&image, &info, view.area, |decoder, bytes, info, area| {
                decoder.view_jpeg(bytes, info, &CropResize { area, ..*view }, out)
            });
        }
        let (origin, stride) = self.decode_span(&image, &info, span)?;
        let pixels = if info.orientation <= 1 { &self.pixels } else { &self.upright };
        for (view, out) in views.iter().zip(outs.iter_mut()) {
            let column = usize_of(view.area.x - origin.0) * channels;
            let first = usize_of(view.area.y - origin.1) * stride + column;
            self.resampler.start_view(view, channels);
            self.resampler.push(pixels, first, stride, out);
        }
        Ok(())
    }

    /// Decodes at least an area, and rotates it upright if necessary. The result is in `upright` if it was rotated,
    /// otherwise in `pixels`. Returns the position of the result's first pixel in the image, and the stride in bytes.
    fn decode_span(
        &mut self,
        image: &Encoded<'_>,
        info: &ImageInfo,
        area: Area,
    ) -> Result<((u32, u32), usize), PixelError> {
        let channels = self.options.color.channels();
        let stored = stored_area(area, info);
        let stored_row = usize_of(stored.width) * channels;
        if info.format == ImageFormat::Jpeg {
            self.with_spliced(image, info, stored, Self::decode_jpeg_area)?;
        } else {
            self.decode_all(image.bytes, info)?;
            let stride = usize_of(info.width) * channels;
            if info.orientation <= 1 {
                return Ok(((0, 0), stride));
            }
            let first = usize_of(stored.x) * channels;
            resize_zeroed(&mut self.samples, stored_row * usize_of(stored.height))?;
            let rows = self.pixels.chunks_exact(stride).skip(usize_of(stored.y));
            for (row, cut) in rows.zip(self.samples.chunks_exact_mut(stored_row)) {
                cut.copy_from_slice(&row[first..first + stored_row]);
            }
            std::mem::swap(&mut self.pixels, &mut self.samples);
        }
        if info.orientation > 1 {
            let size = (stored.width, stored.height);
            orient::turn(&self.pixels, size, channels, info.orientation, &mut self.upright);
        }
        Ok(((area.x, area.y), usize_of(area.width) * channels))
    }

    /// Calls `decode` with a JPEG, its headers, and the area to decode in its stored pixels. The JPEG is a small
    /// spliced JPEG if an index makes that worthwhile, otherwise the image itself.
    fn with_spliced<T>(
        &mut self,
        image: &Encoded<'_>,
        info: &ImageInfo,
        area: Area,
        decode: impl FnOnce(&mut Self, &[u8], &ImageInfo, Area) -> Result<T, PixelError>,
    ) -> Result<T, PixelError> {
        let Some(index) = image.seek_index.filter(|index| !index.is_empty()) else {
            return decode(self, image.bytes, info, area);
        };
        let mut splicer = std::mem::take(&mut self.splicer);
        let decoded = match splicer.splice(image.bytes, index, area) {
            Err(error) => Err(error),
            Ok(None) => decode(self, image.bytes, info, area),
            Ok(Some(small)) => {
                let info = ImageInfo { width: small.width, height: small.height, ..*info };
                decode(self, small.jpeg, &info, Area { x: small.x, y: small.y, ..area })
            }
        };
        self.splicer = splicer;
        decoded
    }
}

/// The bounding box of all views' areas.
fn span_of(views: &[CropResize]) -> Option<Area> {
    let areas = || views.iter().map(|view| view.area);
    let (x, y) = (areas().map(|area| area.x).min()?, areas().map(|area| area.y).min()?);
    let right = areas().map(|area| area.x + area.width).max()?;
    let bottom = areas().map(|area| area.y + area.height).max()?;
    Some(Area { x, y, width: right - x, height: bottom - y })
}

/// The area of the stored image that corresponds to an area of the upright image.
fn stored_area(area: Area, info: &ImageInfo) -> Area {
    let stored = |x, y| orient::stored(info.orientation, (x, y), (info.width, info.height));
    let (first, last) = (stored(area.x, area.y), stored(area.x + area.width - 1, area.y + area.height - 1));
    Area {
        x: first.0.min(last.0),
        y: first.1.min(last.1),
        width: first.0.abs_diff(last.0) + 1,
        height: first.1.abs_diff(last.1) + 1,
    }
}
