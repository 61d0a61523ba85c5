//! Benchmarks of packds: each figure beside its physical limit, measured in the same run.
//!
//! Our bias: we wrote packds, and we choose what is measured. So every figure is told as a ratio to a loop that does
//! only what cannot be avoided, on the same files and threads; the two run in turn, and the median of the pairs counts.
//! Every benchmark checks what it computes.

mod convert;
mod error;
pub mod formats;
mod limits;
mod load;
mod machine;
mod measure;
mod opening;
mod threads;
mod tune;
mod watch;
mod words;
mod workload;

pub use convert::{ConvertBench, ConvertBenchOptions, bench_convert};
pub use error::BenchError;
pub use formats::{CacheName, FormatsBenchOptions, OrderName, bench_formats, format_names, to_csv};
pub use load::{FirstBatch, LoadBench, LoadBenchOptions, bench_load, has_encoded_images};
pub use machine::{Machine, PeakRss};
pub use measure::{Figure, Pairs};
pub use tune::{Ahead, Recommended, TuneBench, TuneBenchOptions, TuneRun, Wait, bench_tune};
pub use watch::Watcher;
pub use words::counted;
