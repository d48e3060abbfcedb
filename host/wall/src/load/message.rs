//! The messages between the host and a loader.
use serde::{Deserialize, Serialize};
use toolcell_policy::{Limit, Limits};
use toolcell_schema::SchemaFindings;

use super::CODE_BYTES_MAX;
use super::cost::InstanceCost;
use super::definitions::SchemaLimits;
use super::engine_name::EngineName;
use super::facts::{CodeFacts, ComponentFacts, GuestEngine};
use crate::contract::GuestTool;
use crate::failure::CallFailure;
use crate::report::{CallReport, ListedBeside};

/// Bytes of a message with a list of tools, or with facts: the same as for one about a call.
pub const MESSAGE_BYTES_MAX: usize = (16 << 20) + (64 << 10);

/// Bytes of an answer without a list: a refusal, or the missing walls.
pub const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Bytes of the facts about a component. Names of functions have at most 4 MiB, and appear up to
/// three times.
pub const FACTS_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Bytes of a list of tools, with everything that the component printed.
pub const LISTING_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// Bytes of each file that a loader fills, if it may take this much memory: files in memory count
/// as memory.
#[must_use]
pub fn file_bytes_max(memory_bytes_max: u64) -> u64 {
    memory_bytes_max.min(CODE_BYTES_MAX)
}

/// Settings of a process that compiles.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CompileSettings {
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: u64,
    /// Threads that compile.
    pub threads: u32,
    /// True if everything else on the machine has priority.
    pub gives_way: bool,
    /// Bytes of memory that the process may take.
    pub memory_bytes_max: u64,
}

/// Settings of a process that lists tools.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LinkSettings {
    /// Bytes of WebAssembly stack per call.
    pub stack_bytes: u64,
    /// Bytes of memory that the process may take.
    pub memory_bytes_max: u64,
    /// True if everything else on the machine has priority.
    pub gives_way: bool,
    /// The code that it maps.
    pub facts: CodeFacts,
}

/// From the host to a loader whose walls stand.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToLoader {
    /// Compile. The descriptors are the component's bytes, the file for its code, the file for its
    /// functions, and the functions of earlier loads, if any.
    Compile {
        /// Bytes of the functions of earlier loads.
        functions_bytes: Option<u64>,
    },
    /// Link. The descriptor is the component's bytes.
    Link,
    /// List the tools. The descriptor has the descriptions from outside of the component.
    List {
        /// The limits, by their keys.
        limits: Vec<(String, u64)>,
        /// The limits on the schemas of the tools.
        schemas: SchemaLimits,
    },
}

/// From a loader to the host.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromLoader {
    /// The walls stand.
    Ready {
        /// The missing ones, by name, each with the reason.
        missing: Vec<(String, String)>,
        /// The engines of a process that compiles. It has not read anything of a component yet.
        /// `None` for any other process, which has.
        engine: Option<EngineName>,
    },
    /// The component is refused.
    Refused {
        /// Why.
        message: String,
        /// Advice.
        hint: String,
        /// Its exports and imports, if it is a component that compiles.
        shown: Option<Box<ExternNames>>,
    },
    /// It is compiled, and its code is written.
    Compiled {
        /// What an instance costs the host.
        cost: InstanceCost,
        /// The engine that the code is for.
        engine: GuestEngine,
        /// True if functions are written.
        functions: bool,
    },
    /// It is linked.
    Linked(Box<ComponentFacts>),
    /// A description of it does not parse as WIT.
    NotWit(String),
    /// Its tools are listed.
    Listed(Box<ListReport>),
    /// The loader itself failed.
    Failed(String),
}

/// The report on listing tools.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListReport {
    /// The tools, or why they could not be listed.
    pub report: CallReport<Vec<GuestTool>>,
    /// The other entries that it lists.
    pub beside: ListedBeside,
    /// Problems of their schemas.
    pub schemas: SchemaFindings,
}

impl ListReport {
    /// The report on listing, and the findings about the schemas of what was listed.
    #[must_use]
    pub fn new(
        report: CallReport<Vec<GuestTool>>,
        beside: Result<ListedBeside, CallFailure>,
        schemas: SchemaFindings,
    ) -> Self {
        let captured = report.captured;
        let (outcome, beside) = match (report.outcome, beside) {
            (Ok(tools), Ok(beside)) => (Ok(tools), beside),
            (Err(failure), _) | (_, Err(failure)) => (Err(failure), ListedBeside::default()),
        };
        let report = outcome.map_or_else(CallReport::not_run, CallReport::without_running);
        Self { report: CallReport { captured, ..report }.to_send(), beside, schemas }
    }

    /// True if tools were listed and all of them checked, so another load would find no more.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.report.outcome.is_ok() && !self.schemas.too_late
    }

    /// The report as the host accepts it under these limits, from a process or a file.
    #[must_use]
    pub fn taken(self, limits: &Limits) -> Self {
        Self { report: self.report.taken(limits), ..self }
    }
}

/// The names of a component's exports and imports.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExternNames {
    /// Its exports.
    pub exports: Vec<String>,
    /// Its imports.
    pub imports: Vec<String>,
}

