//! A call from the command line: a tool and its arguments.
use std::io::Read as _;
use std::path::Path;

use serde_json::value::RawValue;
use toolcell_mcp::{Call, CallContext, Caller, Cancellation, McpTool, ServedCatalog as _};
use toolcell_policy::names;
use toolcell_server::{catalog::Catalog, file::read_bounded};

use crate::terminal;

/// Most bytes of arguments from a file or stdin, as for one line of the stdio transport.
const ARGUMENTS_BYTES_MAX: u64 = 16 << 20;

/// Reads arguments: JSON, `@FILE` for a file, `-` for stdin. Prints an error otherwise.
pub fn arguments_or_report(given: &str) -> Option<Box<RawValue>> {
    arguments(given)
        .inspect_err(|problem| {
            terminal::error(problem, Some("give a JSON object, @FILE to read one, or - for stdin"));
        })
        .ok()
}

/// The tool of this name and its index. Prints an error if there is none.
pub fn tool_or_report<'c>(catalog: &'c Catalog, name: &str) -> Option<(usize, &'c McpTool)> {
    let found = catalog.tools().find(name);
    if found.is_none() {
        let known = catalog.tools().tools().iter().map(|tool| tool.definition().name.as_str());
        let near = names::did_you_mean(name, known).map(|name| format!("did you mean \"{name}\"?"));
        let hint = near.as_deref().unwrap_or("`toolcell list` shows the tools");
        terminal::error(&format!("no tool is called {name:?}"), Some(hint));
    }
    found.map(|(index, tool)| (index, tool.as_ref()))
}

/// A call with these arguments, without a connection.
pub fn call(tool: usize, arguments: Box<RawValue>, cancellation: Cancellation) -> Call {
    let context = Box::new(CallContext::outside("cli", Caller::local(), cancellation));
    Call { tool, arguments, context }
}

fn arguments(given: &str) -> Result<Box<RawValue>, String> {
    let text = match given.strip_prefix('@') {
        Some(path) => {
            let bytes =
                read_bounded(Path::new(path), ARGUMENTS_BYTES_MAX).map_err(|problem| format!("{path} {problem}"))?;
            String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text"))?
        }
        None if given == "-" => stdin()?,
        None => given.to_owned(),
    };
    RawValue::from_string(text.trim().to_owned()).map_err(|error| format!("the arguments are not JSON: {error}"))
}

fn stdin() -> Result<String, String> {
    let mut text = String::new();
    let read = std::io::stdin().take(ARGUMENTS_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("stdin cannot be read: {error}"))?;
    if text.len() as u64 > ARGUMENTS_BYTES_MAX {
        return Err(format!("stdin holds more than {ARGUMENTS_BYTES_MAX} bytes"));
    }
    Ok(text)
}
