//! Pickles read as data: what they describe becomes a tree of values, and nothing in them is ever called.
//!
//! A pickle is a program for a small machine that can import and call anything. Here its steps are followed only as far as
//! they put values together; names that it would import stay names, and a call is refused unless it is one that merely
//! wraps data (a tensor, an array, an ordered dictionary). Memory is bounded by the limits below, not by what it says.

mod input;
mod numpy;
mod ops;
mod tree;

pub(super) use numpy::{NumpyArray, numpy_array};
pub(super) use ops::read_pickle;
pub(super) use tree::{Bytes, Id, Node, Tree};

/// The most values of a pickle.
const MAX_NODES: usize = 4 << 20;
/// The most values on its stack.
const MAX_STACK: usize = 4 << 20;
/// The most bytes of all its short texts together.
const MAX_TEXT: u64 = 256 << 20;
/// Texts and bytes longer than this stay in the file.
const FAR: u64 = 64 << 10;

#[cfg(test)]
mod tests;
