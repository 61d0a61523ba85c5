//! A file for reads into the simulated device's memory. Reads are delayed, and the memory is monitored until they are
//! done.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;

use super::memory::{address, copy, range};
use super::{Fault, MapFailure, POISON, Shared};
use crate::driver::{DevicePtr, DirectFile};
use crate::error::CudaError;

#[derive(Debug)]
pub(super) struct SimFile {
    shared: Arc<Shared>,
    file: File,
}

impl SimFile {
    pub(super) fn open(shared: &Arc<Shared>, file: File) -> Result<Self, CudaError> {
        let mut state = shared.call("open_direct")?;
        if state.map_failure == Some(MapFailure::Refused) {
            let text = "the simulated device cannot read files";
            return Err(CudaError::Use(text.to_owned()));
        }
        // Read through the page cache, because direct reads would require aligned memory and offsets.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = File::open(path).map_err(|error| failed("open_direct", &error))?;
        state.files += 1;
        drop(state);
        Ok(Self { shared: Arc::clone(shared), file })
    }
}

impl DirectFile for SimFile {
    unsafe fn read(&self, offset: u64, to: DevicePtr, bytes: usize) -> Result<(), CudaError> {
        let written = range(to.0, address(bytes));
        let delay = {
            let mut state = self.shared.call("read_direct")?;
            if state.is_in_use(&written) {
                state.faults.push(Fault::WrittenTooEarly);
            }
            state.arriving.push(written.clone());
            self.shared.delay(&mut state)
        };
        thread::sleep(delay);
        let mut arrived = vec![0; bytes];
        let read = self.file.read_exact_at(&mut arrived, offset);
        let mut state = self.shared.lock();
        state.arriving.retain(|other| *other != written);
        read.map_err(|error| failed("read_direct", &error))?;
        if state.map_failure == Some(MapFailure::Garbled)
            && let Some(byte) = arrived.get_mut(bytes / 2)
        {
            *byte ^= POISON;
        }
        if !state.is_allocated(&written) {
            state.faults.push(Fault::NotAllocated);
            return Ok(());
        }
        let from = address(arrived.as_ptr().expose_provenance());
        copy(from, to.0, address(bytes));
        state.read_directly += address(bytes);
        Ok(())
    }
}

fn failed(call: &'static str, error: &io::Error) -> CudaError {
    CudaError::Call { call, name: "SIMULATED".to_owned(), text: error.to_string() }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        self.shared.lock().files -= 1;
    }
}
