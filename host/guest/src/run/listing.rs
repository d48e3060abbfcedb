//! The list of a component's tools, with all problems found in it.
use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;

use crate::load::component::ToolComponent;
use crate::shape::typed::Descriptions;
use toolcell_wall::contract;
use toolcell_wall::failure::CallFailure;
use toolcell_wall::load::definitions::{SchemaLimits, check_definitions};
use toolcell_wall::report::{CallReport, ListedBeside};

/// The result of listing, before anybody decides on it.
pub(crate) struct RawListing {
    pub(crate) report: CallReport<Vec<contract::GuestTool>>,
    pub(crate) beside: Result<ListedBeside, CallFailure>,
    pub(crate) schemas: SchemaFindings,
}

impl ToolComponent {
    /// Lists its entries, and compiles the schemas of its tools for what is wrong with them.
    pub(crate) async fn list_checked(
        &self,
        limits: &Limits,
        descriptions: &Descriptions,
        schemas: &SchemaLimits,
    ) -> RawListing {
        let source = descriptions.dev_source.as_deref();
        let report = match self.import_dev_source(limits, source).await {
            CallReport { outcome: Err(failure), captured, .. } => {
                CallReport { captured, ..CallReport::not_run(failure) }
            }
            CallReport { outcome: Ok(()), .. } => self.list_tools(limits, descriptions).await,
        };
        let schemas = check_definitions(report.outcome.as_deref().unwrap_or_default(), schemas);
        let beside = match report.outcome {
            Ok(_) => self.list_beside_tools(limits, source).await,
            Err(_) => Ok(ListedBeside::default()),
        };
        RawListing { report, beside, schemas }
    }
}
