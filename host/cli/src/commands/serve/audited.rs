//! What serving itself leaves in the audit: its start, the components it loads, its end. Must not hold: calls.
use std::path::Path;

use anyhow::Context as _;
use toolcell_audit::{
    Arguments, Clipped, ComponentLoaded, Event, FILES_MAX, Fsync, HostStarted, HostStopped, Rotation, Settings, Sink,
    SinkError,
};
use toolcell_mcp::Catalog as _;
use toolcell_policy::{AuditArguments, AuditPolicy};
use toolcell_sandbox::Digest;

use crate::args::ServeArgs;
use crate::catalog::Catalog;
use crate::project::ManifestFile;

/// Opens the file that the command line names, or else the manifest in this folder, as the manifest wants it kept.
pub fn open_audit(args: &ServeArgs, policy: &AuditPolicy, folder: &Path) -> Result<Sink, String> {
    let named = policy.file().map(|file| folder.join(file));
    let Some(path) = args.audit.clone().or(named) else { return Ok(Sink::disabled()) };
    let opened = Sink::open_with(&path, kept_as(policy));
    let (sink, opened) = opened.map_err(|error| format!("the audit {}: {error}", path.display()))?;
    if opened.torn_bytes > 0 {
        tracing::warn!("the audit ended in half a record; {} bytes were cut off", opened.torn_bytes);
    }
    Ok(sink.telling(|error| tracing::error!("calls go on without a record: {error}")))
}

fn kept_as(policy: &AuditPolicy) -> Settings {
    let keep = u32::try_from(policy.keep()).unwrap_or(FILES_MAX);
    Settings {
        rotation: Some(Rotation { file_bytes_max: policy.rotate_bytes(), keep }),
        fsync: match policy.fsync() {
            toolcell_policy::Fsync::Never => Fsync::Never,
            toolcell_policy::Fsync::Always => Fsync::Always,
        },
        arguments: match policy.arguments() {
            AuditArguments::Digest => Arguments::Digest,
            AuditArguments::Values => Arguments::Values,
        },
        required: policy.required(),
    }
}

/// Records that it serves, and what.
pub fn record_start(sink: &Sink, file: &ManifestFile, catalog: &Catalog) -> anyhow::Result<()> {
    let manifest_digest = Digest::of(file.text().as_bytes()).to_string();
    sink.record(|| {
        Event::HostStarted(HostStarted {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            manifest: Clipped(file.name()),
            manifest_digest: &manifest_digest,
        })
    })
    .context("the audit cannot be written")?;
    record_components(sink, catalog, |_| true).context("the audit cannot be written")
}

/// Records these components of a catalog as loaded.
pub fn record_components(sink: &Sink, catalog: &Catalog, which: impl Fn(&str) -> bool) -> Result<(), SinkError> {
    for component in catalog.components().iter().filter(|component| which(component.name())) {
        let tools = catalog.tools_of(component);
        sink.record(|| {
            Event::ComponentLoaded(ComponentLoaded {
                generation: catalog.tools().generation(),
                name: component.name(),
                digest: component.digest(),
                size_bytes: component.inspection().size_bytes(),
                policy_digest: component.policy_digest(),
                tools: &tools,
            })
        })?;
    }
    Ok(())
}

/// Records that it serves no longer, why, and how many calls it began.
pub fn record_end(sink: &Sink, reason: &str, calls: u64) {
    if let Err(error) = sink.record(|| Event::HostStopped(HostStopped { reason: Clipped(reason), calls })) {
        tracing::error!("the end is missing in the audit: {error}");
    }
}
