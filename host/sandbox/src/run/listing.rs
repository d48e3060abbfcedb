//! The list of a component's tools, with all that is found in it: made, or kept from an earlier
//! start. Must not hold: how a component is asked for it (that is `call`), or lists of loaders.
use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;

use super::call::{CallReport, ListedBeside};
use crate::bindings::contract;
use crate::failure::Failure;
use crate::load::component::ToolComponent;
use crate::shape::typed::Descriptions;
use toolcell_wall::encoding::encode;
use toolcell_wall::load::definitions::{SchemaLimits, WrittenSchemas, check_definitions};
use toolcell_wall::load::descriptions::WrittenDescriptions;

/// A list, or why there is none.
pub enum Listing {
    /// The report on listing, what else is listed, and the findings about the schemas of the tools.
    Report(Box<CallReport<Vec<contract::Tool>>>, ListedBeside, SchemaFindings),
    /// A text about the component is no WIT: its place, and the problem there.
    NotWit(String),
}

impl Listing {
    /// True if tools were listed, and time was there to look at all of them.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        match self {
            Self::Report(report, _, schemas) => report.outcome.is_ok() && !schemas.too_late,
            Self::NotWit(_) => true,
        }
    }
}

/// The result of listing, before anybody decides on it.
pub(crate) struct Found {
    pub(crate) report: CallReport<Vec<contract::Tool>>,
    pub(crate) beside: Result<ListedBeside, Failure>,
    pub(crate) schemas: SchemaFindings,
}

/// The name of everything that a list of tools depends on.
pub(crate) struct ListName(String);

impl ListName {
    /// Of a component whose code has this name. `kind` begins it. None for one whose list depends
    /// on files of `toolcell dev`.
    pub(crate) fn of(
        (kind, name): (&str, &str),
        limits: &Limits,
        (written, schemas): (&WrittenDescriptions, &SchemaLimits),
    ) -> Option<Self> {
        // The next save makes another list, and nobody asks for this one again.
        if written.dev_source.is_some() {
            return None;
        }
        let limits: Vec<(&str, u64)> = limits.entries().collect();
        // Another version of this program may describe a typed component otherwise.
        let of = (env!("CARGO_PKG_VERSION"), name, limits, written, schemas.bounds());
        Some(Self(format!("{kind}-{}", blake3::hash(&encode(&of).ok()?).to_hex())))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl ToolComponent {
    /// Lists its entries, and compiles the schemas of its tools for what is wrong with them.
    pub(crate) async fn look(&self, limits: &Limits, descriptions: &Descriptions, schemas: &SchemaLimits) -> Found {
        let source = descriptions.dev_source.as_deref();
        let report = match self.import_dev_source(limits, source).await {
            CallReport { outcome: Err(failure), captured, .. } => {
                CallReport { captured, ..CallReport::not_run(failure) }
            }
            CallReport { outcome: Ok(()), .. } => self.list_tools(limits, descriptions).await,
        };
        let tools = report.outcome.as_deref().unwrap_or_default();
        let written = tools
            .iter()
            .map(|tool| WrittenSchemas { input: &tool.input_schema_json, output: tool.output_schema_json.as_deref() });
        let schemas = check_definitions(written, schemas);
        let beside = match report.outcome {
            Ok(_) => self.list_beside_tools(limits, source).await,
            Err(_) => Ok(ListedBeside::default()),
        };
        Found { report, beside, schemas }
    }
}
