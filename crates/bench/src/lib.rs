//! Benchmarks of packds, each beside its physical limit
