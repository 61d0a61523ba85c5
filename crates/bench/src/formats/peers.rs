//! Rows that other programs measured on the same images, checked before they stand beside ours.

use std::path::Path;

use super::report::{Peers, Report};
use crate::BenchError;

/// Adds the rows of a peers.json. What is lossless must have delivered `expected`.
pub(super) fn merge(report: &mut Report, path: &Path, expected: &str) -> Result<(), BenchError> {
    let text = std::fs::read(path).map_err(BenchError::io(path))?;
    let odd = |reason: String| {
        let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
        BenchError::io(path)(error)
    };
    let peers: Peers = serde_json::from_slice(&text).map_err(|e| odd(e.to_string()))?;
    for format in &peers.formats {
        let name = &format.format;
        if report.formats.iter().any(|known| known.format == *name) {
            return Err(odd(format!("format `{name}` stands in the report already")));
        }
    }
    for run in &peers.runs {
        let name = &run.format;
        let format = peers.formats.iter().find(|format| format.format == *name);
        let format = format.ok_or_else(|| odd(format!("a run of `{name}`, which is no format")))?;
        if run.skipped.is_some() {
            continue;
        }
        let is_whole = run.images_per_s.is_some() && run.batch_ms.is_some();
        if !is_whole {
            return Err(odd(format!(
                "a run of `{name}` without images_per_s or batch_ms"
            )));
        }
        if run.batch != report.options.batch {
            return Err(odd(format!(
                "a run of `{name}` with batches of {}, not {}",
                run.batch, report.options.batch
            )));
        }
        let found = run.checksum.as_deref().unwrap_or("none");
        if format.lossless && found != expected {
            return Err(BenchError::Disagree {
                format: name.clone(),
                order: run.order.clone(),
                expected: expected.to_owned(),
                found: found.to_owned(),
            });
        }
    }
    for (name, version) in peers.versions {
        report.versions.entry(name).or_insert(version);
    }
    report.formats.extend(peers.formats);
    report.runs.extend(peers.runs);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::report::{Data, Limits, OptionsShown, ReportMachine};
    use super::*;
    use serde_json::{Value, json};

    fn report() -> Report {
        Report {
            command: String::new(),
            seed: 0,
            started: String::new(),
            machine: ReportMachine {
                cpu: String::new(),
                cores: 1,
                ram_bytes: 0,
                kernel: String::new(),
                filesystem: String::new(),
                disk: String::new(),
                free_page_reporting: false,
            },
            versions: [("packds".to_owned(), "1".to_owned())].into(),
            data: Data {
                path: String::new(),
                n_images: 2,
                height: 1,
                width: 1,
                channels: 1,
                bytes_per_image: 1,
                pixel_bytes: 2,
            },
            options: OptionsShown {
                batch: 1,
                batch_asked: None,
                threads: vec![1],
                orders: Vec::new(),
                cache: Vec::new(),
                step_ms: 0.0,
                quick: true,
                rounds: 1,
            },
            limits: Limits::default(),
            formats: Vec::new(),
            runs: Vec::new(),
        }
    }

    fn peers() -> Value {
        json!({
            "versions": {"torch": "2.9", "packds": "2"},
            "formats": [{"format": "torch-pt", "title": "torch.load", "runtime": "python", "lossless": true}],
            "runs": [
                {"format": "torch-pt", "order": "chunk", "cache": "warm", "threads": 1, "batch": 1, "step_ms": 0.0,
                 "images_per_s": 5.0, "batch_ms": {"median": 1.0, "p95": 2.0}, "checksum": "00ff"},
                {"format": "torch-pt", "order": "per-sample", "cache": "warm", "threads": 1, "batch": 1, "step_ms": 0.0,
                 "skipped": "no"},
            ],
        })
    }

    fn merged(peers: &Value) -> Result<Report, BenchError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("peers.json");
        std::fs::write(&path, peers.to_string()).unwrap();
        let mut report = report();
        merge(&mut report, &path, "00ff").map(|()| report)
    }

    #[test]
    fn rows_of_peers_join_ours() {
        let report = merged(&peers()).unwrap();
        assert_eq!((report.formats.len(), report.runs.len()), (1, 2));
        assert_eq!(report.versions["torch"], "2.9");
        assert_eq!(report.versions["packds"], "1");
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    #[test]
    fn rows_that_are_not_right_are_refused() {
        let changed = |pointer: &str, value: Value| {
            let mut peers = peers();
            *peers.pointer_mut(pointer).unwrap() = value;
            merged(&peers).unwrap_err().to_string()
        };
        let sum = changed("/runs/0/checksum", json!("0100"));
        assert!(sum.contains("expected checksum 00ff, found 0100"), "{sum}");
        let name = changed("/runs/0/format", json!("other"));
        assert!(
            name.contains("a run of `other`, which is no format"),
            "{name}"
        );
        let number = changed("/runs/0/images_per_s", Value::Null);
        assert!(number.contains("without images_per_s"), "{number}");
        let batch = changed("/runs/0/batch", json!(2));
        assert!(batch.contains("with batches of 2, not 1"), "{batch}");
        let mut unknown = peers();
        unknown["runs"][0]["speed"] = json!(1);
        let unknown = merged(&unknown).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `speed`"), "{unknown}");
    }
}
