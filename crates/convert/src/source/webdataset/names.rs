//! Splits the names of a tar file's members into sample, kind and field.
//!
//! `tar` reads the members.

use packds_pixels::ImageFormat;

use crate::source::unread::Unread;

/// Splits a name at the first dot of its last component into key and extension.
pub(super) fn key_and_extension(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let base = name.iter().rposition(|b| *b == b'/').map_or(0, |i| i + 1);
    let dot = name.get(base..)?.iter().position(|b| *b == b'.')?;
    let key = name.get(..base + dot).filter(|_| dot > 0)?;
    Some((key, name.get(base + dot + 1..)?))
}

/// The kind of a member, by the last part of its extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Image,
    Undecoded,
    Array,
    Text,
    Json,
    /// An integer as text.
    Integer,
    Bytes,
    /// A pickle, or anything else that requires running code.
    Refused,
}

/// The kind and the field of a lower-case extension: `points.npy` is the array `points`, and `jpg` is the image.
pub(super) fn kind_and_field(extension: &str, image_key: Option<&str>) -> (Kind, String) {
    let (stem, last) = match extension.rsplit_once('.') {
        Some((stem, last)) => (Some(stem), last),
        None => (None, extension),
    };
    let kind = match last {
        _ if ImageFormat::from_extension(last.as_bytes()).is_some() => Kind::Image,
        _ if Unread::of_name(format!(".{last}").as_bytes()).is_some_and(Unread::is_picture) => Kind::Undecoded,
        "npy" => Kind::Array,
        "txt" | "text" | "transcript" => Kind::Text,
        "json" | "jsn" => Kind::Json,
        "cls" | "cls2" | "class" | "count" | "index" | "inx" | "id" => Kind::Integer,
        "pth" | "pt" | "pyd" | "pickle" | "pkl" => Kind::Refused,
        _ => Kind::Bytes,
    };
    let field = match (kind, stem) {
        (_, Some(stem)) if kind != Kind::Integer && kind != Kind::Undecoded => stem,
        // Images of all formats belong to one field, unless a format is requested by name.
        (Kind::Image, None) if image_key.is_none_or(|key| key == last || !is_image(key)) => "image",
        _ => extension,
    };
    (kind, field.to_owned())
}

pub(super) fn is_image(extension: &str) -> bool {
    ImageFormat::from_extension(extension.as_bytes()).is_some()
}

/// Makes a name a relative path. Names may be absolute or start with `./`.
pub(super) fn without_root(name: Vec<u8>) -> Vec<u8> {
    let mut rest = name.as_slice();
    while let Some(after) = rest.strip_prefix(b"./").or_else(|| rest.strip_prefix(b"/")) {
        rest = after;
    }
    rest.to_vec()
}
