//! Stops in the middle of an epoch and resumes from the saved state. The samples are the same as in an uninterrupted
//! run. `cargo run --release --example resume -- train.pack`

#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;

use packds::loader::{Epoch, LoadError, Loader};
use packds::plan::State;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of a pack")?;
    let builder = || Ok::<_, LoadError>(Loader::builder(packds::open(&path)?).batch(4).seed(7));
    let whole = ids(builder()?.build()?.epoch(0)?)?;

    let loader = builder()?.build()?;
    let mut epoch = loader.epoch(0)?;
    let mut stopped = Vec::new();
    for batch in epoch.by_ref().take(3) {
        stopped.extend_from_slice(batch?.ids());
    }
    // The state to save: about 160 bytes of text, whatever the pack's size.
    let saved = epoch.state().to_json();
    drop((epoch, loader));
    println!("stopped after {stopped:?}, saved {saved}");

    let state = State::from_json(&saved)?;
    let loader = builder()?.resume(&state).build()?;
    stopped.extend(ids(loader.epoch_at(&state)?)?);
    assert_eq!(stopped, whole);
    println!("resumed with the same {} samples", stopped.len());
    Ok(())
}

fn ids(epoch: Epoch) -> Result<Vec<u64>, LoadError> {
    let mut ids = Vec::new();
    for batch in epoch {
        ids.extend_from_slice(batch?.ids());
    }
    Ok(ids)
}
