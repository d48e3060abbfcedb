//! A call from the command line: a tool and its arguments.
use std::io::Read as _;
use std::path::Path;

use serde_json::value::RawValue;
use toolcell_mcp::{Call, CallContext, Caller, Cancellation, McpTool, ServedCatalog as _};
use toolcell_policy::names;
use toolcell_server::{catalog::Catalog, file::read_bounded};

use crate::exit::Failure;

/// Most bytes of arguments from a file or stdin, as for one line of the stdio transport.
const ARGUMENTS_BYTES_MAX: u64 = 16 << 20;

/// Reads arguments: JSON, `@FILE` for a file, `-` for stdin.
pub fn arguments(given: &str) -> Result<Box<RawValue>, Failure> {
    let hint = "give a JSON object, @FILE to read one, or - for stdin";
    read(given).map_err(|problem| Failure::usage(problem, hint))
}

/// The tool of this name and its index.
pub fn tool<'c>(catalog: &'c Catalog, name: &str) -> Result<(usize, &'c McpTool), Failure> {
    let Some((index, tool)) = catalog.tools().find(name) else {
        let known = catalog.tools().tools().iter().map(|tool| tool.definition().name.as_str());
        let near = names::did_you_mean(name, known).map(|name| format!("did you mean \"{name}\"?"));
        let hint = near.unwrap_or_else(|| "`toolcell list` shows the tools".to_owned());
        return Err(Failure::usage(format!("no tool is called {name:?}"), hint));
    };
    Ok((index, tool.as_ref()))
}

/// A call with these arguments, without a connection.
pub fn call(tool: usize, arguments: Box<RawValue>, cancellation: Cancellation) -> Call {
    let context = Box::new(CallContext::outside("cli", Caller::local(), cancellation));
    Call { tool, arguments, context }
}

fn read(given: &str) -> Result<Box<RawValue>, String> {
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
