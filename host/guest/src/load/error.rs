//! The reasons why a file is not a tool component: one variant per cause, with a hint.
use toolcell_policy::is_later_wasi;
use toolcell_policy::quantity::show_bytes;

use super::features::OffFeature;
use super::file_kind::FileKind;
use super::preview1::NotAProgram;
use super::survey::{Excess, Refusal};
use crate::shape::ShapeError;
use toolcell_wall::digest::ComponentDigest;
use toolcell_wall::load::COMPONENT_BYTES_MAX;
use toolcell_wall::load::inspection::TOOLS;
use toolcell_wall::load::offers::with_offer;

/// Why a file is not a tool component.
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
    /// Another kind of file, known by its first bytes.
    #[error("{0}, not a WebAssembly component")]
    OtherFile(FileKind),
    /// A core module that is not a program for WASI preview 1.
    #[error("a core WebAssembly module, not a component or a WASI program: {0}")]
    CoreModule(NotAProgram),
    /// It has more parts than one call may have.
    #[error("too many parts: the tool is made of more instances, memories or tables than one call may have: {0}")]
    Parts(Excess),
    /// It has more parts than this host reads or compiles. The engine never got it.
    #[error("{0}")]
    TooMuch(Excess),
    /// WebAssembly that does not validate or compile.
    #[error("not a valid component: {reason}")]
    Invalid {
        /// The engine's message.
        reason: String,
    },
    /// WebAssembly that would be valid with features that are off.
    #[error("uses {}, which the engine has off", .0.iter().map(|feature| feature.name).collect::<Vec<_>>().join(", "))]
    Features(Vec<&'static OffFeature>),
    /// The engine panicked.
    #[error("the engine failed at this component: {reason} (component {digest}, toolcell {})", env!("CARGO_PKG_VERSION"))]
    EngineFault {
        /// The engine's message, on one line.
        reason: String,
        /// The digest of the component.
        digest: ComponentDigest,
    },
    /// Imports the host does not offer.
    #[error("imports what this host does not offer: {}", .names.iter().map(|name| with_offer(name)).collect::<Vec<_>>().join(", "))]
    Imports {
        /// Every such import.
        names: Vec<String>,
    },
    /// An import or export has the right name but the wrong type.
    #[error("does not fit what this host offers: {reason}")]
    Mismatch {
        /// The engine's message.
        reason: String,
    },
    /// Exports no tools.
    #[error("exports no tools: neither \"toolcell:mcp/tools\" nor functions; it exports {}", listed(.exports))]
    NotATool {
        /// What it exports instead.
        exports: Vec<String>,
    },
    /// The names of its functions, parameters and types take too much memory, counted once for each
    /// use.
    #[error("its functions have names that come to more than {} in all", show_bytes(*.bytes_max))]
    Names {
        /// The most bytes that they may take.
        bytes_max: u64,
    },
    /// Built against a contract that this host does not speak.
    #[error("built against \"{found}\"; this host speaks {}", contract_name())]
    Contract {
        /// The export it has.
        found: String,
    },
}

/// The export of a component that answers HTTP requests, up to its version.
const HTTP_SERVER: &str = "wasi:http/incoming-handler@";

impl LoadError {
    /// A hint on how to fix it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "build it with optimizations and without debug information",
            Self::Parts(_) | Self::TooMuch(_) => {
                "what tools are made with stays far below this: a generator that multiplies is at work, or the file was made to harm"
            }
            Self::NotWasm => "`source` must name a built .wasm component",
            Self::OtherFile(kind) => kind.hint(),
            Self::CoreModule(why) => why.hint(),
            // The parser's own message; a fixture triggers each.
            Self::Invalid { reason } if reason.contains("component model map feature") => {
                "maps are not part of WIT's released versions: write list<tuple<KEY, VALUE>>"
            }
            Self::Invalid { reason } if reason.contains("fixed-length lists feature") => {
                "lists of fixed length are not part of WIT's released versions: write a list, or a tuple"
            }
            Self::Invalid { reason } if reason.contains("reexport of an imported function") => {
                "the engine hands no import on as an export: wrap it in a function of the component's own"
            }
            Self::Invalid { .. } => "the file is damaged, or made by a tool that does not fit: build it again",
            Self::Features(features) => features.first().map_or("", |feature| feature.without),
            Self::EngineFault { .. } => {
                "this is a fault of the engine, which no setting mends: report it with this line, and with the component if you may share it"
            }
            Self::Imports { names } if names.iter().any(|name| is_later_wasi(name)) => {
                "host/docs/interfaces.md has the interfaces of WASI 0.3 that are offered: import no other"
            }
            Self::Imports { .. } => {
                "a tool may import WASI 0.2 (cli, clocks, config, filesystem, http client, io, keyvalue, logging, random, sockets) and toolcell:mcp"
            }
            Self::Mismatch { .. } => "build it again against the WIT packages in wit/",
            Self::NotATool { exports } if exports.iter().any(|name| name.starts_with(HTTP_SERVER)) => {
                "it answers HTTP requests, not calls: export what it does as functions over WIT values as well, which become tools; a server that speaks MCP itself needs no host of tools: `wasmtime serve` runs it"
            }
            Self::NotATool { .. } => {
                "export functions over WIT values, or build it against the world \"tool-component\" in wit/"
            }
            Self::Names { .. } => "export fewer functions, or give them shorter names",
            Self::Contract { .. } => "build it again against the WIT packages in wit/",
        }
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Sorts the linker's reasons for refusing a component. Its message has the interface and the
/// function in backquotes, and the difference after the last of them.
pub(super) fn mismatch(reason: String) -> LoadError {
    let mut quoted = reason.split('`').skip(1).step_by(2);
    let difference = reason.rsplit_once("has the wrong type: ").map(|(_, difference)| difference);
    let reason = match (quoted.next(), quoted.next(), difference) {
        (Some(interface), Some(item), Some(difference)) if difference.ends_with("implementation is missing") => {
            format!("it imports \"{item}\" of {interface}, which has no such item here")
        }
        (Some(interface), Some(item), Some(difference)) => {
            format!("it imports \"{item}\" of {interface} with another type than it has here: {difference}")
        }
        _ => reason,
    };
    LoadError::Mismatch { reason }
}

fn contract_name() -> String {
    format!("{TOOLS}1.x")
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

/// Sorts the engine's reasons for refusing a component.
pub(super) fn invalid(reason: String) -> LoadError {
    LoadError::Invalid { reason }
}

impl From<ShapeError> for LoadError {
    fn from(error: ShapeError) -> Self {
        match error {
            ShapeError::NotATool { exports } => Self::NotATool { exports },
            ShapeError::Mismatch { reason } => Self::Mismatch { reason },
            ShapeError::Contract { found } => Self::Contract { found },
            ShapeError::Names { bytes_max } => Self::Names { bytes_max },
        }
    }
}
