//! Problems of values, worded so that a model can correct them.

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};

use crate::bounds::DefinitionProblem;
use crate::pattern::{NOT_RUN, NOT_RUN_HINT};
use crate::sanitize;

/// Most failing places that are listed; the rest is counted. A model mends a few at a time.
const PROBLEMS_MAX: usize = 20;

/// Longest description of a rule, and longest place, in characters.
const RULE_CHARS_MAX: usize = 300;

/// Most bytes of the text of all problems of one value: for each a place and a rule, in characters
/// of four bytes, and a few words.
pub const PROBLEMS_BYTES_MAX: usize = PROBLEMS_MAX * (2 * 4 * (RULE_CHARS_MAX + 1) + 8) + 64;

/// One failing place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblem {
    /// The place, as a JSON Pointer; empty for the value as a whole.
    pub path: String,
    /// The rule that it breaks, as a sentence about the value there.
    pub rule: String,
}

/// All problems of one value, up to a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentProblems {
    /// The failing places, at most 20.
    pub problems: Vec<ArgumentProblem>,
    /// How many further places there are.
    pub more: usize,
    is_verdict: bool,
}

impl ArgumentProblems {
    pub(super) fn verdict(rule: &str) -> Self {
        let problems = vec![ArgumentProblem { path: String::new(), rule: rule.to_owned() }];
        Self { problems, more: 0, is_verdict: true }
    }

    /// The schema failed to compile now, although it had compiled before.
    #[must_use]
    pub fn unchecked() -> Self {
        Self::verdict("nothing has checked it")
    }

    /// The caller gave up before the end of the check.
    pub(super) fn no_time() -> Self {
        Self { is_verdict: false, ..Self::verdict("there was no time left to check it") }
    }

    /// False if the caller gave up before the end of the check: then the value may be valid.
    #[must_use]
    pub fn is_verdict(&self) -> bool {
        self.is_verdict
    }

    pub(super) fn of<'e>(errors: impl Iterator<Item = ValidationError<'e>>) -> Self {
        let mut problems = Vec::new();
        let mut more = 0;
        for error in errors {
            if problems.len() < PROBLEMS_MAX {
                let path = sanitize::text(&cut(error.instance_path().as_str())).into_owned();
                problems.push(ArgumentProblem { path, rule: sanitize::text(&rule(&error)).into_owned() });
            } else {
                more += 1;
            }
        }
        Self { problems, more, is_verdict: true }
    }
}

impl fmt::Display for ArgumentProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, problem) in self.problems.iter().enumerate() {
            let path = if problem.path.is_empty() { "(root)" } else { &problem.path };
            let lead = if place == 0 { "" } else { "\n" };
            write!(f, "{lead}- {path}: {}", problem.rule)?;
        }
        if self.more > 0 {
            write!(f, "\n- and {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ArgumentProblems {}

/// The broken rule of an error. Never quotes the value, which the model knows and which may be
/// long.
fn rule(error: &ValidationError<'_>) -> String {
    let text = match error.kind() {
        ValidationErrorKind::Required { property } => format!("{property} is required"),
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            format!("{} not expected here", names(unexpected))
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(expected) } => format!("must be of type {expected}"),
        ValidationErrorKind::Type { kind: TypeKind::Multiple(expected) } => {
            let expected: Vec<String> = expected.into_iter().map(|kind: JsonType| kind.to_string()).collect();
            format!("must be of type {}", expected.join(" or "))
        }
        ValidationErrorKind::Enum { options } => format!("must be one of {options}"),
        ValidationErrorKind::Constant { expected_value } => format!("must be {expected_value}"),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} characters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {limit} members"),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {limit} members"),
        ValidationErrorKind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        // Messages of this crate's own keywords.
        ValidationErrorKind::Custom { message, .. } => message.clone(),
        ValidationErrorKind::Format { format } => format!("must have the format {format}"),
        ValidationErrorKind::UniqueItems => "must not have equal items".to_owned(),
        ValidationErrorKind::AnyOf { .. } => "must fit at least one of the alternatives".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => "must fit one of the alternatives".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => "must fit only one of the alternatives".to_owned(),
        ValidationErrorKind::FalseSchema => "is not expected here".to_owned(),
        other => format!("breaks the rule {}", other.keyword()),
    };
    cut(&text)
}

fn names(unexpected: &[String]) -> String {
    const NAMES_MAX: usize = 5;
    let shown: Vec<String> = unexpected.iter().take(NAMES_MAX).map(|name| format!("{:?}", cut(name))).collect();
    let more = unexpected.len().saturating_sub(NAMES_MAX);
    match (more, unexpected.len()) {
        (0, 1) => format!("{} is", shown.join(", ")),
        (0, _) => format!("{} are", shown.join(", ")),
        _ => format!("{} and {more} more are", shown.join(", ")),
    }
}

pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(RULE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The problem of a schema that does not compile.
pub(super) fn of_schema(field: &str, error: &ValidationError<'_>) -> DefinitionProblem {
    let place = super::graph::place(field, error.instance_path().as_str());
    let text = match error.kind() {
        ValidationErrorKind::Format { format } if format == "regex" => {
            return DefinitionProblem::new(place, NOT_RUN).hint(NOT_RUN_HINT);
        }
        ValidationErrorKind::Referencing(reason) => cut(&reason.to_string()),
        _ => cut(&error.masked_with("it").to_string()),
    };
    DefinitionProblem::new(place, text)
}
