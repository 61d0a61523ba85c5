//! The kernel, compiled for the CPU by `kernel/host.c`.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use packds_cuda::Emission;
use packds_cuda::twin::Inputs;

/// Bytes on both sides of the output that the kernel must not touch.
const GUARD: usize = 64;

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("kernel")
}

/// The kernel, compiled for this machine. It runs launches in a separate process.
pub(crate) struct Host {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    _folder: tempfile::TempDir,
}

impl Host {
    /// Compiles the program into a folder.
    pub(crate) fn compiled(made: &tempfile::TempDir) -> PathBuf {
        let program = made.path().join("kernel");
        let source = folder().join("host.c");
        let output = Command::new("cc")
            .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-o"])
            .args([&program, &source])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        program
    }

    pub(crate) fn start() -> Self {
        let made = tempfile::tempdir().unwrap();
        let mut child =
            Command::new(Self::compiled(&made)).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Self { to: child.stdin.take().unwrap(), from: child.stdout.take().unwrap(), child, _folder: made }
    }

    /// The images of a launch. Checks the guard bytes first.
    pub(crate) fn emit(&mut self, e: &Emission, inputs: Inputs<'_>) -> Vec<u8> {
        let Inputs { source, frames, table, patches, shares, colors, taps } = inputs;
        let (lines, images) = e.grid();
        let words = [
            e.n,
            e.width,
            e.height,
            e.channels,
            e.planar,
            e.ty,
            e.padding,
            e.color,
            e.n_patches,
            lines,
            images,
            u32::from(frames.is_some()),
            u32::from(shares.is_some()),
            u32::try_from(taps.len()).unwrap(),
            e.n_colors,
            e.measures,
        ];
        let mut sent: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        sent.extend(u64::try_from(source.len()).unwrap().to_le_bytes());
        sent.extend(source);
        sent.extend(frames.into_iter().flatten().flat_map(|frame| frame.to_bytes()));
        sent.extend(table.iter().flat_map(|entry| entry.to_le_bytes()));
        sent.extend(patches.iter().flat_map(|patch| patch.to_bytes()));
        sent.extend(shares.into_iter().flatten().flat_map(|share| share.to_bytes()));
        sent.extend(colors.iter().flat_map(|color| color.to_bytes()));
        sent.extend(taps.iter().flat_map(|word| word.to_le_bytes()));
        self.to.write_all(&sent).unwrap();
        self.to.flush().unwrap();
        let mut out = vec![0; usize::try_from(e.out_bytes()).unwrap() + 2 * GUARD];
        self.from.read_exact(&mut out).unwrap();
        let images = GUARD..out.len() - GUARD;
        assert!(out[..GUARD].iter().chain(&out[images.end..]).all(|byte| *byte == 0xA5));
        out[images].to_vec()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
