//! NumPy arrays in pickles.

use super::tree::{Bytes, Id, Node, Tree};
use crate::source::npy::{Elements, HeaderError, elements};

/// An array whose bytes are in the pickle.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) struct NumpyArray<'a> {
    pub(in crate::source) elements: Elements,
    pub(in crate::source) shape: Vec<u64>,
    pub(in crate::source) bytes: &'a Bytes,
    /// Whether the bytes are stored as Latin-1 text, as Python 3 writes them for Python 2.
    pub(in crate::source) is_latin1: bool,
}

/// Parses a value as an array. `None` if it is something else.
///
/// # Errors
/// The reason, if the array is unsupported.
pub(in crate::source) fn numpy_array(tree: &Tree, id: Id) -> Result<Option<NumpyArray<'_>>, HeaderError> {
    let Some((name, args, state)) = tree.made(id) else {
        return Ok(None);
    };
    let (dtype, shape, bytes, fortran) = match (name.rsplit('.').next(), args) {
        (Some("_reconstruct"), _) => {
            let state = state.and_then(|state| tree.items(state));
            let Some(&[_, shape, dtype, fortran, bytes]) = state else {
                return Ok(None);
            };
            (dtype, shape, bytes, tree.int(fortran) == Some(1))
        }
        (Some("_frombuffer"), &[bytes, dtype, shape, order]) => (dtype, shape, bytes, tree.text(order) == Some("F")),
        _ => return Ok(None),
    };
    let malformed = |what: &str| HeaderError::Malformed(format!("expected the {what} of an array"));
    let shape = tree.sizes(shape).ok_or_else(|| malformed("dimensions"))?;
    if fortran && shape.len() > 1 {
        return Err(HeaderError::Unsupported(
            "the array is in Fortran order".to_owned(),
            "save numpy.ascontiguousarray(array)",
        ));
    }
    let elements = dtype_of(tree, dtype)?.ok_or_else(|| malformed("element type"))?;
    let (bytes, is_latin1) = data_of(tree, bytes).ok_or_else(|| malformed("bytes"))?;
    Ok(Some(NumpyArray { elements, shape, bytes, is_latin1 }))
}

/// The element type. A pickle stores it as `numpy.dtype('u1', 0, 1)` with the state `(3, '|', ...)`.
fn dtype_of(tree: &Tree, id: Id) -> Result<Option<Elements>, HeaderError> {
    let Some(("numpy.dtype", args, state)) = tree.made(id) else {
        return Ok(None);
    };
    let kind = args.first().and_then(|kind| tree.text(*kind));
    let state = state.and_then(|state| tree.items(state));
    let order = state.and_then(|state| tree.text(*state.get(1)?));
    let Some(kind) = kind else { return Ok(None) };
    elements(format!("{}{kind}", order.unwrap_or("|")).as_bytes()).map(Some)
}

/// The bytes of an array, and whether they are stored as text.
fn data_of(tree: &Tree, id: Id) -> Option<(&Bytes, bool)> {
    match tree.get(id) {
        // Strings written by Python 2 are bytes.
        Node::Bytes(bytes) | Node::Text(bytes) => Some((bytes, false)),
        _ => match tree.made(id)? {
            ("_codecs.encode", args, _) => match tree.get(*args.first()?) {
                Node::Text(text) => Some((text, true)),
                _ => None,
            },
            ("builtins.bytearray" | "builtins.bytes", args, _) => match tree.get(*args.first()?) {
                Node::Bytes(bytes) => Some((bytes, false)),
                _ => None,
            },
            _ => None,
        },
    }
}
