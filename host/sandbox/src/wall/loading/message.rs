//! The messages between the host and a loader. Must not hold: what is done about one.
use serde::{Deserialize, Serialize};
use toolcell_policy::Limits;
use toolcell_schema::SchemaFindings;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::ComponentFacts;
use toolcell_wall::load::message::{MESSAGE_BYTES_MAX, Shown};
use toolcell_walls::link::FRAME_BYTES_MAX;

use crate::run::call::{CallReport, ListedBeside, SpentInstance};
use crate::wall::message::WireFailure;
use crate::wasi::cli::capture::Captured;
use toolcell_wall::contract;
use toolcell_wall::failure::Failure;

// A frame holds the largest of them.
const _: () = assert!(MESSAGE_BYTES_MAX <= FRAME_BYTES_MAX);

/// From a loader to the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromLoader {
    /// The walls are up.
    Ready {
        /// Those that do not stand, by name, each with the reason.
        missing: Vec<(String, String)>,
        /// The engine of a process that compiles. It has read nothing of a component yet; of any
        /// other process, which has, there is none.
        engine: Option<EngineName>,
    },
    /// The component is refused.
    Refused {
        /// Why.
        message: String,
        /// Advice.
        hint: String,
        /// Its exports and imports, where it is a component that compiles.
        shown: Option<Box<Shown>>,
    },
    /// It is compiled, and its code is written.
    Compiled {
        cost: InstanceCost,
        /// True if functions are written.
        functions: bool,
    },
    /// It is linked.
    Linked(Box<ComponentFacts>),
    /// A text about it is no WIT.
    NotWit(String),
    /// Its tools are listed.
    Listed(Box<WireListing>),
    /// The loader itself failed.
    Failed(String),
}

/// The report on listing tools.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WireListing {
    outcome: Result<Vec<contract::Tool>, WireFailure>,
    beside: ListedBeside,
    schemas: SchemaFindings,
    printed: String,
    dropped_bytes: u64,
}

impl WireListing {
    /// The report on listing, and the findings about the schemas of what was listed.
    pub(crate) fn new(
        report: CallReport<Vec<contract::Tool>>,
        beside: Result<ListedBeside, Failure>,
        schemas: SchemaFindings,
    ) -> Self {
        let CallReport { outcome, captured, .. } = report;
        let (outcome, beside) = match (outcome, beside) {
            (Ok(tools), Ok(beside)) => (Ok(tools), beside),
            (Err(failure), _) | (_, Err(failure)) => (Err(WireFailure::from(failure)), ListedBeside::default()),
        };
        Self { outcome, beside, schemas, printed: captured.text, dropped_bytes: captured.dropped_bytes }
    }

    /// True if tools were listed, and all of them looked at: another load would find no more.
    pub(crate) fn is_whole(&self) -> bool {
        self.outcome.is_ok() && !self.schemas.too_late
    }

    /// The report of listing under these limits, what else is listed, and the findings.
    pub(crate) fn into_report(
        self,
        limits: &Limits,
    ) -> (CallReport<Vec<contract::Tool>>, ListedBeside, SchemaFindings) {
        let Self { outcome, beside, schemas, mut printed, dropped_bytes } = self;
        let room = usize::try_from(limits.log_bytes()).unwrap_or(usize::MAX);
        // Bytes that were no text have become three times as long.
        printed.truncate(printed.floor_char_boundary(room.saturating_mul(3)));
        let report = CallReport {
            outcome: outcome.map_err(|failure| failure.into_failure(limits)),
            captured: Captured { text: printed, dropped_bytes },
            usage: Default::default(),
            denials: Vec::new(),
            unfit: None,
            spent: SpentInstance::default(),
            kept: false,
        };
        (report, beside, schemas)
    }
}
