//! Charts that compare named rows. Rows marked `ours` are highlighted.

mod bars;
mod dots;
mod layout;
mod names;
mod scatter;

pub use bars::{Bar, BarChart};
pub use dots::{DotChart, Mark, Row};
pub use layout::Layout;
pub use scatter::{Point, Scatter};

#[cfg(test)]
mod tests;
