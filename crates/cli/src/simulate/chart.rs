//! The plot of `packds simulate --plot`: the share of reads that a cache answers, against its size.

use packds_report::palette::{DIM, GRID, INK, PANEL, PAPER, SERIES};
use packds_report::{Anchor, Axis, Figure, Place, SMALL, count, text_width, tick_number, wrap};

use super::CacheSize;

const WIDTH: u32 = 720;
const HEIGHT: u32 = 420;
const LEFT: f64 = 64.0;
const TOP: f64 = 100.0;
const PANEL_SIZE: (f64, f64) = (620.0, 250.0);
/// Bytes per unit of the horizontal axis.
const GIB: f64 = 1_073_741_824.0;

pub(super) fn figure(caches: &[CacheSize], title: &str, subtitle: &str) -> Figure {
    let mut figure = Figure::new(WIDTH, HEIGHT, PAPER, title);
    figure.heading((16.0, 28.0), INK, title);
    for (nth, line) in wrap(subtitle, f64::from(WIDTH) - 32.0, SMALL.size, false).iter().enumerate() {
        figure.words((16.0, 48.0 + 15.0 * count(nth)), Anchor::Start, SMALL, DIM, line);
    }
    let bottom = TOP + PANEL_SIZE.1;
    let gib = |cache: &CacheSize| cache.bytes as f64 / GIB;
    let across = Axis::linear(caches.iter().map(gib), LEFT, PANEL_SIZE.0);
    let up = Axis::linear([0.0, 100.0], bottom, -PANEL_SIZE.1);
    figure.boxes(vec![[LEFT, TOP, PANEL_SIZE.0, PANEL_SIZE.1]], PANEL);
    for tick in up.ticks(40.0) {
        let y = up.at(tick);
        figure.line(vec![(LEFT, y), (LEFT + PANEL_SIZE.0, y)], 1.0, GRID);
        figure.words((LEFT - 7.0, y + 4.0), Anchor::End, SMALL, DIM, &tick_number(tick));
    }
    for tick in across.ticks(90.0) {
        figure.words((across.at(tick), bottom + 16.0), Anchor::Middle, SMALL, DIM, &tick_number(tick));
    }
    figure.words((LEFT, TOP - 8.0), Anchor::Start, SMALL, DIM, "% of the reads after the first epoch");
    figure.words(
        (LEFT + PANEL_SIZE.0 / 2.0, bottom + 34.0),
        Anchor::Middle,
        SMALL,
        DIM,
        "cache of one machine (GiB); at the right end, all machines hold the whole set together",
    );
    type Share = fn(&CacheSize) -> f64;
    let shares: [(&str, Share); 2] =
        [("evicts by next use", |cache| cache.by_next_use), ("evicts by last use", |cache| cache.by_last_use)];
    let widths = shares.map(|(name, _)| text_width(name, SMALL.size, false) + 30.0);
    let mut x = LEFT + PANEL_SIZE.0 - widths.iter().sum::<f64>();
    for (((name, share), color), width) in shares.into_iter().zip(SERIES).zip(widths) {
        let places: Vec<Place> =
            caches.iter().map(|cache| (across.at(gib(cache)), up.at(share(cache) * 100.0))).collect();
        figure.line(places.clone(), 2.0, color);
        figure.dots(places, 7.0, color);
        figure.dots(vec![(x, TOP - 12.0)], 7.0, color);
        figure.words((x + 8.0, TOP - 8.0), Anchor::Start, SMALL, DIM, name);
        x += width;
    }
    figure
}
