//! Places the names of a chart's points next to them without overlaps. Points that lie one above the other, such as
//! formats with equal size, get their names in columns on both sides. The names are in the order of the points, so
//! leader lines do not cross.

use super::scatter::{DOT, Point, label_font};
use crate::figure::{Anchor, Place};
use crate::lettering::text_width;

const HIGH: f64 = 14.0;
/// Line spacing in a column.
const LINE: f64 = 15.0;
/// Points within this horizontal distance share columns.
const TOGETHER: f64 = 40.0;
/// Distance from the outermost points to the column.
const ASIDE: f64 = 20.0;

/// A rectangle: left, top, right, bottom.
pub(super) type Area = [f64; 4];
/// The left edge, top, width and height of a plot.
pub(super) type Plot = [f64; 4];

/// The placement of a name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    pub(super) at: Place,
    pub(super) anchor: Anchor,
    area: Area,
    /// Line from the dot to the name.
    pub(super) leader: (Place, Place),
}

/// The plot, and the space in it that names must avoid.
#[derive(Debug, Clone)]
pub(super) struct Taken {
    plot: Plot,
    /// Other text. Leaders avoid it too.
    pub(super) areas: Vec<Area>,
    /// Lines. Leaders may cross them.
    pub(super) lines: Vec<Area>,
    leaders: Vec<(Place, Place)>,
}

impl Taken {
    pub(super) fn new(plot: Plot) -> Self {
        Self { plot, areas: Vec::new(), lines: Vec::new(), leaders: Vec::new() }
    }

    fn is_free(&self, name: &Name) -> bool {
        let over = |other: &Area| overlap(&name.area, other);
        inside(&name.area, self.plot)
            && !self.areas.iter().any(over)
            && !self.lines.iter().any(over)
            && !self.leaders.iter().any(|line| crosses(line, &name.area))
    }

    fn is_clear(&self, leader: &(Place, Place)) -> bool {
        !self.areas.iter().any(|area| crosses(leader, area))
    }

    fn add(&mut self, name: &Name) {
        self.areas.push(name.area);
        self.leaders.push(name.leader);
    }
}

/// A point, with everything needed to place its name.
#[derive(Debug, Clone, Copy)]
struct Dot {
    nth: usize,
    at: Place,
    wide: f64,
    ours: bool,
}

/// Places all names. The names of three or more points that lie one above the other go in columns. Any other name goes
/// as close to its point as possible without touching a name, point or leader, and is omitted if there is no space.
/// Among these other names, that of packds is placed first.
pub(super) fn names(points: &[Point], places: &[Place], mut taken: Taken) -> Vec<Option<Name>> {
    let half = DOT / 2.0 + 1.0;
    let dots = places.iter().map(|(x, y)| [x - half, y - half, x + half, y + half]);
    taken.lines.extend(dots);
    let dot = |(nth, (point, at)): (usize, (&Point, &Place))| {
        let font = label_font(point);
        Dot { nth, at: *at, wide: text_width(&point.label, font.size, font.bold), ours: point.ours }
    };
    let mut dots: Vec<Dot> = points.iter().zip(places).enumerate().map(dot).collect();
    let mut names = vec![None; points.len()];
    for group in groups(&dots) {
        let columns = columns(&group, &taken);
        for (nth, name) in columns {
            if taken.is_free(&name) {
                taken.add(&name);
                if let Some(slot) = names.get_mut(nth) {
                    *slot = Some(name);
                }
            }
        }
    }
    dots.retain(|dot| names.get(dot.nth).is_some_and(Option::is_none));
    dots.sort_by_key(|dot| !dot.ours);
    for dot in dots {
        let free = |name: &Name| taken.is_free(name);
        let clear = |name: &Name| taken.is_clear(&name.leader);
        let found = candidates(dot.at, dot.wide).find(|name| free(name) && clear(name));
        // A leader that crosses a name is better than no name.
        let found = found.or_else(|| candidates(dot.at, dot.wide).find(free));
        found.iter().for_each(|name| taken.add(name));
        if let Some(slot) = names.get_mut(dot.nth) {
            *slot = found;
        }
    }
    names
}

