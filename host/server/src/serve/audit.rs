//! Audit records of the server itself: its start and its end.
use toolcell_audit::{Clipped, Event, HostStarted, HostStopped, Sink};

use crate::catalog::{Catalog, record_components};
use crate::error::{StartError, StepExt as _};
use crate::open::OpenedAs;

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

pub(super) fn record_end(sink: &Sink, reason: &str, calls: u64) {
    if let Err(error) = sink.record(|| Event::HostStopped(HostStopped { reason: Clipped(reason), calls })) {
        tracing::error!("the end is missing from the audit: {error}");
    }
}
