//! Audit records of the server itself: its start, the components it loads, its end. Must not hold:
//! calls.
use std::path::Path;

use toolcell_audit::{
    Arguments, Clipped, ComponentLoaded, Event, FILES_MAX, Fsync, HostStarted, HostStopped, Rotation, Settings, Sink,
    SinkError,
};
use toolcell_mcp::ServedCatalog as _;
use toolcell_policy::{AuditArguments, AuditPolicy};

use crate::catalog::Catalog;
use crate::error::{StartError, StepExt as _};
use crate::open::OpenedAs;

/// Opens this audit file, or else the one of the manifest in this folder, under the manifest's
/// policy.
///
/// # Errors
/// One sentence.
pub(crate) fn open_audit(file: Option<&Path>, policy: &AuditPolicy, folder: &Path) -> Result<Sink, String> {
    let named = policy.file().map(|file| folder.join(file));
    let Some(path) = file.map(Path::to_owned).or(named) else { return Ok(Sink::disabled()) };
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

/// Records the start, and each served component.
pub(super) fn record_start(sink: &Sink, opened: &OpenedAs, catalog: &Catalog) -> Result<(), StartError> {
    let manifest_digest = opened.digest.to_string();
    sink.record(|| {
        Event::HostStarted(HostStarted {
            version: env!("CARGO_PKG_VERSION"),
            pid: std::process::id(),
            manifest: Clipped(&opened.name),
            manifest_digest: &manifest_digest,
        })
    })
    .step("the audit cannot be written")?;
    record_components(sink, catalog, |_| true).step("the audit cannot be written")
}

/// Records the selected components of a catalog as loaded.
pub(crate) fn record_components(sink: &Sink, catalog: &Catalog, which: impl Fn(&str) -> bool) -> Result<(), SinkError> {
    for component in catalog.components().iter().filter(|component| which(component.name())) {
        let tools = catalog.tools_of(component);
        let source = component.policy().source().to_string();
        let signed_by = component.signed().by.join("; ");
        sink.record(|| {
            Event::ComponentLoaded(ComponentLoaded {
                generation: catalog.tools().generation(),
                name: component.name(),
                digest: component.digest(),
                size_bytes: component.inspection().size_bytes(),
                policy_digest: component.policy_digest(),
                tools: &tools,
                source: Clipped(&source),
                signed_by: (!signed_by.is_empty()).then_some(Clipped(&signed_by)),
            })
        })?;
    }
    Ok(())
}

/// Records the end, its reason, and the number of calls started.
pub(super) fn record_end(sink: &Sink, reason: &str, calls: u64) {
    if let Err(error) = sink.record(|| Event::HostStopped(HostStopped { reason: Clipped(reason), calls })) {
        tracing::error!("the end is missing in the audit: {error}");
    }
}
