//! `packds show`: draws a contact sheet.

mod boxes;
mod cells;
mod keypoints;
mod picture;
mod sheet_file;
mod terminal;

use packds_system::{to_u64, to_usize};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use packds_format::{Classes, Field, Role};
use packds_pixels::encode_png;
use packds_reader::Pack;
use packds_report::sheet::{Layout, stacked};
use packds_report::{Canvas, Rgb};
use serde_json::{Value, json};

use crate::args::PackPaths;
use crate::choice::{Choice, nothing_chosen};
use crate::class_words::{Names, WordsFile};
use crate::console::Detail;
use crate::escape::escape_path;
use crate::human::{counted, human_bytes, time_line};
use crate::opened::with_pack;
use crate::output::{check_new, write_file};
use crate::progress::Shown;
use crate::samples::{bad_samples, note_bad, spread};
use crate::{Console, Exit, Failure};
use boxes::Boxes;
use cells::{Cells, Panel, class_name, panels};
use picture::{Picture, color_of};
pub(crate) use picture::{is_viewable, pixel_shape};
pub(crate) use sheet_file::SheetFile;
use sheet_file::encode;
use terminal::Protocol;

const EXAMPLES: &str = "\
Examples:
  packds show train.pack -o sheet.png
  packds show train.pack --random 100 --seed 3 --size 64 -o sheet.png
  packds show train.pack --class cat -o cats.jpg
  packds show train.pack --where \"width < 64 or height < 64\" -o small.png
  packds show train.pack --names LOC_synset_mapping.txt -o sheet.png
  packds show train.pack --samples 0-11,500 --columns 4
  packds show train.pack val.pack --random 12 -o both.png";

/// Side of a thumbnail in a preview, in pixels.
const PREVIEW_SIDE: u32 = 128;

/// Draw a contact sheet of random or selected samples with their labels
///
/// Writes a PNG or JPEG file, or shows the sheet in a terminal that supports images (kitty, ghostty, iTerm2, WezTerm).
/// An image that cannot be decoded appears as a crossed box with the reason. A substituted sample has a marked corner.
/// The sheets of several packs are placed below one another; in JSON, they form a list.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    packs: PackPaths,
    /// PNG or JPEG file to write; - means a PNG to stdout
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    #[arg(value_parser = OsStringValueParser::new().try_map(SheetFile::parse))]
    output: Option<SheetFile>,
    #[command(flatten)]
    choice: Choice,
    /// Show N random samples, spread evenly over the chosen ones
    #[arg(long, value_name = "N", default_value_t = 36, value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(conflicts_with = "samples")]
    random: u64,
    /// Seed for the random samples
    #[arg(long, value_name = "SEED", default_value_t = 0, conflicts_with = "samples")]
    seed: u64,
    /// Samples per row [default: a square sheet]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    columns: Option<u32>,
    /// Maximum side of a thumbnail in pixels
    #[arg(long, value_name = "PIXELS", default_value_t = 128, value_parser = clap::value_parser!(u32).range(16..=2048))]
    size: u32,
    /// Field to show (repeatable) [default: the images, with their masks laid over the first one]
    #[arg(long, value_name = "NAME")]
    field: Vec<String>,
    #[command(flatten)]
    words: WordsFile,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &ShowArgs, console: &mut Console) -> Result<Exit, Failure> {
    let target = Target::of(args, console)?;
    let started = Instant::now();
    let shown = Shown::new(console);
    let drawn = args.packs.packs.iter().map(|path| with_pack(path, |pack| Part::draw(args, pack, path, &shown)));
    let (parts, sheets): (Vec<Part>, Vec<Canvas>) = drawn.collect::<Result<Vec<_>, Failure>>()?.into_iter().unzip();
    let canvas = stacked(&sheets)?;
    // A signal must not end the process here, because it would leave a partial file.
    let bytes_out = shown.stoppable("writing", "", || target.write(&canvas, args.force, console))?;
    parts.iter().for_each(|part| note_bad(&part.bad, part.path, console));
    if console.json {
        let documents = parts.iter().map(|part| part.document(args, &canvas, bytes_out));
        console.document(&match parts.as_slice() {
            [_] => documents.collect::<Vec<_>>().remove(0),
            _ => documents.collect(),
        })?;
    } else if let Target::File(file) = target
        && console.detail > Detail::Quiet
    {
        let n_cells = parts.iter().map(|part| to_u64(part.samples.len())).sum();
        let (path, cells, bytes) =
            (escape_path(file.path()), counted(n_cells, "sample"), human_bytes(to_u64(bytes_out)));
        writeln!(console.prose(), "{path}: {cells}, {bytes}")?;
        let (width, height) = (canvas.width, canvas.height);
        writeln!(
            console.prose(),
            "image    {} of {width}x{height} pixels",
            if file.is_jpeg() { "JPEG" } else { "PNG" }
        )?;
        writeln!(console.prose(), "time     {}", time_line(started.elapsed().as_secs_f64(), n_cells, "samples"))?;
    }
    Ok(if parts.iter().all(|part| part.bad.is_empty()) { Exit::Done } else { Exit::BadData })
}

