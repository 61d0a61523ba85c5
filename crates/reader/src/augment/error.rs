//! Errors in an augmentation, or in a sample that it is applied to.

use packds_pixels::PixelError;

/// Why an augmentation cannot be made, or cannot be applied to an image.
///
/// `Word`, `Parameter`, `Order` and `Twice` are errors in the description. `Source`, `SizesVary` and `TooSmall` are
/// conflicts with the pack. `Picture`, `MaskSize`, `Entries`, `Polygons` and `Pixels` are errors in the sample. `Label` and `Buffer` are
/// errors of the caller. Messages do not name the file or the sample, so the caller adds them.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AugmentError {
    /// A word of the text form is unknown or malformed.
    #[error("augmentation {word:?}: expected {expected}")]
    Word {
        /// The word.
        word: String,
        /// What was expected.
        expected: String,
    },
    /// A value is invalid for an op.
    #[error("{op}: {what} must be {expected}, found {found}")]
    Parameter {
        /// The op, as in the text form.
        op: String,
        /// The parameter.
        what: &'static str,
        /// The allowed values.
        expected: &'static str,
        /// The given value.
        found: String,
    },
    /// Two ops are in an unsupported order.
    #[error("{op} after {previous}: {reason}")]
    Order {
        /// The op, as in the text form.
        op: String,
        /// The op before it.
        previous: String,
        /// The reason, and how to fix it.
        reason: &'static str,
    },
    /// An op or a setting occurs twice, but is allowed only once.
    #[error("{op} after {previous}: it can only be used once")]
    Twice {
        /// The second occurrence.
        op: String,
        /// The first occurrence.
        previous: String,
    },
    /// The field cannot be augmented.
    #[error("cannot augment: {what} must be {expected}, found {found}")]
    Source {
        /// The property that does not match.
        what: &'static str,
        /// The required value.
        expected: &'static str,
        /// The actual value.
        found: String,
    },
    /// All images of a batch must have the same size, but neither the pack nor an op determines it.
    #[error(
        "the images vary in size, and no operation gives them a fixed size: start with rrc224, crop224, center224, letterbox224 or resize224x224"
    )]
    SizesVary,
    /// An image is smaller than the crop.
    #[error(
        "{op}: the image, including padding, must be at least {expected}, found {found}: request padding as needed (crop32+4?) or use a smaller crop"
    )]
    TooSmall {
        /// The op, as in the text form.
        op: String,
        /// Required width and height.
        expected: String,
        /// Actual width and height.
        found: String,
    },
    /// An image does not match the plan.
    #[error("image: {what} must be {expected}, found {found}")]
    Picture {
        /// The property that differs.
        what: &'static str,
        /// The value in the plan.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// A mask differs in size from its image.
    #[error("mask: expected the size of the image, {expected}, found {found}")]
    MaskSize {
        /// Width and height of the image.
        expected: String,
        /// Width and height of the mask.
        found: String,
    },
    /// A field that describes boxes does not have one entry for each box.
    #[error("field `{field}`: expected {expected} entries, one for each box, found {found}")]
    Entries {
        /// The field.
        field: String,
        /// Number of boxes.
        expected: usize,
        /// Number of entries.
        found: usize,
    },
    /// A field with role polygons is malformed, or has too many masks.
    #[error("polygons: {reason}")]
    Polygons {
        /// What was expected, and what was found.
        reason: String,
    },
    /// A label is not a valid class id.
    #[error("label {place} of the batch: expected a class id of at least 0 and below {n_classes}, found {found}")]
    Label {
        /// Its index in the batch.
        place: usize,
        /// Number of classes.
        n_classes: usize,
        /// The label.
        found: i64,
    },
    /// A buffer of the caller has the wrong size.
    #[error("{what}: expected {expected}, found {found}")]
    Buffer {
        /// The buffer, and the unit of the sizes.
        what: &'static str,
        /// Required size.
        expected: usize,
        /// Actual size.
        found: usize,
    },
    /// The image cannot be decoded or processed.
    #[error(transparent)]
    Pixels(#[from] PixelError),
}
