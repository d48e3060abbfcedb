//! Facts about a component that its loader reports.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::cost::InstanceCost;
use crate::digest::ComponentDigest;
use crate::sections::requested_permissions::CarriedPermissions;

/// What is known of the bytes that code is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFacts {
    /// Their digest.
    pub digest: ComponentDigest,
    /// Their number.
    pub size_bytes: u64,
    /// True for a program for WASI preview 1, which the official adapter turns into a component.
    pub adapted: bool,
}

/// The engine that runs a component. A process has one of them, so components of different engines
/// never share one, and code of one engine does not work in the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum GuestEngine {
    /// For components whose functions run from beginning to end.
    #[default]
    Sync,
    /// For components that use the async part of the component model.
    Async,
}

impl GuestEngine {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sync, Self::Async];
}

/// Facts about a component that are not in its code.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CodeFacts {
    /// The bytes that the code was made from.
    pub source: SourceFacts,
    /// The engine that the code is for.
    pub engine: GuestEngine,
    /// What one instance costs the host.
    pub cost: InstanceCost,
}

/// Facts found by linking a component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComponentFacts {
    /// The names of its exports.
    pub exports: Vec<String>,
    /// The names of its imports.
    pub imports: Vec<String>,
    /// The shape that makes tools of it.
    pub shape: ShapeName,
    /// True if it is a command-line program. A typed component may be one as well.
    pub is_program: bool,
    /// Functions that are not tools.
    pub left_out: Vec<LeftOutFunction>,
    /// The functions of a typed component that are tools, as in WIT with interface and version, in
    /// the order in which they are listed. `None` for any other component.
    pub functions: Option<Vec<String>>,
    /// Everything of a typed component that can be described; `None` for any other component.
    pub describable: Option<Vec<String>>,
    /// The permission requests that it carries.
    pub requested: CarriedPermissions,
}

/// The shape of a component by its name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ShapeName {
    /// Exports the tool contract.
    Contract,
    /// Exports functions over WIT values.
    Typed,
    /// Exports `wasi:cli/run`, or is a program for WASI preview 1.
    Program,
}

impl ShapeName {
    /// Its name in texts and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Typed => "typed",
            Self::Program => "program",
        }
    }
}

/// A function that is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutFunction {
    /// As in WIT, with its interface and version.
    pub function: String,
    /// Why: "its parameter \"at\" has a resource".
    pub reason: String,
}

impl fmt::Display for LeftOutFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\" ({})", self.function, self.reason)
    }
}
