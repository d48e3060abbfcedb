//! Prompts: entries that are called like tools, but listed separately.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use serde_json::value::RawValue;
use toolcell_schema::{DefinitionProblem, sanitize};

use super::McpTool;
use super::definition::{DESCRIPTION_BYTES_MAX, NAME_BYTES_MAX, TITLE_BYTES_MAX};
use crate::frame::{RpcError, echo};

/// The prefix of a prompt's name among all entries. No tool has such a name.
const PATH: &str = "prompt/";

/// Most arguments of a prompt. People fill them in one after the other.
pub const PROMPT_ARGUMENTS_MAX: usize = 64;

/// Values of an argument, and bytes of one. Clients show a hundred at once.
pub const PROMPT_VALUES_MAX: usize = 1_000;
pub(super) const VALUE_BYTES_MAX: usize = 256;

/// One argument of a prompt (2026-07-28, Prompts, "Data Types").
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PromptArgument {
    /// Unique in its prompt: 1 to 64 of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// A description for people.
    pub description: Option<String>,
    /// True if the prompt cannot be got without it.
    pub required: bool,
    /// The values that are offered as completions. Others are accepted as well.
    pub values: Vec<String>,
}

/// The part of a prompt that tools do not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpPrompt {
    pub(crate) name: String,
    arguments: Vec<PromptArgument>,
}

/// The list in which clients find an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Offered {
    /// The list of tools.
    #[default]
    Tool,
    /// The list of prompts.
    Prompt(McpPrompt),
    /// None: the host calls it for other methods.
    Nowhere,
}

impl McpPrompt {
    /// The name that clients use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the prompt's entry among all entries.
    #[must_use]
    pub fn path(name: &str) -> String {
        format!("{PATH}{name}")
    }

    /// Its arguments, in order.
    #[must_use]
    pub fn arguments(&self) -> &[PromptArgument] {
        &self.arguments
    }

    /// The argument of this name.
    #[must_use]
    pub fn argument(&self, name: &str) -> Option<&PromptArgument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    /// Checks a client's arguments: only texts, only known arguments, and all required ones
    /// (2026-07-28, Prompts, "Error Handling").
    pub(crate) fn check(&self, arguments: &RawValue) -> Result<(), RpcError> {
        let given: BTreeMap<String, Value> = serde_json::from_str(arguments.get())
            .map_err(|_| RpcError::params("params.arguments must be an object"))?;
        for (name, value) in &given {
            if self.argument(name).is_none() {
                let prompt = &self.name;
                let name = echo(name);
                return Err(RpcError::params(format!("Unknown argument of the prompt {prompt}: {name}")));
            }
            if !value.is_string() {
                return Err(RpcError::params(format!("params.arguments.{name} must be a string")));
            }
        }
        let missing = self.arguments.iter().find(|argument| argument.required && !given.contains_key(&argument.name));
        missing.map_or(Ok(()), |argument| {
            Err(RpcError::params(format!("Missing argument of the prompt {}: {}", self.name, argument.name)))
        })
    }
}

impl McpTool {
    /// Turns the entry into a prompt with these arguments. It is found by its
    /// [path](McpPrompt::path).
    ///
    /// # Errors
    ///
    /// Every problem of the arguments.
    pub fn into_prompt(mut self, arguments: Vec<PromptArgument>) -> Result<Self, Vec<DefinitionProblem>> {
        let mut problems = Vec::new();
        if arguments.len() > PROMPT_ARGUMENTS_MAX {
            return Err(vec![DefinitionProblem::new("arguments", format!("more than {PROMPT_ARGUMENTS_MAX}"))]);
        }
        let mut names = BTreeSet::new();
        let mut cleaned = Vec::with_capacity(arguments.len());
        for (place, argument) in arguments.into_iter().enumerate() {
            let field = format!("arguments/{place}");
            if !names.insert(argument.name.clone()) {
                problems.push(DefinitionProblem::new(&field, "has the name of another argument"));
            }
            cleaned.push(argument.checked(&field, &mut problems));
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let name = std::mem::take(&mut self.definition.name);
        self.definition.name = McpPrompt::path(&name);
        self.served = None;
        self.offered = Offered::Prompt(McpPrompt { name, arguments: cleaned });
        Ok(self)
    }

    /// Removes the entry from every list. The host calls it for other methods, by this name, which
    /// must contain a `/`.
    #[must_use]
    pub fn into_unlisted(mut self, path: String) -> Self {
        self.definition.name = path;
        self.served = None;
        self.offered = Offered::Nowhere;
        self
    }

    /// True if clients find it in the list of tools.
    #[must_use]
    pub fn is_tool(&self) -> bool {
        self.offered == Offered::Tool
    }

    /// True if a model may call it, and another tool: views alone may call some.
    #[must_use]
    pub fn is_for_models(&self) -> bool {
        self.is_tool() && !self.definition().is_for_views_alone()
    }

    /// The prompt that it is, if it is one.
    #[must_use]
    pub fn prompt(&self) -> Option<&McpPrompt> {
        match &self.offered {
            Offered::Prompt(prompt) => Some(prompt),
            Offered::Tool | Offered::Nowhere => None,
        }
    }
}

impl PromptArgument {
    /// The argument with clean texts.
    fn checked(self, field: &str, problems: &mut Vec<DefinitionProblem>) -> Self {
        let Self { name, title, description, required, values } = self;
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !plain || !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            problems.push(DefinitionProblem::new(format!("{field}/name"), "is not a valid name"));
        }
        let title = title.map(|title| sanitize::line(&title).into_owned());
        let description = description.map(|text| sanitize::text(&text).into_owned());
        let values: Vec<String> = values.iter().map(|value| sanitize::line(value).into_owned()).collect();
        for (part, text, bytes_max) in
            [("title", &title, TITLE_BYTES_MAX), ("description", &description, DESCRIPTION_BYTES_MAX)]
        {
            if text.as_ref().is_some_and(|text| text.len() > bytes_max) {
                let text = format!("longer than {bytes_max} bytes");
                problems.push(DefinitionProblem::new(format!("{field}/{part}"), text));
            }
        }
        if values.len() > PROMPT_VALUES_MAX || values.iter().any(|value| value.len() > VALUE_BYTES_MAX) {
            let text = format!("more than {PROMPT_VALUES_MAX}, or one of more than {VALUE_BYTES_MAX} bytes");
            problems.push(DefinitionProblem::new(format!("{field}/values"), text));
        }
        Self { name, title, description, required, values }
    }
}
