//! JPEG files that a device decodes. A slot contains them instead of pixels.

use super::Transfer;
use super::finish::put_words;
use crate::arena::{SlotMut, SlotRef};

/// The limits for files that a device decodes. The host decodes all other files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// Maximum size of a file.
    pub file_bytes: usize,
    /// Maximum size of a file's decoded pixels. The device reserves this many bytes for each image of a batch,
    /// contiguously after its copy of the slot.
    pub pixel_bytes: u32,
    /// Maximum width and height.
    pub side: u32,
}

/// The position of a batch's files in its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesPart {
    /// Offset of the space for the first image, which starts with a [`FileHead`].
    pub offset: usize,
    /// Bytes from one image's space to the next.
    pub item_bytes: usize,
    /// Number of images.
    pub rows: usize,
    /// Number of channels that files are decoded to: 1 or 3.
    pub channels: u32,
}

/// The result of submitting a batch that has files.
#[derive(Debug)]
pub enum FilesTaken {
    /// The device accepted the batch.
    All(SlotRef, Box<dyn Transfer>),
    /// The device cannot decode the files in these rows, because they are damaged or unsupported. It does not read the
    /// slot.
    Refused(SlotMut, Vec<usize>),
}

/// The head of an image's space in a slot. It says what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileHead {
    /// The pixels of the image, decoded, cropped and resized by the host.
    Pixels,
    /// A file.
    File {
        /// Size of the file.
        len: u32,
        /// Width of the image.
        width: u32,
        /// Height of the image.
        height: u32,
    },
}

impl FileHead {
    /// Size of a head in a slot.
    pub const BYTES: usize = 16;

    /// The head as stored in a slot: length, width and height, little-endian. All zeros if pixels follow.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        if let Self::File { len, width, height } = self {
            put_words(&mut bytes, [len, width, height]);
        }
        bytes
    }

    /// The head at the start of an image's space.
    pub fn of(place: &[u8]) -> Self {
        let (words, _) = place.as_chunks::<4>();
        let word = |at: usize| words.get(at).map_or(0, |bytes| u32::from_le_bytes(*bytes));
        match word(0) {
            0 => Self::Pixels,
            len => Self::File { len, width: word(1), height: word(2) },
        }
    }
}

impl FileLimits {
    /// The size of an image's space in a slot. `made` is the size of the pixels that the host makes for an image.
    pub(crate) fn item_bytes(self, made: usize) -> Option<usize> {
        let most = made.max(self.file_bytes);
        most.checked_add(FileHead::BYTES)?.checked_next_multiple_of(FileHead::BYTES)
    }

    /// Whether the device decodes a file of this length with an image of this size.
    pub(crate) fn admit(self, len: usize, (width, height): (u32, u32), channels: u8) -> bool {
        let pixels = u64::from(width) * u64::from(height);
        len <= self.file_bytes
            && width.max(height) <= self.side
            && pixels.saturating_mul(channels.into()) <= self.pixel_bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_back_as_they_were() {
        let file = FileHead::File { len: 70_000, width: 500, height: 3 };
        for head in [FileHead::Pixels, file] {
            assert_eq!(FileHead::of(&head.to_bytes()), head);
        }
    }

    #[test]
    fn files_at_a_limit_are_the_devices_and_one_more_is_not() {
        let limits = FileLimits { file_bytes: 100, pixel_bytes: 60, side: 10 };
        assert!(limits.admit(100, (10, 2), 3) && limits.admit(100, (2, 10), 3));
        assert!(!limits.admit(101, (10, 2), 3));
        assert!(!limits.admit(100, (11, 1), 3) && !limits.admit(100, (1, 11), 3));
        assert!(!limits.admit(100, (7, 3), 3) && limits.admit(100, (7, 3), 1));
        assert!(!limits.admit(1, (u32::MAX, u32::MAX), 3));
        assert_eq!((limits.item_bytes(50), limits.item_bytes(101)), (Some(128), Some(128)));
        assert_eq!((limits.item_bytes(113), limits.item_bytes(usize::MAX)), (Some(144), None));
    }
}
