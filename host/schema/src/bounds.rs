//! Bounds on schemas, and the problems of schemas that exceed them.

use std::fmt;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// One problem of a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub struct DefinitionProblem {
    /// The field, with a JSON Pointer into a schema, such as `inputSchema/properties/city`.
    pub field: String,
    /// The problem.
    pub message: String,
    /// How to correct it.
    pub hint: Option<String>,
}

impl DefinitionProblem {
    /// A problem without a hint.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), hint: None }
    }

    /// This problem, with how to correct it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for DefinitionProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// Largest schema, in bytes of compact JSON. 64 KiB: larger ones cost a model's whole attention.
pub(crate) const BYTES_MAX: usize = 64 * 1024;

/// Deepest nesting of subschemas. 32: hand-written ones stay below 10, generated ones below 20.
pub(crate) const DEPTH_MAX: usize = 32;

/// Most subschemas. 1,000: bounds the cost of one validation.
pub(crate) const SUBSCHEMAS_MAX: usize = 1_000;

/// Most patterns of one schema that turn out to be too large. Finding it out takes as long as
/// compiling the largest that is not.
pub(crate) const LARGE_PATTERNS_MAX: usize = 16;

/// Bounds on compiling the schemas of one tool.
#[derive(Clone, Copy, Debug)]
pub struct SchemaBounds {
    /// Most memory of a tool's compiled schemas, in bytes, roughly; patterns take most. 16 MiB: the
    /// two largest schemas without patterns take 9.
    pub memory_bytes_max: usize,
    /// The deadline for compiling. None by default.
    pub until: Option<Instant>,
}

impl Default for SchemaBounds {
    fn default() -> Self {
        Self { memory_bytes_max: 16 * 1024 * 1024, until: None }
    }
}
