//! The messages between the host and a loader. Must not hold: what is done about one.
use serde::{Deserialize, Serialize};
use toolcell_policy::{Limit, Limits};
use toolcell_schema::SchemaFindings;
use toolcell_wall::load::CODE_BYTES_MAX;
use toolcell_wall::load::cost::InstanceCost;
use toolcell_wall::load::definitions::SchemaLimits;
use toolcell_wall::load::engine_name::EngineName;
use toolcell_wall::load::facts::{CodeFacts, ComponentFacts};
use toolcell_walls::link::FRAME_BYTES_MAX;

use crate::run::call::{CallReport, ListedBeside, SpentInstance};
use crate::wall::message::WireFailure;
use crate::wasi::cli::capture::Captured;
use toolcell_wall::contract;
use toolcell_wall::failure::Failure;

/// Bytes of an answer that holds no list: a refusal, or the walls that are missing.
pub(crate) const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Bytes of the facts about a component. Names of functions have [at most 4 MiB](LoadError::Names),
/// and are told up to three times.
pub(crate) const FACTS_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// Bytes of a list of tools, with all that the component printed.
pub(crate) const LISTING_BYTES_MAX: usize = FRAME_BYTES_MAX;

/// Bytes of each file that a loader fills, which may take this much memory: files in memory are
/// memory as well.
pub(crate) fn file_bytes_max(memory_bytes_max: u64) -> u64 {
    memory_bytes_max.min(CODE_BYTES_MAX)
}

/// Settings of a process that compiles.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct CompileSettings {
    pub(crate) stack_bytes: u64,
    pub(crate) threads: u32,
    /// True if every other thread of the machine goes first.
    pub(crate) gives_way: bool,
    pub(crate) memory_bytes_max: u64,
}

/// Settings of a process that lists tools.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LinkSettings {
    pub(crate) stack_bytes: u64,
    pub(crate) memory_bytes_max: u64,
    /// True if every other thread of the machine goes first.
    pub(crate) gives_way: bool,
    pub(crate) facts: CodeFacts,
}

/// From the host to a loader whose walls stand.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToLoader {
    /// Compile. The descriptors are the component's bytes, the file for its code, the file for its
    /// functions, and the functions of earlier loads where there are any.
    Compile {
        /// Bytes of the functions of earlier loads.
        functions_bytes: Option<u64>,
    },
    /// Link. The descriptor is the component's bytes.
    Link,
    /// List the tools. The descriptor is what is written about them outside of the component.
    List {
        /// The limits, by their keys.
        limits: Vec<(String, u64)>,
        /// Those on the schemas of the tools.
        schemas: SchemaLimits,
    },
}

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

/// The names of a component's exports and imports.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Shown {
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<String>,
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

/// Limits in a message.
pub(crate) fn told(limits: &Limits) -> Vec<(String, u64)> {
    limits.entries().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Limits of a message of the host's.
pub(crate) fn limits(told: &[(String, u64)]) -> Limits {
    told.iter().fold(Limits::default(), |limits, (key, value)| {
        let limit = Limit::from_key(key);
        limit.and_then(|limit| limits.with(limit, *value).ok()).unwrap_or(limits)
    })
}
