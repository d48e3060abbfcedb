//! Loading a component: bytes in, something that can be called out, or an error that names what is wrong.
use std::sync::Arc;

use toolcell_policy::quantity::show_bytes;
use toolcell_policy::{Limit, Limits};
use wasmtime::component::{Component, InstancePre};

use crate::caller::NoCaller;
use crate::contract;
use crate::failure::Failure;
use crate::load::digest::Digest;
use crate::load::inspect::Inspection;
use crate::load::precompiled::{self, CodeOrigin, NotCompiled};
use crate::load::preview1::{self, NotAProgram};
use crate::load::sandbox::{Lane, Sandbox};
use crate::load::survey::{COMPONENT_BYTES_MAX, Excess, Refusal, Survey};
use crate::run::call::{self, CallInput, CallReport, Supply, Terms};
use crate::run::start::Start;
use crate::shape::typed::{Descriptions, LeftOut};
use crate::shape::{Exports, Shape, ShapeName};
use crate::wasi::reach::Reach;
use crate::wasi::state::CallState;

/// The first eight bytes of a component: magic, version 13, layer 1.
const COMPONENT_PREAMBLE: [u8; 8] = *b"\0asm\x0d\0\x01\0";
/// The first four bytes of anything WebAssembly.
const WASM_MAGIC: [u8; 4] = *b"\0asm";

/// Why a file is no tool component.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// Larger than [`COMPONENT_BYTES_MAX`].
    #[error("the file has {bytes} bytes; a component may have {COMPONENT_BYTES_MAX}")]
    TooLarge {
        /// The file's size.
        bytes: u64,
    },
    /// Not WebAssembly at all.
    #[error("not a WebAssembly component: the file does not begin like one")]
    NotWasm,
    /// A core module that is no program for WASI preview 1.
    #[error("a core WebAssembly module, not a component, and no WASI program: {0}")]
    CoreModule(NotAProgram),
    /// Made of more than one call may have.
    #[error("too many parts: the tool is made of more instances, memories or tables than one call may have: {0}")]
    Parts(Excess),
    /// Made of more than this host reads or compiles. Nothing of it was handed to the engine.
    #[error("made of too much: {0}")]
    TooMuch(Excess),
    /// WebAssembly that does not validate or compile, or needs a feature that is off.
    #[error("not a valid component: {reason}")]
    Invalid {
        /// What the engine says.
        reason: String,
    },
    /// Made of async functions, or of streams and futures: WASI 0.3, which is off.
    #[error("uses async functions, streams or futures of components, which are off: {reason}")]
    Async {
        /// What the engine says.
        reason: String,
    },
    /// Imports the host does not offer.
    #[error("imports what this host does not offer: {}", .names.join(", "))]
    Imports {
        /// Every such import.
        names: Vec<String>,
    },
    /// An import or export has the right name and another type.
    #[error("does not fit what this host offers: {reason}")]
    Mismatch {
        /// What the engine says.
        reason: String,
    },
    /// Exports no tools.
    #[error("exports no tools: neither \"toolcell:mcp/tools\" nor functions; it exports {}", listed(.exports))]
    NotATool {
        /// What it does export.
        exports: Vec<String>,
    },
    /// Two functions would be tools of the same name.
    #[error("\"{}\" and \"{}\" would both be the tool \"{tool}\"", .functions[0], .functions[1])]
    SameName {
        /// The tool's name.
        tool: String,
        /// Both functions, as in WIT.
        functions: [String; 2],
    },
    /// The names of its functions, of their parameters and types take more memory, once for each use, than they may.
    #[error("its functions have names that come to more than {} in all", show_bytes(*.bytes_max))]
    Names {
        /// What they may take, in bytes.
        bytes_max: u64,
    },
    /// Built against a contract that this host does not speak.
    #[error("built against \"{found}\"; this host speaks {}", contract_name())]
    Contract {
        /// The export it has.
        found: String,
    },
}

