//! What can be wrong with an augmentation, and with a sample that it meets.

use packds_pixels::PixelError;

/// Why an augmentation cannot be made, or not be applied to a picture.
///
/// `Word`, `Parameter`, `Order` and `Twice` blame the description; `Source`, `SizesVary` and
/// `TooSmall` the pack that it is to be used with; `Picture`, `MaskSize` and `Pixels` the sample;
/// `Label` and `Buffer` the caller. The caller, who knows file and sample, adds them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentError {
    /// A word of the text form is none of the language, or is not well formed.
    #[error("augmentation {word:?}: expected {expected}")]
    Word {
        /// The word.
        word: String,
        /// What it could be.
        expected: String,
    },
    /// A number that an op cannot work with.
    #[error("{op}: {what} must be {expected}, found {found}")]
    Parameter {
        /// The op, as in the text form.
        op: String,
        /// The parameter.
        what: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it was.
        found: String,
    },
    /// Two ops that do not go together in this order.
    #[error("{op} after {previous}: {reason}")]
    Order {
        /// The op, as in the text form.
        op: String,
        /// What stands before it.
        previous: String,
        /// Why that cannot be, and what to do.
        reason: &'static str,
    },
    /// An op or a setting that may be given once.
    #[error("{op} after {previous}: it can be given once")]
    Twice {
        /// The second one.
        op: String,
        /// The first one.
        previous: String,
    },
    /// The field has values that cannot be augmented.
    #[error("cannot augment: {what} must be {expected}, found {found}")]
    Source {
        /// What about it.
        what: &'static str,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// Batches need one size, and neither the pack nor an op gives it.
    #[error(
        "the images vary in size and no op gives them one: start with rrc224, crop224, center224 or resize224x224"
    )]
    SizesVary,
    /// A picture that is smaller than the crop taken from it.
    #[error(
        "{op}: the picture, padding included, must be at least {expected}, found {found}: ask for padding as needed (crop32+4?) or a smaller crop"
    )]
    TooSmall {
        /// The op, as in the text form.
        op: String,
        /// Width and height needed.
        expected: String,
        /// Width and height there.
        found: String,
    },
    /// A picture that is not of the field that the plan was made for.
    #[error("picture: {what} must be {expected}, found {found}")]
    Picture {
        /// What about it.
        what: &'static str,
        /// What the plan was made for.
        expected: String,
        /// What came.
        found: String,
    },
    /// A mask that does not lie on its image.
    #[error("mask: the size must be that of the image, {expected}, found {found}")]
    MaskSize {
        /// Width and height of the image.
        expected: String,
        /// Width and height of the mask.
        found: String,
    },
    /// A label that is none of the classes.
    #[error("label {place} of the batch: expected 0 to {n_classes} (exclusive), found {found}")]
    Label {
        /// Its place in the batch.
        place: usize,
        /// How many classes there are.
        n_classes: usize,
        /// The label.
        found: i64,
    },
    /// Memory that the caller gave does not fit.
    #[error("{what}: expected {expected}, found {found}")]
    Buffer {
        /// Which memory, and the unit.
        what: &'static str,
        /// How much is needed.
        expected: usize,
        /// How much there is.
        found: usize,
    },
    /// The picture cannot be decoded, or its pixels not be worked on.
    #[error(transparent)]
    Pixels(#[from] PixelError),
}
