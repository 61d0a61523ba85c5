//! Charts, contact sheets and pages for reports. The output depends only on the data, so it has the same bytes on every
//! machine.
//!
//! A [`Figure`] is a drawing, written as SVG or PNG. [`Axis`] maps values to positions. [`palette`] has the colours,
//! and [`chart`] the charts that several reports share. A [`Canvas`] holds pixels. [`sheet`] arranges images on a
//! canvas. [`page`] makes HTML. Nothing here measures, opens a pack or writes a file.
//!
//! ```
//! use packds_report::palette::{INK, OURS, PAPER};
//! use packds_report::{Anchor, Figure};
//!
//! let mut figure = Figure::new(120, 40, PAPER, "one box");
//! figure.boxes(vec![[10.0, 10.0, 50.0, 20.0]], OURS);
//! figure.text((70.0, 24.0), Anchor::Start, INK, "a box");
//! assert!(figure.svg().starts_with("<svg"));
//! ```
#![forbid(unsafe_code)]

mod axis;
mod canvas;
pub mod chart;
mod error;
mod figure;
mod lettering;
pub mod page;
pub mod palette;
mod plot_file;
mod raster;
pub mod sheet;
mod typeface;

pub use axis::{Axis, number, tick_number};
pub use canvas::Canvas;
pub use error::DrawError;
pub use figure::{Anchor, Figure, Font, HEADING, PLAIN, Place, Rgb, SMALL, SUBHEADING, count, whole};
pub use lettering::{fit, text_width, wrap};
pub use plot_file::PlotFile;