/// The sheet of one pack.
struct Part<'a> {
    path: &'a Path,
    samples: Vec<u64>,
    bad: Vec<(u64, String)>,
    substituted: Vec<u64>,
}

impl<'a> Part<'a> {
    fn draw(args: &ShowArgs, pack: &Pack, path: &'a Path, shown: &Shown) -> Result<(Self, Canvas), Failure> {
        let samples = chosen_samples(args, pack)?;
        let panels = panels(pack, &args.field)?;
        let names = args.words.apply(pack, None)?;
        if samples.is_empty() {
            return Err(nothing_chosen(pack));
        }
        let name = escape_path(Path::new(path.file_name().unwrap_or_default()));
        let title = format!("{name}: {}, {} shown", counted(pack.n_samples(), "sample"), samples.len());
        let (canvas, drawn) = sheet(pack, &panels, names, &samples, (args.size, args.columns), (&title, shown))?;
        let Cells { bad, substituted, .. } = drawn;
        Ok((Self { path, samples, bad, substituted }, canvas))
    }

    fn document(&self, args: &ShowArgs, canvas: &Canvas, bytes_out: usize) -> Value {
        json!({
            "path": escape_path(self.path),
            "output": args.output.as_ref().map(|file| escape_path(file.path())),
            "width": canvas.width,
            "height": canvas.height,
            "n_samples": self.samples.len(),
            "bytes_out": bytes_out,
            "samples": self.samples,
            "bad_samples": bad_samples(&self.bad),
            "substituted": self.substituted,
        })
    }
}

/// Draws a sheet of samples with this title. Each side of a thumbnail has at most `side` pixels.
fn sheet<'a>(
    pack: &'a Pack,
    panels: &'a [Panel<'a>],
    names: Names<'a>,
    samples: &[u64],
    (side, columns): (u32, Option<u32>),
    (title, shown): (&str, &Shown),
) -> Result<(Canvas, Cells<'a>), Failure> {
    let n_cells = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let layout = Layout {
        side,
        columns: columns.unwrap_or_else(|| square(n_cells)).min(n_cells),
        pictures: u32::try_from(panels.len()).unwrap_or(1),
        n_cells,
    };
    // Check the size before decoding anything.
    layout.check()?;
    shown.during("drawing", || {
        let cells = Cells::draw(pack, panels, names, samples, side, shown)?;
        Ok((layout.draw(title, &cells.legend(), &cells.cells)?, cells))
    })
}

/// Writes a sheet of all samples of a small pack.
pub(crate) fn draw_preview(
    pack: &Path,
    title: &str,
    (output, force): (&SheetFile, bool),
    shown: &Shown,
) -> Result<(), Failure> {
    check_new(output.path(), force)?;
    with_pack(pack, |pack| {
        let samples: Vec<u64> = (0..pack.n_samples()).collect();
        let panels = panels(pack, &[])?;
        let names = WordsFile::default().apply(pack, None)?;
        let (canvas, _) = sheet(pack, &panels, names, &samples, (PREVIEW_SIDE, None), (title, shown))?;
        Target::File(output).encoded(&canvas).and_then(|bytes| write_file(output.path(), &bytes, force))
    })
}

enum Target<'a> {
    File(&'a SheetFile),
    Stdout,
    Terminal(Protocol),
}