impl LoadError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "build it with optimizations and without debug information",
            Self::Parts(_) | Self::TooMuch(_) => {
                "what tools are made with stays far below this: a generator that multiplies is at work, or the file was made to harm"
            }
            Self::NotWasm => "`source` must name a built .wasm component",
            Self::CoreModule(why) => why.hint(),
            // The parser's own words; a fixture has each.
            Self::Invalid { reason } if reason.contains("component model map feature") => {
                "maps are no part of WIT's released versions: write list<tuple<KEY, VALUE>>"
            }
            Self::Invalid { reason } if reason.contains("fixed-length lists feature") => {
                "lists of fixed length are no part of WIT's released versions: write a list, or a tuple"
            }
            Self::Invalid { .. } => {
                "threads, 64-bit memories, several memories in a module and garbage collection are off"
            }
            Self::Async { .. } => "build it for WASI 0.2, with functions that are not async",
            Self::Imports { .. } => {
                "a tool may import WASI 0.2 (cli, clocks, config, filesystem, http client, io, keyvalue, random, sockets) and toolcell:mcp"
            }
            Self::Mismatch { .. } => "build it again against the WIT packages in wit/",
            Self::NotATool { .. } => {
                "export functions over WIT values, or build it against the world \"tool-component\" in wit/"
            }
            Self::SameName { .. } => "rename one of them in its WIT",
            Self::Names { .. } => "export fewer functions, or give them shorter names",
            Self::Contract { .. } => "build it again against the WIT packages in wit/",
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn contract_name() -> String {
    format!("{}1.x", crate::shape::CONTRACT_EXPORT)
}

/// A component that was compiled, linked and found to have tools. Cheap to clone is its `Arc`; calls borrow it.
pub struct ToolComponent {
    sandbox: Sandbox,
    pre: InstancePre<CallState>,
    shape: Shape,
    slot_units: u32,
    pooled: bool,
    inspection: Inspection,
    origin: CodeOrigin,
    survey: Survey,
    start: Start,
}

/// What became of a component's bytes.
pub(crate) struct Compiled<'s> {
    pub(crate) component: Component,
    pub(crate) origin: CodeOrigin,
    pub(crate) lane: &'s Lane,
    pub(crate) survey: Survey,
}

impl ToolComponent {
    /// Compiles and links these bytes. Takes a core for about a second per megabyte: call it off the hot path.
    ///
    /// # Errors
    /// [`LoadError`], naming the import, export or rule that does not fit. Nothing of the component has run.
    pub fn load(sandbox: &Sandbox, bytes: &[u8]) -> Result<Self, LoadError> {
        let Compiled { component, origin, lane, survey } = compile(sandbox, bytes)?;
        let inspection = Inspection::of(&component, bytes);
        if !inspection.not_offered().is_empty() {
            return Err(LoadError::Imports { names: inspection.not_offered().to_vec() });
        }
        let mismatch = |error: wasmtime::Error| LoadError::Mismatch { reason: one_line(&error) };
        let pre = lane.linker().instantiate_pre(&component).map_err(mismatch)?;
        let shape = Shape::of((&component, bytes), &pre, &inspection)?;
        let pooled = std::ptr::eq(lane, sandbox.pooled());
        Ok(Self {
            sandbox: sandbox.clone(),
            pre,
            shape,
            slot_units: sandbox.slots().units(&component),
            pooled,
            inspection,
            origin,
            survey,
            start: Start::default(),
        })
    }

    /// What it is, exports and imports.
    #[must_use]
    pub fn inspection(&self) -> &Inspection {
        &self.inspection
    }

    /// Whether its calls run in slots of the pool. One that does not fit a slot (a table of more than 32,768 elements)
    /// has its memory mapped for each call, which costs more.
    #[must_use]
    pub fn is_pooled(&self) -> bool {
        self.pooled
    }

    /// Where its code came from.
    #[must_use]
    pub fn code_origin(&self) -> CodeOrigin {
        self.origin
    }

