//! Charts that compare named rows. `ours` stands out.

mod dots;
mod names;
mod scatter;

pub use dots::{DotChart, Mark, Panel, Row};
pub use scatter::{Point, Scatter};
