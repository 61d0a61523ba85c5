//! The chart of size against speed: a dot for each format, its name beside it, no two names over each other.

use crate::bench::palette::{DIM, GRID, INK, LIMIT, OTHER, OURS, PANEL, PAPER};
use crate::figure::{Anchor, Figure, Font, Place, SMALL};
use crate::lettering::text_width;

use crate::bench::axis::{Axis, tick_number};

/// A format's place.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub(super) label: String,
    pub(super) ours: bool,
    pub(super) x: f64,
    pub(super) y: f64,
}

/// The chart before it is drawn.
#[derive(Debug, Clone)]
pub(super) struct Scatter {
    pub(super) title: String,
    pub(super) subtitle: String,
    pub(super) across: String,
    pub(super) up: String,
    pub(super) points: Vec<Point>,
    /// A size to compare with.
    pub(super) line: Option<(String, f64)>,
}

const SIZE: (u32, u32) = (960, 600);
/// Left, top, width, height of the plot.
const PLOT: [f64; 4] = [76.0, 84.0, 868.0, 454.0];
const DOT: f64 = 11.0;
const HIGH: f64 = 14.0;

/// Left, top, right, bottom.
type Room = [f64; 4];

/// Where a name goes.
#[derive(Debug, Clone, Copy)]
struct Name {
    at: Place,
    anchor: Anchor,
    room: Room,
    /// From the dot to the name.
    leader: (Place, Place),
}

impl Scatter {
    /// Draws it; none where there is nothing to draw.
    pub(super) fn figure(&self) -> Option<Figure> {
        let [left, top, width, height] = PLOT;
        let line = self.line.iter().map(|(_, value)| *value);
        let xs = self.points.iter().map(|point| point.x).chain(line);
        let across = Axis::over(xs, left, width)?;
        let up = Axis::over(self.points.iter().map(|p| p.y), top + height, -height)?;
        let mut figure = Figure::new(SIZE.0, SIZE.1, PAPER, &self.title);
        figure.heading((16.0, 28.0), INK, &self.title);
        figure.text((16.0, 49.0), Anchor::Start, DIM, &self.subtitle);
        figure.words((16.0, 74.0), Anchor::Start, SMALL, DIM, &self.up);
        figure.boxes(vec![PLOT], PANEL);
        let (right, bottom) = (left + width, top + height);
        for tick in across.ticks(50.0) {
            let x = across.at(tick);
            figure.line(vec![(x, top), (x, bottom)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((x, bottom + 17.0), Anchor::Middle, SMALL, DIM, &text);
        }
        for tick in up.ticks(24.0) {
            let y = up.at(tick);
            figure.line(vec![(left, y), (right, y)], 1.0, GRID);
            let text = tick_number(tick);
            figure.words((left - 8.0, y + 4.0), Anchor::End, SMALL, DIM, &text);
        }
        figure.words(
            (right, bottom + 38.0),
            Anchor::End,
            SMALL,
            DIM,
            &self.across,
        );
        let mut taken: Vec<Room> = Vec::new();
        if let Some((name, value)) = &self.line {
            let x = across.at(*value);
            figure.dashes(vec![(x, top), (x, bottom)], 1.5, LIMIT);
            let wide = text_width(name, SMALL.size, false);
            let (x, anchor, start) = if x + wide + 8.0 > right {
                (x - 6.0, Anchor::End, x - 6.0 - wide)
            } else {
                (x + 6.0, Anchor::Start, x + 6.0)
            };
            figure.words((x, bottom - 8.0), anchor, SMALL, LIMIT, name);
            taken.push([start, bottom - 20.0, start + wide, bottom - 4.0]);
        }
        self.points(&mut figure, &across, &up, taken);
        Some(figure)
    }

    fn points(&self, figure: &mut Figure, across: &Axis, up: &Axis, taken: Vec<Room>) {
        let place = |point: &Point| (across.at(point.x), up.at(point.y));
        let places: Vec<Place> = self.points.iter().map(place).collect();
        let names = names(&self.points, &places, taken);
        for (point, name) in self.points.iter().zip(&names) {
            if let Some(Name {
                leader: (from, to), ..
            }) = name
            {
                let far = (to.0 - from.0).hypot(to.1 - from.1);
                if far > DOT {
                    let color = if point.ours { OURS } else { OTHER };
                    figure.line(vec![*from, *to], 1.0, color);
                }
            }
        }
        let all = self.points.iter().zip(&places).zip(&names);
        let (ours, others): (Vec<_>, Vec<_>) = all.partition(|((point, _), _)| point.ours);
        // Our own over the others: they are what the eye is led to.
        for ((point, at), name) in others.into_iter().chain(ours) {
            let color = if point.ours { OURS } else { OTHER };
            let size = if point.ours { DOT + 3.0 } else { DOT };
            figure.dots(vec![*at], size, color);
            if let Some(Name { at, anchor, .. }) = name {
                let ink = if point.ours { OURS } else { INK };
                figure.words(*at, *anchor, label_font(point), ink, &point.label);
            }
        }
    }
}

fn label_font(point: &Point) -> Font {
    Font {
        size: 11.5,
        bold: point.ours,
    }
}

/// Where each point's name goes: as near as it can be without touching another name, point or leader; nowhere if all is
/// full. Our own come first.
fn names(points: &[Point], places: &[Place], mut taken: Vec<Room>) -> Vec<Option<Name>> {
    let half = DOT / 2.0 + 1.0;
    let dots = places
        .iter()
        .map(|(x, y)| [x - half, y - half, x + half, y + half]);
    let dots: Vec<Room> = dots.collect();
    let mut leaders: Vec<(Place, Place)> = Vec::new();
    let mut names = vec![None; points.len()];
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|nth| points.get(*nth).is_some_and(|point| !point.ours));
    for nth in order {
        let (Some(point), Some(at)) = (points.get(nth), places.get(nth)) else {
            continue;
        };
        let font = label_font(point);
        let wide = text_width(&point.label, font.size, font.bold);
        let free = |name: &Name| {
            inside(&name.room)
                && !taken
                    .iter()
                    .chain(&dots)
                    .any(|other| overlap(&name.room, other))
                && !leaders.iter().any(|leader| crosses(leader, &name.room))
        };
        let clear = |name: &Name| !taken.iter().any(|other| crosses(&name.leader, other));
        let found = candidates(*at, wide).find(|name| free(name) && clear(name));
        // A leader across another name is better than no name.
        let found = found.or_else(|| candidates(*at, wide).find(free));
        taken.extend(found.map(|name| name.room));
        leaders.extend(found.map(|name| name.leader));
        if let Some(name) = names.get_mut(nth) {
            *name = found;
        }
    }
    names
}

/// Places for a name, the nearest first: beside, above and below, then farther away.
fn candidates(dot: Place, wide: f64) -> impl Iterator<Item = Name> {
    (0..30).flat_map(move |ring| {
        let far = DOT / 2.0 + 4.0 + f64::from(ring) * 8.0;
        let up = [0.0, -0.6, 0.6, -1.0, 1.0, -2.5, 2.5];
        let sides = up.into_iter().flat_map(move |part| {
            let at = |side: f64| (dot.0 + side * far, dot.1 + part * far);
            [(at(1.0), Anchor::Start), (at(-1.0), Anchor::End)]
        });
        let ends = [-1.0, 1.0].map(|side| ((dot.0, dot.1 + side * (far + 5.0)), Anchor::Middle));
        sides
            .chain(ends)
            .map(move |(middle, anchor)| Name::new(dot, middle, anchor, wide))
    })
}

impl Name {
    /// A name whose beginning, middle or end is here, for this dot.
    fn new(dot: Place, (x, y): Place, anchor: Anchor, wide: f64) -> Self {
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - wide / 2.0,
            Anchor::End => x - wide,
        };
        let room = [left, y - HIGH / 2.0, left + wide, y + HIGH / 2.0];
        let end = match anchor {
            Anchor::Middle => (x, dot.1.clamp(room[1], room[3])),
            Anchor::Start => (x - 2.0, y),
            Anchor::End => (x + 2.0, y),
        };
        Self {
            at: (x, y + 4.0),
            anchor,
            room,
            leader: (dot, end),
        }
    }
}

