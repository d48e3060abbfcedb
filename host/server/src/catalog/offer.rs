//! One tool as a catalog offers it, for whoever lists tools or looks after them. Must not hold: calls of it.
use std::sync::Arc;

use toolcell_mcp::Tool;
use toolcell_policy::{Grants, Program};

use super::meters::Meters;
use super::{CallTarget, LoadedComponent};

/// One tool of a catalog: its definition, and how it fares.
pub struct Offer<'a> {
    pub(super) target: &'a Arc<CallTarget>,
    pub(super) tool: &'a Arc<Tool>,
    pub(super) called_by: Option<Vec<String>>,
}

impl<'a> Offer<'a> {
    /// Who may call it, in words; `None`: everybody.
    pub fn called_by(&self) -> Option<&[String]> {
        self.called_by.as_deref()
    }

    /// The definition that clients see.
    pub fn tool(&self) -> &'a Arc<Tool> {
        self.tool
    }

    /// The tool's own name, without prefix.
    pub fn own_name(&self) -> &'a str {
        &self.target.name
    }

    /// The component that it belongs to.
    pub fn component(&self) -> &'a Arc<LoadedComponent> {
        &self.target.component
    }

    /// How its program is run; nothing for a tool of any other shape.
    pub fn program(&self) -> Option<&'a Program> {
        self.target.program.as_deref()
    }

    /// What it may reach.
    pub fn grants(&self) -> &'a Grants {
        self.target.reach.grants()
    }

    /// Whether a person confirms its calls.
    pub fn is_confirmed(&self) -> bool {
        self.target.approval.is_some()
    }

    /// Tells its places from those of other tools; generations may share them.
    pub fn places(&self) -> usize {
        Arc::as_ptr(&self.target.admission).addr()
    }

    /// Calls of it that run, and calls that wait.
    pub fn load(&self) -> (usize, usize) {
        self.target.admission.load()
    }

    /// What was counted of its calls.
    pub fn meters(&self) -> &'a Meters {
        &self.target.meters
    }

    /// Ends the calls of it that run or wait: what they may reach was narrowed.
    pub fn narrow(&self) {
        if let Some(narrowed) = &self.target.narrowed {
            narrowed.cancel();
        }
    }
}
