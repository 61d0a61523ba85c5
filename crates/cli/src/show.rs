//! `packds show`: draws a contact sheet.

mod cells;
mod picture;
mod sheet_file;
mod terminal;

use packds_system::{to_u64, to_usize};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};
use packds_format::Field;
use packds_pixels::encode_png;
use packds_reader::Pack;
use packds_report::Canvas;
use packds_report::sheet::Layout;
use serde_json::json;

use crate::args::PackPath;
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
use cells::{Cells, Panel, panels};
use picture::thumbnail;
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
  packds show train.pack --samples 0-11,500 --columns 4";

/// Side of a thumbnail in a preview, in pixels.
const PREVIEW_SIDE: u32 = 128;

/// Draw a contact sheet of random or selected samples with their labels
///
/// Writes a PNG or JPEG file, or shows the sheet in a terminal that supports images (kitty, ghostty, iTerm2, WezTerm). An image
/// that cannot be decoded appears as a crossed box with the reason. A substituted sample has a marked corner.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pack: PackPath,
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
    with_pack(&args.pack.pack, |pack| draw(args, pack, &target, console))
}

fn draw(args: &ShowArgs, pack: &Pack, target: &Target<'_>, console: &mut Console) -> Result<Exit, Failure> {
    let samples = chosen_samples(args, pack)?;
    let panels = panels(pack, &args.field)?;
    let names = args.words.apply(pack)?;
    let n_cells = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    if n_cells == 0 {
        return Err(nothing_chosen(pack));
    }
    let name = args.pack.pack.file_name().unwrap_or_default();
    let title = format!("{}: {}, {n_cells} shown", escape_path(Path::new(name)), counted(pack.n_samples(), "sample"));
    let started = Instant::now();
    let shown = Shown::new(console);
    let (canvas, drawn) = sheet(pack, &panels, names, &samples, (args.size, args.columns), (&title, &shown))?;
    let (width, height) = (canvas.width, canvas.height);
    // A signal must not end the process here, because it would leave a partial file.
    let bytes_out = shown.stoppable("writing", "", || target.write(&canvas, args.force, console))?;
    note_bad(&drawn.bad, &args.pack.pack, console);
    if console.json {
        console.document(&json!({
            "output": args.output.as_ref().map(|file| escape_path(file.path())),
            "width": width,
            "height": height,
            "n_samples": samples.len(),
            "bytes_out": bytes_out,
            "samples": samples,
            "bad_samples": bad_samples(&drawn.bad),
            "substituted": drawn.substituted,
        }))?;
    } else if let Target::File(file) = target
        && console.detail > Detail::Quiet
    {
        let (path, cells, bytes) =
            (escape_path(file.path()), counted(n_cells, "sample"), human_bytes(to_u64(bytes_out)));
        writeln!(console.prose(), "{path}: {cells}, {bytes}")?;
        writeln!(
            console.prose(),
            "image    {} of {width}x{height} pixels",
            if file.is_jpeg() { "JPEG" } else { "PNG" }
        )?;
        writeln!(
            console.prose(),
            "time     {}",
            time_line(started.elapsed().as_secs_f64(), n_cells.into(), "samples")
        )?;
    }
    Ok(if drawn.bad.is_empty() { Exit::Done } else { Exit::BadData })
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
        let names = WordsFile::default().apply(pack)?;
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

/// One sample as a PNG file, drawn as the command shows it, at most `side` pixels wide and high.
///
/// # Errors
/// If the sample cannot be shown, or no field of the pack contains images.
pub fn sample_picture(pack: &Pack, sample: u64, side: u32) -> Result<Vec<u8>, String> {
    let mut body = pack.schema().body().map(|(_, field)| field).enumerate();
    let shown = body.find(|(_, field)| is_viewable(field)).ok_or("no field of this pack contains images")?;
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
    let image = thumbnail(pack, field, sample, item, side.max(1))?;
    encode_png(image.width, image.height, image.channels, &image.data).map_err(|e| e.to_string())
}

/// Side of the smallest square with at least `n` cells.
fn square(n: u32) -> u32 {
    let root = n.isqrt();
    if root * root < n { root + 1 } else { root }
}
