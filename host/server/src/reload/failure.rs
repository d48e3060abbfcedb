//! Why an attempt to replace the catalog failed.
use serde_json::{Value, json};
use toolcell_policy::{Diagnostic, Severity, Style, render_all};

use crate::open::{ManifestFile, summary};

/// Problems of a failed attempt.
#[derive(Clone, Debug, Default)]
pub struct ReloadFailure {
    /// Summary in one line.
    pub summary: String,
    /// Each problem with its place, drawn without colours.
    pub drawn: String,
    /// The problems as JSON, for scripts.
    pub problems: Vec<Value>,
}

impl ReloadFailure {
    pub fn saying(problem: &str) -> Self {
        let problems = vec![json!({"severity": "error", "message": problem})];
        Self { summary: problem.to_owned(), drawn: String::new(), problems }
    }

    /// [`saying`](Self::saying), with a code for programs.
    pub(super) fn coded(code: &str, problem: &str) -> Self {
        let problems = vec![json!({"severity": "error", "code": code, "message": problem})];
        Self { problems, ..Self::saying(problem) }
    }

    /// A failure of the manifest or its components.
    pub(super) fn with(file: &ManifestFile, problems: &[Diagnostic]) -> Self {
        let mut problems = problems.to_vec();
        problems.sort_by_key(|problem| problem.span().map(|span| span.start));
        let source = file.source();
        let errors = problems.iter().filter(|problem| problem.severity() == Severity::Error);
        Self {
            summary: match errors.clone().next() {
                Some(only) if errors.clone().count() == 1 => only.message().to_owned(),
                _ => format!("{}: {}", file.name(), summary(&problems)),
            },
            drawn: format!("\n{}", render_all(&source, &problems, Style::Plain)),
            problems: problems.iter().map(|problem| problem.to_json(&source)).collect(),
        }
    }
}
