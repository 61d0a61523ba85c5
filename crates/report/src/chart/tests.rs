//! Charts of difficult data: long names, one row, many rows, zeros, values of any size, and values that are missing.

use super::*;
use crate::figure::Figure;

const LAYOUTS: [Layout; 2] = [Layout::Wide, Layout::Narrow];

fn name(nth: usize) -> String {
    format!("WWW {nth} a name that is so long that nobody can say it in one breath, even if it is written in words")
}

/// Values over many orders of magnitude, with zeros.
fn values(n: usize) -> Vec<f64> {
    let value = |nth: usize| if nth % 7 == 3 { 0.0 } else { 10_f64.powi(i32::try_from(nth % 14).unwrap() - 6) * 9.99 };
    (0..n).map(value).collect()
}

fn check(figure: &Figure) {
    let found = figure.overlaps();
    assert!(found.is_empty(), "{}\n{}", found.join("\n"), figure.svg());
}

#[test]
fn no_text_of_a_bar_chart_overlaps() {
    for (n, layout) in [0, 1, 8, 40].into_iter().flat_map(|n| LAYOUTS.map(|layout| (n, layout))) {
        let bar = |(nth, value): (usize, &f64)| Bar {
            label: name(nth),
            sign: " (Python) x".to_owned(),
            ours: nth % 3 == 0,
            value: if nth % 5 == 4 { Err(name(nth)) } else { Ok(*value) },
        };
        let bars = values(n).iter().enumerate().map(bar).collect();
        let (title, subtitle, unit) = (name(1), name(2).repeat(3), "images/s".to_owned());
        check(&BarChart { title, subtitle, unit, bars, end: 0.0, footnotes: vec![name(1), name(2)] }.figure(layout));
    }
}

#[test]
fn no_text_of_a_dot_chart_overlaps() {
    for (n, layout) in [1, 8, 40].into_iter().flat_map(|n| LAYOUTS.map(|layout| (n, layout))) {
        for (linear_to, limits) in [(None, [100.0, 200.0, 1e5]), (Some(100.0), [1.0, 1e7, 9e6])] {
            let row = |(nth, value): (usize, &f64)| Row {
                label: name(nth),
                sign: " (Python) x".to_owned(),
                ours: nth % 3 == 0,
                warm: (nth % 4 > 0).then_some(Mark { value: *value, slow: Some(value * 2.0) }),
                cold: (nth % 5 > 0).then_some(Mark { value: value / 3.0, slow: None }),
                skipped: Some(name(nth)),
            };
            let mut rows: Vec<Row> = values(n).iter().enumerate().map(row).collect();
            rows.push(Row { warm: Some(Mark { value: 3.0, slow: None }), ..Row::default() });
            let chart = DotChart {
                title: name(1),
                subtitle: name(2).repeat(3),
                unit: "images/s".to_owned(),
                kind: ", mean",
                rows,
                limits: limits.map(|limit| ("a limit of it".to_owned(), limit)).to_vec(),
                linear_to,
                footnotes: vec![name(3)],
                ..DotChart::default()
            };
            check(&chart.figure(layout).unwrap());
        }
    }
}

#[test]
fn no_text_of_a_scatter_chart_overlaps() {
    for n in [1, 8, 40] {
        let point = |(nth, value): (usize, &f64)| Point {
            label: format!("format {nth} of a kind"),
            ours: nth % 3 == 0,
            x: 100.0 + values(n)[nth] % 70.0,
            y: *value,
        };
        let chart = Scatter {
            title: name(1),
            subtitle: name(2),
            across: "KiB per image on disk, log scale".to_owned(),
            up: "images/s, log scale".to_owned(),
            points: values(n).iter().enumerate().map(point).collect(),
            line: Some(("raw pixels".to_owned(), 147.0)),
        };
        for layout in [Layout::Wide, Layout::Narrow] {
            check(&chart.figure(layout).unwrap());
        }
    }
}
