//! The plot of `packds info --shuffle --plot`: where batches come from, what they contain, and how larger windows help.
//!
//! [`Evidence`] reads the pack and counts. Drawing uses only these counts.

use packds_reader::Pack;
use packds_reader::plan::{
    Batching, Dataset, EpochPlan, Integers, Order, OrderKind, Ranks, Sampler, Schedule, ShuffleReport, Verdict,
    WindowQuality,
};
use packds_report::palette::{DIM, GRID, INK, LIMIT, OURS, PANEL, PAPER, SERIES};
use packds_report::{Anchor, Figure, PLAIN, Place, Rgb, text_width};

use crate::escape::escape;
use crate::failure::Failure;
use crate::human::counted;
use crate::shuffle::refused;

/// Colours of classes. Adjacent colours also differ in lightness.
const BANDS: [Rgb; 8] =
    [SERIES[4], SERIES[0], SERIES[2], [240, 228, 66], SERIES[1], SERIES[5], [213, 94, 0], SERIES[3]];

const WIDTH: u32 = 960;
const HEIGHT: u32 = 712;
/// Left edges of the two columns of plots, and the width of a column.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 532.0;
const ACROSS: f64 = 404.0;
/// Approximate number of dots per order.
const DOTS: u64 = 2000;
/// Maximum number of batches to show, and to measure.
const SHOWN: u64 = 24;
const COUNTED: u64 = 400;

/// The label that the plot shows, with its design effects.
struct Classes {
    name: String,
    icc: f64,
    /// Design effects: the predicted and the measured one of this order, and the measured one of uniform batches.
    predicted: f64,
    counted: Option<f64>,
    uniform: Option<f64>,
    bands: usize,
    /// Whether each class has its own band.
    each: bool,
}

struct Batches {
    n: u64,
    /// One dot per sample: its position in the batches (0 to `n`) and in the file (0 to 1).
    dots: Vec<Place>,
    /// For each batch, the share of each band of classes.
    shares: Vec<Vec<f64>>,
}

pub(crate) struct Evidence {
    title: String,
    verdict: String,
    this: Batches,
    uniform: Batches,
    classes: Option<Classes>,
    windows: Vec<WindowQuality>,
    /// The window, the design effect, the repetition and the name of this order.
    chosen: (f64, Option<f64>, f64, String),
}

impl Evidence {
    /// Reads the labels, if there are any, and some batches of epoch 0.
    pub(crate) fn read(
        pack: &Pack,
        schedule: &Schedule,
        report: &ShuffleReport,
        dataset: Dataset,
        seed: u64,
    ) -> Result<Self, Failure> {
        let refused = |error| refused(error, pack);
        let batch = schedule.global_batch();
        let plan = schedule.epoch(0).map_err(refused)?;
        let sampler = Sampler::new(Order::Random).seed(seed);
        let uniform = sampler.schedule(dataset, Ranks::single(), Batching::global(batch)).map_err(refused)?;
        let uniform = uniform.epoch(0).map_err(refused)?;
        // The worst label determines the verdict.
        let worst = report.labels.iter().max_by(|a, b| a.deff.total_cmp(&b.deff));
        let labels = match worst {
            Some(label) => Some((label, Integers::open(pack, &label.name)?)),
            None => None,
        };
        let bands = labels.as_ref().map(|(_, column)| Bands::new(pack, column));
        let classes = labels.as_ref().zip(bands.as_ref()).map(|((label, column), bands)| Classes {
            name: escape(&label.name),
            icc: label.icc.unwrap_or(0.0),
            predicted: label.deff,
            counted: plan.counted_deff(COUNTED, |sample| column.at(sample)),
            uniform: uniform.counted_deff(COUNTED, |sample| column.at(sample)),
            bands: bands.n,
            each: bands.of.len() == bands.n,
        });
        let band = |sample: u64| match (&labels, &bands) {
            (Some((_, column)), Some(bands)) => bands.of(column.at(sample)),
            _ => None,
        };
        let n_bands = bands.as_ref().map_or(0, |bands| bands.n);
        let n_samples = pack.n_samples();
        let show = |plan: &EpochPlan| Batches::new(plan, batch, n_samples, n_bands, &band);
        let icc = classes.as_ref().map_or(0.0, |classes| classes.icc);
        let name = pack.file_path().file_name().unwrap_or_default();
        let order = order_name(report);
        let (this, uniform) = (show(&plan), show(&uniform));
        // Do not draw data of a file that was truncated in the meantime.
        pack.still_good()?;
        Ok(Self {
            title: format!("{}: {order}, batches of {batch}, seed {seed}", escape(&name.to_string_lossy())),
            verdict: report.verdict.map_or("unknown", Verdict::name).to_owned(),
            this,
            uniform,
            windows: schedule.by_window(icc).map_err(refused)?,
            chosen: (report.window as f64, classes.as_ref().map(|classes| classes.predicted), report.repetition, order),
            classes,
        })
    }

