//! Opens the audit file according to the manifest.
use std::path::Path;

use toolcell_audit::{FILES_MAX, Rotation, Settings, Sink};
use toolcell_policy::{AuditArguments, AuditPolicy, Fsync};

/// Opens this audit file, or else the one of the manifest in this folder, under the manifest's
/// policy.
///
/// # Errors
/// One sentence.
pub fn open_audit(file: Option<&Path>, policy: &AuditPolicy, folder: &Path) -> Result<Sink, String> {
    let named = policy.file().map(|file| folder.join(file));
    let Some(path) = file.map(Path::to_owned).or(named) else { return Ok(Sink::disabled()) };
    let opened = Sink::open_with(&path, kept_as(policy));
    let (sink, opened) = opened.map_err(|error| format!("the audit {}: {error}", path.display()))?;
    if opened.torn_bytes > 0 {
        tracing::warn!("the audit ended in half a record; {} bytes were cut off", opened.torn_bytes);
    }
    Ok(sink.telling(|error| tracing::error!("calls go on without a record, as the audit cannot be written: {error}")))
}

fn kept_as(policy: &AuditPolicy) -> Settings {
    let keep = u32::try_from(policy.keep()).unwrap_or(FILES_MAX);
    Settings {
        rotation: Some(Rotation { file_bytes_max: policy.rotate_bytes(), keep }),
        synced: policy.fsync() == Fsync::Always,
        arguments: policy.arguments() == AuditArguments::Values,
        uses: policy.uses(),
        required: policy.required(),
    }
}
