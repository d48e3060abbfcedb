//! Audit records of the components that a catalog has loaded.
use toolcell_audit::{Clipped, ComponentLoaded, Event, Sink, SinkError};
use toolcell_mcp::ServedCatalog as _;

use super::Catalog;

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
                policy_digest: &component.policy_digest,
                tools: &tools,
                source: Clipped(&source),
                signed_by: (!signed_by.is_empty()).then_some(Clipped(&signed_by)),
            })
        })?;
    }
    Ok(())
}
