//! Where the schemas of a tool are applied, and when they are compiled. Must not hold: other parts
//! of a definition, or what is checked.
use std::sync::OnceLock;

use serde_json::Value;
use toolcell_schema::{SchemaBounds, SchemaTexts, Schemas};

/// The schemas of one tool.
#[derive(Debug)]
pub(super) enum Applied {
    /// They are applied here.
    Here(Box<Schemas>),
    /// They are applied here, and compile within a millisecond when a call first needs them.
    Later(OnceLock<Option<Box<Schemas>>>),
    /// They are compiled and applied elsewhere.
    Elsewhere,
}

impl Applied {
    pub(super) fn here(schemas: Schemas) -> Self {
        Self::Here(Box::new(schemas))
    }

    pub(super) fn later() -> Self {
        Self::Later(OnceLock::new())
    }

    /// True of schemas that compile within a millisecond.
    pub(super) fn are_simple(input: &Value, output: Option<&Value>) -> bool {
        SchemaTexts { input: input.to_string(), output: output.map(Value::to_string) }.are_simple()
    }

    /// They, as far as they are compiled here now.
    pub(super) fn ready(&self) -> Option<&Schemas> {
        match self {
            Self::Here(schemas) => Some(schemas),
            Self::Later(compiled) => compiled.get()?.as_deref(),
            Self::Elsewhere => None,
        }
    }

    /// They, which these are; `None` where they are applied elsewhere, or do not compile though
    /// they once did.
    pub(super) fn compiled(&self, input: &Value, output: Option<&Value>) -> Option<&Schemas> {
        let Self::Later(compiled) = self else { return self.ready() };
        let compile = || Schemas::compile(input, output, &SchemaBounds::default()).ok().map(Box::new);
        compiled.get_or_init(compile).as_deref()
    }
}
