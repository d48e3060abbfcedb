//! One tool as a catalog offers it, for code that lists tools or watches them.
use std::sync::Arc;

use toolcell_mcp::McpTool;
use toolcell_policy::{Approval, Grants, Program, ToolName};

use super::entry::CatalogEntry;
use super::meters::Meters;
use super::{CallTarget, LoadedComponent};

/// One tool of a catalog: its definition and its state.
pub struct ToolOffer<'a> {
    pub(super) entry: &'a CatalogEntry,
    /// All that its calls need.
    pub(crate) target: &'a Arc<CallTarget>,
}

impl<'a> ToolOffer<'a> {
    /// Rules for its callers, in words; `None`: everybody. Evaluates every pattern of every rule.
    pub fn called_by(&self) -> Option<Vec<String>> {
        self.entry.called_by()
    }

    /// The definition that clients see.
    pub fn tool(&self) -> &'a Arc<McpTool> {
        &self.target.tool
    }

    /// The tool's own name, without prefix.
    pub fn own_name(&self) -> &'a str {
        &self.target.name
    }

    /// Its names, for rules about callers.
    pub fn called(&self) -> ToolName<'a> {
        self.target.called()
    }

    /// The component that has it.
    pub fn component(&self) -> &'a Arc<LoadedComponent> {
        &self.target.component
    }

    /// Command line and input of its program; `None` for a tool of another shape.
    pub fn program(&self) -> Option<&'a Program> {
        self.target.program.as_deref()
    }

    /// Its grants.
    pub fn grants(&self) -> &'a Grants {
        self.target.capabilities.grants()
    }

    /// When a person has to confirm calls, if ever.
    pub fn approval(&self) -> Option<Approval> {
        self.target.approval
    }

    /// Identity of its slots, which generations may share.
    pub fn places(&self) -> usize {
        Arc::as_ptr(&self.target.admission).addr()
    }

    /// Number of running calls, and of waiting ones.
    pub fn load(&self) -> (usize, usize) {
        self.target.admission.load()
    }

    /// Counters of its calls.
    pub fn meters(&self) -> &'a Meters {
        &self.target.meters
    }

    /// Ends its running and waiting calls because its grants were narrowed. `removed` is true if
    /// the component has left the manifest.
    pub fn narrow(&self, removed: bool) {
        if let Some(narrowed) = &self.target.narrowed {
            narrowed.begin(removed);
        }
    }
}
