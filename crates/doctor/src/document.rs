//! A doctor's report as JSON and as text.

use std::fmt::Write;

use packds_system::Opt;
use serde_json::{Map, Value, json};

use crate::{Advice, Report, Rung, Stage};

/// Maximum length of a bar, in characters.
const BAR: usize = 40;
/// Number of characters before and after the bar in a line.
const BESIDE_BAR: usize = 33;
/// A prediction has failed if the measured rate is lower by more than this fraction.
const FAILED: f64 = 0.2;
const SECONDS: Opt = Opt::new("seconds");

/// A report as a JSON document.
pub fn document(report: &Report) -> Value {
    let case = &report.case;
    let stages: Map<String, Value> =
        Stage::ALL.iter().map(|stage| (stage.name().to_owned(), json!(report.stages.of(*stage)))).collect();
    let of_rungs = |value: &dyn Fn(&Rung) -> Value| -> Map<String, Value> {
        let rungs = report.ladder.iter();
        rungs.map(|rung| (rung.level.name().to_owned(), value(rung))).collect()
    };
    let advice: Vec<Value> = report
        .advice
        .iter()
        .map(|advice| {
            json!({
                "change": advice.change,
                "text": advice.text,
                "images_per_s": advice.images_per_s,
                "within_spread": advice.within_spread,
                "is_option": advice.option.is_some(),
            })
        })
        .collect();
    let checked = report.checked.as_ref().map(|checked| {
        json!({
            "change": checked.change,
            "predicted_images_per_s": checked.predicted,
            "measured_images_per_s": checked.measured,
        })
    });
    json!({
        "binds": report.binds.name(),
        "stages": stages,
        "ladder": of_rungs(&|rung| rate(rung.images_per_s)),
        "ladder_range": of_rungs(&|rung| json!([rate(rung.low), rate(rung.high)])),
        "advice": advice,
        "images_per_s": rate(report.images_per_s),
        "possible_images_per_s": rate(report.possible_images_per_s),
        "modelled_images_per_s": rate(report.modelled_images_per_s),
        "unexplained_ms": report.unexplained_ms,
        "spread": report.spread,
        "is_rough": report.is_rough,
        "is_certain": report.is_certain,
        "checked": checked,
        "batch": case.batch,
        "threads": case.facts.threads,
        "cores": case.facts.cores,
        "side_by_side": side_by_side(report),
        "step_is_modelled": case.step_is_modelled,
    })
}

/// A rate. `null` if it is unknown because no stage takes time.
fn rate(images_per_s: f64) -> Value {
    if images_per_s > 0.0 { json!(images_per_s) } else { Value::Null }
}

/// The names of the stages of each track.
fn side_by_side(report: &Report) -> Vec<Vec<&'static str>> {
    let tracks = report.case.overlap.tracks().iter();
    tracks.map(|track| track.iter().map(|stage| stage.name()).collect()).collect()
}

/// A report as text: bars of the stages and of the ladder, then the advice. Lines with bars fit in `columns`
/// characters.
pub fn text(report: &Report, columns: usize) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_text(report, columns.saturating_sub(BESIDE_BAR).clamp(1, BAR), &mut text);
    text
}

fn write_text(report: &Report, longest: usize, out: &mut String) -> std::fmt::Result {
    let case = &report.case;
    write!(out, "binds    {}: {} images/s", report.binds.name(), whole(report.images_per_s))?;
    if report.possible_images_per_s > 0.0 {
        write!(out, "; the step alone would reach {}", whole(report.possible_images_per_s))?;
    }
    if let Some(doubt) = doubt(report) {
        let idle = if report.is_short { "" } else { "measure again on an idle machine, or " };
        write!(out, "\n         {doubt}; {idle}increase {SECONDS}")?;
    }
    let tracks: Vec<String> = side_by_side(report).iter().map(|track| track.join(" + ")).collect();
    let step = if case.step_is_modelled { "; the step time was given, not measured" } else { "" };
    let (batch, tracks) = (case.batch, tracks.join(" | "));
    writeln!(out, "\nstages   ms per batch of {batch}, each alone; these overlap: {tracks}{step}")?;
    let stages = Stage::ALL.map(|stage| (stage, report.stages.of(stage)));
    let most = stages.iter().map(|(_, ms)| *ms).fold(0.0, f64::max);
    for (stage, ms) in stages {
        let mark = if stage == report.binds { " <" } else { "" };
        let bar = bar(ms / most, longest);
        writeln!(out, "  {:<17} {ms:>10.2} {bar}{mark}", stage.name())?;
    }
    writeln!(out, "ladder   images/s with the pipeline cached up to each stage")?;
    let rates = report.ladder.iter().map(|rung| rung.images_per_s);
    let most = rates.fold(0.0, f64::max);
    for rung in &report.ladder {
        let name = rung.level.name().replace('_', " ");
        let images_per_s = whole(rung.images_per_s);
        let bar = bar(rung.images_per_s / most, longest);
        writeln!(out, "  {name:<17} {images_per_s:>10} {bar}")?;
    }
    write_advice(report, out)
}

/// Why the figures are not reliable. `None` if they are.
pub(crate) fn doubt(report: &Report) -> Option<String> {
    let spread = report.spread * 100.0;
    match (report.is_short, report.is_certain, report.is_rough) {
        (true, ..) => Some("unreliable: too few batches were timed".to_owned()),
        (_, false, _) => Some(format!("unreliable: times vary by {spread:.0} %")),
        (.., true) => Some(format!("rough: times vary by {spread:.0} %, and so may the rates")),
        _ => None,
    }
}

/// What the mark `*` after advice means.
pub(crate) const NOISE: &str = "* may be noise: the gain is within the variation of the times";

