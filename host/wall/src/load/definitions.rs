//! The schemas of listed tools, compiled to find their problems.
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolcell_policy::LoadLimits;
use toolcell_schema::{SchemaBudget, SchemaFindings};

use crate::contract::GuestTool;

/// The limits on the schemas of one component.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct SchemaLimits {
    tools: usize,
    definition_bytes: usize,
    /// Time for all of them.
    pub time: Duration,
}

impl SchemaLimits {
    /// The limits of loading, with this much time left.
    #[must_use]
    pub fn of(limits: &LoadLimits, time: Duration) -> Self {
        Self { tools: limits.tools(), definition_bytes: limits.definition_bytes(), time }
    }

    /// The bounds that decide which tools are checked.
    #[must_use]
    pub fn bounds(&self) -> (u64, u64) {
        (self.tools as u64, self.definition_bytes as u64)
    }
}

/// Compiles the schemas of all these tools within the time and the memory of one component, and
/// returns their problems. The author of a schema decides how much work it is, within bounds: a
/// process that does it can be killed.
///
/// Tools past the limits of loading are not checked, since they are refused anyway.
#[must_use]
pub fn check_definitions(tools: &[GuestTool], limits: &SchemaLimits) -> SchemaFindings {
    let texts = tools.iter().take(limits.tools).map(|tool| {
        let input = tool.input_schema_json.as_str();
        let output = tool.output_schema_json.as_deref();
        let bytes = input.len() + output.map_or(0, str::len);
        (bytes <= limits.definition_bytes).then_some((input, output))
    });
    SchemaFindings::of(texts, SchemaBudget::within(limits.time))
}
