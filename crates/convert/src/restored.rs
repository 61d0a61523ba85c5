//! Takes defaults from the source. Arrays keep their channels and layout. For image files that were exported from a
//! pack, the properties of that pack are restored.

use packds_format::{Field, FieldKind};
use packds_pixels::{Color, Crop, Layout, Orientation, Resize};

use crate::ConvertError;
use crate::convert::path_of;
use crate::opt::{CROP, LEAVE_OUT, MODE, ORIENTATION};
use crate::options::{ConvertOptions, Mode, NormalizeBy};
use crate::pipeline::Observer;
use crate::source::Listing;
use crate::source::store::Content;
use crate::survey::first_in_colour;

pub(crate) struct Restored {
    pub(crate) options: ConvertOptions,
    /// Warnings about the source, and about properties of the exported pack that no longer hold.
    pub(crate) warnings: Vec<String>,
}

impl Restored {
    /// Fills in the options that `asked` leaves unset. The values come from the images of `listing`, or from the pack
    /// that they were exported from.
    pub(crate) fn of(listing: &Listing, asked: &ConvertOptions, observer: &dyn Observer) -> Result<Self, ConvertError> {
        let mut restored =
            Self { options: asked.clone(), warnings: listing.warnings().iter().map(ToString::to_string).collect() };
        restored.keep_arrays(listing);
        if listing.boxes().is_some() {
            restored.keep_boxes(listing)?;
        }
        if let Some(known) = listing.metadata().and_then(|metadata| metadata.image()) {
            if listing.image_contents().all(|c| c == Content::File) {
                restored.take_color(listing, known, observer)?;
                restored.take_layout(known);
            }
            restored.take_normalization(known);
        }
        Ok(restored)
    }

    /// Chooses the channels and the dimension order that the source's arrays have.
    fn keep_arrays(&mut self, listing: &Listing) {
        let options = &mut self.options;
        let (mut n, mut gray, mut planar) = (0, 0, 0);
        for content in listing.image_contents() {
            n += 1;
            if let Content::Pixels(shape) = content {
                gray += u32::from(shape.channels == 1);
                planar += u32::from(shape.planar);
            }
        }
        if n > 0 && gray == n {
            options.color = Some(options.color.unwrap_or(Color::Gray));
        }
        if n > 0 && planar == n && options.mode == Mode::Raw {
            options.layout = Some(options.layout.unwrap_or(Layout::Chw));
        }
    }

    /// Keeps the size of each image, unless another one is asked for. Boxes move with a resize only.
    fn keep_boxes(&mut self, listing: &Listing) -> Result<(), ConvertError> {
        let options = &mut self.options;
        if options.crop.is_some_and(|crop| crop != Crop::None) || options.orientation == Orientation::Apply {
            return Err(ConvertError::unsupported(
                listing.root(),
                "",
                "the source has boxes, which stay as they are when images are cropped or turned",
                format!(
                    "leave out {CROP} and {ORIENTATION}: a loader moves boxes with the images; or leave out the boxes with {}",
                    LEAVE_OUT.with("boxes")
                ),
            ));
        }
        if options.resize.is_some_and(|resize| resize != Resize::None) {
            return Ok(());
        }
        options.resize = Some(Resize::None);
        if options.mode == Mode::Raw && listing.image_contents().all(|content| content == Content::File) {
            let files = MODE.with("encoded");
            self.warnings.push(format!(
                "each image keeps its size, because boxes are in its pixels, and is stored as pixels: {files} stores the files, which are smaller"
            ));
        }
        Ok(())
    }

    /// Chooses one channel if the pack had one and every file is still gray.
    fn take_color(&mut self, listing: &Listing, known: &Field, observer: &dyn Observer) -> Result<(), ConvertError> {
        // Files that are stored unchanged cannot be converted to gray.
        let is_decoded = self.options.mode == Mode::Raw || self.options.quality.is_some();
        let is_gray = match known.color.as_deref() {
            Some(color) => color == "gray",
            None => known.image_shape().is_some_and(|(_, _, n)| n == 1),
        };
        if self.options.color.is_some() || !is_decoded || !is_gray {
            return Ok(());
        }
        match first_in_colour(listing, &self.options, observer)? {
            None => self.options.color = Some(Color::Gray),
            Some(idx) => {
                self.warnings.push(format!(
                    "the images were gray in the original pack, but '{}' is not gray: all images become rgb",
                    path_of(listing, idx)
                ));
            }
        }
        Ok(())
    }

    /// Chooses the channels-first layout if the pack had it and all images will have one size.
    fn take_layout(&mut self, known: &Field) {
        let options = &mut self.options;
        let is_planar = known.kind == FieldKind::Tensor && known.layout.as_deref() == Some("chw");
        let is_fixed = matches!(
            (options.resize, options.crop),
            (None, None) | (_, Some(Crop::Center { .. })) | (Some(Resize::Exact { .. }), _)
        );
        if is_planar && is_fixed && options.mode == Mode::Raw && options.layout.is_none() {
            options.layout = Some(Layout::Chw);
        }
    }

    /// Takes over a normalization that the pack states but has not applied to its values.
    fn take_normalization(&mut self, known: &Field) {
        let options = &mut self.options;
        let noted = known.normalize.as_ref().filter(|known| !known.applied);
        if let Some(noted) = noted
            && options.normalize == NormalizeBy::None
            && noted.mean.len() == options.color().channels()
            && noted.std.len() == noted.mean.len()
            && noted.std.iter().all(|std| *std > 0.0)
        {
            options.normalize = NormalizeBy::Values { mean: noted.mean.clone(), std: noted.std.clone() };
        }
    }
}