impl<'a> Target<'a> {
    fn of(args: &'a ShowArgs, console: &Console) -> Result<Self, Failure> {
        let hint = "pass an output file: packds show PACK -o sheet.png";
        match args.output.as_ref() {
            Some(file) if file.path().as_os_str() == "-" && console.json => {
                Err(Failure::not_run("cannot write both the sheet and the JSON document to stdout").hint(hint))
            }
            Some(file) if file.path().as_os_str() == "-" => Ok(Self::Stdout),
            Some(file) => {
                check_new(file.path(), args.force)?;
                Ok(Self::File(file))
            }
            None if console.json || !console.out_is_terminal => {
                Err(Failure::not_run("stdout is not a terminal").hint(hint))
            }
            None => Protocol::detect(|name| std::env::var_os(name))
                .map(Self::Terminal)
                .ok_or_else(|| Failure::not_run("this terminal does not support images").hint(hint)),
        }
    }

    fn encoded(&self, canvas: &Canvas) -> Result<Vec<u8>, Failure> {
        let is_jpeg = matches!(self, Self::File(file) if file.is_jpeg());
        encode(canvas, is_jpeg).map_err(Failure::not_run)
    }

    /// Writes a sheet. Returns its size in bytes.
    fn write(&self, canvas: &Canvas, force: bool, console: &mut Console) -> Result<usize, Failure> {
        let bytes = self.encoded(canvas)?;
        match self {
            Self::Stdout => console.out.write_all(&bytes)?,
            Self::Terminal(protocol) => protocol.send(&bytes, console.out)?,
            Self::File(file) => write_file(file.path(), &bytes, force)?,
        }
        Ok(bytes.len())
    }
}

fn chosen_samples(args: &ShowArgs, pack: &Pack) -> Result<Vec<u64>, Failure> {
    match args.choice.of(pack)? {
        Some(chosen) if args.choice.is_list() => Ok(chosen),
        Some(chosen) => {
            let places = spread(args.random, to_u64(chosen.len()), args.seed);
            Ok(places.into_iter().filter_map(|place| chosen.get(to_usize(place)).copied()).collect())
        }
        None => Ok(spread(args.random, pack.n_samples(), args.seed)),
    }
}

/// A field of a sample as a PNG file, drawn like the samples of `packds show`, at most `side` pixels wide and high. Without
/// a name, the first field of images is drawn.
///
/// # Errors
/// If the sample cannot be shown, or the field does not contain images.
pub fn sample_picture(pack: &Pack, sample: u64, side: u32, name: Option<&str>) -> Result<Vec<u8>, String> {
    let mut body = pack.schema().body().map(|(_, field)| field).enumerate();
    let is_meant = |field: &Field| name.is_none_or(|name| field.name == name);
    let shown = body.find(|(_, field)| is_viewable(field) && is_meant(field));
    let shown = shown.ok_or_else(|| match name {
        Some(name) => format!("the field {name} does not contain images"),
        None => "no field of this pack contains images".to_owned(),
    })?;
    field_picture(pack, shown, sample, side)
}

/// One field of a sample as a PNG file, like [`sample_picture`]. The field is given with its position in the body.
pub(crate) fn field_picture(
    pack: &Pack,
    (position, field): (usize, &Field),
    sample: u64,
    side: u32,
) -> Result<Vec<u8>, String> {
    let items = pack.body_items(sample).map_err(|error| error.to_string())?;
    let item = items.get(position).map_or(&[][..], |item| item);
    let picture = Picture::read(pack, field, sample, item)?;
    let mut image = picture.thumbnail(side.max(1))?;
    if let Some(boxes) = Boxes::among(pack, &items)?.filter(|_| field.role == Some(Role::Image)) {
        boxes.draw(picture.size(), &mut image);
    }
    encode_png(image.width, image.height, image.channels, &image.data).map_err(|e| e.to_string())
}

/// The colour and name of each class in a mask of a sample. Empty if the field is not a mask, or if the mask cannot be
/// shown.
pub(crate) fn mask_legend(
    pack: &Pack,
    (position, field): (usize, &Field),
    sample: u64,
    classes: &[Classes],
) -> Vec<(Rgb, String)> {
    let items = pack.body_items(sample).ok().filter(|_| field.role == Some(Role::Mask));
    let item = items.as_ref().and_then(|items| items.get(position));
    let mask = item.and_then(|item| Picture::read(pack, field, sample, item).ok());
    let ids = mask.into_iter().flat_map(|mask| mask.classes).flatten();
    ids.map(|id| (color_of(id), class_name(classes, field, id))).collect()
}

/// Side of the smallest square with at least `n` cells.
fn square(n: u32) -> u32 {
    let root = n.isqrt();
    if root * root < n { root + 1 } else { root }
}
