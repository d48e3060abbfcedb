//! Calling other tools of the same host. The manifest has to name them in `calls`.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::toolcell::mcp::calling::{self, Called, NotCalled, Wanted};
use crate::{Content, Failure};

/// Calls a tool, and reads the JSON value that it gives.
///
/// # Errors
/// [`Failure::Failed`] with the words of the tool, or with the host's reason not to call it.
pub fn call<T: DeserializeOwned>(tool: &str, arguments: &impl Serialize) -> Result<T, Failure> {
    read(tool, calling::call(tool, &json(arguments)?))
}

/// Calls a tool with each of these arguments, some of them at once. The results are in their order.
///
/// # Errors
/// [`Failure::Failed`] where arguments have no JSON form.
pub fn call_all<T: DeserializeOwned>(
    tool: &str,
    arguments: &[impl Serialize],
) -> Result<Vec<Result<T, Failure>>, Failure> {
    let wanted = |arguments| Ok(Wanted { tool: tool.to_owned(), arguments_json: json(arguments)? });
    let calls = arguments.iter().map(wanted).collect::<Result<Vec<_>, Failure>>()?;
    Ok(calling::call_all(&calls).into_iter().map(|end| read(tool, end)).collect())
}

fn json(arguments: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(arguments).map_err(|error| Failure::Failed(error.to_string()))
}

fn read<T: DeserializeOwned>(tool: &str, end: Result<Called, NotCalled>) -> Result<T, Failure> {
    let failed = |why: &str| Failure::Failed(format!("{tool}: {why}"));
    match end {
        Ok(called) => {
            let json = called.structured_json.ok_or_else(|| failed("it gave no JSON value"))?;
            serde_json::from_str(&json).map_err(|error| failed(&error.to_string()))
        }
        Err(NotCalled::Failed(called)) => Err(failed(&said(&called))),
        Err(NotCalled::Refused(refusal)) => Err(failed(&refusal.text)),
    }
}

/// The texts of a result.
fn said(called: &Called) -> String {
    let texts = called.content.iter().filter_map(|item| match item {
        Content::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::toolcell::mcp::calling::{Reason, Refusal};

    #[test]
    fn an_error_of_a_tool_is_an_error_here_and_says_whose() {
        let called = |text: &str, json: Option<&str>| Called {
            content: vec![Content::text(text)],
            structured_json: json.map(str::to_owned),
        };
        let of = |end| read::<Vec<u8>>("count", end).map_err(|failure| failure.message().to_owned());
        assert_eq!(of(Ok(called("", Some("[1,2]")))), Ok(vec![1, 2]));
        assert_eq!(of(Ok(called("two", None))), Err("count: it gave no JSON value".to_owned()));
        let failed = NotCalled::Failed(called("the shop is closed", None));
        assert_eq!(of(Err(failed)), Err("count: the shop is closed".to_owned()));
        let refusal = Refusal { reason: Reason::Busy, text: "busy: try again".to_owned() };
        assert_eq!(of(Err(NotCalled::Refused(refusal))), Err("count: busy: try again".to_owned()));
    }
}
