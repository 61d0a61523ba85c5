//! Results that other programs measured on the same images, validated before they are added.

use std::path::{Path, PathBuf};

use super::report::{Peers, Report};
use crate::BenchError;

pub(super) struct PeerRows {
    path: PathBuf,
    peers: Peers,
}

impl PeerRows {
    pub(super) fn read(path: &Path) -> Result<Self, BenchError> {
        let text = std::fs::read(path).map_err(BenchError::io(path))?;
        let rows = |peers| Self { path: path.to_owned(), peers };
        serde_json::from_slice(&text).map(rows).map_err(|error| odd(path, error.to_string()))
    }

    /// Checks that the results can be added: they must have `n_samples` images and the batch size `batch`, and their
    /// formats must not be in `formats`. Lossless formats must have the checksum `expected`. Called before the slow
    /// measurements.
    pub(super) fn check(
        &self,
        formats: &[&str],
        (batch, n_samples): (u32, u64),
        expected: &str,
    ) -> Result<(), BenchError> {
        let odd = |reason: String| odd(&self.path, reason);
        let peers = &self.peers;
        if let Some(found) = peers.n_samples.filter(|found| *found != n_samples) {
            return Err(odd(format!(
                "its runs used {found} images, but this run uses {n_samples}: pass --images {found}"
            )));
        }
        if let Some(known) = peers.formats.iter().find(|format| formats.contains(&format.format.as_str())) {
            return Err(odd(format!("format `{}` is already in the report", known.format)));
        }
        for run in &peers.runs {
            let name = &run.format;
            let format = peers.formats.iter().find(|format| format.format == *name);
            let format =
                format.ok_or_else(|| odd(format!("it has a run of `{name}`, which is not in its list of formats")))?;
            if run.skipped.is_some() {
                continue;
            }
            if run.images_per_s.is_none() || run.batch_ms.is_none() {
                return Err(odd(format!("a run of `{name}` lacks images_per_s or batch_ms")));
            }
            if run.batch != batch {
                return Err(odd(format!(
                    "a run of `{name}` has batch size {found}, not {batch}: pass --batch {found}",
                    found = run.batch
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
        Ok(())
    }

    pub(super) fn join(self, report: &mut Report) {
        for (name, version) in self.peers.versions {
            report.versions.entry(name).or_insert(version);
        }
        report.formats.extend(self.peers.formats);
        report.runs.extend(self.peers.runs);
    }
}

fn odd(path: &Path, reason: String) -> BenchError {
    let error = std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
    BenchError::io(path)(error)
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
                memory_bytes: 0,
                kernel: String::new(),
                filesystem: String::new(),
                disk: String::new(),
                free_page_reporting: false,
            },
            versions: [("packds".to_owned(), "1".to_owned())].into(),
            data: Data {
                path: String::new(),
                n_samples: 2,
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
            "n_samples": 2,
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
        let rows = PeerRows::read(&path)?;
        rows.check(&["npy"], (1, 2), "00ff")?;
        rows.join(&mut report);
        Ok(report)
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
        assert!(name.contains("a run of `other`, which is not in its list of formats"), "{name}");
        let number = changed("/runs/0/images_per_s", Value::Null);
        assert!(number.contains("lacks images_per_s"), "{number}");
        let batch = changed("/runs/0/batch", json!(2));
        assert!(batch.contains("has batch size 2, not 1: pass --batch 2"), "{batch}");
        let images = changed("/n_samples", json!(128));
        assert!(images.contains("used 128 images, but this run uses 2: pass --images 128"), "{images}");
        let own = changed("/formats/0/format", json!("npy"));
        assert!(own.contains("format `npy` is already in the report"), "{own}");
        let mut unknown = peers();
        unknown["runs"][0]["speed"] = json!(1);
        let unknown = merged(&unknown).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `speed`"), "{unknown}");
    }
}