/// Whether a line runs through a room.
fn crosses(&(from, to): &(Place, Place), [left, top, right, bottom]: &Room) -> bool {
    (0..=40).any(|step| {
        let part = f64::from(step) / 40.0;
        let x = from.0 + (to.0 - from.0) * part;
        let y = from.1 + (to.1 - from.1) * part;
        (*left..=*right).contains(&x) && (*top..=*bottom).contains(&y)
    })
}

fn inside([left, top, right, bottom]: &Room) -> bool {
    let [x, y, width, height] = PLOT;
    *left >= x && *top >= y && *right <= x + width && *bottom <= y + height
}

fn overlap(a: &Room, b: &Room) -> bool {
    let [left, top, right, bottom] = a;
    let [x0, y0, x1, y1] = b;
    left < x1 && x0 < right && top < y1 && y0 < bottom
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_names_lie_over_each_other() {
        let points: Vec<Point> = (0..24)
            .map(|nth| Point {
                label: format!("a format of number {nth}"),
                ours: nth == 7,
                x: 0.0,
                y: 0.0,
            })
            .collect();
        // All at almost the same place.
        let places: Vec<Place> = (0..24).map(|n| (400.0 + f64::from(n), 300.0)).collect();
        let names = names(&points, &places, Vec::new());
        let rooms: Vec<Room> = names.iter().flatten().map(|name| name.room).collect();
        assert_eq!(rooms.len(), 24);
        for (nth, room) in rooms.iter().enumerate() {
            assert!(inside(room));
            assert!(!rooms[..nth].iter().any(|other| overlap(room, other)));
        }
    }
}
