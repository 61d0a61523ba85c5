//! `--plot FILE`: the extension selects the format.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::figure::Figure;
use crate::output::write_file;

/// A picture to write.
#[derive(Debug, Clone)]
pub(crate) struct PlotFile {
    path: PathBuf,
    kind: PlotKind,
}

#[derive(Debug, Clone, Copy)]
enum PlotKind {
    Svg,
    Png,
}

impl PlotFile {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let path = PathBuf::from(text);
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let kind = match extension.to_str() {
            Some("svg") => PlotKind::Svg,
            Some("png") => PlotKind::Png,
            _ => return Err("expected a name that ends in .svg or .png".to_owned()),
        };
        Ok(Self { path, kind })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the picture. An existing file is replaced only with `force`.
    pub(crate) fn write(&self, figure: &Figure, force: bool) -> Result<(), Failure> {
        let bytes = match self.kind {
            PlotKind::Svg => figure.svg().into_bytes(),
            PlotKind::Png => figure.png()?,
        };
        write_file(&self.path, &bytes, force)
    }
}