fn write_advice(report: &Report, out: &mut String) -> std::fmt::Result {
    if report.advice.is_empty() {
        writeln!(out, "advice   no change gains 5 % or more")?;
    } else {
        writeln!(out, "advice   predicted images/s after each change")?;
    }
    for advice in &report.advice {
        let Advice { change, text, images_per_s, within_spread, .. } = advice;
        let (rate, mark) = (whole(*images_per_s), if *within_spread { " *" } else { "" });
        writeln!(out, "  {change:<17} {rate:>10} {text}{mark}")?;
    }
    if report.advice.iter().any(|advice| advice.within_spread) {
        writeln!(out, "         {NOISE}")?;
    }
    if let Some(checked) = &report.checked {
        writeln!(
            out,
            "checked  {}: {} images/s predicted, {} measured{}",
            checked.change,
            whole(checked.predicted),
            whole(checked.measured),
            if checked.measured < checked.predicted * (1.0 - FAILED) {
                ": prediction missed; other processes, or the step, may be using the same cores or disk"
            } else {
                ""
            }
        )?;
    }
    let (spread, rate) = (report.spread * 100.0, whole(report.modelled_images_per_s));
    writeln!(out, "spread   {spread:.0} % between slices of a run; expected from the stages alone: {rate} images/s")?;
    if report.unexplained_ms > 0.0 {
        writeln!(
            out,
            "         {:.1} ms of the {:.1} ms per batch are unexplained: stages wait for each other or share resources; the advice does not include this time",
            report.unexplained_ms,
            report.case.batch_ms()
        )?;
    }
    Ok(())
}

/// A rate in whole images per second. A dash if it is unknown.
fn whole(images_per_s: f64) -> String {
    if images_per_s > 0.0 { format!("{images_per_s:.0}") } else { "-".to_owned() }
}

/// A bar whose length is this share of the longest bar. Empty if the share is not a number.
fn bar(share: f64, longest: usize) -> String {
    let length = |n: usize| f64::from(u32::try_from(n).unwrap_or(0));
    let filled = (0..longest).filter(|place| share * length(longest) > length(*place) + 0.5);
    "#".repeat(filled.count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Case, Facts, Loading, Overlap, Time, diagnose};

    fn report(step: f64) -> Report {
        let ms = Time::exactly;
        diagnose(Case {
            batch: 100,
            overlap: Overlap::Everything,
            step: ms(step),
            step_is_modelled: true,
            copy: ms(1.0),
            loading: Loading {
                processed: ms(2.0),
                decoded: ms(10.0),
                raw: ms(40.0),
                page_cache: ms(40.0),
                source: ms(50.0),
            },
            read: ms(5.0),
            trained: None,
            facts: Facts { threads: 2, cores: 4, ..Facts::default() },
        })
    }

    #[test]
    fn a_report_is_text_with_bars_and_advice() {
        let text = text(&report(20.0), usize::MAX);
        let begin = "binds    decode: 2000 images/s; the step alone would reach 5000\n";
        assert!(text.starts_with(begin), "{text}");
        let bar = format!("  decode                 30.00 {} <\n", "#".repeat(BAR));
        assert!(text.contains(&bar), "{text}");
        assert!(text.contains("these overlap: step | copy | transform + decode | read"));
        assert!(text.contains("  page cache              2500 ####################\n"));
        assert!(text.contains("threads: 4, one for each core, instead of 2"));
    }

    #[test]
    fn bars_fit_the_width() {
        let narrow = text(&report(20.0), 50);
        let bar = format!("  decode                 30.00 {} <\n", "#".repeat(50 - BESIDE_BAR));
        assert!(narrow.contains(&bar), "{narrow}");
        assert!(text(&report(20.0), 10).contains(" # <\n"));
    }

    #[test]
    fn a_report_says_what_cannot_be_relied_on() {
        let mut case = report(20.0).case;
        assert!(!text(&diagnose(case.clone()), usize::MAX).contains("relied"));
        case.loading.source.high = 2000.0;
        let text = text(&diagnose(case), usize::MAX);
        assert!(text.contains("unreliable: times vary by 1950 %"), "{text}");
        assert!(text.contains("instead of 2 *\n"), "{text}");
        assert!(text.contains("* may be noise"), "{text}");
    }

    #[test]
    fn a_wide_spread_marks_a_report() {
        let mut case = report(20.0).case;
        assert!(!text(&diagnose(case.clone()), usize::MAX).contains("rough"));
        case.loading.source.high = 80.0;
        let report = diagnose(case);
        let text = text(&report, usize::MAX);
        let marked = "the step alone would reach 5000\n         rough: times vary by 30 %";
        assert!(text.contains(marked), "{text}");
        assert_eq!(document(&report)["is_rough"], true);
    }

    #[test]
    fn a_report_says_that_it_is_of_too_few_batches() {
        let mut case = report(20.0).case;
        case.loading.source.is_short = true;
        let text = text(&diagnose(case), usize::MAX);
        assert!(text.contains("too few batches were timed"), "{text}");
    }

    #[test]
    fn a_prediction_that_does_not_hold_is_told() {
        let text = |measured| {
            let mut report = report(20.0);
            report.checked = Some(crate::Checked { change: "threads", predicted: 1000.0, measured });
            text(&report, usize::MAX)
        };
        assert!(text(700.0).contains("700 measured: prediction missed"));
        assert!(text(900.0).contains("900 measured\n"));
    }

    #[test]
    fn what_is_not_known_is_null() {
        let document = document(&report(0.0));
        assert_eq!(document["binds"], "decode");
        assert_eq!(document["ladder"]["device_batch"], Value::Null);
        assert_eq!(document["ladder"]["source"], 2000.0);
        assert_eq!(document["stages"]["decode"], 30.0);
        assert_eq!(document["checked"], Value::Null);
    }
}