    pub(crate) fn figure(&self) -> Figure {
        let mut figure = Figure::new(WIDTH, HEIGHT, PAPER, &self.title);
        figure.heading((24.0, 32.0), INK, &self.title);
        let subtitle = match &self.classes {
            Some(classes) => format!(
                "Verdict: {}. Label '{}', intra-chunk correlation {:.2}.",
                self.verdict, classes.name, classes.icc
            ),
            None => format!("Verdict: {}. No label to judge by.", self.verdict),
        };
        figure.text((24.0, 54.0), Anchor::Start, INK, &subtitle);
        let names =
            [format!("Where batches come from: {}", self.chosen.3), "For comparison: uniform batches".to_owned()];
        for ((left, batches), name) in [(LEFT, &self.this), (RIGHT, &self.uniform)].into_iter().zip(names) {
            figure.text((left, 82.0), Anchor::Start, INK, &name);
            self.scatter(&mut figure, left, batches);
        }
        self.mixes(&mut figure);
        self.effects(&mut figure);
        self.repetitions(&mut figure);
        figure
    }

    /// Batches are drawn from left to right, and positions in the file from top to bottom.
    fn scatter(&self, figure: &mut Figure, left: f64, batches: &Batches) {
        let (top, height) = (90.0, 230.0);
        figure.boxes(vec![[left, top, ACROSS, height]], PANEL);
        let n = batches.n.max(1) as f64;
        for border in 0..=batches.n {
            let x = left + ACROSS * border as f64 / n;
            figure.line(vec![(x, top), (x, top + height)], 0.5, GRID);
        }
        let place = |&(x, y): &Place| (left + ACROSS * x / n, top + 2.0 + (height - 4.0) * y);
        figure.dots(batches.dots.iter().map(place).collect(), 2.0, OURS);
        figure.text((left - 6.0, top + 10.0), Anchor::End, DIM, "first");
        figure.text((left - 6.0, top + height), Anchor::End, DIM, "last");
        let shown = if batches.n == 1 { "batch 1".to_owned() } else { format!("batches 1 to {}", batches.n) };
        let below = format!("{shown}; vertical: position in the file");
        figure.text((left, top + height + 16.0), Anchor::Start, DIM, &below);
    }

    fn mixes(&self, figure: &mut Figure) {
        let (top, height) = (376.0, 90.0);
        let Some(classes) = &self.classes else {
            let text = "Classes of each batch: the pack has no label to show.";
            return figure.text((LEFT, top - 10.0), Anchor::Start, DIM, text);
        };
        let what = if classes.each { "one colour per class" } else { "8 groups of classes" };
        for (left, batches, counted) in [(LEFT, &self.this, classes.counted), (RIGHT, &self.uniform, classes.uniform)] {
            figure.text((left, top - 8.0), Anchor::Start, INK, &format!("Classes of these batches, {what}"));
            figure.boxes(vec![[left, top, ACROSS, height]], PANEL);
            let width = ACROSS / batches.n.max(1) as f64;
            for (band, color) in BANDS.iter().enumerate().take(classes.bands) {
                let boxes = batches.shares.iter().enumerate().filter_map(|(nth, shares)| {
                    let before: f64 = shares.iter().take(band).sum();
                    let share = shares.get(band).copied().filter(|share| *share > 0.0)?;
                    let x = left + width * nth as f64;
                    Some([x + 1.0, top + height * before, width - 2.0, height * share])
                });
                let boxes: Vec<[f64; 4]> = boxes.collect();
                if !boxes.is_empty() {
                    figure.boxes(boxes, *color);
                }
            }
            let counted = counted.map_or("too few batches".to_owned(), |deff| format!("{deff:.2}"));
            let predicted = if left > LEFT { 1.0 } else { classes.predicted };
            let below = format!("design effect: measured {counted}, predicted {predicted:.2}");
            figure.text((left, top + height + 16.0), Anchor::Start, DIM, &below);
        }
    }

    fn effects(&self, figure: &mut Figure) {
        let heading = "Design effect by window (log scale; 1 is uniform)";
        let Some(deff) = self.chosen.1 else {
            return figure.text((LEFT, 516.0), Anchor::Start, DIM, &format!("{heading}: the pack has no label."));
        };
        let points = self.windows.iter().map(|w| (f64::from(w.window), w.deff));
        let limits = [Verdict::Ok, Verdict::Weak].map(|verdict| (verdict.limit(), verdict.name()));
        self.curve(figure, LEFT, heading, &points.collect::<Vec<_>>(), deff, &limits);
    }

    fn repetitions(&self, figure: &mut Figure) {
        let heading = "Samples meeting again in a batch, by window (log scale; 1 is uniform)";
        let points = self.windows.iter().map(|w| (f64::from(w.window), w.repetition));
        self.curve(figure, RIGHT, heading, &points.collect::<Vec<_>>(), self.chosen.2, &[]);
    }

