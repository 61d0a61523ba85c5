//! The file for a plot. The extension selects the format. The caller writes the file.

use std::path::{Path, PathBuf};

use crate::error::DrawError;
use crate::figure::Figure;

/// The path and format of a plot.
#[derive(Debug, Clone)]
pub struct PlotFile {
    path: PathBuf,
    is_png: bool,
}

impl PlotFile {
    /// Parses a path.
    ///
    /// # Errors
    /// Returns a message if the extension is neither `.svg` nor `.png`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let is_png = match extension.to_str() {
            Some("svg") => false,
            Some("png") => true,
            _ => return Err("expected a name that ends in .svg or .png".to_owned()),
        };
        Ok(Self { path, is_png })
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// `DrawError` if the drawing is too large.
    pub fn bytes(&self, figure: &Figure) -> Result<Vec<u8>, DrawError> {
        if self.is_png { figure.png() } else { Ok(figure.svg().into_bytes()) }
    }
}
