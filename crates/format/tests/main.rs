//! Tests of the file format, one module a subject. docs/format.md is what they hold the code to.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod support;