    /// Values by window, both on log2 scales. This order's own value is marked.
    fn curve(&self, figure: &mut Figure, left: f64, heading: &str, points: &[Place], own: f64, limits: &[(f64, &str)]) {
        let (top, height) = (524.0, 150.0);
        figure.text((left, top - 8.0), Anchor::Start, INK, heading);
        figure.boxes(vec![[left, top, ACROSS, height]], PANEL);
        let most = points.iter().map(|point| point.0).fold(2.0, f64::max);
        let high = points.iter().map(|point| point.1).fold(own.max(4.0), f64::max) * 1.3;
        let low = 0.5;
        let across = |window: f64| left + 10.0 + (ACROSS - 20.0) * window.max(1.0).log2() / most.log2();
        let down = |value: f64| top + height * (1.0 - (value.max(low) / low).log2() / (high / low).log2());
        let right = left + ACROSS;
        let mut labels = vec![(1.0, "1".to_owned())];
        labels.extend(limits.iter().map(|(value, name)| (*value, format!("{name} {value}"))));
        labels.push((high / 1.3, tidy(high / 1.3)));
        let mut taken: Vec<f64> = Vec::new();
        for (value, text) in labels {
            let y = down(value);
            figure.line(vec![(left, y), (right, y)], 1.0, GRID);
            // Labels that would touch an earlier one are left out.
            if taken.iter().all(|other| (other - y).abs() >= 13.0) {
                figure.text((left - 6.0, y + 4.0), Anchor::End, DIM, &text);
                taken.push(y);
            }
        }
        let line: Vec<Place> = points.iter().map(|(window, value)| (across(*window), down(*value))).collect();
        figure.line(line.clone(), 1.5, OURS);
        figure.dots(line, 5.0, OURS);
        let (x, y) = (across(self.chosen.0), down(own));
        figure.line(vec![(x, top), (x, top + height)], 1.0, LIMIT);
        figure.dots(vec![(x, y)], 11.0, LIMIT);
        let text = format!("this order: {}", tidy(own));
        // The curves fall, so the upper right corner is free, except for the line of this order.
        let is_crossed = x > right - 16.0 - text_width(&text, PLAIN.size, false);
        figure.text((if is_crossed { x } else { right } - 8.0, top + 16.0), Anchor::End, LIMIT, &text);
        let below = top + height + 16.0;
        figure.text((across(1.0), below), Anchor::Middle, DIM, "1");
        figure.text((across(most), below), Anchor::Middle, DIM, &most.to_string());
        figure.text((left + ACROSS / 2.0, below), Anchor::Middle, DIM, "window in chunks");
    }

    /// The measured design effects of this order and of uniform batches, if there are any.
    pub(crate) fn counted(&self) -> Option<(f64, f64)> {
        let classes = self.classes.as_ref()?;
        classes.counted.zip(classes.uniform)
    }
}

impl Batches {
    fn new(plan: &EpochPlan, batch: u32, n_samples: u64, n_bands: usize, band: &dyn Fn(u64) -> Option<usize>) -> Self {
        let batch = u64::from(batch);
        let n = (DOTS / batch).clamp(8, SHOWN).min(plan.steps());
        let each = (DOTS / n.max(1)).clamp(1, batch);
        let (mut dots, mut shares) = (Vec::new(), Vec::new());
        for step in 0..n {
            for nth in 0..each {
                let place = nth * batch / each;
                let Some(sample) = plan.position(step * batch + place) else { continue };
                let x = step as f64 + (place as f64 + 0.5) / batch as f64;
                dots.push((x, sample as f64 / n_samples.max(1) as f64));
            }
            let mut counts = vec![0.0; n_bands];
            for band in plan.batch(step).filter_map(|slot| band(slot.sample)) {
                if let Some(count) = counts.get_mut(band) {
                    *count += 1.0 / batch as f64;
                }
            }
            shares.push(counts);
        }
        Self { n, dots, shares }
    }
}

/// Groups classes by id into at most 8 groups with about equally many samples.
struct Bands {
    n: usize,
    of: std::collections::BTreeMap<i64, usize>,
}

impl Bands {
    fn new(pack: &Pack, column: &Integers<'_>) -> Self {
        let mut of = std::collections::BTreeMap::new();
        for sample in 0..pack.n_samples() {
            *of.entry(column.at(sample)).or_insert(0_usize) += 1;
        }
        let n = of.len().min(BANDS.len());
        let (few, total) = (of.len() <= n, of.values().sum::<usize>().max(1));
        let mut before = 0;
        for (nth, band) in of.values_mut().enumerate() {
            let count = *band;
            *band = if few { nth } else { (before + count / 2) * n / total };
            before += count;
        }
        Self { n, of }
    }

    fn of(&self, class: i64) -> Option<usize> {
        self.of.get(&class).copied()
    }
}

fn order_name(report: &ShuffleReport) -> String {
    match report.order {
        OrderKind::Window => format!("window of {}", counted(report.window, "chunk")),
        other => format!("order {}", other.name()),
    }
}

/// A number without insignificant digits.
fn tidy(number: f64) -> String {
    if number < 10.0 { format!("{number:.2}") } else { format!("{number:.0}") }
}
