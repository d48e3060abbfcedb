//! How a script ended, and the result that says so.

use serde_json::{Value, json};
use toolkit::bindings::toolcell::mcp::types::{EmbeddedResource, ResourceBody};
use toolkit::{CallResult, Content};

/// Bytes of the console that are part of the result: what a model still reads beside it. The host
/// keeps a longer one.
const CONSOLE_SHOWN: usize = 16 << 10;

/// Bytes of an error: as much.
const PROBLEM_SHOWN: usize = 16 << 10;

/// The address under which the host gets a longer console.
const CONSOLE: &str = "toolcell:console";

/// How a script ended.
pub(crate) struct Outcome {
    /// What it returned, or why it has nothing to return.
    pub(crate) end: Result<Value, String>,
    /// What it printed.
    pub(crate) console: String,
    /// Lines that it printed besides.
    pub(crate) unprinted: usize,
}

impl Outcome {
    /// The engine itself failed.
    pub(crate) fn broken(problem: &str) -> Self {
        Self { end: Err(format!("the script could not run: {problem}")), console: String::new(), unprinted: 0 }
    }

    /// The result of the call.
    pub(crate) fn result(self) -> CallResult {
        let Self { end, console, unprinted } = self;
        let is_error = end.is_err();
        let said = match &end {
            Ok(Value::String(text)) => text.clone(),
            Ok(value) => value.to_string(),
            Err(problem) => beginning(problem, PROBLEM_SHOWN).to_owned(),
        };
        let mut content = vec![Content::text(said)];
        let shown = shown(&console, unprinted);
        if !shown.is_empty() {
            content.push(Content::text(format!("console:\n{shown}")));
        }
        if console.len() > CONSOLE_SHOWN {
            content.push(whole(&console, unprinted));
        }
        let structured_json = end.ok().map(|value| match shown.as_str() {
            "" => json!({"result": value}).to_string(),
            console => json!({"result": value, "console": console}).to_string(),
        });
        CallResult { content, structured_json, is_error, meta_json: None }
    }
}

/// The console as it is part of the result: its beginning in whole lines, if it is long.
fn shown(console: &str, unprinted: usize) -> String {
    let mut shown = beginning(console, CONSOLE_SHOWN);
    if shown.len() < console.len() {
        shown = shown.rsplit_once('\n').map_or(shown, |(whole, _)| whole);
    }
    let left = console.get(shown.len()..).unwrap_or_default();
    // Each line of what is left begins with its break, but the rest of a very long one.
    let lines = if left.is_empty() { 0 } else { left.matches('\n').count().max(1) };
    with_count(shown, lines.saturating_add(unprinted))
}

/// The whole console, for the host to keep.
fn whole(console: &str, unprinted: usize) -> Content {
    Content::EmbeddedResource(EmbeddedResource {
        uri: CONSOLE.to_owned(),
        mime_type: Some("text/plain".to_owned()),
        body: ResourceBody::Text(with_count(console, unprinted)),
        annotations: None,
        meta_json: None,
    })
}

fn with_count(text: &str, lines: usize) -> String {
    if lines == 0 { text.to_owned() } else { format!("{text}\n({lines} more lines)") }
}

/// The beginning of a text, of at most so many bytes.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let end = (0..=bytes_max.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}