/// Limits in a message.
#[must_use]
pub fn limits_by_key(limits: &Limits) -> Vec<(String, u64)> {
    limits.entries().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The limits in a message of the host's.
#[must_use]
pub fn limits(told: &[(String, u64)]) -> Limits {
    told.iter().fold(Limits::default(), |limits, (key, value)| {
        let limit = Limit::from_key(key);
        limit.and_then(|limit| limits.with(limit, *value).ok()).unwrap_or(limits)
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use toolcell_schema::{DefinitionProblem, ToolFindings};

    use super::*;
    use crate::contract;
    use crate::encoding::{decode, encode};
    use crate::load::facts::ShapeName;
    use crate::sections::requested_permissions::CarriedPermissions;
    use crate::seeds::are_seeds;

    /// Calls `look` `times` times with these bytes, changed at random in up to four places. The
    /// same bytes in each run.
    pub(crate) fn each_changed(seed: &[u8], times: usize, look: impl Fn(&[u8])) {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut roll = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        for _ in 0..times {
            let mut bytes = seed.to_vec();
            for _ in 0..=roll() % 4 {
                let at = usize::try_from(roll()).unwrap() % bytes.len();
                match roll() % 3 {
                    0 => bytes[at] = roll().to_le_bytes()[0],
                    1 => bytes.insert(at, 0xff),
                    _ => bytes.truncate(at.max(1)),
                }
            }
            look(&bytes);
        }
    }

    #[test]
    fn changed_answers_are_decoded_or_refused_and_nothing_else() {
        let tool = contract::GuestTool {
            name: "add".to_owned(),
            title: None,
            description: "adds".to_owned(),
            input_schema_json: "{}".to_owned(),
            output_schema_json: None,
            hints: None,
            icons: Vec::new(),
            meta_json: None,
        };
        let facts = ComponentFacts {
            exports: vec!["add()".to_owned()],
            imports: Vec::new(),
            shape: ShapeName::Typed,
            is_program: false,
            left_out: Vec::new(),
            functions: Some(vec!["add".to_owned()]),
            describable: Some(["add", "add.a", "add.b"].map(str::to_owned).to_vec()),
            requested: CarriedPermissions::None,
        };
        let cost = InstanceCost { instances: 1, host_bytes: 1_600, ..InstanceCost::default() };
        let problem = DefinitionProblem::new("inputSchema", "no").hint("yes");
        let refused_tool = ToolFindings { problems: vec![problem], unapplied: Vec::new() };
        let loose_tool = ToolFindings { problems: Vec::new(), unapplied: vec!["inputSchema/pattern".to_owned()] };
        let found = SchemaFindings { tools: vec![refused_tool, loose_tool], too_late: false };
        let shown =
            ExternNames { exports: vec!["add: function".to_owned()], imports: vec!["wasi:io/poll@0.2.0".to_owned()] };
        let message = "the file is too large".to_owned();
        let hint = "build it smaller".to_owned();
        let refused = FromLoader::Refused { message, hint, shown: Some(Box::new(shown)) };
        let argument = contract::GuestPromptArgument {
            name: "code".to_owned(),
            title: None,
            description: None,
            required: true,
            values: vec!["a".to_owned()],
        };
        let prompt = contract::GuestPrompt {
            name: "review".to_owned(),
            title: None,
            description: None,
            arguments: vec![argument],
            icons: Vec::new(),
            meta_json: None,
        };
        let resource = contract::ListedResource {
            uri: "note:///{topic}".to_owned(),
            name: "note".to_owned(),
            title: None,
            description: None,
            mime_type: Some("text/plain".to_owned()),
            size: None,
            annotations: None,
            icons: Vec::new(),
            meta_json: Some("{}".to_owned()),
            variables: vec![contract::TemplateVariable { name: "topic".to_owned(), values: vec!["disk".to_owned()] }],
        };
        let tools = CallReport::without_running(vec![tool.clone(), tool]);
        let beside = ListedBeside { prompts: vec![prompt], resources: vec![resource] };
        let seeds = [
            (
                "ready",
                FromLoader::Ready {
                    missing: vec![("landlock".to_owned(), "none".to_owned())],
                    engine: Some(EngineName::new([7; 32])),
                },
            ),
            ("refused", refused),
            ("compiled", FromLoader::Compiled { cost, engine: GuestEngine::Async, functions: true }),
            ("linked", FromLoader::Linked(Box::new(facts))),
            ("not_wit", FromLoader::NotWit("an interface is missing".to_owned())),
            ("listed", FromLoader::Listed(Box::new(ListReport::new(tools, Ok(beside), found)))),
            ("failed", FromLoader::Failed("no room".to_owned())),
        ];
        let seeds = seeds.map(|(name, seed)| (name, encode(&seed).unwrap()));
        are_seeds("loaders", &seeds);
        for (_, seed) in seeds {
            assert!(decode::<FromLoader>(&seed).is_ok());
            each_changed(&seed, 20_000, |bytes| {
                if let Ok(FromLoader::Listed(listing)) = decode::<FromLoader>(bytes) {
                    let _ = listing.taken(&Limits::default());
                }
            });
        }
    }
}
