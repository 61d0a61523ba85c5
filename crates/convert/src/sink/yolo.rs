//! YOLO, as Ultralytics reads it: `images/`, `labels/` with a line for each box, and `data.yaml`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use packds_format::{Field, Role};
use packds_system::counted;
use serde_json::Value;

use super::boxes::Boxes;
use super::image_files::ImageFiles;
use super::{AsItIs, Batch, Form, Sink, SinkStart};
use crate::error::ConvertError;
use crate::source::CROWD;

const WHAT: &str = "YOLO";
const IMAGES: &str = "images";
const LABELS: &str = "labels";
const DATA_FILE: &str = "data.yaml";

pub(crate) struct YoloSink {
    folder: PathBuf,
    files: ImageFiles,
    boxes: Boxes,
    /// Numbers of boxes of crowds, of boxes cut off at the edge of the image, and of boxes without an area in it.
    crowds: u64,
    cut: u64,
    empty: u64,
}

/// Why YOLO cannot store a field. `None` if it can. The field that marks crowds decides which boxes are written.
pub(crate) fn left_out(field: &Field, _form: &Form) -> Option<String> {
    let is_used = matches!(field.role, Some(Role::Image | Role::Boxes | Role::BoxLabels)) || field.name == CROWD;
    (!is_used).then(|| format!("field `{}`, because packds writes only images and boxes as {WHAT}", field.name))
}

impl YoloSink {
    fn write_sample(&mut self, batch: &Batch, k: usize) -> Result<(), ConvertError> {
        let (width, height) = self.boxes.size(batch, k)?;
        let path = self.files.write(IMAGES, batch, k)?;
        let mut lines = String::new();
        for object in self.boxes.objects(batch, k)? {
            if object.is_crowd {
                self.crowds = self.crowds.saturating_add(1);
                continue;
            }
            let Some(line) = self.line(object.class, object.sides, [width, height].map(f64::from)) else { continue };
            lines.push_str(&line);
        }
        let name = path.strip_prefix(IMAGES).unwrap_or(&path);
        let name = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let path = self.folder.join(format!("{LABELS}{name}.txt"));
        fs::write(&path, lines).map_err(ConvertError::io(&path))
    }

    /// The line of a box: its class, and its centre and size as parts of the image's size. `None` if it has no area in
    /// the image.
    fn line(&mut self, class: usize, sides: [f64; 4], [width, height]: [f64; 2]) -> Option<String> {
        let [left, top, right, bottom] = sides;
        let is_cut = left < 0.0 || top < 0.0 || right > width || bottom > height;
        let [left, right] = [left, right].map(|side| side.clamp(0.0, width));
        let [top, bottom] = [top, bottom].map(|side| side.clamp(0.0, height));
        if left >= right || top >= bottom {
            self.empty = self.empty.saturating_add(1);
            return None;
        }
        self.cut = self.cut.saturating_add(u64::from(is_cut));
        let centre = [f64::midpoint(left, right) / width, f64::midpoint(top, bottom) / height];
        let size = [(right - left) / width, (bottom - top) / height];
        let mut line = class.to_string();
        for part in centre.into_iter().chain(size) {
            // Nine digits give pixels back to a thousandth, even of the widest images. Writing to a string cannot fail.
            let _ = write!(line, " {part:.9}");
        }
        line.push('\n');
        Some(line)
    }

    fn data(&self) -> String {
        let mut text = format!(
            "# packds wrote one split. Ultralytics needs both: replace the folder of val by that of other images.\ntrain: {IMAGES}\nval: {IMAGES}\nnames:\n"
        );
        for (class, name) in self.boxes.classes().into_iter().enumerate() {
            // A JSON string is also one of YAML.
            let _ = writeln!(text, "  {class}: {}", Value::from(name));
        }
        text
    }
}

impl Sink for YoloSink {
    type Encoder = AsItIs;

    fn create(start: &SinkStart<'_>) -> Result<Self, ConvertError> {
        let boxes = Boxes::of(start, WHAT)?;
        let files = ImageFiles::create(start, WHAT)?;
        for name in [IMAGES, LABELS] {
            let path = start.path.join(name);
            fs::create_dir(&path).map_err(ConvertError::io(&path))?;
        }
        Ok(Self { folder: start.path.to_owned(), files, boxes, crowds: 0, cut: 0, empty: 0 })
    }

    fn encoder(&self) -> AsItIs {
        AsItIs
    }

    fn write(&mut self, batch: Batch) -> Result<(), ConvertError> {
        (0..batch.n).try_for_each(|k| self.write_sample(&batch, k))
    }

    fn finish(self) -> Result<Vec<String>, ConvertError> {
        let path = self.folder.join(DATA_FILE);
        fs::write(&path, self.data()).map_err(ConvertError::io(&path))?;
        let boxes = |n| counted(n, "box");
        let notes = [
            (self.crowds, format!("{} of crowds, because {WHAT} has none", boxes(self.crowds))),
            (self.cut, format!("the parts of {} beyond the edge of the image, which were cut off", boxes(self.cut))),
            (self.empty, format!("{} without an area in the image", boxes(self.empty))),
        ];
        let notes = notes.into_iter().filter(|(n, _)| *n > 0).map(|(_, note)| note);
        Ok(notes.chain(self.boxes.note()).chain(self.files.note()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_format::DataFormat;
    use crate::export::ExportOptions;
    use crate::sink::test_pack::{fields, pack_of, pack_with_boxes, to};

    fn options() -> ExportOptions {
        ExportOptions { to: Some(DataFormat::Yolo), ..ExportOptions::default() }
    }

    #[test]
    fn each_box_is_a_line_with_parts_of_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let report = to(&pack_with_boxes(&[], true), &target, &options()).unwrap();
        let read = |name: &str| fs::read_to_string(target.join(name)).unwrap();
        // The image has 6 x 4 pixels.
        assert_eq!(read("labels/im.0.txt"), "");
        assert_eq!(read("labels/im.1.txt"), "1 0.416666667 0.287500000 0.666666667 0.525000000\n");
        // The second box of sample 4 reaches beyond the edge, and the third is outside. The first of sample 2 is of a
        // crowd.
        assert_eq!(read("labels/im.2.txt"), "2 0.583333333 0.287500000 0.666666667 0.525000000\n");
        assert_eq!(read("labels/im.4.txt").lines().count(), 2);
        assert_eq!(read("labels/im.4.txt").lines().last(), Some("1 0.583333333 0.762500000 0.833333333 0.475000000"));
        assert!(target.join("images/im.4.png").is_file());
        let data = read(DATA_FILE);
        assert!(
            data.ends_with(
                "train: images\nval: images\nnames:\n  0: \"zebra\"\n  1: \"ant\"\n  2: \"sea lion\"\n  3: \"none\"\n"
            ),
            "{data}"
        );
        let lost = report.lost.join("\n");
        for note in [
            "1 box of crowds, because YOLO has none",
            "the parts of 1 box beyond the edge of the image, which were cut off",
            "1 box without an area in the image",
            "field `caption`, because packds writes only images and boxes as YOLO",
        ] {
            assert!(lost.contains(note), "{note}: {lost}");
        }
    }

    #[test]
    fn packs_without_boxes_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let said = to(&pack_of(3, fields()), &folder.path().join("out"), &options()).unwrap_err();
        assert_eq!(said.to_string(), "YOLO stores boxes and their classes, but this pack has none");
    }
}
