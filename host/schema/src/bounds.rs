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

/// The bounds of a schema.
#[derive(Clone, Debug)]
pub struct SchemaBounds {
    /// Largest schema, in bytes of compact JSON. 64 KiB: larger ones cost a model's whole
    /// attention.
    pub bytes_max: usize,
    /// Deepest nesting of subschemas. 32: hand-written ones stay below 10, generated ones below 20.
    pub depth_max: usize,
    /// Most subschemas. 1,000: bounds the cost of one validation.
    pub subschemas_max: usize,
    /// Longest regular expression, in bytes. 1,024: matching is linear, compiling is not free.
    pub pattern_bytes_max: usize,
    /// Most memory of a tool's compiled schemas, in bytes, roughly; patterns take most. 16 MiB: the
    /// two largest schemas without patterns take 9.
    pub memory_bytes_max: usize,
    /// The deadline for compiling. None by default.
    pub until: Option<Instant>,
}

impl Default for SchemaBounds {
    fn default() -> Self {
        Self {
            bytes_max: 64 * 1024,
            depth_max: 32,
            subschemas_max: 1_000,
            pattern_bytes_max: 1_024,
            memory_bytes_max: 16 * 1024 * 1024,
            until: None,
        }
    }
}
