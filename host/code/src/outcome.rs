//! How a script ended, and the result that says so.

use serde_json::{Value, json};
use toolkit::{CallResult, Content};

/// How a script ended.
pub(crate) struct Outcome {
    /// What it returned, or why it has nothing to return.
    pub(crate) end: Result<Value, String>,
    /// What it printed.
    pub(crate) console: String,
}

impl Outcome {
    /// The engine itself failed.
    pub(crate) fn broken(problem: &str) -> Self {
        Self { end: Err(format!("the script could not run: {problem}")), console: String::new() }
    }

    /// The result of the call.
    pub(crate) fn result(self) -> CallResult {
        let Self { end, console } = self;
        let is_error = end.is_err();
        let said = match &end {
            Ok(Value::String(text)) => text.clone(),
            Ok(value) => value.to_string(),
            Err(problem) => problem.clone(),
        };
        let mut content = vec![Content::text(said)];
        if !console.is_empty() {
            content.push(Content::text(format!("console:\n{console}")));
        }
        let structured_json = end.ok().map(|value| match console.as_str() {
            "" => json!({"result": value}).to_string(),
            console => json!({"result": value, "console": console}).to_string(),
        });
        CallResult { content, structured_json, is_error, meta_json: None }
    }
}
