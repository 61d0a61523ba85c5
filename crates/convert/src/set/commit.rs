//! Commits a version of a set: writes its manifest, without ever replacing another.

use std::io::Write;
use std::path::Path;

use packds_format::{Manifest, ShardEntry, manifest_name};

use crate::error::ConvertError;
use crate::output::Output;
use crate::pipeline::Observer;

/// Writes the manifest. The version exists once this returns. `old` are the shards of the version before.
///
/// # Errors
/// [`ConvertError::Options`] if another process committed this version first, or is committing it.
pub(crate) fn commit(
    folder: &Path,
    manifest: &Manifest,
    old: &[ShardEntry],
    observer: &dyn Observer,
) -> Result<(), ConvertError> {
    let target = folder.join(manifest_name(manifest.version));
    let bytes = manifest.to_bytes().map_err(ConvertError::Format)?;
    let write = || {
        let output = Output::create(&target, false)?;
        // Another process may have deleted a shard that no version had yet. It cannot do so while the name is locked.
        let mut new = manifest.shards.iter().filter(|shard| !old.contains(shard));
        if let Some(gone) = new.find(|shard| !folder.join(&shard.path).exists()) {
            let reason = format!("{}: the shard {} was deleted meanwhile", folder.display(), gone.path);
            return Err(ConvertError::options(reason, "run the command again"));
        }
        output.file().write_all(&bytes).map_err(ConvertError::io(&target))?;
        crate::convert::name(output, 0, observer)
    };
    write().map_err(|error| match error {
        ConvertError::OutputExists { .. } | ConvertError::OutputBusy { .. } => {
            let reason = format!("{}: another process committed version {} first", folder.display(), manifest.version);
            ConvertError::options(
                reason,
                "run the command again: it continues with that version, and reuses what was copied",
            )
        }
        other => other,
    })
}
