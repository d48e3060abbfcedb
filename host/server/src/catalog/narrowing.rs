//! Ends a tool's calls when the manifest narrows its grants.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use toolcell_mcp::Cancellation;

/// Ends the calls of one tool. Cheap to clone. It cannot be undone.
#[derive(Clone, Debug)]
pub(crate) struct ToolNarrowing {
    /// Cancelled once the tool is narrowed.
    pub(crate) cancellation: Cancellation,
    /// True if the component has left the manifest.
    removed: Arc<AtomicBool>,
}

impl ToolNarrowing {
    pub(crate) fn new() -> Self {
        Self { cancellation: Cancellation::new(), removed: Arc::default() }
    }

    /// Ends the calls. `removed` is true if the component has left the manifest.
    pub(crate) fn begin(&self, removed: bool) {
        self.removed.store(removed, Ordering::SeqCst);
        self.cancellation.cancel();
    }

    /// The answer to a call of this component that ended this way.
    pub(crate) fn text(&self, component: &str) -> String {
        if self.removed.load(Ordering::SeqCst) {
            format!("the call was ended: its component {component:?} was removed from the manifest meanwhile")
        } else {
            "the call was ended: what this tool may reach has been narrowed meanwhile".to_owned()
        }
    }
}
