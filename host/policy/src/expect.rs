//! A table of expectations, for a user's own tests of a manifest.
//!
//! ```toml
//! [[expect]]
//! tool = "weather/forecast"
//! ask = "GET https://api.example.com/v1/now"
//! allowed = true
//! ```

use std::sync::Arc;

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::explain::{Ask, Explanation};
use crate::grants::Grants;
use crate::parse::{MANIFEST_BYTES_MAX, document};
use crate::read::{Entry, Problems, Section};
use crate::settings::accessors;
use crate::table::table;

/// Scopes of one caller.
const SCOPES_MAX: usize = 1_000;

/// The most expectations in one file.
pub const EXPECTATIONS_MAX: usize = 10_000;

table! {
    /// A file of expectations.
    EXPECTATIONS "" {
        /// The expectations.
        "expect" required: List(&Table(&EXPECT)), {};
    }
    other names { "expects" => "expect", "test" => "expect", "tests" => "expect" }
}

table! {
    /// One expectation.
    EXPECT "" {
        /// The tool, as clients see it, or as `COMPONENT/TOOL`.
        "tool" required: Text, {};
        /// The question.
        "ask" required: Text, {};
        /// The expected answer.
        "allowed" required: Flag, {};
        /// Who makes the call, for `ask = "call …"`; `local` by default.
        "caller": Text, {};
        /// The caller's scopes.
        "scopes": List(&Text), {};
    }
    other names {
        "name" => "tool", "component" => "tool", "question" => "ask", "allow" => "allowed", "denied" => "allowed",
    }
}

/// One expectation of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expectation {
    tool: (String, Span),
    ask: (Ask, Span),
    allowed: (bool, Span),
    caller: Option<String>,
    scopes: Vec<String>,
}

accessors! {
    /// The outcome of an expectation.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ExpectationResult {
        /// The answer; `None` if the tool does not exist.
        explanation: Option<Explanation> => Option<&Explanation>,
        /// The difference, with its place in the file of expectations.
        problem: Option<Diagnostic> => Option<&Diagnostic>,
    }
}

/// Reads a file of expectations, at most [`MANIFEST_BYTES_MAX`] long.
///
/// # Errors
/// Every problem of the file at once, in its order.
pub fn parse_expectations(source: &Source<'_>) -> Result<Vec<Expectation>, Vec<Diagnostic>> {
    let read = document(source.text, MANIFEST_BYTES_MAX, "manifest::too_large", "the file has", expectations);
    read.map(|(expectations, _)| expectations)
}

fn expectations(root: &Section<'_>, problems: &mut Problems) -> Vec<Expectation> {
    root.check_keys(&EXPECTATIONS, problems);
    let sections = match root.get("expect") {
        Some(entry) => entry.sections(EXPECTATIONS_MAX, problems).unwrap_or_default(),
        None => {
            let problem = Diagnostic::error("manifest::missing", "the file has no expectations");
            problems.add(problem.hint("add [[expect]] with tool, ask and allowed"));
            Vec::new()
        }
    };
    sections.into_iter().filter_map(|(section, span)| expectation(&section, &span, problems)).collect()
}

fn expectation(section: &Section<'_>, span: &Span, problems: &mut Problems) -> Option<Expectation> {
    section.check_keys(&EXPECT, problems);
    let mut needed = |key: &str| {
        let entry = section.get(key);
        if entry.is_none() {
            problems
                .add(Diagnostic::error("manifest::missing", format!("the expectation has no {key}")).at(span.clone()));
        }
        entry
    };
    let tool = needed("tool");
    let ask = needed("ask");
    let allowed = needed("allowed");
    let tool = tool.and_then(|entry| Some((entry.string(problems)?.to_owned(), entry.span)));
    let ask = ask.and_then(|entry| question(&entry, problems));
    let allowed = allowed.and_then(|entry| Some((entry.boolean(problems)?, entry.span)));
    let caller = section.get("caller").and_then(|entry| Some(entry.string(problems)?.to_owned()));
    let scopes = section.get("scopes").and_then(|entry| entry.strings(SCOPES_MAX, problems)).unwrap_or_default();
    let scopes = scopes.into_iter().map(|(scope, _)| scope.to_owned()).collect();
    Some(Expectation { tool: tool?, ask: ask?, allowed: allowed?, caller, scopes })
}

fn question(entry: &Entry<'_>, problems: &mut Problems) -> Option<(Ask, Span)> {
    match Ask::of_person(entry.string(problems)?) {
        Ok(ask) => Some((ask, entry.span.clone())),
        Err(error) => problems.refuse(entry.error("expect::ask", error.to_string()).hint(error.hint())),
    }
}

impl Expectation {
    /// The tool, as the file calls it.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.0
    }

    /// The question.
    #[must_use]
    pub const fn ask(&self) -> &Ask {
        &self.ask.0
    }

    /// True if it should be allowed.
    #[must_use]
    pub const fn allowed(&self) -> bool {
        self.allowed.0
    }

    /// The name of the caller who makes the call, if it says one.
    #[must_use]
    pub fn caller(&self) -> Option<&str> {
        self.caller.as_deref()
    }

    /// The caller's scopes.
    #[must_use]
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Compares it with the tool's grants; `None` if the tool does not exist.
    #[must_use]
    pub fn check(&self, grants: Option<&Arc<Grants>>) -> ExpectationResult {
        self.compare(grants.map(|grants| grants.explain(&self.ask.0)))
    }

    /// Compares it with the answer; `None` if the tool does not exist.
    #[must_use]
    pub fn compare(&self, answer: Option<Explanation>) -> ExpectationResult {
        let Some(explanation) = answer else {
            let problem = Diagnostic::error("expect::tool", format!("there is no tool {:?}", self.tool.0));
            let problem = problem.at(self.tool.1.clone()).hint("name it as clients see it, or as COMPONENT/TOOL");
            return ExpectationResult { explanation: None, problem: Some(problem) };
        };
        let problem = (explanation.is_allowed() != self.allowed.0).then(|| self.differs(&explanation));
        ExpectationResult { explanation: Some(explanation), problem }
    }

    fn differs(&self, explanation: &Explanation) -> Diagnostic {
        let message = match explanation.rule() {
            Some(rule) => format!("{} is allowed by {rule}", explanation.asked()),
            None => match (explanation.denial(), explanation.refusal()) {
                (Some(denial), _) => denial.to_string(),
                (None, Some(refusal)) => refusal.replace('\n', " "),
                (None, None) => format!("{} is allowed to everybody", explanation.asked()),
            },
        };
        let expected = if self.allowed.0 { "expected to be allowed" } else { "expected to be denied" };
        let problem = Diagnostic::error("expect::differs", message).at(self.allowed.1.clone()).label(expected);
        match explanation.denial().and_then(crate::Denial::hint) {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl ExpectationResult {
    /// True if the answer is the expected one.
    #[must_use]
    pub const fn is_met(&self) -> bool {
        self.problem.is_none()
    }
}
