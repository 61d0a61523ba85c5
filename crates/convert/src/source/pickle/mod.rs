//! Reads pickles as data. They become a tree of values, and no code in them is ever run.
//!
//! A pickle is a program for a small virtual machine that can import and call anything. This reader only executes the steps that
//! assemble values. Imported names remain names. A call is refused unless it merely wraps data (a tensor, an array, an ordered
//! dictionary). The limits below bound the memory use, whatever sizes the pickle states.

mod input;
mod numpy;
mod ops;
mod tree;

pub(super) use numpy::{NumpyArray, numpy_array};
pub(super) use ops::read_pickle;
pub(super) use tree::{Bytes, Id, Node, Tree};

/// Maximum number of values in a pickle.
const MAX_NODES: usize = 4 << 20;
/// Maximum number of values on the stack.
const MAX_STACK: usize = 4 << 20;
/// Maximum total size of all short strings, in bytes.
const MAX_TEXT: u64 = 256 << 20;
/// Maximum size of strings and bytes that are kept in memory. Longer ones stay in the file.
const FAR: u64 = 64 << 10;

#[cfg(test)]
mod tests;