    /// The digest of the bytes it was compiled from.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.inspection.digest()
    }

    /// What makes tools of it.
    #[must_use]
    pub fn shape(&self) -> ShapeName {
        self.shape.name()
    }

    /// Functions of a typed component that are no tools, as no JSON stands for what they take or give.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        match &self.shape {
            Shape::Typed(functions) => functions.left_out(),
            Shape::Contract(_) | Shape::Program(_) => &[],
        }
    }

    /// How many tools a typed component makes, before any of them is described; `None` of any other.
    #[must_use]
    pub fn functions(&self) -> Option<usize> {
        match &self.shape {
            Shape::Typed(functions) => Some(functions.len()),
            Shape::Contract(_) | Shape::Program(_) => None,
        }
    }

    /// Everything of a typed component that [`Descriptions::given`] can describe; `None` of any other.
    #[must_use]
    pub fn describable(&self) -> Option<Vec<String>> {
        match &self.shape {
            Shape::Typed(functions) => Some(functions.describable()),
            Shape::Contract(_) | Shape::Program(_) => None,
        }
    }

    /// The component's tools. One that keeps the contract is asked for them, in a sandbox with these limits and nothing
    /// granted: what a component says of itself does not depend on what it can reach. Of any other nothing runs: a typed one's
    /// are its functions, with the descriptions added to what it carries itself, and those of a program are the manifest's.
    /// What a typed one's definitions come to is counted before any is made: they take no more than a list of the contract's may.
    pub async fn list_tools(&self, limits: &Limits, descriptions: &Descriptions) -> CallReport<Vec<contract::Tool>> {
        if let Shape::Typed(functions) = &self.shape {
            return match functions.tools(descriptions, limits.host_data_bytes()) {
                Some(tools) => CallReport::without_running(tools),
                None => CallReport::not_run(Failure::over(Limit::HostData, limits)),
            };
        }
        if let Shape::Program(_) = &self.shape {
            return CallReport::without_running(Vec::new());
        }
        let terms = Terms { limits, reach: &Reach::sealed(""), caller: Arc::new(NoCaller), supply: Supply::Fresh };
        call::run(self, terms, async |store, exports| match exports {
            Exports::Contract(bindings) => bindings.toolcell_mcp_tools().call_list_tools(store).await,
            Exports::Typed(_) | Exports::Program(_) => {
                Err(wasmtime::Error::msg("the component lists its tools by their types"))
            }
        })
        .await
    }

    /// Runs one call. Dropping the future stops the guest.
    pub async fn call_tool(&self, input: CallInput<'_>) -> CallReport<contract::CallResult> {
        call::call_tool(self, input).await
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(crate) fn pre(&self) -> &InstancePre<CallState> {
        &self.pre
    }

    pub(crate) fn start(&self) -> &Start {
        &self.start
    }

    pub(crate) fn tools(&self) -> &Shape {
        &self.shape
    }

    /// What one instance of it takes of the host.
    pub(crate) fn survey(&self) -> &Survey {
        &self.survey
    }

    pub(crate) fn slot_units(&self) -> u32 {
        self.slot_units
    }
}

/// Tells what is no component apart, counts what it is made of, then compiles: for the pool where it fits, else to run on demand.
pub(crate) fn compile<'s>(sandbox: &'s Sandbox, bytes: &[u8]) -> Result<Compiled<'s>, LoadError> {
    if bytes.len() as u64 > COMPONENT_BYTES_MAX {
        return Err(LoadError::TooLarge { bytes: bytes.len() as u64 });
    }
    if !bytes.starts_with(&WASM_MAGIC) {
        return Err(LoadError::NotWasm);
    }
    let survey = if preview1::is_module(bytes) {
        let survey = Survey::of_program(bytes)?;
        preview1::check(bytes).map_err(LoadError::CoreModule)?;
        survey
    } else if bytes.starts_with(&COMPONENT_PREAMBLE) {
        Survey::of(bytes)?
    } else {
        return Err(LoadError::NotWasm);
    };
    let lane = if survey.fits_pool() {
        sandbox.pooled()
    } else {
        sandbox.on_demand().map_err(|error| invalid(one_line(&error)))?
    };
    let (component, origin) = precompiled::component(lane.engine(), sandbox.cache(), bytes)?;
    Ok(Compiled { component, origin, lane, survey })
}

impl From<Refusal> for LoadError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Excess(excess) if excess.bound.is_of_calls() => Self::Parts(excess),
            Refusal::Excess(excess) => Self::TooMuch(excess),
            Refusal::Broken(reason) => invalid(reason),
        }
    }
}

impl From<NotCompiled> for LoadError {
    fn from(error: NotCompiled) -> Self {
        match error {
            NotCompiled::Refused(refusal) => refusal.into(),
            NotCompiled::Engine(error) => invalid(one_line(&error)),
        }
    }
}

/// Sorts what the engine says of a component that it does not take.
fn invalid(reason: String) -> LoadError {
    // The engine names each of its features so; one test trips this one.
    if reason.contains("component model async") { LoadError::Async { reason } } else { LoadError::Invalid { reason } }
}

/// The error and its causes on one line, without the backtrace that `Debug` may append.
pub(crate) fn one_line(error: &wasmtime::Error) -> String {
    let causes: Vec<String> = error.chain().map(|cause| cause.to_string().replace('\n', " ")).collect();
    causes.join(": ")
}