/// Groups of three or more points that lie one above the other, from top to bottom. The largest group is first.
fn groups(dots: &[Dot]) -> Vec<Vec<Dot>> {
    let mut dots = dots.to_vec();
    dots.sort_by(|a, b| a.at.0.total_cmp(&b.at.0));
    let mut groups: Vec<Vec<Dot>> = Vec::new();
    for dot in dots {
        let near = |first: &Dot| dot.at.0 - first.at.0 <= TOGETHER;
        match groups.last_mut() {
            Some(group) if group.first().is_some_and(near) => group.push(dot),
            _ => groups.push(vec![dot]),
        }
    }
    groups.retain(|group| group.len() > 2);
    for group in &mut groups {
        group.sort_by(|a, b| a.at.1.total_cmp(&b.at.1));
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

/// The names of a group in columns to its right and left. Each name goes to the less crowded side, or to the other side
/// if something is in the way.
fn columns(group: &[Dot], taken: &Taken) -> Vec<(usize, Name)> {
    let mut sides = sides(group);
    let mut moved = vec![false; group.len()];
    loop {
        let names = in_columns(group, &sides, taken.plot);
        let mut blocked = names.iter().zip(&moved).map(|(name, moved)| !moved && !taken.is_free(name));
        let Some(at) = blocked.position(|blocked| blocked) else {
            let dots = group.iter().map(|dot| dot.nth);
            return dots.zip(names).collect();
        };
        // Each name moves at most once, so this ends.
        if let (Some(moved), Some(right)) = (moved.get_mut(at), sides.get_mut(at)) {
            *moved = true;
            *right = !*right;
        }
    }
}

/// Whether the name of each dot goes to the right. It goes to the side where it overlaps the previous name less, or to
/// the right if both sides are equal.
fn sides(group: &[Dot]) -> Vec<bool> {
    let (mut last_right, mut last_left) = (f64::MIN, f64::MIN);
    let side = |dot: &Dot| {
        let y = dot.at.1;
        let right = (last_right + LINE - y).max(0.0) <= (last_left + LINE - y).max(0.0);
        *(if right { &mut last_right } else { &mut last_left }) = y;
        right
    };
    group.iter().map(side).collect()
}

/// The names of a group, in order. `sides` is true for the right column.
fn in_columns(group: &[Dot], sides: &[bool], plot: Plot) -> Vec<Name> {
    let xs = || group.iter().map(|dot| dot.at.0);
    let (right, left) = (xs().fold(f64::MIN, f64::max), xs().fold(f64::MAX, f64::min));
    let heights = |of_right: bool| {
        let dots = group.iter().zip(sides).filter(move |(_, right)| **right == of_right);
        spread(&dots.map(|(dot, _)| dot.at.1).collect::<Vec<f64>>(), plot).into_iter()
    };
    let (mut right_heights, mut left_heights) = (heights(true), heights(false));
    let name = |(dot, is_right): (&Dot, &bool)| {
        let (x, anchor, y) = if *is_right {
            (right + ASIDE, Anchor::Start, right_heights.next())
        } else {
            (left - ASIDE, Anchor::End, left_heights.next())
        };
        Name::new(dot.at, (x, y.unwrap_or(dot.at.1)), anchor, dot.wide)
    };
    group.iter().zip(sides).map(name).collect()
}

/// Positions at least one line apart and within the plot, as close as possible to the preferred positions, which must
/// be sorted.
fn spread(wanted: &[f64], plot: Plot) -> Vec<f64> {
    let line = |nth: usize| f64::from(u32::try_from(nth).unwrap_or(u32::MAX)) * LINE;
    // Subtracting the height of the lines above turns this into isotonic regression: heights in the wrong order are
    // replaced by their mean.
    let mut runs: Vec<(f64, usize)> = Vec::new();
    for (nth, y) in wanted.iter().enumerate() {
        let mut run = (y - line(nth), 1);
        while let Some(&(mean, n)) = runs.last().filter(|(mean, _)| *mean > run.0) {
            runs.pop();
            let (before, own) = (line(n), line(run.1));
            run = ((mean * before + run.0 * own) / (before + own), n + run.1);
        }
        runs.push(run);
    }
    let top = plot[1] + HIGH / 2.0 + 1.0;
    let bottom = plot[1] + plot[3] - HIGH / 2.0 - 1.0 - line(wanted.len().saturating_sub(1));
    let heights = runs.into_iter().flat_map(|(y, n)| std::iter::repeat_n(y, n));
    let heights = heights.map(|y| y.min(bottom).max(top)).enumerate();
    heights.map(|(nth, y)| y + line(nth)).collect()
}

/// Possible positions for a name, the nearest first: beside, above and below the point, then farther away.
fn candidates(dot: Place, wide: f64) -> impl Iterator<Item = Name> {
    (0..30).flat_map(move |ring| {
        let far = DOT / 2.0 + 4.0 + f64::from(ring) * 8.0;
        let up = [0.0, -0.6, 0.6, -1.0, 1.0, -2.5, 2.5];
        let sides = up.into_iter().flat_map(move |part| {
            let at = |side: f64| (dot.0 + side * far, dot.1 + part * far);
            [(at(1.0), Anchor::Start), (at(-1.0), Anchor::End)]
        });
        let ends = [-1.0, 1.0].map(|side| ((dot.0, dot.1 + side * (far + 5.0)), Anchor::Middle));
        sides.chain(ends).map(move |(middle, anchor)| Name::new(dot, middle, anchor, wide))
    })
}

impl Name {
    /// A name whose start, middle or end is at this position.
    fn new(dot: Place, (x, y): Place, anchor: Anchor, wide: f64) -> Self {
        let left = anchor.left(x, wide);
        let area = [left, y - HIGH / 2.0, left + wide, y + HIGH / 2.0];
        let end = match anchor {
            Anchor::Middle => (x, dot.1.clamp(area[1], area[3])),
            Anchor::Start => (x - 2.0, y),
            Anchor::End => (x + 2.0, y),
        };
        Self { at: (x, y + 4.0), anchor, area, leader: (dot, end) }
    }
}

/// Whether a line crosses a rectangle.
fn crosses(&(from, to): &(Place, Place), [left, top, right, bottom]: &Area) -> bool {
    (0..=40).any(|step| {
        let part = f64::from(step) / 40.0;
        let x = from.0 + (to.0 - from.0) * part;
        let y = from.1 + (to.1 - from.1) * part;
        (*left..=*right).contains(&x) && (*top..=*bottom).contains(&y)
    })
}

fn inside([left, top, right, bottom]: &Area, [x, y, width, height]: Plot) -> bool {
    *left >= x && *top >= y && *right <= x + width && *bottom <= y + height
}

fn overlap(a: &Area, b: &Area) -> bool {
    let [left, top, right, bottom] = a;
    let [x0, y0, x1, y1] = b;
    left < x1 && x0 < right && top < y1 && y0 < bottom
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLOT: Plot = [88.0, 84.0, 856.0, 454.0];

    fn areas(places: &[Place], taken: Taken) -> Vec<Area> {
        let point = |nth: usize| Point { label: format!("a format of number {nth}"), ours: nth == 7, x: 0.0, y: 0.0 };
        let points: Vec<Point> = (0..places.len()).map(point).collect();
        let names = names(&points, places, taken);
        let areas: Vec<Area> = names.iter().flatten().map(|name| name.area).collect();
        assert_eq!(areas.len(), places.len());
        for (nth, area) in areas.iter().enumerate() {
            assert!(inside(area, PLOT));
            assert!(!areas[..nth].iter().any(|other| overlap(area, other)));
        }
        areas
    }

    #[test]
    fn no_two_names_lie_over_each_other() {
        // All points are almost at the same position.
        let places: Vec<Place> = (0..24).map(|n| (400.0 + f64::from(n), 300.0)).collect();
        areas(&places, Taken::new(PLOT));
    }

    #[test]
    fn names_of_points_above_each_other_stand_in_their_order_on_both_sides() {
        let places: Vec<Place> = (0..24).map(|n| (600.0, 150.0 + 6.0 * f64::from(n))).collect();
        let line = [598.0, PLOT[1], 602.0, PLOT[1] + PLOT[3]];
        let taken = Taken { lines: vec![line], ..Taken::new(PLOT) };
        let areas = areas(&places, taken);
        let (right, left): (Vec<Area>, Vec<Area>) = areas.iter().partition(|area| area[0] > 600.0);
        assert_eq!((left.len(), right.len()), (12, 12));
        for side in [left, right] {
            assert!(side.is_sorted_by(|above, below| above[3] <= below[1]));
        }
        assert!(!areas.iter().any(|area| overlap(area, &line)));
    }

    #[test]
    fn names_are_spread_around_where_they_are_wanted() {
        assert_eq!(spread(&[200.0, 300.0], PLOT), [200.0, 300.0]);
        assert_eq!(spread(&[200.0, 200.0, 200.0], PLOT), [185.0, 200.0, 215.0]);
        let top = PLOT[1] + HIGH / 2.0 + 1.0;
        assert_eq!(spread(&[0.0, 0.0], PLOT), [top, top + LINE]);
    }
}
