//! Charts that compare named rows. Rows marked `ours` are highlighted.

mod dots;
mod names;
mod scatter;

pub use dots::{DotChart, Mark, Panel, Row};
pub use scatter::{Point, Scatter};
